/* Template of the products of attention on AMX, after stored_half.h with bfloat16: tiles of 16 rows of 64 bytes, whose product takes pairs
 * of bfloat16 numbers that belong to neighbouring columns of A and rows of B. Rows of A and C are there in multiples of 32, columns in
 * multiples of 32. */

enum { ATTENTION_TILE = 16, ATTENTION_TILES = 2 * ATTENTION_TILE }; /* rows of a tile; rows and columns of a square of four */

/* What a thread says before its first tile. */
SPK_INLINE void S(attention_begin)(void)
{
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t bytes[16]; /* of a row */
        uint8_t rows[16];
    } tiles = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        tiles.bytes[i] = 64;
        tiles.rows[i] = ATTENTION_TILE;
    }
    _tile_loadconfig(&tiles);
}

/* C = A B or C += A B of bfloat16 numbers: A by rows, lda bytes from one to the next; B as pairs of rows, in panels of attention_step
 * columns. */
SPK_INLINE void S(attention_tiles)(int64_t rows, int64_t columns, const bool add, int64_t depth, const void *a, int64_t lda,
                                   const uint32_t *b, int64_t ldb, int64_t panel, REAL *c, int64_t ldc)
{
    for (int64_t j = 0; j < columns; j += ATTENTION_TILES) {
        const uint32_t *from = b + j / T(attention_step) *panel + j % T(attention_step);
        for (int64_t i = 0; i < rows; i += ATTENTION_TILES) {
            const char *left = (const char *)a + i * lda;
            REAL *to = c + i * ldc + j;
            if (add) {
                _tile_loadd(0, to, ldc * 4);
                _tile_loadd(1, to + ATTENTION_TILE, ldc * 4);
                _tile_loadd(2, to + ATTENTION_TILE * ldc, ldc * 4);
                _tile_loadd(3, to + ATTENTION_TILE * ldc + ATTENTION_TILE, ldc * 4);
            } else {
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
            }
            for (int64_t k = 0; k < depth; k += ATTENTION_TILES) {
                _tile_loadd(4, left + k * 2, lda);
                _tile_loadd(6, from + k / 2 * ldb, ldb * 4);
                _tile_loadd(7, from + k / 2 * ldb + ATTENTION_TILE, ldb * 4);
                _tile_loadd(5, left + ATTENTION_TILE * lda + k * 2, lda);
                _tile_dpbf16ps(0, 4, 6);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            _tile_stored(0, to, ldc * 4);
            _tile_stored(1, to + ATTENTION_TILE, ldc * 4);
            _tile_stored(2, to + ATTENTION_TILE * ldc, ldc * 4);
            _tile_stored(3, to + ATTENTION_TILE * ldc + ATTENTION_TILE, ldc * 4);
        }
    }
}

/* Two vectors as 32 bfloat16 numbers. */
SPK_INLINE void S(store_two)(STORED *to, T(vec) low, T(vec) high)
{
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
    memcpy(to, &both, sizeof both);
}

/* The products of attention on AMX: tiles of 16 rows of 64 bytes, whose product takes pairs of bfloat16 numbers that belong to neighbouring
 * columns of A and rows of B. Rows of A and C are there in multiples of 32, columns in multiples of 32. */
#ifndef SPK_BACKEND_CPU_KERNELS_ATTENTION_ATTENTION_AMX_H
#define SPK_BACKEND_CPU_KERNELS_ATTENTION_ATTENTION_AMX_H

#include "backend/cpu/kernels/attention/attention_products.h"

#if TYPE != BF16 || ISA != AVX512
#error "attention_amx.h is for TYPE BF16 and ISA AVX512"
#endif

#include "backend/cpu/kernels/tiles/amx_tiles.h"

enum { ATTENTION_TILE = TILE_ROWS, ATTENTION_TILES = 2 * ATTENTION_TILE }; /* rows of a tile; rows and columns of a square of four */

/* What a thread says before its first tile. */
SPK_INLINE void S(attention_begin)(void)
{
    tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = TILE_BYTES;
        shapes.rows[i] = TILE_ROWS;
    }
    tile_shape(&shapes);
}

/* C = A B or C += A B of bfloat16 numbers: A by rows, lda bytes from one to the next; B as pairs of rows, in panels of attention_step
 * columns. */
SPK_INLINE void S(attention_tiles)(int64_t rows, int64_t columns, const bool add, int64_t depth, const void *a, int64_t lda,
                                   const uint32_t *b, int64_t ldb, int64_t panel, REAL *c, int64_t ldc)
{
    tile_settle(a);
    for (int64_t j = 0; j < columns; j += ATTENTION_TILES) {
        const uint32_t *from = b + j / T(attention_step) *panel + j % T(attention_step);
        for (int64_t i = 0; i < rows; i += ATTENTION_TILES) {
            const char *left = (const char *)a + i * lda;
            REAL *to = c + i * ldc + j;
            if (add) {
                tile_load(0, to, ldc * 4);
                tile_load(1, to + ATTENTION_TILE, ldc * 4);
                tile_load(2, to + ATTENTION_TILE * ldc, ldc * 4);
                tile_load(3, to + ATTENTION_TILE * ldc + ATTENTION_TILE, ldc * 4);
            } else {
                tile_zero(0);
                tile_zero(1);
                tile_zero(2);
                tile_zero(3);
            }
            for (int64_t k = 0; k < depth; k += ATTENTION_TILES) {
                tile_load(4, left + k * 2, lda);
                tile_load(6, from + k / 2 * ldb, ldb * 4);
                tile_load(7, from + k / 2 * ldb + ATTENTION_TILE, ldb * 4);
                tile_load(5, left + ATTENTION_TILE * lda + k * 2, lda);
                tile_multiply(0, 4, 6);
                tile_multiply(1, 4, 7);
                tile_multiply(2, 5, 6);
                tile_multiply(3, 5, 7);
            }
            tile_store(0, to, ldc * 4);
            tile_store(1, to + ATTENTION_TILE, ldc * 4);
            tile_store(2, to + ATTENTION_TILE * ldc, ldc * 4);
            tile_store(3, to + ATTENTION_TILE * ldc + ATTENTION_TILE, ldc * 4);
        }
    }
}

#endif

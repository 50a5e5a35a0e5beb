/* AMX' tiles, eight a thread: rows of at most 64 bytes, 16 at most. tile_multiply(d, a, b) adds to the floats of d the products of bfloat16
 * numbers: a row of a and a row of b hold pairs, of neighbouring columns of A and of neighbouring rows of B.
 *
 * With SPK_TILES_EMULATED (debug builds) plain C stands in for the instructions: the tests then run these kernels on any machine with
 * AVX-512, and the address sanitizer sees what tiles load and store. */
#ifndef SPK_BACKEND_CPU_KERNELS_AMX_TILES_H
#define SPK_BACKEND_CPU_KERNELS_AMX_TILES_H

#include <stdint.h>
#include <string.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64 }; /* at most, of a tile and of its row */

/* What the instruction that shapes tiles reads. */
typedef struct tile_shapes {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_shapes;

#if SPK_TILES_EMULATED

typedef struct tile_emulated {
    int rows, bytes;
    unsigned char at[TILE_ROWS][TILE_BYTES];
} tile_emulated;

static _Thread_local tile_emulated tiles_emulated[8];

static inline void tile_shape(const tile_shapes *shapes)
{
    memset(tiles_emulated, 0, sizeof tiles_emulated);
    for (int i = 0; i < 8; i++) {
        tiles_emulated[i].rows = shapes->rows[i];
        tiles_emulated[i].bytes = shapes->bytes[i];
    }
}

static inline void tile_settle(const void *memory)
{
    (void)memory;
}

static inline void tile_release(void)
{
    memset(tiles_emulated, 0, sizeof tiles_emulated);
}

static inline void tile_zero(int tile)
{
    memset(tiles_emulated[tile].at, 0, sizeof tiles_emulated[tile].at);
}

static inline void tile_load(int tile, const void *from, int64_t stride)
{
    tile_emulated *t = &tiles_emulated[tile];
    tile_zero(tile);
    for (int row = 0; row < t->rows; row++)
        memcpy(t->at[row], (const char *)from + row * stride, (size_t)t->bytes);
}

static inline void tile_store(int tile, void *to, int64_t stride)
{
    const tile_emulated *t = &tiles_emulated[tile];
    for (int row = 0; row < t->rows; row++)
        memcpy((char *)to + row * stride, t->at[row], (size_t)t->bytes);
}

/* 0 for a number that is not normal, as the instruction takes and gives it. */
static inline float tile_normal(float x)
{
    return x < __FLT_MIN__ && x > -__FLT_MIN__ ? 0 : x;
}

static inline float tile_number(const unsigned char *row, int index)
{
    uint16_t half;
    float number;
    memcpy(&half, row + 2 * index, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    memcpy(&number, &bits, sizeof number);
    return tile_normal(number);
}

/* Sums of the first and of the second numbers of the pairs, then both to what is there: in this order each product is rounded once. */
static inline void tile_multiply(int d, int a, int b)
{
    tile_emulated *to = &tiles_emulated[d];
    for (int row = 0; row < to->rows; row++)
        for (int column = 0; column < to->bytes / 4; column++) {
            float sums[2] = {0, 0}, before;
            for (int k = 0; k < tiles_emulated[a].bytes / 4; k++)
                for (int part = 0; part < 2; part++)
                    sums[part] = tile_normal(__builtin_fmaf(tile_number(tiles_emulated[a].at[row], 2 * k + part),
                                                            tile_number(tiles_emulated[b].at[k], 2 * column + part), sums[part]));
            memcpy(&before, to->at[row] + 4 * column, sizeof before);
            before = tile_normal(tile_normal(before) + tile_normal(sums[0] + sums[1]));
            memcpy(to->at[row] + 4 * column, &before, sizeof before);
        }
}

#else

#include <immintrin.h>

/* What was stored before is in memory: GCC does not know that these instructions read there. */
static inline void tile_settle(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

static inline void tile_shape(const tile_shapes *shapes)
{
    tile_settle(shapes);
    _tile_loadconfig(shapes);
}

/* Macros: the instructions have the tiles' numbers in them. */
#define tile_release() _tile_release()
#define tile_zero(tile) _tile_zero(tile)
#define tile_load(tile, from, stride) _tile_loadd(tile, from, (size_t)(stride))
#define tile_store(tile, to, stride) _tile_stored(tile, to, (size_t)(stride))
#define tile_multiply(d, a, b) _tile_dpbf16ps(d, a, b)

#endif
#endif

/* What register tiles are given: how high and wide they can be, and a tile's job. */
#include "backend/cpu/kernels/tiles/tile_plan.h"
#include "backend/cpu/kernels/vectors/vector.h"

#ifndef TILE_JOB_H
#define TILE_JOB_H

#ifndef TILE_PAIRED /* 1: an element is a pair (tile_pairs.h), which needs a register of its own */
#define TILE_PAIRED 0
#endif

/* Tiles that can fetch rows of B for later ones (tile_cut.fetches), in a loop of its own: a prefetch at each step would cost short blocks
 * 6 %. */
#ifndef TILE_FETCHES
#define TILE_FETCHES (ISA == AVX512 && !TILE_PAIRED)
#endif

/* Vectors of sums that the registers hold beside a row of B and an element of A. The list has each (height, width) that they allow. */
/* clang-format off */
#if VECTOR_REGISTERS == 32
#if TILE_PAIRED || ISA == NEON /* an element of A takes a register, too */
enum { T(accumulators) = 27 };
#else
enum { T(accumulators) = 28 };
#endif
#if ISA == AVX512 && !TILE_PAIRED /* where each sum loads its element of A: the more rows share a row of B the better */
enum { T(tallest) = 28, T(widest) = 6 };
#define TILE_TALL(X)                                                                                                      \
    X(15, 1) X(16, 1) X(17, 1) X(18, 1) X(19, 1) X(20, 1) X(21, 1) X(22, 1) X(23, 1) X(24, 1) X(25, 1) X(26, 1) X(27, 1) X(28, 1)
#else
enum { T(tallest) = 14, T(widest) = 6 };
#define TILE_TALL(X)
#endif
#define TILE_LIST(X)                                                                                                      \
    TILE_TALL(X)                                                                                                          \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1) X(13, 1) X(14, 1)  \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)  \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) X(9, 3)                                               \
    X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4) X(7, 4)                                                               \
    X(1, 5) X(2, 5) X(3, 5) X(4, 5) X(5, 5)                                                                               \
    X(1, 6) X(2, 6) X(3, 6) X(4, 6)
#else
enum { T(accumulators) = 12, T(tallest) = 6, T(widest) = 6 };
#define TILE_LIST(X)                                        \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1)         \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)         \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3)                         \
    X(1, 4) X(2, 4) X(3, 4)                                 \
    X(1, 5) X(2, 5)                                         \
    X(1, 6) X(2, 6)
#endif
/* clang-format on */

#ifdef __FMA__
enum { T(fused) = true };
#else
enum { T(fused) = false };
#endif
static const tile_machine T(machine) = {.lanes = T(lanes),
                                        .element_bytes = sizeof(REAL),
                                        .accumulators = T(accumulators),
                                        .tallest = T(tallest),
                                        .step = TILE_PAIRED ? 2 : 1,
                                        .fused = T(fused)};

/* Some rows of one block row times one panel. */
typedef struct T(tile_job) {
    const REAL *values;       /* element (first row, 0) of the block at position 0 */
    const int32_t *columns;   /* of the row's blocks */
    const int64_t *positions; /* of the row's blocks in values; NULL: 0, 1, 2 ... */
    int64_t blocks;           /* of the row */
    int64_t row_stride, col_stride, block_stride;
    int64_t depth;       /* columns of a block */
    int64_t edge_column; /* the last block column, which may overhang: */
    int64_t edge_depth;  /* its columns that exist */
    /* cache lines to fetch of a later block, the distance between them, and how many blocks later; 0: leave it to the hardware */
    int64_t ahead_count, ahead_bytes, ahead_blocks;
    const void *panel;    /* element (0, first column) of B, as the tiles read it */
    int64_t panel_stride; /* between rows of B in the panel */
    REAL *out;            /* h rows of w vectors */
    int64_t out_stride;
    int64_t back; /* so many columns of the last of several vectors are of the vector before, too: both make and store the same sums */
    REAL alpha;
    bool adds; /* to what is in out */
#if TILE_FETCHES
    /* what later tiles read: a line at each step of those of fetch_blocks blocks whose number is fetch_turn in fetch_mask, from `fetch` on
     */
    const REAL *fetch;
    const int32_t *fetch_columns;
    int64_t fetch_blocks, fetch_mask, fetch_turn, fetch_stride;
#endif
} T(tile_job);

typedef void (*T(tile_function))(const T(tile_job) *job);

#endif

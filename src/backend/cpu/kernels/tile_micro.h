/* Template of register tiles, after vector.h: the sums of a block row's blocks times a panel of B, h rows by w vectors held in registers.
 * Elements of A are read one at a time through the view's strides, so that both block layouts and both orientations run the same code. */

#ifndef TILE_PAIRED /* 1: an element is a pair (tile_pairs.h), which needs a register of its own */
#define TILE_PAIRED 0
#endif

/* Tiles of several vectors that can fetch rows of B for later ones (tile_cut.fetches), in a loop of its own: a prefetch at each step would
 * cost short blocks 6 %. */
#if VECTOR_BYTES == 64 && !TILE_PAIRED
#define TILE_FETCHES 1
#else
#define TILE_FETCHES 0
#endif

/* Vectors of sums that the registers hold beside a row of B and an element of A. The list has each (height, width) that they allow. */
/* clang-format off */
#if VECTOR_REGISTERS == 32
#if TILE_PAIRED || defined(VECTOR_NEON) /* an element of A takes a register, too */
enum { T(accumulators) = 27 };
#else
enum { T(accumulators) = 28 };
#endif
#if VECTOR_BYTES == 64 && !TILE_PAIRED /* where each sum loads its element of A: the more rows share a row of B the better */
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
    /* cache lines to fetch of the next block, and the distance between them; 0: leave it to the hardware */
    int64_t ahead_count, ahead_bytes;
    const REAL *panel;    /* element (0, first column) of B */
    int64_t panel_stride; /* between rows of B in the panel */
    REAL *out;            /* h rows of w vectors */
    int64_t out_stride;
    int64_t back; /* so many columns of the last of several vectors are of the vector before, too: both make and store the same sums */
    REAL alpha;
#if TILE_FETCHES
    /* what later tiles read: a line at each step of those of fetch_blocks blocks whose number is fetch_turn in fetch_mask, from `fetch` on
     */
    const REAL *fetch;
    const int32_t *fetch_columns;
    int64_t fetch_blocks, fetch_mask, fetch_turn, fetch_stride;
#endif
} T(tile_job);

typedef void (*T(tile_function))(const T(tile_job) *job);

SPK_INLINE T(vec) T(tile_row)(const REAL *b, const int part)
{
#if TILE_PAIRED
    return part == TILE_FIRST    ? (T(vec))((T(words))T(load)(b) << 16)
           : part == TILE_SECOND ? (T(vec))((T(words))T(load)(b) >> 16 << 16)
                                 : T(load)(b);
#else
    (void)part;
    return T(load)(b);
#endif
}

/* Where vector j of w begins in a row of the panel. */
SPK_INLINE int64_t T(tile_column)(int64_t back, const int j, const int w)
{
    return j * T(lanes) - (!TILE_PAIRED && j > 0 && j == w - 1 ? back : 0);
}

SPK_INLINE T(vec) T(tile_multiply)(T(vec) sum, const REAL *element, T(vec) row, const int part)
{
#if TILE_PAIRED
    uint32_t pair;
    __builtin_memcpy(&pair, element, sizeof pair);
    const __m512i all = _mm512_set1_epi32((int)(part == TILE_FIRST ? pair << 16 : part == TILE_SECOND ? pair >> 16 << 16 : pair));
    if (part != TILE_WHOLE)
        return sum + (T(vec))all * row;
    /* _mm512_dpbf16_ps: GCC takes it for a call that may read memory, and stores all sums at each step. */
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(row), "v"(all));
    return sum;
#else
    (void)part;
    return sum + *element * row;
#endif
}

/* One step along k of block i, or a part of it. A macro: sums that a function is given by address would not stay in registers. */
/* clang-format off */
#define TILE_STEP(part)                                                                                             \
    {                                                                                                               \
        T(vec) row[6];                                                                                              \
        _Pragma("GCC unroll 6")                                                                                     \
        for (int j = 0; j < w; j++)                                                                                 \
            row[j] = T(tile_row)(b[i] + T(tile_column)(back, j, w), part);                                          \
        _Pragma("GCC unroll 28")                                                                                    \
        for (int r = 0; r < h; r++) {                                                                               \
            _Pragma("GCC unroll 6")                                                                                 \
            for (int j = 0; j < w; j++)                                                                             \
                acc[i][r][j] = T(tile_multiply)(acc[i][r][j], &a[i][r / 5][r % 5 * row_stride], row[j], part);      \
        }                                                                                                           \
    }
/* clang-format on */

/* Blocks p .. p + u - 1, none of them at the edge, or one that may be. fetches: as the job says of block p. */
SPK_INLINE void T(tile_blocks)(const T(tile_job) *job, int64_t p, int64_t depth, const int h, const int w, const int u, const bool exact,
                               const bool fetches, T(vec) acc[4][T(tallest)][T(widest)])
{
    const int64_t row_stride = job->row_stride, col_stride = job->col_stride, panel_stride = job->panel_stride, back = job->back;
    const REAL *a[4][6], *b[4]; /* a pointer for five rows, as an address may be a base and a stride, or one times 2, 3 or 4 */
#pragma GCC unroll 4
    for (int i = 0; i < u; i++) {
        a[i][0] = job->values + (job->positions != NULL ? job->positions[p + i] : p + i) * job->block_stride;
#pragma GCC unroll 6
        for (int r = 5; r < h; r += 5)
            a[i][r / 5] = a[i][0] + r * row_stride;
        b[i] = job->panel + job->columns[p + i] * job->depth * panel_stride;
    }
#if TILE_FETCHES
    const REAL *fetch = fetches ? job->fetch + job->fetch_columns[p] * job->depth * job->fetch_stride : NULL;
    const int64_t fetch_step = fetches ? job->fetch_stride : 0;
#else
    (void)fetches;
#endif
#if VECTOR_BYTES == 64 /* the end of a short loop costs the less */
#pragma GCC unroll 2
#endif
    for (int64_t k = depth; k > 0; k--) {
#pragma GCC unroll 4
        for (int i = 0; i < u; i++) {
            if (exact) {
                TILE_STEP(TILE_FIRST)
                TILE_STEP(TILE_SECOND)
            } else {
                TILE_STEP(TILE_WHOLE)
            }
#pragma GCC unroll 6
            for (int r = 0; r < h; r += 5)
                a[i][r / 5] += col_stride;
            b[i] += panel_stride;
        }
#if TILE_FETCHES
        if (fetches) {
            __builtin_prefetch(fetch, 0, 2);
            fetch += fetch_step;
        }
#endif
    }
}

/* h and w are constants where this is inlined: the loops over them unroll and acc lives in registers. Small tiles take u blocks at a time
 * with their own sums, so that enough independent multiplications are under way. */
SPK_INLINE void T(tile)(const T(tile_job) *job, const int h, const int w, const bool exact)
{
    const int u = tile_blocks_at_once(h, w);
    T(vec) acc[4][T(tallest)][T(widest)];
#pragma GCC unroll 4
    for (int i = 0; i < u; i++)
#pragma GCC unroll 28
        for (int r = 0; r < h; r++)
#pragma GCC unroll 6
            for (int j = 0; j < w; j++)
                acc[i][r][j] = (T(vec)){0};
    int64_t p = 0;
    if (u > 1) /* only the last block of a row can be at the edge */
        for (; p + u < job->blocks; p += u)
            T(tile_blocks)(job, p, job->depth, h, w, u, exact, false, acc);
    for (; p < job->blocks; p++) {
        if (u == 1 && job->ahead_count > 0) {
            const int64_t next = p + 1 < job->blocks ? p + 1 : 0;
            const char *line = (const char *)(job->values + (job->positions != NULL ? job->positions[next] : next) * job->block_stride);
            for (int64_t i = 0; i < job->ahead_count; i++)
                __builtin_prefetch(line + i * job->ahead_bytes, 0, 3);
        }
        const int64_t depth = job->columns[p] == job->edge_column ? job->edge_depth : job->depth;
#if TILE_FETCHES
        if (w > 1 && u == 1 && p < job->fetch_blocks && (p & job->fetch_mask) == job->fetch_turn) {
            T(tile_blocks)(job, p, depth, h, w, 1, exact, true, acc);
            continue;
        }
#endif
        T(tile_blocks)(job, p, depth, h, w, 1, exact, false, acc);
    }
    REAL *out = job->out;
    const REAL alpha = job->alpha; /* for all that the compiler knows, a store may change it */
    const int64_t out_stride = job->out_stride, back = job->back;
#pragma GCC unroll 28
    for (int r = 0; r < h; r++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++) {
            T(vec) sum = acc[0][r][j];
#pragma GCC unroll 3
            for (int i = 1; i < u; i++)
                sum += acc[i][r][j];
            T(store)(out + T(tile_column)(back, j, w), alpha * sum);
        }
        out += out_stride;
    }
}

#define TILE(h, w)                                        \
    static void T(tile_##h##x##w)(const T(tile_job) *job) \
    {                                                     \
        T(tile)(job, h, w, false);                        \
    }
TILE_LIST(TILE)
#undef TILE

/* By width - 1 and height - 1. */
#define TILE(h, w) [w - 1][h - 1] = T(tile_##h##x##w),
static const T(tile_function) T(tiles)[T(widest)][T(tallest)] = {TILE_LIST(TILE)};
#undef TILE

#if TILE_PAIRED
#define TILE(h, w)                                         \
    static void T(exact_##h##x##w)(const T(tile_job) *job) \
    {                                                      \
        T(tile)(job, h, w, true);                          \
    }
TILE_LIST(TILE)
#undef TILE
#define TILE(h, w) [w - 1][h - 1] = T(exact_##h##x##w),
static const T(tile_function) T(exact_tiles)[T(widest)][T(tallest)] = {TILE_LIST(TILE)};
#undef TILE
#endif
#undef TILE_LIST
#undef TILE_TALL
#undef TILE_STEP

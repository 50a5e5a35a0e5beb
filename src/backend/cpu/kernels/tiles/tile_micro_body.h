/* Register tiles: the sums of a block row's blocks times a panel of B, h rows by w vectors held in registers. Elements of A are read one at
 * a time through the view's strides, so that both block layouts and both orientations run the same code. A is of REAL, B of STORED, which
 * the tiles convert. */
#include "backend/cpu/kernels/tiles/tile_job.h"
#include "backend/cpu/kernels/vectors/stored.h"

#if TILE_PAIRED && STORED_BITS == 16
#error "tile_micro_body.h is for TYPE F32 where elements are pairs"
#endif

/* Where vector j of w begins in a row of the panel. */
SPK_INLINE int64_t S(tile_column)(int64_t back, const int j, const int w)
{
    return j * T(lanes) - (!TILE_PAIRED && j > 0 && j == w - 1 ? back : 0);
}

/* Whether B can lie in memory as bfloat16, two of which one load brings to where floats have their upper halves. */
#undef TILE_HAS_TWINS
#if STORED_BF16 && !TILE_PAIRED && VECTOR_BYTES >= 32
#define TILE_HAS_TWINS 1
typedef uint32_t S(raw_words) __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
#else
#define TILE_HAS_TWINS 0
#endif

SPK_INLINE T(vec) S(tile_row)(const STORED *b, const int64_t back, const int j, const int w, const int part, const int form)
{
#if TILE_HAS_TWINS
    if (form == TILE_TWINS && (j | 1) < w) {
        const T(words) both = *(const S(raw_words) *)(b + (j & ~1) * T(lanes));
        return (T(vec))((j & 1) != 0 ? both & 0xffff0000 : both << 16);
    }
#else
    (void)form;
#endif
    b += S(tile_column)(back, j, w);
#if TILE_PAIRED
    return part == TILE_FIRST    ? (T(vec))((T(words))T(load)(b) << 16)
           : part == TILE_SECOND ? (T(vec))((T(words))T(load)(b) >> 16 << 16)
                                 : T(load)(b);
#else
    (void)part;
    return S(load)(b);
#endif
}

#if TILE_HAS_TWINS
/* The lower or upper half of the columns of which `even` and `odd` hold every second one. */
SPK_INLINE T(vec) S(tile_zip)(T(vec) even, T(vec) odd, const int half)
{
#if VECTOR_BYTES == 64
    return half == 0 ? __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
                     : __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
    return half == 0 ? __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11)
                     : __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}
#endif

SPK_INLINE T(vec) S(tile_multiply)(T(vec) sum, const REAL *element, T(vec) row, const int part)
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
            row[j] = S(tile_row)(b[i], back, j, w, part, form);                                                     \
        _Pragma("GCC unroll 28")                                                                                    \
        for (int r = 0; r < h; r++) {                                                                               \
            _Pragma("GCC unroll 6")                                                                                 \
            for (int j = 0; j < w; j++)                                                                             \
                acc[i][r][j] = S(tile_multiply)(acc[i][r][j], &a[i][r / 5][r % 5 * row_stride], row[j], part);      \
        }                                                                                                           \
    }
/* clang-format on */

/* Blocks p .. p + u - 1, none of them at the edge, or one that may be. fetches: as the job says of block p. */
SPK_INLINE void S(tile_blocks)(const T(tile_job) *job, int64_t p, int64_t depth, const int h, const int w, const int u, const int form,
                               const bool fetches, T(vec) acc[4][T(tallest)][T(widest)])
{
    const int64_t row_stride = job->row_stride, col_stride = job->col_stride, panel_stride = job->panel_stride, back = job->back;
    const REAL *a[4][6]; /* a pointer for five rows, as an address may be a base and a stride, or one times 2, 3 or 4 */
    const STORED *b[4];
#pragma GCC unroll 4
    for (int i = 0; i < u; i++) {
        a[i][0] = job->values + (job->positions != NULL ? job->positions[p + i] : p + i) * job->block_stride;
#pragma GCC unroll 6
        for (int r = 5; r < h; r += 5)
            a[i][r / 5] = a[i][0] + r * row_stride;
        b[i] = (const STORED *)job->panel + job->columns[p + i] * job->depth * panel_stride;
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
            if (form == TILE_EXACT) {
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

/* Fetches the tile's rows of a later block than p: of what lies there where blocks are read as they are stored, even of the next block row.
 */
SPK_INLINE void S(tile_fetch)(const T(tile_job) *job, int64_t p)
{
    int64_t next = p + job->ahead_blocks;
    if (job->positions != NULL)
        next = job->positions[next < job->blocks ? next : job->blocks - 1];
    const char *line = (const char *)(job->values + next * job->block_stride);
    for (int64_t i = 0; i < job->ahead_count; i++)
        __builtin_prefetch(line + i * job->ahead_bytes, 0, 3);
}

/* h and w are constants where this is inlined: the loops over them unroll and acc lives in registers. Small tiles take u blocks at a time
 * with their own sums, so that enough independent multiplications are under way. */
SPK_INLINE void S(tile)(const T(tile_job) *job, const int h, const int w, const int form)
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
        for (; p + u < job->blocks; p += u) {
            if (job->ahead_count > 0)
#pragma GCC unroll 4
                for (int i = 0; i < u; i++)
                    S(tile_fetch)(job, p + i);
            S(tile_blocks)(job, p, job->depth, h, w, u, form, false, acc);
        }
    for (; p < job->blocks; p++) {
        if (u == 1 && job->ahead_count > 0)
            S(tile_fetch)(job, p);
        const int64_t depth = job->columns[p] == job->edge_column ? job->edge_depth : job->depth;
#if TILE_FETCHES
        if (sizeof(STORED) == sizeof(REAL) && u == 1 && p < job->fetch_blocks && (p & job->fetch_mask) == job->fetch_turn) {
            S(tile_blocks)(job, p, depth, h, w, 1, form, true, acc);
            continue;
        }
#endif
        S(tile_blocks)(job, p, depth, h, w, 1, form, false, acc);
    }
    REAL *out = job->out;
    const REAL alpha = job->alpha; /* for all that the compiler knows, a store may change it */
    const bool adds = job->adds;
    const int64_t out_stride = job->out_stride, back = job->back;
#pragma GCC unroll 28
    for (int r = 0; r < h; r++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++) {
            T(vec) sum = acc[0][r][j];
#pragma GCC unroll 3
            for (int i = 1; i < u; i++)
                sum += acc[i][r][j];
            acc[0][r][j] = alpha * sum;
        }
        T(vec) made[6]; /* all before the first store: the last two vectors may share columns */
#pragma GCC unroll 6
        for (int j = 0; j < w; j++) {
            made[j] = acc[0][r][j];
#if TILE_HAS_TWINS
            if (form == TILE_TWINS && (j | 1) < w)
                made[j] = S(tile_zip)(acc[0][r][j & ~1], acc[0][r][j | 1], j & 1);
#endif
            if (adds)
                made[j] += T(load)(out + S(tile_column)(back, j, w));
        }
#pragma GCC unroll 6
        for (int j = 0; j < w; j++)
            T(store)(out + S(tile_column)(back, j, w), made[j]);
        out += out_stride;
    }
}

#define TILE(h, w)                                        \
    static void S(tile_##h##x##w)(const T(tile_job) *job) \
    {                                                     \
        S(tile)(job, h, w, TILE_PLAIN);                   \
    }
TILE_LIST(TILE)
#undef TILE

/* By width - 1 and height - 1. */
#define TILE(h, w) [w - 1][h - 1] = S(tile_##h##x##w),
static const T(tile_function) S(tiles)[T(widest)][T(tallest)] = {TILE_LIST(TILE)};
#undef TILE

#if TILE_HAS_TWINS
#define TILE(h, w)                                         \
    static void S(twins_##h##x##w)(const T(tile_job) *job) \
    {                                                      \
        S(tile)(job, h, w, TILE_TWINS);                    \
    }
TILE_LIST(TILE)
#undef TILE
#define TILE(h, w) [w - 1][h - 1] = S(twins_##h##x##w),
static const T(tile_function) S(twin_tiles)[T(widest)][T(tallest)] = {TILE_LIST(TILE)};
#undef TILE
#endif

#if TILE_PAIRED
#define TILE(h, w)                                         \
    static void S(exact_##h##x##w)(const T(tile_job) *job) \
    {                                                      \
        S(tile)(job, h, w, TILE_EXACT);                    \
    }
TILE_LIST(TILE)
#undef TILE
#define TILE(h, w) [w - 1][h - 1] = S(exact_##h##x##w),
static const T(tile_function) S(exact_tiles)[T(widest)][T(tallest)] = {TILE_LIST(TILE)};
#undef TILE
#endif

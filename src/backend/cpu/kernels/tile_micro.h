/* Template of register tiles, after vector.h: the sums of a block row's blocks times a panel of B, h rows by w vectors held in registers.
 * Elements of A are read one at a time through the view's strides, so that both block layouts and both orientations run the same code. */

/* Some rows of one block row times one panel. */
typedef struct T(tile_job) {
    const REAL *values;       /* element (first row, 0) of the block at position 0 */
    const int32_t *columns;   /* of the row's blocks */
    const int64_t *positions; /* of the row's blocks in values; NULL: 0, 1, 2 ... */
    int64_t blocks;           /* of the row */
    int64_t row_stride, col_stride, block_stride;
    int64_t depth;                    /* columns of a block */
    int64_t edge_column;              /* the last block column, which may overhang: */
    int64_t edge_depth;               /* its columns that exist */
    int64_t ahead_count, ahead_bytes; /* cache lines to fetch of the next block, and the distance between them; 0: leave it to the hardware */
    const REAL *panel;                /* element (0, first column) of B */
    int64_t panel_stride;             /* between rows of B in the panel */
    REAL *out;                        /* h rows of w vectors */
    int64_t out_stride;
    REAL alpha;
} T(tile_job);

typedef void (*T(tile_function))(const T(tile_job) *job);

/* Blocks p .. p + u - 1, none of them at the edge, or one that may be. */
SPK_INLINE void T(tile_blocks)(const T(tile_job) *job, int64_t p, int64_t depth, const int h, const int w, const int u, T(vec) acc[4][6][6])
{
    const int64_t row_stride = job->row_stride, col_stride = job->col_stride, panel_stride = job->panel_stride;
    const REAL *low[4], *high[4], *b[4];
#pragma GCC unroll 4
    for (int i = 0; i < u; i++) {
        low[i] = job->values + (job->positions != NULL ? job->positions[p + i] : p + i) * job->block_stride;
        high[i] = low[i] + (h > 3 ? 3 : 0) * row_stride;
        b[i] = job->panel + job->columns[p + i] * job->depth * panel_stride;
    }
    for (int64_t k = depth; k > 0; k--) {
#pragma GCC unroll 4
        for (int i = 0; i < u; i++) {
            T(vec) row[6];
#pragma GCC unroll 6
            for (int j = 0; j < w; j++)
                row[j] = T(load)(b[i] + j * T(lanes));
#pragma GCC unroll 6
            for (int r = 0; r < h; r++) {
                const REAL a = r < 3 ? low[i][r * row_stride] : high[i][(r - 3) * row_stride];
#pragma GCC unroll 6
                for (int j = 0; j < w; j++)
                    acc[i][r][j] += a * row[j];
            }
            low[i] += col_stride;
            high[i] += col_stride;
            b[i] += panel_stride;
        }
    }
}

/* h and w are constants where this is inlined: the loops over them unroll and acc lives in registers. Small tiles take u blocks at a time with
 * their own sums, so that enough independent multiplications are under way. */
SPK_INLINE void T(tile)(const T(tile_job) *job, const int h, const int w)
{
    const int u = h * w <= 3 ? 4 : h * w <= 6 ? 2 : 1;
    T(vec) acc[4][6][6];
#pragma GCC unroll 4
    for (int i = 0; i < u; i++)
#pragma GCC unroll 6
        for (int r = 0; r < h; r++)
#pragma GCC unroll 6
            for (int j = 0; j < w; j++)
                acc[i][r][j] = (T(vec)){0};
    int64_t p = 0;
    if (u > 1) /* only the last block of a row can be at the edge */
        for (; p + u < job->blocks; p += u)
            T(tile_blocks)(job, p, job->depth, h, w, u, acc);
    for (; p < job->blocks; p++) {
        if (u == 1 && job->ahead_count > 0) {
            const int64_t next = p + 1 < job->blocks ? p + 1 : 0;
            const char *line = (const char *)(job->values + (job->positions != NULL ? job->positions[next] : next) * job->block_stride);
            for (int64_t i = 0; i < job->ahead_count; i++)
                __builtin_prefetch(line + i * job->ahead_bytes, 0, 3);
        }
        T(tile_blocks)(job, p, job->columns[p] == job->edge_column ? job->edge_depth : job->depth, h, w, 1, acc);
    }
    REAL *out = job->out;
#pragma GCC unroll 6
    for (int r = 0; r < h; r++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++) {
            T(vec) sum = acc[0][r][j];
#pragma GCC unroll 3
            for (int i = 1; i < u; i++)
                sum += acc[i][r][j];
            T(store)(out + j * T(lanes), job->alpha * sum);
        }
        out += job->out_stride;
    }
}

/* clang-format off */
#define TILE(h, w)                                        \
    static void T(tile_##h##x##w)(const T(tile_job) *job) \
    {                                                     \
        T(tile)(job, h, w);                               \
    }
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2) TILE(5, 2) TILE(6, 2)
TILE(1, 3) TILE(2, 3) TILE(3, 3) TILE(4, 3)
TILE(1, 4) TILE(2, 4) TILE(3, 4)
TILE(1, 5) TILE(2, 5)
TILE(1, 6) TILE(2, 6)
#undef TILE
    /* clang-format on */

    /* By width - 1 and height - 1: at most 12 accumulators, which with a row of B and an element of A fill 16 registers. */
    static const T(tile_function) T(tiles)[6][6] = {
        {T(tile_1x1), T(tile_2x1), T(tile_3x1), T(tile_4x1), T(tile_5x1), T(tile_6x1)},
        {T(tile_1x2), T(tile_2x2), T(tile_3x2), T(tile_4x2), T(tile_5x2), T(tile_6x2)},
        {T(tile_1x3), T(tile_2x3), T(tile_3x3), T(tile_4x3)},
        {T(tile_1x4), T(tile_2x4), T(tile_3x4)},
        {T(tile_1x5), T(tile_2x5)},
        {T(tile_1x6), T(tile_2x6)},
};

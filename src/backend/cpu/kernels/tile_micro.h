/* Template of register tiles, after vector.h: the sums of a block row's blocks times a panel of B, h rows by w vectors held in registers.
 * Elements of A are read one at a time through the view's strides, so that both block layouts and both orientations run the same code. */

/* Some rows of one block row times one panel. */
typedef struct T(tile_job) {
    const REAL *values;       /* element (first row, 0) of block 0 */
    const int32_t *columns;   /* of the index */
    const int64_t *positions; /* NULL: identity */
    int64_t first, last;      /* blocks of the index */
    int64_t row_stride, col_stride, block_stride;
    int64_t depth;       /* columns of a block */
    int64_t edge_column; /* the last block column, which may overhang: */
    int64_t edge_depth;  /* its columns that exist */
    int64_t ahead_lines; /* cache lines of the tile's rows in one block, fetched one block ahead; 0: leave it to the hardware */
    const REAL *panel;   /* element (0, first column) of B */
    int64_t panel_stride; /* between rows of B in the panel */
    REAL *out;            /* h rows of w vectors */
    int64_t out_stride;
    REAL alpha;
} T(tile_job);

typedef void (*T(tile_function))(const T(tile_job) *job);

/* h and w are constants where this is inlined: the loops over them unroll and acc lives in registers. */
SPK_INLINE void T(tile)(const T(tile_job) *job, const int h, const int w)
{
    T(vec) acc[6][6];
#pragma GCC unroll 6
    for (int r = 0; r < h; r++)
#pragma GCC unroll 6
        for (int j = 0; j < w; j++)
            acc[r][j] = (T(vec)){0};
    const int64_t row_stride = job->row_stride, col_stride = job->col_stride, panel_stride = job->panel_stride;
    const int64_t *positions = job->positions;
    for (int64_t p = job->first; p < job->last; p++) {
        const int64_t column = job->columns[p];
        const REAL *low = job->values + (positions != NULL ? positions[p] : p) * job->block_stride;
        if (job->ahead_lines > 0) {
            const int64_t next = p + 1 < job->last ? p + 1 : job->first;
            const char *line = (const char *)(job->values + (positions != NULL ? positions[next] : next) * job->block_stride);
            for (int64_t i = 0; i < job->ahead_lines; i++)
                __builtin_prefetch(line + 64 * i, 0, 3);
        }
        const REAL *high = low + (h > 3 ? 3 : 0) * row_stride;
        const REAL *b = job->panel + column * job->depth * panel_stride;
        for (int64_t k = column == job->edge_column ? job->edge_depth : job->depth; k > 0; k--) {
            T(vec) row[6];
#pragma GCC unroll 6
            for (int j = 0; j < w; j++)
                row[j] = T(load)(b + j * T(lanes));
#pragma GCC unroll 6
            for (int r = 0; r < h; r++) {
                const REAL a = r < 3 ? low[r * row_stride] : high[(r - 3) * row_stride];
#pragma GCC unroll 6
                for (int j = 0; j < w; j++)
                    acc[r][j] += a * row[j];
            }
            low += col_stride;
            high += col_stride;
            b += panel_stride;
        }
    }
    REAL *out = job->out;
#pragma GCC unroll 6
    for (int r = 0; r < h; r++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++)
            T(store)(out + j * T(lanes), job->alpha * acc[r][j]);
        out += job->out_stride;
    }
}

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

/* By width - 1 and height - 1: at most 12 accumulators, which with a row of B and an element of A fill 16 registers. */
static const T(tile_function) T(tiles)[6][6] = {
    {T(tile_1x1), T(tile_2x1), T(tile_3x1), T(tile_4x1), T(tile_5x1), T(tile_6x1)},
    {T(tile_1x2), T(tile_2x2), T(tile_3x2), T(tile_4x2), T(tile_5x2), T(tile_6x2)},
    {T(tile_1x3), T(tile_2x3), T(tile_3x3), T(tile_4x3)},
    {T(tile_1x4), T(tile_2x4), T(tile_3x4)},
    {T(tile_1x5), T(tile_2x5)},
    {T(tile_1x6), T(tile_2x6)},
};

/* Template of packing, after vector.h, transpose.h and tile_micro.h: rows k0 .. k1 of some columns of B into a panel whose row is w vectors, with zero
 * columns beyond N (they only feed columns of D that do not exist; rows are never filled in); and the values of a block row as its tiles read them. */

SPK_INLINE void T(pack_rows)(const REAL *b, int64_t ldb, int64_t k0, int64_t k1, const int w, REAL *panel)
{
    const REAL *from = b + k0 * ldb;
    REAL *to = panel + k0 * w * T(lanes);
    for (int64_t k = k0; k < k1; k++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++)
            T(store)(to + j * T(lanes), T(load)(from + j * T(lanes)));
        from += ldb;
        to += w * T(lanes);
    }
}

static void T(pack_row_major)(const REAL *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    if (columns < (int64_t)w * T(lanes)) {
        const int64_t whole = columns / T(lanes), part = columns % T(lanes);
        for (int64_t k = k0; k < k1; k++)
            for (int64_t j = 0; j < w; j++) {
                const REAL *from = b + k * ldb + j * T(lanes);
                T(vec) v = {0};
                if (j < whole)
                    v = T(load)(from);
                else if (j == whole && part > 0)
                    v = T(load_part)(from, part);
                T(store)(panel + (k * w + j) * T(lanes), v);
            }
        return;
    }
    /* clang-format off */
    switch (w) {
    case 1: T(pack_rows)(b, ldb, k0, k1, 1, panel); break;
    case 2: T(pack_rows)(b, ldb, k0, k1, 2, panel); break;
    case 3: T(pack_rows)(b, ldb, k0, k1, 3, panel); break;
    case 4: T(pack_rows)(b, ldb, k0, k1, 4, panel); break;
    case 5: T(pack_rows)(b, ldb, k0, k1, 5, panel); break;
    default: T(pack_rows)(b, ldb, k0, k1, 6, panel); break;
    }
    /* clang-format on */
}

static void T(pack_col_major)(const REAL *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    const int64_t row = (int64_t)w * T(lanes);
    int64_t k = k0;
    for (; k + T(lanes) <= k1; k += T(lanes))
        for (int64_t j = 0; j < row; j += T(lanes)) {
            T(vec) v[T(lanes)];
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                v[i] = j + i < columns ? T(load)(b + (j + i) * ldb + k) : (T(vec)){0};
            T(transpose)(v);
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                T(store)(panel + (k + i) * row + j, v[i]);
        }
    for (; k < k1; k++)
        for (int64_t j = 0; j < row; j++)
            panel[k * row + j] = j < columns ? b[j * ldb + k] : 0;
}

/* b: element (0, first column of the panel); columns: those of B from there on. */
static void T(pack)(spk_layout layout, const REAL *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    (layout == SPK_ROW_MAJOR ? T(pack_row_major) : T(pack_col_major))(b, ldb, k0, k1, w, columns, panel);
}

/* A few of the `height` rows of a tile, which lie column after column. */
static void T(pack_some_rows)(const REAL *from, int64_t row_stride, int64_t col_stride, int64_t depth, int rows, int64_t height, REAL *to)
{
    for (int64_t k = 0; k < depth; k++)
        for (int r = 0; r < rows; r++)
            to[k * height + r] = from[r * row_stride + k * col_stride];
}

/* Four rows of contiguous elements, turned four columns at a time. */
static void T(pack_four_rows)(const REAL *from, int64_t row_stride, int64_t depth, int64_t height, REAL *to)
{
    typedef REAL four __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const four a = *(const four *)(from + k), b = *(const four *)(from + row_stride + k), c = *(const four *)(from + 2 * row_stride + k),
                   d = *(const four *)(from + 3 * row_stride + k);
        const four ac = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac2 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
        const four bd = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd2 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
        *(four *)(to + k * height) = __builtin_shufflevector(ac, bd, 0, 4, 1, 5);
        *(four *)(to + (k + 1) * height) = __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
        *(four *)(to + (k + 2) * height) = __builtin_shufflevector(ac2, bd2, 0, 4, 1, 5);
        *(four *)(to + (k + 3) * height) = __builtin_shufflevector(ac2, bd2, 2, 6, 3, 7);
    }
    T(pack_some_rows)(from + k, row_stride, 1, depth - k, 4, height, to + k * height);
}

/* `height` rows of a block: its columns one after another. */
static void T(pack_tile)(const REAL *from, int64_t row_stride, int64_t col_stride, int64_t depth, int height, REAL *to)
{
    int row = 0;
    if (col_stride == 1)
        for (; row + 4 <= height; row += 4)
            T(pack_four_rows)(from + row * row_stride, row_stride, depth, height, to + row);
    T(pack_some_rows)(from + row * row_stride, row_stride, col_stride, depth, height - row, height, to + row);
}

/* The blocks of job, cut into tiles of rows: tile by tile, block by block, column by column. job->values is the block row's first row. */
static void T(pack_values)(const T(tile_job) *job, const tile_split *split, REAL *packed)
{
    int64_t row = 0;
    for (int tile = 0; tile < split->tiles; tile++) {
        const int height = split->low + (tile < split->taller);
        for (int64_t p = 0; p < job->blocks; p++) {
            const int64_t depth = job->columns[p] == job->edge_column ? job->edge_depth : job->depth;
            const REAL *from = job->values + (job->positions != NULL ? job->positions[p] : p) * job->block_stride + row * job->row_stride;
            T(pack_tile)(from, job->row_stride, job->col_stride, depth, height, packed + (row * job->blocks + p * height) * job->depth);
        }
        row += height;
    }
}

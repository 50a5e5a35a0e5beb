/* Packing of B: rows k0 .. k1 of some columns into a panel of REAL whose row is w vectors, with zero columns beyond N (they only feed
 * columns of D that do not exist; rows are never filled in). */
#include "backend/cpu/kernels/vectors/stored.h"
#include "backend/cpu/kernels/vectors/transpose.h"

SPK_INLINE void S(pack_rows)(const STORED *b, int64_t ldb, int64_t k0, int64_t k1, const int w, REAL *panel)
{
    const STORED *from = b + k0 * ldb;
    REAL *to = panel + k0 * w * T(lanes);
    for (int64_t k = k0; k < k1; k++) {
#pragma GCC unroll 6
        for (int j = 0; j < w; j++)
            T(store)(to + j * T(lanes), S(load)(from + j * T(lanes)));
        from += ldb;
        to += w * T(lanes);
    }
}

static void S(pack_row_major)(const STORED *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    if (columns < (int64_t)w * T(lanes)) {
        const int64_t whole = columns / T(lanes), part = columns % T(lanes);
        for (int64_t k = k0; k < k1; k++)
            for (int64_t j = 0; j < w; j++) {
                const STORED *from = b + k * ldb + j * T(lanes);
                T(vec) v = {0};
                if (j < whole)
                    v = S(load)(from);
                else if (j == whole && part > 0)
                    v = S(load_part)(from, part);
                T(store)(panel + (k * w + j) * T(lanes), v);
            }
        return;
    }
    /* clang-format off */
    switch (w) {
    case 1: S(pack_rows)(b, ldb, k0, k1, 1, panel); break;
    case 2: S(pack_rows)(b, ldb, k0, k1, 2, panel); break;
    case 3: S(pack_rows)(b, ldb, k0, k1, 3, panel); break;
    case 4: S(pack_rows)(b, ldb, k0, k1, 4, panel); break;
    case 5: S(pack_rows)(b, ldb, k0, k1, 5, panel); break;
    default: S(pack_rows)(b, ldb, k0, k1, 6, panel); break;
    }
    /* clang-format on */
}

static void S(pack_col_major)(const STORED *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    const int64_t row = (int64_t)w * T(lanes);
    int64_t k = k0 + (k1 - k0) / T(lanes) *T(lanes);
    for (int64_t j = 0; j < row; j += T(lanes))
        for (int64_t at = k0; at < k; at += T(lanes)) {
            T(vec) v[T(lanes)];
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                v[i] = j + i < columns ? S(load)(b + (j + i) * ldb + at) : (T(vec)){0};
            T(transpose)(v);
#pragma GCC unroll 16
            for (int i = 0; i < T(lanes); i++)
                T(store)(panel + (at + i) * row + j, v[i]);
        }
    for (; k < k1; k++)
        for (int64_t j = 0; j < row; j++)
            panel[k * row + j] = j < columns ? S(get)(b + j * ldb + k) : 0;
}

/* b: element (0, first column of the panel); columns: those of B from there on. */
static void S(pack)(spk_layout layout, const STORED *b, int64_t ldb, int64_t k0, int64_t k1, int w, int64_t columns, REAL *panel)
{
    (layout == SPK_ROW_MAJOR ? S(pack_row_major) : S(pack_col_major))(b, ldb, k0, k1, w, columns, panel);
}

/* Sums of SDDMM on their way to the stored blocks of D: D = alpha * sum + beta * C inside M x N, zero where an edge block lies beyond it.
 * Where K is split, each part's sums go to the workspace as they are, in the order of D's elements, and reduce_parts adds them in the order
 * of the parts.
 *   BLOCK_ROWS BLOCK_COLS   of a block of D
 *   RAGGED                  1: M or N is no multiple of the block */
#ifndef SPK_DEVICE_BLOCK_STORE_CUH
#define SPK_DEVICE_BLOCK_STORE_CUH

#include "backend/cuda/device/common/problem.cuh"

#define BLOCK_ELEMENTS ((long long)BLOCK_ROWS * BLOCK_COLS)
#define BLOCK_LINE (LAYOUT_D == ROW_MAJOR ? BLOCK_COLS : BLOCK_ROWS) /* elements that lie together */

/* An item of the batch, or a part of its K: where its D and C begin. */
struct block_target {
    element_d *d;
    const element_d *c; /* null: it has no part */
    real *sums;         /* not null: a part's sums, instead of D */
};

inline real finish_value(const spk_cuda_arguments &arg, real sum, real c)
{
    return (real)arg.alpha * sum + (real)arg.beta * c;
}

/* `count` of W elements of a block's line, from element `at` of D on; those from `inside` on lie beyond M x N. whole: W elements begin at
 * multiples of W. */
template <int W>
inline void store_elements(const spk_cuda_arguments &arg, const block_target &out, long long at, const real (&sum)[W], int inside,
                           bool whole)
{
    if (out.sums != nullptr) {
        constexpr int QUAD = W < 16 / (int)sizeof(real) ? W : 16 / (int)sizeof(real);
#pragma unroll
        for (int e = 0; e < W; e += QUAD) {
            pieces<real, QUAD> part;
#pragma unroll
            for (int f = 0; f < QUAD; f++)
                part.at[f] = e + f < inside ? sum[e + f] : 0;
            store_pieces<real, QUAD>(out.sums + at + e, part);
        }
        return;
    }
    pieces<element_d, W> c, d;
    if (USE_C && out.c != nullptr) {
        if (whole && inside >= W)
            c = load_pieces<element_d, W>(out.c + at);
        else
#pragma unroll
            for (int e = 0; e < W; e++)
                if (e < inside)
                    c.at[e] = out.c[at + e];
    }
#pragma unroll
    for (int e = 0; e < W; e++) {
        const real value =
            USE_C && out.c != nullptr && e < inside ? finish_value(arg, sum[e], as<real>(c.at[e])) : (real)arg.alpha * sum[e];
        d.at[e] = to<element_d>(e < inside ? value : (real)0);
    }
    if (whole)
        store_pieces<element_d, W>(out.d + at, d);
    else
#pragma unroll
        for (int e = 0; e < W; e++)
            out.d[at + e] = d.at[e];
}

/* How many of W elements of a line from (i, j) of D's grid on are inside M x N. */
template <int W> inline int elements_inside(const spk_cuda_arguments &arg, long long i, long long j)
{
    if (!RAGGED)
        return W;
    const long long across = LAYOUT_D == ROW_MAJOR ? i : j, most = LAYOUT_D == ROW_MAJOR ? arg.m : arg.n;
    const long long left = LAYOUT_D == ROW_MAJOR ? arg.n - j : arg.m - i;
    return across >= most || left < 0 ? 0 : left < W ? (int)left : W;
}

/* The block row that block p is in. */
inline int block_row_of(const spk_cuda_arguments &arg, int p)
{
    int low = 0, high = arg.grid_rows - 1; /* the last row whose first block is not beyond p */
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (__ldg(arg.offsets + middle) <= p)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

#endif

/* gather_dense: D's stored blocks from a dense row-major array of M x N sums or finished products, with C. A thread block takes a stored
 * block at a time. The constants: gather_dense.h. Bound: memory. */
#include "backend/cuda/device/epilogue/block_store.cuh"
#include "backend/cuda/helpers/gather_dense.h"

#if ACC_IS_D
typedef element_d acc;
#else
typedef real acc;
#endif

constexpr int W = BLOCK_LINE % (16 / (int)sizeof(element_d)) == 0 ? 16 / (int)sizeof(element_d) : 1;

extern "C" __global__ void __launch_bounds__(GATHER_DENSE_THREADS)
    gather_dense(const __grid_constant__ spk_cuda_arguments arg, const acc *from, long long ld)
{
    const block_target out = {(element_d *)arg.d, USE_C && arg.beta != 0 ? (const element_d *)arg.c : nullptr, nullptr};
    const bool whole = aligned_to(out.d, W * sizeof(element_d)) && aligned_to(out.c, W * sizeof(element_d));
    for (long long p = blockIdx.x; p < arg.nnzb; p += gridDim.x) {
        const long long i0 = (long long)block_row_of(arg, (int)p) * BLOCK_ROWS, j0 = (long long)__ldg(arg.columns + p) * BLOCK_COLS;
        for (int at = threadIdx.x * W; at < BLOCK_ELEMENTS; at += GATHER_DENSE_THREADS * W) {
            const long long i = i0 + (LAYOUT_D == ROW_MAJOR ? at / BLOCK_LINE : at % BLOCK_LINE),
                            j = j0 + (LAYOUT_D == ROW_MAJOR ? at % BLOCK_LINE : at / BLOCK_LINE);
            const int inside = elements_inside<W>(arg, i, j);
            real sum[W];
#pragma unroll
            for (int e = 0; e < W; e++)
                sum[e] = e < inside ? as<real>(from[LAYOUT_D == ROW_MAJOR ? i * ld + j + e : (i + e) * ld + j]) : (real)0;
            store_elements<W>(arg, out, p * BLOCK_ELEMENTS + at, sum, inside, whole);
        }
    }
}

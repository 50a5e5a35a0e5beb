/* The second launch of an SDDMM whose K is split: D from the sums of the parts, added in their order. */
#ifndef SPK_DEVICE_SDDMM_REDUCE_CUH
#define SPK_DEVICE_SDDMM_REDUCE_CUH

#include "backend/cuda/device/epilogue/block_store.cuh"
#include "backend/cuda/device/ptx/launch.cuh"

constexpr int REDUCE_WIDTH = BLOCK_LINE % (16 / (int)sizeof(element_d)) == 0 ? 16 / (int)sizeof(element_d) : 1;

extern "C" __global__ void __launch_bounds__(256) sddmm_reduce(const __grid_constant__ spk_cuda_arguments arg, int parts)
{
    constexpr int W = REDUCE_WIDTH;
    const long long elements = arg.nnzb * BLOCK_ELEMENTS;
    next_launch_may_start();
    previous_launch_done();
    for (long long at = (blockIdx.x * 256ll + threadIdx.x) * W; at < elements * arg.items; at += gridDim.x * 256ll * W) {
        const long long item = at / elements, in = at % elements;
        const real *from = (const real *)arg.workspace + item * parts * elements + in;
        block_target out = {(element_d *)arg.d + item * arg.stride_d, nullptr, nullptr};
        if (USE_C && arg.beta != 0)
            out.c = (const element_d *)arg.c + item * arg.stride_c;
        int inside = W;
        if (RAGGED) {
            const int block = (int)(in / BLOCK_ELEMENTS), e = (int)(in % BLOCK_ELEMENTS), across = e / BLOCK_LINE, along = e % BLOCK_LINE;
            const long long i = (long long)block_row_of(arg, block) * BLOCK_ROWS, j = (long long)__ldg(arg.columns + block) * BLOCK_COLS;
            inside =
                LAYOUT_D == ROW_MAJOR ? elements_inside<W>(arg, i + across, j + along) : elements_inside<W>(arg, i + along, j + across);
        }
        real sum[W] = {};
        for (int part = 0; part < parts; part++) {
            constexpr int QUAD = W < 16 / (int)sizeof(real) ? W : 16 / (int)sizeof(real);
#pragma unroll
            for (int e = 0; e < W; e += QUAD) {
                const pieces<real, QUAD> more = load_pieces<real, QUAD>(from + part * elements + e);
#pragma unroll
                for (int f = 0; f < QUAD; f++)
                    sum[e + f] += more.at[f];
            }
        }
        store_elements<W>(arg, out, in, sum, inside, aligned_to(out.d, 16) && aligned_to(out.c, 16));
    }
}

#endif

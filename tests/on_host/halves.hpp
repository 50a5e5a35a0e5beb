/* The tensor instruction of 16x8x16 over f16 and bf16, in place of device/mma/mma_sync.cuh. */
#ifndef SPK_ON_HOST_HALVES_HPP
#define SPK_ON_HOST_HALVES_HPP

#include "on_host/tensor.hpp"

#include "backend/cuda/device/common/number.cuh"

#define SPK_DEVICE_MMA_SYNC_CUH

template <class half> void mma_halves(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    const auto all = on_host::exchange(mma_factors{{a[0], a[1], a[2], a[3]}, {b0, b1}});
    const unsigned lane = threadIdx.x % on_host::LANES;
    const auto taken = [](unsigned pair, unsigned at) {
        half x;
        x.bits = (unsigned short)(pair >> at * 16);
        return (double)as_f32(x);
    };
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = lane / 4 * 4, column = (lane % 4 * 2 + i % 2) * 4;
        double sum = c[i];
        for (unsigned k = 0; k < 16; k++)
            sum += taken(all.at[row + k % 8 / 2].a[i / 2 + k / 8 * 2], k % 2) * taken(all.at[column + k % 8 / 2].b[k / 8], k % 2);
        c[i] = (float)sum;
    }
}
inline void mma_sync(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1, f16)
{
    mma_halves<f16>(c, a, b0, b1);
}
inline void mma_sync(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1, bf16)
{
    mma_halves<bf16>(c, a, b0, b1);
}
inline void load_two_transposed(unsigned (&r)[2], unsigned line)
{
    unsigned four[4];
    load_four_matrices<true>(four, line);
    r[0] = four[0];
    r[1] = four[1];
}

#endif

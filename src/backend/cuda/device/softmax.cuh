/* The softmax of attention, over sums in wgmma's order (mma.cuh): a thread has two rows of a 64-row tile, lane / 4 and 8 more of its warp's
 * 16; the four lanes of a row have its columns. Exponentials are relative to the row's largest score so far, what is summed of them is
 * scaled down where that grows (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). soften does it only
 * where it has grown by SLACK powers of two: 16-bit exponentials have the same precision up to there, and sums in f32 have room. */
#ifndef SPK_DEVICE_SOFTMAX_CUH
#define SPK_DEVICE_SOFTMAX_CUH

#include "backend/cuda/device/ptx.cuh"

namespace sm90 {

constexpr float SLACK = 8;

/* Of a thread's two rows. most begins at a number that is finite, so that a row which has seen nothing yet needs no special case. */
struct softmax_rows {
    float most[2], sum[2];
    __device__ __forceinline__ void begin()
    {
        most[0] = most[1] = -1e30f;
        sum[0] = sum[1] = 0;
    }
};

SPK_INLINE float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

SPK_INLINE float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* With an absolute error of some 1e-7, which the instruction for it has not. */
SPK_INLINE float hyperbolic_tangent(float x)
{
    return 1 - 2 * reciprocal(1 + power_of_two(x * 2.885390082f));
}

/* The sum, or the largest, of what the four lanes of a row have. */
SPK_INLINE float quad_most(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
SPK_INLINE float quad_sum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

/* Scores s (times scale2: in powers of two) become exponentials. factor: what earlier sums are to be multiplied by; false: by 1, for all of
 * the warp. */
template <int count> SPK_INLINE bool soften(float (&s)[count], softmax_rows &rows, float (&factor)[2], float scale2)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = rows.most[half];
#pragma unroll
        for (int i = half * 2; i < count; i += 4)
            most = fmaxf(most, fmaxf(s[i], s[i + 1]));
        most = quad_most(most);
        const float grown = (most - rows.most[half]) * scale2;
        factor[half] = grown > SLACK ? power_of_two(-grown) : 1;
        rows.most[half] = grown > SLACK ? most : rows.most[half];
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float shift = rows.most[half] * scale2;
        float sum = 0;
#pragma unroll
        for (int i = half * 2; i < count; i += 4) {
            s[i] = power_of_two(fmaf(s[i], scale2, -shift));
            s[i + 1] = power_of_two(fmaf(s[i + 1], scale2, -shift));
            sum += s[i] + s[i + 1];
        }
        rows.sum[half] = rows.sum[half] * factor[half] + sum;
    }
    return __any_sync(~0u, factor[0] != 1 || factor[1] != 1);
}

/* The rows' largest scores, those of s counted in. factor: what earlier sums are to be multiplied by. Chains are short: scores of the next
 * step wait for this one's. */
template <int count> SPK_INLINE void raise(const float (&s)[count], softmax_rows &rows, float (&factor)[2], float scale2)
{
    float most[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float chain[4] = {s[half * 2], s[half * 2 + 1], s[half * 2 + 4], s[half * 2 + 5]};
#pragma unroll
        for (int i = half * 2 + 8; i < count; i += 4) {
            chain[i / 4 % 2 * 2] = fmaxf(chain[i / 4 % 2 * 2], s[i]);
            chain[i / 4 % 2 * 2 + 1] = fmaxf(chain[i / 4 % 2 * 2 + 1], s[i + 1]);
        }
        most[half] = fmaxf(fmaxf(fmaxf(chain[0], chain[1]), fmaxf(chain[2], chain[3])), rows.most[half]);
    }
#pragma unroll
    for (int lane = 1; lane < 4; lane *= 2) {
        const float other[2] = {__shfl_xor_sync(~0u, most[0], lane), __shfl_xor_sync(~0u, most[1], lane)};
        most[0] = fmaxf(most[0], other[0]);
        most[1] = fmaxf(most[1], other[1]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        factor[half] = power_of_two((rows.most[half] - most[half]) * scale2);
        rows.most[half] = most[half];
    }
}

/* Scores s (times scale2: in powers of two) become exponentials relative to the rows' largest ones, which raise has found. */
template <int count> SPK_INLINE void exponentiate(float (&s)[count], softmax_rows &rows, const float (&factor)[2], float scale2)
{
    const float shift[2] = {rows.most[0] * scale2, rows.most[1] * scale2};
    rows.sum[0] *= factor[0];
    rows.sum[1] *= factor[1];
#pragma unroll
    for (int i = 0; i < count; i += 2) {
        const int half = i / 2 % 2;
        s[i] = power_of_two(fmaf(s[i], scale2, -shift[half]));
        s[i + 1] = power_of_two(fmaf(s[i + 1], scale2, -shift[half]));
        rows.sum[half] += s[i];
        rows.sum[half] += s[i + 1];
    }
}

} // namespace sm90

#endif

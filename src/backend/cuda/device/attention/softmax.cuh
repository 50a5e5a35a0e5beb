/* The softmax of attention, over sums in wgmma's order (mma.cuh): a thread has two rows of a 64-row tile, lane / 4 and 8 more of its warp's
 * 16; the four lanes of a row have its columns. Exponentials are relative to the row's largest score so far, what is summed of them is
 * scaled down where that grows (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). soften does it only
 * where it has grown by SLACK powers of two: 16-bit exponentials have the same precision up to there, and sums in f32 have room. */
#ifndef SPK_DEVICE_SOFTMAX_CUH
#define SPK_DEVICE_SOFTMAX_CUH

#include "backend/cuda/device/attention/large_scores.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

constexpr float SLACK = 8;

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

/* Of a thread's two rows. most begins at a number that is finite, so that a row which has seen nothing yet needs no special case. */
struct softmax_rows {
    float most[2], sum[2];
    __device__ __forceinline__ void begin()
    {
        most[0] = most[1] = LEAST_SCORE;
        sum[0] = sum[1] = 0;
    }
    /* Where scores are multiplied before they are compared: the product is finite, too. */
    __device__ __forceinline__ void begin(float scale2)
    {
        most[0] = most[1] = -0x1p126f * fminf(reciprocal(scale2), 1);
        sum[0] = sum[1] = 0;
    }
};

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

/* What exponents are less than the scores times scale2. Where rows of the warp have large ones, scores become differences from their rows'
 * largest. */
template <int count> SPK_INLINE void find_shifts(float (&s)[count], const softmax_rows &rows, float (&shift)[2], float scale2)
{
    shift[0] = rows.most[0] * scale2;
    shift[1] = rows.most[1] * scale2;
    if (__builtin_expect(__any_sync(~0u, is_large(fmaxf(fabsf(shift[0]), fabsf(shift[1])))), 0)) {
#pragma unroll
        for (int i = 0; i < count; i++)
            s[i] -= rows.most[i / 2 % 2];
        shift[0] = shift[1] = 0;
    }
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
    float shift[2];
    find_shifts(s, rows, shift, scale2);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0;
#pragma unroll
        for (int i = half * 2; i < count; i += 4) {
            s[i] = power_of_two(fmaf(s[i], scale2, -shift[half]));
            s[i + 1] = power_of_two(fmaf(s[i + 1], scale2, -shift[half]));
            sum += s[i] + s[i + 1];
        }
        rows.sum[half] = rows.sum[half] * factor[half] + sum;
    }
    return __any_sync(~0u, factor[0] != 1 || factor[1] != 1);
}

/* raise and exponentiate want no branch. Exponentials are relative to a row's largest score times scale2, rounded. What earlier sums are
 * multiplied by is made of the rounded one, too, and LSE takes the rest back (excess). Beyond HUGE_SCORE the rounding would be too large:
 * there scores are multiplied by a power of two, at least half of scale2, in place of scale2, and nothing is rounded. Scores other than the
 * largest are so far from it that their exponentials are zero by either factor. A lane decides by its own scores, so that it need not wait
 * for those of others: where these are larger, its own exponentials are zero by either factor, too. */

/* The power of two below. */
SPK_INLINE float without_mantissa(float x)
{
    return __int_as_float(__float_as_int(x) & 0x7f800000);
}

/* What a row's largest score times scale2 is less, in powers of two, than what its exponentials are relative to. */
SPK_INLINE float excess(float most, float scale2)
{
    const float shift = rounded(most, scale2);
    return fabsf(shift) > HUGE_SCORE ? 0 : -fmaf(most, scale2, -shift);
}

/* The rows' largest scores, those of s counted in. factor: what earlier sums are to be multiplied by; times: what s is. Chains are short:
 * scores of the next step wait for this one's. */
template <int count> SPK_INLINE void raise(const float (&s)[count], softmax_rows &rows, float (&factor)[2], float (&times)[2], float scale2)
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
        const float own = fmaxf(fmaxf(chain[0], chain[1]), fmaxf(chain[2], chain[3]));
        times[half] = fabsf(own * scale2) > HUGE_SCORE ? without_mantissa(scale2) : scale2;
        most[half] = fmaxf(own, rows.most[half]);
    }
#pragma unroll
    for (int lane = 1; lane < 4; lane *= 2) {
        const float other[2] = {__shfl_xor_sync(~0u, most[0], lane), __shfl_xor_sync(~0u, most[1], lane)};
        most[0] = fmaxf(most[0], other[0]);
        most[1] = fmaxf(most[1], other[1]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        factor[half] = power_of_two(rounded(rows.most[half], scale2) - rounded(most[half], scale2));
        rows.most[half] = most[half];
    }
}

/* Scores s become exponentials relative to the rows' largest ones, which raise has found. */
template <int count> SPK_INLINE void exponentiate(float (&s)[count], softmax_rows &rows, const float (&factor)[2], const float (&times)[2])
{
    const float shift[2] = {rows.most[0] * times[0], rows.most[1] * times[1]};
    rows.sum[0] *= factor[0];
    rows.sum[1] *= factor[1];
#pragma unroll
    for (int i = 0; i < count; i += 2) {
        const int half = i / 2 % 2;
        s[i] = power_of_two(fmaf(s[i], times[half], -shift[half]));
        s[i + 1] = power_of_two(fmaf(s[i + 1], times[half], -shift[half]));
        rows.sum[half] += s[i];
        rows.sum[half] += s[i + 1];
    }
}

} // namespace sm90

#endif

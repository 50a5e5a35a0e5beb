/* The epilogue of a tile of accumulators of 64 rows, in registers (mma.cuh says which thread holds what): a warp has 16 rows, and of 8
 * columns each thread has two neighbours in rows r and r + 8. A fast product waits for the instructions here: a tile inside of D has a path
 * without a question at each element. */
#ifndef SPK_DEVICE_FINISH_CUH
#define SPK_DEVICE_FINISH_CUH

#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

/* A thread's two neighbours of a warp's 8 rows and 8 columns: row lane / 4, columns lane % 4 * 2 and the next. Of an array with D's layout,
 * whose pairs are aligned; the first row and the first column are even. By whole warps.
 *
 * Column-major arrays of 16 bits are read and written by the pairs that lie together there, and turned in registers. */
#define TURNED (LAYOUT_D == COL_MAJOR && (DTYPE_D == F16 || DTYPE_D == BF16))

SPK_INLINE unsigned turn(unsigned pair)
{
    unsigned turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(pair));
    return turned;
}

/* Where the thread's pair lies, as it is read and written. */
SPK_INLINE long long place_of_two(int i0, int j0, long long ld)
{
    const int lane = threadIdx.x % 32;
    return TURNED ? place(i0 + lane % 4 * 2, j0 + lane / 4, ld) : place(i0 + lane / 4, j0 + lane % 4 * 2, ld);
}

SPK_INLINE void load_two(const void *array, long long ld, int i0, int j0, float (&x)[2])
{
    const element_d *from = (const element_d *)array + place_of_two(i0, j0, ld);
#if TURNED
    const unsigned pair = turn(*(const unsigned *)from);
    x[0] = as<float>(low_half(pair, element_d()));
    x[1] = as<float>(high_half(pair, element_d()));
#elif LAYOUT_D == ROW_MAJOR
    const pieces<element_d, 2> pair = load_pieces<element_d, 2>(from);
    x[0] = as<float>(pair.at[0]);
    x[1] = as<float>(pair.at[1]);
#else
    x[0] = as<float>(from[0]);
    x[1] = as<float>(from[ld]);
#endif
}

SPK_INLINE void store_two(void *array, long long ld, int i0, int j0, const float (&x)[2])
{
    element_d *at = (element_d *)array + place_of_two(i0, j0, ld);
    const element_d first = to<element_d>(x[0]), second = to<element_d>(x[1]);
#if TURNED
    *(unsigned *)at = turn(pack_pair(first, second));
#elif LAYOUT_D == ROW_MAJOR
    store_pieces<element_d, 2>(at, pieces<element_d, 2>{{first, second}});
#else
    at[0] = first;
    at[ld] = second;
#endif
}

/* Where the 8 rows and 8 columns lie inside of D, whose arrays have aligned pairs. c, residual: the thread's, where there are such arrays;
 * row_bias: of its row, where there is one for each. */
SPK_INLINE void finish_inside(const spk_cuda_arguments &arg, float (&value)[2], [[maybe_unused]] const float (&c)[2],
                              [[maybe_unused]] const float (&residual)[2], int i0, int j0, [[maybe_unused]] float row_bias)
{
    value[0] *= (float)arg.alpha;
    value[1] *= (float)arg.alpha;
#if USE_C
    if (arg.beta != 0) {
        value[0] += (float)arg.beta * c[0];
        value[1] += (float)arg.beta * c[1];
    }
#endif
#if BIAS == BIAS_PER_ROW
    value[0] += row_bias;
    value[1] += row_bias;
#elif BIAS == BIAS_PER_COL
    const element_d *bias = (const element_d *)arg.bias + j0 + threadIdx.x % 4 * 2;
    value[0] += as<float>(bias[0]);
    value[1] += as<float>(bias[1]);
#endif
#if KEEP_PREACT
    store_two(arg.preact, arg.ldp, i0, j0, value);
#endif
    value[0] = activate(value[0]);
    value[1] = activate(value[1]);
#if RESIDUAL != NO_RESIDUAL
    value[0] = with_residual(value[0], residual[0]);
    value[1] = with_residual(value[1], residual[1]);
#endif
}

/* At D's edge, or with arrays of any alignment. */
SPK_INLINE void finish_any(const spk_cuda_arguments &arg, float (&value)[2], int i0, int j0)
{
    const int i = i0 + threadIdx.x % 32 / 4, j = j0 + threadIdx.x % 4 * 2;
    if (i < arg.m && j < arg.n)
        value[0] = finish(arg, i, j, value[0]);
    if (i < arg.m && j + 1 < arg.n)
        value[1] = finish(arg, i, j + 1, value[1]);
}

SPK_INLINE void load_row_bias([[maybe_unused]] const spk_cuda_arguments &arg, [[maybe_unused]] float (&bias)[2], [[maybe_unused]] int i0)
{
#if BIAS == BIAS_PER_ROW
    bias[0] = as<float>(((const element_d *)arg.bias)[i0 + threadIdx.x % 32 / 4]);
    bias[1] = as<float>(((const element_d *)arg.bias)[i0 + threadIdx.x % 32 / 4 + 8]);
#endif
}

/* Of all pairs, which lie inside of D where `inside` says so. always: they do, and no branch stands between them, so that their
 * instructions take turns and hide each other's latency. */
template <int columns, bool always>
SPK_INLINE void finish_pairs(const spk_cuda_arguments &arg, float (&sum)[columns / 2], int i0, int j0, bool inside)
{
    float row_bias[2] = {}, c[2] = {}, residual[2] = {}; /* c in the loop costs registers */
    if (always || inside)
        load_row_bias(arg, row_bias, i0);
#pragma unroll
    for (int at = 0; at < columns / 2; at += 2) {
        const int i = i0 + at / 2 % 2 * 8, j = j0 + at / 4 * 8;
        float value[2] = {sum[at], sum[at + 1]};
        if (always || inside) {
            if (USE_C && arg.beta != 0)
                load_two(arg.c, arg.ldc, i, j, c);
            if (RESIDUAL != NO_RESIDUAL)
                load_two(arg.residual, arg.ldr, i, j, residual);
            finish_inside(arg, value, c, residual, i, j, row_bias[at / 2 % 2]);
        } else {
            finish_any(arg, value, i, j);
        }
        sum[at] = value[0];
        sum[at + 1] = value[1];
        if (at % 4 == 2)
            asm volatile("" ::: "memory"); /* else all loads go ahead of all else, and registers run out */
    }
}

/* With two arrays to read or write, or one of float, what is on its way for many pairs at once does not fit into the registers. */
constexpr bool INTERLEAVED = (USE_C + (RESIDUAL != NO_RESIDUAL) + KEEP_PREACT + (BIAS == BIAS_PER_ROW)) * sizeof(element_d) < 4;

/* The epilogue in place. i0: D's row of the warp's first row, negative: none; j0: D's column of the tile's first, even. fast: a tile inside
 * of D has a path of its own. */
template <int columns, bool fast = true>
SPK_INLINE void finish_tile(const spk_cuda_arguments &arg, float (&sum)[columns / 2], int i0, int j0)
{
#if !USE_C && BIAS == NO_BIAS && RESIDUAL == NO_RESIDUAL && !KEEP_PREACT /* beyond D too: nothing is read or written there */
    const float alpha = (float)arg.alpha;
    if (alpha != 1)
#pragma unroll
        for (int at = 0; at < columns / 2; at++)
            sum[at] *= alpha;
#pragma unroll
    for (int at = 0; at < columns / 2; at++)
        sum[at] = activate(sum[at]);
#else
    if (i0 < 0)
        return;
    const bool inside =
        fast && (LAYOUT_D == ROW_MAJOR ? j0 : i0) % 2 == 0 && i0 + 16 <= arg.m && j0 + columns <= arg.n && pairs_aligned(arg);
    if (INTERLEAVED && inside)
        finish_pairs<columns, true>(arg, sum, i0, j0, true);
    else
        finish_pairs<columns, false>(arg, sum, i0, j0, !INTERLEAVED && inside);
#endif
}

} // namespace sm90

#endif

/* The gradients of attention in tiles: a warp's rows times a step's, what becomes of scores, and sums of these times a step's rows. Sums
 * lie as mma_sync leaves them: a thread has two rows of each 16, lane / 4 and 8 more, and two columns of each eight.
 *
 * For f16 weights are made 2^12 times as large: a mean of thousands of keys has weights that f16 has few bits for. */
#ifndef SPK_DEVICE_ATTENTION_BACKWARD_PRODUCTS_CUH
#define SPK_DEVICE_ATTENTION_BACKWARD_PRODUCTS_CUH

#include "backend/cuda/device/attention/attention_tiles.cuh"
#include "backend/cuda/device/ptx/copy_async.cuh"
#include "backend/cuda/device/mma/mma_sync.cuh"
#include "backend/cuda/device/common/problem.cuh"
#include "backend/cuda/device/attention/softmax.cuh"

constexpr int WEIGHT_SHIFT = DTYPE_A == F16 ? 12 : 0;
constexpr float WEIGHT_TIMES = DTYPE_A == F16 ? 4096 : 1;

/* ---- tiles in shared memory */

/* LINES lines of WIDE elements, zeros from DEEP on; line(l): where it begins, NULL: it is all zeros. any: an address that exists. */
template <int LINES, int WIDE, int DEEP, class L> inline void bring_lines(unsigned to, const void *any, L line)
{
    constexpr int CHUNKS = WIDE / VECTOR;
#pragma unroll 1
    for (int chunk = threadIdx.x; chunk < LINES * CHUNKS; chunk += THREADS) {
        const int l = chunk / CHUNKS, column = chunk % CHUNKS * VECTOR;
        const element_a *from = line(l);
        const bool exist = from != nullptr && column < DEEP;
        copy_async<VECTOR>(to + (l * (WIDE + 8) + column) * 2, exist ? from + column : (const element_a *)any, exist);
    }
}

/* ---- products */

/* The warp's rows, SIXTEENS times 16, of WIDE columns: an address in shared memory, or, where HELD, fragments. */
template <int SIXTEENS, int WIDE, bool HELD> struct warp_rows {
    unsigned address;
    unsigned fragments[HELD ? SIXTEENS : 1][HELD ? WIDE / 4 : 1];

    __device__ __forceinline__ void bring(unsigned (&a)[4], int sixteen, int k) const
    {
        const int row = (threadIdx.x / 32 * SIXTEENS + sixteen) * 16 + threadIdx.x % 16, column = k * 16 + threadIdx.x % 32 / 16 * 8;
        load_four_matrices<false>(a, address + (row * (WIDE + 8) + column) * 2);
    }
    __device__ __forceinline__ void take(unsigned from)
    {
        address = from;
        if constexpr (HELD) {
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
                for (int k = 0; k < WIDE / 16; k++) {
                    unsigned a[4];
                    bring(a, i, k);
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        fragments[i][k * 4 + j] = a[j];
                }
        }
    }
    __device__ __forceinline__ void give(unsigned (&a)[4], int sixteen, int k) const
    {
        if constexpr (HELD) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                a[j] = fragments[sixteen][k * 4 + j];
        } else {
            bring(a, sixteen, k);
        }
    }
};

/* s = the warp's rows times the tile's rows, each a sum over columns. */
template <int SIXTEENS, int WIDE, bool HELD, int SCORES>
inline void multiply_rows(float (&s)[SIXTEENS][SCORES], const warp_rows<SIXTEENS, WIDE, HELD> &rows, unsigned tile)
{
    const int lane = threadIdx.x % 32, line = lane % 8 + lane / 16 * 8, column = lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < SCORES; j++)
            s[i][j] = 0;
#pragma unroll(HELD || WIDE <= 128 ? WIDE / 16 : 4)
    for (int k = 0; k < WIDE / 16; k++) {
        unsigned a[SIXTEENS][4], b[4];
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
            rows.give(a[i], i, k);
#pragma unroll
        for (int j = 0; j < SCORES / 8; j++) {
            load_four_matrices<false>(b, tile + ((j * 16 + line) * (WIDE + 8) + k * 16 + column) * 2);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++) {
                mma_sync(s[i] + j * 8, a[i], b[0], b[1], element_a());
                mma_sync(s[i] + j * 8 + 4, a[i], b[2], b[3], element_a());
            }
        }
    }
}

/* sums += factors times the tile, each a sum over the tile's rows. */
template <int WIDE, int SIXTEENS, int SUMS, int SCORES>
inline void add_product(float (&sums)[SIXTEENS][SUMS], const float (&factors)[SIXTEENS][SCORES], unsigned tile)
{
    constexpr int EIGHTS = SUMS / 4;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < SCORES / 8; k++) {
        const unsigned line = tile + (k * 16 + lane % 16) * (WIDE + 8) * 2;
        unsigned a[SIXTEENS][4], b[4];
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float low = factors[i][k * 8 + j * 2], high = factors[i][k * 8 + j * 2 + 1];
                a[i][j] = DTYPE_A == BF16 ? pack_bf16(low, high) : pack_f16(low, high);
            }
#pragma unroll
        for (int j = 0; j + 1 < EIGHTS; j += 2) {
            load_four_matrices<true>(b, line + (j * 8 + lane / 16 * 8) * 2);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++) {
                mma_sync(sums[i] + j * 4, a[i], b[0], b[1], element_a());
                mma_sync(sums[i] + j * 4 + 4, a[i], b[2], b[3], element_a());
            }
        }
        if constexpr (EIGHTS % 2 == 1) {
            unsigned last[2];
            load_two_transposed(last, line + (EIGHTS - 1) * 16);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++)
                mma_sync(sums[i] + (EIGHTS - 1) * 4, a[i], last[0], last[1], element_a());
        }
    }
}

template <int SIXTEENS, int SUMS> inline void clear(float (&sums)[SIXTEENS][SUMS])
{
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < SUMS; j++)
            sums[i][j] = 0;
}

/* ---- scores */

/* A score in powers of two is outer2 times the dot, or times tanh(inner * dot). */
struct score_slope {
    float inner, outer2;
    bool capped;
};

inline score_slope slope_of(const attention_task &task)
{
    score_slope slope;
    slope.capped = CAPPED && task.cap != 0;
    slope.inner = slope.capped ? (float)(task.scale / task.cap) : 1;
    slope.outer2 = (float)(slope.capped ? task.cap : task.scale) * LOG2_E;
    return slope;
}

/* What weigh() wants of a query: LSE in powers of two, less WEIGHT_SHIFT; a large one as it is, LARGE_TIMES over, which tells it from those
 * that are not large. Minus infinity, of a query without weights, becomes plus infinity. */
constexpr float LARGE_TIMES = 8;
inline float kept_lse(float lse)
{
    const float infinity = __int_as_float(0x7f800000), lse2 = lse * LOG2_E - WEIGHT_SHIFT;
    return lse == -infinity ? infinity : is_large(lse2) ? lse * LARGE_TIMES : lse2;
}
inline bool is_large_lse(float kept)
{
    return is_large(kept) && kept != __int_as_float(0x7f800000);
}
inline float delta_of(float delta)
{
    return delta / WEIGHT_TIMES;
}

/* A dot of Q and K becomes the pair's weight (times WEIGHT_TIMES), one of grad_O and V the gradient of the dot over the scale. large: some
 * LSE may be. */
template <bool large> inline void weigh(float &score, float &gradient, const score_slope &slope, float lse, float delta)
{
    const float down = 1 / WEIGHT_TIMES;
    float bent = score, steep = 1;
    if (slope.capped) {
        bent = sm90::hyperbolic_tangent(score * slope.inner);
        steep = 1 - bent * bent;
    }
    score = sm90::power_of_two(large && is_large(lse) ? log_weight(bent, slope.outer2 * LN_2, lse / LARGE_TIMES) * LOG2_E + WEIGHT_SHIFT
                                                      : fmaf(bent, slope.outer2, -lse));
    gradient = score * fmaf(gradient, down, -delta);
    if (slope.capped)
        gradient *= steep;
}

/* ---- infinities and NaN in a step's rows that some of the block's rows do not see: zero times them would be NaN */

inline bool is_finite(unsigned short bits)
{
    constexpr unsigned short exponent = DTYPE_A == BF16 ? 0x7f80 : 0x7c00;
    return (bits & exponent) != exponent;
}

/* Before a product with the tile's LINES rows: what is not finite goes to the sums that see it, and becomes zero in shared memory. By all.
 * seen(i, half, line): whether the thread's row does. times: 1 where factors are weights; 0, which makes NaN, where they are gradients: of
 * such a row these are zero or no numbers. */
template <int LINES, int WIDE, int SIXTEENS, int SUMS, class F>
inline void scrub_tile(float (&sums)[SIXTEENS][SUMS], element_a *tile, float times, F seen)
{
    constexpr int DEEP = SUMS * 2, EIGHTS = DEEP / 8, PITCHED = WIDE + 8;
    bool found = false;
    for (int at = threadIdx.x; at < LINES * EIGHTS; at += THREADS) {
        const pieces<element_a, 8> eight = load_pieces<element_a, 8>(tile + at / EIGHTS * PITCHED + at % EIGHTS * 8);
#pragma unroll
        for (int i = 0; i < 8; i++)
            found |= !is_finite(eight.at[i].bits);
    }
    if (!__syncthreads_or(found))
        return;
#pragma unroll 1
    for (int line = 0; line < LINES; line++) {
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++) {
            const bool of_half[2] = {seen(i, 0, line), seen(i, 1, line)};
#pragma unroll
            for (int j = 0; j < SUMS; j++) {
                const element_a x = tile[line * PITCHED + j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2];
                if (!is_finite(x.bits) && of_half[j / 2 % 2])
                    sums[i][j] += as_f32(x) * times;
            }
        }
    }
    __syncthreads(); /* all have read */
    for (int at = threadIdx.x; at < LINES * DEEP; at += THREADS) {
        element_a &x = tile[at / DEEP * PITCHED + at % DEEP];
        if (!is_finite(x.bits))
            x.bits = 0;
    }
    __syncthreads();
}

#endif

/* Sums of a warp's 16 rows of a window to the stored blocks of D: by rows of two bytes an element that nothing is added to straight from
 * registers, else through shared memory, PASS columns at a time.
 *   CELL_COLS   16, 32 or 64: columns that lie in one block */
#ifndef SPK_DEVICE_SDDMM_STORE_CUH
#define SPK_DEVICE_SDDMM_STORE_CUH

#include "backend/cuda/device/epilogue/block_store.cuh"
#include "backend/cuda/device/schedule/sddmm_tile.h"

constexpr int PASS = sddmm_pass(CELL_COLS), PITCH = sddmm_pitch(CELL_COLS, LAYOUT_D == ROW_MAJOR),
              STAGING = sddmm_staging(CELL_COLS, LAYOUT_D == ROW_MAJOR);

/* Of a warp: where its 16 rows of the window go. */
struct window {
    int i0;            /* D's first row */
    int block, column; /* of pass number `lane`: its block, negative: none; D's column */
};

inline void stage_pass(float *staging, const float *sum)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int q = 0; q < PASS / 8; q++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = lane / 4 + half * 8, col = q * 8 + lane % 4 * 2;
            if (LAYOUT_D == ROW_MAJOR) {
                store_pieces<float, 2>(staging + row * PITCH + col, pieces<float, 2>{{sum[q * 4 + half * 2], sum[q * 4 + half * 2 + 1]}});
            } else {
                staging[col * PITCH + row] = sum[q * 4 + half * 2];
                staging[(col + 1) * PITCH + row] = sum[q * 4 + half * 2 + 1];
            }
        }
}

/* 16 x PASS staged sums to D, from (i0, j0) of its grid on, which lie at element `origin` of it; W together. */
template <int W>
inline void store_pass(const spk_cuda_arguments &arg, const block_target &out, const float *staging, long long i0, long long j0,
                       long long origin, bool whole)
{
    constexpr int LENGTH = LAYOUT_D == ROW_MAJOR ? PASS : 16, LINES = LAYOUT_D == ROW_MAJOR ? 16 : PASS, CHUNKS = LENGTH / W;
#pragma unroll
    for (int unit = threadIdx.x % 32; unit < LINES * CHUNKS; unit += 32) {
        const int line = unit / CHUNKS, in = unit % CHUNKS * W;
        real sum[W];
#pragma unroll
        for (int e = 0; e < W; e += 4) {
            const pieces<float, 4> four = load_pieces<float, 4>(staging + line * PITCH + in + e);
#pragma unroll
            for (int f = 0; f < 4; f++)
                sum[e + f] = four.at[f];
        }
        const int inside =
            LAYOUT_D == ROW_MAJOR ? elements_inside<W>(arg, i0 + line, j0 + in) : elements_inside<W>(arg, i0 + in, j0 + line);
        store_elements<W>(arg, out, origin + line * BLOCK_LINE + in, sum, inside, whole);
    }
}

/* The four pairs of sums that a lane has of a row, each of other eight columns, against those of its quad: it gets the row's columns 8 *
 * (lane % 4) on. */
inline pieces<unsigned, 4> quad_transposed(const unsigned (&own)[4])
{
    const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
    const unsigned a = __shfl_xor_sync(~0u, upper ? own[0] : own[2], 2), b = __shfl_xor_sync(~0u, upper ? own[1] : own[3], 2);
    const unsigned half[4] = {upper ? a : own[0], upper ? b : own[1], upper ? own[2] : a, upper ? own[3] : b};
    const unsigned c = __shfl_xor_sync(~0u, odd ? half[0] : half[1], 1), d = __shfl_xor_sync(~0u, odd ? half[2] : half[3], 1);
    return {{odd ? c : half[0], odd ? half[1] : c, odd ? d : half[2], odd ? half[3] : d}};
}

inline unsigned packed(const spk_cuda_arguments &arg, float low, float high)
{
    const pieces<element_d, 2> two = {{to<element_d>((float)arg.alpha * low), to<element_d>((float)arg.alpha * high)}};
    unsigned bits;
    memcpy(&bits, &two, sizeof bits);
    return bits;
}

/* D of two bytes an element that nothing is added to, by rows: without staging. */
constexpr bool DIRECT = LAYOUT_D == ROW_MAJOR && sizeof(element_d) == 2 && PASS == 32 && !USE_C && !RAGGED;

/* As store_sums. */
template <int count>
inline void store_direct(const spk_cuda_arguments &arg, const block_target &out, const window &at, int first, const float (&sum)[count])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < count / 16; i++) {
        const int block = __shfl_sync(~0u, at.block, first + i), column = __shfl_sync(~0u, at.column, first + i);
        element_d *to = out.d + block * BLOCK_ELEMENTS + (at.i0 % BLOCK_ROWS + lane / 4) * BLOCK_COLS + column % BLOCK_COLS + lane % 4 * 8;
        if (block < 0)
            continue;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            unsigned own[4];
#pragma unroll
            for (int q = 0; q < 4; q++)
                own[q] = packed(arg, sum[i * 16 + q * 4 + half * 2], sum[i * 16 + q * 4 + half * 2 + 1]);
            store_pieces<unsigned, 4>((unsigned *)(to + half * 8 * BLOCK_COLS), quad_transposed(own));
        }
    }
}

/* A warp's sums of passes first .. to D. */
template <int count>
inline void store_staged(const spk_cuda_arguments &arg, const block_target &out, const window &at, int first, const float (&sum)[count],
                         float *staging)
{
    const bool whole = aligned_to(out.d, 16) && aligned_to(out.c, 16);
#pragma unroll
    for (int i = 0; i < count / (PASS / 2); i++) {
        const int block = __shfl_sync(~0u, at.block, first + i), column = __shfl_sync(~0u, at.column, first + i);
        if (block >= 0) {
            const int r = at.i0 % BLOCK_ROWS, c = column % BLOCK_COLS;
            __syncwarp();
            stage_pass(staging, sum + i * (PASS / 2));
            __syncwarp();
            store_pass<16 / sizeof(element_d)>(arg, out, staging, at.i0, column,
                                               block * BLOCK_ELEMENTS + (LAYOUT_D == ROW_MAJOR ? r * BLOCK_COLS + c : c * BLOCK_ROWS + r),
                                               whole);
        }
    }
}

template <int count>
inline void store_sums(const spk_cuda_arguments &arg, const block_target &out, const window &at, int first, const float (&sum)[count],
                       float *staging)
{
    if (DIRECT && out.sums == nullptr && aligned_to(out.d, 16))
        store_direct(arg, out, at, first, sum);
    else
        store_staged(arg, out, at, first, sum, staging);
}

#endif

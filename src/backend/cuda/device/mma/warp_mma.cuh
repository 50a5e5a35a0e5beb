/* The products of a tile with the warps' tensor instructions (mma.sync): f16 and bf16 as 16x8x16, TF32 and f64 as 16x8x8, with f32 or f64
 * sums.
 *
 * An instruction has a side of 16 and a side of 8. SWAP = 0: the block's rows are on the side of 16. SWAP = 1: they are on the side of 8
 * and the columns of B on the side of 16, so that blocks whose rows are a multiple of 8 waste nothing. Rows of a tile beyond the block are
 * zeros in A and their sums are dropped: whatever B holds, no other row sees it.
 *
 * The constants: warp_mma.h, team.h. */
#ifndef SPK_CUDA_WARP_MMA_CUH
#define SPK_CUDA_WARP_MMA_CUH

#include "backend/cuda/device/mma/matrices.cuh"
#include "backend/cuda/device/copy/team.cuh"
#include "backend/cuda/device/mma/warp_mma.h"

#define WARP_M (TILE_M / WARPS_M)
#define WARP_N (TILE_N / WARPS_N)
#define SIXTEENS ((SWAP ? WARP_N : WARP_M) / 16) /* instruction tiles of a warp along each side */
#define EIGHTS ((SWAP ? WARP_M : WARP_N) / 8)
#define DEPTH (sizeof(element_a) == 2 ? 16 : 8) /* of an instruction along K */

static_assert(warp_mma_threads(WARPS_M, WARPS_N) == TEAM_THREADS && TILE_M % WARPS_M == 0 && TILE_N % WARPS_N == 0,
              "warps do not fill the tile");
static_assert(SIXTEENS * 16 == (SWAP ? WARP_N : WARP_M) && EIGHTS * 8 == (SWAP ? WARP_M : WARP_N),
              "instructions do not fill a warp's tile");
static_assert(TILE_K % DEPTH == 0 && sizeof(element_a) == sizeof(element_b), "instructions do not fill a step");

/* A side's tile in shared memory: element (x, k), x along the side. ALONG_K: lines run along K, one for each x. */
template <class T, int PITCH, bool ALONG_K> struct side {
    const T *tile;
    inline const T *at(int x, int k) const { return tile + (ALONG_K ? x * PITCH + k : k * PITCH + x); }
};

/* ---- 16-bit elements: fragments of 8x8 matrices through ldmatrix (matrices.cuh) */

template <bool TRANSPOSED> inline void load_matrices(unsigned (&r)[4], const void *line)
{
    load_four_matrices<TRANSPOSED>(r, shared_address(line));
}
template <bool TRANSPOSED> inline void load_two_matrices(unsigned (&r)[2], const void *line)
{
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1])
                     : "r"(shared_address(line))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1])
                     : "r"(shared_address(line))
                     : "memory");
}

inline void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], f16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
inline void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], bf16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
inline void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], float)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* Before compute capability 9.0 as four 8x8x4: two halves of the side of 16 and of the depth. */
inline void multiply_add(double (&c)[4], const double (&a)[4], const double (&b)[2], double)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                         : "d"(a[half + 2 * k]), "d"(b[k]));
#endif
}

/* ---- fragments. Of the side of 16: lane l holds (l / 4, t) and (l / 4 + 8, t), then both 8 (16-bit elements) or 4 further along K; t is 2
 * (l % 4) and its neighbour for 16-bit elements, l % 4 for others. Of the side of 8: (l / 4, t), then further along K. */

/* Four registers of a 16-wide tile, of either orientation. */
template <class T, int PITCH, bool ALONG_K> inline void load16(unsigned (&a)[4], const side<T, PITCH, ALONG_K> &s, int x, int k, int lane)
{
    if constexpr (sizeof(T) == 2) {
        if constexpr (ALONG_K)
            load_matrices<false>(a, s.at(x + lane % 16, k + lane / 16 * 8));
        else
            load_matrices<true>(a, s.at(x + lane / 8 % 2 * 8, k + lane % 8 + lane / 16 * 8));
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = tf32_bits(as_f32(*s.at(x + lane / 4 + i % 2 * 8, k + lane % 4 + i / 2 * 4)));
    }
}
template <int PITCH, bool ALONG_K> inline void load16(double (&a)[4], const side<double, PITCH, ALONG_K> &s, int x, int k, int lane)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        a[i] = *s.at(x + lane / 4 + i % 2 * 8, k + lane % 4 + i / 2 * 4);
}

/* Two registers for each of COUNT 8-wide tiles. */
template <int COUNT, class T, int PITCH, bool ALONG_K>
inline void load8(unsigned (&b)[COUNT][2], const side<T, PITCH, ALONG_K> &s, int x, int k, int lane)
{
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i + 1 < COUNT; i += 2) {
            unsigned r[4];
            if constexpr (ALONG_K)
                load_matrices<false>(r, s.at(x + i * 8 + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8));
            else
                load_matrices<true>(r, s.at(x + i * 8 + lane / 16 * 8, k + lane % 16));
            b[i][0] = r[0];
            b[i][1] = r[1];
            b[i + 1][0] = r[2];
            b[i + 1][1] = r[3];
        }
        if constexpr (COUNT % 2 == 1) { /* lanes 16 .. 31 name lines that nobody wants */
            if constexpr (ALONG_K)
                load_two_matrices<false>(b[COUNT - 1], s.at(x + (COUNT - 1) * 8 + lane % 8, k + lane / 8 % 2 * 8));
            else
                load_two_matrices<true>(b[COUNT - 1], s.at(x + (COUNT - 1) * 8, k + lane % 16));
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                b[i][j] = tf32_bits(as_f32(*s.at(x + i * 8 + lane / 4, k + lane % 4 + j * 4)));
    }
}
template <int COUNT, int PITCH, bool ALONG_K>
inline void load8(double (&b)[COUNT][2], const side<double, PITCH, ALONG_K> &s, int x, int k, int lane)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            b[i][j] = *s.at(x + i * 8 + lane / 4, k + lane % 4 + j * 4);
}

template <class T> struct part_of {
    typedef unsigned type;
};
template <> struct part_of<double> {
    typedef double type;
};

/* The warp's part of the team's tile. */
struct warp_place {
    int x16, x8, lane; /* where the warp's part begins, along the instruction's sides */
};
inline warp_place warp_place_of(int thread)
{
    const int warp = thread / 32, row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;
    return warp_place{SWAP ? column : row, SWAP ? row : column, thread % 32};
}

/* A step: sum += A B. */
inline void warp_multiply(real (&sum)[SIXTEENS][EIGHTS][4], const element_a *tile_a, const element_b *tile_b, const warp_place &at)
{
    typedef part_of<element_a>::type part;
    const side<element_a, PITCH_A, A_K_CONTIGUOUS> a = {tile_a};
    const side<element_b, PITCH_B, B_K_CONTIGUOUS> b = {tile_b};
#pragma unroll(TILE_K / DEPTH > 4 ? 2 : TILE_K / DEPTH)
    for (int k = 0; k < TILE_K; k += DEPTH) {
        part eight[EIGHTS][2];
        if constexpr (SWAP)
            load8(eight, a, at.x8, k, at.lane);
        else
            load8(eight, b, at.x8, k, at.lane);
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++) {
            part sixteen[4];
            if constexpr (SWAP)
                load16(sixteen, b, at.x16 + i * 16, k, at.lane);
            else
                load16(sixteen, a, at.x16 + i * 16, k, at.lane);
#pragma unroll
            for (int j = 0; j < EIGHTS; j++)
                multiply_add(sum[i][j], sixteen, eight[j], element_a());
        }
    }
}

/* keep(row, column, sum) for each sum of the warp. Of an instruction's sums lane l holds (l / 4, 2 (l % 4)) and its neighbour along the
 * side of 8, then the same 8 further along the side of 16. */
template <class K> inline void warp_sums(const real (&sum)[SIXTEENS][EIGHTS][4], const warp_place &at, K keep)
{
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < EIGHTS; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int sixteen = at.x16 + i * 16 + at.lane / 4 + e / 2 * 8, eight = at.x8 + j * 8 + at.lane % 4 * 2 + e % 2;
                keep(SWAP ? eight : sixteen, SWAP ? sixteen : eight, sum[i][j][e]);
            }
}

#endif

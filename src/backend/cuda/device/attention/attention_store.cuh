/* How attention's sums become rows of O: a thread has two rows of a 64-row tile, two columns of each eight (softmax.cuh). */
#ifndef SPK_DEVICE_ATTENTION_STORE_CUH
#define SPK_DEVICE_ATTENTION_STORE_CUH

#include "backend/cuda/device/common/problem.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

SPK_INLINE unsigned pack_a(float low, float high)
{
    return DTYPE_A == BF16 ? pack_bf16(low, high) : pack_f16(low, high);
}

/* Four lanes have four pairs of columns of each of four groups of eight columns; then lane q has the four pairs of group q. */
SPK_INLINE void quad_transpose(unsigned (&x)[4])
{
    const unsigned lane = threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const unsigned got = __shfl_xor_sync(~0u, lane & 1 ? x[i] : x[i + 1], 1);
        (lane & 1 ? x[i] : x[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned got = __shfl_xor_sync(~0u, lane & 2 ? x[i] : x[i + 2], 2);
        (lane & 2 ? x[i] : x[i + 2]) = got;
    }
}

/* Without a branch: what is stored next is made ready meanwhile. */
SPK_INLINE void store_16_bytes_where(bool there, void *to, const unsigned (&x)[4])
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(to), "r"(x[0]),
                 "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"((unsigned)there)
                 : "memory");
}

/* The thread's pairs of 32 columns, times factor. */
template <int sums> SPK_INLINE void take_columns(unsigned (&x)[4], const float (&o)[sums], int first, int half, float factor)
{
#pragma unroll
    for (int g = 0; g < 4; g++) {
        const bool there = first + g * 8 < sums * 2;
        const int i = there ? first / 2 + g * 4 + half * 2 : 0;
        x[g] = there ? pack_a(o[i] * factor, o[i + 1] * factor) : 0;
    }
}

/* A row of O. pieces: it may be written 16 bytes at a time. By all of the row's four lanes. */
template <int sums> SPK_INLINE void store_row(element_a *to, bool pieces, bool valid, const float (&o)[sums], int half, float factor)
{
    constexpr int depth = sums * 2, most = 4; /* pieces made ready at once */
    if (pieces) {
#pragma unroll
        for (int first = 0; first < depth; first += most * 32) {
            unsigned x[most][4];
#pragma unroll
            for (int i = 0; i < most; i++) {
                take_columns(x[i], o, first + i * 32, half, factor);
                quad_transpose(x[i]);
            }
#pragma unroll
            for (int i = 0; i < most; i++) {
                const int column = first + i * 32 + threadIdx.x % 4 * 8;
                store_16_bytes_where(valid && column < depth, to + column, x[i]);
            }
        }
    } else if (valid) {
#pragma unroll
        for (int i = 0; i < depth / 8; i++) {
            const unsigned pair = pack_a(o[i * 4 + half * 2] * factor, o[i * 4 + half * 2 + 1] * factor);
            const int column = i * 8 + threadIdx.x % 4 * 2;
            to[column] = low_half(pair, element_a());
            to[column + 1] = high_half(pair, element_a());
        }
    }
}

/* A row that is merged with others later: in f32. */
template <int sums> SPK_INLINE void store_part(float *to, const float (&o)[sums], int half, float factor)
{
#pragma unroll
    for (int i = half * 2; i < sums; i += 4)
        *(float2 *)(to + i / 4 * 8 + threadIdx.x % 4 * 2) = make_float2(o[i] * factor, o[i + 1] * factor);
}

/* 16 rows of a warp to shared memory, as TMA stores them: lines of 64 columns, swizzled, each 64 rows (8192 bytes) behind the other. `to`:
 * where the warp's first row lies, at a multiple of 1024 bytes. */
template <int sums> SPK_INLINE void stage_rows(unsigned to, const float (&o)[sums], const float (&factor)[2])
{
    const int lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
    for (int j = 0; j < (sums + 7) / 8; j++) {
        unsigned x[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int i = (j * 2 + u / 2) * 4 + u % 2 * 2;
            x[u] = i < sums ? pack_a(o[i < sums ? i : 0] * factor[u % 2], o[i < sums ? i + 1 : 0] * factor[u % 2]) : 0;
        }
        stmatrix4(to + j / 4 * 8192 + row * 128 + ((j % 4 * 32 + lane / 16 * 16) ^ (row % 8 * 16)), x);
    }
}

} // namespace sm90

#endif

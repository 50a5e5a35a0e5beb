/* What device.hpp lacks for programs with tensor instructions: those of 16x8x8 over TF32, matrices that a warp loads, copies in the
 * background, which happen at once, and shared memory that a launch asks for. Include it before the program. */
#ifndef SPK_ON_HOST_TENSOR_HPP
#define SPK_ON_HOST_TENSOR_HPP

#include "on_host/device.hpp"

#include <cmath>

alignas(1024) unsigned char memory[232448]; /* a block's shared memory: what the program declares */

#undef __shared__
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y)
{
    return {x, y};
}

template <typename to, typename from> to same_bits(from x)
{
    to y;
    static_assert(sizeof x == sizeof y, "");
    memcpy(&y, &x, sizeof y);
    return y;
}
inline float __int_as_float(int x)
{
    return same_bits<float>(x);
}
inline float __uint_as_float(unsigned x)
{
    return same_bits<float>(x);
}
inline int __float_as_int(float x)
{
    return same_bits<int>(x);
}
inline unsigned __float_as_uint(float x)
{
    return same_bits<unsigned>(x);
}
inline float __fmul_rn(float a, float b)
{
    return a * b;
}
inline double __dmul_rn(double a, double b)
{
    return a * b;
}
inline float __double2float_rz(double x)
{
    return (float)x;
}
template <typename value> value __ldg(const value *from)
{
    return *from;
}
inline bool __any_sync(unsigned, bool there)
{
    return __ballot_sync(~0u, there) != 0;
}
inline int __reduce_add_sync(unsigned, int own)
{
    const auto all = on_host::exchange(own);
    int sum = 0;
    for (int i = 0; i < on_host::LANES; i++)
        sum += all.at[i];
    return sum;
}
inline void __syncwarp()
{
    on_host::exchange(0);
}
inline int __syncthreads_or(int there)
{
    static int found;
    __syncthreads();
    found = 0;
    __syncthreads();
    found |= there;
    __syncthreads();
    return found;
}
inline size_t __cvta_generic_to_shared(const void *pointer)
{
    return (size_t)((const unsigned char *)pointer - memory);
}

/* In place of device/ptx/copy_async.cuh. */
#define SPK_DEVICE_COPY_ASYNC_CUH
template <int W, class T> inline void copy_async(unsigned to, const T *from, bool exist)
{
    if (exist)
        memcpy(memory + to, from, W * sizeof(T));
    else
        memset(memory + to, 0, W * sizeof(T));
}
inline void copies_commit() {}
template <int PENDING> inline void copies_wait() {}

/* In place of device/ptx/launch.cuh. */
#define SPK_DEVICE_LAUNCH_CUH
inline void previous_launch_done() {}

/* In place of device/mma/matrices.cuh. */
#define SPK_DEVICE_MATRICES_CUH
template <bool TRANSPOSED> inline void load_four_matrices(unsigned (&r)[4], unsigned line)
{
    const unsigned lane = threadIdx.x % on_host::LANES;
    const auto lines = on_host::exchange(line);
    for (unsigned i = 0; i < 4; i++) {
        unsigned short two[2];
        for (unsigned j = 0; j < 2; j++) {
            const unsigned row = TRANSPOSED ? lane % 4 * 2 + j : lane / 4, column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + j;
            memcpy(&two[j], memory + lines[i * 8 + row] + column * 2, sizeof two[j]);
        }
        r[i] = two[0] | (unsigned)two[1] << 16;
    }
}

/* In place of device/mma/mma_tf32.cuh. */
#define SPK_DEVICE_MMA_TF32_CUH
struct mma_factors {
    unsigned a[4], b[2];
};
inline void mma_tf32(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    const auto all = on_host::exchange(mma_factors{{a[0], a[1], a[2], a[3]}, {b0, b1}});
    const unsigned lane = threadIdx.x % on_host::LANES;
    const auto taken = [](unsigned bits) { return (double)__uint_as_float(bits & 0xffffe000u); };
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
        double sum = c[i];
        for (unsigned k = 0; k < 8; k++)
            sum += taken(all.at[row * 4 + k % 4].a[i / 2 + k / 4 * 2]) * taken(all.at[column * 4 + k % 4].b[k / 4]);
        c[i] = (float)sum;
    }
}
inline unsigned load_word(unsigned from)
{
    unsigned x;
    memcpy(&x, memory + from, sizeof x);
    return x;
}

#endif

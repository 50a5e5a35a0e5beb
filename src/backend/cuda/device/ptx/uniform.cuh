/* What all lanes of a warp have in common. wgmma takes descriptors from uniform registers. A value stays in them only where the compiler
 * knows that all lanes have it: a branch or a loop that lanes may leave one by one, as a wait for an mbarrier is, makes everything behind
 * it a value of each lane, which each product then has to move. */
#ifndef SPK_DEVICE_UNIFORM_CUH
#define SPK_DEVICE_UNIFORM_CUH

#include "backend/cuda/device/copy/pipeline.cuh"

namespace sm90 {

/* x, which is the same in all lanes. */
SPK_INLINE int uniform(int x)
{
    return (int)__reduce_or_sync(~0u, (unsigned)x);
}

/* A tile's descriptor. Found once: the compiler would find it again for each product. In halves: which of them changes is known. */
struct uniform_descriptor {
    unsigned low, high;

    __device__ __forceinline__ uniform_descriptor(unsigned low, unsigned high) : low(low), high(high) {}
    __device__ __forceinline__ explicit uniform_descriptor(unsigned long long descriptor)
        : low(uniform((int)descriptor)), high(uniform((int)(descriptor >> 32)))
    {
    }
    /* Of the tile so many bytes further on; and for an instruction. */
    __device__ __forceinline__ uniform_descriptor further(unsigned bytes) const { return uniform_descriptor(low + bytes / 16, high); }
    __device__ __forceinline__ unsigned long long at(unsigned bytes) const
    {
        unsigned long long descriptor;
        asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"(low + bytes / 16), "r"(high));
        return descriptor;
    }
};

/* Whether all of a warp find a stage full (ring::wait_full), at once; and a wait for it, after which they go on together. */
template <int stages> SPK_INLINE bool is_full_warp(const ring<stages> &at)
{
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(at.full_barrier()), "r"(at.phase)
                 : "memory");
    return __all_sync(~0u, done);
}
template <int stages> SPK_INLINE void wait_full_warp(const ring<stages> &at)
{
    unsigned done;
    do {
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(at.full_barrier()), "r"(at.phase)
                     : "memory");
    } while (!__all_sync(~0u, done));
}

} // namespace sm90

#endif

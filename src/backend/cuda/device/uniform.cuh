/* What all lanes of a warp have in common. wgmma takes descriptors from uniform registers. A value stays in them only where the compiler
 * knows that all lanes have it: a branch or a loop that lanes may leave one by one, as a wait for an mbarrier is, makes everything behind
 * it a value of each lane, which each product then has to move. */
#ifndef SPK_DEVICE_UNIFORM_CUH
#define SPK_DEVICE_UNIFORM_CUH

#include "backend/cuda/device/pipeline.cuh"

namespace sm90 {

/* x, which is the same in all lanes. */
SPK_INLINE int uniform(int x)
{
    return (int)__reduce_or_sync(~0u, (unsigned)x);
}

/* The lower half of a tile's descriptor, which says where the tile is: found once, since the compiler would make it anew for each product;
 * and the descriptor of the tile `bytes` further on. */
SPK_INLINE unsigned descriptor_low(unsigned long long descriptor)
{
    return (unsigned)uniform((int)descriptor);
}
SPK_INLINE unsigned long long descriptor_at(unsigned long long kind, unsigned low, unsigned bytes)
{
    return kind >> 32 << 32 | (low + bytes / 16);
}

/* Whether all of a warp find that the phase of this parity is complete: at once, or, where it is not, after a moment. */
template <bool at_once> SPK_INLINE bool barrier_try_warp(unsigned barrier, unsigned parity)
{
    unsigned done;
    if (at_once)
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    else
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    return __all_sync(~0u, done);
}

/* ring::wait_full by all of a warp, which goes on together; is_full: without waiting. */
template <int stages> SPK_INLINE bool is_full_warp(const ring<stages> &at)
{
    return barrier_try_warp<true>(at.full_barrier(), at.phase);
}
template <int stages> SPK_INLINE void wait_full_warp(const ring<stages> &at)
{
    while (!barrier_try_warp<false>(at.full_barrier(), at.phase)) {
    }
}

} // namespace sm90

#endif

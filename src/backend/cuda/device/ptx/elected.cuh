/* A producing warp that stays together: one of its lanes is chosen to ask TMA for bytes. Where all lanes go through the same code, what TMA
 * gets is in uniform registers, and a thread needs few others; inside a branch of one lane the compiler moves each operand there for every
 * request. */
#ifndef SPK_DEVICE_ELECTED_CUH
#define SPK_DEVICE_ELECTED_CUH

#include "backend/cuda/device/copy/pipeline.cuh"

namespace sm90 {

SPK_INLINE bool is_elected()
{
    unsigned mine;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(mine)::"memory");
    return mine != 0;
}

/* Whether a barrier's phase of this parity is complete; waits for a while. */
SPK_INLINE bool try_wait(unsigned barrier, unsigned parity)
{
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

/* By a warp, which goes on together: the phase is complete; the stage may be written. */
SPK_INLINE void barrier_wait_warp(unsigned barrier, unsigned parity)
{
    while (!__all_sync(~0u, try_wait(barrier, parity)))
        ;
}
template <int stages> SPK_INLINE void wait_empty_warp(const ring<stages> &at)
{
    barrier_wait_warp(at.empty + at.stage * 8, at.phase ^ 1);
}

} // namespace sm90

#endif

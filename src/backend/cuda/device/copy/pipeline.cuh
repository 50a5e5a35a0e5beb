/* A ring of stages in shared memory between a producer that fills them through TMA and consumers that multiply from them. */
#ifndef SPK_DEVICE_PIPELINE_CUH
#define SPK_DEVICE_PIPELINE_CUH

#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

template <int stages> struct ring_storage {
    unsigned long long full[stages], empty[stages];
};

/* A side's place in the ring. `full` completes when the stage's bytes are in, `empty` when every consumer has given it back. */
template <int stages> struct ring {
    unsigned full, empty; /* the barriers of stage 0 */
    unsigned stage, phase;

    __device__ __forceinline__ ring(const ring_storage<stages> &storage)
        : full(smem_address(storage.full)), empty(smem_address(storage.empty)), stage(0), phase(0)
    {
    }
    __device__ __forceinline__ unsigned full_barrier() const { return full + stage * 8; }
    __device__ __forceinline__ void advance()
    {
        if (++stage == stages) {
            stage = 0;
            phase ^= 1;
        }
    }
    /* Leaves out the next `steps` stages, which another's sums are of. */
    __device__ __forceinline__ void skip(int steps)
    {
        const unsigned to = stage + steps;
        phase ^= to / stages & 1;
        stage = to % stages;
    }
    /* Producer: the stage may be written. A fresh ring is all empty. */
    __device__ __forceinline__ void wait_empty() const { barrier_wait(empty + stage * 8, phase ^ 1); }
    /* Consumer: the stage's bytes are in. */
    __device__ __forceinline__ void wait_full() const { barrier_wait(full + stage * 8, phase); }
    __device__ __forceinline__ void release(unsigned of, unsigned count = 1) const { barrier_arrive(empty + of * 8, count); }
};

/* By one thread, before the block's first __syncthreads. */
template <int stages> SPK_INLINE void ring_init(ring_storage<stages> &storage, unsigned producers, unsigned consumers)
{
    for (int i = 0; i < stages; i++) {
        barrier_init(smem_address(storage.full + i), producers);
        barrier_init(smem_address(storage.empty + i), consumers);
    }
    barrier_init_fence();
}

} // namespace sm90

#endif

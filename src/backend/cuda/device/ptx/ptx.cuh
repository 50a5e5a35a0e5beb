/* Hopper's instructions that CUDA C has no words for: barriers in shared memory, fences, named barriers, stmatrix. Addresses of shared
 * memory are 32-bit (smem_address). */
#ifndef SPK_DEVICE_PTX_CUH
#define SPK_DEVICE_PTX_CUH

#define SPK_INLINE static __device__ __forceinline__

namespace sm90 {

SPK_INLINE unsigned smem_address(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

/* ---- mbarrier: completes a phase when `count` arrivals and all announced bytes are in */

SPK_INLINE void barrier_init(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* After the inits of one thread, before the block's __syncthreads: makes them seen by the async proxy (TMA). */
SPK_INLINE void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

SPK_INLINE void barrier_arrive(unsigned barrier, unsigned count = 1)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

SPK_INLINE void barrier_arrive_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Waits until the phase of this parity is complete. A fresh barrier is in phase 0: waiting for parity 1 returns at once. */
SPK_INLINE void barrier_wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n\t.reg .pred done;\n"
                 "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@done bra end;\n\tbra again;\n"
                 "end:\n\t}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Ordinary stores to shared memory before it are seen by TMA and wgmma after it. */
SPK_INLINE void fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Barrier 1 .. 15 among `threads` threads, whole warps (0 is __syncthreads's). */
SPK_INLINE void named_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Counts this warp's threads as there, without waiting. */
SPK_INLINE void named_barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Registers of a thread from here on: given back, taken. By all of a warpgroup, in a kernel whose registers at entry follow from
 * __launch_bounds__. */
template <int count> SPK_INLINE void registers_fewer()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> SPK_INLINE void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* Four 8x8 matrices of 16-bit elements. Lane 8u + i gives the address of row i of matrix u (of its column i, transposed). */
SPK_INLINE void stmatrix4(unsigned address, const unsigned (&x)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x[0]), "r"(x[1]), "r"(x[2]),
                 "r"(x[3])
                 : "memory");
}

SPK_INLINE void stmatrix4_transposed(unsigned address, const unsigned (&x)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x[0]), "r"(x[1]), "r"(x[2]),
                 "r"(x[3])
                 : "memory");
}

/* ---- clusters: blocks that may write to each other's shared memory */

SPK_INLINE unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* By all threads of the cluster's blocks: what they wrote before it is seen after it. */
SPK_INLINE void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The same where nothing but barriers was written, and barrier_init_fence has come after: it orders no stores. */
SPK_INLINE void cluster_barrier_started()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The address of another block's shared memory that lies as `address` in this one's. */
SPK_INLINE unsigned cluster_address(unsigned address, unsigned rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* Arrives at a barrier of another block (cluster_address). */
SPK_INLINE void cluster_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The same where only wgmma has read, and nothing was written that the other block is to see: it orders no stores. A release for the
 * cluster waits for all memory that the thread has written, a microsecond each time. */
SPK_INLINE void cluster_arrive_read(unsigned barrier, unsigned count = 1)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

SPK_INLINE void cluster_store(unsigned address, float x, float y, float z, float w)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

SPK_INLINE void shared_store_16(unsigned address, unsigned short value)
{
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

SPK_INLINE void shared_clear_16_bytes(unsigned address)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
}

SPK_INLINE void shared_store_16_bytes(unsigned address, const uint4 &x)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

} // namespace sm90

#endif

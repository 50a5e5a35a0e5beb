/* A cluster of blocks that adds its sums of one tile: each block sends every part of its sums to the block that owns it, the owner adds
 * them in the order of the blocks' ranks, so that the bits are the same on every run, and finishes its part of D. */
#ifndef SPK_DEVICE_CLUSTER_CUH
#define SPK_DEVICE_CLUSTER_CUH

#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"
#include "backend/cuda/device/common/sm90.h"

namespace sm90 {

/* As barrier_wait, for a phase that other blocks of the cluster complete. */
SPK_INLINE void cluster_wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n\t.reg .pred done;\n"
                 "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t@done bra end;\n\tbra again;\n"
                 "end:\n\t}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Four sums into the shared memory of a block; its barrier there counts the 16 bytes. */
SPK_INLINE void cluster_send(unsigned to, unsigned barrier, float x, float y, float z, float w)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(to), "r"(barrier),
                 "f"(x), "f"(y), "f"(z), "f"(w)
                 : "memory");
}

SPK_INLINE float4 shared_load_4(unsigned from)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from) : "memory");
    return x;
}

struct exchange_storage {
    unsigned long long full, room;
};

/* `blocks` of a cluster, each with `groups` warpgroups that keep `columns` columns of `tiles` tiles of 64 rows: fours of a thread (mma.cuh:
 * rows r and r + 8, two columns), of which a block owns `owned` neighbours. */
template <int blocks, int groups, int tiles, int columns> struct exchange {
    static constexpr int fours = cluster_fours(tiles, columns), owned = cluster_owned(fours, blocks),
                         line_bytes = cluster_line_bytes(groups);
    static constexpr int bytes = blocks * owned * line_bytes; /* of shared memory */
    unsigned memory, full, room, rank, phase;

    __device__ __forceinline__ exchange(unsigned memory, const exchange_storage &storage)
        : memory(memory), full(smem_address(&storage.full)), room(smem_address(&storage.room)), rank(cluster_rank()), phase(0)
    {
    }
    /* The first four of this block, and the one after its last. */
    __device__ __forceinline__ int first() const { return min((int)rank * owned, fours); }
    __device__ __forceinline__ int end() const { return min((int)rank * owned + owned, fours); }

    /* Where, in the owner's memory, the sums of block `from` for its four number `at` lie. */
    __device__ __forceinline__ unsigned place(int from, int at) const
    {
        return memory + (from * owned + at) * line_bytes + threadIdx.x * 16;
    }

    /* By all threads of the warpgroups, the lowest of the block. */
    __device__ __forceinline__ void send(const float (&sum)[tiles][columns / 2])
    {
        cluster_wait(room, phase ^ 1); /* a fresh one has room */
        if (threadIdx.x == 0 && end() > first())
            barrier_arrive_expect(full, (end() - first()) * blocks * line_bytes);
#pragma unroll
        for (int to = 0; to < blocks; to++) {
            if (to * owned >= fours)
                break;
            const unsigned there = cluster_address(place(rank, 0), to), barrier = cluster_address(full, to);
#pragma unroll
            for (int i = 0; i < owned; i++) {
                const int at = to * owned + i;
                if (at < fours) {
                    const float *four = &sum[at / (columns / 8)][at % (columns / 8) * 4];
                    cluster_send(there + i * line_bytes, barrier, four[0], four[1], four[2], four[3]);
                }
            }
        }
    }
    __device__ __forceinline__ void wait() const
    {
        if (end() > first())
            cluster_wait(full, phase);
    }
    __device__ __forceinline__ float4 total(int four) const
    {
        float4 sum = shared_load_4(place(0, four - first()));
#pragma unroll
        for (int from = 1; from < blocks; from++) {
            const float4 more = shared_load_4(place(from, four - first()));
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        return sum;
    }
    /* All sums are read: the cluster may send those of the next tile. */
    __device__ __forceinline__ void done(int barrier)
    {
        named_barrier(barrier, groups * 128);
        if (threadIdx.x < blocks)
            cluster_arrive(cluster_address(room, threadIdx.x));
        phase ^= 1;
    }
    /* Before the block ends: all have read their sums of the last tile, so nobody arrives here any more. */
    __device__ __forceinline__ void leave() const
    {
        cluster_wait(room, phase ^ 1);
    }
};

/* By one thread, before the cluster_barrier_started that begins the kernel. */
template <int blocks> SPK_INLINE void exchange_init(exchange_storage &storage)
{
    barrier_init(smem_address(&storage.full), 1);
    barrier_init(smem_address(&storage.room), blocks);
    barrier_init_fence();
}

struct handover_storage {
    unsigned long long full, room;
};

/* One tile of a cluster of two blocks is cut: the second block sends its sums of the tile's end to the first, which adds them to its own.
 * `groups`, `tiles` and `columns` as above; memory: where the sums arrive in the first block. Once a launch. */
template <int groups, int tiles, int columns> struct handover {
    static constexpr int fours = cluster_fours(tiles, columns), line_bytes = cluster_line_bytes(groups), bytes = fours * line_bytes;
    unsigned memory, full, room;

    __device__ __forceinline__ handover(unsigned memory, const handover_storage &storage)
        : memory(memory), full(smem_address(&storage.full)), room(smem_address(&storage.room))
    {
    }
    /* By one thread, before the cluster_barrier_started that begins the kernel. */
    __device__ __forceinline__ void init() const
    {
        barrier_init(full, 1);
        barrier_init(room, groups);
        barrier_init_fence();
        barrier_arrive_expect(full, bytes);
    }
    /* First block, one thread of each warpgroup: what it had in `memory` has been read. */
    __device__ __forceinline__ void open() const { cluster_arrive_read(cluster_address(room, 1)); }
    /* Second block, by all threads of the warpgroups, the lowest of the block. */
    __device__ __forceinline__ void send(const float (&sum)[tiles][columns / 2]) const
    {
        const unsigned there = cluster_address(memory, 0) + threadIdx.x * 16, barrier = cluster_address(full, 0);
        cluster_wait(room, 0);
#pragma unroll
        for (int i = 0; i < fours; i++) {
            const float *four = &sum[i / (columns / 8)][i % (columns / 8) * 4];
            cluster_send(there + i * line_bytes, barrier, four[0], four[1], four[2], four[3]);
        }
    }
    /* First block, as send. Then `memory` may be used again. barrier: a named one. */
    __device__ __forceinline__ void add(float (&sum)[tiles][columns / 2], int barrier) const
    {
        cluster_wait(full, 0);
#pragma unroll
        for (int i = 0; i < fours; i++) {
            float *four = &sum[i / (columns / 8)][i % (columns / 8) * 4];
            const float4 more = shared_load_4(memory + threadIdx.x * 16 + i * line_bytes);
            four[0] += more.x;
            four[1] += more.y;
            four[2] += more.z;
            four[3] += more.w;
        }
        named_barrier(barrier, groups * 128);
    }
};

/* Four sums of a thread to D: rows i and i + 8, columns j and j + 1. */
SPK_INLINE void store_four(const spk_cuda_arguments &arg, float4 sum, long long i, long long j, bool whole)
{
#if LAYOUT_D == ROW_MAJOR
    store_pair(arg, i, j, sum.x, sum.y, whole);
    store_pair(arg, i + 8, j, sum.z, sum.w, whole);
#else
    const float value[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (i + e / 2 * 8 < arg.m && j + e % 2 < arg.n)
            store_one(arg, i + e / 2 * 8, j + e % 2, value[e]);
#endif
}

} // namespace sm90

#endif

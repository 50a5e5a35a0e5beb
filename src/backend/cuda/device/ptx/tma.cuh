/* TMA: boxes of tensors in global memory into shared memory and back. A load counts its whole box towards the barrier's bytes, whatever of
 * it lies beyond the tensor's end (that part is zeros); a store leaves out what lies beyond. */
#ifndef SPK_DEVICE_TMA_CUH
#define SPK_DEVICE_TMA_CUH

#include "backend/cuda/device/ptx/ptx.cuh"

/* CUtensorMap, passed as a const __grid_constant__ parameter. */
struct alignas(64) spk_tensor_map {
    unsigned long long words[16];
};

namespace sm90 {

SPK_INLINE void tma_prefetch_map(const spk_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

SPK_INLINE void tma_load_2d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
}

/* To the same place of every block of the cluster that is in the mask; each one's barrier there counts the bytes. */
SPK_INLINE void tma_load_2d_multicast(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, unsigned short blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
                 "%4}], [%2], %5;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks)
                 : "memory");
}

/* How L2 keeps what a load brings (the last argument of those that have one): lines that nothing else will read make room first. */
SPK_INLINE unsigned long long read_once()
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

SPK_INLINE void tma_load_2d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, unsigned long long policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], "
                 "[%2], %5;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "l"(policy)
                 : "memory");
}

SPK_INLINE void tma_load_3d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

SPK_INLINE void tma_load_4d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int z, int w)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

/* Into the same place of every block of the cluster whose bit is set in `blocks`; each one's barrier there counts the bytes. */
SPK_INLINE void tma_load_3d_multicast(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int z, unsigned short blocks)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, "
                 "%5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
                 : "memory");
}

SPK_INLINE void tma_store_2d(const spk_tensor_map *map, unsigned from, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y)
                 : "memory");
}

SPK_INLINE void tma_store_3d(const spk_tensor_map *map, unsigned from, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y),
                 "r"(z)
                 : "memory");
}

SPK_INLINE void tma_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Until all but the last `left` groups of this thread have read their shared memory. */
template <int left> SPK_INLINE void tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

} // namespace sm90

#endif

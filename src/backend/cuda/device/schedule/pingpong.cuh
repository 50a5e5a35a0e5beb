/* Two warpgroups that multiply in turns (ping-pong): each has tiles of its own, and one stores while the other multiplies. A warpgroup
 * waits until the other has asked for its last products: the ring's barriers tell only neighbouring phases apart, and the stages of its
 * tile come after the other's. Before the first turn warpgroup 1 passes it to warpgroup 0. */
#ifndef SPK_DEVICE_PINGPONG_CUH
#define SPK_DEVICE_PINGPONG_CUH

#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

enum { FIRST_TURN = 8 }; /* named barriers: of each warpgroup */

template <bool pingpong> SPK_INLINE void turn_wait(int group)
{
    if (pingpong)
        named_barrier(FIRST_TURN + group, 256);
}

template <bool pingpong> SPK_INLINE void turn_pass(int group)
{
    if (pingpong)
        named_barrier_arrive(FIRST_TURN + group, 256);
}

} // namespace sm90

#endif

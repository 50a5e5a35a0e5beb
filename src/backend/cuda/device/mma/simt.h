/* A team's tile with ordinary multiply-adds (simt.cuh): what both sides know beside the team's constants. */
#ifndef SPK_CUDA_SIMT_H
#define SPK_CUDA_SIMT_H

#include "backend/cuda/device/copy/team.h"

/* The constants.
 *   THREAD_M THREAD_N   sums of a thread */
#define SIMT_CONSTANTS(C) \
    C(THREAD_M, thread_m) \
    C(THREAD_N, thread_n)
typedef struct simt_constants {
    SIMT_CONSTANTS(SPK_CONSTANT_MEMBER)
} simt_constants;

/* Of a team, `down` threads below each other. */
SPK_BOTH int simt_threads(int down, int tile_n, int thread_n)
{
    return down * tile_n / thread_n;
}

#endif

/* Host side of the kernels on ordinary multiply-adds (device/simt.cuh): how a block's rows and the columns are cut for the threads. */
#ifndef SPK_BACKEND_CUDA_PLAN_SIMT_H
#define SPK_BACKEND_CUDA_PLAN_SIMT_H

#include "backend/cuda/plan/gather.h"

enum { SIMT_TILE_N, SIMT_THREAD_N, SIMT_TILE_K, SIMT_STAGES };

typedef struct simt_shape {
    gather_shape team;
    int thread_m, down; /* threads of a column */
} simt_shape;

/* The tile for blocks of so many rows, and its threads. */
simt_shape spk_simt_tile(int rows, const spk_params *params);
bool spk_simt_tile_fits(const spk_problem *problem, const spk_params *params, const simt_shape *shape, const char **why);

/* The rate of its instructions. */
double spk_simt_tflops(const spk_problem *problem, const spk_device *device, const spk_params *params, const simt_shape *shape);

#endif

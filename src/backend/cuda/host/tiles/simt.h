/* Host side of the kernels on ordinary multiply-adds (device/mma/simt.cuh): how a block's rows and the columns are cut for the threads. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_SIMT_H
#define SPK_BACKEND_CUDA_HOST_TILES_SIMT_H

#include "backend/cuda/device/mma/simt.h"
#include "backend/cuda/host/tiles/gather.h"

/* The tunables of a row. */
typedef struct simt_tunables {
    int tile_n, thread_n, tile_k, stages;
} simt_tunables;
#define SIMT_TUNED(row, params)                                                                                        \
    ((simt_tunables){SPK_TUNED(row, params, TILE_N), SPK_TUNED(row, params, THREAD_N), SPK_TUNED(row, params, TILE_K), \
                     SPK_TUNED(row, params, STAGES)})

typedef struct simt_shape {
    gather_shape team;
    simt_constants c;
    int down; /* threads of a column */
} simt_shape;

/* The tile for blocks of so many rows, and its threads. */
simt_shape spk_simt_tile(int rows, simt_tunables tuned);
/* One of `height` rows. */
simt_shape spk_simt_tile_of(int height, simt_tunables tuned);
bool spk_simt_tile_fits(const spk_problem *problem, const simt_shape *shape, const char **why);

/* What the program is compiled with beyond the team's constants. */
void spk_simt_define(simt_constants constants, spk_build *build);

/* The rate of its instructions. */
double spk_simt_tflops(const spk_problem *problem, const spk_device *device, const simt_shape *shape);

#endif

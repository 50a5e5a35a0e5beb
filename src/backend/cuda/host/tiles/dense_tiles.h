/* Host side of the dense products on a team's tiles (device/copy/dense.cuh): from the tiles of a team to the program's options, and binding
 * and running. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_DENSE_TILES_H
#define SPK_BACKEND_CUDA_HOST_TILES_DENSE_TILES_H

#include "backend/cuda/device/copy/dense.h"
#include "backend/cuda/host/tiles/gather.h"

/* TILE_M, TILE_N, TILE_K, STAGES and TEAM_THREADS of s->c are given: the rest. adding: the entry of the second launch, where K is cut into
 * parts. */
void spk_dense_tiles_complete(const spk_problem *problem, gather_shape *s, int parts, const char *adding);

/* What must hold for any of these kernels: of the tile, and of the parts. */
bool spk_dense_tiles_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, const char **why);

/* A program's options, but for what the row defines beyond them. */
void spk_dense_tiles_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build);

/* Microseconds: the slowest of arithmetic (tflops of the instructions), shared-memory filling from L2, the chain of steps, and memory. */
double spk_dense_tiles_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, int parts, double tflops);

/* ---- binding and running: the same for all */

void spk_dense_tiles_unbind(spk_bound *bound);
spk_status spk_dense_tiles_bind(spk_bound *bound, const gather_shape *s, int parts, const spk_build *build);
spk_status spk_dense_tiles_run(const spk_bound *bound, const spk_args *args, void *stream);

#endif

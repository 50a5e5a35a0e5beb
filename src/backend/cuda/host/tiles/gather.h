/* Host side of the kernels that gather tiles (device/copy/gather.cuh): from the tiles of a team to the program's options, and binding and
 * running. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_GATHER_H
#define SPK_BACKEND_CUDA_HOST_TILES_GATHER_H

#include "backend/cuda/device/copy/gather.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/schedule/long_rows.h"

int64_t spk_gather_ceil(int64_t a, int64_t b);
int spk_gather_round(int value, int step);
int spk_gather_block_rows(const spk_problem *problem);
int spk_gather_block_cols(const spk_problem *problem);
bool spk_gather_a_along_k(const spk_problem *problem);

/* A team's tile: TILE_M, TILE_N, TILE_K, STAGES and TEAM_THREADS are given, the rest follows in spk_gather_complete. */
typedef struct gather_shape {
    team_constants c;
    const char *adding; /* the entry of the second launch, which adds the pieces of long rows; NULL: rows stay whole */
} gather_shape;

/* The most elements of one copy: a power of two, at most 16 bytes, that divides all of them. */
int spk_gather_vector(spk_dtype dtype, int64_t a, int64_t b, int64_t c);

/* Elements from line to line: lines begin at 16 bytes; eight lines of a fragment lie in different banks. along_k: lines run along K. */
int spk_gather_pitch(int line, int bytes, bool along_k);
int spk_gather_shared_limit(const spk_device *device);

int spk_gather_sum_bytes(const spk_problem *problem); /* of a sum */
double spk_gather_processors(const spk_device *device);

/* Teams of a thread block, from the bytes of a stage and of the sums, which take the stages' place. */
void spk_gather_fit(gather_shape *s, int stage_bytes, int sum_bytes);
void spk_gather_complete(const spk_problem *problem, gather_shape *s);

/* Teams that a multiprocessor holds at once. */
int spk_gather_resident(const gather_shape *s);

/* Whether the tiles fit; what must hold for any of these kernels. */
bool spk_gather_applicable(const spk_problem *problem, const spk_device *device, const gather_shape *s, const char **why);
void spk_team_define(team_constants constants, spk_build *build);

/* A program's options, but for what the row defines beyond them. */
void spk_gather_build(const spk_problem *problem, const gather_shape *s, const char *file, const char *entry, spk_build *build);

/* Microseconds: the slowest of arithmetic (tflops of the instructions), shared-memory filling from L2, and memory; and the time of a chain
 * of steps. */
double spk_gather_predict(const spk_problem *problem, const spk_device *device, const gather_shape *s, double tflops);

/* ---- binding and running: the same for all */

void spk_gather_unbind(spk_bound *bound);
spk_status spk_gather_bind(spk_bound *bound, const gather_shape *s, const spk_build *build);
spk_status spk_gather_run(const spk_bound *bound, const spk_args *args, void *stream);

#endif

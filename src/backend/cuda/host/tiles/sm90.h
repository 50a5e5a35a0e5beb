/* What the host sides of the Hopper rows share: op(A)'s block as the problem has it, tensor maps of B and D, the parameters of a launch,
 * the model. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_SM90_H
#define SPK_BACKEND_CUDA_HOST_TILES_SM90_H

#include "backend/cuda/device/common/sm90.h"
#include "backend/cuda/host/frame/launch.h"

int spk_sm90_block_rows(const spk_problem *problem);
int spk_sm90_block_cols(const spk_problem *problem);
int64_t spk_sm90_grid_rows(const spk_problem *problem);

/* One box brings a tile of B. */
bool spk_sm90_b_whole(const spk_problem *problem);

/* What both rows ask of a problem. */
bool spk_sm90_applicable(const spk_problem *problem, const char **why);

/* ---- tensor maps */

/* A further dimension where there is a batch: its items, `stride` elements apart (0: one for all). */
spk_tensor_map_desc spk_sm90_map_items(const spk_problem *problem, spk_tensor_map_desc map, int64_t stride);

/* values, a box of `rows` rows by `chunk` columns of one block. Every tile lies in shared memory as device/mma/mma.cuh says. */
spk_tensor_map_desc spk_sm90_map_values(const spk_bound *bound, const void *values, int rows, int chunk);

/* values, a box of one whole block of up to 64 rows by `chunk` columns. A block number of nnzb gives zeros. */
spk_tensor_map_desc spk_sm90_map_block(const spk_bound *bound, const void *values, int chunk);
spk_tensor_map_desc spk_sm90_map_b(const spk_problem *problem, const void *b, int columns, int chunk);

/* columns: of a staging tile, up to 64. */
spk_tensor_map_desc spk_sm90_map_d(const spk_problem *problem, void *d, int piece_rows, int columns);

/* TMA writes whole 16 bytes, also where the last of them reach beyond the end of a line of D: what lies there between the lines is not
 * ours. */
bool spk_sm90_d_direct(const spk_problem *problem, const void *d);

/* spk_kernel_ops.accepts */
bool spk_sm90_accepts(const spk_bound *bound, const spk_args *args);

/* The three maps of a run. Those that the kernel will not use (no blocks; D stored directly) are left as they are. */
spk_status spk_sm90_maps(const spk_bound *bound, const spk_args *args, const spk_tensor_map_desc *a, const spk_tensor_map_desc *b,
                         const spk_tensor_map_desc *d, bool direct, CUtensorMap maps[3]);

/* ---- the model */

int spk_sm90_processors(const spk_device *device);

/* Of one multiprocessor, measured on an H200. */
static const double SM90_FLOPS_US = 4.9e6, SM90_L2_BYTES_US = 65e3, SM90_ISSUE_US = 0.14, SM90_HBM_BYTES_US = 4.0e6,
                    SM90_L2_ALONE = 1.5; /* times as much from L2 where most others are idle */

typedef struct sm90_load {
    double tiles, longest; /* tiles; stages of the longest */
    double stages;         /* of all tiles */
    double stage_flops, stage_bytes, stage_issue_us;
    double tile_us; /* filling the ring and storing D, not hidden */
    int blocks_per_processor;
} sm90_load;

/* The longest of the tensor cores, L2, issuing and memory, in whole waves of tiles. */
double spk_sm90_predict(const spk_problem *problem, const spk_device *device, const sm90_load *load);

/* Stages of the fullest block row, from its blocks. */
double spk_sm90_longest_row(const spk_problem *problem);

#endif

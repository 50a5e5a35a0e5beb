/* What the host sides of attention's rows share: the task, and the tiles of it. */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_H

#include "backend/cuda/device/attention/attention.h"
#include "backend/cuda/host/indices/index.h"

/* band.left or band.right as programs and their tasks have it: 0 where it limits no query of this problem, however it was asked for. */
int spk_cuda_attention_limit(const spk_problem *problem, int64_t limit);

/* What of a task does not change from run to run; index: the mask's, NULL: not yet. And that of a run. */
attention_task spk_cuda_attention_task(const spk_problem *problem, const spk_cuda_index *index);
void spk_cuda_attention_fill(const spk_problem *problem, const spk_args *args, attention_task *task);

/* Heads of Q that one list of the mask, and one of K and V, serve; without a mask all share. */
int spk_cuda_attention_shared_heads(const spk_problem *problem);

/* Tiles of `rows` queries of `heads` heads, which are numbered: those of a block row of the mask (without one, of all queries), block rows,
 * heads, items. */
typedef struct attention_tiling {
    int rows, heads, step_keys;
    int block_rows;         /* queries of a block row, or all */
    int64_t block_tiles;    /* of a block row */
    int64_t row_tiles, all; /* of a head, and in all */
    int64_t head_tiles;     /* of an item's heads */
} attention_tiling;

attention_tiling spk_cuda_attention_tiling(const spk_problem *problem, int rows, int heads, int step_keys);

/* Steps of step_keys keys of a tile; the mask's indices are on the host. */
int64_t spk_cuda_attention_steps(const spk_problem *problem, const attention_tiling *tiling, int64_t tile);

#endif

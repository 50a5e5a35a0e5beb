/* Host side of the attention rows whose thread blocks have a tile of queries each (device/attention/attention_tiles.h). */
#ifndef SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_TILES_H
#define SPK_BACKEND_CUDA_HOST_ATTENTION_ATTENTION_TILES_H

#include "backend/cuda/runtime/program.h"
#include "backend/cuda/device/attention/attention_tiles.h"
#include "kernel/kernel.h"

/* What a program is compiled with, beyond the constants of its own, and launched with. */
typedef struct attention_tiles_shape {
    attention_tiles_constants c;
    int splits;
    int shared_bytes; /* the row sets it */
} attention_tiles_shape;

/* Of tiles of `rows` rows: queries of a block row of the mask, and of several heads where one has fewer. most_vector: elements that are
 * read at once, at most. */
attention_tiles_shape spk_attention_tiles_of(const spk_problem *problem, int rows, int warps, int step_keys, int splits, int most_vector);

/* Why such tiles are not for the problem or the device; NULL: they are. The first is to be asked before shapes are made. */
const char *spk_attention_tiles_problem_refusal(const spk_problem *problem);
const char *spk_attention_tiles_refusal(const spk_problem *problem, const spk_device *device, const attention_tiles_shape *shape);

/* The model: what a multiprocessor that is busy with one such block has to do. */
typedef struct attention_tiles_load {
    double step_us, tile_us; /* a step of its keys; beginning and end */
    double together;         /* blocks that a multiprocessor has at a time: they take step_us together as one after the other, */
    double alone;            /* and one alone takes so many times as long */
} attention_tiles_load;
double spk_attention_tiles_predict(const spk_problem *problem, const spk_device *device, const attention_tiles_shape *shape,
                                   attention_tiles_load load);

/* Blocks that share a multiprocessor's memory, registers and threads. */
int spk_attention_tiles_together(const spk_device *device, const attention_tiles_shape *shape, int registers);

/* The common constants; the row defines its own after them. */
void spk_attention_tiles_build(const spk_problem *problem, const attention_tiles_shape *shape, const char *file, const char *entry,
                               spk_build *build);

spk_status spk_attention_tiles_bind(spk_bound *bound, const attention_tiles_shape *shape, const spk_build *program);
void spk_attention_tiles_unbind(spk_bound *bound);
spk_status spk_attention_tiles_run(const spk_bound *bound, const spk_args *args, void *stream);

/* Whether Q, K and V of a run may be read `vector` elements at a time. */
bool spk_attention_tiles_whole(const spk_problem *problem, const spk_args *args, int vector);

#endif

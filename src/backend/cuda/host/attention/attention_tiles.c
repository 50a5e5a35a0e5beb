/* Attention in tiles: how the work is cut, the program's constants, a run. */
#include "backend/cuda/host/attention/attention_tiles.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/helpers/attention_merge.h"
#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch.h"
#include "op/attention/attention.h"

enum { RESERVED_BYTES = 1024, REGISTERS = 65536, MOST_TOGETHER = 16, PIECE = 8 };

static const double L2_TIMES = 2, /* as many bytes as from memory */
    FETCHED = 0.85;               /* of these, by threads that also multiply */

typedef struct state {
    spk_cuda_index index;
    CUfunction function, merge;
    attention_task task;
    attention_cut cut;
    attention_tiles_shape shape;
    unsigned blocks; /* of threads */
} state;

/* Queries of a block row of the mask, or all; of packed sequences those of one, on average. */
static int64_t block_queries(const spk_problem *p)
{
    if (p->packing.sequences > 0)
        return (p->m + p->packing.sequences - 1) / p->packing.sequences;
    return p->pattern != NULL && p->pattern->block_rows < p->m ? p->pattern->block_rows : p->m;
}

static int tile_heads(const spk_problem *p, int rows)
{
    const int64_t queries = block_queries(p);
    const int shared = spk_cuda_attention_shared_heads(p);
    int heads = 1;
    while (queries * 2 * heads <= rows && shared % (2 * heads) == 0)
        heads *= 2;
    return heads;
}

/* Elements that all lines of Q, K and V are made of, as far as their distances say; a power of two. */
static int vector_of(const spk_problem *p, int most)
{
    int64_t steps = p->k | p->depth_v;
    for (int i = ATTENTION_Q; i <= ATTENTION_V; i++)
        steps |= spk_operand_steps(&p->operand[i]);
    int vector = most;
    while (steps % vector != 0)
        vector /= 2;
    return vector;
}

attention_tiles_shape spk_attention_tiles_of(const spk_problem *p, int rows, int warps, int step_keys, int splits, int most_vector)
{
    const spk_packing *packing = &p->packing;
    const bool ragged = packing->sequences > 0 || packing->key_lengths != 0, tiled = p->lists.tiles > 0;
    const bool limited = spk_cuda_attention_limit(p, p->band.left) != 0 || spk_cuda_attention_limit(p, p->band.right) != 0;
    attention_tiles_shape s = {.c = {.warps = warps,
                                     .tile_heads = tile_heads(p, rows),
                                     .step_keys = step_keys,
                                     .depth = (int)p->k,
                                     .depth_v = (int)p->depth_v,
                                     .vector = vector_of(p, most_vector),
                                     .masked = p->pattern != NULL,
                                     .limited = limited,
                                     .capped = p->band.use_softcap != 0,
                                     .want_lse = p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT,
                                     .split = splits > 1,
                                     .scrub = (limited || ragged || packing->page_keys > 0 || tiled) && !p->assume_finite,
                                     .packed = packing->sequences > 0,
                                     .ragged = ragged,
                                     .paged = packing->page_keys > 0,
                                     .tiled = tiled},
                               .splits = splits};
    s.c.tile_rows = rows / s.c.tile_heads;
    return s;
}

const char *spk_attention_tiles_problem_refusal(const spk_problem *p)
{
    if (p->packing.sequences > 0 && p->pattern != NULL)
        return "packed sequences have no mask of blocks here";
    if (p->m > INT_MAX / 4 || p->packing.sequences > INT_MAX / 8 || p->n > INT_MAX / 4 ||
        spk_operand_heads(&p->operand[ATTENTION_Q]) > INT_MAX / 4)
        return "it counts queries, keys and heads with 29 bits";
    if (p->batch > INT_MAX)
        return "it counts items with 31 bits";
    return NULL;
}

static attention_tiling tiling_of(const spk_problem *p, const attention_tiles_shape *s)
{
    return spk_cuda_attention_tiling(p, s->c.tile_rows, s->c.tile_heads, s->c.step_keys);
}

/* A device that nobody has asked is one of the largest. */
static int processors_of(const spk_device *device)
{
    return device->processors > 0 ? device->processors : 132;
}

const char *spk_attention_tiles_refusal(const spk_problem *p, const spk_device *device, const attention_tiles_shape *s)
{
    const int most = device->state != NULL ? spk_cuda_of(device)->shared_bytes : 0;
    const double tiles = (double)tiling_of(p, s).all, parts = tiles * s->splits;
    if (most > 0 && s->shared_bytes > most)
        return "its tiles do not fit into shared memory";
    if (parts > INT_MAX)
        return "it counts tiles with 31 bits";
    if (s->c.tile_rows % 32 == 0 && s->c.tile_rows / 2 >= block_queries(p))
        return "a lower tile holds all of a block row";
    if (s->c.step_keys >= 2 * p->n && s->c.step_keys > 32)
        return "a smaller step holds all keys";
    if (s->splits > 1 && (parts > 4.0 * processors_of(device) || p->n < (int64_t)s->splits * s->c.step_keys))
        return "there are tiles enough, or too few keys to be shared out";
    return NULL;
}

/* ---- the model */

int spk_attention_tiles_together(const spk_device *device, const attention_tiles_shape *s, int registers)
{
    const int memory =
        device->state != NULL && spk_cuda_of(device)->shared_processor_bytes > 0 ? spk_cuda_of(device)->shared_processor_bytes : 164 * 1024;
    const int by_memory = memory / (s->shared_bytes + RESERVED_BYTES), by_registers = REGISTERS / (s->c.warps * 32 * registers);
    const int least = by_memory < by_registers ? by_memory : by_registers;
    return least < 1 ? 1 : least < MOST_TOGETHER ? least : MOST_TOGETHER;
}

/* K and V of a step. once: nothing else reads these keys, else L2 has them. */
static double brought_us(const spk_problem *p, const spk_device *device, const attention_tiles_shape *s, bool once)
{
    const double gbs = device->stream_gbs > 0 ? device->stream_gbs : 2000, bytes_us = FETCHED * gbs * 1e3 / processors_of(device);
    const double elements = (double)s->c.step_keys * (s->c.depth + s->c.depth_v);
    return elements * (double)spk_dtype_bytes(p->operand[ATTENTION_K].dtype) / (once ? bytes_us : L2_TIMES * bytes_us);
}

double spk_attention_tiles_predict(const spk_problem *p, const spk_device *device, const attention_tiles_shape *s,
                                   attention_tiles_load load)
{
    const attention_tiling t = tiling_of(p, s);
    const double whole = fmax((double)t.all, 1), tiles = whole * s->splits, processors = processors_of(device);
    const double queries = fmax(fmin(s->c.tile_rows, (double)block_queries(p)), 1);
    /* a limit goes down a tile by as many keys as it has rows: half of them are waste, and of a step half */
    const double edges = s->c.limited ? 0.5 * fmax(queries / s->c.step_keys, 1) : 0;
    const double seen = p->pairs * (double)p->batch / (whole * queries * s->c.tile_heads * s->c.step_keys) + edges;
    const double steps = fmax((edges > 0 ? seen : ceil(seen - 0.01)) / s->splits, 1), each = tiles / processors;
    const double waves = ceil(each / load.together), last = fmax(fmin(each, load.together), 1);
    const double turns = s->c.limited || s->c.masked ? 0.2 * waves * load.together + 0.8 * fmax(each, 1) : waves * last;
    /* one block alone waits for its memory and for itself */
    const double step_us = fmax(load.step_us * (last >= 2 ? 1 : load.alone), brought_us(p, device, s, t.row_tiles == 1));
    return 4 + (s->splits > 1 ? 3 + 0.05 * s->splits : 0) + turns * (steps * step_us + load.tile_us);
}

/* ---- the program */

void spk_attention_tiles_build(const spk_problem *p, const attention_tiles_shape *s, const char *file, const char *entry, spk_build *build)
{
    const attention_tiles_constants constants = s->c;
    spk_build_begin(build, file, entry, p);
    build->shared_bytes = s->shared_bytes;
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    ATTENTION_TILES_CONSTANTS(SPK_BUILD_DEFINE)
}

void spk_attention_tiles_unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* Queries of all heads and items. */
static int64_t all_queries(const spk_problem *p)
{
    return p->m * spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch;
}

static size_t part_bytes(const spk_problem *p, int splits)
{
    return splits > 1 ? (size_t)splits * (size_t)all_queries(p) * (size_t)(p->depth_v + 2) * sizeof(float) : 0;
}

static spk_status prepare(const spk_bound *bound, const spk_build *program, state *made)
{
    SPK_TRY(spk_cuda_function(bound->device, program, &made->function));
    if (made->shape.splits == 1)
        return SPK_OK;
    spk_build merge = {.file = "attention_merge.cu", .entry = "attention_merge"};
    spk_build_define(&merge, "DTYPE_A", bound->problem.operand[ATTENTION_Q].dtype);
    return spk_cuda_function(bound->device, &merge, &made->merge);
}

static void set_cut(const spk_problem *p, state *made)
{
    const attention_tiling t = tiling_of(p, &made->shape);
    made->cut = (attention_cut){.head_tiles = (int)t.head_tiles,
                                .block_rows = t.block_rows,
                                .block_tiles = (int)t.block_tiles,
                                .row_tiles = (int)t.row_tiles,
                                .splits = made->shape.splits};
    made->blocks = (unsigned)(t.all * made->shape.splits);
}

spk_status spk_attention_tiles_bind(spk_bound *bound, const attention_tiles_shape *shape, const spk_build *program)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    bound->workspace_bytes = part_bytes(&bound->problem, shape->splits);
    made->shape = *shape;
    set_cut(&bound->problem, made);
    spk_status status = prepare(bound, program, made);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status != SPK_OK)
        spk_attention_tiles_unbind(bound);
    else
        made->task = spk_cuda_attention_task(&bound->problem, &made->index);
    return status;
}

/* ---- a run */

bool spk_attention_tiles_whole(const spk_problem *p, const spk_args *args, int vector)
{
    const uintptr_t bytes = (uintptr_t)vector * spk_dtype_bytes(p->operand[ATTENTION_Q].dtype);
    return (((uintptr_t)args->at[ATTENTION_Q] | (uintptr_t)args->at[ATTENTION_K] | (uintptr_t)args->at[ATTENTION_V]) & (bytes - 1)) == 0;
}

static spk_status merge(const spk_bound *bound, const state *made, const attention_task *to, const attention_cut *cut, CUstream stream)
{
    attention_merge_task task = {.to = *to, .parts = cut->parts, .part_lse = cut->part_lse, .splits = cut->splits};
    void *parameters[] = {&task};
    return spk_cuda_launch_early(bound->device, made->merge, (unsigned)all_queries(&bound->problem), ATTENTION_MERGE_THREADS, 0, stream,
                                 parameters);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    const bool split = made->shape.splits > 1;
    attention_task task = made->task;
    attention_cut cut = made->cut;
    spk_cuda_attention_fill(p, args, &task);
    cut.whole = spk_attention_tiles_whole(p, args, made->shape.c.vector);
    cut.pieces = (uintptr_t)task.o % 16 == 0 && spk_operand_steps(&p->operand[ATTENTION_O]) % PIECE == 0;
    if (split) {
        cut.parts = args->workspace;
        cut.part_lse = cut.parts + (int64_t)cut.splits * all_queries(p) * p->depth_v;
    }
    void *parameters[] = {&task, &cut};
    SPK_TRY(spk_cuda_launch_early(bound->device, made->function, made->blocks, (unsigned)made->shape.c.warps * 32, made->shape.shared_bytes,
                                  stream, parameters));
    return split ? merge(bound, made, &task, &cut, stream) : SPK_OK;
}

spk_status spk_attention_tiles_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->blocks == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

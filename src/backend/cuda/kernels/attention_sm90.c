/* attention_sm90: host side. */
#include "backend/cuda/kernels/attention_sm90.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/helpers/attention_join.h"
#include "backend/cuda/helpers/attention_longest.h"
#include "backend/cuda/helpers/attention_merge.h"
#include "backend/cuda/model/attention_sm90.h"
#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/host/attention/attention_order.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "op/attention/attention.h"

#define TUNED(params, name) SPK_TUNED(attention_sm90, params, name)

enum {
    ROWS = 64,
    MOST_DEPTH = 256,
    MOST_SUMS_OF_TWO = 196,
    MOST_OF_TWO_BESIDE_MORE = 190,
    MOST_OF_TWO_JOINED = 184,
    MOST_SUMS_OF_THREE = 128,
    MOST_BESIDE_MORE = 110
};
static const double BRIEF_BYTES = 32 << 20; /* a problem that L2 holds */

typedef struct state {
    spk_cuda_index index;
    CUfunction function, merge, join, longest; /* merge, join, longest: NULL where there is nothing for them to do */
    attention_task task;
    attention_order order;
    attention_shape shape;
    int blocks; /* of threads */
    attention_lists lists;
    int section;             /* COUNTED: tiles of neighbouring heads that begin together */
    size_t parts, part_lses; /* floats in the workspace: sums, LSE; with COUNTED the list lies behind them */
} state;

static bool want_lse(const spk_problem *p)
{
    return p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT;
}

/* Queries of a block row of the mask, or all; of packed sequences those of one, on average. */
static int64_t block_queries(const spk_problem *p)
{
    const int64_t sequences = p->packing.sequences, rows = sequences > 0 ? (p->m + sequences - 1) / sequences : p->m;
    return p->pattern != NULL && p->pattern->block_rows < rows ? p->pattern->block_rows : rows;
}

/* Heads of whose queries a warpgroup's 64 rows are made, where a block row has fewer. */
static int tile_heads(const spk_problem *p)
{
    const int64_t rows = block_queries(p);
    const int shared = spk_cuda_attention_shared_heads(p);
    int heads = 1;
    while (rows * 2 * heads <= ROWS && shared % (2 * heads) == 0)
        heads *= 2;
    return heads;
}

/* With a mask, tiles of packed sequences end with its block rows, too. */
static attention_tiling tiling_of(const spk_problem *p, const attention_shape *s, int step_keys)
{
    attention_tiling t = spk_cuda_attention_tiling(p, s->rows, s->heads, step_keys);
    if (p->packing.sequences == 0 || p->pattern == NULL || t.block_rows == 0)
        return t;
    t.block_tiles = (t.block_rows + s->rows - 1) / s->rows;
    t.row_tiles = (p->m / t.block_rows + 2 * p->packing.sequences) * t.block_tiles;
    t.all = t.row_tiles * t.head_tiles * p->batch;
    return t;
}

static attention_constants constants_of(const spk_problem *p, const spk_params *params, int processors)
{
    attention_constants c = {.consumers = TUNED(params, CONSUMERS),
                             .form = TUNED(params, FORM),
                             .step_keys = TUNED(params, STEP),
                             .depth = (int)p->k,
                             .depth_v = (int)p->depth_v,
                             .tile_heads = tile_heads(p),
                             .q_held = TUNED(params, Q_HELD),
                             .turns = TUNED(params, TURNS),
                             .join = TUNED(params, JOIN),
                             .masked = p->pattern != NULL,
                             .left = spk_cuda_attention_limit(p, p->band.left) != 0,
                             .right = spk_cuda_attention_limit(p, p->band.right) != 0,
                             .sinks = p->band.sinks != 0,
                             .capped = p->band.use_softcap != 0,
                             .want_lse = want_lse(p),
                             .split = TUNED(params, SPLIT) > 1,
                             .packed = p->packing.sequences > 0,
                             .lengths = p->packing.key_lengths != 0,
                             .paged = p->packing.page_keys > 0,
                             .tiled = p->lists.tiles > 0};
    c.unit = c.masked && p->pattern->block_cols < c.step_keys ? p->pattern->block_cols : c.step_keys;
    c.unit = c.paged && p->packing.page_keys < c.unit ? (int)p->packing.page_keys : c.unit;
    c.tile_rows = ROWS / c.tile_heads;
    if (!c.split) {
        const attention_shape s = attention_shape_of(c);
        const attention_tiling t = tiling_of(p, &s, c.step_keys);
        c.shared = !c.join && c.tile_heads == 1 && spk_cuda_attention_shares(p, &t, processors, s.rings);
        c.counted = spk_cuda_attention_sorts(p, &t, processors * s.rings) && p->packing.sequences <= ATTENTION_LONGEST_SEQUENCES;
    }
    c.scrub = (c.left || c.right || c.packed || c.lengths || c.paged || c.tiled) && !p->assume_finite;
    return c;
}

static const char *operand_refusal(const spk_problem *p)
{
    for (int i = ATTENTION_Q; i <= ATTENTION_V; i++)
        if (spk_operand_steps(&p->operand[i]) % 8 != 0)
            return "rows, heads and items of Q, K and V must be multiples of 8 elements apart";
    return NULL;
}

static const char *problem_refusal(const spk_problem *p)
{
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    if (dtype != SPK_F16 && dtype != SPK_BF16)
        return "it is for f16 and bf16";
    if (p->k % 8 != 0 || p->depth_v % 8 != 0 || p->k < 16 || p->k > MOST_DEPTH || p->depth_v < 16 || p->depth_v > MOST_DEPTH)
        return "the depths must be multiples of 8 between 16 and 256";
    if (p->n == 0)
        return "there are no keys";
    if (p->m > INT_MAX / 4 || p->packing.sequences > INT_MAX / 8 || p->n > INT_MAX / 4 ||
        spk_operand_heads(&p->operand[ATTENTION_Q]) > INT_MAX / 4)
        return "it counts queries, keys and heads with 29 bits";
    return operand_refusal(p);
}

/* Registers of a thread's sums, exponentials and Q for which there is room. Three warpgroups have fewer, and none to spare for what else a
 * program may do. */
static int most_sums(const attention_constants *c)
{
    const bool more =
        c->masked || c->sinks || c->capped || c->split || c->scrub || c->packed || c->lengths || c->paged || (c->want_lse && c->join);
    if (c->consumers < 3 && c->join)
        return MOST_OF_TWO_JOINED;
    if (c->consumers < 3)
        return more || c->turns || c->left || c->right ? MOST_OF_TWO_BESIDE_MORE : MOST_SUMS_OF_TWO;
    return more ? MOST_BESIDE_MORE : MOST_SUMS_OF_THREE;
}

static const char *shape_refusal(const attention_constants *c, const attention_shape *s)
{
    if (c->consumers == 1 && (c->form != ATTENTION_BY_ROWS || c->turns))
        return "one warpgroup shares nothing";
    if (c->form == ATTENTION_ALONE && c->turns)
        return "warpgroups with tiles of their own do not take turns";
    if (s->stages < 2)
        return "too few stages fit into shared memory";
    if (c->join && s->q_slots < 2 && !c->q_held)
        return "the next tile's Q does not fit beside this one's";
    if (s->registers > most_sums(c))
        return "a thread would keep too many sums";
    if ((c->masked || c->paged) && (c->unit % 8 != 0 || c->step_keys % c->unit != 0 || s->units > ATTENTION_MOST_UNITS))
        return "a step is not made of whole blocks of the mask, or pages";
    return NULL;
}

static const char *size_refusal(const spk_problem *p, const attention_constants *c, const attention_shape *s, int splits, int processors)
{
    const double tiles = (double)tiling_of(p, s, c->step_keys).all;
    const int64_t rows = block_queries(p);
    const int shared = spk_cuda_attention_shared_heads(p);
    if (c->masked && p->pattern->block_cols > c->unit && p->pattern->block_cols % c->unit != 0)
        return "a block of the mask is not made of whole steps, or pages";
    if (c->paged && p->packing.page_keys % c->unit != 0)
        return "a page is not made of whole steps, or blocks of the mask";
    if (c->form == ATTENTION_BY_ROWS && c->consumers > 1 && rows <= c->tile_rows * (c->consumers - 1))
        return "fewer warpgroups hold all of a block row";
    if (c->form == ATTENTION_BY_HEADS && shared % s->heads != 0)
        return "so many heads do not share K, V and their list";
    if (c->step_keys >= 2 * p->n && c->step_keys > 64)
        return "a smaller step holds all keys";
    if (splits > 1 && (tiles * splits > 4 * processors || p->n < (int64_t)splits * c->step_keys))
        return "there are tiles enough, or too few keys to be shared out";
    return NULL;
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    *why = problem_refusal(p);
    if (*why != NULL)
        return false;
    const attention_constants c = constants_of(p, params, spk_sm90_processors(device));
    const attention_shape s = attention_shape_of(c);
    *why = shape_refusal(&c, &s);
    if (*why == NULL)
        *why = size_refusal(p, &c, &s, TUNED(params, SPLIT), spk_sm90_processors(device));
    return *why == NULL;
}

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_constants c = constants_of(p, params, spk_sm90_processors(device));
    return spk_cuda_attention_sm90_us(p, &c, block_queries(p), TUNED(params, SPLIT), spk_sm90_processors(device));
}

/* ---- the program */

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    const attention_constants constants = constants_of(p, params, spk_sm90_processors(device));
    spk_build_begin(build, "attention_sm90.cu", "attention_sm90", p);
    build->shared_bytes = attention_shape_of(constants).shared_bytes;
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    ATTENTION_CONSTANTS(SPK_BUILD_DEFINE)
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    if (made->lists.memory != NULL)
        bound->device->backend->release(bound->device, made->lists.memory);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* Rows of a tile, those of all its heads. */
static int64_t tile_rows(const attention_shape *s)
{
    return (int64_t)s->rows * s->heads;
}

static spk_status set_order(const spk_bound *bound, const attention_constants *c, state *made)
{
    const spk_problem *p = &bound->problem;
    const attention_shape *s = &made->shape;
    const attention_tiling t = tiling_of(p, s, c->step_keys);
    const int64_t most = (int64_t)spk_sm90_processors(bound->device) * s->rings;
    const int splits = TUNED(&bound->params, SPLIT);
    const int64_t tiles = t.all * splits;
    if (tiles > INT_MAX / 2)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d queries: the limit is 2^30", (long long)tiles, s->rows);
    made->order = (attention_order){.head_tiles = (int)t.head_tiles,
                                    .block_rows = t.block_rows,
                                    .block_tiles = (int)t.block_tiles,
                                    .row_tiles = (int)t.row_tiles,
                                    .tiles = (int)tiles,
                                    .splits = splits,
                                    .workers = (int)most,
                                    .early = spk_problem_bytes(p) < BRIEF_BYTES};
    made->blocks = (int)((tiles < most ? tiles + s->rings - 1 : most) / s->rings);
    made->order.workers = made->blocks * s->rings;
    made->section = (int)spk_cuda_attention_section(p, &t);
    if (tiles == 0 || splits > 1)
        return SPK_OK;
    SPK_TRY(spk_cuda_attention_order(bound->device, p, &t, made->order.workers, c->shared, &made->lists));
    made->order.offsets = made->lists.offsets;
    made->order.list = made->lists.tiles;
    made->order.shares = made->lists.shares;
    return SPK_OK;
}

/* Queries of all heads and items. */
static int64_t all_queries(const spk_problem *p)
{
    return p->m * spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch;
}

/* Rows of results that are merged. */
static int64_t part_rows(const spk_bound *bound, const state *made)
{
    const int splits = TUNED(&bound->params, SPLIT);
    return splits > 1 ? splits * all_queries(&bound->problem) : made->lists.share_count * tile_rows(&made->shape);
}

static void lay_out(spk_bound *bound, const attention_constants *c, state *made)
{
    const size_t rows = (size_t)part_rows(bound, made), sorted = c->counted ? 2 * (size_t)made->order.tiles + 1 : 0;
    made->parts = rows * (size_t)bound->problem.depth_v;
    made->part_lses = 2 * rows;
    bound->workspace_bytes = (made->parts + made->part_lses) * sizeof(float) + sorted * sizeof(int);
}

static spk_status prepare_merging(const spk_bound *bound, const char *file, const char *entry, CUfunction *function)
{
    spk_build program = {.file = file, .entry = entry};
    spk_build_define(&program, "DTYPE_A", bound->problem.operand[ATTENTION_Q].dtype);
    return spk_cuda_function(bound->device, &program, function);
}

static spk_status prepare(const spk_bound *bound, const attention_constants *c, state *made)
{
    spk_build program = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &made->function));
    if (made->order.splits > 1)
        SPK_TRY(prepare_merging(bound, "attention_merge.cu", "attention_merge", &made->merge));
    if (made->lists.joined_count > 0)
        SPK_TRY(prepare_merging(bound, "attention_join.cu", "attention_join", &made->join));
    if (!c->counted)
        return SPK_OK;
    program = (spk_build){.file = "attention_longest.cu", .entry = "attention_longest"};
    return spk_cuda_function(bound->device, &program, &made->longest);
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    const attention_constants c = constants_of(&bound->problem, &bound->params, spk_sm90_processors(bound->device));
    made->shape = attention_shape_of(c);
    spk_status status = set_order(bound, &c, made);
    lay_out(bound, &c, made);
    if (status == SPK_OK)
        status = prepare(bound, &c, made);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status != SPK_OK)
        unbind(bound);
    else
        made->task = spk_cuda_attention_task(&bound->problem, &made->index);
    return status;
}

/* ---- a run */

/* A box: 64 columns of `rows` rows of `heads` heads. once: no other tile reads it. A box is half a row where that has 256 bytes: what L2
 * fetched of the other half would be gone before it is asked for. */
static spk_status make_map(const spk_bound *bound, int i, const void *address, int rows, int heads, bool once, CUtensorMap *map)
{
    const spk_operand *o = &bound->problem.operand[i];
    const int64_t count = spk_operand_heads(o), items = spk_operand_items(o, bound->problem.batch);
    const spk_tensor_map_desc desc = {.dtype = o->dtype,
                                      .rank = 4,
                                      .swizzle_bytes = 128,
                                      .address = address,
                                      .sizes = {o->cols, o->rows, count, items},
                                      .strides = {0, o->ld, count > 1 ? o->head_stride : 8, items > 1 ? o->stride : 8},
                                      .box = {64, rows, heads, 1},
                                      .short_lines = once};
    return spk_cuda_tensor_map(spk_cuda_of(bound->device)->driver, &desc, map);
}

static spk_status merge(const spk_bound *bound, const state *made, const attention_task *to, const attention_order *order, CUstream stream)
{
    attention_merge_task task = {.to = *to, .parts = order->parts, .part_lse = order->part_lse, .splits = order->splits};
    void *parameters[] = {&task};
    return spk_cuda_launch_early(bound->device, made->merge, (unsigned)all_queries(&bound->problem), ATTENTION_MERGE_THREADS, 0, stream,
                                 parameters);
}

static spk_status join(const spk_bound *bound, const state *made, const attention_task *to, const attention_order *order, CUstream stream)
{
    const int rows = (int)tile_rows(&made->shape);
    attention_join_task task = {.to = *to,
                                .tiles = made->lists.joined,
                                .parts = order->parts,
                                .part_lse = order->part_lse,
                                .rows = rows,
                                .of_head = made->shape.rows};
    void *parameters[] = {&task};
    return spk_cuda_launch_early(bound->device, made->join, (unsigned)(made->lists.joined_count * (rows * 32 / ATTENTION_JOIN_THREADS)),
                                 ATTENTION_JOIN_THREADS, 0, stream, parameters);
}

static spk_status sort_lists(const spk_bound *bound, const state *made, const attention_task *of, int *list, CUstream stream)
{
    attention_longest_task task = {.task = *of,
                                   .tiles = made->order.tiles,
                                   .row_tiles = made->order.row_tiles,
                                   .head_tiles = made->order.head_tiles,
                                   .heads = made->shape.heads,
                                   .block_rows = made->order.block_rows,
                                   .block_tiles = made->order.block_tiles,
                                   .rows = made->shape.rows,
                                   .step_keys = TUNED(&bound->params, STEP),
                                   .section = made->section,
                                   .list = list,
                                   .lengths = list + made->order.tiles,
                                   .next = list + 2 * (int64_t)made->order.tiles};
    const unsigned sections = (unsigned)((made->order.tiles + made->section - 1) / made->section);
    void *parameters[] = {&task};
    return spk_cuda_launch_early(bound->device, made->longest, sections, ATTENTION_LONGEST_THREADS, 0, stream, parameters);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    const attention_constants c = constants_of(&bound->problem, &bound->params, spk_sm90_processors(bound->device));
    const spk_operand *o = &bound->problem.operand[ATTENTION_O];
    const bool once = made->order.row_tiles == 1;
    CUtensorMap maps[4];
    attention_task task = made->task;
    attention_order order = made->order;
    spk_cuda_attention_fill(&bound->problem, args, &task);
    order.pieces = (uintptr_t)task.o % 16 == 0 && spk_operand_steps(o) % 8 == 0;
    order.parts = args->workspace;
    order.part_lse = order.parts + made->parts;
    if (made->longest != NULL) {
        int *const list = (int *)(order.part_lse + made->part_lses);
        order.list = list;
        order.next = list + 2 * (int64_t)order.tiles;
        SPK_TRY(sort_lists(bound, made, &task, list, stream));
    }
    SPK_TRY(make_map(bound, ATTENTION_Q, task.q, c.tile_rows, c.tile_heads, false, &maps[0]));
    SPK_TRY(make_map(bound, ATTENTION_K, task.k, c.unit, 1, once, &maps[1]));
    SPK_TRY(make_map(bound, ATTENTION_V, task.v, c.unit, 1, once, &maps[2]));
    maps[3] = maps[0]; /* nothing is stored by it */
    if (made->shape.staged && order.pieces)
        SPK_TRY(make_map(bound, ATTENTION_O, task.o, ROWS / 4, 1, false, &maps[3])); /* a warp's rows */
    void *parameters[] = {&maps[0], &maps[1], &maps[2], &maps[3], &task, &order};
    SPK_TRY(spk_cuda_launch_early(bound->device, made->function, (unsigned)made->blocks, (unsigned)made->shape.threads,
                                  made->shape.shared_bytes, stream, parameters));
    if (made->join != NULL)
        return join(bound, made, &task, &order, stream);
    return made->merge != NULL ? merge(bound, made, &task, &order, stream) : SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->order.tiles == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

/* TMA reads from multiples of 16 bytes; a row's largest score is that of its largest product. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const bool capped = bound->problem.band.use_softcap && args->scalar[ATTENTION_SOFTCAP] != 0;
    return (capped || args->scalar[ATTENTION_SCALE] >= 0) && (!capped || args->scalar[ATTENTION_SOFTCAP] > 0) &&
           (((uintptr_t)args->at[ATTENTION_Q] | (uintptr_t)args->at[ATTENTION_K] | (uintptr_t)args->at[ATTENTION_V]) & 15) == 0;
}

const spk_kernel_ops attention_sm90_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = unbind,
                                           .accepts = accepts,
                                           .run = run,
                                           .batched = true,
                                           .device_indices = true,
                                           .source_hash = SPK_SOURCE_HASH};

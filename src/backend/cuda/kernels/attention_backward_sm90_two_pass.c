/* attention_backward_sm90_two_pass: host side. */
#include "backend/cuda/kernels/attention_backward_sm90_two_pass.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/host/attention/attention_backward_lists.h"
#include "backend/cuda/host/attention/attention_backward_remote.h"
#include "backend/cuda/host/attention/attention_backward_sm90.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "op/attention_backward/operands.h"

#define TUNED(params, name) SPK_TUNED(attention_backward_sm90_two_pass, params, name)

enum { MOST_DEPTH = 256, MOST_SUMS = 224, PASSES = 2 }; /* passes: by keys, by queries */

typedef struct state {
    spk_cuda_index index;
    CUfunction pass[PASSES], delta;
    attention_backward_task task;
    two_pass_shape shape[PASSES];
    two_pass_lists lists[PASSES];
    two_pass_remote remote; /* what they are in, where the device listed it */
    int64_t query_tiles;    /* of all heads and items */
    int blocks[PASSES];     /* of threads */
} state;

static two_pass_constants constants_of(const spk_problem *p, const spk_params *params, bool by_queries)
{
    two_pass_constants c = {.by_queries = by_queries,
                            .sharers = TUNED(params, SHARERS),
                            .paired = 0,
                            .groups = 2,
                            .depth = (int)p->k,
                            .depth_v = (int)p->depth_v,
                            .left = spk_cuda_attention_limit(p, p->band.left) != 0,
                            .right = spk_cuda_attention_limit(p, p->band.right) != 0,
                            .sinks = p->band.sinks != 0,
                            .tiled = p->lists.tiles > 0};
    if (c.depth + c.depth_v > 256) { /* no room for the sums of both gradients, or for the tiles of two queries' warpgroups */
        c.paired = !by_queries;
        c.sharers = c.paired ? 2 : c.sharers;
        c.groups = c.sharers;
    }
    c.scrub = (c.left || c.right || c.tiled) && !p->assume_finite;
    return c;
}

/* ---- what it takes */

static const char *pass_refusal(const spk_problem *p, const two_pass_constants *c)
{
    const two_pass_shape s = two_pass_shape_of(*c);
    if (s.first_stages == 0)
        return "too few stages fit into shared memory";
    if (s.registers > MOST_SUMS)
        return "a thread would keep too many sums";
    if (p->pattern == NULL)
        return NULL;
    const int64_t query_rows = c->by_queries ? s.rows : TWO_PASS_ROWS, key_rows = c->by_queries ? TWO_PASS_ROWS : s.rows;
    if (p->pattern->block_cols % key_rows != 0 || (p->pattern->block_rows % query_rows != 0 && p->pattern->block_rows < p->m))
        return "a block of the mask is not made of whole tiles";
    return NULL;
}

static void cut(const spk_problem *p, const spk_device *device, const spk_params *params, two_pass_cut cuts[PASSES])
{
    for (int pass = 0; pass < PASSES; pass++) {
        const two_pass_shape s = two_pass_shape_of(constants_of(p, params, pass == 1));
        cuts[pass] = (two_pass_cut){.by_queries = pass == 1, .own_rows = s.rows, .workers = spk_sm90_processors(device) * s.rings};
    }
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    *why = p->packing.sequences > 0 || p->packing.key_lengths != 0 ? "it takes no packed sequences and no lengths of keys"
                                                                   : spk_cuda_backward_sm90_refusal(p, MOST_DEPTH);
    for (int pass = 0; *why == NULL && pass < PASSES; pass++) {
        const two_pass_constants c = constants_of(p, params, pass == 1);
        *why = pass_refusal(p, &c);
    }
    if (*why == NULL && p->pattern != NULL && p->pattern->device_only) {
        two_pass_cut cuts[PASSES];
        cut(p, device, params, cuts);
        *why = spk_cuda_attention_backward_remote_refusal(p, cuts);
    }
    return *why == NULL;
}

/* Fitted to an H200's times (bench/results): of each pass, flops of a step in a microsecond of a multiprocessor; what a step takes beside
 * them, and where one warpgroup works alone; a tile; before the steps a start and the bytes of O and its gradient. */
static const double STEP_RATE[PASSES] = {5.0e6, 6.2e6}, STEP_US = 0.15, ALONE_STEP_US = 0.4, TILE_US = 2, START_US = 14, MEMORY_RATE = 3e6;

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const double heads = (double)(spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch),
                 heads_kv = (double)(spk_operand_heads(&p->operand[ATTENTION_K]) * p->batch),
                 pairs = spk_problem_flops(p) / (6.0 * (double)p->k + 4.0 * (double)p->depth_v);
    double us = START_US + heads * (double)p->m * (double)p->depth_v * 4 / MEMORY_RATE;
    for (int pass = 0; pass < PASSES; pass++) {
        const two_pass_constants c = constants_of(p, params, pass == 1);
        const two_pass_shape s = two_pass_shape_of(c);
        const double flops = pass == 1 ? 4.0 * (double)p->k + 2.0 * (double)p->depth_v : 4.0 * (double)(p->k + p->depth_v),
                     rows = (double)(pass == 1 ? p->m : p->n), tiles = (pass == 1 ? heads : heads_kv) * ceil(rows / s.rows),
                     workers = (double)spk_sm90_processors(device) * s.rings, busy = tiles < workers ? tiles : workers,
                     steps = pairs / (double)(TWO_PASS_ROWS * s.rows);
        const double step_us = flops * TWO_PASS_ROWS * s.rows * s.rings / STEP_RATE[pass] + (c.groups == 1 ? ALONE_STEP_US : STEP_US);
        us += steps / busy * step_us + ceil(tiles / workers) * TILE_US;
    }
    return us;
}

/* ---- the programs */

static void build_pass(const spk_problem *p, const spk_params *params, bool by_queries, spk_build *build)
{
    const two_pass_constants constants = constants_of(p, params, by_queries);
    spk_build_begin(build, "attention_backward_sm90_two_pass.cu", "attention_backward_sm90_two_pass", p);
    build->shared_bytes = two_pass_shape_of(constants).shared_bytes;
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    TWO_PASS_CONSTANTS(SPK_BUILD_DEFINE)
}

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    build_pass(p, params, false, build);
}

static spk_status prepare(const spk_bound *bound, state *made)
{
    spk_build program = {0};
    for (int pass = 0; pass < PASSES; pass++) {
        build_pass(&bound->problem, &bound->params, pass == 1, &program);
        SPK_TRY(spk_cuda_function(bound->device, &program, &made->pass[pass]));
    }
    const attention_delta_constants delta = {.rows = TWO_PASS_ROWS, .depth_v = (int)bound->problem.depth_v, .keys = TWO_PASS_ROWS};
    spk_cuda_backward_build_delta(&bound->problem, delta, &program);
    return spk_cuda_function(bound->device, &program, &made->delta);
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    for (int pass = 0; pass < PASSES; pass++)
        if (made->lists[pass].memory != NULL)
            bound->device->backend->release(bound->device, made->lists[pass].memory);
    spk_cuda_attention_backward_remote_release(bound, &made->remote);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* The workspace: LSE and delta, counts. */
static size_t row_bytes(const state *made)
{
    return (size_t)made->query_tiles * TWO_PASS_ROWS * sizeof(float);
}

static spk_status set_order(spk_bound *bound, state *made)
{
    const spk_problem *p = &bound->problem;
    const int processors = spk_sm90_processors(bound->device);
    made->query_tiles = (p->m + TWO_PASS_ROWS - 1) / TWO_PASS_ROWS * spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch;
    if (made->query_tiles > INT_MAX / 4)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d queries: the limit is 2^29", (long long)made->query_tiles, TWO_PASS_ROWS);
    bound->workspace_bytes = 2 * row_bytes(made) + ((size_t)made->query_tiles + PASSES) * sizeof(int);
    two_pass_cut cuts[PASSES];
    cut(p, bound->device, &bound->params, cuts);
    if (p->pattern != NULL && bound->view.offsets == NULL)
        SPK_TRY(spk_cuda_attention_backward_remote(bound, &made->index, cuts, made->lists, &made->remote));
    for (int pass = 0; pass < PASSES; pass++) {
        const two_pass_shape *shape = &made->shape[pass];
        if (made->lists[pass].tiles == NULL)
            SPK_TRY(spk_cuda_attention_backward_lists(bound->device, p, &cuts[pass], &made->lists[pass]));
        const int most = (made->lists[pass].count + shape->rings - 1) / shape->rings;
        made->blocks[pass] = most < processors ? most : processors;
    }
    return SPK_OK;
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    for (int pass = 0; pass < PASSES; pass++)
        made->shape[pass] = two_pass_shape_of(constants_of(&bound->problem, &bound->params, pass == 1));
    spk_status status = prepare(bound, made);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status == SPK_OK) {
        made->task = spk_cuda_attention_backward_task(&bound->problem, &made->index);
        status = set_order(bound, made);
    }
    if (status != SPK_OK)
        unbind(bound);
    return status;
}

/* ---- a run */

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    unsigned char *workspace = args->workspace;
    attention_backward_task task = made->task;
    two_pass_order order = {0};
    CUtensorMap maps[4];
    spk_cuda_attention_backward_fill(p, args, &task);
    order.lse2 = (float *)workspace;
    order.delta = (float *)(workspace + row_bytes(made));
    int *counts = (int *)(workspace + 2 * row_bytes(made)); /* the first is 0 once delta is found */
    order.q_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_Q, task.grad_q);
    order.k_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_K, task.grad_k);
    order.v_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_V, task.grad_v);
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_Q, task.attention.q, TWO_PASS_ROWS, &maps[0]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_K, task.attention.k, TWO_PASS_ROWS, &maps[1]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_V, task.attention.v, TWO_PASS_ROWS, &maps[2]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, BACKWARD_GRAD_O, task.grad_o, TWO_PASS_ROWS, &maps[3]));
    const attention_delta_task delta = {.all = task,
                                        .query_tiles = (int)((p->m + TWO_PASS_ROWS - 1) / TWO_PASS_ROWS),
                                        .lse2 = order.lse2,
                                        .delta = order.delta,
                                        .turns = counts};
    SPK_TRY(spk_cuda_backward_launch_delta(bound, made->delta, delta, made->query_tiles, stream));
    for (int pass = 0; pass < PASSES; pass++) {
        order.tiles = made->lists[pass].tiles;
        order.steps = made->lists[pass].steps;
        order.count = made->lists[pass].count;
        order.taken = pass == 0 ? counts : counts + made->query_tiles;
        order.other_taken = pass == 0 ? counts + made->query_tiles : NULL;
        void *parameters[] = {&maps[0], &maps[1], &maps[2], &maps[3], &task, &order};
        SPK_TRY(spk_cuda_launch_early(bound->device, made->pass[pass], (unsigned)made->blocks[pass], (unsigned)made->shape[pass].threads,
                                      made->shape[pass].shared_bytes, stream, parameters));
    }
    return SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    return launch(bound, made, args, (CUstream)stream);
}

/* TMA reads from multiples of 16 bytes. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    (void)bound;
    return (((uintptr_t)args->at[ATTENTION_Q] | (uintptr_t)args->at[ATTENTION_K] | (uintptr_t)args->at[ATTENTION_V] |
             (uintptr_t)args->at[BACKWARD_GRAD_O]) &
            15) == 0;
}

const spk_kernel_ops attention_backward_sm90_two_pass_ops = {.applicable = applicable,
                                                             .predict_us = predict_us,
                                                             .build = build,
                                                             .bind = bind,
                                                             .unbind = unbind,
                                                             .accepts = accepts,
                                                             .run = run,
                                                             .batched = true,
                                                             .source_hash = SPK_SOURCE_HASH};

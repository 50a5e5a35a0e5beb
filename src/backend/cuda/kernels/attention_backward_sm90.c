/* attention_backward_sm90: host side. */
#include "backend/cuda/kernels/attention_backward_sm90.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/helpers/attention_grad_q.h"
#include "backend/cuda/host/attention/attention_backward_order.h"
#include "backend/cuda/host/attention/attention_backward_sm90.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch_together.h"
#include "backend/cuda/host/tiles/sm90.h"
#include "op/attention_backward/operands.h"

#define TUNED(params, name) SPK_TUNED(attention_backward_sm90, params, name)

enum { MOST_DEPTH = 128, MOST_SUMS = 224 };

typedef struct state {
    spk_cuda_index index;
    CUfunction function, delta, grad_q;
    attention_backward_task task;
    attention_backward_shape shape;
    backward_order order;
    int64_t query_tiles; /* of all heads and items */
    int blocks;          /* of threads */
} state;

static attention_backward_constants constants_of(const spk_problem *p, const spk_params *params)
{
    attention_backward_constants c = {.sharers = TUNED(params, SHARERS),
                                      .rows = TUNED(params, ROWS),
                                      .lag = TUNED(params, LAG),
                                      .depth = (int)p->k,
                                      .depth_v = (int)p->depth_v,
                                      .left = spk_cuda_attention_limit(p, p->band.left) != 0,
                                      .right = spk_cuda_attention_limit(p, p->band.right) != 0,
                                      .sinks = p->band.sinks != 0,
                                      .tiled = p->lists.tiles > 0,
                                      .packed = p->packing.sequences > 0 || p->packing.key_lengths != 0};
    c.scrub = (c.left || c.right || c.tiled || c.packed) && !p->assume_finite;
    if (c.packed) /* limits are in what the device finds */
        c.left = c.right = 0;
    return c;
}

static attention_delta_constants delta_constants(const attention_backward_constants *c, const attention_backward_shape *s)
{
    return (attention_delta_constants){.rows = c->rows, .depth_v = c->depth_v, .packed = c->packed, .keys = s->keys};
}

static attention_grad_q_constants grad_q_constants(const attention_backward_constants *c, const attention_backward_shape *s)
{
    return (attention_grad_q_constants){
        .rows = c->rows, .depth = c->depth, .across = s->chunks, .columns = s->grad_columns, .transposed = s->transposed};
}

/* ---- what it takes */

static const char *problem_refusal(const spk_problem *p)
{
    if ((p->packing.sequences > 0 || p->packing.key_lengths != 0) && (p->pattern != NULL || p->band.sinks != 0))
        return "it takes no packed sequences and no lengths of keys beside a mask or sinks";
    return spk_cuda_backward_sm90_refusal(p, MOST_DEPTH);
}

static const char *shape_refusal(const spk_problem *p, const attention_backward_constants *c, const attention_backward_shape *s)
{
    if (s->d_stages == 0)
        return "too few stages fit into shared memory";
    if (s->registers > MOST_SUMS)
        return "a thread would keep too many sums";
    if (c->lag && (c->sharers == 1 || s->grad_parts != c->sharers))
        return "only two warpgroups that share a tile wait for each other";
    if (s->transposed && (c->sharers == 1 || c->lag || c->scrub || s->chunks == 1))
        return "80 queries are for two warpgroups that share a tile, of depths over 64, where nothing need be scrubbed";
    if (s->grad_parts % c->sharers != 0)
        return "so few rows and columns of Q are not shared by two warpgroups";
    if (p->pattern != NULL &&
        (p->pattern->block_cols % s->keys != 0 || (p->pattern->block_rows % c->rows != 0 && p->pattern->block_rows < p->m)))
        return "a block of the mask is not made of whole tiles";
    return NULL;
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    *why = problem_refusal(p);
    if (*why != NULL)
        return false;
    const attention_backward_constants c = constants_of(p, params);
    const attention_backward_shape s = attention_backward_shape_of(c);
    *why = shape_refusal(p, &c, &s);
    return *why == NULL;
}

/* Fitted to an H200's times (bench/results): flops of a step in a microsecond of a multiprocessor, what a step takes beside them with two
 * sharers and alone, and a tile; before and behind the steps a start and the bytes of Q, O and their gradients. */
static const double STEP_RATE = 6.1e6, SHARED_STEP_US = 0.745, ALONE_STEP_US = 2, TURNS_GAIN_US = 0.12, LAG_LOSS_US = 0.12, TILE_US = 2,
                    LAG_TILE_US = 7, START_US = 12, MEMORY_RATE = 3e6;

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_backward_constants c = constants_of(p, params);
    const attention_backward_shape s = attention_backward_shape_of(c);
    const double heads = (double)(spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch),
                 heads_kv = (double)(spk_operand_heads(&p->operand[ATTENTION_K]) * p->batch),
                 step_flops = (double)c.rows * s.keys * (6.0 * (double)p->k + 4.0 * (double)p->depth_v),
                 padded = ceil((double)p->m / c.rows) * c.rows / (double)p->m, steps = spk_problem_flops(p) / step_flops * padded,
                 tiles = heads_kv * ceil((double)p->n / s.keys), workers = (double)spk_sm90_processors(device) * s.rings,
                 busy = tiles < workers ? tiles : workers;
    const double step_us = step_flops * s.rings / STEP_RATE + (c.sharers > 1 ? SHARED_STEP_US : ALONE_STEP_US) +
                           (s.turns ? -TURNS_GAIN_US
                            : c.lag ? LAG_LOSS_US
                                    : 0),
                 bytes = heads * (double)p->m * ((double)p->k * 10 + (double)p->depth_v * 4);
    return START_US + bytes / MEMORY_RATE + steps / busy * step_us + tiles / busy * (c.lag ? LAG_TILE_US : TILE_US);
}

/* ---- the program */

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const attention_backward_constants constants = constants_of(p, params);
    spk_build_begin(build, "attention_backward_sm90.cu", "attention_backward_sm90", p);
    build->shared_bytes = attention_backward_shape_of(constants).shared_bytes;
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    ATTENTION_BACKWARD_CONSTANTS(SPK_BUILD_DEFINE)
}

static void build_grad_q(const spk_bound *bound, const attention_backward_shape *shape, spk_build *build)
{
    const attention_backward_constants c = constants_of(&bound->problem, &bound->params);
    const attention_grad_q_constants constants = grad_q_constants(&c, shape);
    *build = (spk_build){.file = "attention_grad_q.cu", .entry = "attention_grad_q"};
    spk_build_define(build, "DTYPE_A", bound->problem.operand[ATTENTION_Q].dtype);
    ATTENTION_GRAD_Q_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status prepare(const spk_bound *bound, state *made)
{
    spk_build program = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &made->function));
    const attention_backward_constants constants = constants_of(&bound->problem, &bound->params);
    spk_cuda_backward_build_delta(&bound->problem, delta_constants(&constants, &made->shape), &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &made->delta));
    build_grad_q(bound, &made->shape, &program);
    return spk_cuda_function(bound->device, &program, &made->grad_q);
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    if (made->order.memory != NULL)
        bound->device->backend->release(bound->device, made->order.memory);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The workspace: sums of grad_Q, LSE, delta, turns; of packed sequences what spans say, and how many tiles of keys are taken. */
static size_t row_bytes(const state *made, int rows)
{
    return aligned((size_t)made->query_tiles * (size_t)rows * sizeof(float));
}
static size_t sums_bytes(const state *made)
{
    return aligned((size_t)made->query_tiles * (size_t)made->shape.grad_floats * sizeof(float));
}

static size_t turns_bytes(const state *made)
{
    return aligned(((size_t)made->query_tiles + 1) * sizeof(int)); /* and of tiles taken */
}
static size_t sights_bytes(const state *made, int rows)
{
    return aligned((size_t)made->order.made.query_tiles * (size_t)made->task.attention.items * (size_t)rows * 2 * sizeof(int));
}
static size_t spans_bytes(const state *made)
{
    return aligned((size_t)made->order.made.key_tiles * (size_t)made->task.attention.items * sizeof(attention_span));
}
static size_t tops_bytes(const state *made)
{
    return aligned((size_t)made->order.made.query_tiles * (size_t)made->task.attention.items * sizeof(int));
}

static bool is_packed(const spk_bound *bound)
{
    return constants_of(&bound->problem, &bound->params).packed != 0;
}

static spk_status set_order(spk_bound *bound, state *made)
{
    const spk_problem *p = &bound->problem;
    const int rows = TUNED(&bound->params, ROWS), processors = spk_sm90_processors(bound->device);
    const int64_t key_tiles = (p->n + made->shape.keys - 1) / made->shape.keys, heads_kv = spk_operand_heads(&p->operand[ATTENTION_K]),
                  tiles = key_tiles * heads_kv * p->batch, most = (tiles + made->shape.rings - 1) / made->shape.rings;
    made->blocks = (int)(most < processors ? most : processors);
    made->query_tiles = (p->m + rows - 1) / rows * spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch;
    if (made->query_tiles > INT_MAX / 4)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d queries: the limit is 2^29", (long long)made->query_tiles, rows);
    bound->workspace_bytes = sums_bytes(made) + 2 * row_bytes(made, rows) + turns_bytes(made);
    if (is_packed(bound)) {
        if (tiles > INT_MAX / 4)
            return spk_fail(SPK_ERR_UNSUPPORTED, "%lld tiles of %d keys: the limit is 2^29", (long long)tiles, made->shape.keys);
        made->order.made = (attention_backward_order){
            .key_tiles = (int)key_tiles, .heads_kv = (int)heads_kv, .query_tiles = (int)((p->m + rows - 1) / rows)};
        bound->workspace_bytes += sights_bytes(made, rows) + spans_bytes(made) + tops_bytes(made);
        return SPK_OK;
    }
    return spk_cuda_attention_backward_order(bound->device, p, rows, made->shape.keys, made->blocks * made->shape.rings, &made->order);
}

static spk_status bind(spk_bound *bound)
{
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->shape = attention_backward_shape_of(constants_of(&bound->problem, &bound->params));
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

static spk_status launch_delta(const spk_bound *bound, const state *made, const attention_backward_task *all,
                               const attention_backward_order *order, CUstream stream)
{
    const int rows = TUNED(&bound->params, ROWS), blocks = rows / attention_delta_queries(rows);
    const attention_delta_task task = {.all = *all,
                                       .query_tiles = order->query_tiles,
                                       .lse2 = order->lse2,
                                       .delta = order->delta,
                                       .turns = order->turns,
                                       .spans = order->spans,
                                       .key_tiles = order->key_tiles};
    const int64_t before = is_packed(bound) ? all->attention.items : 0;
    return spk_cuda_backward_launch_delta(bound, made->delta, task, before + made->query_tiles * blocks, stream);
}

static spk_status launch_grad_q(const spk_bound *bound, const state *made, const attention_backward_task *all,
                                const attention_backward_order *order, CUstream stream)
{
    attention_grad_q_task task = {
        .all = *all, .query_tiles = order->query_tiles, .pieces = order->q_pieces, .sums = order->grad_q, .turns = order->turns};
    void *parameters[] = {&task};
    return spk_cuda_launch(bound->device, made->grad_q, (unsigned)(made->query_tiles * made->shape.grad_parts), ATTENTION_GRAD_Q_THREADS, 0,
                           stream, parameters);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    const int rows = TUNED(&bound->params, ROWS), keys = made->shape.keys;
    unsigned char *workspace = args->workspace;
    attention_backward_task task = made->task;
    attention_backward_order order = made->order.made;
    CUtensorMap maps[4];
    spk_cuda_attention_backward_fill(p, args, &task);
    order.grad_q = (float *)workspace;
    order.lse2 = (float *)(workspace + sums_bytes(made));
    order.delta = (float *)(workspace + sums_bytes(made) + row_bytes(made, rows));
    order.turns = (int *)(workspace + sums_bytes(made) + 2 * row_bytes(made, rows));
    if (is_packed(bound)) {
        unsigned char *spans = (unsigned char *)order.turns + turns_bytes(made);
        order.spans.taken = order.turns + made->query_tiles;
        order.spans.sights = (int *)spans;
        order.spans.spans = (attention_span *)(spans + sights_bytes(made, rows));
        order.spans.tops = (int *)(spans + sights_bytes(made, rows) + spans_bytes(made));
    }
    order.q_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_Q, task.grad_q);
    order.k_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_K, task.grad_k);
    order.v_pieces = spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_V, task.grad_v);
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_Q, task.attention.q, rows, &maps[0]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_K, task.attention.k, keys, &maps[1]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, ATTENTION_V, task.attention.v, keys, &maps[2]));
    SPK_TRY(spk_cuda_backward_sm90_map(bound, BACKWARD_GRAD_O, task.grad_o, rows, &maps[3]));
    SPK_TRY(launch_delta(bound, made, &task, &order, stream));
    void *parameters[] = {&maps[0], &maps[1], &maps[2], &maps[3], &task, &order};
    SPK_TRY(spk_cuda_launch_together(bound->device, made->function, (unsigned)made->blocks, (ATTENTION_BACKWARD_WARPGROUPS + 1) * 128,
                                     made->shape.shared_bytes, stream, parameters));
    return launch_grad_q(bound, made, &task, &order, stream);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    return launch(bound, made, args, (CUstream)stream);
}

/* TMA reads from multiples of 16 bytes; so are lines of bits read. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const uintptr_t bits = bound->problem.lists.tiles > 0 ? (uintptr_t)args->at[ATTENTION_TILE_BITS] : 0;
    return (((uintptr_t)args->at[ATTENTION_Q] | (uintptr_t)args->at[ATTENTION_K] | (uintptr_t)args->at[ATTENTION_V] |
             (uintptr_t)args->at[BACKWARD_GRAD_O] | bits) &
            15) == 0;
}

const spk_kernel_ops attention_backward_sm90_ops = {.applicable = applicable,
                                                    .predict_us = predict_us,
                                                    .build = build,
                                                    .bind = bind,
                                                    .unbind = unbind,
                                                    .accepts = accepts,
                                                    .run = run,
                                                    .batched = true,
                                                    .source_hash = SPK_SOURCE_HASH};

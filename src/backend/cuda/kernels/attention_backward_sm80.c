/* attention_backward_sm80: host side. */
#include "backend/cuda/kernels/attention_backward_sm80.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/host/attention/attention_backward.h"
#include "backend/cuda/host/attention/attention_tiles.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch.h"
#include "op/attention_backward/operands.h"

#define TUNED(params, name) SPK_TUNED(attention_backward_sm80, params, name)

enum { LEAST_DEPTH = 16, MOST_DEPTH = 256, MOST_DEPTHS = 320, MOST_CAPPED_DEPTHS = 248, MOST_VECTOR = 8, PIECE = 8 };
enum { MOST_SCRUBBED_COLUMNS = 224, MOST_SCRUBBED_DEPTH_V = 64 }; /* that rows are cleaned of; in steps of 64 with QUERIES=2 */
enum { MOST_BLOCKS = 132 * 16, ROOM_BYTES = 256 };
enum { PREPARE, TURN, QUERIES, KEYS, PROGRAMS };

typedef attention_backward_sm80_work backward_work;

typedef struct state {
    spk_cuda_index index;
    CUfunction function[PROGRAMS];
    attention_backward_task task;
    attention_backward_sm80_shape shape;
    attention_cut cut;
    backward_work work;
    unsigned blocks_q, blocks_k; /* of threads */
    unsigned threads;
} state;

static attention_backward_sm80_constants own_constants(const spk_params *params)
{
    return (attention_backward_sm80_constants){
        .query_sixteens = TUNED(params, QUERIES), .key_sixteens = TUNED(params, KEYS), .step_queries = TUNED(params, ACROSS)};
}

/* Elements that all lines that are read are made of, as far as their distances say. */
static int vector_of(const spk_problem *p, int most)
{
    const int64_t steps = spk_operand_steps(&p->operand[ATTENTION_O]) | spk_operand_steps(&p->operand[BACKWARD_GRAD_O]);
    int vector = most;
    while (steps % vector != 0)
        vector /= 2;
    return vector;
}

static attention_tiles_shape tiles_of(const spk_problem *p, const spk_params *params)
{
    const int warps = TUNED(params, WARPS), rows = warps * TUNED(params, QUERIES) * 16;
    attention_tiles_shape tiles = spk_attention_tiles_of(p, rows, warps, TUNED(params, STEP), 1, MOST_VECTOR);
    tiles.c.vector = vector_of(p, tiles.c.vector);
    tiles.c.want_lse = 0; /* it is an input */
    tiles.shared_bytes = attention_backward_sm80_shape_of(tiles.c, own_constants(params)).queries.shared_bytes;
    return tiles;
}

static attention_backward_sm80_shape shape_of(const attention_tiles_shape *tiles, const spk_params *params)
{
    return attention_backward_sm80_shape_of(tiles->c, own_constants(params));
}

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Keys of a block column of the mask, or all; of packed sequences those of one, on average. */
static int64_t block_keys(const spk_problem *p)
{
    if (p->packing.sequences > 0)
        return up(p->n, p->packing.sequences);
    return p->pattern != NULL && p->pattern->block_cols < p->n ? p->pattern->block_cols : p->n;
}

/* Tiles of keys of a head; each sequence, and each block column, ends with one that may not be whole. */
static int64_t key_tiles(const spk_problem *p, int rows)
{
    if (p->packing.sequences > 0)
        return p->n / rows + p->packing.sequences;
    return p->n > 0 ? up(p->n, block_keys(p)) * up(block_keys(p), rows) : 0;
}

static int64_t all_key_tiles(const spk_problem *p, int rows)
{
    return key_tiles(p, rows) * spk_operand_heads(&p->operand[ATTENTION_K]) * p->batch;
}

static attention_tiling query_tiling(const spk_problem *p, const attention_tiles_shape *tiles)
{
    return spk_cuda_attention_tiling(p, tiles->c.tile_rows, tiles->c.tile_heads, tiles->c.step_keys);
}

static int64_t all_queries(const spk_problem *p)
{
    return p->m * spk_operand_heads(&p->operand[ATTENTION_Q]) * p->batch;
}

static const char *problem_refusal(const spk_problem *p)
{
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    if (dtype != SPK_F16 && dtype != SPK_BF16)
        return "it is for f16 and bf16";
    if (p->k % 8 != 0 || p->depth_v % 8 != 0 || p->k < LEAST_DEPTH || p->k > MOST_DEPTH || p->depth_v < LEAST_DEPTH ||
        p->depth_v > MOST_DEPTH)
        return "the depths must be multiples of 8 between 16 and 256";
    if (p->k + p->depth_v > MOST_DEPTHS)
        return "a thread would keep too many sums: depth and depth_v together may be 320 at most";
    return spk_attention_tiles_problem_refusal(p);
}

/* Whether there is room for a thread's sums and scores: what hides and bends scores, and cleans a step's rows, wants some of it. */
static bool have_registers(const attention_tiles_constants *c, const attention_backward_sm80_side *side, int sixteens)
{
    const bool bends = c->scrub && c->capped && (sixteens == 2 || side->step > 32);
    return side->registers <= (bends ? BACKWARD_MOST_REGISTERS - 16 : BACKWARD_MOST_REGISTERS);
}

/* By what NVRTC's programs spill. */
static bool keeps_too_many(const spk_problem *p, const attention_tiles_constants *c, const attention_backward_sm80_shape *own,
                           const spk_params *params)
{
    const int queries = TUNED(params, QUERIES);
    return !have_registers(c, &own->queries, queries) || !have_registers(c, &own->keys, TUNED(params, KEYS)) ||
           (c->capped && own->keys.step > 32 && p->k + p->depth_v > MOST_CAPPED_DEPTHS) ||
           (c->scrub &&
            (queries * p->k > MOST_SCRUBBED_COLUMNS || (queries == 2 && c->step_keys >= 64 && p->depth_v > MOST_SCRUBBED_DEPTH_V)));
}

static const char *candidate_refusal(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_tiles_shape tiles = tiles_of(p, params);
    const attention_backward_sm80_shape own = shape_of(&tiles, params);
    const int most = device->state != NULL ? spk_cuda_of(device)->shared_bytes : 0;
    const int64_t queries = query_tiling(p, &tiles).block_rows;
    if (keeps_too_many(p, &tiles.c, &own, params))
        return "a thread would keep too many sums";
    if (most > 0 && (own.queries.shared_bytes > most || own.keys.shared_bytes > most))
        return "its tiles do not fit into shared memory";
    if ((double)query_tiling(p, &tiles).all > INT_MAX || (double)all_key_tiles(p, own.keys.rows) > INT_MAX)
        return "it counts tiles with 31 bits";
    if (TUNED(params, WARPS) > 1 && tiles.c.tile_rows / 2 >= queries && own.keys.rows / 2 >= block_keys(p))
        return "lower tiles hold all of a block row and of a block column";
    if (tiles.c.step_keys >= 2 * p->n && tiles.c.step_keys > 32)
        return "a smaller step holds all keys";
    if (own.keys.step >= 2 * p->m && own.keys.step > 32)
        return "a smaller step holds all queries";
    if (p->pattern != NULL && (double)p->pattern->index.grid_rows * (double)up(p->n, p->pattern->block_cols) > INT_MAX / 4)
        return "it counts block columns of all block rows with 29 bits";
    return NULL;
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    *why = problem_refusal(p);
    if (*why == NULL)
        *why = candidate_refusal(p, device, params);
    return *why == NULL;
}

/* ---- the model */

/* Of an H100. Times the f32 peak, of products of f16, that warps reach with 16 and with 32 rows each; of a multiprocessor's microsecond
 * exponentials, and bytes that are brought beside products; what a step costs each warp. */
static const double TIMES_OF_16 = 6, TIMES_OF_32 = 8.5, EXPONENTIALS_US = 15.2e3, BYTES_US = 60e3, WARP_STEP_US = 0.06;

/* Of a multiprocessor, with rows x step pairs, and so many columns in all products. */
static double step_us(const spk_device *device, const attention_backward_sm80_side *side, int sixteens, int columns, bool capped)
{
    const double peak_gflops = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 : 6e4,
                 processors = device->processors > 0 ? device->processors : 132, pairs = (double)side->rows * side->step,
                 rate = (sixteens == 2 ? TIMES_OF_32 : TIMES_OF_16) * peak_gflops * 1e3 / processors;
    return 2 * pairs * columns / rate + pairs / EXPONENTIALS_US * (capped ? 1.5 : 1) + (double)side->stage_bytes / BYTES_US +
           WARP_STEP_US * side->rows / (16 * sixteens);
}

static int together(const spk_device *device, const attention_tiles_shape *tiles, const attention_backward_sm80_side *side)
{
    attention_tiles_shape shape = *tiles;
    shape.shared_bytes = side->shared_bytes;
    return spk_attention_tiles_together(device, &shape, side->registers + 55);
}

static double alone(const attention_tiles_shape *tiles)
{
    return tiles->c.warps < 8 ? 1 + 0.1 * (8 - tiles->c.warps) / 2 : 1;
}

static double predict_keys_us(const spk_problem *p, const spk_device *device, const attention_tiles_shape *tiles,
                              const attention_backward_sm80_side *side, double each_us)
{
    const double all = fmax((double)all_key_tiles(p, side->rows), 1), rows = fmax(fmin(side->rows, (double)block_keys(p)), 1),
                 edges = tiles->c.limited ? 0.5 * fmax(rows / side->step, 1) : 0,
                 steps = fmax(ceil(p->pairs * (double)p->batch / (all * rows * side->step) + edges - 0.01), 1);
    const double processors = device->processors > 0 ? device->processors : 132, each = all / processors,
                 beside = together(device, tiles, side), last = fmax(fmin(each, beside), 1);
    return fmax(ceil(each / beside) * last, each) * (steps * each_us * (last >= 2 ? 1 : alone(tiles)) + 2);
}

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_tiles_shape tiles = tiles_of(p, params);
    const attention_backward_sm80_shape own = shape_of(&tiles, params);
    const int of_queries = 2 * own.wide + own.wide_v, of_keys = 2 * (own.wide + own.wide_v);
    const attention_tiles_load load = {.step_us = step_us(device, &own.queries, TUNED(params, QUERIES), of_queries, tiles.c.capped),
                                       .tile_us = 1.5,
                                       .together = together(device, &tiles, &own.queries),
                                       .alone = alone(&tiles)};
    const double narrow = tiles.c.vector < 8 ? 1 + 0.5 / tiles.c.vector : 1;
    return 8 + narrow * (spk_attention_tiles_predict(p, device, &tiles, load) +
                         predict_keys_us(p, device, &tiles, &own.keys,
                                         step_us(device, &own.keys, TUNED(params, KEYS), of_keys, tiles.c.capped)));
}

/* ---- the programs: one file, one set of constants */

static void build_one(const spk_problem *p, const spk_params *params, int which, spk_build *build)
{
    static const char *const entries[PROGRAMS] = {"attention_backward_prepare", "attention_backward_turn", "attention_backward_queries",
                                                  "attention_backward_keys"};
    attention_tiles_shape tiles = tiles_of(p, params);
    const attention_backward_sm80_shape own = shape_of(&tiles, params);
    const attention_backward_sm80_constants constants = own_constants(params);
    const int shared[PROGRAMS] = {0, 0, own.queries.shared_bytes, own.keys.shared_bytes};
    tiles.shared_bytes = shared[which];
    spk_attention_tiles_build(p, &tiles, "attention_backward_sm80.cu", entries[which], build);
    ATTENTION_BACKWARD_SM80_CONSTANTS(SPK_BUILD_DEFINE)
}

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    build_one(p, params, KEYS, build);
}

static void unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

/* What the tiles of a section of heads read: L2 holds most of it. */
static const double SECTION_BYTES = 64 << 20;

/* Heads of a section, of `heads` of all items that bring `elements` each: sections are of one size, as far as they can be. */
static int heads_together(const spk_problem *p, double elements, int64_t heads)
{
    const double sections = ceil(elements * (double)spk_dtype_bytes(p->operand[ATTENTION_Q].dtype) * (double)heads / SECTION_BYTES);
    return heads < 2 || sections >= (double)heads ? 1 : sections < 2 ? (int)heads : (int)up(heads, (int64_t)sections);
}

static void set_cuts(const spk_bound *bound, const attention_tiles_shape *tiles, state *made)
{
    const spk_problem *p = &bound->problem;
    const attention_tiling t = query_tiling(p, tiles);
    made->threads = (unsigned)tiles->c.warps * 32;
    made->blocks_q = (unsigned)t.all;
    made->blocks_k = (unsigned)all_key_tiles(p, made->shape.keys.rows);
    made->cut = (attention_cut){.head_tiles = (int)t.head_tiles,
                                .block_rows = t.block_rows,
                                .block_tiles = (int)t.block_tiles,
                                .row_tiles = (int)t.row_tiles,
                                .splits = 1};
    made->work = (backward_work){.key_tiles = (int)key_tiles(p, made->shape.keys.rows),
                                 .block_keys = (int)block_keys(p),
                                 .block_tiles = (int)up(block_keys(p), made->shape.keys.rows)};
    const double columns = (double)(p->k + p->depth_v), sharing = (double)spk_attention_sharing(p);
    made->work.together_q = heads_together(p, (double)p->n * columns / fmax(sharing / tiles->c.tile_heads, 1), t.head_tiles * p->batch);
    made->work.together_k = heads_together(p, (double)p->m * columns * sharing, spk_operand_heads(&p->operand[ATTENTION_K]) * p->batch);
    if (p->pattern != NULL && p->m > 0) {
        made->work.lists = (int)(bound->view.grid_rows / spk_attention_list_rows(p));
        made->work.columns = (int)bound->view.grid_cols;
    }
}

static spk_status load(const spk_bound *bound, state *made)
{
    for (int i = 0; i < PROGRAMS; i++) {
        spk_build program = {0};
        build_one(&bound->problem, &bound->params, i, &program);
        SPK_TRY(spk_cuda_function(bound->device, &program, &made->function[i]));
    }
    return SPK_OK;
}

/* `count` numbers of four bytes more in a workspace, of which *at bytes are taken. */
static void *take_room(char *workspace, size_t *at, size_t count)
{
    char *const begin = workspace != NULL ? workspace + *at : NULL;
    *at += spk_round_up(count * sizeof(int), ROOM_BYTES);
    return begin;
}

/* What the programs leave for each other, in a workspace, or (NULL) only counted. */
static size_t lay_out(const spk_bound *bound, char *workspace, backward_work *work)
{
    const size_t queries = (size_t)all_queries(&bound->problem), blocks = bound->problem.pattern != NULL ? (size_t)bound->view.nnzb : 0;
    size_t at = 0;
    work->lse2 = take_room(workspace, &at, queries);
    work->delta = take_room(workspace, &at, queries);
    work->taken = take_room(workspace, &at, 1);
    work->turned = take_room(workspace, &at, 2 * (size_t)work->lists * (size_t)work->columns);
    work->turned_rows = take_room(workspace, &at, blocks);
    work->turned_entries = take_room(workspace, &at, blocks);
    return at;
}

static spk_status bind(spk_bound *bound)
{
    const attention_tiles_shape tiles = tiles_of(&bound->problem, &bound->params);
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->shape = shape_of(&tiles, &bound->params);
    set_cuts(bound, &tiles, made);
    bound->workspace_bytes = lay_out(bound, NULL, &made->work);
    spk_status status = load(bound, made);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status != SPK_OK)
        unbind(bound);
    else
        made->task = spk_cuda_attention_backward_task(&bound->problem, &made->index);
    return status;
}

/* ---- a run */

/* cp.async reads from multiples of what it copies. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const spk_problem *p = &bound->problem;
    const int vector = tiles_of(p, &bound->params).c.vector;
    const uintptr_t more = (uintptr_t)args->at[ATTENTION_O] | (uintptr_t)args->at[BACKWARD_GRAD_O];
    return spk_attention_tiles_whole(p, args, vector) && more % ((uintptr_t)vector * spk_dtype_bytes(p->operand[ATTENTION_Q].dtype)) == 0;
}

static int in_pieces(const spk_problem *p, const spk_args *args, int operand)
{
    return (uintptr_t)args->at[operand] % 16 == 0 && spk_operand_steps(&p->operand[operand]) % PIECE == 0;
}

static unsigned warps_of(int64_t count)
{
    const int64_t blocks = up(count, BACKWARD_THREADS / 32);
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    attention_backward_task task = made->task;
    attention_cut cut = made->cut;
    backward_work work = made->work;
    spk_cuda_attention_backward_fill(p, args, &task);
    lay_out(bound, args->workspace, &work);
    work.pieces_q = in_pieces(p, args, BACKWARD_GRAD_Q);
    work.pieces_k = in_pieces(p, args, BACKWARD_GRAD_K);
    work.pieces_v = in_pieces(p, args, BACKWARD_GRAD_V);
    void *parameters[] = {&task, &work, &cut}; /* `prepare`, `turn` and `keys` take the first two */
    const int64_t columns = (int64_t)work.lists * work.columns;
    const struct {
        unsigned blocks, threads;
        int shared_bytes;
    } launches[PROGRAMS] = {[PREPARE] = {warps_of(all_queries(p)), BACKWARD_THREADS, 0},
                            [TURN] = {warps_of(columns), BACKWARD_THREADS, 0},
                            [QUERIES] = {made->blocks_q, made->threads, made->shape.queries.shared_bytes},
                            [KEYS] = {made->blocks_k, made->threads, made->shape.keys.shared_bytes}};
    for (int i = 0; i < PROGRAMS; i++)
        if (launches[i].blocks > 0)
            SPK_TRY(spk_cuda_launch_early(bound->device, made->function[i], launches[i].blocks, launches[i].threads,
                                          launches[i].shared_bytes, stream, parameters));
    return SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    return launch(bound, bound->state, args, (CUstream)stream);
}

const spk_kernel_ops attention_backward_sm80_ops = {.applicable = applicable,
                                                    .predict_us = predict_us,
                                                    .build = build,
                                                    .bind = bind,
                                                    .unbind = unbind,
                                                    .accepts = accepts,
                                                    .run = run,
                                                    .batched = true,
                                                    .device_indices = true,
                                                    .source_hash = SPK_SOURCE_HASH};

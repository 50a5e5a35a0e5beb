/* gemm_sm90_wgmma: host side. A tile is HEIGHT rows by WIDTH columns of D; SWAP computes D^T = B^T A^T, so that tiles lie the other way. */
#include "backend/cuda/kernels/gemm_sm90_wgmma.h"
#include "backend/cuda/host/frame/rows.h"

#include <limits.h>
#include <math.h>

#include "backend/cuda/helpers/copy_lines.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/tiles/sm90.h"

#define TUNED(params, name) SPK_TUNED(gemm_sm90_wgmma, params, name)

enum { CLUSTER_NONE, CLUSTER_ROWS, CLUSTER_COLUMNS }; /* of CLUSTER: two blocks one below the other, side by side */
static const double BRIEF_BYTES = 32 << 20;           /* a product that L2 holds */
enum { ATTRIBUTE_CLUSTER_DIMENSION = 4, GROUP_LINES = 8, LEAST_STEPS = 4, MOST_EXCHANGE_BYTES = 1 << 16 };

typedef struct state {
    spk_problem problem; /* as the program computes it: with SWAP, the other way */
    spk_cuda_index index;
    CUfunction function, copy;
    gemm_shape shape;
    gemm_order order;
    int blocks;     /* of threads */
    size_t a_bytes; /* of the workspace: a copy of A whose lines are 16 bytes aligned; 0: none is needed. Then one of B */
    size_t b_bytes;
} state;

/* ---- what is computed */

static spk_layout other_layout(spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
}

static void turn(spk_operand *o)
{
    const int64_t rows = o->rows;
    o->rows = o->cols;
    o->cols = rows;
    o->layout = other_layout(o->layout);
}

/* D^T = B^T A^T of the same arrays. */
static spk_problem turned(const spk_problem *problem)
{
    spk_problem p = *problem;
    const spk_bias biases[] = {
        [SPK_BIAS_NONE] = SPK_BIAS_NONE, [SPK_BIAS_PER_ROW] = SPK_BIAS_PER_COL, [SPK_BIAS_PER_COL] = SPK_BIAS_PER_ROW};
    p.a = problem->b;
    p.b = problem->a;
    p.m = problem->n;
    p.n = problem->m;
    p.epilogue.bias = biases[problem->epilogue.bias];
    p.group_axis = problem->group_axis == SPK_GROUP_ROWS   ? SPK_GROUP_COLS
                   : problem->group_axis == SPK_GROUP_COLS ? SPK_GROUP_ROWS
                                                           : problem->group_axis;
    for (int i = SPK_A; i <= SPK_PREACT; i++)
        if (i != SPK_BIAS)
            turn(&p.operand[i]);
    return p;
}

static bool line_is_aligned(const spk_operand *o)
{
    return o->ld % 8 == 0 && o->stride % 8 == 0;
}

/* An operand in a copy whose lines are whole 16 bytes. */
static void copied(spk_operand *o)
{
    o->ld = (int64_t)spk_round_up((size_t)spk_operand_length(o), 8);
    o->stride = o->stride != 0 ? o->ld * spk_operand_lines(o) : 0;
}

/* The problem as the program computes it. */
static spk_problem computed(const spk_problem *problem, const spk_params *params)
{
    spk_problem p = TUNED(params, SWAP) ? turned(problem) : *problem;
    if (!line_is_aligned(&p.a))
        copied(&p.a);
    if (!line_is_aligned(&p.b))
        copied(&p.b);
    return p;
}

/* Of a copy, with all items. */
static size_t copy_bytes(const spk_operand *given, const spk_operand *made, int64_t batch)
{
    const int64_t items = given->stride != 0 ? batch : 1;
    return line_is_aligned(given) ? 0 : spk_round_up((size_t)(spk_operand_lines(made) * made->ld * items) * 2, 256);
}

/* ---- the tile */

static gemm_constants constants_of(const spk_problem *computed, const spk_params *params)
{
    return (gemm_constants){
        .height = TUNED(params, HEIGHT),
        .width = TUNED(params, WIDTH),
        .pingpong = TUNED(params, PINGPONG),
        .cluster_m = TUNED(params, CLUSTER) == CLUSTER_ROWS ? 2 : 1,
        .cluster_n = TUNED(params, CLUSTER) == CLUSTER_COLUMNS ? 2 : 1,
        .split = TUNED(params, SPLIT),
        .a_whole = computed->a.layout == SPK_COL_MAJOR && computed->m % 64 == 0 && computed->group_axis != SPK_GROUP_ROWS,
        .b_whole = computed->b.layout == SPK_ROW_MAJOR && computed->n % 64 == 0 && computed->group_axis != SPK_GROUP_COLS,
        .cut = computed->group_axis == SPK_GROUP_ROWS || computed->group_axis == SPK_GROUP_COLS};
}

/* Sums of a thread for which registers suffice: arrays that the epilogue reads or writes take some, three warpgroups have fewer. */
static int most_sums(const spk_problem *problem, const gemm_shape *s)
{
    const spk_epilogue *e = &problem->epilogue;
    const bool arrays = e->use_c || e->residual != SPK_RESIDUAL_NONE || e->keep_preact;
    return s->consumers > 2 ? (arrays ? 64 : 96) : arrays ? 176 : 192;
}

static const char *shape_refusal(const spk_problem *p, gemm_constants c, const gemm_shape *s)
{
    if (c.pingpong && c.height > 128)
        return "warpgroups that take turns have 64 or 128 rows each";
    if (s->sums > most_sums(p, s))
        return "a thread would keep too many sums";
    if (s->stages < 3)
        return "too few stages fit into shared memory";
    if (p->group_axis != SPK_GROUP_NONE && (c.split > 1 || s->sharing > 1))
        return "clusters work on one item";
    if (c.cut && p->batch > GEMM_MOST_GROUPS)
        return "more than 1,024 groups";
    if (c.split > 1 && (c.pingpong || s->sharing > 1 || s->exchange_bytes > MOST_EXCHANGE_BYTES))
        return "a sum is not shared so";
    if (s->sharing > 1 && p->batch > 1)
        return "clusters share operands of one item only";
    if (c.cluster_m > 1 && c.width / 2 % (p->b.layout == SPK_COL_MAJOR ? 8 : 64) != 0)
        return "half of so narrow a tile of B is no box";
    if (c.cluster_n > 1 && c.height / 2 % (p->a.layout == SPK_ROW_MAJOR ? 8 : 64) != 0)
        return "half of so low a tile of A is no box";
    if (p->b.layout == SPK_ROW_MAJOR && c.width % 64 != 0 && c.width > 32)
        return "a tile of a row-major B has 16, 32 or a multiple of 64 columns";
    return NULL;
}

/* Of the rows or columns of D that an item has; groups that cut them: of one that is as large as the mean. */
static double item_extent(const spk_problem *p, spk_group_axis axis)
{
    const double whole = (double)(axis == SPK_GROUP_ROWS ? p->m : axis == SPK_GROUP_COLS ? p->n : p->k);
    return p->group_axis == axis ? whole / (double)p->batch : whole;
}

/* Tiles of `size` along an axis; of a group, which ends anywhere in its last: half a tile more. */
static double tiles_along(const spk_problem *p, spk_group_axis axis, int size)
{
    const double extent = item_extent(p, axis) / size;
    return p->group_axis == axis ? fmax(extent + 0.5, 1) : ceil(extent);
}

static double count_tiles(const spk_problem *p, gemm_constants c)
{
    const int down = c.cluster_m, across = c.cluster_n; /* a cluster's last tile may lie beyond D */
    return tiles_along(p, SPK_GROUP_ROWS, c.height * down) * down * tiles_along(p, SPK_GROUP_COLS, c.width * across) * across *
           (double)p->batch;
}

/* Tiles far larger than D, or far more than one could want. Groups are of many sizes: some are larger than the mean. */
static const char *size_refusal(const spk_problem *p, gemm_constants c, const gemm_shape *s, double processors)
{
    const double tiles = count_tiles(p, c);
    const double rows = item_extent(p, SPK_GROUP_ROWS) * (p->group_axis == SPK_GROUP_ROWS ? 2 : 1),
                 columns = item_extent(p, SPK_GROUP_COLS) * (p->group_axis == SPK_GROUP_COLS ? 2 : 1);
    if ((c.width > 16 && c.width >= 2 * columns) || (c.height > 64 && c.height >= 2 * rows))
        return "a smaller tile holds all of D";
    if (c.split > 1 && (tiles * c.split > processors || p->k < GEMM_CHUNK * LEAST_STEPS * c.split))
        return "there are tiles enough, or K is too short to be shared";
    if ((c.cluster_m > 1 && c.height >= rows) || (c.cluster_n > 1 && c.width >= columns))
        return "a cluster's second tile would lie beyond D";
    if (s->sharing > 1 && tiles < processors / 2)
        return "clusters pay where all multiprocessors are busy";
    if (tiles > 64 * processors && c.height * c.width < 128 * 128)
        return "so small a tile is for small products";
    return NULL;
}

/* Groups that begin within the lines of an operand. */
static bool groups_cut_lines(const spk_problem *p)
{
    const bool a_along_k = p->a.layout == SPK_ROW_MAJOR, b_along_k = p->b.layout == SPK_COL_MAJOR;
    return (p->group_axis == SPK_GROUP_ROWS && !a_along_k) || (p->group_axis == SPK_GROUP_COLS && !b_along_k) ||
           (p->group_axis == SPK_GROUP_DEPTH && (a_along_k || b_along_k));
}

static const char *problem_refusal(const spk_problem *p)
{
    if ((p->a.dtype != SPK_F16 && p->a.dtype != SPK_BF16) || p->b.dtype != p->a.dtype)
        return "it is for f16 and bf16";
    if (p->d.dtype != SPK_F32 && p->d.dtype != SPK_F16 && p->d.dtype != SPK_BF16)
        return "D must be f16, bf16 or f32";
    if (p->compute != SPK_F32)
        return "it keeps its sums in f32";
    if (groups_cut_lines(p))
        return "TMA reads from multiples of 16 bytes, and groups end anywhere in the lines of A or B";
    const int64_t high = INT_MAX - 512;
    if (p->m > high || p->n > high || p->k > high)
        return "it counts rows with 31 bits";
    return NULL;
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    *why = problem_refusal(problem);
    if (*why != NULL)
        return false;
    const spk_problem p = computed(problem, params);
    const gemm_constants constants = constants_of(&p, params);
    const gemm_shape shape = gemm_shape_of(constants);
    *why = shape_refusal(&p, constants, &shape);
    if (*why == NULL)
        *why = size_refusal(&p, constants, &shape, spk_sm90_processors(device));
    if (*why == NULL && TUNED(params, SWAP) && p.m == p.n && problem->a.layout != problem->b.layout)
        *why = "the other way is the same";
    return *why == NULL;
}

/* ---- the model: of one multiprocessor, fitted to rounds of 900 candidates of fourteen shapes on an H200 at its power limit */

static const double FLOPS_US = 5.3e6, L2_BYTES_US = 106e3, STEP_LEAST_US = 0.15, HBM_BYTES_US = 4.1e6, COPY_BYTES_US = 2e6;
/* Costs as a factor: of a handshake of two blocks; of three stages, which hide less of a load; of sums that fill a thread's registers. */
static const double SHARED = 1.01, FEW_STAGES = 1.15, MANY_SUMS = 1.015;
static const double ALL_ASK = 0.38; /* the share of the multiprocessors that can ask for all that memory gives */
/* Rows of a tile that begin within lines of 128 bytes cost L2 this many times as much. It answers each block: sharing such an operand
 * saves half, that of an aligned one nothing. */
static const double ASTRIDE = 2.6;

/* The longest of three, and something more where they are about the same. */
static double longest(double a, double b, double c)
{
    return pow(pow(a, 8) + pow(b, 8) + pow(c, 8), 1.0 / 8);
}

/* Rows of an operand's tile, in those that a block alone asks L2 for, each a line. */
static double lines_asked(const spk_operand *o, int rows, bool shared)
{
    const bool astride = o->ld * 2 % 128 != 0 || (o->stride * 2) % 128 != 0;
    return rows * (astride ? ASTRIDE / (shared ? 2 : 1) : 1);
}

/* A chunk of K of one tile. busy: the share of the multiprocessors that work. */
static double step_us(const spk_problem *p, gemm_constants c, const gemm_shape *s, double busy)
{
    const double narrow = c.width < 64 ? 64.0 / c.width : c.width < 128 ? 1.05 : 1; /* wgmma reads A again for every instruction */
    const double flops = 2.0 * c.height * c.width * GEMM_CHUNK * narrow / FLOPS_US;
    const double lines = lines_asked(&p->a, c.height, c.cluster_n > 1) + lines_asked(&p->b, c.width, c.cluster_m > 1);
    const double bytes = 2 * lines * GEMM_CHUNK / L2_BYTES_US * (busy < 0.6 ? 0.7 : 1);
    const double more =
        (s->sharing > 1 ? SHARED : 1) * (s->stages == 3 ? FEW_STAGES : 1) * (!c.pingpong && c.height == 256 ? MANY_SUMS : 1);
    return longest(flops, bytes, STEP_LEAST_US) * more;
}

/* The epilogue and the store of a tile, in those of a plain one of 128 x 256. */
static double store_weight(const spk_problem *p, gemm_constants c)
{
    const spk_epilogue *e = &p->epilogue;
    const int arrays = e->use_c + (e->residual != SPK_RESIDUAL_NONE) + e->keep_preact;
    return c.height * c.width / (128.0 * 256) * (1 + arrays + (e->activation > SPK_ACT_RELU ? 0.7 : 0));
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const spk_problem p = computed(problem, params);
    const gemm_constants c = constants_of(&p, params);
    const gemm_shape s = gemm_shape_of(c);
    const double even = count_tiles(&p, c) * c.split / spk_sm90_processors(device), waves = fmax(ceil(even), 1);
    const double steps = ceil(item_extent(&p, SPK_GROUP_DEPTH) / GEMM_CHUNK / c.split), store = store_weight(&p, c),
                 sums = steps * step_us(&p, c, &s, even / waves);
    /* in turns only the last store is seen; of one tile alone, which keeps half of the threads, all of it */
    const bool alone = c.pingpong && waves == 1 && c.height > 64;
    const double exposed = alone ? 0.9 + 1.6 * store : c.pingpong ? 3.7 * store / waves + fmax(store - sums, 0) : 0.4 + 1.9 * store;
    /* where the last wave is not full, the others' power and bytes are its own */
    const double us = (0.96 * waves + 0.04 * even) * (sums + exposed);
    const bool swap = TUNED(params, SWAP);
    const double copies =
        (double)(copy_bytes(swap ? &problem->b : &problem->a, &p.a, p.batch) + copy_bytes(swap ? &problem->a : &problem->b, &p.b, p.batch));
    const double memory_us = spk_problem_bytes(problem) / HBM_BYTES_US * fmax(1, ALL_ASK / fmax(even, 0.01));
    return 3 + (c.split > 1 ? 1.0 : 0) + fmax(us, memory_us + 0.1 * us) + (copies > 0 ? 3 + 2 * copies / COPY_BYTES_US : 0);
}

/* ---- the program */

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const spk_problem p = computed(problem, params);
    const gemm_constants constants = constants_of(&p, params);
    spk_build_begin(build, "gemm_sm90_wgmma.cu", "gemm_sm90_wgmma", &p);
    build->shared_bytes = gemm_shape_of(constants).shared_bytes;
    GEMM_CONSTANTS(SPK_BUILD_DEFINE)
}

static void copy_build(spk_build *build)
{
    *build = (spk_build){.file = "copy_lines.cu", .entry = "copy_lines"};
}

static void unbind(spk_bound *bound)
{
    if (bound->state != NULL)
        spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

/* Clusters that run at once: a processor cluster that lacks a few multiprocessors holds fewer. */
static spk_status count_clusters(const spk_bound *bound, const state *made, int *clusters)
{
    const int size = made->shape.cluster, most = spk_sm90_processors(bound->device) / size;
    spk_launch_attribute cluster = {.id = ATTRIBUTE_CLUSTER_DIMENSION, .value = {(unsigned)size, 1, 1}};
    const spk_launch_config config = {.grid_x = (unsigned)(most * size),
                                      .grid_y = 1,
                                      .grid_z = 1,
                                      .block_x = (unsigned)made->shape.threads,
                                      .block_y = 1,
                                      .block_z = 1,
                                      .shared_bytes = (unsigned)made->shape.shared_bytes,
                                      .attributes = &cluster,
                                      .attribute_count = 1};
    SPK_TRY(spk_cuda_check(bound->device, spk_cuda_of(bound->device)->driver->active_clusters(clusters, made->function, &config),
                           "cuOccupancyMaxActiveClusters"));
    if (*clusters < 1)
        return spk_fail(SPK_ERR_UNSUPPORTED, "no cluster of %d blocks with %d bytes of shared memory each fits into the device", size,
                        made->shape.shared_bytes);
    *clusters = *clusters < most ? *clusters : most;
    return SPK_OK;
}

/* Tiles of all items, or at most so many: of a group that cuts D one may be part of a tile. */
static double most_tiles(const spk_problem *p, double rows, double columns)
{
    const double items = (double)p->batch;
    return p->group_axis == SPK_GROUP_ROWS   ? (rows + items) * columns
           : p->group_axis == SPK_GROUP_COLS ? rows * (columns + items)
                                             : rows * columns * items;
}

/* So that what runs at once shares more of the longer side of a tile; of groups, so that all their tiles side by side do. */
static bool goes_down(const spk_problem *p, int64_t height, int64_t width)
{
    return p->group_axis == SPK_GROUP_ROWS || (p->group_axis != SPK_GROUP_COLS && height > width);
}

static spk_status set_order(const spk_bound *bound, state *made)
{
    const spk_problem *p = &made->problem;
    const gemm_constants c = constants_of(p, &bound->params);
    const int64_t height = c.height * c.cluster_m, width = c.width * c.cluster_n;
    const int64_t rows = (p->m + height - 1) / height, columns = (p->n + width - 1) / width;
    const double tiles = most_tiles(p, (double)rows, (double)columns);
    const bool brief = spk_problem_bytes(p) < BRIEF_BYTES;
    int slots = spk_sm90_processors(bound->device);
    if (tiles > INT_MAX)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld x %lld tiles of D, %lld items: the limit is 2^31", (long long)rows, (long long)columns,
                        (long long)p->batch);
    made->order = (gemm_order){.row_tiles = (int)rows,
                               .col_tiles = (int)columns,
                               .item_tiles = (int)(rows * columns),
                               .tiles = (int)tiles,
                               .group = GROUP_LINES,
                               .down = goes_down(p, height, width),
                               .steps = (int)((p->k + GEMM_CHUNK - 1) / GEMM_CHUNK),
                               .early = brief,
                               .once = brief || columns == 1};
    if (made->shape.cluster > 1 && made->order.tiles > 0)
        SPK_TRY(count_clusters(bound, made, &slots));
    made->blocks = (made->order.tiles < slots ? made->order.tiles : slots) * made->shape.cluster;
    return SPK_OK;
}

static spk_status prepare(const spk_bound *bound, state *made)
{
    spk_build program = {0}, copy = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_function(bound->device, &program, &made->function));
    if (made->a_bytes + made->b_bytes > 0) {
        copy_build(&copy);
        SPK_TRY(spk_cuda_function(bound->device, &copy, &made->copy));
    }
    return set_order(bound, made);
}

static spk_status bind(spk_bound *bound)
{
    const spk_problem *given = &bound->problem;
    const bool swap = TUNED(&bound->params, SWAP) != 0;
    state *made = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    made->problem = computed(given, &bound->params);
    made->shape = gemm_shape_of(constants_of(&made->problem, &bound->params));
    made->a_bytes = copy_bytes(swap ? &given->b : &given->a, &made->problem.a, given->batch);
    made->b_bytes = copy_bytes(swap ? &given->a : &given->b, &made->problem.b, given->batch);
    bound->workspace_bytes = made->a_bytes + made->b_bytes;
    made->index.arguments = spk_cuda_arguments_of(&made->problem, &bound->view);
    spk_status status = prepare(bound, made);
    if (status != SPK_OK)
        unbind(bound);
    return status;
}

/* ---- a run */

/* A tile of an operand whose lines run along K has them one below the other; else 64 elements of each line lie together. */
static spk_tensor_map_desc map_operand(const spk_problem *p, const spk_operand *o, const void *address, bool along_k, bool whole, int lines)
{
    const int64_t count = along_k ? spk_operand_lines(o) : spk_operand_length(o);
    const int across = lines < 64 ? lines : 64;
    spk_tensor_map_desc map = {.dtype = o->dtype, .rank = 2, .swizzle_bytes = 128, .address = address};
    if (along_k) {
        map.sizes[0] = p->k;
        map.sizes[1] = count;
        map.box[0] = GEMM_CHUNK;
        map.box[1] = lines;
    } else if (whole && across == 64) {
        map.rank = 3;
        map.sizes[0] = map.box[0] = 64;
        map.sizes[1] = p->k;
        map.sizes[2] = count / 64;
        map.box[1] = GEMM_CHUNK;
        map.box[2] = lines / 64;
        map.strides[2] = 64;
    } else {
        map.swizzle_bytes = across * 2;
        map.sizes[0] = count;
        map.sizes[1] = p->k;
        map.box[0] = across;
        map.box[1] = GEMM_CHUNK;
    }
    map.strides[1] = o->ld;
    return spk_sm90_map_items(p, map, o->stride);
}

static spk_status make_maps(const spk_bound *bound, const state *made, const spk_args *args, bool direct, CUtensorMap maps[3])
{
    const spk_problem *p = &made->problem;
    const gemm_constants c = constants_of(p, &bound->params);
    const spk_cuda_driver *driver = spk_cuda_of(bound->device)->driver;
    if (p->k > 0) {
        const spk_tensor_map_desc a = map_operand(p, &p->a, args->a, p->a.layout == SPK_ROW_MAJOR, c.a_whole, c.height / c.cluster_n),
                                  b = map_operand(p, &p->b, args->b, p->b.layout == SPK_COL_MAJOR, c.b_whole, c.width / c.cluster_m);
        SPK_TRY(spk_cuda_tensor_map(driver, &a, &maps[0]));
        SPK_TRY(spk_cuda_tensor_map(driver, &b, &maps[1]));
    }
    if (direct)
        return SPK_OK;
    const spk_tensor_map_desc d = spk_sm90_map_items(p, spk_sm90_map_d(p, args->d, 64, made->shape.staging_columns), p->d.stride);
    return spk_cuda_tensor_map(driver, &d, &maps[2]);
}

/* An operand to the workspace, in lines that begin at multiples of 16 bytes; *address becomes that of the copy. */
static spk_status copy_operand(const spk_bound *bound, const state *made, const spk_operand *from, const spk_operand *to, char *memory,
                               const void **address, CUstream stream)
{
    copy_lines_task task = {.from = *address,
                            .to = (unsigned short *)(void *)memory,
                            .items = from->stride != 0 ? bound->problem.batch : 1,
                            .lines = spk_operand_lines(from),
                            .length = spk_operand_length(from),
                            .from_ld = from->ld,
                            .to_ld = to->ld,
                            .from_stride = from->stride,
                            .to_stride = to->stride};
    void *parameters[] = {&task};
    const int64_t each = COPY_LINES_THREADS * COPY_LINES_PIECE, blocks = (task.items * task.lines * task.to_ld + each - 1) / each;
    const int64_t most = 16 * (int64_t)spk_sm90_processors(bound->device);
    *address = memory;
    return spk_cuda_launch_early(bound->device, made->copy, (unsigned)(blocks < most ? blocks : most), COPY_LINES_THREADS, 0, stream,
                                 parameters);
}

static spk_status launch(const spk_bound *bound, const state *made, const spk_args *given, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    const bool swap = TUNED(&bound->params, SWAP) != 0;
    spk_args args = *given;
    CUtensorMap maps[3] = {{{0}}, {{0}}, {{0}}};
    spk_cuda_arguments arguments;
    gemm_order order = made->order;
    if (swap) {
        args.a = given->b;
        args.b = given->a;
    }
    char *memory = given->workspace;
    if (made->a_bytes > 0 && p->k > 0)
        SPK_TRY(copy_operand(bound, made, swap ? &p->b : &p->a, &made->problem.a, memory, &args.a, stream));
    if (made->b_bytes > 0 && p->k > 0)
        SPK_TRY(copy_operand(bound, made, swap ? &p->a : &p->b, &made->problem.b, memory + made->a_bytes, &args.b, stream));
    order.direct = spk_sm90_d_direct(&made->problem, args.d);
    SPK_TRY(make_maps(bound, made, &args, order.direct, maps));
    spk_cuda_arguments_fill(&made->index, &args, &arguments);
    void *parameters[] = {&maps[0], &maps[1], &maps[2], &arguments, &order};
    return spk_cuda_launch_early(bound->device, made->function, (unsigned)made->blocks, (unsigned)made->shape.threads,
                                 made->shape.shared_bytes, stream, parameters);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    if (made->order.tiles == 0)
        return SPK_OK;
    return launch(bound, made, args, (CUstream)stream);
}

/* TMA reads from multiples of 16 bytes; a copy begins at one. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const state *made = bound->state;
    const bool swap = TUNED(&bound->params, SWAP) != 0;
    const uintptr_t a = (uintptr_t)(swap ? args->b : args->a), b = (uintptr_t)(swap ? args->a : args->b);
    return bound->problem.k == 0 || ((made->a_bytes > 0 || a % 16 == 0) && (made->b_bytes > 0 || b % 16 == 0));
}

const spk_kernel_ops gemm_sm90_wgmma_ops = {.applicable = applicable,
                                            .predict_us = predict_us,
                                            .build = build,
                                            .bind = bind,
                                            .unbind = unbind,
                                            .accepts = accepts,
                                            .run = run,
                                            .batched = true,
                                            .grouped = true,
                                            .source_hash = SPK_SOURCE_HASH};

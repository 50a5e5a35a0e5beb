/* The Hopper rows: what they take, their tensor maps, their model. */
#include "backend/cuda/host/tiles/sm90.h"

#include <limits.h>

int spk_sm90_block_rows(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_cols : problem->pattern->block_rows;
}

int spk_sm90_block_cols(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_rows : problem->pattern->block_cols;
}

int64_t spk_sm90_grid_rows(const spk_problem *problem)
{
    return (problem->m + spk_sm90_block_rows(problem) - 1) / spk_sm90_block_rows(problem);
}

bool spk_sm90_b_whole(const spk_problem *problem)
{
    return problem->b.layout == SPK_COL_MAJOR || problem->n % 64 == 0;
}

bool spk_sm90_applicable(const spk_problem *problem, const char **why)
{
    const int64_t high = INT_MAX;
    if ((problem->a.dtype != SPK_F16 && problem->a.dtype != SPK_BF16) || problem->b.dtype != problem->a.dtype)
        *why = "it is for f16 and bf16";
    else if (problem->d.dtype != problem->a.dtype && problem->d.dtype != SPK_F32 && problem->d.dtype != SPK_F16 &&
             problem->d.dtype != SPK_BF16)
        *why = "D must be f16, bf16 or f32";
    else if (problem->compute != SPK_F32)
        *why = "it keeps its sums in f32";
    else if (problem->b.ld % 8 != 0)
        *why = "the leading dimension of B is not a multiple of 8";
    else if (problem->a.stride % 8 != 0 || problem->b.stride % 8 != 0)
        *why = "the items of the batch are not a multiple of 8 elements apart";
    else if (problem->m > high - 256 || problem->n > high - 256 || problem->k > high - 256 ||
             problem->pattern->nnzb * (problem->pattern->block_rows > problem->pattern->block_cols ? problem->pattern->block_rows
                                                                                                   : problem->pattern->block_cols) >
                 high - 256)
        *why = "it counts rows with 31 bits";
    return *why == NULL;
}

/* ---- tensor maps */

spk_tensor_map_desc spk_sm90_map_items(const spk_problem *problem, spk_tensor_map_desc map, int64_t stride)
{
    if (problem->batch == 1)
        return map;
    map.sizes[map.rank] = stride != 0 ? problem->batch : 1;
    map.strides[map.rank] = stride != 0 ? stride : 8;
    map.box[map.rank++] = 1;
    return map;
}

spk_tensor_map_desc spk_sm90_map_values(const spk_bound *bound, const void *values, int rows, int chunk)
{
    const spk_bsr_view *view = &bound->view;
    const spk_dtype dtype = bound->problem.a.dtype;
    if (view->col_stride == 1)
        return (spk_tensor_map_desc){.dtype = dtype,
                                     .rank = 2,
                                     .swizzle_bytes = chunk * 2,
                                     .address = values,
                                     .sizes = {view->block_cols, view->nnzb * view->block_rows},
                                     .strides = {0, view->block_cols},
                                     .box = {chunk, rows}};
    return (spk_tensor_map_desc){.dtype = dtype,
                                 .rank = 3,
                                 .swizzle_bytes = 128,
                                 .address = values,
                                 .sizes = {64, view->nnzb * view->block_cols, view->block_rows / 64},
                                 .strides = {0, view->block_rows, 64},
                                 .box = {64, chunk, rows / 64}};
}

spk_tensor_map_desc spk_sm90_map_block(const spk_bound *bound, const void *values, int chunk)
{
    const spk_bsr_view *view = &bound->view;
    if (view->col_stride == 1)
        return spk_sm90_map_values(bound, values, view->block_rows, chunk);
    return (spk_tensor_map_desc){.dtype = bound->problem.a.dtype,
                                 .rank = 2,
                                 .swizzle_bytes = view->block_rows * 2,
                                 .address = values,
                                 .sizes = {view->block_rows, view->nnzb * view->block_cols},
                                 .strides = {0, view->block_rows},
                                 .box = {view->block_rows, chunk}};
}

spk_tensor_map_desc spk_sm90_map_b(const spk_problem *problem, const void *b, int columns, int chunk)
{
    const spk_dtype dtype = problem->b.dtype;
    if (problem->b.layout == SPK_COL_MAJOR)
        return (spk_tensor_map_desc){.dtype = dtype,
                                     .rank = 2,
                                     .swizzle_bytes = chunk * 2,
                                     .address = b,
                                     .sizes = {problem->k, problem->n},
                                     .strides = {0, problem->b.ld},
                                     .box = {chunk, columns},
                                     .short_lines = chunk < 64};
    if (columns < 64)
        return (spk_tensor_map_desc){.dtype = dtype,
                                     .rank = 2,
                                     .swizzle_bytes = columns * 2,
                                     .address = b,
                                     .sizes = {problem->n, problem->k},
                                     .strides = {0, problem->b.ld},
                                     .box = {columns, chunk}};
    if (spk_sm90_b_whole(problem))
        return (spk_tensor_map_desc){.dtype = dtype,
                                     .rank = 3,
                                     .swizzle_bytes = 128,
                                     .address = b,
                                     .sizes = {64, problem->k, problem->n / 64},
                                     .strides = {0, problem->b.ld, 64},
                                     .box = {64, chunk, columns / 64}};
    return (spk_tensor_map_desc){.dtype = dtype,
                                 .rank = 2,
                                 .swizzle_bytes = 128,
                                 .address = b,
                                 .sizes = {problem->n, problem->k},
                                 .strides = {0, problem->b.ld},
                                 .box = {64, chunk}};
}

spk_tensor_map_desc spk_sm90_map_d(const spk_problem *problem, void *d, int piece_rows, int columns)
{
    const bool down = problem->d.layout == SPK_COL_MAJOR;
    return (spk_tensor_map_desc){.dtype = problem->d.dtype,
                                 .rank = 2,
                                 .swizzle_bytes = down ? piece_rows * 2 : columns * 2,
                                 .address = d,
                                 .sizes = {down ? problem->m : problem->n, down ? problem->n : problem->m},
                                 .strides = {0, problem->d.ld},
                                 .box = {down ? piece_rows : columns, down ? columns : piece_rows}};
}

bool spk_sm90_d_direct(const spk_problem *problem, const void *d)
{
    const int64_t line = problem->d.layout == SPK_ROW_MAJOR ? problem->n : problem->m;
    return problem->d.dtype == SPK_F32 || problem->d.ld % 8 != 0 || problem->d.stride % 8 != 0 || line % 8 != 0 || (uintptr_t)d % 16 != 0;
}

static spk_status sm90_check_alignment(const spk_problem *problem, const spk_args *args)
{
    if (problem->pattern->nnzb > 0 && (uintptr_t)args->a % 16 != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "values = %p is not aligned to 16 bytes, as this kernel needs", args->a);
    if (problem->pattern->nnzb > 0 && (uintptr_t)args->b % 16 != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "b = %p is not aligned to 16 bytes, as this kernel needs", args->b);
    return SPK_OK;
}

bool spk_sm90_accepts(const spk_bound *bound, const spk_args *args)
{
    return bound->problem.pattern->nnzb == 0 || (((uintptr_t)args->a | (uintptr_t)args->b) & 15) == 0;
}

spk_status spk_sm90_maps(const spk_bound *bound, const spk_args *args, const spk_tensor_map_desc *a, const spk_tensor_map_desc *b,
                         const spk_tensor_map_desc *d, bool direct, CUtensorMap maps[3])
{
    const spk_cuda_driver *driver = spk_cuda_of(bound->device)->driver;
    SPK_TRY(sm90_check_alignment(&bound->problem, args));
    if (bound->view.nnzb > 0) {
        SPK_TRY(spk_cuda_tensor_map(driver, a, &maps[0]));
        SPK_TRY(spk_cuda_tensor_map(driver, b, &maps[1]));
    }
    return direct ? SPK_OK : spk_cuda_tensor_map(driver, d, &maps[2]);
}

/* ---- the model */

int spk_sm90_processors(const spk_device *device)
{
    return device->state != NULL && spk_cuda_of(device)->processors > 0 ? spk_cuda_of(device)->processors : 132;
}

/* A stage where `blocks` share a multiprocessor; share: of L2's bytes, 1 where all multiprocessors are busy. */
static double sm90_stage_us(const sm90_load *load, double blocks, double share)
{
    const double l2_us = load->stage_bytes * blocks / (SM90_L2_BYTES_US * (share < 1 ? 1 : share > SM90_L2_ALONE ? SM90_L2_ALONE : share));
    const double us = load->stage_flops * blocks / SM90_FLOPS_US > l2_us ? load->stage_flops * blocks / SM90_FLOPS_US : l2_us;
    return load->stage_issue_us > us ? load->stage_issue_us : us;
}

double spk_sm90_predict(const spk_problem *problem, const spk_device *device, const sm90_load *load)
{
    const double processors = spk_sm90_processors(device), most = load->blocks_per_processor, slots = processors * most;
    const double needed = load->tiles > processors ? (double)(int64_t)((load->tiles + processors - 1) / processors) : 1;
    const double blocks = needed < most ? needed : most; /* that share a multiprocessor */
    const double stage_us = sm90_stage_us(load, blocks, load->tiles > 0 ? processors / load->tiles : 1),
                 alone_us = sm90_stage_us(load, blocks, SM90_L2_ALONE);
    const double waves = load->tiles <= slots ? 1 : (double)(int64_t)((load->tiles + slots - 1) / slots);
    const double mean = load->tiles > 0 ? load->stages / load->tiles : 0;
    double us = waves * (mean * stage_us + load->tile_us);
    us = load->longest * alone_us + load->tile_us > us ? load->longest * alone_us + load->tile_us : us;
    const double memory_us = spk_problem_bytes(problem) / SM90_HBM_BYTES_US;
    return 3 + 0.3 * (most - blocks) + (memory_us > us ? memory_us : us);
}

double spk_sm90_longest_row(const spk_problem *problem)
{
    const double rows = (double)spk_sm90_grid_rows(problem), mean = rows > 0 ? (double)problem->pattern->nnzb / rows : 0;
    if (problem->trans_a == SPK_TRANS)
        return mean * (1 + 3 * problem->pattern->features.col_spread);
    return (double)problem->pattern->features.longest_row;
}

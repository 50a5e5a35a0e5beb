/* attention_simt: host side. */
#include "backend/cuda/kernels/attention_simt.h"
#include "backend/cuda/host/frame/rows.h"

#include "backend/cuda/host/attention/attention_tiles.h"
#include "op/attention/attention.h"

#define TUNED(params, name) SPK_TUNED(attention_simt, params, name)

enum { MOST_DEPTH = 256, MOST_SUMS = 80, OTHER_REGISTERS = 100, VECTOR_BYTES = 16 };

static attention_simt_shape own_shape(const attention_tiles_shape *tiles)
{
    return attention_simt_shape_of(tiles->c);
}

static attention_tiles_shape shape_of(const spk_problem *p, const spk_params *params)
{
    const int most_vector = VECTOR_BYTES / (int)spk_dtype_bytes(p->operand[ATTENTION_Q].dtype);
    attention_tiles_shape tiles =
        spk_attention_tiles_of(p, TUNED(params, ROWS), TUNED(params, WARPS), TUNED(params, STEP), TUNED(params, SPLIT), most_vector);
    tiles.shared_bytes = own_shape(&tiles).shared_bytes;
    return tiles;
}

static const char *problem_refusal(const spk_problem *p)
{
    if (p->compute != SPK_F32)
        return "it keeps its sums in f32";
    if (p->k < 1 || p->k > MOST_DEPTH || p->depth_v < 1 || p->depth_v > MOST_DEPTH)
        return "the depths must be between 1 and 256";
    return spk_attention_tiles_problem_refusal(p);
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    *why = problem_refusal(p);
    if (*why != NULL)
        return false;
    const attention_tiles_shape tiles = shape_of(p, params);
    const int rows = TUNED(params, ROWS) / TUNED(params, WARPS);
    if (rows < 2 || rows > 8)
        *why = "a warp has 2, 4 or 8 rows";
    else if (own_shape(&tiles).registers > MOST_SUMS)
        *why = "a thread would keep too many sums";
    else
        *why = spk_attention_tiles_refusal(p, device, &tiles);
    return *why == NULL;
}

/* ---- the model: nothing of it was measured */

/* The share of multiply-adds that an instruction stream reaches with so many rows of a warp. */
static double busy_of(int rows)
{
    return rows >= 8 ? 0.35 : rows >= 4 ? 0.28 : 0.2;
}

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_tiles_shape tiles = shape_of(p, params);
    const attention_simt_shape own = own_shape(&tiles);
    const double peak_gflops = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 : 6e4,
                 processors = device->processors > 0 ? device->processors : 132, rate = peak_gflops * 1e3 / processors;
    const double pairs = (double)tiles.c.tile_rows * tiles.c.tile_heads * tiles.c.step_keys;
    const int together = spk_attention_tiles_together(device, &tiles, own.registers + OTHER_REGISTERS);
    const attention_tiles_load load = {.step_us = 2 * pairs * (own.depth4 + own.columns_v) / (rate * busy_of(own.rows)) + 0.3,
                                       .tile_us = 1.5,
                                       .together = together,
                                       .alone = 1.6};
    return spk_attention_tiles_predict(p, device, &tiles, load) + 2;
}

/* ---- the program */

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const attention_tiles_shape tiles = shape_of(p, params);
    spk_attention_tiles_build(p, &tiles, "attention_simt.cu", "attention_simt", build);
}

static spk_status bind(spk_bound *bound)
{
    const attention_tiles_shape tiles = shape_of(&bound->problem, &bound->params);
    spk_build program = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    return spk_attention_tiles_bind(bound, &tiles, &program);
}

const spk_kernel_ops attention_simt_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_attention_tiles_unbind,
                                           .run = spk_attention_tiles_run,
                                           .batched = true,
                                           .device_indices = true,
                                           .source_hash = SPK_SOURCE_HASH};

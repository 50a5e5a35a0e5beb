/* attention_sm80: host side. */
#include "backend/cuda/kernels/attention_sm80.h"
#include "backend/cuda/host/frame/rows.h"

#include <math.h>

#include "backend/cuda/host/attention/attention_tiles.h"
#include "backend/cuda/host/frame/build.h"
#include "op/attention/attention.h"

#define TUNED(params, name) SPK_TUNED(attention_sm80, params, name)

enum {
    LEAST_DEPTH = 16,
    MOST_DEPTH = 256,
    MOST_VECTOR = 8,
    MOST_SUMS = 160,
    MOST_SUMS_SCRUBBED = 144,
    MOST_SUMS_SCRUBBED_TWICE = 136,
    OTHER_REGISTERS = 80,
    MOST_REGISTERS = 255
};

static attention_sm80_constants own_constants(const spk_params *params)
{
    return (attention_sm80_constants){.sixteens = TUNED(params, SIXTEENS), .q_held = TUNED(params, Q_HELD)};
}

static attention_sm80_shape own_shape(const attention_tiles_shape *tiles, const spk_params *params)
{
    return attention_sm80_shape_of(tiles->c, own_constants(params));
}

static attention_tiles_shape shape_of(const spk_problem *p, const spk_params *params)
{
    const int warps = TUNED(params, WARPS), rows = warps * TUNED(params, SIXTEENS) * 16;
    attention_tiles_shape tiles = spk_attention_tiles_of(p, rows, warps, TUNED(params, STEP), TUNED(params, SPLIT), MOST_VECTOR);
    tiles.shared_bytes = own_shape(&tiles, params).shared_bytes;
    return tiles;
}

static const char *problem_refusal(const spk_problem *p)
{
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    if (dtype != SPK_F16 && dtype != SPK_BF16)
        return "it is for f16 and bf16";
    if (p->k % 8 != 0 || p->depth_v % 8 != 0 || p->k < LEAST_DEPTH || p->k > MOST_DEPTH || p->depth_v < LEAST_DEPTH ||
        p->depth_v > MOST_DEPTH)
        return "the depths must be multiples of 8 between 16 and 256";
    return spk_attention_tiles_problem_refusal(p);
}

/* Registers of a thread's sums, scores and Q for which there is room: none of them is free while V is searched and cleaned. */
static int most_sums(const attention_tiles_shape *tiles, const spk_params *params)
{
    if (!tiles->c.scrub)
        return MOST_SUMS;
    return TUNED(params, SIXTEENS) == 2 ? MOST_SUMS_SCRUBBED_TWICE : MOST_SUMS_SCRUBBED;
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    *why = problem_refusal(p);
    if (*why != NULL)
        return false;
    const attention_tiles_shape tiles = shape_of(p, params);
    if (own_shape(&tiles, params).registers > most_sums(&tiles, params))
        *why = "a thread would keep too many sums";
    else
        *why = spk_attention_tiles_refusal(p, device, &tiles);
    return *why == NULL;
}

/* ---- the model: nothing of it was measured */

/* Times the f32 peak, of products of f16; of these the share that warps reach with 16 and with 32 rows each. */
static const double TENSOR_TIMES = 7, BUSY_OF_16 = 0.4, BUSY_OF_32 = 0.55, EXPONENTIALS_US = 15.2e3, STEP_US = 0.1;

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    const attention_tiles_shape tiles = shape_of(p, params);
    const attention_sm80_shape own = own_shape(&tiles, params);
    const double peak_gflops = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 : 6e4,
                 processors = device->processors > 0 ? device->processors : 132,
                 rate = TENSOR_TIMES * peak_gflops * 1e3 / processors; /* flops in a microsecond of a multiprocessor */
    const double pairs = (double)tiles.c.tile_rows * tiles.c.tile_heads * tiles.c.step_keys,
                 busy = (TUNED(params, SIXTEENS) == 2 ? BUSY_OF_32 : BUSY_OF_16) * (TUNED(params, Q_HELD) ? 1.05 : 1);
    const int registers = own.registers + OTHER_REGISTERS,
              together = spk_attention_tiles_together(device, &tiles, registers < MOST_REGISTERS ? registers : MOST_REGISTERS);
    const double warps = (double)together * tiles.c.warps, few = warps < 8 ? 8 / warps : 1;
    const attention_tiles_load load = {.step_us = 2 * pairs * (own.depth16 + tiles.c.depth_v) / (rate * busy) * sqrt(few) +
                                                  pairs / EXPONENTIALS_US * (tiles.c.capped ? 1.5 : 1) + STEP_US,
                                       .tile_us = 1.2 + 0.006 * (tiles.c.depth + tiles.c.depth_v),
                                       .together = together,
                                       .alone = tiles.c.warps < 8 ? 1 + 0.1 * (8 - tiles.c.warps) / 2 : 1};
    return spk_attention_tiles_predict(p, device, &tiles, load) * (tiles.c.vector < 8 ? 1 + 0.5 / tiles.c.vector : 1);
}

/* ---- the program */

static void build(const spk_problem *p, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    const attention_tiles_shape tiles = shape_of(p, params);
    const attention_sm80_constants constants = own_constants(params);
    spk_attention_tiles_build(p, &tiles, "attention_sm80.cu", "attention_sm80", build);
    ATTENTION_SM80_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status bind(spk_bound *bound)
{
    const attention_tiles_shape tiles = shape_of(&bound->problem, &bound->params);
    spk_build program = {0};
    build(&bound->problem, bound->device, &bound->params, &program);
    return spk_attention_tiles_bind(bound, &tiles, &program);
}

/* cp.async reads from multiples of what it copies. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    return spk_attention_tiles_whole(&bound->problem, args, shape_of(&bound->problem, &bound->params).c.vector);
}

const spk_kernel_ops attention_sm80_ops = {.applicable = applicable,
                                           .predict_us = predict_us,
                                           .build = build,
                                           .bind = bind,
                                           .unbind = spk_attention_tiles_unbind,
                                           .accepts = accepts,
                                           .run = spk_attention_tiles_run,
                                           .batched = true,
                                           .device_indices = true,
                                           .source_hash = SPK_SOURCE_HASH};

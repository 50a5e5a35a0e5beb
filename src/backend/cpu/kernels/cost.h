/* Cost models of the own CPU kernels: cycles of one core from the shape of the work, then threads, caches and memory. They order
 * candidates; the constants are measured on Zen 3, those of AVX-512 on Emerald Rapids, and only their ratios matter. */
#ifndef SPK_BACKEND_CPU_KERNELS_COST_H
#define SPK_BACKEND_CPU_KERNELS_COST_H

#include "backend/cpu/kernels/tiles/narrow_plan.h"

typedef struct cost_machine {
    double ghz, threads;
    double multiplies; /* vector multiply-adds a cycle of this kernel's vectors */
} cost_machine;

/* fused: the kernel's multiply-add is one instruction. */
static inline cost_machine cost_of_machine(const spk_device *device, bool fused)
{
    const double threads = device->executor.threads > 0 ? device->executor.threads : 1;
    const double flops_a_cycle = device->isa & SPK_ISA_AVX512F ? 64 : device->isa & SPK_ISA_FMA ? 32 : 8;
    return (cost_machine){device->peak_gflops_f32 / threads / flops_a_cycle, threads, fused ? 2 : 1};
}

/* Cycles to finish one vector of D. */
static inline double cost_of_epilogue(const spk_problem *problem, double lanes)
{
    static const double activation[] = {0, 1, 22, 14, 13};
    const spk_epilogue *e = &problem->epilogue;
    const bool plain =
        !e->use_c && e->residual == SPK_RESIDUAL_NONE && !e->keep_preact && e->bias == SPK_BIAS_NONE && e->activation == SPK_ACT_NONE;
    const double operands = 2 * (e->use_c + (e->residual != SPK_RESIDUAL_NONE) + e->keep_preact) + (e->bias != SPK_BIAS_NONE);
    const double turned = problem->d.layout == SPK_COL_MAJOR ? 1.5 * lanes : 0;
    return plain && turned == 0 ? 1 : 4 + operands + activation[e->activation] * (problem->a.dtype == SPK_F64 ? 1.8 : 1) + turned;
}

/* Microseconds from cycles of all cores together: what no cache holds must also come from memory. */
static inline double cost_finish(const spk_problem *problem, const spk_device *device, const cost_machine *machine, double cycles,
                                 double tasks, double passes)
{
    const double used = tasks < machine->threads ? (tasks < 1 ? 1 : tasks) : machine->threads;
    const double bytes = spk_problem_bytes(problem), cache = device->l3_bytes > 0 ? (double)device->l3_bytes : 8e6;
    const double from_memory = problem->cache == SPK_COLD || bytes > cache ? bytes / device->stream_gbs / 1e3 : 0;
    return 0.3 + (used > 1 ? spk_wake_us(machine->threads) * passes : 0) + cycles / used / machine->ghz / 1e3 + 0.6 * from_memory;
}

/* Cycles of one tile of h x w accumulators over one block. */
static inline double cost_of_tile_block(const cost_machine *machine, int h, int w, double depth)
{
    const int u = tile_blocks_at_once(h, w);
    const double multiply = h * w / machine->multiplies, load = (h + w) / 2.0,
                 issue = (h * w * (2 / machine->multiplies) + h + w + 3) / 5.5, wait = 4.0 / u;
    double cycles = multiply > load ? multiply : load;
    cycles = cycles > issue ? cycles : issue;
    cycles = cycles > wait ? cycles : wait;
    return 1.06 * depth * cycles + (u > 1 ? 7 : 14);
}

static inline double cost_of_tiles(const spk_problem *problem, const spk_device *device, tile_tunables tuned, const tile_machine *tiles)
{
    const cost_machine machine = cost_of_machine(device, tiles->fused);
    const int64_t lanes = tiles->lanes, element_bytes = tiles->element_bytes;
    const bool lines = lanes * element_bytes >= 64; /* a vector is a line of the cache */
    const bool converts = tile_converts(problem);
    const int64_t stored_bytes = converts ? 2 : element_bytes;
    const tile_cut cut = tile_make_cut(problem, tuned, device->executor.threads, tiles);
    if (cut.panels == 0 || problem->m == 0)
        return 0.1;
    const double rows = (double)tile_grid_rows(problem), blocks = (double)problem->pattern->nnzb,
                 depth = (double)tile_ceil(tile_block_cols(problem), tiles->step);
    const int wide = (int)tile_ceil(cut.vectors, cut.panels), narrow = wide > 1 ? wide - 1 : 1;
    const double wide_panels = cut.panels > 1 || wide == cut.vectors ? (double)(cut.vectors - cut.panels * narrow) : 0;
    const double narrow_panels = (double)cut.panels - wide_panels;
    double cycles = 0;
    for (int pass = 0; pass < 2; pass++) {
        const int w = pass == 0 ? wide : narrow;
        const double panels = wide == narrow ? (pass == 0 ? (double)cut.panels : 0) : pass == 0 ? wide_panels : narrow_panels;
        const tile_split split = tile_make_split(tiles, tile_block_rows(problem), w);
        const double block = split.taller * cost_of_tile_block(&machine, split.low + 1, w, depth) +
                             (split.tiles - split.taller) * (split.low > 0 ? cost_of_tile_block(&machine, split.low, w, depth) : 0);
        /* Each tile converts the rows of B that it reads where they lie; or all tiles of a block row read a copy, and sums wait. */
        const double converted = cut.packed || !converts ? 0
                                 : cut.near              ? (1.5 * depth + tile_block_rows(problem)) * w
                                                         : 0.6 * depth * w * split.tiles;
        cycles += panels * (blocks * (block + converted) + rows * (25 + 22.0 * split.tiles));
    }
    /* Values come once a group where a block row stays in the first cache, else once a panel. */
    const double row_bytes = tile_row_bytes(problem, element_bytes) / tiles->step, value_bytes = row_bytes * rows;
    const double groups = (double)tile_ceil(cut.panels, cut.group), near = row_bytes < 16384 ? groups : (double)cut.panels;
    cycles += value_bytes * (near / 40 + (cut.fetches_values ? 0 : groups / 30));
    /* B in place: rows far apart share few sets of the caches; the more so at powers of two, the less so where a vector is a line. */
    const double panel_bytes = (double)problem->k / tiles->step * (double)cut.vectors * (double)lanes * (double)element_bytes;
    if (!cut.packed && !cut.near && cut.panels > 1)
        cycles *= lines                                     ? 1 + (converts ? 1.5 : 3) / (depth + 2)
                  : problem->b.ld * stored_bytes % 512 == 0 ? (cut.vectors > 4 ? 1.5 : 1.1)
                                                            : 1.15;
    if (cut.fetches)
        cycles *= 0.95;
    /* Values whose columns are contiguous: a tile takes a few elements of each of many lines. Copied values flow; the copy costs. */
    if (cut.values && converts)
        cycles += 0.4 * (double)cut.slices * value_bytes / (double)element_bytes;
    if (cut.by_tile)
        cycles = 0.96 * cycles + 1.5 * (double)cut.slices * value_bytes / (double)element_bytes;
    else if (!cut.values && !narrow_rows_contiguous(problem) && tile_block_rows(problem) >= 16)
        cycles *= depth >= 32 ? 1.28 : 1.08;
    if (cut.packed)
        cycles += panel_bytes / (converts ? 3 : problem->b.layout == SPK_ROW_MAJOR ? 6 : 4);
    /* A group wider than the second cache reads B from the third. */
    const double l2 = device->l2_bytes > 0 ? (double)device->l2_bytes : 512e3;
    if (panel_bytes / groups > l2 && !(lines && !cut.packed))
        cycles += blocks * depth * (double)cut.vectors * (double)(lanes * element_bytes) / 24;
    cycles += (double)problem->m * (double)cut.vectors * cost_of_epilogue(problem, (double)lanes);
    return cost_finish(problem, device, &machine, cycles, (double)(cut.slices * cut.parts), cut.packed && !cut.fused ? 2 : 1);
}

static inline double cost_of_narrow(const spk_problem *problem, const spk_device *device, int64_t lanes, int64_t element_bytes)
{
    const narrow_way way = narrow_way_of(problem);
    const cost_machine machine = cost_of_machine(device, true);
    const double n = (double)problem->n, blocks = (double)problem->pattern->nnzb, rows = tile_block_rows(problem),
                 depth = tile_block_cols(problem);
    if (n == 0 || problem->m == 0)
        return 0.1;
    /* Vectors of sums down and across a tile, and steps along k. */
    const double units = way == NARROW_ALONG_ROWS ? (double)tile_ceil(tile_block_rows(problem), lanes) : rows;
    const double across = way == NARROW_ALONG_N ? (double)tile_ceil(problem->n, lanes) : n;
    const double steps = way == NARROW_ALONG_K ? (double)tile_ceil(tile_block_cols(problem), lanes) : depth;
    const int most = narrow_most(way, depth <= (double)lanes, (int)problem->n, (int)lanes);
    const double tiles = (double)tile_ceil((int64_t)units, most);
    const double multiply = units * across / 2, load = (units + across * tiles * (way == NARROW_ALONG_ROWS ? 1.5 : 1)) * 0.6;
    double step = multiply > load ? multiply : load;
    if (way == NARROW_ALONG_N && step < 4 * tiles)
        step = 4 * tiles; /* each sum waits for the one before */
    const bool in_turns = tiles > 1 && tile_row_bytes(problem, element_bytes) > 16384;
    const double block = 8 * tiles + (in_turns ? 15 * tiles : 0) + steps * step, stream = rows * depth * (double)element_bytes / 14;
    const double cycles =
        blocks * (block > stream ? block : stream) + (double)problem->m * (4 + 2 * n) + (double)tile_grid_rows(problem) * 20;
    return cost_finish(problem, device, &machine, cycles, 4 * machine.threads, 1);
}

#endif

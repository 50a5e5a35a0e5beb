/* How a tiled SpMM is cut up, whatever the element type and the vector width: D's columns into panels of a few vectors, panels into groups,
 * block rows into parts of equal work. Where columns alone feed all threads a task is a slice of the columns and packs B for itself, group
 * by group into one place that stays in the cache; else B is packed first, or read in place, and a task is a group of panels times a part
 * of the block rows. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILE_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_TILE_PLAN_H

#include <math.h>

#include "backend/cpu/cpu.h"

enum {
    TILE_BUFFER_ROWS = 32,
    TILE_PACK_ROWS = 32,
    TILE_LARGEST_GROUP = 16,
    TILE_MOST_VALUE_BYTES = 1 << 20,
    TILE_AHEAD_BYTES = 4096,
    TILE_CONVERTED_BYTES = 8192,
    TILE_NEAR_BYTES = 16384
};

/* What the tiles know of their elements and instructions. tile_micro.h defines one for its instance. */
typedef struct tile_machine {
    int64_t lanes;         /* elements of a vector */
    int64_t element_bytes; /* of one */
    int accumulators;      /* vectors of sums in registers, at most */
    int tallest;           /* rows of a tile, at most */
    int step;              /* columns of A, and rows of B, that a multiply-add takes: an element holds so many numbers */
    bool fused;            /* a multiply-add is one instruction */
} tile_machine;

/* How a tile reads: as it lies; pairs number by number, which is exact; two vectors of bfloat16 in one load, the even columns in one and
 * the odd ones in the other, where B is read in place. */
enum { TILE_PLAIN, TILE_EXACT, TILE_TWINS };

/* What a tile multiplies at once: a step along K, or, where a step is a pair of numbers, its first or its second alone. */
enum { TILE_WHOLE, TILE_FIRST, TILE_SECOND };

/* The tunables of a row. */
typedef struct tile_tunables {
    /* pack 0: B is read in place (and converted by the tiles); 1: copied into panels; 2: so are the values, as tiles read them; 3: as 0,
     * and tiles fetch the next panel's rows of B; 4: as 1, and tiles fetch the next block row's values; 5: as 0, but a few rows of B are
     * converted at a time, for all tiles of a block row (tile_near.h) */
    int nv, pack, group;
} tile_tunables;
#define TILE_TUNED(row, params) ((tile_tunables){SPK_TUNED(row, params, NV), SPK_TUNED(row, params, PACK), SPK_TUNED(row, params, GROUP)})

typedef struct tile_cut {
    int64_t vectors;     /* ceil(N / lanes) */
    int64_t panels;      /* of nearly equal width, NV vectors at most */
    int64_t slices;      /* of the panels, for tasks */
    int64_t parts;       /* of the block rows, for tasks */
    int64_t group;       /* panels that a task takes together, at most */
    int width;           /* of the widest panel */
    bool packed;         /* B is copied into panels: where asked for, and where N is less than a vector */
    bool values;         /* each task copies the values of a few block rows */
    bool by_tile;        /* as its tiles read them; else as they are stored */
    bool ahead;          /* the values come from beyond the second cache, and are fetched ahead */
    bool fused;          /* each task packs its own groups */
    bool fetches;        /* tiles fetch to the second cache what those of the next panel read of B, */
    bool fetches_values; /* what those of the next block row read of the values */
    bool near;           /* B is copied in pieces that stay in the first cache */
} tile_cut;

static inline int64_t tile_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Where a part of the block rows begins and the one before ends: at a panel of a block row. */
typedef struct tile_place {
    int64_t row, panel;
} tile_place;

/* cut: a block row and the share of its panels that the part before takes, of spk_partition_cuts. */
static inline tile_place tile_place_of(double cut, int64_t panels)
{
    const double row = floor(cut);
    const int64_t panel = (int64_t)((cut - row) * (double)panels + 0.5);
    return panel < panels ? (tile_place){(int64_t)row, panel} : (tile_place){(int64_t)row + 1, 0};
}

static inline int tile_height(const tile_machine *machine, int width)
{
    return machine->accumulators / width < machine->tallest ? machine->accumulators / width : machine->tallest;
}

/* Blocks that a tile takes at a time, each with its own sums: small tiles alone have too few independent multiplications under way. */
static inline __attribute__((always_inline)) int tile_blocks_at_once(int height, int width)
{
    return height * width <= 3 ? 4 : height * width <= 6 ? 2 : 1;
}

/* Rows cut into tiles of nearly equal height: `taller` of low + 1 rows, then the others of low. */
typedef struct tile_split {
    int tiles, low, taller;
} tile_split;

/* Whether sums and a row of B leave no register for an element of A, which each sum then loads for itself: 15 cycles a step for 14. */
static inline bool tile_is_crowded(const tile_machine *machine, int width)
{
    enum { REGISTERS = 32 };
    return (tile_height(machine, width) + 1) * width == REGISTERS;
}

/* No height for more tiles than these is taken. */
static inline int64_t tile_most_tiles(const tile_machine *machine, int64_t rows, int width)
{
    return tile_ceil(rows, tile_height(machine, width) - tile_is_crowded(machine, width));
}

static inline tile_split tile_make_split(const tile_machine *machine, int rows, int width)
{
    const int height = tile_height(machine, width), most = (int)tile_most_tiles(machine, rows, width);
    int tiles = (rows + height - 1) / height;
    if (6 * most <= 7 * tiles) /* each reads all rows of B */
        tiles = most;
    return (tile_split){tiles, rows / tiles, rows % tiles};
}

static inline int64_t tile_grid_rows(const spk_problem *problem)
{
    const spk_pattern *pattern = problem->pattern;
    return problem->trans_a == SPK_TRANS ? tile_ceil(pattern->cols, pattern->block_cols) : tile_ceil(pattern->rows, pattern->block_rows);
}

static inline int tile_block_rows(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_cols : problem->pattern->block_rows;
}

static inline int tile_block_cols(const spk_problem *problem)
{
    return problem->trans_a == SPK_TRANS ? problem->pattern->block_rows : problem->pattern->block_cols;
}

/* Bytes of the values of a block row, on average. */
static inline double tile_row_bytes(const spk_problem *problem, int64_t element_bytes)
{
    const spk_pattern *pattern = problem->pattern;
    const int64_t grid_rows = tile_grid_rows(problem);
    return grid_rows > 0 ? (double)pattern->nnzb * pattern->block_rows * pattern->block_cols * (double)element_bytes / (double)grid_rows
                         : 0;
}

/* Bytes of the values of the fullest block row; for op T, where the pattern knows the spread only, of a very full one. */
static inline double tile_longest_row_bytes(const spk_problem *problem, int64_t element_bytes)
{
    const spk_pattern *pattern = problem->pattern;
    if (problem->trans_a == SPK_TRANS)
        return tile_row_bytes(problem, element_bytes) * (1 + 4 * pattern->features.col_spread);
    return (double)pattern->features.longest_row * pattern->block_rows * pattern->block_cols * (double)element_bytes;
}

/* Whether A and B lie in fewer bits than the tiles multiply: then tiles read copies of the values, and B converted. */
static inline bool tile_converts(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16;
}

/* Rows of B that are packed at a time, panel after panel. A row-major B is read along its rows. A column-major one is read along its
 * columns, whose lines may all want the same set of the first cache: what the hardware fetches ahead has to be used soon. */
static inline int64_t tile_pack_rows(const spk_problem *problem)
{
    return problem->b.layout == SPK_ROW_MAJOR ? TILE_PACK_ROWS : 4 * TILE_PACK_ROWS;
}

/* Below this much work a second thread costs more than it brings. */
static const double TILE_SERIAL_FLOPS = 400e3;

/* Whether `slices` slices of the panels are of nearly one size: the largest sets the time. */
static inline bool tile_even(int64_t panels, int64_t slices)
{
    return slices == 1 || (panels >= 2 * slices && tile_ceil(panels, slices) * slices * 32 <= panels * 33);
}

static inline tile_cut tile_make_cut(const spk_problem *problem, tile_tunables tuned, int threads, const tile_machine *machine)
{
    tile_cut cut = {.vectors = tile_ceil(problem->n, machine->lanes)};
    const int64_t grid_rows = tile_grid_rows(problem);
    const bool pack = tuned.pack != 0 && tuned.pack != 3 && tuned.pack != 5, serial = spk_problem_flops(problem) < TILE_SERIAL_FLOPS;
    const int64_t workers = serial ? 1 : threads;
    cut.panels = tile_ceil(cut.vectors, tuned.nv);
    cut.packed = pack || problem->n < machine->lanes;
    cut.width = cut.panels > 0 ? (int)tile_ceil(cut.vectors, cut.panels) : 1;
    cut.by_tile = tuned.pack == 2;
    cut.values = cut.by_tile || tile_converts(problem);
    cut.ahead = problem->cache == SPK_COLD || tile_row_bytes(problem, machine->element_bytes) * (double)grid_rows / threads +
                                                      (double)problem->k * (double)problem->n * (double)machine->element_bytes >
                                                  1048576.0;
    cut.fetches = tuned.pack == 3;
    cut.fetches_values = tuned.pack == 4;
    cut.near = tuned.pack == 5;
    cut.group = cut.fetches ? cut.panels : cut.values ? TILE_LARGEST_GROUP : tuned.group;
    cut.parts = 1;
    /* Slices of the columns where they come out even: two a thread, against noise, unless the values are copied for each. */
    cut.slices = workers == 1 ? 1 : cut.values || !tile_even(cut.panels, 2 * workers) ? workers : 2 * workers;
    cut.fused = pack && tile_even(cut.panels, cut.slices);
    if (workers == 1 || cut.fused)
        return cut;
    cut.slices = tile_ceil(cut.panels, cut.group);
    cut.parts = cut.slices > 1 ? workers : 2 * workers;
    if (cut.parts > grid_rows) {
        cut.parts = grid_rows > 0 ? grid_rows : 1;
        const int64_t wanted = tile_ceil(2 * workers, cut.parts);
        if (cut.slices < wanted)
            cut.slices = wanted < cut.panels ? wanted : cut.panels;
    }
    return cut;
}

static inline bool tile_applicable(const spk_problem *problem, tile_tunables tuned, const tile_machine *machine, const char **why)
{
    const int nv = tuned.nv, height = tile_block_rows(problem);
    const int64_t vectors = tile_ceil(problem->n, machine->lanes);
    const bool converts = tile_converts(problem);
    if (converts && tuned.pack != 2 && tuned.group > 1)
        *why = "f16 and bf16 but with PACK=2 always make large groups: GROUP=1 stands for them";
    else if (converts && tuned.pack == 0 && vectors > 0 && problem->n < machine->lanes)
        *why = "less than a vector of columns is always copied: PACK=1 stands for it";
    else if (tuned.pack == 3 && problem->b.layout != SPK_ROW_MAJOR)
        *why = "PACK=3 reads rows of B in place: B must be row-major";
    else if (tuned.pack == 3 && tuned.group > 1)
        *why = "PACK=3 takes all panels together: GROUP=1 stands for them";
    else if (tuned.pack == 5 && vectors > 0 && problem->n < machine->lanes)
        *why = "less than a vector of columns is always copied: PACK=1 stands for it";
    else if (tuned.pack == 5 && height < 16)
        *why = "PACK=5 converts for several tiles of a block row: from block heights of 16 on";
    else if ((tuned.pack == 3 || tuned.pack == 4) && (height < 16 || vectors <= nv))
        *why = "PACK=3 and 4 fetch for later tiles: from block heights of 16 and two panels on";
    else if (tuned.pack == 4 && problem->trans_a == SPK_TRANS)
        *why = "PACK=4 fetches values in the order in which they are stored";
    else if (tuned.pack == 0 && problem->b.layout != SPK_ROW_MAJOR)
        *why = "PACK=0 reads rows of B in place: B must be row-major";
    else if (tuned.pack == 2 && tuned.group == 1)
        *why = "PACK=2 copies the values once a group: it wants large ones";
    else if (tuned.pack == 2 && height < 16)
        *why = "PACK=2 pays from block heights of 16 on";
    else if (tuned.group > 4 && tuned.pack != 0)
        *why = "GROUP=8 is for B in place: copies of it would leave the second cache";
    else if (tuned.group > 4 && vectors <= 4 * nv)
        *why = "GROUP=4 makes the same groups";
    else if (tuned.group > 1 && vectors <= nv)
        *why = "one panel makes no group";
    else if (tuned.pack == 2 && !converts && tile_longest_row_bytes(problem, machine->element_bytes) > TILE_MOST_VALUE_BYTES)
        *why = "PACK=2 copies whole block rows: one is too long for the cache";
    else if (nv == 6 && height > 2)
        *why = "NV=6 is for block heights of 1 and 2";
    else if (nv == 4 && machine->accumulators < 24 && height % 3 != 0)
        *why = "NV=4 makes tiles three rows high: the block height must be a multiple of 3";
    else if (nv > 2 && (tile_ceil(vectors, nv) == tile_ceil(vectors, 2) || (nv > 3 && tile_ceil(vectors, nv) == tile_ceil(vectors, 3))))
        *why = "a smaller NV makes the same panels";
    return *why == NULL;
}

#endif

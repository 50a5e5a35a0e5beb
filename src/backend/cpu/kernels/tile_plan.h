/* How a tiled SpMM is cut up, whatever the element type and the vector width: D's columns into panels of a few vectors, panels into groups,
 * block rows into parts of equal work. A task is a group times a part; packed panels of B lie in the workspace. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILE_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_TILE_PLAN_H

#include "backend/cpu/cpu.h"

enum { TILE_MAX_HEIGHT = 6, TILE_MAX_WIDTH = 6, TILE_ACCUMULATORS = 12, TILE_BUFFER_ROWS = 30, TILE_LARGEST_GROUP = 16, TILE_MOST_VALUE_BYTES = 1 << 20 };

/* The tunables, in the order of the rows of kernels.def. */
enum { TILE_NV, TILE_PACK, TILE_GROUP }; /* PACK=1 copies B into panels, PACK=2 the values too */

typedef struct tile_cut {
    int64_t lanes;        /* elements of a vector */
    int64_t vectors;      /* ceil(N / lanes) */
    int64_t panels;       /* of NV vectors or one less */
    int64_t first_packed; /* panels from here on are packed: all, the last (ragged N), or none */
    int64_t groups;
    int64_t parts; /* of the block rows */
    int width;     /* of the widest panel */
    bool values;   /* each task copies the values of a few block rows as its tiles read them */
    bool ahead;    /* the values of the next block are fetched ahead */
    bool fused;    /* each task packs its own group first: no second pass, and the group is fresh in the cache */
} tile_cut;

static inline int64_t tile_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int tile_height(int width)
{
    return TILE_ACCUMULATORS / width < TILE_MAX_HEIGHT ? TILE_ACCUMULATORS / width : TILE_MAX_HEIGHT;
}

/* Rows cut into tiles of nearly equal height: `taller` of low + 1 rows, then the others of low. */
typedef struct tile_split {
    int tiles, low, taller;
} tile_split;

static inline tile_split tile_make_split(int rows, int width)
{
    const int height = tile_height(width), tiles = (rows + height - 1) / height;
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
    return grid_rows > 0 ? (double)pattern->nnzb * pattern->block_rows * pattern->block_cols * (double)element_bytes / (double)grid_rows : 0;
}

/* Bytes of the values of the fullest block row; for op T, where the pattern does not keep it, of a row in full. */
static inline double tile_longest_row_bytes(const spk_problem *problem, int64_t element_bytes)
{
    const spk_pattern *pattern = problem->pattern;
    const double blocks = problem->trans_a == SPK_TRANS ? (double)pattern->index.grid_rows : (double)pattern->features.longest_row;
    return blocks * pattern->block_rows * pattern->block_cols * (double)element_bytes;
}

/* Below this much work a second thread costs more than it brings. */
static const double TILE_SERIAL_FLOPS = 400e3;

static inline tile_cut tile_make_cut(const spk_problem *problem, const spk_params *params, int threads, int64_t lanes, int64_t element_bytes)
{
    tile_cut cut = {.lanes = lanes, .vectors = tile_ceil(problem->n, lanes)};
    const int64_t grid_rows = tile_grid_rows(problem);
    const bool pack = params->v[TILE_PACK] != 0, serial = spk_problem_flops(problem) < TILE_SERIAL_FLOPS;
    const int64_t workers = serial ? 1 : threads;
    cut.panels = tile_ceil(cut.vectors, params->v[TILE_NV]);
    cut.first_packed = pack ? 0 : problem->n % lanes != 0 ? cut.panels - 1 : cut.panels;
    cut.groups = tile_ceil(cut.panels, params->v[TILE_GROUP]);
    cut.parts = 1;
    cut.width = cut.panels > 0 ? (int)tile_ceil(cut.vectors, cut.panels) : 1;
    cut.values = params->v[TILE_PACK] == 2;
    cut.ahead = tile_row_bytes(problem, element_bytes) > 16384;
    /* Columns alone feed all threads where the panels come out even enough. */
    cut.fused = pack && (workers == 1 || (cut.panels >= 2 * workers && tile_ceil(cut.panels, workers) * workers * 8 <= cut.panels * 9));
    if (workers == 1)
        return cut;
    if (cut.fused) {
        cut.groups = tile_ceil(cut.groups, workers) * workers;
        if (cut.groups > cut.panels)
            cut.groups = cut.panels;
        return cut;
    }
    cut.parts = cut.groups > 1 ? workers : 2 * workers;
    if (cut.parts > grid_rows) {
        cut.parts = grid_rows > 0 ? grid_rows : 1;
        const int64_t wanted = tile_ceil(2 * workers, cut.parts);
        if (cut.groups < wanted)
            cut.groups = wanted < cut.panels ? wanted : cut.panels;
    }
    return cut;
}

static inline bool tile_applicable(const spk_problem *problem, const spk_params *params, int64_t lanes, int64_t element_bytes, const char **why)
{
    const int nv = params->v[TILE_NV], height = tile_block_rows(problem);
    const int64_t vectors = tile_ceil(problem->n, lanes);
    if (params->v[TILE_PACK] == 0 && problem->layout_b != SPK_ROW_MAJOR)
        *why = "PACK=0 reads rows of B in place: B must be row-major";
    else if (params->v[TILE_PACK] == 2 && params->v[TILE_GROUP] != TILE_LARGEST_GROUP)
        *why = "PACK=2 copies the values once a group: it wants the largest";
    else if (params->v[TILE_PACK] < 2 && params->v[TILE_GROUP] == TILE_LARGEST_GROUP)
        *why = "the largest group is for PACK=2";
    else if (params->v[TILE_GROUP] > 1 && vectors <= nv)
        *why = "one panel makes no group";
    else if (params->v[TILE_PACK] == 2 && tile_longest_row_bytes(problem, element_bytes) > TILE_MOST_VALUE_BYTES)
        *why = "PACK=2 copies whole block rows: one is too long for the cache";
    else if (nv == 6 && height > 2)
        *why = "NV=6 is for block heights of 1 and 2";
    else if (nv == 4 && height % 3 != 0)
        *why = "NV=4 makes tiles three rows high: the block height must be a multiple of 3";
    else if (nv > 2 && (tile_ceil(vectors, nv) == tile_ceil(vectors, 2) || (nv > 3 && tile_ceil(vectors, nv) == tile_ceil(vectors, 3))))
        *why = "a smaller NV makes the same panels";
    return *why == NULL;
}

#endif

/* How the generators share their work: a generator fills the index arrays of a pattern whose size is already known. Integers and
 * single IEEE operations only, so that one seed gives the same bits on every machine (these files are compiled without contraction). */
#ifndef SPK_MATRIX_GENERATE_H
#define SPK_MATRIX_GENERATE_H

#include "base/mem.h"

/* Largest number of block rows or block columns: products of three small factors of two such sizes stay within 64 bits. */
#define SPK_GENERATE_GRID_LIMIT (INT64_C(1) << 30)

/* What to fill: count <= spk_pattern_room() blocks over a grid of at least one block. */
typedef struct spk_placement {
    int64_t grid_rows, grid_cols;
    int64_t count;
    int64_t *offsets; /* grid_rows + 1 */
    int64_t *columns; /* count; strictly increasing within a block row when done */
} spk_placement;

/* Blocks that a generator's shape has room for, at most grid_rows * grid_cols. */
int64_t spk_pattern_room(spk_generator generator, int64_t grid_rows, int64_t grid_cols);

/* Uniform, Bernoulli, causal, power-law, empty-rows. Scratch: about (grid_rows + grid_cols) / 8 bytes. */
spk_status spk_place_random(const spk_mem *mem, spk_generator generator, uint64_t seed, const spk_placement *to);

/* Experts: checks their options and makes others of the rows that follow from the tokens; *group_rows: block rows of each expert, for the
 * caller to free. */
spk_status spk_experts_plan(const spk_mem *mem, const spk_generate *options, spk_generate *sized, int64_t **group_rows);
int64_t spk_experts_blocks(const int64_t *group_rows, int64_t experts, int64_t grid_cols);
void spk_place_experts(const int64_t *group_rows, int64_t experts, const spk_placement *to);

/* Banded, window, diagonal: they depend on no seed and cannot fail. */
void spk_place_near_diagonal(spk_generator generator, const spk_placement *to);

#endif

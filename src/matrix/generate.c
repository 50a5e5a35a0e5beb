/* Generators: checks the options, sizes the matrix, has the blocks placed and fills the values. Same bits on every machine. */
#include "matrix/generate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "matrix/matrix.h"

/* Keeps the stream of values apart from the stream that places the blocks. */
#define VALUE_STREAM UINT64_C(0xd1b54a32d192ed03)

static const char *const generator_names[] = {
    [SPK_GEN_UNIFORM] = "uniform",
    [SPK_GEN_BERNOULLI] = "bernoulli",
    [SPK_GEN_BANDED] = "banded",
    [SPK_GEN_WINDOW] = "window",
    [SPK_GEN_CAUSAL] = "causal",
    [SPK_GEN_DIAGONAL] = "diagonal",
    [SPK_GEN_POWER_LAW] = "power-law",
    [SPK_GEN_EMPTY_ROWS] = "empty-rows",
    [SPK_GEN_ELASTICITY] = "elasticity",
    [SPK_GEN_EXPERTS] = "experts",
    [SPK_GEN_MASK] = "mask",
};
enum { GENERATOR_END = sizeof generator_names / sizeof generator_names[0] };

const char *spk_generator_name(spk_generator generator)
{
    int number = (int)generator;
    return number > 0 && number < GENERATOR_END ? generator_names[number] : NULL;
}

spk_generator spk_generator_from_name(const char *name)
{
    if (name)
        for (int i = 1; i < GENERATOR_END; i++)
            if (!strcmp(name, generator_names[i]))
                return (spk_generator)i;
    return (spk_generator)0;
}

spk_status spk_generate_values(spk_dtype dtype, int64_t count, uint64_t seed, void *out)
{
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: random values are made as %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    if (count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "count = %" PRId64 ": must be at least 0", count);
    if (!out && count > 0)
        return spk_fail(SPK_ERR_ARGUMENT, "out is NULL for %" PRId64 " values", count);
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    for (int64_t i = 0; i < count; i++)
        spk_value_put(out, dtype, i, spk_type_random(dtype, spk_rng_normal(&rng)));
    return SPK_OK;
}

/* ceil(size / block), after checking both. */
static spk_status check_size(const char *name, int64_t size, int64_t block, int64_t *grid)
{
    if (block < 1 || block > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_%s = %" PRId64 ": must be in 1 .. 256", name, block);
    if (size < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": must be at least 0", name, size);
    int64_t blocks = size / block + (size % block != 0);
    if (blocks > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": gives %" PRId64 " blocks of %" PRId64 ", limit %" PRId64, name, size, blocks,
                        block, SPK_GENERATE_GRID_LIMIT);
    *grid = blocks;
    return SPK_OK;
}

/* round(density * grid), halves upwards. */
static int64_t requested_blocks(double density, int64_t grid)
{
    double exact = density * (double)grid;
    int64_t whole = (int64_t)exact;
    if (exact - (double)whole >= 0.5)
        whole++;
    return whole < grid ? whole : grid;
}

static void zero_values(spk_matrix *matrix, int64_t block, int64_t first_row, int64_t first_col)
{
    size_t element = spk_dtype_bytes(matrix->dtype);
    size_t row_bytes = (size_t)matrix->block_cols * element;
    char *values = (char *)matrix->values + (size_t)block * (size_t)matrix->block_rows * row_bytes;
    for (int64_t row = 0; row < matrix->block_rows; row++) {
        int64_t from = row < first_row ? first_col : 0;
        memset(values + (size_t)row * row_bytes + (size_t)from * element, 0, (size_t)(matrix->block_cols - from) * element);
    }
}

/* Edge blocks hold zeros outside the logical matrix, as in converted matrices. */
static void clear_overhang(spk_matrix *matrix, int64_t grid_rows, int64_t grid_cols)
{
    int64_t last_rows = matrix->rows - (grid_rows - 1) * matrix->block_rows;
    int64_t last_cols = matrix->cols - (grid_cols - 1) * matrix->block_cols;
    if (last_cols < matrix->block_cols)
        for (int64_t row = 0; row < grid_rows; row++) {
            int64_t end = matrix->row_offsets[row + 1];
            if (end > matrix->row_offsets[row] && matrix->col_indices[end - 1] == grid_cols - 1)
                zero_values(matrix, end - 1, matrix->block_rows, last_cols);
        }
    if (last_rows < matrix->block_rows)
        for (int64_t block = matrix->row_offsets[grid_rows - 1]; block < matrix->row_offsets[grid_rows]; block++)
            zero_values(matrix, block, last_rows, matrix->col_indices[block] == grid_cols - 1 ? last_cols : matrix->block_cols);
}

/* group_rows: of experts. */
static spk_status place_blocks(const spk_mem *mem, const spk_generate *options, const int64_t *group_rows, const spk_placement *to)
{
    if (to->count == 0) {
        memset(to->offsets, 0, (size_t)(to->grid_rows + 1) * sizeof *to->offsets);
        return SPK_OK;
    }
    switch (options->generator) {
    case SPK_GEN_EXPERTS:
        spk_place_experts(group_rows, options->experts, to);
        return SPK_OK;
    case SPK_GEN_BANDED:
    case SPK_GEN_WINDOW:
    case SPK_GEN_DIAGONAL:
        spk_place_near_diagonal(options->generator, to);
        return SPK_OK;
    default:
        return spk_place_random(mem, options->generator, options->seed, to);
    }
}

/* options: of experts, as spk_experts_plan made them. */
static spk_status generate(const spk_mem *mem, const spk_generate *options, const int64_t *group_rows, spk_matrix **out, int64_t *shortfall)
{
    spk_dtype dtype = options->dtype == SPK_DTYPE_DEFAULT ? SPK_F32 : options->dtype;
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: matrices are generated as %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    if (!(options->density >= 0 && options->density <= 1))
        return spk_fail(SPK_ERR_ARGUMENT, "density = %g: must be in 0 .. 1", options->density);
    int64_t grid_rows = 0, grid_cols = 0;
    SPK_TRY(check_size("rows", options->rows, options->block_rows, &grid_rows));
    SPK_TRY(check_size("cols", options->cols, options->block_cols, &grid_cols));

    const bool experts = options->generator == SPK_GEN_EXPERTS;
    int64_t requested =
        experts ? spk_experts_blocks(group_rows, options->experts, grid_cols) : requested_blocks(options->density, grid_rows * grid_cols);
    int64_t room = experts ? requested : requested > 0 ? spk_pattern_room(options->generator, grid_rows, grid_cols) : 0;
    int64_t stored = requested < room ? requested : room;
    spk_matrix *matrix = NULL;
    SPK_TRY(spk_matrix_make(mem, SPK_BSR, dtype, options->rows, options->cols, options->block_rows, options->block_cols, SPK_ROW_MAJOR,
                            stored, &matrix));

    spk_placement to = {grid_rows, grid_cols, stored, matrix->row_offsets, matrix->col_indices};
    spk_status status;
    SPK_GOTO(place_blocks(mem, options, group_rows, &to));
    SPK_GOTO(spk_generate_values(dtype, spk_matrix_value_count(matrix), options->seed ^ VALUE_STREAM, matrix->values));
    if (stored > 0)
        clear_overhang(matrix, grid_rows, grid_cols);
    *out = matrix;
    matrix = NULL;
    if (shortfall)
        *shortfall = requested - stored;
done:
    spk_matrix_release(&matrix);
    return status;
}

spk_status spk_generate_matrix(const spk_mem *mem, const spk_generate *options, spk_matrix **out, int64_t *shortfall)
{
    if (!spk_generator_name(options->generator))
        return spk_fail(SPK_ERR_ARGUMENT, "generator = %d: must be in 1 .. %d", (int)options->generator, GENERATOR_END - 1);
    if (options->generator == SPK_GEN_ELASTICITY) {
        SPK_TRY(spk_generate_elasticity(mem, options, out));
        if (shortfall)
            *shortfall = 0;
        return SPK_OK;
    }
    if (options->generator == SPK_GEN_MASK) {
        SPK_TRY(spk_generate_mask(mem, options, out));
        if (shortfall)
            *shortfall = 0;
        return SPK_OK;
    }
    if (options->generator == SPK_GEN_EXPERTS) {
        spk_generate sized;
        int64_t *group_rows = NULL;
        SPK_TRY(spk_experts_plan(mem, options, &sized, &group_rows));
        const spk_status status = generate(mem, &sized, group_rows, out, shortfall);
        spk_free(mem, group_rows);
        return status;
    }
    return generate(mem, options, NULL, out, shortfall);
}

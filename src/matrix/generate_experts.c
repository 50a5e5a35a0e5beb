/* Mixtures of experts: the block rows of each expert's tokens hold all blocks of its share of the columns, and no other. */
#include <inttypes.h>

#include "base/rng.h"
#include "matrix/generate.h"

enum { USUAL_EXPERTS = 8, USUAL_LEAST = 16, USUAL_MOST = 256 };

/* First block column of an expert; of the one behind the last: the end. */
static int64_t first_column(int64_t expert, int64_t experts, int64_t grid_cols)
{
    const int64_t whole = grid_cols / experts, wider = grid_cols % experts; /* the first ones have one more */
    return expert * whole + (expert < wider ? expert : wider);
}

static spk_status check(const spk_generate *o)
{
    if (o->rows != 0 || o->density != 0)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "rows = %" PRId64 ", density = %g: of experts they follow from their number and their tokens; leave them 0",
                        o->rows, o->density);
    if (o->block_rows < 1 || o->block_rows > 256 || o->block_cols < 1 || o->block_cols > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_rows = %" PRId64 ", block_cols = %" PRId64 ": must be in 1 .. 256", o->block_rows,
                        o->block_cols);
    const int64_t most = o->cols / o->block_cols + (o->cols % o->block_cols != 0);
    if (o->experts < 1 || o->experts > most || o->experts > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT, "experts = %" PRId64 ": each needs a block column, of which cols = %" PRId64 " has %" PRId64,
                        o->experts, o->cols, most);
    if (o->tokens_least < 0 || o->tokens_most < o->tokens_least || o->tokens_most > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "tokens_least = %" PRId64 ", tokens_most = %" PRId64 ": must be 0 .. %" PRId64
                        ", the first no more than the second",
                        o->tokens_least, o->tokens_most, SPK_GENERATE_GRID_LIMIT);
    for (int64_t e = 0; o->tokens != NULL && e < o->experts; e++)
        if (o->tokens[e] < 0 || o->tokens[e] > SPK_GENERATE_GRID_LIMIT)
            return spk_fail(SPK_ERR_ARGUMENT, "tokens[%" PRId64 "] = %" PRId64 ": must be in 0 .. %" PRId64, e, o->tokens[e],
                            SPK_GENERATE_GRID_LIMIT);
    return SPK_OK;
}

spk_status spk_experts_plan(const spk_mem *mem, const spk_generate *options, spk_generate *sized, int64_t **group_rows)
{
    spk_generate o = *options;
    int64_t *rows = NULL, total = 0;
    spk_rng rng;
    o.experts = o.experts == 0 ? USUAL_EXPERTS : o.experts;
    if (o.tokens_least == 0 && o.tokens_most == 0) {
        o.tokens_least = USUAL_LEAST;
        o.tokens_most = USUAL_MOST;
    }
    SPK_TRY(check(&o));
    SPK_TRY(spk_alloc(mem, (size_t)o.experts, sizeof *rows, &rows));
    spk_rng_seed(&rng, o.seed);
    for (int64_t e = 0; e < o.experts; e++) {
        const int64_t tokens =
            o.tokens != NULL ? o.tokens[e] : o.tokens_least + (int64_t)spk_rng_below(&rng, (uint64_t)(o.tokens_most - o.tokens_least) + 1);
        rows[e] = (tokens + o.block_rows - 1) / o.block_rows;
        total += rows[e];
        if (total > SPK_GENERATE_GRID_LIMIT) {
            spk_free(mem, rows);
            return spk_fail(SPK_ERR_ARGUMENT, "tokens: those of the first %" PRId64 " experts make %" PRId64 " block rows, limit %" PRId64,
                            e + 1, total, SPK_GENERATE_GRID_LIMIT);
        }
    }
    o.rows = total * o.block_rows;
    *sized = o;
    *group_rows = rows;
    return SPK_OK;
}

int64_t spk_experts_blocks(const int64_t *group_rows, int64_t experts, int64_t grid_cols)
{
    int64_t blocks = 0;
    for (int64_t e = 0; e < experts; e++)
        blocks += group_rows[e] * (first_column(e + 1, experts, grid_cols) - first_column(e, experts, grid_cols));
    return blocks;
}

void spk_place_experts(const int64_t *group_rows, int64_t experts, const spk_placement *to)
{
    int64_t *offset = to->offsets, *column = to->columns;
    *offset = 0;
    for (int64_t e = 0; e < experts; e++)
        for (int64_t row = 0; row < group_rows[e]; row++) {
            for (int64_t c = first_column(e, experts, to->grid_cols); c < first_column(e + 1, experts, to->grid_cols); c++)
                *column++ = c;
            *++offset = column - to->columns;
        }
}

/* An optional pattern: a mask of blocks, in lists one below the other. */
#include "problem.h"

#include "matrix.h"

/* What describes a generated pattern; NULL: nothing does. */
static const char *of_generated(const problem_flags *f)
{
    const struct {
        const char *name;
        bool given;
    } all[] = {{"block", f->block.rows != 0}, {"density", f->density >= 0}, {"pattern", f->pattern != 0},
               {"cells", f->cells.x != 0},    {"experts", f->experts != 0}, {"tokens", f->tokens != NULL}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i].given)
            return all[i].name;
    return NULL;
}

const char *problem_of_pattern(const problem_flags *f)
{
    const char *given = of_generated(f);
    return given ? given : f->tensor ? "tensor" : NULL;
}

bool problem_has_pattern(const problem_flags *f)
{
    const spk_pattern_use use = operation_at(f->op)->info.takes_pattern;
    return use == SPK_PATTERN_NEEDED || (use == SPK_PATTERN_OPTIONAL && (f->file || of_generated(f)));
}

bool problem_is_shapeless(const problem_flags *f)
{
    return f->cells.x || f->experts || f->tokens || f->pattern == SPK_GEN_ELASTICITY || f->pattern == SPK_GEN_EXPERTS;
}

static int64_t count_of(const problem_flags *f, const char *key)
{
    const int at = settings_named(key);
    return at >= 0 && f->set[at].whole > 1 ? f->set[at].whole : 1;
}

int64_t problem_lists(const problem_flags *f)
{
    return operation_at(f->op)->info.takes_pattern == SPK_PATTERN_OPTIONAL ? count_of(f, "mask_heads") * count_of(f, "mask_items") : 1;
}

int64_t problem_rows_of_lists(const problem_flags *f, int64_t queries, int64_t block)
{
    const int64_t padded = (queries + block - 1) / block * block;
    return padded * (problem_lists(f) - 1) + queries;
}

int64_t problem_rows_of_list(const problem_flags *f, const spk_pattern_info *mask)
{
    const int64_t lists = problem_lists(f), rows = mask->rows - (lists - 1) * (mask->grid_rows / lists) * mask->block_rows;
    return rows > 0 ? rows : 0;
}

bool problem_is_given_size(const spk_size_info *size)
{
    return size->source != SPK_SIZE_PATTERN_ROWS && size->source != SPK_SIZE_PATTERN_COLS;
}

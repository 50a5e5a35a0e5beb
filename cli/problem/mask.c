/* An optional pattern: a mask of blocks, in lists one below the other. */
#include <stdlib.h>

#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/problem/flags.h"

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
    return given ? given : f->tensor ? "tensor" : f->cols ? "cols" : NULL;
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

char *problem_list_counts(int64_t block_rows)
{
    enum { MOST = 8 };
    int64_t all[MOST];
    int count = 0;
    for (int64_t i = 1; i <= block_rows && count < MOST; i++)
        if (block_rows % i == 0)
            all[count++] = i;
    const bool whole = count == 0 || all[count - 1] == block_rows;
    char *text = cli_format("%s", count ? "1" : "any number");
    for (int i = 1; i < count; i++) {
        char *longer = cli_format("%s%s%lld", text, whole && i == count - 1 ? " or " : ", ", (long long)all[i]);
        free(text);
        text = longer;
    }
    if (whole)
        return text;
    char *cut = cli_format("%s and so on", text);
    free(text);
    return cut;
}

int problem_check_lists(const cli *app, const problem_flags *f, const spk_pattern_info *mask)
{
    const int64_t lists = problem_lists(f);
    if (mask->grid_rows % lists == 0)
        return EXIT_DONE;
    char *fit = problem_list_counts(mask->grid_rows);
    (void)cli_fail(app, EXIT_USAGE,
                   "%s: its %lld rows of blocks are not %lld lists of as many (--mask-heads times --mask-items); %s would fit",
                   f->file ? f->file : "the mask", (long long)mask->grid_rows, (long long)lists, fit);
    free(fit);
    return EXIT_USAGE;
}

bool problem_is_given_size(const spk_size_info *size)
{
    return size->source != SPK_SIZE_PATTERN_ROWS && size->source != SPK_SIZE_PATTERN_COLS;
}

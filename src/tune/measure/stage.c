/* A stage: a problem, or a sample of its block rows and columns, with operands on which candidates are checked and timed. */
#include <math.h>
#include <stdlib.h>

#include "tune/measure/measure.h"

/* Neighbouring block rows are sampled together: they share what they read of B. */
enum { GROUP_ROWS = 4, ROWS_A_THREAD = 4, LEAST_COLS = 128, LEAST_SIZE = 512, LEAST_SIZE_GPU = 2048, MOST_SORTED = 1 << 17 };

typedef struct group {
    int64_t first, count, blocks;
} group;

static int by_blocks(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->blocks != y->blocks)
        return x->blocks < y->blocks ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_place(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Where group `i` of `count` begins when `total` groups are stepped through evenly. */
static int64_t stepped(int64_t i, double shift, int64_t count, int64_t total)
{
    int64_t at = (int64_t)(((double)i + shift) * ((double)total / (double)count));
    return at < total ? at : total - 1;
}

/* Groups of block rows, ordered by their blocks, and every so-many-th taken: the sample has short and long rows in the problem's
 * proportion. Of very many groups, some are picked evenly by their place first. */
static spk_status sample_rows(const spk_mem *mem, const spk_bsr_view *view, int64_t rows, spk_rng *rng, int64_t **chosen,
                              int64_t *chosen_count)
{
    int64_t width = rows < 4 * GROUP_ROWS ? 1 : GROUP_ROWS, total = (view->grid_rows + width - 1) / width,
            take = (rows + width - 1) / width, used = 0;
    int64_t count = total < MOST_SORTED ? total : take < MOST_SORTED ? MOST_SORTED : take;
    group *groups = NULL;
    int64_t *list = NULL;
    SPK_TRY(spk_alloc(mem, (size_t)count, sizeof *groups, &groups));
    spk_status status = spk_alloc(mem, (size_t)(take * width), sizeof *list, &list);
    if (status != SPK_OK) {
        spk_free(mem, groups);
        return status;
    }
    double place = spk_rng_uniform(rng), shift = 0.25 + 0.5 * spk_rng_uniform(rng);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = stepped(i, place, count, total) * width, end = first + width < view->grid_rows ? first + width : view->grid_rows;
        groups[i] = (group){first, end - first, view->offsets[end] - view->offsets[first]};
    }
    if (take < count) {
        qsort(groups, (size_t)count, sizeof *groups, by_blocks);
        for (int64_t i = 0; i < take; i++)
            groups[i] = groups[stepped(i, shift, take, count)]; /* reads at or behind i */
        qsort(groups, (size_t)take, sizeof *groups, by_place);
    }
    for (int64_t i = 0; i < take; i++)
        for (int64_t row = 0; row < groups[i].count; row++)
            list[used++] = groups[i].first + row;
    spk_free(mem, groups);
    *chosen = list;
    *chosen_count = used;
    return SPK_OK;
}

static spk_status make_sample(spk_stage *stage, const spk_problem *problem, int64_t rows, uint64_t seed)
{
    spk_bsr_view view;
    if (problem->pattern == NULL)
        return SPK_OK;
    SPK_TRY(spk_pattern_view(problem->pattern, problem->trans_a, problem->block_layout, &view));
    if (rows <= 0 || rows >= view.grid_rows)
        return SPK_OK;
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    int64_t *chosen = NULL, count = 0;
    SPK_TRY(sample_rows(stage->tuner->mem, &view, rows, &rng, &chosen, &count));
    spk_status status = spk_pattern_sample(problem->pattern, problem->trans_a, chosen, count, &stage->sample);
    spk_free(stage->tuner->mem, chosen);
    if (status != SPK_OK)
        return status;
    spk_problem_cut(&stage->problem, stage->sample, 0, 0);
    return SPK_OK;
}

/* About so much of a size, by whole steps; what the whole has beyond such a step stays, for alignment's sake. Little less than all is all.
 */
static int64_t part_of(int64_t size, double wanted)
{
    const int64_t part = (int64_t)ceil(wanted / LEAST_COLS) * LEAST_COLS + size % LEAST_COLS;
    return (double)part > 0.7 * (double)size ? size : part;
}

/* Without a pattern, of two sizes: the larger is cut first, then both alike. */
static spk_level level_of_sizes(const spk_device *device, const spk_problem *problem, double share)
{
    const int64_t size = spk_problem_free_size(problem), other = spk_problem_other_size(problem);
    const double least = device->processors > 0 ? LEAST_SIZE_GPU : LEAST_SIZE, area = share * (double)size * (double)fmax(other, 1);
    const double small = (double)(other < size ? other : size), even = fmax(sqrt(area), least);
    const double shorter = small < even ? small : even, longer = fmax(area / fmax(shorter, 1), least);
    const int64_t cols = part_of(size, size < other ? shorter : longer), rows = part_of(other, size < other ? longer : shorter);
    return (spk_level){.rows = rows < other ? rows : 0,
                       .cols = cols < size ? cols : 0,
                       .share = (double)cols / fmax((double)size, 1) * (other > 0 ? (double)rows / (double)other : 1)};
}

/* Block rows, several a thread, then the free size. */
static spk_level level_of_rows(const spk_tuner *tuner, const spk_problem *problem, double share)
{
    const spk_pattern *pattern = problem->pattern;
    const int64_t height = problem->trans_a == SPK_TRANS ? pattern->block_cols : pattern->block_rows,
                  grid = (problem->m + height - 1) / height;
    const int64_t least = ROWS_A_THREAD * (int64_t)tuner->device->executor.threads, all_cols = spk_problem_free_size(problem);
    int64_t cols = all_cols, rows = (int64_t)ceil(share * (double)grid);
    rows = rows > least ? rows : least;
    if ((double)rows > 0.7 * (double)grid)
        rows = grid;
    const double row_share = (double)rows / (double)grid;
    if (share < 0.7 * row_share && all_cols > LEAST_COLS) {
        cols = (int64_t)ceil((double)all_cols * share / row_share / LEAST_COLS) * LEAST_COLS;
        cols = cols < all_cols ? cols : all_cols;
    }
    const double col_share = all_cols > 0 ? (double)cols / (double)all_cols : 1;
    return (spk_level){rows < grid ? rows : 0, cols < all_cols ? cols : 0, row_share * col_share, 0};
}

/* Items of a batch first, then rows or sizes. Little less than all is all. Of a mask no part stands for the whole: its sizes stay, and
 * where each item has lists of its own, their number, too. */
spk_level spk_level_for(const spk_tuner *tuner, const spk_problem *problem, double share)
{
    const int64_t least = ROWS_A_THREAD * (int64_t)tuner->device->executor.threads;
    int64_t items = problem->batch;
    if (share >= 0.7 || problem->lists.item_step > 0)
        return (spk_level){0, 0, 1, 0};
    if (items > least && problem->group_axis == SPK_GROUP_NONE) {
        items = (int64_t)ceil(share * (double)items);
        items = items > least ? items : least;
    }
    const double item_share = (double)items / (double)problem->batch, left = share / item_share;
    spk_level level = {.share = 1};
    if (left < 0.7 && !spk_problem_is_masked(problem))
        level = problem->pattern != NULL ? level_of_rows(tuner, problem, left) : level_of_sizes(tuner->device, problem, left);
    level.share *= item_share;
    level.items = items < problem->batch ? items : 0;
    return level;
}

/* Cuts the free sizes and the batch; the share of the work that is left of them. */
static double cut_sizes(const spk_problem *problem, spk_level level, spk_problem *cut)
{
    const int64_t size = spk_problem_free_size(problem), other = spk_problem_other_size(problem);
    double share = 1;
    if (level.cols > 0 && level.cols < size) {
        spk_problem_cut(cut, NULL, level.cols, 0);
        share = (double)level.cols / (double)size;
    }
    if (level.rows > 0 && level.rows < other) {
        spk_problem_cut(cut, NULL, 0, level.rows);
        share *= (double)level.rows / (double)other;
    }
    if (level.items > 0 && level.items < problem->batch) {
        cut->batch = level.items;
        share *= (double)level.items / (double)problem->batch;
    }
    return share;
}

spk_status spk_stage_make(const spk_tuner *tuner, const spk_problem *problem, spk_level level, uint64_t seed, double check_us,
                          spk_operand_memory *operand_memory, spk_stage **out)
{
    spk_stage *made = NULL;
    spk_status status;
    SPK_TRY(spk_calloc(tuner->mem, 1, sizeof *made, &made));
    made->tuner = tuner;
    made->problem = *problem;
    SPK_GOTO(make_sample(made, problem, level.rows, seed));
    const double width = cut_sizes(problem, level, &made->problem);
    made->share = made->row_share = width;
    if (made->sample != NULL) {
        const double blocks = (double)problem->pattern->nnzb;
        made->row_share = width * (double)made->problem.m / (double)problem->m;
        made->share = blocks > 0 ? width * (double)made->sample->nnzb / blocks : made->row_share;
    }
    SPK_GOTO(spk_operands_make(tuner, &made->problem, seed, operand_memory, &made->operands));
    if (check_us > 0)
        SPK_GOTO(spk_checks_make(tuner, &made->problem, made->operands, seed + 1, check_us, &made->checks));
    *out = made;
    return SPK_OK;
done:
    spk_stage_release(&made);
    return status;
}

void spk_stage_release(spk_stage **stage)
{
    spk_stage *old = *stage;
    *stage = NULL;
    if (old == NULL)
        return;
    spk_checks_release(&old->checks);
    spk_operands_release(&old->operands);
    spk_pattern_release(&old->sample);
    spk_free(old->tuner->mem, old);
}

/* How much of the whole problem's work the stage has, for this candidate: dense ones work by rows, the others by stored blocks. */
double spk_stage_share(const spk_stage *stage, const spk_contender *contender)
{
    double share = contender->kernel->kind == SPK_KIND_DENSE ? stage->row_share : stage->share;
    return share > 0 ? share : stage->row_share;
}

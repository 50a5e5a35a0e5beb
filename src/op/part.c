#include "op/part.h"

#include <math.h>

double spk_problem_operand_bytes(const spk_problem *p)
{
    double bytes = 0;
    for (int i = 0; i < p->op->operand_count; i++)
        bytes += (double)spk_problem_operand_elements(p, i) * (double)spk_dtype_bytes(p->operand[i].dtype);
    return bytes;
}

int64_t spk_part_of_size(int64_t size, double share)
{
    if (size <= SPK_PART_LEAST || share >= 1)
        return size;
    const int64_t steps = (int64_t)((double)size * fmin(1 - share, 1) / SPK_PART_STEP), left = size - steps * SPK_PART_STEP;
    return left >= SPK_PART_LEAST / 2 ? left : left + (SPK_PART_LEAST / 2 - left + SPK_PART_STEP - 1) / SPK_PART_STEP * SPK_PART_STEP;
}

/* ---- strides: each dimension of an operand lies as densely within the next as it did */

typedef struct dimension {
    int64_t *step, count, left; /* elements from one to the next; how many there were, and are */
} dimension;

static void sort_by_step(dimension *list, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && *list[j].step < *list[j - 1].step; j--) {
            const dimension moved = list[j];
            list[j] = list[j - 1];
            list[j - 1] = moved;
        }
}

static void fit_operand(const spk_operand *was, int64_t items_were, int64_t items, spk_operand *o)
{
    int64_t along = 1;
    dimension list[4];
    int count = 0;
    const dimension all[] = {{&along, spk_operand_length(was), spk_operand_length(o)},
                             {&o->ld, spk_operand_lines(was), spk_operand_lines(o)},
                             {&o->head_stride, spk_operand_heads(was), spk_operand_heads(o)},
                             {&o->stride, items_were, items}};
    for (int i = 0; i < 4; i++)
        if (i == 0 || (*all[i].step > 0 && (i == 1 || all[i].count > 1)))
            list[count++] = all[i];
    sort_by_step(list, count);
    int64_t inner = *list[0].step;
    for (int i = 1; i < count; i++) {
        const int64_t beyond = *list[i].step - list[i - 1].count * inner, step = list[i - 1].left * *list[i - 1].step + beyond;
        inner = *list[i].step;
        if (beyond >= 0)
            *list[i].step = step;
    }
}

/* Where a size has changed; what is shared, or overlaps, keeps its strides. */
static void fit_strides(const spk_problem *whole, spk_problem *part)
{
    for (int i = 0; i < whole->op->operand_count; i++) {
        const spk_operand *was = &whole->operand[i];
        spk_operand *o = &part->operand[i];
        if (spk_type_holds_values(o->dtype) && !spk_operand_is_empty(was) && !spk_operand_is_empty(o))
            fit_operand(was, whole->batch, part->batch, o);
    }
}

/* ---- sizes */

/* The free size, or the other one, cut down so far that all fits, as far as that depends on it. */
static void cut_size(spk_problem *p, bool other, double most_bytes)
{
    const int64_t whole = other ? spk_problem_other_size(p) : spk_problem_free_size(p);
    spk_problem least = *p;
    if (whole <= SPK_PART_LEAST)
        return;
    spk_problem_cut(&least, NULL, other ? 0 : 1, other ? 1 : 0);
    fit_strides(p, &least);
    const double bytes = spk_problem_operand_bytes(p), one_more = (bytes - spk_problem_operand_bytes(&least)) / (double)(whole - 1);
    const double most = fmax(most_bytes - (bytes - one_more * (double)whole), 0) / fmax(one_more, 1);
    const spk_problem before = *p;
    const int64_t left = spk_part_of_size(whole, most / (double)whole);
    spk_problem_cut(p, NULL, other ? 0 : left, other ? left : 0);
    fit_strides(&before, p);
}

/* Of a batch: at least two, so that there are strides. Groups come all. */
static int64_t items_of(const spk_problem *p, double share)
{
    if (p->batch <= 2 || p->group_axis != SPK_GROUP_NONE || share >= 1)
        return p->batch;
    return fmax(floor((double)p->batch * share), 2) < (double)p->batch ? (int64_t)fmax(floor((double)p->batch * share), 2) : p->batch;
}

static spk_status make_part(const spk_mem *mem, const spk_problem *whole, double most_bytes, spk_problem *part, spk_pattern **pattern)
{
    const double share = most_bytes / fmax(spk_problem_operand_bytes(whole), 1);
    const int64_t items = items_of(whole, share);
    *part = *whole;
    part->batch = items;
    if (whole->op->part != NULL) {
        SPK_TRY(whole->op->part(mem, whole, share * (double)whole->batch / (double)items, part, pattern));
        fit_strides(whole, part);
        return SPK_OK;
    }
    part->op->fit(part);
    fit_strides(whole, part);
    cut_size(part, false, most_bytes);
    cut_size(part, true, most_bytes);
    return SPK_OK;
}

spk_status spk_problem_part(const spk_mem *mem, const spk_problem *whole, double most_bytes, spk_problem *part, spk_pattern **pattern)
{
    *pattern = NULL;
    *part = *whole;
    if (spk_problem_is_empty(whole) || spk_problem_operand_bytes(whole) <= most_bytes)
        return SPK_OK;
    SPK_TRY(make_part(mem, whole, most_bytes, part, pattern));
    if (spk_problem_reread(part) == SPK_OK)
        return SPK_OK;
    spk_pattern_release(pattern);
    *part = *whole;
    return SPK_OK;
}

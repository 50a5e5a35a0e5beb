/* The lists of row groups: their rows, the union of their columns, stage by stage. */
#include "backend/cuda/host/groups/group_lists.h"

#include <limits.h>
#include <string.h>

#include "backend/cuda/device/schedule/group_lists.h"

int64_t spk_groups_count(int64_t grid_rows, int height)
{
    return (grid_rows + height - 1) / height;
}

int64_t spk_groups_at_rows(const group_memory *l)
{
    return l->groups + 1;
}

int64_t spk_groups_at_present(const group_memory *l)
{
    return spk_groups_at_rows(l) + l->groups * l->height;
}

int64_t spk_groups_at_words(const group_memory *l)
{
    return spk_groups_at_present(l) + l->stages;
}

int spk_groups_next_column(const groups_work *w, const int *rows, int height)
{
    int column = -1;
    for (int y = 0; y < height; y++)
        if (rows[y] >= 0 && w->next[y] < w->view->offsets[rows[y] + 1] && (column < 0 || w->view->columns[w->next[y]] < column))
            column = w->view->columns[w->next[y]];
    return column;
}

/* Writes the stages of one group from stage `stage` on; returns the stage after them. edge: a block column that lies partly beyond K, or
 * -1. */
static int64_t groups_list(const groups_work *w, const group_memory *l, const int *rows, int tile_rows, int edge, int64_t stage)
{
    int *present = l->memory + spk_groups_at_present(l), *words = l->memory + spk_groups_at_words(l);
    for (int y = 0; y < l->height; y++)
        w->next[y] = rows[y] >= 0 ? w->view->offsets[rows[y]] : 0;
    for (int column = spk_groups_next_column(w, rows, l->height); column >= 0; stage++) {
        int mask = 0, *word = words + stage * group_words(l->slots, l->height);
        for (int slot = 0; slot < l->slots; slot++) {
            *word++ = column;
            mask |= column >= 0 && column == edge ? 1 << (GROUP_EDGE + slot) : 0;
            for (int y = 0; y < l->height; y++, word++) {
                const bool has =
                    column >= 0 && rows[y] >= 0 && w->next[y] < w->view->offsets[rows[y] + 1] && w->view->columns[w->next[y]] == column;
                *word = !has ? -1 : w->view->positions != NULL ? (int)w->view->positions[w->next[y]] : (int)w->next[y];
                w->next[y] += has;
                mask |= has ? 1 << y / tile_rows : 0;
            }
            column = column >= 0 ? spk_groups_next_column(w, rows, l->height) : -1;
        }
        present[stage] = mask;
    }
    return stage;
}

static spk_status groups_write(const spk_mem *mem, const groups_work *w, group_memory *l, int tile_rows, int edge)
{
    int64_t stage = 0;
    for (int64_t g = 0; g < l->groups; g++)
        l->stages += (w->unions[g] + l->slots - 1) / l->slots;
    l->count = spk_groups_at_words(l) + l->stages * group_words(l->slots, l->height);
    if (l->stages > INT_MAX / 64)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%lld stages of row groups: the limit is %d", (long long)l->stages, INT_MAX / 64);
    SPK_TRY(spk_alloc(mem, (size_t)l->count, sizeof *l->memory, &l->memory));
    for (int64_t g = 0; g < l->groups; g++) {
        const int *rows = w->rows + g * l->height;
        l->memory[g] = (int)stage;
        memcpy(l->memory + spk_groups_at_rows(l) + g * l->height, rows, (size_t)l->height * sizeof *rows);
        stage = groups_list(w, l, rows, tile_rows, edge, stage);
    }
    l->memory[l->groups] = (int)stage;
    return SPK_OK;
}

/* Entries first .. last of `width` ints each, the other way round. */
static void groups_reverse(int *memory, int64_t width, int64_t first, int64_t last)
{
    for (; first < --last; first++)
        for (int64_t i = 0; i < width; i++) {
            const int moved = memory[first * width + i];
            memory[first * width + i] = memory[last * width + i];
            memory[last * width + i] = moved;
        }
}

/* Entries first .. last, so that entry `start` is the first, and those before it come last. */
static void groups_rotate(int *memory, int64_t width, int64_t first, int64_t start, int64_t last)
{
    groups_reverse(memory, width, first, start);
    groups_reverse(memory, width, start, last);
    groups_reverse(memory, width, first, last);
}

/* Where neighbouring groups then want the same columns at the same time, a group begins with another stage than that of its first columns
 * (row_period.h). */
static spk_status groups_turn(const spk_mem *mem, group_memory *l)
{
    const int64_t width = group_words(l->slots, l->height);
    int *words = l->memory + spk_groups_at_words(l), *present = l->memory + spk_groups_at_present(l);
    int64_t *offsets = NULL;
    SPK_TRY(spk_alloc(mem, (size_t)l->groups + 1, sizeof *offsets, &offsets));
    for (int64_t g = 0; g <= l->groups; g++)
        offsets[g] = l->memory[g];
    const int period = spk_turns_period(&(turns_lists){.columns = words, .stride = width, .rows = l->groups, .offsets = offsets});
    for (int64_t g = 0; period > 0 && g < l->groups; g++) {
        const int64_t count = offsets[g + 1] - offsets[g],
                      start = offsets[g] + (count > 0 ? spk_turns_start(words[offsets[g] * width], count, period) : 0);
        groups_rotate(words, width, offsets[g], start, offsets[g + 1]);
        groups_rotate(present, 1, offsets[g], start, offsets[g + 1]);
    }
    spk_free(mem, offsets);
    return SPK_OK;
}

spk_status spk_groups_make(const spk_mem *mem, const spk_bsr_view *view, int height, int tile_rows, int slots, groups_dealt dealt,
                           group_memory *lists)
{
    group_memory made = {.height = height, .slots = slots, .groups = spk_groups_count(view->grid_rows, height)};
    groups_work w = {.view = view};
    spk_status status;
    SPK_GOTO(spk_groups_allocate(mem, &w, made.groups, height));
    spk_groups_choose(&w, made.groups, height);
    if (spk_groups_may_change(view)) {
        SPK_GOTO(spk_groups_unite(mem, &w, made.groups, height));
        SPK_GOTO(spk_groups_balance(mem, &w, made.groups, height, slots, dealt));
    }
    SPK_GOTO(groups_write(mem, &w, &made, tile_rows, view->cols % view->block_cols != 0 ? (int)view->grid_cols - 1 : -1));
    *lists = made;
    SPK_GOTO(groups_turn(mem, lists));
done:
    spk_groups_release(mem, &w);
    return status;
}

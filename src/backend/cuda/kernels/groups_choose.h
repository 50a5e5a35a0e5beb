/* Row groups: block rows with similar columns put together, the first choice. */
#ifndef SPK_BACKEND_CUDA_KERNELS_GROUPS_CHOOSE_H
#define SPK_BACKEND_CUDA_KERNELS_GROUPS_CHOOSE_H

#include "backend/cuda/kernels/sm90.h"

/* While groups are made: rows in the order of their groups, the columns that the current group has (marks: the group's number + 1). */
typedef struct groups_work {
    const spk_bsr_view *view;
    int *rows;     /* groups * height; negative: none */
    int *marks;    /* of each block column */
    int *numbers;  /* of all rows: the memory behind left */
    int *left;     /* rows not yet in a group, ascending */
    int *unions;   /* columns of each group */
    int64_t *next; /* of a group's rows: the block not yet listed */
    int64_t left_count;
} groups_work;

static inline void groups_release(const spk_mem *mem, groups_work *w)
{
    spk_free(mem, w->rows);
    spk_free(mem, w->marks);
    spk_free(mem, w->numbers);
    spk_free(mem, w->unions);
    spk_free(mem, w->next);
}

static inline spk_status groups_allocate(const spk_mem *mem, groups_work *w, int64_t groups, int height)
{
    SPK_TRY(spk_alloc(mem, (size_t)(groups * height), sizeof *w->rows, &w->rows));
    SPK_TRY(spk_calloc(mem, (size_t)w->view->grid_cols + 1, sizeof *w->marks, &w->marks));
    SPK_TRY(spk_alloc(mem, (size_t)w->view->grid_rows + 1, sizeof *w->numbers, &w->numbers));
    SPK_TRY(spk_alloc(mem, (size_t)groups, sizeof *w->unions, &w->unions));
    return spk_alloc(mem, (size_t)height, sizeof *w->next, &w->next);
}

/* Columns of a row that the group has. */
static inline int64_t groups_shared(const groups_work *w, int row, int mark)
{
    int64_t count = 0;
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++)
        count += w->marks[w->view->columns[p]] == mark;
    return count;
}

/* Takes the row at place `at` of the left ones into the group; returns how many columns are new. */
static inline int groups_take(groups_work *w, int64_t at, int mark, int *to)
{
    const int row = w->left[at];
    int fresh = 0;
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++) {
        fresh += w->marks[w->view->columns[p]] != mark;
        w->marks[w->view->columns[p]] = mark;
    }
    memmove(w->left + 1, w->left, (size_t)at * sizeof *w->left); /* the rows before it, of which there are fewer than the window */
    w->left++;
    w->left_count--;
    *to = row;
    return fresh;
}

/* Each group begins with the first row left and takes those that share most with it, among the next `window` rows. */
static inline void groups_choose(groups_work *w, int64_t groups, int height, int64_t window)
{
    for (int64_t g = 0; g < groups; g++) {
        const int mark = (int)g + 1;
        w->unions[g] = 0;
        for (int y = 0; y < height; y++) {
            int64_t best = 0, most = -1;
            if (w->left_count == 0) {
                w->rows[g * height + y] = -1;
                continue;
            }
            for (int64_t i = 0; y > 0 && i < w->left_count && i < window && most < w->unions[g]; i++) { /* none shares more than all */
                const int64_t shared = groups_shared(w, w->left[i], mark);
                if (shared > most) {
                    most = shared;
                    best = i;
                }
            }
            w->unions[g] += groups_take(w, best, mark, &w->rows[g * height + y]);
        }
    }
}

#endif

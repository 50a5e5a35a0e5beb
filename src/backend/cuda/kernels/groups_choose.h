/* Row groups: block rows with similar columns put together, the first choice. */
#ifndef SPK_BACKEND_CUDA_KERNELS_GROUPS_CHOOSE_H
#define SPK_BACKEND_CUDA_KERNELS_GROUPS_CHOOSE_H

#include "backend/cuda/kernels/sm90.h"

enum { GROUPS_TAKEN = -1 };

/* While groups are made. */
typedef struct groups_work {
    const spk_bsr_view *view;
    int *rows;             /* groups * height, in the order of the groups; negative: none */
    int *unions;           /* columns of each group */
    int64_t *next;         /* of a group's rows: the block not yet listed */
    int64_t *column_first; /* of each block column: where its rows that may be left begin in column_rows */
    int64_t *column_end;
    int *column_rows; /* the rows of each block column, ascending */
    int *marks;       /* of each block column: the last group that has it, counted from 1 */
    int *shared;      /* of each row left: columns that it shares with the current group; GROUPS_TAKEN: it is in a group */
    int *met;         /* rows that share any */
    int64_t met_count, first_left; /* all rows before first_left are taken */
} groups_work;

static inline void groups_release(const spk_mem *mem, groups_work *w)
{
    spk_free(mem, w->rows);
    spk_free(mem, w->unions);
    spk_free(mem, w->next);
    spk_free(mem, w->column_first);
    spk_free(mem, w->column_end);
    spk_free(mem, w->column_rows);
    spk_free(mem, w->marks);
    spk_free(mem, w->shared);
    spk_free(mem, w->met);
}

static inline spk_status groups_allocate(const spk_mem *mem, groups_work *w, int64_t groups, int height)
{
    const size_t rows = (size_t)w->view->grid_rows + 1, columns = (size_t)w->view->grid_cols + 1;
    SPK_TRY(spk_alloc(mem, (size_t)(groups * height), sizeof *w->rows, &w->rows));
    SPK_TRY(spk_alloc(mem, (size_t)groups, sizeof *w->unions, &w->unions));
    SPK_TRY(spk_alloc(mem, (size_t)height, sizeof *w->next, &w->next));
    SPK_TRY(spk_calloc(mem, columns, sizeof *w->column_first, &w->column_first));
    SPK_TRY(spk_calloc(mem, columns, sizeof *w->column_end, &w->column_end));
    SPK_TRY(spk_alloc(mem, (size_t)w->view->nnzb + 1, sizeof *w->column_rows, &w->column_rows));
    SPK_TRY(spk_calloc(mem, columns, sizeof *w->marks, &w->marks));
    SPK_TRY(spk_calloc(mem, rows, sizeof *w->shared, &w->shared));
    return spk_alloc(mem, rows, sizeof *w->met, &w->met);
}

/* The rows of each column: a counting sort. */
static inline void groups_transpose(groups_work *w)
{
    const spk_bsr_view *view = w->view;
    int64_t begin = 0;
    for (int64_t p = 0; p < view->nnzb; p++)
        w->column_end[view->columns[p]]++;
    for (int64_t column = 0; column < view->grid_cols; column++) {
        w->column_first[column] = begin;
        begin += w->column_end[column];
        w->column_end[column] = w->column_first[column];
    }
    for (int64_t i = 0; i < view->grid_rows; i++)
        for (int64_t p = view->offsets[i]; p < view->offsets[i + 1]; p++)
            w->column_rows[w->column_end[view->columns[p]]++] = (int)i;
}

/* Counts a column that is new to the group for the rows left that have it, as far as row `last`. */
static inline void groups_meet(groups_work *w, int column, int64_t last)
{
    int64_t p = w->column_first[column];
    while (p < w->column_end[column] && w->column_rows[p] < w->first_left)
        p++;
    w->column_first[column] = p;
    for (; p < w->column_end[column] && w->column_rows[p] <= last; p++) {
        const int row = w->column_rows[p], shared = w->shared[row];
        if (shared == GROUPS_TAKEN)
            continue;
        if (shared == 0)
            w->met[w->met_count++] = row;
        w->shared[row] = shared + 1;
    }
}

/* Takes a row into the group `mark` - 1; returns how many of its columns are new. */
static inline int groups_take(groups_work *w, int row, int mark, int64_t last)
{
    int fresh = 0;
    w->shared[row] = GROUPS_TAKEN;
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++) {
        const int column = w->view->columns[p];
        if (w->marks[column] == mark)
            continue;
        w->marks[column] = mark;
        fresh++;
        if (last >= 0)
            groups_meet(w, column, last);
    }
    return fresh;
}

/* The row left that shares most with the group, of equal ones the first; negative: none is left. */
static inline int groups_most_alike(groups_work *w)
{
    while (w->first_left < w->view->grid_rows && w->shared[w->first_left] == GROUPS_TAKEN)
        w->first_left++;
    if (w->first_left == w->view->grid_rows)
        return -1;
    int best = (int)w->first_left;
    for (int64_t i = 0; i < w->met_count; i++) {
        const int row = w->met[i];
        if (w->shared[row] > w->shared[best] || (w->shared[row] == w->shared[best] && row < best))
            best = row;
    }
    return best;
}

/* How many rows from the first one left are looked at for a group: in an even pattern a row further costs nnzb^2 / (rows * columns) counts in all. */
static inline int64_t groups_window(const spk_bsr_view *view)
{
    const double counts = 300000 + 4.0 * (double)view->nnzb, of_row = (double)view->nnzb * (double)view->nnzb / ((double)view->grid_rows * (double)view->grid_cols + 1);
    return counts >= of_row * (double)view->grid_rows ? view->grid_rows : (int64_t)(counts / of_row) + 1;
}

/* Each group begins with the first row left and takes those that share most with it. O(nnzb), and a third of a millisecond: where there are many blocks, among fewer rows
 * from there on. */
static inline void groups_choose(groups_work *w, int64_t groups, int height)
{
    const int64_t window = groups_window(w->view);
    groups_transpose(w);
    for (int64_t g = 0; g < groups; g++) {
        w->unions[g] = 0;
        for (int y = 0; y < height; y++) {
            const int row = w->rows[g * height + y] = groups_most_alike(w);
            if (row >= 0)
                w->unions[g] += groups_take(w, row, (int)g + 1, y + 1 < height ? w->first_left + window : -1); /* nobody follows the last one */
        }
        for (int64_t i = 0; i < w->met_count; i++)
            w->shared[w->met[i]] = w->shared[w->met[i]] == GROUPS_TAKEN ? GROUPS_TAKEN : 0;
        w->met_count = 0;
    }
}

#endif

/* Each group is the first row left and those that share most columns with it. */
#include "backend/cuda/host/groups/choose_groups.h"

void spk_groups_release(const spk_mem *mem, groups_work *w)
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

spk_status spk_groups_allocate(const spk_mem *mem, groups_work *w, int64_t groups, int height)
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
static void groups_transpose(groups_work *w)
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

/* Counts a column that is new to the group for the first rows left that have it: as many as `window` rows hold in the mean, and a group's
 * worth. */
static void groups_meet(groups_work *w, int column, int64_t window)
{
    int64_t p = w->column_first[column];
    while (p < w->column_end[column] && w->shared[w->column_rows[p]] == GROUPS_TAKEN)
        p++;
    w->column_first[column] = p;
    int64_t most = window * (w->column_end[column] - p) / (w->view->grid_rows - w->first_left) + w->height;
    for (; p < w->column_end[column] && most > 0 && w->may_meet > 0; p++, w->may_meet--) {
        const int row = w->column_rows[p], shared = w->shared[row];
        if (shared == GROUPS_TAKEN)
            continue;
        if (shared == 0)
            w->met[w->met_count++] = row;
        w->shared[row] = shared + 1;
        most--;
    }
}

/* Takes a row into the group `mark` - 1; returns how many of its columns are new. */
static int groups_take(groups_work *w, int row, int mark)
{
    int fresh = 0;
    w->shared[row] = GROUPS_TAKEN;
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++) {
        int *seen = &w->marks[w->view->columns[p]];
        fresh += *seen != mark && *seen != -mark;
        *seen = *seen == -mark ? -mark : mark;
    }
    return fresh;
}

/* Counts the columns of a row of the group that have not been. */
static void groups_meet_row(groups_work *w, int row, int mark, int64_t window)
{
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++)
        if (w->marks[w->view->columns[p]] == mark) {
            w->marks[w->view->columns[p]] = -mark;
            groups_meet(w, w->view->columns[p], window);
        }
}

/* The first row left; negative: none is. */
static int groups_first(groups_work *w)
{
    while (w->first_left < w->view->grid_rows && w->shared[w->first_left] == GROUPS_TAKEN)
        w->first_left++;
    return w->first_left < w->view->grid_rows ? (int)w->first_left : -1;
}

/* Whether a row has all columns of the group. */
static bool groups_has_all(const groups_work *w, int row, int mark, int united)
{
    int has = 0;
    for (int64_t p = w->view->offsets[row]; p < w->view->offsets[row + 1]; p++)
        has += w->marks[w->view->columns[p]] == mark || w->marks[w->view->columns[p]] == -mark;
    return has == united;
}

/* The row left that shares most with the group, of equal ones the first. */
static int groups_most_alike(const groups_work *w)
{
    int best = (int)w->first_left;
    for (int64_t i = 0; i < w->met_count; i++) {
        const int row = w->met[i];
        if (w->shared[row] > w->shared[best] || (w->shared[row] == w->shared[best] && row < best))
            best = row;
    }
    return best;
}

/* One group: the first row left and those that share most with it, among some `window` rows from there on. Returns the columns of its
 * union. */
static int groups_choose_one(groups_work *w, int *rows, int height, int mark, int64_t window)
{
    int united = 0, counted = 0; /* rows of the group whose columns are */
    for (int y = 0; y < height; y++) {
        rows[y] = groups_first(w);
        if (rows[y] < 0)
            continue;
        if (y > 0 && !groups_has_all(w, rows[y], mark, united)) { /* else none shares more */
            for (; counted < y; counted++)
                groups_meet_row(w, rows[counted], mark, window);
            rows[y] = groups_most_alike(w);
        }
        united += groups_take(w, rows[y], mark);
    }
    for (int64_t i = 0; i < w->met_count; i++)
        w->shared[w->met[i]] = w->shared[w->met[i]] == GROUPS_TAKEN ? GROUPS_TAKEN : 0;
    w->met_count = 0;
    return united;
}

/* How many rows from the first one left are looked at for a group: a row further costs some sum of n^2 / rows counts in all, where n rows
 * have a column. */
static int64_t groups_window(const groups_work *w, double counts)
{
    double pairs = 0;
    for (int64_t column = 0; column < w->view->grid_cols; column++) {
        const double n = (double)(w->column_end[column] - w->column_first[column]);
        pairs += n * n;
    }
    return pairs <= counts ? w->view->grid_rows : (int64_t)(counts / pairs * (double)w->view->grid_rows) + 1;
}

void spk_groups_choose(groups_work *w, int64_t groups, int height)
{
    const double counts = GROUPS_COUNTS + GROUPS_COUNTS_OF_BLOCK * (double)w->view->nnzb;
    w->height = height;
    groups_transpose(w);
    const int64_t window = groups_window(w, counts);
    for (int64_t g = 0; g < groups; g++) {
        w->may_meet = (int64_t)(GROUPS_MOST_OF_ONE * counts / (double)groups) + 1;
        w->unions[g] = groups_choose_one(w, w->rows + g * height, height, (int)g + 1, window);
    }
}

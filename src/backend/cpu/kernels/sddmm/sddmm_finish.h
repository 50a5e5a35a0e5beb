/* The end of an SDDMM: alpha, beta C, the block's layout, and zero where it hangs over. */
#include "backend/cpu/kernels/vectors/epilogue.h"

/* Rows first .. end - 1 of a block, of which `there` are in D. */
#ifndef SDDMM_ROWS
#define SDDMM_ROWS
typedef struct sddmm_rows {
    int64_t first, there, end;
} sddmm_rows;
#endif

/* The sums of some rows of stored block p to D. */
static void S(sddmm_finish)(const spk_bound *bound, const spk_args *given, int64_t p, sddmm_rows rows, const REAL *sums, int64_t ld)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *whole = &bound->problem;
    const int64_t left = whole->n - (int64_t)view->columns[p] * view->block_cols,
                  columns = left < view->block_cols ? left : view->block_cols, height = rows.end - rows.first;
    const bool row_major = whole->block_layout == SPK_ROW_MAJOR;
    const int64_t element = whole->d.dtype == whole->a.dtype ? (int64_t)sizeof(STORED) : (int64_t)sizeof(REAL),
                  line = row_major ? view->block_cols : view->block_rows,
                  offset = (p * view->block_stride + rows.first * (row_major ? line : 1)) * element;
    spk_problem problem = {.m = rows.there, .n = columns, .d.layout = whole->block_layout, .epilogue = {.use_c = whole->epilogue.use_c}};
    problem.c.ld = problem.d.ld = line;
    spk_args args = {.alpha = given->alpha, .beta = given->beta, .d = (char *)given->d + offset};
    if (problem.epilogue.use_c && args.beta != 0)
        args.c = (const char *)given->c + offset;
    if (rows.there > 0)
        (element == (int64_t)sizeof(STORED) ? S(epilogue) : T(epilogue))(&problem, &args, sums, ld, 0, rows.there, 0, columns);
    if (rows.there == height && columns == view->block_cols)
        return;
    const int64_t lines = row_major ? height : view->block_cols, used_lines = row_major ? rows.there : columns,
                  length = row_major ? view->block_cols : height, used = row_major ? columns : rows.there;
    for (int64_t i = 0; i < lines; i++) {
        const int64_t from = i < used_lines ? used : 0;
        __builtin_memset((char *)args.d + (i * line + from) * element, 0, (size_t)((length - from) * element));
    }
}

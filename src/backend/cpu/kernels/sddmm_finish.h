/* Template of the end of an SDDMM, after epilogue_body.h: alpha, beta C, the block's layout, and zero where it hangs over. */

/* The sums of stored block p, of which `rows` rows are there, to D. */
static void S(sddmm_finish)(const spk_bound *bound, const spk_args *given, int64_t p, int64_t rows, const REAL *sums, int64_t ld)
{
    const spk_bsr_view *view = &bound->view;
    const spk_problem *whole = &bound->problem;
    const int64_t left = whole->n - (int64_t)view->columns[p] * view->block_cols,
                  columns = left < view->block_cols ? left : view->block_cols;
    const int64_t element = whole->d.dtype == whole->a.dtype ? (int64_t)sizeof(STORED) : (int64_t)sizeof(REAL),
                  offset = p * view->block_stride * element;
    const bool row_major = whole->block_layout == SPK_ROW_MAJOR;
    spk_problem problem = {.m = rows, .n = columns, .d.layout = whole->block_layout, .epilogue = {.use_c = whole->epilogue.use_c}};
    problem.c.ld = problem.d.ld = row_major ? view->block_cols : view->block_rows;
    spk_args args = {.alpha = given->alpha, .beta = given->beta, .d = (char *)given->d + offset};
    if (problem.epilogue.use_c && args.beta != 0)
        args.c = (const char *)given->c + offset;
    (element == (int64_t)sizeof(STORED) ? S(epilogue) : T(epilogue))(&problem, &args, sums, ld, 0, rows, 0, columns);
    if (rows == view->block_rows && columns == view->block_cols)
        return;
    const int64_t lines = row_major ? view->block_rows : view->block_cols, used_lines = row_major ? rows : columns,
                  used = row_major ? columns : rows;
    for (int64_t line = 0; line < lines; line++) {
        const int64_t from = line < used_lines ? used : 0;
        __builtin_memset((char *)args.d + (line * problem.d.ld + from) * element, 0, (size_t)((problem.d.ld - from) * element));
    }
}

/* The GEMM with few rows. */
#include <stdatomic.h>

#include "backend/cpu/kernels/gemm/gemm_narrow_plan.h"
#include "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/tiles/tile_job.h"

typedef struct S(narrow_gemm) {
    const narrow_gemm_state *state;
    spk_args args; /* turned, where the problem is */
    REAL *a, *sums;
    atomic_int_fast64_t next_unit;
} S(narrow_gemm);

/* Columns and rows of B, what of A they meet, and their sums: a row of the padded strip for each row of A. */
typedef struct S(narrow_unit) {
    const S(narrow_gemm) *run;
    gemm_range columns, depth;
    REAL *a, *sums;
    int64_t a_line; /* along K: elements from one row of A to the next */
} S(narrow_unit);

/* Some rows of B to the sums; `rows` and `steps` are constants where this is inlined. a: the rows' elements of A, step after step. */
SPK_INLINE void S(narrow_add_rows)(const STORED *b, int64_t ldb, const REAL *a, const int rows, const int steps, int64_t columns,
                                   REAL *sums, int64_t padded)
{
    for (int64_t j = 0; j < columns; j += T(lanes)) {
        T(vec) sum[NARROW_MOST_ROWS];
        const int64_t left = columns - j;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r] = T(load)(sums + r * padded + j);
#pragma GCC unroll 8
        for (int i = 0; i < steps; i++) {
            const STORED *from = b + i * ldb + j;
            const T(vec) x = left >= T(lanes) ? S(load)(from) : S(load_part)(from, left);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                sum[r] += a[i * rows + r] * x;
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            T(store)(sums + r * padded + j, sum[r]);
    }
}

/* Sums of some columns of B, which lie along K; `rows` and `columns` are constants where this is inlined. */
SPK_INLINE void S(narrow_dots)(const STORED *b, int64_t ldb, const REAL *a, int64_t a_line, const int rows, const int columns,
                               int64_t depth, REAL *sums, int64_t padded)
{
    T(vec) sum[NARROW_MOST_ROWS][NARROW_MOST_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            sum[r][c] = (T(vec)){0};
    for (int64_t k = 0; k < depth; k += T(lanes)) {
        T(vec) x[NARROW_MOST_ROWS];
        const int64_t left = depth - k;
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++)
            x[c] = left >= T(lanes) ? S(load)(b + c * ldb + k) : S(load_part)(b + c * ldb + k, left);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const T(vec) y = T(load)(a + r * a_line + k); /* with zeros behind its end */
#pragma GCC unroll 8
            for (int c = 0; c < columns; c++)
                sum[r][c] += y * x[c];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++) {
            REAL total = 0;
#pragma GCC unroll 16
            for (int lane = 0; lane < T(lanes); lane++)
                total += sum[r][c][lane];
            sums[r * padded + c] = total;
        }
}

/* Columns at a time, so that the sums are in registers and enough of them. */
SPK_INLINE int S(narrow_columns)(const int rows)
{
    const int registers = VECTOR_REGISTERS - 2, most = (registers - 1) / (rows + 1);
    return most > 8 ? 8 : most;
}

SPK_INLINE void S(narrow_unit_rows)(const S(narrow_unit) *unit, const int rows)
{
    enum { STEPS = 8 };
    const spk_operand *b_is = &unit->run->state->problem.b;
    const int64_t padded = unit->run->state->padded, columns = unit->columns.end - unit->columns.begin,
                  depth = unit->depth.end - unit->depth.begin;
    const STORED *b = (const STORED *)unit->run->args.b + unit->columns.begin * spk_operand_col_step(b_is) +
                      unit->depth.begin * spk_operand_row_step(b_is);
    if (unit->run->state->along_k) {
        const int at_once = S(narrow_columns)(rows);
        int64_t j = 0;
        for (; j + at_once <= columns; j += at_once)
            S(narrow_dots)(b + j * b_is->ld, b_is->ld, unit->a, unit->a_line, rows, at_once, depth, unit->sums + j, padded);
        for (; j < columns; j++)
            S(narrow_dots)(b + j * b_is->ld, b_is->ld, unit->a, unit->a_line, rows, 1, depth, unit->sums + j, padded);
        return;
    }
    int64_t k = 0;
    for (int64_t i = 0; i < rows * padded; i++)
        unit->sums[i] = 0;
    for (; k + STEPS <= depth; k += STEPS)
        S(narrow_add_rows)(b + k * b_is->ld, b_is->ld, unit->a + k * rows, rows, STEPS, columns, unit->sums, padded);
    for (; k < depth; k++)
        S(narrow_add_rows)(b + k * b_is->ld, b_is->ld, unit->a + k * rows, rows, 1, columns, unit->sums, padded);
}

#define NARROW(rows)                                              \
    static void S(narrow_rows_##rows)(const S(narrow_unit) *unit) \
    {                                                             \
        S(narrow_unit_rows)(unit, rows);                          \
    }
NARROW(1)
NARROW(2)
NARROW(3)
NARROW(4)
NARROW(5)
NARROW(6)
NARROW(7)
NARROW(8)
#undef NARROW
typedef void (*S(narrow_function))(const S(narrow_unit) *unit);
static const S(narrow_function) S(narrow_functions)[] = {S(narrow_rows_1), S(narrow_rows_2), S(narrow_rows_3), S(narrow_rows_4),
                                                         S(narrow_rows_5), S(narrow_rows_6), S(narrow_rows_7), S(narrow_rows_8)};

/* The unit's part of A: along K row after row, else column after column. */
static void S(narrow_copy_a)(S(narrow_unit) *unit)
{
    const narrow_gemm_state *state = unit->run->state;
    const spk_operand *a = &state->problem.a;
    const int64_t rows = state->problem.m, depth = unit->depth.end - unit->depth.begin, down = spk_operand_row_step(a),
                  across = spk_operand_col_step(a);
    const STORED *from = (const STORED *)unit->run->args.a + unit->depth.begin * across;
    unit->a_line = tile_ceil(depth, T(lanes)) * T(lanes);
    for (int64_t r = 0; state->along_k && r < rows; r++) {
        for (int64_t k = 0; k < depth; k++)
            unit->a[r * unit->a_line + k] = S(get)(from + r * down + k * across);
        for (int64_t k = depth; k < unit->a_line; k++)
            unit->a[r * unit->a_line + k] = 0;
    }
    for (int64_t k = 0; !state->along_k && k < depth; k++)
        for (int64_t r = 0; r < rows; r++)
            unit->a[k * rows + r] = S(get)(from + r * down + k * across);
}

static void S(narrow_finish)(const S(narrow_gemm) *run, const REAL *sums, gemm_range columns)
{
    const spk_problem *problem = &run->state->problem;
    (problem->d.dtype == problem->a.dtype ? S(epilogue) : T(epilogue))(problem, &run->args, sums, run->state->padded, 0, problem->m,
                                                                       columns.begin, columns.end - columns.begin);
}

static void S(narrow_worker)(void *arg, int64_t task)
{
    S(narrow_gemm) *run = arg;
    const narrow_gemm_state *state = run->state;
    int64_t copied = -1; /* part of A that is there */
    for (int64_t i; (i = atomic_fetch_add(&run->next_unit, 1)) < state->strips * state->splits;) {
        S(narrow_unit) unit = {.run = run, .a = run->a + task * state->a_elements};
        unit.columns = gemm_part(state->problem.n, i % state->strips, state->strips);
        unit.depth = gemm_part(state->problem.k, i / state->strips, state->splits);
        unit.a_line = tile_ceil(unit.depth.end - unit.depth.begin, T(lanes)) * T(lanes);
        unit.sums = run->sums + (state->splits > 1 ? i : task) * state->sum_elements;
        if (copied != i / state->strips)
            S(narrow_copy_a)(&unit);
        copied = i / state->strips;
        S(narrow_functions)[state->problem.m - 1](&unit);
        if (state->splits == 1)
            S(narrow_finish)(run, unit.sums, unit.columns);
    }
}

/* The sums of the parts of K to those of the first part, and to D. */
static void S(narrow_add_up)(void *arg, int64_t strip)
{
    const S(narrow_gemm) *run = arg;
    const narrow_gemm_state *state = run->state;
    const gemm_range columns = gemm_part(state->problem.n, strip, state->strips);
    REAL *sums = run->sums + strip * state->sum_elements;
    for (int64_t part = 1; part < state->splits; part++) {
        const REAL *more = sums + part * state->strips * state->sum_elements;
        for (int64_t r = 0; r < state->problem.m; r++)
            for (int64_t j = 0; j < columns.end - columns.begin; j++)
                sums[r * state->padded + j] += more[r * state->padded + j];
    }
    S(narrow_finish)(run, sums, columns);
}

static spk_status S(narrow_execute)(const spk_bound *bound, const spk_args *args)
{
    const narrow_gemm_state *state = bound->state;
    S(narrow_gemm) run = {.state = state, .args = *args, .a = args->workspace};
    if (state->problem.m == 0 || state->problem.n == 0)
        return SPK_OK;
    if (state->turned) {
        run.args.a = args->b;
        run.args.b = args->a;
    }
    run.sums = run.a + state->workers * state->a_elements;
    spk_execute(&bound->device->executor, state->workers, S(narrow_worker), &run);
    if (state->splits > 1)
        spk_execute(&bound->device->executor, state->strips, S(narrow_add_up), &run);
    return SPK_OK;
}

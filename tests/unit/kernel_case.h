/* A random SpMM with everything that must not matter made poisonous: slack and D are filled with a mark, overhangs of values, rows of B
 * that no stored block touches and unused operands are NaN. Arrays are exactly as large as the problem says, so that a sanitizer sees a
 * step beyond. */
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/kernel.h"
#include "matrix/matrix.h"
#include "op/product.h"

#define MARK 12345.678 /* what D, preact and slack hold before a run */

typedef struct kernel_case {
    spk_pattern *pattern;
    spk_problem problem;
    spk_args args;
    void *operands[SPK_MAX_OPERANDS];
    void *d_before;                 /* what D and preact held before the run */
    double *d, *preact, *magnitude; /* expected, row-major M x N */
} kernel_case;

static double get(const void *array, spk_dtype dtype, int64_t i)
{
    return spk_value_get(array, dtype, i);
}

static void put(void *array, spk_dtype dtype, int64_t i, double x)
{
    spk_value_set(array, dtype, i, x);
}

static int64_t at(spk_layout layout, int64_t ld, int64_t i, int64_t j)
{
    return layout == SPK_ROW_MAJOR ? i * ld + j : j * ld + i;
}

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static void must(spk_status status)
{
    if (status != SPK_OK) {
        fprintf(stderr, "status %s: %s\n", spk_status_name(status), spk_error_message(0));
        exit(1);
    }
}

typedef struct case_shape {
    int64_t rows, cols; /* of A, before op */
    int block_rows, block_cols;
    double density;
    int empty_rows; /* 1: about a third of the block rows have no block */
} case_shape;

static spk_pattern *make_pattern(spk_rng *rng, const case_shape *shape)
{
    int64_t grid_rows = (shape->rows + shape->block_rows - 1) / shape->block_rows,
            grid_cols = (shape->cols + shape->block_cols - 1) / shape->block_cols;
    int64_t *offsets = need(malloc((size_t)(grid_rows + 1) * sizeof *offsets));
    int64_t *columns = need(malloc((size_t)(grid_rows * grid_cols + 1) * sizeof *columns));
    offsets[0] = 0;
    int64_t nnzb = 0;
    for (int64_t i = 0; i < grid_rows; i++) {
        int empty = shape->empty_rows && spk_rng_below(rng, 3) == 0;
        for (int64_t j = 0; j < grid_cols; j++)
            if (!empty && spk_rng_uniform(rng) < shape->density)
                columns[nnzb++] = j;
        offsets[i + 1] = nnzb;
    }
    spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices),      .rows = shape->rows, .cols = shape->cols,    .block_rows = shape->block_rows,
        .block_cols = shape->block_cols, .nnzb = nnzb,        .row_offsets = offsets, .col_indices = columns,
        .index_type = SPK_INDEX_I64};
    spk_pattern *pattern = NULL;
    must(spk_pattern_make(&spk_mem_system, &indices, &pattern));
    free(offsets);
    free(columns);
    return pattern;
}

/* Values of all stored blocks; the overhang is NaN. */
static void fill_values(spk_rng *rng, kernel_case *c)
{
    const spk_pattern *p = c->pattern;
    for (int64_t i = 0; i < p->index.grid_rows; i++)
        for (int64_t b = p->index.offsets[i]; b < p->index.offsets[i + 1]; b++)
            for (int r = 0; r < p->block_rows; r++)
                for (int q = 0; q < p->block_cols; q++) {
                    bool inside = i * p->block_rows + r < p->rows && (int64_t)p->index.columns[b] * p->block_cols + q < p->cols;
                    int64_t inner = c->problem.block_layout == SPK_ROW_MAJOR ? r * p->block_cols + q : q * p->block_rows + r;
                    put(c->operands[SPK_A], c->problem.a.dtype, b * p->block_rows * p->block_cols + inner,
                        inside ? spk_rng_normal(rng) : (double)NAN);
                }
}

/* B: NaN in its slack and in the rows that no stored block touches. */
static void fill_b(spk_rng *rng, kernel_case *c)
{
    const spk_problem *problem = &c->problem;
    const spk_pattern *p = c->pattern;
    bool *touched = need(calloc((size_t)problem->k + 1, sizeof *touched));
    for (int64_t i = 0; i < p->index.grid_rows; i++)
        for (int64_t b = p->index.offsets[i]; b < p->index.offsets[i + 1]; b++) {
            int64_t block = problem->trans_a == SPK_TRANS ? i : p->index.columns[b],
                    size = problem->trans_a == SPK_TRANS ? p->block_rows : p->block_cols;
            for (int64_t k = block * size; k < (block + 1) * size && k < problem->k; k++)
                touched[k] = true;
        }
    int64_t count = spk_problem_operand_elements(problem, SPK_B);
    for (int64_t i = 0; i < count; i++)
        put(c->operands[SPK_B], problem->b.dtype, i, (double)NAN);
    for (int64_t k = 0; k < problem->k; k++)
        for (int64_t j = 0; j < problem->n; j++)
            if (touched[k])
                put(c->operands[SPK_B], problem->b.dtype, at(problem->b.layout, problem->b.ld, k, j), spk_rng_normal(rng));
    free(touched);
}

/* One dense sum in long double, from the pattern itself. */
static void expect_sums(const kernel_case *c, long double *sums, long double *sizes)
{
    const spk_pattern *p = c->pattern;
    const spk_problem *problem = &c->problem;
    for (int64_t i = 0; i < p->index.grid_rows; i++)
        for (int64_t b = p->index.offsets[i]; b < p->index.offsets[i + 1]; b++)
            for (int64_t r = i * p->block_rows; r < (i + 1) * p->block_rows && r < p->rows; r++)
                for (int64_t q = (int64_t)p->index.columns[b] * p->block_cols;
                     q < ((int64_t)p->index.columns[b] + 1) * p->block_cols && q < p->cols; q++) {
                    int64_t ir = r % p->block_rows, iq = q % p->block_cols;
                    int64_t inner = problem->block_layout == SPK_ROW_MAJOR ? ir * p->block_cols + iq : iq * p->block_rows + ir;
                    long double a = get(c->operands[SPK_A], problem->a.dtype, b * p->block_rows * p->block_cols + inner);
                    int64_t row = problem->trans_a == SPK_TRANS ? q : r, k = problem->trans_a == SPK_TRANS ? r : q;
                    for (int64_t j = 0; j < problem->n; j++) {
                        long double term = a * get(c->operands[SPK_B], problem->b.dtype, at(problem->b.layout, problem->b.ld, k, j));
                        sums[row * problem->n + j] += term;
                        sizes[row * problem->n + j] += fabsl(term);
                    }
                }
}

static void expect(kernel_case *c)
{
    const spk_problem *problem = &c->problem;
    const spk_epilogue *e = &problem->epilogue;
    size_t count = (size_t)(problem->m * problem->n) + 1;
    long double *sums = need(calloc(2 * count, sizeof *sums)), *sizes = sums + count;
    c->d = need(calloc(3 * count, sizeof *c->d));
    c->preact = c->d + count;
    c->magnitude = c->preact + count;
    expect_sums(c, sums, sizes);
    for (int64_t i = 0; i < problem->m; i++)
        for (int64_t j = 0; j < problem->n; j++) {
            int64_t x = i * problem->n + j;
            long double value = (long double)c->args.alpha * sums[x], size = fabsl((long double)c->args.alpha) * sizes[x];
            if (e->use_c && c->args.beta != 0) {
                long double term =
                    (long double)c->args.beta * get(c->operands[SPK_C], problem->d.dtype, at(problem->d.layout, problem->c.ld, i, j));
                value += term;
                size += fabsl(term);
            }
            if (e->bias != SPK_BIAS_NONE) {
                long double term = get(c->operands[SPK_BIAS], problem->d.dtype, e->bias == SPK_BIAS_PER_ROW ? i : j);
                value += term;
                size += fabsl(term);
            }
            c->preact[x] = (double)value;
            double result = spk_activate_f64(e->activation, (double)value);
            size *= e->activation == SPK_ACT_NONE ? 1.0L : 1.13L;
            if (e->residual != SPK_RESIDUAL_NONE) {
                double term = get(c->operands[SPK_RESIDUAL], problem->d.dtype, at(problem->d.layout, problem->residual.ld, i, j));
                const bool factor = e->residual == SPK_RESIDUAL_MULTIPLY;
                result = factor ? result * term : result + term;
                size = !factor ? size + fabs(term) : e->keep_preact ? size * fmax(1, fabs(term)) : size * fabs(term);
            }
            c->d[x] = result;
            c->magnitude[x] = (double)size;
        }
    free(sums);
}

static const void *pointer_of(kernel_case *c, int operand)
{
    return spk_problem_operand_elements(&c->problem, operand) > 0 ? c->operands[operand] : NULL;
}

/* spmm has its enums and leading dimensions; c takes over pattern. in_place: 1: D is C, 2: D is residual (where they take part). */
static void case_make(kernel_case *c, spk_rng *rng, spk_pattern *pattern, const spk_spmm *spmm, double alpha, double beta, int in_place)
{
    memset(c, 0, sizeof *c);
    c->pattern = pattern;
    must(spk_problem_read(&spk_op_spmm, pattern, spmm, NULL, &c->problem));
    for (int o = 0; o < SPK_MAX_OPERANDS; o++) {
        int64_t count = spk_problem_operand_elements(&c->problem, o);
        spk_dtype dtype = c->problem.operand[o].dtype;
        c->operands[o] = need(malloc((size_t)count * spk_dtype_bytes(dtype) + (count == 0)));
        for (int64_t i = 0; i < count; i++)
            put(c->operands[o], dtype, i, o == SPK_D || o == SPK_PREACT ? MARK : spk_rng_normal(rng));
        if (o == SPK_C && beta == 0)
            for (int64_t i = 0; i < count; i++)
                put(c->operands[o], dtype, i, (double)NAN);
    }
    fill_values(rng, c);
    fill_b(rng, c);
    c->args = (spk_args){.alpha = alpha, .beta = beta};
    c->args.a = pointer_of(c, SPK_A);
    c->args.b = pointer_of(c, SPK_B);
    c->args.bias = pointer_of(c, SPK_BIAS);
    expect(c);
    size_t d_bytes = (size_t)spk_problem_operand_elements(&c->problem, SPK_D) * spk_dtype_bytes(c->problem.d.dtype);
    if (in_place == 1 && c->problem.epilogue.use_c && c->problem.c.ld == c->problem.d.ld)
        memcpy(c->operands[SPK_D], c->operands[SPK_C], d_bytes);
    else if (in_place == 2 && c->problem.epilogue.residual != SPK_RESIDUAL_NONE && c->problem.residual.ld == c->problem.d.ld)
        memcpy(c->operands[SPK_D], c->operands[SPK_RESIDUAL], d_bytes);
    else
        in_place = 0;
    c->args.c = in_place == 1 ? c->operands[SPK_D] : pointer_of(c, SPK_C);
    c->args.residual = in_place == 2 ? c->operands[SPK_D] : pointer_of(c, SPK_RESIDUAL);
    c->d_before = need(malloc(d_bytes + 1));
    memcpy(c->d_before, c->operands[SPK_D], d_bytes);
}

static void case_release(kernel_case *c)
{
    for (int o = 0; o < SPK_MAX_OPERANDS; o++)
        free(c->operands[o]);
    free(c->d_before);
    free(c->d);
    spk_pattern_release(&c->pattern);
}

/* D against the expected values, and everything else in its array untouched. Writes what is wrong; returns 0 where all is right. */
static int check_array(const kernel_case *c, const void *array, const void *before, int64_t ld, const double *expected, const char *name,
                       char *what, size_t size)
{
    const spk_problem *problem = &c->problem;
    int64_t lines = problem->d.layout == SPK_ROW_MAJOR ? problem->m : problem->n,
            length = problem->d.layout == SPK_ROW_MAJOR ? problem->n : problem->m;
    double tolerance = spk_problem_tolerance(problem, SPK_D), mark[1];
    put(mark, problem->d.dtype, 0, MARK);
    if (length == 0)
        return 0;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t x = 0; x < (line + 1 < lines ? ld : length); x++) {
            double got = get(array, problem->d.dtype, line * ld + x);
            if (x >= length) {
                double was = before != NULL ? get(before, problem->d.dtype, line * ld + x) : get(mark, problem->d.dtype, 0);
                if (got != was && !(isnan(got) && isnan(was))) {
                    snprintf(what, size, "%s: slack %lld of line %lld was %g and became %g", name, (long long)x, (long long)line, was, got);
                    return 1;
                }
                continue;
            }
            int64_t i = problem->d.layout == SPK_ROW_MAJOR ? line : x, j = problem->d.layout == SPK_ROW_MAJOR ? x : line;
            double want = expected[i * problem->n + j], scale = c->magnitude[i * problem->n + j];
            if (!(spk_type_difference(problem->d.dtype, got, want) <= tolerance * scale)) {
                snprintf(what, size, "%s[%lld][%lld] = %.9g, expected %.9g (magnitude %g, tolerance %g)", name, (long long)i, (long long)j,
                         got, want, scale, tolerance);
                return 1;
            }
        }
    return 0;
}

static int case_check(const kernel_case *c, char *what, size_t size)
{
    if (check_array(c, c->args.d, c->d_before, c->problem.d.ld, c->d, "D", what, size) != 0)
        return 1;
    return c->problem.epilogue.keep_preact ? check_array(c, c->args.preact, NULL, c->problem.preact.ld, c->preact, "preact", what, size)
                                           : 0;
}

/* Runs one candidate on fresh copies of D and preact, twice: right, and the same bits again. Returns 0, or 1 with what is wrong. */
static int case_run(kernel_case *c, const spk_kernel *kernel, const spk_params *params, spk_device *device, char *what, size_t size)
{
    spk_bound bound;
    int bad = 1;
    size_t d_bytes = (size_t)spk_problem_operand_elements(&c->problem, SPK_D) * spk_dtype_bytes(c->problem.d.dtype);
    if (spk_bind(kernel, params, &c->problem, device, &bound) != SPK_OK) {
        snprintf(what, size, "bind: %s", spk_error_message(0));
        return 1;
    }
    void *first = need(malloc(d_bytes + 1));
    int64_t preact_count = spk_problem_operand_elements(&c->problem, SPK_PREACT);
    c->args.d = pointer_of(c, SPK_D) != NULL ? c->operands[SPK_D] : NULL;
    c->args.preact = pointer_of(c, SPK_PREACT) != NULL ? c->operands[SPK_PREACT] : NULL;
    c->args.workspace = need(aligned_alloc(64, (bound.workspace_bytes + 127) / 64 * 64));
    memset(c->args.workspace, 0xff, bound.workspace_bytes); /* NaN */
    c->args.workspace_bytes = bound.workspace_bytes;
    for (int round = 0; round < 2; round++) {
        memcpy(c->operands[SPK_D], c->d_before, d_bytes);
        for (int64_t i = 0; i < preact_count; i++)
            put(c->operands[SPK_PREACT], c->problem.d.dtype, i, MARK);
        if (spk_bound_run(&bound, &c->args, NULL) != SPK_OK) {
            snprintf(what, size, "run: %s", spk_error_message(0));
            goto done;
        }
        if (case_check(c, what, size) != 0)
            goto done;
        if (round == 0)
            memcpy(first, c->operands[SPK_D], d_bytes);
    }
    if (memcmp(first, c->operands[SPK_D], d_bytes) != 0) {
        snprintf(what, size, "two runs differ in their bits");
        goto done;
    }
    bad = 0;
done:
    free(first);
    free(c->args.workspace);
    spk_unbind(&bound);
    return bad;
}

#endif

/* mkl_bsr: MKL's own block-sparse product, mkl_sparse_?_mm on a BSR handle, on all threads. Square blocks, sizes that are multiples of the
 * block. Row-major blocks go with zero-based indices, column-major ones with one-based indices: MKL computes no other pairs. */
#include <math.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

enum { BASE_ZERO = 0, BASE_ONE = 1, LAYOUT_ROW_MAJOR = 101, LAYOUT_COL_MAJOR = 102, OPERATION_N = 10, OPERATION_T = 11 };
enum { TYPE_GENERAL = 20, FILL_LOWER = 40, DIAGONAL_NON_UNIT = 50, EXPECTED_RUNS = 1000 };

typedef struct description {
    int type, fill, diagonal;
} description;

static const description general = {TYPE_GENERAL, FILL_LOWER, DIAGONAL_NON_UNIT};

typedef struct functions {
    int (*create_f32)(void **, int, int, int, int, int, int *, int *, int *, float *);
    int (*create_f64)(void **, int, int, int, int, int, int *, int *, int *, double *);
    int (*multiply_f32)(int, float, void *, description, int, const float *, int, int, float, float *, int);
    int (*multiply_f64)(int, double, void *, description, int, const double *, int, int, double, double *, int);
    int (*hint)(void *, int, description, int, int, int);
    int (*optimize)(void *);
    int (*destroy)(void *);
} functions;

typedef struct bsr_state {
    spk_mkl mkl;
    functions call;
    int grid_rows, grid_cols, block; /* of A as stored */
    int *offsets, *columns;
    void *values; /* with static_values: a copy, which the optimised handle belongs to */
    void *handle;
    size_t acc_bytes;
} bsr_state;

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    const spk_pattern *a = problem->pattern;
    /* Without its optimisation step MKL transposes only where the blocks and B have one layout. */
    bool mixed = problem->trans_a == SPK_TRANS && problem->block_layout != problem->b.layout;
    *why = spk_vendor_refusal(problem);
    if (*why != NULL)
        return false;
    if (a->block_rows != a->block_cols)
        *why = "MKL has square blocks only";
    else if (a->rows % a->block_rows != 0 || a->cols % a->block_cols != 0)
        *why = "the sizes are no multiples of the block";
    else if (a->nnzb == 0)
        *why = "there are no stored blocks";
    else if (a->nnzb > INT32_MAX / ((int64_t)a->block_rows * a->block_cols))
        *why = "its sizes are 32-bit integers";
    else if (mixed && (!problem->static_values || problem->block_layout == SPK_COL_MAJOR))
        *why = "MKL transposes only where blocks and B have one layout";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    double share = problem->b.layout == SPK_ROW_MAJOR ? fmax(0.13, 0.4 - 0.05 * log2(problem->pattern->block_rows)) : 0.05;
    double compute = spk_problem_flops(problem) / (spk_peak_gflops(problem, device) * share * 1e3);
    return 10 + fmax(compute, spk_problem_bytes(problem) / (fmax(device->stream_gbs, 1) * 1e3));
}

static bool find_functions(void *handle, functions *call)
{
    return spk_library_function(handle, "mkl_sparse_s_create_bsr", &call->create_f32) &&
           spk_library_function(handle, "mkl_sparse_d_create_bsr", &call->create_f64) &&
           spk_library_function(handle, "mkl_sparse_s_mm", &call->multiply_f32) &&
           spk_library_function(handle, "mkl_sparse_d_mm", &call->multiply_f64) &&
           spk_library_function(handle, "mkl_sparse_set_mm_hint", &call->hint) &&
           spk_library_function(handle, "mkl_sparse_optimize", &call->optimize) &&
           spk_library_function(handle, "mkl_sparse_destroy", &call->destroy);
}

static spk_status failed(const char *function, int code)
{
    static const char *const reasons[] = {"success",          "not initialised", "out of memory", "invalid value",
                                          "execution failed", "internal error",  "not supported"};
    const char *reason = code > 0 && code < (int)(sizeof reasons / sizeof reasons[0]) ? reasons[code] : "unknown status";
    return spk_fail(code == 2 ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_UNSUPPORTED, "%s gave %d: %s", function, code, reason);
}

/* The index as MKL wants it: that of A as stored, also for op T, with 32-bit integers. */
static spk_status make_index(spk_bound *bound, bsr_state *state)
{
    const spk_problem *p = &bound->problem;
    const spk_index *index = &p->pattern->index;
    const spk_mem *mem = &bound->device->mem;
    int base = p->block_layout == SPK_ROW_MAJOR ? BASE_ZERO : BASE_ONE;
    state->grid_rows = (int)index->grid_rows;
    state->grid_cols = (int)index->grid_cols;
    state->block = p->pattern->block_rows;
    SPK_TRY(spk_alloc(mem, (size_t)index->grid_rows + 1, sizeof(int), &state->offsets));
    SPK_TRY(spk_alloc(mem, (size_t)p->pattern->nnzb, sizeof(int), &state->columns));
    for (int64_t i = 0; i <= index->grid_rows; i++)
        state->offsets[i] = (int)index->offsets[i] + base;
    for (int64_t i = 0; i < p->pattern->nnzb; i++)
        state->columns[i] = index->columns[i] + base;
    return SPK_OK;
}

static void unbind(spk_bound *bound)
{
    bsr_state *state = bound->state;
    if (state == NULL)
        return;
    if (state->handle != NULL)
        state->call.destroy(state->handle);
    spk_free(&bound->device->mem, state->offsets);
    spk_free(&bound->device->mem, state->columns);
    spk_free(&bound->device->mem, state->values);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    bsr_state *state = NULL;
    void *handle = NULL;
    spk_status status = SPK_OK;
    size_t bytes = spk_dtype_bytes(p->a.dtype);
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_mkl_open(bound->device, &handle, &state->mkl));
    if (!find_functions(handle, &state->call))
        SPK_GOTO(spk_fail(SPK_ERR_UNSUPPORTED, "mkl: it lacks functions of mkl_sparse"));
    SPK_GOTO(make_index(bound, state));
    if (p->static_values)
        SPK_GOTO(spk_alloc(&bound->device->mem, (size_t)spk_problem_operand_elements(p, SPK_A), bytes, &state->values));
    /* MKL has one layout for B and the result. */
    if (!spk_product_is_result(p, true) || p->d.layout != p->b.layout)
        state->acc_bytes = ((size_t)p->m * (size_t)p->n * bytes + 63) / 64 * 64;
    bound->workspace_bytes = state->acc_bytes > 0 ? state->acc_bytes + spk_finish_bytes(bound, p->b.layout) : 0;
    return SPK_OK;
done:
    unbind(bound);
    return status;
}

static spk_status create(const spk_problem *p, const bsr_state *state, const void *values, void **handle)
{
    bool row_major = p->block_layout == SPK_ROW_MAJOR;
    int base = row_major ? BASE_ZERO : BASE_ONE, layout = row_major ? LAYOUT_ROW_MAJOR : LAYOUT_COL_MAJOR;
    void *address = NULL; /* MKL's prototype takes values that it does not change */
    memcpy(&address, &values, sizeof address);
    int code = p->a.dtype == SPK_F32 ? state->call.create_f32(handle, base, layout, state->grid_rows, state->grid_cols, state->block,
                                                              state->offsets, state->offsets + 1, state->columns, address)
                                     : state->call.create_f64(handle, base, layout, state->grid_rows, state->grid_cols, state->block,
                                                              state->offsets, state->offsets + 1, state->columns, address);
    return code == 0 ? SPK_OK : failed("mkl_sparse_create_bsr", code);
}

/* Values that stay: MKL may inspect them and lay them out anew. */
static spk_status update_values(spk_bound *bound, const void *values)
{
    const spk_problem *p = &bound->problem;
    bsr_state *state = bound->state;
    if (!p->static_values)
        return SPK_OK;
    void *handle = NULL;
    memcpy(state->values, values, (size_t)spk_problem_operand_elements(p, SPK_A) * spk_dtype_bytes(p->a.dtype));
    SPK_TRY(create(p, state, state->values, &handle));
    int before = state->mkl.set_threads(spk_executor_library_threads(&bound->device->executor));
    int code = state->call.hint(handle, p->trans_a == SPK_TRANS ? OPERATION_T : OPERATION_N, general,
                                p->b.layout == SPK_ROW_MAJOR ? LAYOUT_ROW_MAJOR : LAYOUT_COL_MAJOR, (int)p->n, EXPECTED_RUNS);
    if (code == 0)
        code = state->call.optimize(handle);
    state->mkl.set_threads(before);
    if (code != 0) {
        state->call.destroy(handle);
        return failed("mkl_sparse_optimize", code);
    }
    if (state->handle != NULL)
        state->call.destroy(state->handle);
    state->handle = handle;
    return SPK_OK;
}

static int multiply(const spk_problem *p, const bsr_state *state, void *handle, const void *b, double alpha, double beta, void *d, int ldd)
{
    int operation = p->trans_a == SPK_TRANS ? OPERATION_T : OPERATION_N,
        layout = p->b.layout == SPK_ROW_MAJOR ? LAYOUT_ROW_MAJOR : LAYOUT_COL_MAJOR;
    if (p->a.dtype == SPK_F32)
        return state->call.multiply_f32(operation, (float)alpha, handle, general, layout, b, (int)p->n, (int)p->b.ld, (float)beta, d, ldd);
    return state->call.multiply_f64(operation, alpha, handle, general, layout, b, (int)p->n, (int)p->b.ld, beta, d, ldd);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const spk_problem *p = &bound->problem;
    const bsr_state *state = bound->state;
    void *handle = state->handle;
    if (p->static_values && handle == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    if (!p->static_values) /* a few microseconds: the handle borrows the arrays */
        SPK_TRY(create(p, state, args->a, &handle));
    bool direct = state->acc_bytes == 0;
    int64_t acc_ld = p->b.layout == SPK_ROW_MAJOR ? p->n : p->m;
    int before = state->mkl.set_threads(spk_executor_library_threads(&bound->device->executor));
    int code = direct ? multiply(p, state, handle, args->b, args->alpha, spk_start_from_c(p, args), args->d, (int)p->d.ld)
                      : multiply(p, state, handle, args->b, 1, 0, args->workspace, (int)acc_ld);
    state->mkl.set_threads(before);
    if (!p->static_values)
        state->call.destroy(handle);
    if (code != 0)
        return failed("mkl_sparse_mm", code);
    if (!direct)
        spk_finish(bound, args, args->workspace, p->b.layout, acc_ld, (char *)args->workspace + state->acc_bytes);
    return SPK_OK;
}

const spk_kernel_ops mkl_bsr_ops = {
    .applicable = applicable,
    .predict_us = predict_us,
    .bind = bind,
    .unbind = unbind,
    .update_values = update_values,
    .run = run,
    .source_hash = SPK_SOURCE_HASH,
};

/* The whole matrix made dense and multiplied by one vendor call on all threads. It multiplies the zeros it filled in: its rows win only
 * with assume_finite. Without static_values the matrix is made dense in every run, as part of its time. */
#include <math.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

enum { PARTS_A_THREAD = 4 };

static double dense_bytes_of(const spk_problem *problem)
{
    return (double)problem->m * (double)problem->k * (double)spk_dtype_bytes(problem->a.dtype);
}

bool spk_dense_fits(const spk_problem *problem, const spk_device *device, const char **why)
{
    *why = spk_vendor_refusal_of_sizes(problem);
    if (*why == NULL && dense_bytes_of(problem) + (double)spk_whole_acc_bytes(problem) > (double)device->memory_bytes / 4)
        *why = "the dense matrix would take more than a quarter of the memory";
    return *why == NULL;
}

bool spk_dense_applicable(const spk_problem *problem, const spk_device *device, const char **why)
{
    *why = spk_vendor_refusal(problem);
    return *why == NULL && spk_dense_fits(problem, device, why);
}

double spk_dense_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    double stream = fmax(device->stream_gbs, 1) * 1e3;
    double multiply = spk_problem_dense_flops(problem) / (spk_peak_gflops(problem, device) * 1.05 * 1e3);
    double read = dense_bytes_of(problem) / stream;
    double fill = problem->static_values ? 0 : 2 * dense_bytes_of(problem) / stream;
    return 10 + fmax(multiply, read) + fill + 2 * (double)spk_whole_acc_bytes(problem) / stream;
}

spk_status spk_dense_make(spk_bound *bound, void (*multiply)(const void *, const spk_product *, int), const void *user,
                          size_t scratch_bytes, spk_dense *dense)
{
    const spk_problem *p = &bound->problem;
    int lda = 0;
    spk_dense made = {.multiply = multiply, .user = user, .layout = spk_block_layout_of(&bound->view, &lda)};
    size_t bytes = spk_dtype_bytes(p->a.dtype);
    made.dense_bytes = ((size_t)p->m * (size_t)p->k * bytes + 63) / 64 * 64;
    if (p->static_values)
        SPK_TRY(spk_alloc(&bound->device->mem, made.dense_bytes, 1, &made.values));
    bound->workspace_bytes = (spk_whole_acc_bytes(p) + 63) / 64 * 64 + (p->static_values ? 0 : made.dense_bytes) + scratch_bytes;
    *dense = made;
    return SPK_OK;
}

void spk_dense_release(const spk_bound *bound, spk_dense *dense)
{
    spk_free(&bound->device->mem, dense->values);
    dense->values = NULL;
}

typedef struct filling {
    const spk_bsr_view *view;
    const char *values;
    char *out;
    spk_layout layout;
    int64_t ld, parts;
    size_t bytes;
} filling;

/* Copies lines of a block (rows if row-major, else columns) to their place. */
static void place_block(const filling *f, const char *block, int64_t row0, int64_t col0)
{
    const spk_bsr_view *view = f->view;
    int64_t rows = view->rows - row0 < view->block_rows ? view->rows - row0 : view->block_rows;
    int64_t cols = view->cols - col0 < view->block_cols ? view->cols - col0 : view->block_cols;
    bool row_major = f->layout == SPK_ROW_MAJOR;
    int64_t lines = row_major ? rows : cols, length = row_major ? cols : rows, stride = row_major ? view->row_stride : view->col_stride;
    char *out = f->out + (size_t)(row_major ? row0 * f->ld + col0 : row0 + col0 * f->ld) * f->bytes;
    for (int64_t i = 0; i < lines; i++)
        memcpy(out + (size_t)(i * f->ld) * f->bytes, block + (size_t)(i * stride) * f->bytes, (size_t)length * f->bytes);
}

static void fill_rows(void *arg, int64_t task)
{
    const filling *f = arg;
    const spk_bsr_view *view = f->view;
    int64_t from = view->grid_rows * task / f->parts, to = view->grid_rows * (task + 1) / f->parts;
    int64_t row0 = from * view->block_rows, row1 = to * view->block_rows < view->rows ? to * view->block_rows : view->rows;
    if (f->layout == SPK_ROW_MAJOR)
        memset(f->out + (size_t)(row0 * f->ld) * f->bytes, 0, (size_t)((row1 - row0) * f->ld) * f->bytes);
    else
        for (int64_t col = 0; col < view->cols; col++)
            memset(f->out + (size_t)(col * f->ld + row0) * f->bytes, 0, (size_t)(row1 - row0) * f->bytes);
    for (int64_t row = from; row < to; row++)
        for (int64_t i = view->offsets[row]; i < view->offsets[row + 1]; i++) {
            int64_t position = view->positions != NULL ? view->positions[i] : i;
            place_block(f, f->values + (size_t)(position * view->block_stride) * f->bytes, row * view->block_rows,
                        (int64_t)view->columns[i] * view->block_cols);
        }
}

static int64_t dense_ld(const spk_bound *bound, const spk_dense *dense)
{
    return dense->layout == SPK_ROW_MAJOR ? bound->problem.k : bound->problem.m;
}

static void densify(const spk_bound *bound, const spk_dense *dense, const void *values, void *out)
{
    const spk_executor *executor = &bound->device->executor;
    int64_t most = executor->threads > 1 ? (int64_t)executor->threads * PARTS_A_THREAD : 1;
    filling f = {.view = &bound->view,
                 .values = values,
                 .out = out,
                 .layout = dense->layout,
                 .ld = dense_ld(bound, dense),
                 .parts = bound->view.grid_rows < most ? bound->view.grid_rows : most,
                 .bytes = spk_dtype_bytes(bound->problem.a.dtype)};
    spk_execute(executor, f.parts, fill_rows, &f);
}

spk_status spk_dense_update(spk_bound *bound, spk_dense *dense, const void *values)
{
    if (dense->values == NULL)
        return SPK_OK; /* made dense in each run */
    densify(bound, dense, values, dense->values);
    dense->ready = true;
    return SPK_OK;
}

spk_status spk_dense_run(const spk_bound *bound, const spk_dense *dense, const spk_args *args)
{
    const void *a = dense->values;
    char *acc = args->workspace;
    if (a == NULL) {
        acc += dense->dense_bytes;
        a = args->workspace;
        densify(bound, dense, args->a, args->workspace);
    } else if (!dense->ready) {
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    }
    const spk_whole whole = {.multiply = dense->multiply,
                             .user = dense->user,
                             .a = a,
                             .layout_a = dense->layout,
                             .lda = (int)dense_ld(bound, dense),
                             .acc = acc,
                             .scratch = acc + (spk_whole_acc_bytes(&bound->problem) + 63) / 64 * 64};
    spk_whole_run(bound, args, &whole);
    return SPK_OK;
}

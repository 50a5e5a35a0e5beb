/* SDDMM through one vendor call: X Y whole into the workspace, on all threads, then the stored blocks out of it. What is not stored is
 * computed and left behind, so the result is exact whatever X and Y hold. */
#include <math.h>

#include "backend/cpu/vendor/vendor.h"
#include "type/value.h"

static double whole_bytes_of(const spk_problem *problem)
{
    return (double)problem->m * (double)problem->n * (double)spk_sum_bytes(problem);
}

bool spk_sampled_fits(const spk_problem *problem, const spk_device *device, const char **why)
{
    *why = spk_vendor_refusal_of_sizes(problem);
    if (*why == NULL && whole_bytes_of(problem) > (double)device->memory_bytes / 4)
        *why = "the whole product would take more than a quarter of the memory";
    return *why == NULL;
}

bool spk_sampled_applicable(const spk_problem *problem, const spk_device *device, const char **why)
{
    *why = spk_vendor_refusal(problem);
    return *why == NULL && spk_sampled_fits(problem, device, why);
}

double spk_sampled_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const double stream = fmax(device->stream_gbs, 1) * 1e3, bytes = (double)spk_dtype_bytes(problem->a.dtype);
    const double values = (double)problem->pattern->nnzb * (double)problem->pattern->block_rows * (double)problem->pattern->block_cols;
    const double multiply = spk_problem_dense_flops(problem) / (spk_peak_gflops(problem, device) * 1.05 * 1e3);
    return 10 + multiply + (2 * whole_bytes_of(problem) + 2 * values * bytes) / stream;
}

size_t spk_sampled_workspace_bytes(const spk_problem *problem)
{
    return ((size_t)problem->m * (size_t)problem->n * spk_sum_bytes(problem) + 63) / 64 * 64;
}

typedef struct sampling {
    const spk_bound *bound;
    const spk_args *args;
    bool with_c;
} sampling;

/* The block that begins at (row0, col0) and lies at `at` of C and D. alpha comes here: a library that is given 0 leaves X's infinities
 * out. */
static void take_block(const sampling *s, int64_t row0, int64_t col0, int64_t at)
{
    const spk_bsr_view *view = &s->bound->view;
    const spk_args *args = s->args;
    const int64_t n = s->bound->problem.n;
    for (int64_t i = 0; i < view->block_rows; i++)
        for (int64_t j = 0; j < view->block_cols; j++) {
            const int64_t place = at + i * view->row_stride + j * view->col_stride, from = (row0 + i) * n + col0 + j;
            const bool inside = row0 + i < view->rows && col0 + j < view->cols; /* what hangs over is zero */
            if (s->bound->problem.a.dtype != SPK_F64) {
                const spk_dtype dtype = s->bound->problem.d.dtype;
                const float more = inside && s->with_c ? (float)args->beta * (float)spk_value_at(args->c, dtype, place) : 0;
                const float sum = inside ? (float)args->alpha * ((const float *)args->workspace)[from] + more : 0;
                spk_value_put(args->d, dtype, place, (double)sum);
            } else {
                const double more = inside && s->with_c ? args->beta * ((const double *)args->c)[place] : 0;
                ((double *)args->d)[place] = inside ? args->alpha * ((const double *)args->workspace)[from] + more : 0;
            }
        }
}

static void take_block_row(void *arg, int64_t row)
{
    const sampling *s = arg;
    const spk_bsr_view *view = &s->bound->view;
    for (int64_t p = view->offsets[row]; p < view->offsets[row + 1]; p++)
        take_block(s, row * view->block_rows, (int64_t)view->columns[p] * view->block_cols, p * view->block_stride);
}

void spk_sampled_run(const spk_bound *bound, const spk_args *args, void (*multiply)(const void *, const spk_product *, int),
                     const void *user)
{
    const spk_problem *p = &bound->problem;
    const spk_product product = {.dtype = p->a.dtype,
                                 .dtype_d = p->a.dtype == SPK_F64 ? SPK_F64 : SPK_F32,
                                 .m = (int)p->m,
                                 .n = (int)p->n,
                                 .k = (int)p->k,
                                 .layout_a = p->a.layout,
                                 .layout_b = p->b.layout,
                                 .layout_d = SPK_ROW_MAJOR,
                                 .a = args->a,
                                 .b = args->b,
                                 .d = args->workspace,
                                 .lda = (int)p->a.ld,
                                 .ldb = (int)p->b.ld,
                                 .ldd = (int)p->n,
                                 .alpha = 1,
                                 .scratch = (char *)args->workspace + spk_sampled_workspace_bytes(p)};
    multiply(user, &product, spk_executor_library_threads(&bound->device->executor));
    sampling s = {bound, args, p->epilogue.use_c && args->beta != 0};
    spk_execute(&bound->device->executor, bound->view.grid_rows, take_block_row, &s);
}

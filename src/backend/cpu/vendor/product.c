/* What every vendor row needs around its products: CBLAS calls in either layout, refusals, the epilogue of a whole result. */
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_COL_MAJOR = 102, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };
enum { FINISH_ROWS = 64, FINISH_COLS = 64 };

bool spk_cblas_find(void *handle, spk_cblas *cblas)
{
    return spk_library_function(handle, "cblas_sgemm", &cblas->sgemm) && spk_library_function(handle, "cblas_dgemm", &cblas->dgemm);
}

void spk_cblas_multiply(const spk_cblas *cblas, const spk_product *p)
{
    int order = p->layout_d == SPK_ROW_MAJOR ? CBLAS_ROW_MAJOR : CBLAS_COL_MAJOR;
    int trans_a = p->layout_a == p->layout_d ? CBLAS_NO_TRANS : CBLAS_TRANS,
        trans_b = p->layout_b == p->layout_d ? CBLAS_NO_TRANS : CBLAS_TRANS;
    if (p->dtype == SPK_F32)
        cblas->sgemm(order, trans_a, trans_b, p->m, p->n, p->k, (float)p->alpha, p->a, p->lda, p->b, p->ldb, (float)p->beta, p->d, p->ldd);
    else
        cblas->dgemm(order, trans_a, trans_b, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->d, p->ldd);
}

spk_layout spk_block_layout_of(const spk_bsr_view *view, int *ld)
{
    /* In a block of one column (or row) both strides are 1: the leading dimension tells which reading is meant. */
    bool row_major = view->col_stride == 1 && view->row_stride >= view->block_cols;
    *ld = (int)(row_major ? view->row_stride : view->col_stride);
    return row_major ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
}

const char *spk_vendor_refusal(const spk_problem *problem)
{
    const spk_problem *p = problem;
    if ((p->a.dtype != SPK_F32 && p->a.dtype != SPK_F64) || p->b.dtype != p->a.dtype || p->d.dtype != p->a.dtype)
        return "it multiplies f32 by f32 and f64 by f64 only";
    return spk_vendor_refusal_of_sizes(problem);
}

size_t spk_sum_bytes(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64 ? sizeof(double) : sizeof(float);
}

const char *spk_vendor_refusal_of_sizes(const spk_problem *problem)
{
    const spk_problem *p = problem;
    if (p->batch > 1)
        return "it multiplies one at a time";
    if (p->m == 0 || p->n == 0 || p->k == 0)
        return "the product is empty";
    if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX || p->a.ld > INT32_MAX || p->b.ld > INT32_MAX || p->d.ld > INT32_MAX)
        return "its sizes are 32-bit integers";
    return NULL;
}

bool spk_product_is_result(const spk_problem *problem, bool with_c)
{
    const spk_epilogue *e = &problem->epilogue;
    return (with_c || !e->use_c) && e->residual == SPK_RESIDUAL_NONE && !e->keep_preact && e->bias == SPK_BIAS_NONE &&
           e->activation == SPK_ACT_NONE;
}

double spk_start_from_c(const spk_problem *problem, const spk_args *args)
{
    const spk_problem *p = problem;
    if (!p->epilogue.use_c || args->beta == 0)
        return 0;
    size_t bytes = spk_dtype_bytes(p->d.dtype);
    int64_t lines = p->d.layout == SPK_ROW_MAJOR ? p->m : p->n, length = p->d.layout == SPK_ROW_MAJOR ? p->n : p->m;
    for (int64_t i = 0; args->c != args->d && i < lines; i++)
        memcpy((char *)args->d + (size_t)(i * p->d.ld) * bytes, (const char *)args->c + (size_t)(i * p->c.ld) * bytes,
               (size_t)length * bytes);
    return args->beta;
}

double spk_peak_gflops(const spk_problem *problem, const spk_device *device)
{
    double peak = device->peak_gflops_f32 > 1 ? device->peak_gflops_f32 : 1;
    return problem->a.dtype == SPK_F64 ? peak / 2 : peak;
}

typedef struct finish {
    const spk_bound *bound;
    const spk_args *args;
    const char *acc;
    spk_layout layout;
    int64_t ld, chunks;
    char *tiles;
} finish;

static int64_t finish_chunks(const spk_bound *bound)
{
    int64_t chunks = (bound->problem.m + FINISH_ROWS - 1) / FINISH_ROWS, most = (int64_t)bound->device->executor.threads * 4;
    return chunks < most ? chunks : most;
}

size_t spk_finish_bytes(const spk_bound *bound, spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? 0 : (size_t)finish_chunks(bound) * FINISH_ROWS * FINISH_COLS * spk_sum_bytes(&bound->problem);
}

static void store(const finish *f, const void *acc, int64_t ld, int64_t row0, int64_t rows, int64_t col0, int64_t cols)
{
    if (f->bound->problem.a.dtype != SPK_F64)
        spk_epilogue_f32(&f->bound->problem, f->args, acc, ld, row0, rows, col0, cols);
    else
        spk_epilogue_f64(&f->bound->problem, f->args, acc, ld, row0, rows, col0, cols);
}

/* Turns a piece of a column-major acc into a row-major tile. */
static void transpose(const finish *f, char *tile, int64_t row0, int64_t rows, int64_t col0, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++) {
        if (f->bound->problem.a.dtype != SPK_F64) {
            const float *column = (const float *)f->acc + (col0 + j) * f->ld + row0;
            for (int64_t i = 0; i < rows; i++)
                ((float *)tile)[i * FINISH_COLS + j] = column[i];
        } else {
            const double *column = (const double *)f->acc + (col0 + j) * f->ld + row0;
            for (int64_t i = 0; i < rows; i++)
                ((double *)tile)[i * FINISH_COLS + j] = column[i];
        }
    }
}

static void finish_chunk(void *arg, int64_t task)
{
    const finish *f = arg;
    const spk_problem *p = &f->bound->problem;
    size_t bytes = spk_sum_bytes(p);
    int64_t from = p->m * task / f->chunks, to = p->m * (task + 1) / f->chunks;
    if (f->layout == SPK_ROW_MAJOR) {
        store(f, f->acc + (size_t)(from * f->ld) * bytes, f->ld, from, to - from, 0, p->n);
        return;
    }
    char *tile = f->tiles + (size_t)task * FINISH_ROWS * FINISH_COLS * bytes;
    for (int64_t row = from; row < to; row += FINISH_ROWS) {
        int64_t rows = to - row < FINISH_ROWS ? to - row : FINISH_ROWS;
        for (int64_t col = 0; col < p->n; col += FINISH_COLS) {
            int64_t cols = p->n - col < FINISH_COLS ? p->n - col : FINISH_COLS;
            transpose(f, tile, row, rows, col, cols);
            store(f, tile, FINISH_COLS, row, rows, col, cols);
        }
    }
}

void spk_finish(const spk_bound *bound, const spk_args *args, const void *acc, spk_layout layout, int64_t ld, void *tiles)
{
    finish f = {.bound = bound, .args = args, .acc = acc, .layout = layout, .ld = ld, .chunks = finish_chunks(bound), .tiles = tiles};
    spk_execute(&bound->device->executor, f.chunks, finish_chunk, &f);
}

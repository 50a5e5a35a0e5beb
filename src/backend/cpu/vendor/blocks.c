/* A vendor product for each stored block, on our threads: the same partition and the same order of summation as our own kernels, so that
 * only the multiplication inside a block is the vendor's. The overhang of edge blocks is never read. */
#include <math.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

enum { TILE_BYTES = 256 * 1024, COLUMN_STEP = 16, PARTS_A_THREAD = 4 };

typedef struct blocks_run {
    const spk_bound *bound;
    const spk_blocks *blocks;
    const spk_args *args;
    double alpha; /* of the products */
    double scale; /* of D afterwards */
} blocks_run;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Panels as wide as wanted or as a tile allows; narrower where the rows alone do not feed all threads. */
static int64_t panel_width(const spk_bound *bound, int64_t wanted, int col_parts)
{
    const spk_problem *p = &bound->problem;
    int64_t limit = (int64_t)TILE_BYTES / ((int64_t)bound->view.block_rows * (int64_t)spk_dtype_bytes(p->a.dtype));
    int64_t width = wanted > 0 && wanted < limit ? wanted : limit;
    int64_t share = ceil_div(p->n, col_parts);
    width = ceil_div(width < share ? width : share, COLUMN_STEP) * COLUMN_STEP;
    return width < p->n ? width : p->n;
}

spk_status spk_blocks_make(spk_bound *bound, const spk_blocks_library *library, const void *user, int64_t panel, bool direct,
                           spk_blocks *blocks)
{
    const spk_problem *p = &bound->problem;
    const spk_bsr_view *view = &bound->view;
    int64_t threads = bound->device->executor.threads > 1 ? bound->device->executor.threads : 1;
    int64_t parts = threads > 1 ? threads * PARTS_A_THREAD : 1;
    spk_blocks made = {.library = *library, .user = user, .direct = direct, .layout = direct ? p->d.layout : SPK_ROW_MAJOR};
    made.row_parts = (int)(view->grid_rows < parts ? view->grid_rows : parts);
    made.col_parts = made.row_parts >= threads ? 1 : (int)ceil_div(threads, made.row_parts);
    made.panel = panel_width(bound, panel, made.col_parts);
    made.panels = ceil_div(p->n, made.panel);
    if (made.col_parts > made.panels)
        made.col_parts = (int)made.panels;
    made.layout_a = spk_block_layout_of(view, &made.lda);
    size_t bytes = direct ? 0 : (size_t)made.panel * (size_t)view->block_rows * spk_dtype_bytes(p->a.dtype);
    made.tile_bytes = (bytes + 63) / 64 * 64;
    SPK_TRY(spk_partition_rows(&bound->device->mem, view, made.row_parts, &made.bounds));
    bound->workspace_bytes = made.tile_bytes * (size_t)made.row_parts * (size_t)made.col_parts;
    *blocks = made;
    return SPK_OK;
}

void spk_blocks_release(const spk_bound *bound, spk_blocks *blocks)
{
    spk_free(&bound->device->mem, blocks->bounds);
    blocks->bounds = NULL;
}

/* acc = 0, or acc *= scale: a piece of rows x cols. */
static void fill_zero(void *acc, size_t bytes, spk_layout layout, int64_t ld, int64_t rows, int64_t cols)
{
    int64_t lines = layout == SPK_ROW_MAJOR ? rows : cols, length = layout == SPK_ROW_MAJOR ? cols : rows;
    for (int64_t i = 0; i < lines; i++)
        memset((char *)acc + (size_t)(i * ld) * bytes, 0, (size_t)length * bytes);
}

static void scale_piece(void *acc, spk_dtype dtype, spk_layout layout, int64_t ld, int64_t rows, int64_t cols, double scale)
{
    int64_t lines = layout == SPK_ROW_MAJOR ? rows : cols, length = layout == SPK_ROW_MAJOR ? cols : rows;
    float scale_f32 = (float)scale;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < length; j++) {
            if (dtype == SPK_F32)
                ((float *)acc)[i * ld + j] *= scale_f32;
            else
                ((double *)acc)[i * ld + j] *= scale;
        }
}

/* The sum of a block row's products over columns [col0, col0 + cols), into acc. */
static void sum_row(const blocks_run *run, int64_t row, int rows, int64_t col0, int cols, void *acc, int ld)
{
    const spk_problem *p = &run->bound->problem;
    const spk_bsr_view *view = &run->bound->view;
    const spk_blocks *blocks = run->blocks;
    size_t bytes = spk_dtype_bytes(p->a.dtype);
    const char *values = run->args->a, *b = run->args->b;
    spk_product product = {.dtype = p->a.dtype,
                           .dtype_d = p->a.dtype,
                           .m = rows,
                           .n = cols,
                           .layout_a = blocks->layout_a,
                           .layout_b = p->b.layout,
                           .layout_d = blocks->layout,
                           .d = acc,
                           .lda = blocks->lda,
                           .ldb = (int)p->b.ld,
                           .ldd = ld,
                           .alpha = run->alpha};
    int64_t first = view->offsets[row], last = view->offsets[row + 1];
    if (first == last)
        fill_zero(acc, bytes, blocks->layout, ld, rows, cols);
    for (int64_t i = first; i < last; i++) {
        int64_t k0 = (int64_t)view->columns[i] * view->block_cols, position = view->positions != NULL ? view->positions[i] : i;
        int64_t left = view->cols - k0;
        product.k = (int)(left < view->block_cols ? left : view->block_cols);
        product.a = values + (size_t)(position * view->block_stride) * bytes;
        product.b = b + (size_t)(p->b.layout == SPK_ROW_MAJOR ? k0 * p->b.ld + col0 : k0 + col0 * p->b.ld) * bytes;
        product.beta = i == first ? 0 : 1;
        blocks->library.multiply(blocks->user, &product);
    }
}

static void finish_piece(const blocks_run *run, int64_t row0, int rows, int64_t col0, int cols, void *acc, int ld)
{
    const spk_problem *p = &run->bound->problem;
    if (run->blocks->direct) {
        if (run->scale != 1)
            scale_piece(acc, p->a.dtype, run->blocks->layout, ld, rows, cols, run->scale);
    } else if (p->a.dtype == SPK_F32) {
        spk_epilogue_f32(p, run->args, acc, ld, row0, rows, col0, cols);
    } else {
        spk_epilogue_f64(p, run->args, acc, ld, row0, rows, col0, cols);
    }
}

static void run_part(void *arg, int64_t task)
{
    const blocks_run *run = arg;
    const spk_problem *p = &run->bound->problem;
    const spk_bsr_view *view = &run->bound->view;
    const spk_blocks *blocks = run->blocks;
    size_t bytes = spk_dtype_bytes(p->a.dtype);
    int64_t row_part = task / blocks->col_parts, col_part = task % blocks->col_parts;
    char *tile = (char *)run->args->workspace + (size_t)task * blocks->tile_bytes;
    int token = blocks->library.begin != NULL ? blocks->library.begin(blocks->user) : 0;
    for (int64_t panel = blocks->panels * col_part / blocks->col_parts; panel < blocks->panels * (col_part + 1) / blocks->col_parts;
         panel++) {
        int64_t col0 = panel * blocks->panel, width = p->n - col0 < blocks->panel ? p->n - col0 : blocks->panel;
        for (int64_t row = blocks->bounds[row_part]; row < blocks->bounds[row_part + 1]; row++) {
            int64_t row0 = row * view->block_rows, height = view->rows - row0 < view->block_rows ? view->rows - row0 : view->block_rows;
            char *acc = tile;
            int ld = (int)blocks->panel;
            if (blocks->direct) {
                acc = (char *)run->args->d + (size_t)(p->d.layout == SPK_ROW_MAJOR ? row0 * p->d.ld + col0 : row0 + col0 * p->d.ld) * bytes;
                ld = (int)p->d.ld;
            }
            sum_row(run, row, (int)height, col0, (int)width, acc, ld);
            finish_piece(run, row0, (int)height, col0, (int)width, acc, ld);
        }
    }
    if (blocks->library.end != NULL)
        blocks->library.end(blocks->user, token);
}

void spk_blocks_run(const spk_bound *bound, const spk_blocks *blocks, const spk_args *args)
{
    blocks_run run = {.bound = bound, .blocks = blocks, .args = args, .alpha = 1, .scale = 1};
    if (blocks->direct) {
        /* BLAS reads nothing where alpha is 0, and would lose the NaN of 0 * inf that every other kernel gives. */
        double rounded = bound->problem.a.dtype == SPK_F32 ? (double)(float)args->alpha : args->alpha;
        bool inside = blocks->library.takes_alpha && rounded != 0;
        run.alpha = inside ? args->alpha : 1;
        run.scale = inside ? 1 : args->alpha;
    }
    spk_execute(&bound->device->executor, (int64_t)blocks->row_parts * blocks->col_parts, run_part, &run);
}

double spk_blocks_predict_us(const spk_problem *problem, const spk_device *device, double call_us, double share)
{
    const spk_pattern *pattern = problem->pattern;
    int64_t block_rows = problem->trans_a == SPK_TRANS ? pattern->block_cols : pattern->block_rows;
    double threads = device->executor.threads > 1 ? device->executor.threads : 1;
    double width = (double)TILE_BYTES / ((double)block_rows * (double)spk_dtype_bytes(problem->a.dtype));
    double calls = (double)pattern->nnzb * fmax(1, ceil((double)problem->n / width));
    double compute = spk_problem_flops(problem) / (spk_peak_gflops(problem, device) * share * 1e3) + calls * call_us / threads;
    double stream = spk_problem_bytes(problem) / (fmax(device->stream_gbs, 1) * 1e3);
    return 0.5 + spk_wake_us(threads) + fmax(compute, stream);
}

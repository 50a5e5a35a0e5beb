/* Patterns whose indices stay on the device: every row that takes them, wrong ones behind a stream that is busy, tuning and asking. */
#include <math.h>
#include <string.h>

#include "product.h"

typedef struct arrays {
    long long offsets[GRID_M + 1], columns[GRID_M * GRID_K];
} arrays;

/* The blocks of make_product. */
static void same_blocks(arrays *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < GRID_M; i++) {
        a->offsets[i + 1] = a->offsets[i];
        for (int j = 0; j < GRID_K && i < GRID_M - 1; j++)
            if (i == 0 || (i + j) % 3 == 0)
                a->columns[a->offsets[i + 1]++] = j;
    }
}

static spk_pattern *deferred_pattern(const product *p, const arrays *there, handle stream)
{
    spk_pattern *pattern = NULL;
    const spk_deferred_indices later = {SPK_SIZED(spk_deferred_indices), .stream = stream, .longest_row = GRID_K};
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = M,
                                     .cols = K,
                                     .block_rows = BLOCK,
                                     .block_cols = BLOCK,
                                     .nnzb = p->nnzb,
                                     .row_offsets = there->offsets,
                                     .col_indices = there->columns,
                                     .index_type = SPK_INDEX_I64,
                                     .index_memory = SPK_DEVICE,
                                     .deferred = &later};
    MUST(p->context, spk_pattern_create(p->context, &indices, &pattern));
    return pattern;
}

static handle stream;
static arrays *there;

/* A fresh pattern, its plan and its run, with nothing between them. */
static void at_once(product *p, const char *choice)
{
    product own = *p;
    char *d = new_d(p);
    own.pattern = deferred_pattern(p, there, stream);
    spk_plan *plan = new_plan(&own, choice);
    spk_spmm_args args = args_of(p, d);
    MUST(p->context, spk_plan_run_spmm(plan, &args, stream));
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&own.pattern); /* the stream is not done */
    MUST(p->context, spk_synchronize(p->context, stream));
    check(p, d, choice);
    spk_memory_release(p->context, (void **)&d);
}

/* The stream has work for some milliseconds, so that plan and run come before the device finds what is wrong. */
static void wrong(product *p, const char *choice)
{
    product own = *p;
    arrays bad;
    char *d = new_d(p), *other = new_d(p), *raw = malloc(M * N * p->element);
    spk_plan *busy = new_plan(p, "reference_cuda_spmm");
    spk_spmm_args args = args_of(p, d), busy_args = args_of(p, other);
    for (int which = 0; which < 3; which++) {
        same_blocks(&bad);
        if (which == 0)
            bad.columns[p->nnzb - 1] = 1ll << 40;
        else if (which == 1)
            bad.offsets[2] = -7;
        else
            bad.offsets[GRID_M] = 1 << 30;
        arrays *wrong_there = device_copy(p->context, &bad, sizeof bad);
        for (int i = 0; i < 1000; i++)
            MUST(p->context, spk_plan_run_spmm(busy, &busy_args, stream));
        own.pattern = deferred_pattern(p, wrong_there, stream);
        spk_plan *plan = new_plan(&own, choice);
        MUST(p->context, spk_plan_run_spmm(plan, &args, stream));
        MUST(p->context, spk_synchronize(p->context, stream));
        MUST(p->context, spk_memory_copy(p->context, raw, SPK_HOST, d, SPK_DEVICE, M * N * p->element));
        for (size_t i = 0; i < M * N * p->element; i++)
            if (raw[i] != 0) {
                FAIL("%s: wrong indices %d: D is not zero", choice, which);
                break;
            }
        if (spk_plan_run_spmm(plan, &args, stream) != SPK_ERR_ARGUMENT)
            FAIL("%s: wrong indices %d: a later run does not say so", choice, which);
        printf("  %s\n", spk_last_error(p->context));
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&own.pattern);
        spk_memory_release(p->context, (void **)&wrong_there);
    }
    spk_plan_destroy(&busy);
    spk_memory_release(p->context, (void **)&d);
    spk_memory_release(p->context, (void **)&other);
    free(raw);
}

/* The first of a family is tuned, the next one finds it. */
static void tuned(product *p)
{
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .only = "spmm_cuda_simt,reference_cuda_spmm",
                                .budget_s = 0.2};
    for (int i = 0; i < 2; i++) {
        spk_pattern *pattern = deferred_pattern(p, there, stream);
        spk_plan *plan = NULL;
        spk_plan_info info = {SPK_SIZED(spk_plan_info)};
        options.tuning = i == 0 ? SPK_TUNING_NOW : SPK_TUNING_AHEAD_EACH;
        MUST(p->context, spk_plan_create_spmm(p->context, pattern, &p->spmm, &options, &plan));
        MUST(p->context, spk_plan_get_info(plan, &info));
        if (info.from_store != i)
            FAIL("pattern %d of a family: its plan is %s", i, info.why);
        spk_plan_destroy(&plan);
        spk_pattern_info asked = {SPK_SIZED(spk_pattern_info)}, known = {SPK_SIZED(spk_pattern_info)};
        MUST(p->context, spk_pattern_get_info(pattern, &asked));
        MUST(p->context, spk_pattern_get_info(p->pattern, &known));
        if (memcmp(&asked, &known, sizeof known) != 0)
            FAIL("asked, a pattern tells something else than the same from the host");
        spk_pattern_destroy(&pattern);
    }
}

/* Blocks of 128 x 128, of which row i has those that (i + j) % 3 leaves; the tiles' list is the device's. The yardstick has the indices on
 * the host. */
static void sampled(spk_context *context)
{
    enum { ROWS = 5, COLS = 7, SIDE = 128, DEPTH = 320 };
    long long offsets[ROWS + 1] = {0}, columns[ROWS * COLS];
    for (int i = 0; i < ROWS; i++) {
        offsets[i + 1] = offsets[i];
        for (int j = 0; j < COLS && i != 2; j++)
            if ((i + j) % 3 != 0)
                columns[offsets[i + 1]++] = j;
    }
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = ROWS * SIDE - 9, .cols = COLS * SIDE,
                               .block_rows = SIDE,         .block_cols = SIDE,      .nnzb = offsets[ROWS],
                               .row_offsets = offsets,     .col_indices = columns,  .index_type = SPK_INDEX_I64};
    const spk_deferred_indices later = {SPK_SIZED(spk_deferred_indices), .stream = stream};
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm), .k = DEPTH, .dtype_x = SPK_BF16, .dtype_d = SPK_F32};
    const size_t elements = (size_t)offsets[ROWS] * SIDE * SIDE, x_elements = (size_t)indices.rows * DEPTH,
                 y_elements = (size_t)indices.cols * DEPTH;
    void *random = malloc(2 * (x_elements + y_elements)), *offsets_there = device_copy(context, offsets, sizeof offsets);
    void *columns_there = device_copy(context, columns, sizeof columns), *d[2];
    float *got[2];
    MUST(context, spk_fill_random(context, SPK_BF16, (int64_t)(x_elements + y_elements), 5, random));
    char *x = device_copy(context, random, 2 * x_elements), *y = device_copy(context, (char *)random + 2 * x_elements, 2 * y_elements);
    for (int i = 0; i < 2; i++) {
        const spk_tune_options options = {SPK_SIZED(spk_tune_options),
                                          .choice = i == 0 ? "reference_cuda_sddmm"
                                                           : "sddmm_sm90_wgmma HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1"};
        spk_pattern *pattern = NULL;
        spk_plan *plan = NULL;
        got[i] = calloc(elements, sizeof(float));
        d[i] = device_copy(context, got[i], elements * sizeof(float));
        MUST(context, spk_pattern_create(context, &indices, &pattern));
        MUST(context, spk_plan_create_sddmm(context, pattern, &sddmm, &options, &plan));
        const spk_sddmm_args args = {SPK_SIZED(spk_sddmm_args), .x = x, .y = y, .d = d[i], .alpha = 1};
        MUST(context, spk_plan_run_sddmm(plan, &args, stream));
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
        MUST(context, spk_synchronize(context, stream));
        MUST(context, spk_memory_copy(context, got[i], SPK_HOST, d[i], SPK_DEVICE, elements * sizeof(float)));
        indices.row_offsets = offsets_there;
        indices.col_indices = columns_there;
        indices.index_memory = SPK_DEVICE;
        indices.deferred = &later;
    }
    for (size_t i = 0; i < elements; i++)
        if (!(fabsf(got[0][i] - got[1][i]) <= 1e-3f * DEPTH / 16)) {
            FAIL("sddmm: D[%zu] = %g; right is %g", i, (double)got[1][i], (double)got[0][i]);
            break;
        }
    void *all[] = {x, y, d[0], d[1], offsets_there, columns_there};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        spk_memory_release(context, &all[i]);
    free(random);
    free(got[0]);
    free(got[1]);
}

void deferred(void)
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F16};
    spk_context *context = new_context();
    arrays blocks;
    same_blocks(&blocks);
    DRIVER(cu.stream_create(&stream, 1));
    there = device_copy(context, &blocks, sizeof blocks);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        product p, own;
        make_product(context, dtypes[i], &p);
        own = p;
        own.pattern = deferred_pattern(&p, there, stream);
        for_each_row(&own, at_once);
        for_each_row(&own, wrong);
        spk_pattern_destroy(&own.pattern);
        tuned(&p);
        release_product(&p);
    }
    sampled(context);
    spk_memory_release(context, (void **)&there);
    DRIVER(cu.stream_destroy(stream));
    spk_context_destroy(&context);
}

/* Wrong calls: each must be refused with its status and a message that names the argument, the value and the limit, and must leave its
 * outputs untouched. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

static spk_context *context;
static spk_pattern *pattern;

/* A 4 x 6 matrix in blocks of 2 x 3, all stored. */
static const int32_t offsets[] = {0, 2, 4}, columns[] = {0, 1, 0, 1};
static float values[24], b[6 * 8], c[4 * 8], d[4 * 8], big[4096];

static spk_bsr_indices good_indices(void)
{
    return (spk_bsr_indices){
        SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 6, .block_rows = 2, .block_cols = 3, .nnzb = 4, .row_offsets = offsets,
        .col_indices = columns};
}

static spk_spmm good_spmm(void)
{
    return (spk_spmm){SPK_SIZED(spk_spmm), .n = 8};
}

static spk_spmm_args good_args(void)
{
    return (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1};
}

static int set_up(void **state)
{
    (void)state;
    spk_bsr_indices indices = good_indices();
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 1}, &context) != SPK_OK ||
           spk_pattern_create(context, &indices, &pattern) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    return 0;
}

static void expect(spk_status got, spk_status want, const spk_context *where, const char *piece)
{
    const char *message = spk_last_error(where);
    if (got != want || strstr(message, piece) == NULL)
        fail_msg("status %d (%s), message \"%s\"; expected %d with \"%s\"", (int)got, spk_status_name(got), message, (int)want, piece);
}

/* ---- context */

static void *give_none(void *user, size_t bytes, void *stream)
{
    (void)user, (void)bytes, (void)stream;
    return NULL;
}

static void take_none(void *user, void *memory, size_t bytes, void *stream)
{
    (void)user, (void)memory, (void)bytes, (void)stream;
}

static void wrong_contexts(void **state)
{
    (void)state;
    static const struct {
        spk_context_options options;
        spk_status status;
        const char *piece;
    } cases[] = {
        {{.struct_size = 0}, SPK_ERR_ARGUMENT, "spk_context_options.struct_size is 0"},
        {{.struct_size = 1u << 20}, SPK_ERR_ARGUMENT, "the limit is 4096"},
        {{SPK_SIZED(spk_context_options), .threads = -1}, SPK_ERR_ARGUMENT, "threads = -1"},
        {{SPK_SIZED(spk_context_options), .threads = 5000}, SPK_ERR_ARGUMENT, "threads = 5000: the limits are 0 (choose) and 1024"},
        {{SPK_SIZED(spk_context_options), .device_release = take_none},
         SPK_ERR_ARGUMENT,
         "device_release is set and device_allocate is NULL: set both or none"},
        {{SPK_SIZED(spk_context_options), .device_allocate = give_none},
         SPK_ERR_ARGUMENT,
         "device_allocate is set and device_release is NULL: set both or none"},
        {{SPK_SIZED(spk_context_options), .device_allocate = give_none, .device_release = take_none},
         SPK_ERR_ARGUMENT,
         "device_allocate is set: device = \"cpu\" has no memory of its own"},
        {{SPK_SIZED(spk_context_options), .device = "cuda:9999"}, SPK_ERR_UNAVAILABLE, "device = \"cuda:9999\""},
        {{SPK_SIZED(spk_context_options), .device = "cudagpu"}, SPK_ERR_ARGUMENT, "device = \"cudagpu\""},
        {{SPK_SIZED(spk_context_options), .device = "tpu"}, SPK_ERR_ARGUMENT, "device = \"tpu\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_context *made = (spk_context *)&made;
        expect(spk_context_create(&cases[i].options, &made), cases[i].status, NULL, cases[i].piece);
        assert_ptr_equal(made, (spk_context *)&made);
    }
    expect(spk_context_create(NULL, NULL), SPK_ERR_ARGUMENT, NULL, "context is NULL");
    expect(spk_context_get_device(NULL, NULL), SPK_ERR_ARGUMENT, NULL, "context is NULL");
    expect(spk_context_get_device(context, NULL), SPK_ERR_ARGUMENT, context, "info is NULL");
    spk_library_info info = {SPK_SIZED(spk_library_info)};
    expect(spk_context_get_library(context, 99, &info), SPK_ERR_ARGUMENT, context, "index = 99");
    spk_device_info unsized = {0};
    expect(spk_context_get_device(context, &unsized), SPK_ERR_ARGUMENT, context, "spk_device_info.struct_size is 0");
}

/* A field that only a newer header has: refused unless it is zero. */
static void newer_struct(void **state)
{
    (void)state;
    struct {
        spk_spmm known;
        int64_t future;
    } newer = {.known = good_spmm()};
    newer.known.struct_size = sizeof newer;
    double tolerance;
    assert_int_equal(spk_default_tolerance(context, pattern, &newer.known, SPK_FIRST_OUTPUT, &tolerance), SPK_OK);
    newer.future = 1;
    expect(spk_default_tolerance(context, pattern, &newer.known, SPK_FIRST_OUTPUT, &tolerance), SPK_ERR_UNSUPPORTED, context,
           "does not know");
}

/* ---- pattern */

static void refuse_pattern(spk_bsr_indices indices, spk_status status, const char *piece)
{
    spk_pattern *made = (spk_pattern *)&made;
    expect(spk_pattern_create(context, &indices, &made), status, context, piece);
    assert_ptr_equal(made, (spk_pattern *)&made);
}

static void wrong_patterns(void **state)
{
    (void)state;
    spk_bsr_indices i;
#define REFUSE(field, value, status, piece) \
    i = good_indices();                     \
    i.field = value;                        \
    refuse_pattern(i, status, piece)
    REFUSE(struct_size, 0, SPK_ERR_ARGUMENT, "struct_size");
    REFUSE(rows, -1, SPK_ERR_ARGUMENT, "rows = -1");
    REFUSE(cols, -7, SPK_ERR_ARGUMENT, "cols = -7");
    REFUSE(block_rows, 0, SPK_ERR_ARGUMENT, "block_rows = 0");
    REFUSE(block_rows, 257, SPK_ERR_ARGUMENT, "256");
    REFUSE(block_cols, 300, SPK_ERR_ARGUMENT, "block_cols = 300");
    REFUSE(nnzb, -1, SPK_ERR_ARGUMENT, "nnzb = -1");
    REFUSE(nnzb, 3, SPK_ERR_ARGUMENT, "nnzb");
    REFUSE(row_offsets, NULL, SPK_ERR_ARGUMENT, "row_offsets");
    REFUSE(col_indices, NULL, SPK_ERR_ARGUMENT, "col_indices");
    REFUSE(index_type, (spk_index_type)-1, SPK_ERR_ARGUMENT, "index_type = -1");
    REFUSE(index_type, (spk_index_type)SPK_INT32, SPK_ERR_ARGUMENT, "index_type = 8 is neither SPK_INDEX_I32 (0) nor SPK_INDEX_I64 (64)");
    for (int dtype = SPK_F32; spk_dtype_name((spk_dtype)dtype) != NULL; dtype++) {
        REFUSE(index_type, (spk_index_type)dtype, SPK_ERR_ARGUMENT, "is neither SPK_INDEX_I32");
    }
    REFUSE(index_memory, SPK_DEVICE, SPK_ERR_UNSUPPORTED, "index_memory");
    const spk_deferred_indices later = {SPK_SIZED(spk_deferred_indices)}, unsized = {0};
    REFUSE(deferred, &later, SPK_ERR_ARGUMENT, "goes with index_memory = SPK_DEVICE (1)");
    REFUSE(deferred, &unsized, SPK_ERR_ARGUMENT, "spk_deferred_indices.struct_size is 0");
    REFUSE(deferred, (i.index_memory = SPK_DEVICE, &later), SPK_ERR_ARGUMENT, "device = \"cpu\" has no streams");
    const int32_t falling[] = {0, 3, 2}, shifted[] = {1, 2, 4}, negative[] = {0, -2, 4};
    REFUSE(row_offsets, falling, SPK_ERR_ARGUMENT, "row_offsets[2] = 2");
    REFUSE(row_offsets, shifted, SPK_ERR_ARGUMENT, "row_offsets[0] = 1");
    REFUSE(row_offsets, negative, SPK_ERR_ARGUMENT, "row_offsets[1] = -2");
    const int32_t outside[] = {0, 1, 0, 2}, below[] = {-1, 1, 0, 1}, unsorted[] = {1, 0, 0, 1}, twice[] = {0, 1, 1, 1};
    REFUSE(col_indices, outside, SPK_ERR_ARGUMENT, "col_indices[3] = 2");
    REFUSE(col_indices, below, SPK_ERR_ARGUMENT, "col_indices[0] = -1");
    REFUSE(col_indices, unsorted, SPK_ERR_ARGUMENT, "spk_matrix_canonicalize");
    REFUSE(col_indices, twice, SPK_ERR_ARGUMENT, "col_indices[3] = 1");
#undef REFUSE
    spk_bsr_indices good = good_indices();
    expect(spk_pattern_create(context, &good, NULL), SPK_ERR_ARGUMENT, context, "pattern is NULL");
    expect(spk_pattern_create(context, NULL, &pattern), SPK_ERR_ARGUMENT, context, "indices is NULL");
    expect(spk_pattern_get_info(NULL, NULL), SPK_ERR_ARGUMENT, NULL, "pattern is NULL");
}

/* ---- problem */

static void wrong_problems(void **state)
{
    (void)state;
    spk_spmm p;
    spk_plan *plan = (spk_plan *)&plan;
#define REFUSE(field, value, status, piece)                                                  \
    p = good_spmm();                                                                         \
    p.field = value;                                                                         \
    expect(spk_plan_create_spmm(context, pattern, &p, NULL, &plan), status, context, piece); \
    assert_ptr_equal(plan, (spk_plan *)&plan)
    REFUSE(struct_size, 0, SPK_ERR_ARGUMENT, "problem.struct_size is 0");
    REFUSE(n, -1, SPK_ERR_ARGUMENT, "n = -1");
    REFUSE(n, INT64_MAX, SPK_ERR_ARGUMENT, "the limit is 2^40");
    REFUSE(dtype_a, SPK_INT32, SPK_ERR_UNSUPPORTED, "dtype_a = i32: this version multiplies f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8");
    REFUSE(dtype_b, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_b = f16 with dtype_a = f32");
    REFUSE(dtype_d, SPK_BF16, SPK_ERR_UNSUPPORTED, "dtype_d = bf16 with dtype_a = f32: this version gives f32");
    REFUSE(compute, SPK_F16, SPK_ERR_UNSUPPORTED, "compute = f16 with dtype_a = f32: this version accumulates in f32, or multiplies tf32");
    REFUSE(dtype_b, SPK_F64, SPK_ERR_UNSUPPORTED, "dtype_b = f64");
    REFUSE(dtype_d, (spk_dtype)77, SPK_ERR_ARGUMENT, "dtype_d = 77");
    REFUSE(compute, SPK_F64, SPK_ERR_UNSUPPORTED, "compute = f64");
    REFUSE(trans_a, (spk_trans)2, SPK_ERR_ARGUMENT, "trans_a = 2");
    REFUSE(layout_b, (spk_layout)-1, SPK_ERR_ARGUMENT, "layout_b = -1");
    REFUSE(layout_d, (spk_layout)5, SPK_ERR_ARGUMENT, "layout_d = 5");
    REFUSE(block_layout, (spk_layout)3, SPK_ERR_ARGUMENT, "block_layout = 3");
    REFUSE(ldb, 7, SPK_ERR_ARGUMENT, "ldb = 7: a row has 8 elements");
    REFUSE(ldd, -8, SPK_ERR_ARGUMENT, "ldd = -8");
    REFUSE(ldc, 3, SPK_ERR_ARGUMENT, "ldc = 3");
    REFUSE(ldb, INT64_MAX / 2, SPK_ERR_ARGUMENT, "exceed 2^62 bytes");
    REFUSE(bias, (spk_bias)3, SPK_ERR_ARGUMENT, "bias = 3");
    REFUSE(activation, (spk_activation)9, SPK_ERR_ARGUMENT, "activation = 9");
    REFUSE(use_c, 2, SPK_ERR_ARGUMENT, "use_c = 2");
    REFUSE(residual, (spk_residual)-1, SPK_ERR_ARGUMENT, "residual = -1");
    REFUSE(residual, (spk_residual)3, SPK_ERR_ARGUMENT, "residual = 3");
    REFUSE(keep_preact, 7, SPK_ERR_ARGUMENT, "keep_preact = 7");
    REFUSE(batch, -1, SPK_ERR_ARGUMENT, "batch = -1");
    REFUSE(batch, INT64_C(1) << 31, SPK_ERR_ARGUMENT, "batch = 2147483648: the limit is 2^31 - 1");
    REFUSE(stride_a, -2, SPK_ERR_ARGUMENT, "stride_a = -2");
    REFUSE(stride_b, -7, SPK_ERR_ARGUMENT, "stride_b = -7");
    REFUSE(stride_d, SPK_STRIDE_SHARED, SPK_ERR_ARGUMENT, "stride_d = -1: an output cannot be one for all items");
    REFUSE(stride_d, (p.batch = 2, 9), SPK_ERR_ARGUMENT, "stride_d = 9: items of");
    REFUSE(stride_b, (p.batch = 3, INT64_C(1) << 60), SPK_ERR_ARGUMENT, "exceed 2^62 bytes");
    REFUSE(stride_a, (p.batch = 3, INT64_C(1) << 60), SPK_ERR_ARGUMENT, "exceed 2^62 bytes");
#undef REFUSE
    p = good_spmm();
    expect(spk_plan_create_spmm(context, NULL, &p, NULL, &plan), SPK_ERR_ARGUMENT, context, "pattern is NULL");
    expect(spk_plan_create_spmm(context, pattern, NULL, NULL, &plan), SPK_ERR_ARGUMENT, context, "problem is NULL");
    expect(spk_plan_create_spmm(context, pattern, &p, NULL, NULL), SPK_ERR_ARGUMENT, context, "plan is NULL");
}

/* ---- tuning options */

/* A pattern on a context that did not make it; a matrix is any context's. */
static void pattern_of_another_context(void **state)
{
    (void)state;
    const spk_spmm spmm = good_spmm();
    const spk_attention attention = {SPK_SIZED(spk_attention), .queries = 4, .keys = 6, .depth = 2};
    const spk_spmm_args args = good_args();
    spk_context *other = NULL;
    spk_plan *plan = NULL;
    spk_report *report = NULL;
    spk_matrix *matrix = NULL, *copy = NULL;
    double tolerance = 0, want[32];
    const char *const piece = "is of another context: make one in this context";
    assert_int_equal(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &other), SPK_OK);
    expect(spk_plan_create(other, pattern, &spmm, NULL, &plan), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_plan_create(other, pattern, &attention, NULL, &plan), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_compute(other, pattern, &spmm, &args, NULL), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_oracle(other, pattern, &spmm, &args, SPK_FIRST_OUTPUT, NULL, 0, want, NULL), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_default_tolerance(other, pattern, &spmm, SPK_FIRST_OUTPUT, &tolerance), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_tune(other, pattern, &spmm, NULL, &report), SPK_ERR_ARGUMENT, other, piece);
    expect(spk_race_kernels(other, pattern, &spmm, NULL, NULL, &report), SPK_ERR_ARGUMENT, other, piece);
    assert_null(plan);
    assert_null(report);
    const spk_matrix_desc dense = {SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F32, .rows = 2, .cols = 2, .nnz = 4};
    assert_int_equal(spk_matrix_create(context, &dense, &matrix), SPK_OK);
    assert_int_equal(spk_matrix_to_csr(other, matrix, &copy), SPK_OK);
    spk_matrix_destroy(&copy);
    spk_matrix_destroy(&matrix);
    spk_context_destroy(&other);
}

static void wrong_options(void **state)
{
    (void)state;
    spk_spmm p = good_spmm();
    spk_tune_options o;
    spk_plan *plan = (spk_plan *)&plan;
#define REFUSE(field, value, status, piece)                                                \
    o = (spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW};         \
    o.field = value;                                                                       \
    expect(spk_plan_create_spmm(context, pattern, &p, &o, &plan), status, context, piece); \
    assert_ptr_equal(plan, (spk_plan *)&plan)
    REFUSE(effort, (spk_effort)8, SPK_ERR_ARGUMENT, "effort = 8");
    REFUSE(tuning, (spk_tuning)8, SPK_ERR_ARGUMENT, "tuning = 8");
    REFUSE(cache, (spk_cache_mode)8, SPK_ERR_ARGUMENT, "cache = 8");
    REFUSE(budget_s, -1, SPK_ERR_ARGUMENT, "budget_s = -1");
    REFUSE(budget_s, NAN, SPK_ERR_ARGUMENT, "budget_s = ");
    REFUSE(tolerance, INFINITY, SPK_ERR_ARGUMENT, "tolerance = inf");
    REFUSE(only, "spmm_f32_avx9", SPK_ERR_ARGUMENT, "there is no kernel \"spmm_f32_avx9\"");
    REFUSE(exclude, "reference_spmm,nonsense", SPK_ERR_ARGUMENT, "there is no kernel \"nonsense\"");
    REFUSE(choice, "nonsense MR=4", SPK_ERR_ARGUMENT, "nonsense");
    REFUSE(only, "reference_attn", SPK_ERR_ARGUMENT, "\"reference_attn\"; did you mean \"reference_attention\"?");
    REFUSE(exclude, "refrence_spmm", SPK_ERR_ARGUMENT, "did you mean \"reference_spmm\"?");
    REFUSE(choice, "reference", SPK_ERR_ARGUMENT, "did you mean \"reference_spmm\"?"); /* of the operation */
    REFUSE(choice, "spmm_portabel NV=4", SPK_ERR_ARGUMENT, "did you mean \"spmm_portable\"?");
    REFUSE(choice, "spmm_portable NV=99", SPK_ERR_ARGUMENT, "NV");
    REFUSE(tuning, SPK_TUNING_AHEAD_EACH, SPK_ERR_UNKNOWN_CLASS, "");
#undef REFUSE
}

/* ---- runs */

static void wrong_runs(void **state)
{
    (void)state;
    spk_spmm p = good_spmm();
    p.use_c = 1;
    spk_tune_options reference = {SPK_SIZED(spk_tune_options), .choice = "reference_spmm"};
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create_spmm(context, pattern, &p, &reference, &plan), SPK_OK);
    spk_spmm_args a;
    for (int i = 0; i < 4 * 8; i++)
        d[i] = 42;
#define REFUSE(field, value, piece) \
    a = good_args();                \
    a.c = c;                        \
    a.beta = 1;                     \
    a.field = value;                \
    expect(spk_plan_run_spmm(plan, &a, NULL), SPK_ERR_ARGUMENT, context, piece)
    REFUSE(struct_size, 0, "args.struct_size is 0");
    REFUSE(values, NULL, "args.values is NULL: 24 elements of f32");
    REFUSE(b, NULL, "args.b is NULL");
    REFUSE(c, NULL, "args.c is NULL");
    REFUSE(d, NULL, "args.d is NULL");
    REFUSE(b, (char *)big + 2, "not aligned to its elements of 4 bytes");
    REFUSE(d, b, "args.d");
    REFUSE(c, d + 1, "overlaps args.c");
    REFUSE(d, values, "overlaps args.values");
    REFUSE(alpha, NAN, "args.alpha");
    REFUSE(beta, INFINITY, "args.beta = inf");
#undef REFUSE
    expect(spk_plan_run_spmm(NULL, &a, NULL), SPK_ERR_ARGUMENT, NULL, "plan is NULL");
    expect(spk_plan_run_spmm(plan, NULL, NULL), SPK_ERR_ARGUMENT, context, "args is NULL");
    expect(spk_plan_run_spmm(plan, &a, &a), SPK_ERR_ARGUMENT, context, "device = \"cpu\" has no streams");
    expect(spk_plan_update_values(plan, values, NULL), SPK_ERR_ARGUMENT, context, "without static_values");
    for (int i = 0; i < 4 * 8; i++)
        assert_true(d[i] == 42);
    /* What only looks wrong: D may be C; beta = 0 never reads C. */
    a = good_args();
    a.c = d;
    a.beta = 1;
    assert_int_equal(spk_plan_run_spmm(plan, &a, NULL), SPK_OK);
    a.c = NULL;
    a.beta = 0;
    assert_int_equal(spk_plan_run_spmm(plan, &a, NULL), SPK_OK);
    spk_plan_destroy(&plan);
}

static void wrong_workspace(void **state)
{
    (void)state;
    spk_spmm p = {SPK_SIZED(spk_spmm), .n = 8, .layout_b = SPK_COL_MAJOR};
    spk_report *report = NULL;
    assert_int_equal(spk_list_candidates(context, pattern, &p, NULL, &report), SPK_OK);
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    int tried = 0;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        if (candidate.status != SPK_CANDIDATE_OK)
            continue;
        char choice[200];
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_tune_options o = {SPK_SIZED(spk_tune_options), .choice = choice};
        spk_plan *plan = NULL;
        assert_int_equal(spk_plan_create_spmm(context, pattern, &p, &o, &plan), SPK_OK);
        size_t bytes = spk_plan_workspace_bytes(plan);
        if (bytes > 0 && bytes < sizeof big) {
            spk_spmm_args a = good_args();
            a.workspace = (void *)(((uintptr_t)big + 63) / 64 * 64);
            a.workspace_bytes = bytes - 1;
            expect(spk_plan_run_spmm(plan, &a, NULL), SPK_ERR_ARGUMENT, context, "args.workspace_bytes");
            a.workspace = (char *)a.workspace + 8;
            a.workspace_bytes = bytes;
            expect(spk_plan_run_spmm(plan, &a, NULL), SPK_ERR_ARGUMENT, context, "not aligned to 64 bytes");
            tried++;
        }
        spk_plan_destroy(&plan);
    }
    spk_report_destroy(&report);
    assert_true(tried > 0); /* some kernel packs column-major B */
}

/* Of the first candidate that uses more than a few bytes of it. */
static spk_plan *plan_with_workspace(void)
{
    const spk_spmm p = {SPK_SIZED(spk_spmm), .n = 8, .layout_b = SPK_COL_MAJOR};
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_plan *plan = NULL;
    assert_int_equal(spk_list_candidates(context, pattern, &p, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    for (int i = 0; i < info.candidate_count && spk_plan_workspace_bytes(plan) <= 64; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[200];
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan_destroy(&plan);
        if (candidate.status == SPK_CANDIDATE_OK)
            assert_int_equal(
                spk_plan_create_spmm(context, pattern, &p, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan),
                SPK_OK);
    }
    spk_report_destroy(&report);
    return plan;
}

/* A workspace that holds an array of the run is refused, whichever it is; one that ends where an array begins is not. */
static void wrong_place_of_workspace(void **state)
{
    (void)state;
    spk_plan *plan = plan_with_workspace();
    char *const start = (char *)(((uintptr_t)big + 63) / 64 * 64);
    const size_t bytes = spk_plan_workspace_bytes(plan);
    assert_true(bytes > 64 && 2 * bytes < sizeof big);
    for (size_t at = 0; at <= bytes; at += at == 0 ? bytes - 4 : 4) { /* the whole array in it, its beginning, nothing */
        spk_spmm_args in_d = good_args(), in_b = good_args(), in_values = good_args();
        in_d.d = start + at;
        in_b.b = start + at;
        in_values.values = start + at;
        const spk_spmm_args *const all[] = {&in_d, &in_b, &in_values};
        const char *const names[] = {"overlaps args.d [", "overlaps args.b [", "overlaps args.values ["};
        for (int i = 0; i < 3; i++) {
            spk_spmm_args a = *all[i];
            a.workspace = start;
            a.workspace_bytes = bytes + 64;
            if (at < bytes)
                expect(spk_plan_run_spmm(plan, &a, NULL), SPK_ERR_ARGUMENT, context, names[i]);
            else
                assert_int_equal(spk_plan_run_spmm(plan, &a, NULL), SPK_OK);
        }
    }
    spk_plan_destroy(&plan);
}

static void wrong_static_values(void **state)
{
    (void)state;
    spk_spmm p = good_spmm();
    p.static_values = 1;
    spk_tune_options o = {SPK_SIZED(spk_tune_options), .choice = "reference_spmm"};
    spk_spmm_args a = good_args();
    expect(spk_compute_spmm(context, pattern, &p, &a, &o), SPK_ERR_ARGUMENT, context, "make a plan");
    spk_plan *plan = NULL;
    assert_int_equal(spk_plan_create_spmm(context, pattern, &p, &o, &plan), SPK_OK);
    expect(spk_plan_run_spmm(plan, &a, NULL), SPK_ERR_ARGUMENT, context, "spk_plan_update_values");
    expect(spk_plan_update_values(plan, NULL, NULL), SPK_ERR_ARGUMENT, context, "values is NULL");
    expect(spk_plan_update_values(plan, (char *)values + 1, NULL), SPK_ERR_ARGUMENT, context, "not aligned");
    assert_int_equal(spk_plan_update_values(plan, values, NULL), SPK_OK);
    a.values = NULL;
    assert_int_equal(spk_plan_run_spmm(plan, &a, NULL), SPK_OK);
    spk_plan_destroy(&plan);
}

/* ---- the rest */

static void wrong_oracles_and_reports(void **state)
{
    (void)state;
    spk_spmm p = good_spmm();
    spk_spmm_args a = good_args();
    double out[32];
    const int64_t rows[] = {0, 4};
    expect(spk_oracle(context, pattern, &p, &a, SPK_FIRST_OUTPUT, rows, 2, out, NULL), SPK_ERR_ARGUMENT, context,
           "rows[1] = 4: the rows are 0..3");
    expect(spk_oracle(context, pattern, &p, &a, SPK_FIRST_OUTPUT, rows, -1, out, NULL), SPK_ERR_ARGUMENT, context, "row_count = -1");
    expect(spk_oracle(context, pattern, &p, &a, SPK_FIRST_OUTPUT, NULL, 0, NULL, NULL), SPK_ERR_ARGUMENT, context, "out is NULL");
    a.values = NULL;
    expect(spk_oracle(context, pattern, &p, &a, SPK_FIRST_OUTPUT, NULL, 0, out, NULL), SPK_ERR_ARGUMENT, context, "args.values is NULL");
    expect(spk_oracle(context, pattern, &p, &a, 1, NULL, 0, out, NULL), SPK_ERR_ARGUMENT, context, "operand = 1: b is no output of spmm");
    expect(spk_oracle(context, pattern, &p, &a, 6, NULL, 0, out, NULL), SPK_ERR_ARGUMENT, context,
           "operand = 6: this problem has no preact");
    expect(spk_oracle(context, pattern, &p, &a, 9, NULL, 0, out, NULL), SPK_ERR_ARGUMENT, context, "operand = 9: spmm has 9 operands");
    expect(spk_default_tolerance(context, pattern, &p, -2, out), SPK_ERR_ARGUMENT, context, "operand = -2: spmm has 9 operands");
    spk_report *report = NULL;
    assert_int_equal(spk_list_candidates(context, pattern, &p, NULL, &report), SPK_OK);
    spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
    expect(spk_report_get_candidate(report, -1, &candidate), SPK_ERR_ARGUMENT, NULL, "index = -1");
    expect(spk_report_get_candidate(report, 100000, &candidate), SPK_ERR_ARGUMENT, NULL, "index = 100000");
    expect(spk_report_get_candidate(NULL, 0, &candidate), SPK_ERR_ARGUMENT, NULL, "report is NULL");
    spk_report_destroy(&report);
    expect(spk_explain(context, pattern, &p, NULL, &report), SPK_ERR_UNKNOWN_CLASS, context, "");
    spk_race_options race = {SPK_SIZED(spk_race_options), .rounds = -3};
    expect(spk_race_kernels(context, pattern, &p, NULL, &race, &report), SPK_ERR_ARGUMENT, context, "rounds = -3");
    assert_null(report);
    spk_kernel_info kernel = {SPK_SIZED(spk_kernel_info)};
    expect(spk_kernel_get_info(-1, &kernel), SPK_ERR_ARGUMENT, NULL, "index = -1");
}

static void wrong_matrices(void **state)
{
    (void)state;
    spk_matrix *m = (spk_matrix *)&m, *source = NULL;
    spk_generate g = {SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = 8, .cols = 8, .block_rows = 2, .block_cols = 2,
                      .density = 0.5};
    assert_int_equal(spk_matrix_generate(context, &g, &source, NULL), SPK_OK);
    expect(spk_matrix_to_bsr(context, source, 0, 4, SPK_ROW_MAJOR, &m), SPK_ERR_ARGUMENT, context, "block_rows = 0");
    expect(spk_matrix_to_bsr(context, source, 4, 257, SPK_ROW_MAJOR, &m), SPK_ERR_ARGUMENT, context, "block_cols = 257");
    expect(spk_matrix_to_dense(context, source, (spk_layout)4, &m), SPK_ERR_ARGUMENT, context, "layout = 4");
    expect(spk_matrix_cast(context, source, SPK_INT32, &m), SPK_ERR_UNSUPPORTED, context, "dtype = 8");
    expect(spk_matrix_prune(context, source, 2, 2, 1.5, SPK_NORM_L1, &m), SPK_ERR_ARGUMENT, context, "density = 1.5");
    expect(spk_matrix_prune(context, source, 2, 2, 0.5, (spk_norm)0, &m), SPK_ERR_ARGUMENT, context, "norm = 0");
    expect(spk_matrix_read(context, "no/such/file.mtx", NULL, &m), SPK_ERR_IO, context, "no/such/file.mtx");
    expect(spk_matrix_read(context, NULL, NULL, &m), SPK_ERR_ARGUMENT, context, "path is NULL");
    expect(spk_matrix_write(context, source, "matrix.tuning", NULL), SPK_ERR_ARGUMENT, context, "matrix.tuning");
    g.density = NAN;
    expect(spk_matrix_generate(context, &g, &m, NULL), SPK_ERR_ARGUMENT, context, "density");
    g.density = 0.5;
    g.generator = (spk_generator)77;
    expect(spk_matrix_generate(context, &g, &m, NULL), SPK_ERR_ARGUMENT, context, "generator = 77");
    spk_matrix_desc dense = {SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F32, .rows = 4, .cols = 8, .ld = 3, .values = d};
    expect(spk_matrix_create(context, &dense, &m), SPK_ERR_ARGUMENT, context, "ld = 3");
    dense.format = (spk_format)0;
    expect(spk_matrix_create(context, &dense, &m), SPK_ERR_ARGUMENT, context, "format = 0");
    spk_pattern *none = NULL;
    spk_matrix *csr = NULL;
    assert_int_equal(spk_matrix_to_csr(context, source, &csr), SPK_OK);
    expect(spk_pattern_from_matrix(context, csr, &none), SPK_ERR_ARGUMENT, context, "spk_matrix_to_bsr");
    assert_null(none);
    assert_ptr_equal(m, (spk_matrix *)&m);
    expect(spk_fill_random(context, SPK_F32, -1, 1, d), SPK_ERR_ARGUMENT, context, "count = -1");
    expect(spk_fill_random(context, SPK_F32, INT64_C(1) << 61, 1, d), SPK_ERR_ARGUMENT, context, "exceed 2^62 bytes");
    expect(spk_cast_values(context, SPK_F32, d, SPK_F16, c, INT64_C(1) << 61), SPK_ERR_ARGUMENT, context, "to exceeds 2^62 bytes");
    expect(spk_cast_values(context, SPK_F32, d, SPK_F32, d, 1), SPK_ERR_ARGUMENT, context, "overlaps from");
    expect(spk_store_list(context, NULL, NULL), SPK_ERR_ARGUMENT, context, "visit is NULL");
    expect(spk_store_import(context, "no/such/store.json", NULL), SPK_ERR_IO, context, "no/such/store.json");
    spk_matrix_destroy(&csr);
    spk_matrix_destroy(&source);
}

/* NULL handles are accepted where something is destroyed. */
static void destroying_nothing(void **state)
{
    (void)state;
    spk_plan *plan = NULL;
    spk_pattern *none = NULL;
    spk_matrix *matrix = NULL;
    spk_report *report = NULL;
    spk_context *no_context = NULL;
    spk_plan_destroy(&plan);
    spk_plan_destroy(NULL);
    spk_pattern_destroy(&none);
    spk_pattern_destroy(NULL);
    spk_matrix_destroy(&matrix);
    spk_matrix_destroy(NULL);
    spk_report_destroy(&report);
    spk_report_destroy(NULL);
    spk_context_destroy(&no_context);
    spk_context_destroy(NULL);
    spk_context_interrupt(NULL);
}

/* Calls that have no context leave no older message to be taken for theirs; a size that holds no field is told as such. */
static void messages_without_a_context(void **state)
{
    (void)state;
    spk_context *own = NULL;
    spk_matrix *matrix = NULL;
    spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = ""};
    assert_int_equal(spk_context_create(&options, &own), SPK_OK);
    spk_matrix_desc desc = {.struct_size = sizeof(size_t)};
    assert_int_equal(spk_matrix_create(own, &desc, &matrix), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(own), "spk_matrix_desc.struct_size is 8"));
    assert_int_equal(spk_plan_run_spmm(NULL, NULL, NULL), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_last_error(own), "plan is NULL");
    assert_string_equal(spk_last_error(NULL), "plan is NULL");
    spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
    assert_int_equal(spk_kernel_get_info(-1, &info), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(own), "index = -1"));
    spk_context_destroy(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_without_a_context),
        cmocka_unit_test(wrong_contexts),
        cmocka_unit_test(newer_struct),
        cmocka_unit_test(wrong_patterns),
        cmocka_unit_test(wrong_problems),
        cmocka_unit_test(pattern_of_another_context),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(wrong_runs),
        cmocka_unit_test(wrong_workspace),
        cmocka_unit_test(wrong_place_of_workspace),
        cmocka_unit_test(wrong_static_values),
        cmocka_unit_test(wrong_oracles_and_reports),
        cmocka_unit_test(wrong_matrices),
        cmocka_unit_test(destroying_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

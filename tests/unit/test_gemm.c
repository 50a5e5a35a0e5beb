/* GEMM on every row of the table that can, one by one and in batches, with every epilogue: against plain loops. */
#include <unistd.h>

#include "gemm_case.h"

static void check_output_of_oracle(const gemm_case *t, int output, const double *want, const double *scale, uint64_t seed)
{
    const spk_gemm *p = &t->problem;
    const int64_t count = t->items * p->m * p->n;
    double *out = malloc((size_t)(2 * count + 1) * sizeof *out), *magnitude = out + count;
    ok(spk_oracle(context, NULL, p, &t->args, output, NULL, 0, out, magnitude));
    for (int64_t e = 0; e < count; e++)
        if (isnan(want[e]))
            assert_true(out[e] == 0 && magnitude[e] == 0);
        else if (!(fabs(out[e] - want[e]) <= 1e-13 * scale[e]) || !(fabs(magnitude[e] - scale[e]) <= 1e-13 * scale[e]))
            fail_msg("seed %llu: oracle %lld of operand %d is %.17g (%g), expected %.17g (%g)", (unsigned long long)seed, (long long)e,
                     output, out[e], magnitude[e], want[e], scale[e]);
    if (count > 0) { /* one row alone: the last */
        const int64_t last = t->items * p->m - 1;
        ok(spk_oracle(context, NULL, p, &t->args, output, &last, 1, magnitude, NULL));
        assert_memory_equal(magnitude, out + last * p->n, (size_t)p->n * sizeof *out);
    }
    free(out);
}

static void check_oracle(const gemm_case *t, uint64_t seed)
{
    check_output_of_oracle(t, SPK_D, t->want, t->magnitude, seed);
    if (t->problem.keep_preact)
        check_output_of_oracle(t, SPK_PREACT, t->before, t->before_magnitude, seed);
}

/* Every candidate that can, once; returns how many. */
static int run_gemm(gemm_case *t, uint64_t seed)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    ok(spk_list_candidates(context, NULL, &t->problem, NULL, &report));
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        ok(spk_report_get_candidate(report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE || (ran > 0 && is_left_out(i, seed)))
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan *plan = NULL;
        const spk_status status =
            spk_plan_create_gemm(context, &t->problem, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan);
        if (no_library_has_it(status, candidate.kind))
            continue;
        ok(status);
        poison(&t->d);
        poison(&t->preact);
        ok(spk_plan_run_gemm(plan, &t->args, NULL));
        check_gemm(t, seed, choice);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&report);
    return ran;
}

/* D may be C or residual, where they lie alike. */
static void run_in_place(gemm_case *t, uint64_t seed, const array *as, bool takes_part, const void **pointer)
{
    if (!takes_part || as->ld != t->d.ld || as->stride != t->d.stride || t->problem.groups > 0)
        return;
    memcpy(t->d.memory, as->memory, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
    const void *was = *pointer;
    *pointer = t->args.d;
    poison(&t->preact);
    ok(spk_compute_gemm(context, &t->problem, &t->args, &(spk_tune_options){SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE}));
    check_gemm(t, seed, "in place");
    *pointer = was;
}

static void run_all(gemm_case *t, uint64_t seed)
{
    check_oracle(t, seed);
    assert_true(run_gemm(t, seed) >= 1);
    run_in_place(t, seed, &t->c, t->problem.use_c && t->args.beta != 0, &t->args.c);
    run_in_place(t, seed, &t->residual, t->problem.residual != SPK_RESIDUAL_NONE, &t->args.residual);
}

static int64_t size_of(spk_rng *rng)
{
    return pick(rng, 0, 15) == 0 ? 0 : pick(rng, 1, pick(rng, 0, 1) ? 9 : 70);
}

/* Of so many draws; fewer where each access is checked. */
static uint64_t draws(uint64_t all)
{
    return getenv("SPARSEK_TEST_QUICK") != NULL ? all / 5 : all;
}

static void test_gemm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= draws(300); seed++) {
        spk_rng rng;
        gemm_case t;
        spk_rng_seed(&rng, seed);
        const int64_t m = size_of(&rng), n = size_of(&rng), k = size_of(&rng);
        draw_gemm(&rng, &t, m, n, k, 7);
        run_all(&t, seed);
        free_gemm(&t);
    }
}

static void test_groups(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= draws(250); seed++) {
        spk_rng rng;
        gemm_case t;
        spk_rng_seed(&rng, 9000 + seed);
        const int64_t m = size_of(&rng), n = size_of(&rng), k = size_of(&rng);
        draw_grouped(&rng, &t, m, n, k);
        run_all(&t, seed);
        free_gemm(&t);
    }
}

/* Products of so many numbers are slow where each access is checked. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LARGE_TURNS = 10 };
#else
enum { LARGE_TURNS = 20 };
#endif

/* Beyond the blocks that kernels cut the sizes into, and so deep that K is split among threads. */
static void run_large(void)
{
    static const int64_t sizes[][3] = {{130, 300, 700}, {500, 20, 900}, {9, 1200, 300}, {290, 290, 40}, {1, 2100, 600},
                                       {2100, 1, 600},  {20, 30, 2000}, {4, 40, 3000},  {2000, 3, 700}, {7, 600, 900}};
    for (uint64_t seed = 1; seed <= LARGE_TURNS; seed++) {
        const int64_t *size = sizes[seed % 10];
        spk_rng rng;
        gemm_case t;
        spk_rng_seed(&rng, 7000 + seed);
        const bool grouped = seed % 2 == seed / 11; /* of twenty each size is both */
        draw_product(&rng, &t, size[0] + pick(&rng, 0, 9), size[1] + pick(&rng, 0, 9), size[2] + pick(&rng, 0, 9), 1, grouped);
        assert_true(run_gemm(&t, seed) >= 1);
        free_gemm(&t);
    }
}

static void test_large(void **state)
{
    (void)state;
    if (getenv("SPARSEK_TEST_QUICK") == NULL)
        run_large();
    spk_context *two_threads = context;
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 7}, &context));
    run_large();
    spk_context_destroy(&context);
    context = two_threads;
}

/* ------------------------------------------------------------------------------------------------ tuning */

/* Every candidate that was measured was right, one was chosen, and the summary tells of it. */
static void check_report(spk_report **report)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_report_get_info(*report, &info));
    assert_true(info.chosen >= 0);
    assert_true(strlen(info.summary) > 10);
    assert_non_null(strstr(info.class_key, ";op=gemm;"));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        ok(spk_report_get_candidate(*report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_WRONG || candidate.status == SPK_CANDIDATE_FAILED)
            fail_msg("%s %s: %s", candidate.name, candidate.params, candidate.why);
    }
    spk_report_destroy(report);
}

static void test_tuning(void **state)
{
    (void)state;
    spk_report *report = NULL;
    spk_plan *plan = NULL;
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    for (int cold = 0; cold < 2; cold++) {
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.3,
                                          .cache = cold ? SPK_COLD : SPK_WARM};
        const spk_gemm all[] = {
            {SPK_SIZED(spk_gemm), .m = 60, .n = 40, .k = 64, .use_c = 1},
            {SPK_SIZED(spk_gemm), .m = 60, .n = 40, .k = 64, .batch = 12, .trans_a = SPK_TRANS, .activation = SPK_ACT_SILU},
            {SPK_SIZED(spk_gemm), .m = 30, .n = 40, .k = 64, .batch = 3, .stride_b = SPK_STRIDE_SHARED, .stride_d = 40001},
            {SPK_SIZED(spk_gemm), .m = 90, .n = 40, .k = 64, .groups = 5, .group_axis = SPK_GROUP_ROWS, .bias = SPK_BIAS_PER_COL},
            {SPK_SIZED(spk_gemm), .m = 30, .n = 90, .k = 64, .groups = 5, .group_axis = SPK_GROUP_COLS, .dtype_a = SPK_BF16},
            {SPK_SIZED(spk_gemm), .m = 30, .n = 40, .k = 90, .groups = 5, .group_axis = SPK_GROUP_DEPTH}};
        for (int i = 0; i < 6; i++) {
            assert_int_equal(spk_explain(context, NULL, &all[i], &options, &report), SPK_ERR_UNKNOWN_CLASS);
            ok(spk_tune(context, NULL, &all[i], &options, &report));
            check_report(&report);
            ok(spk_explain(context, NULL, &all[i], &options, &report));
            check_report(&report);
            ok(spk_plan_create_gemm(context, &all[i], &options, &plan));
            ok(spk_plan_get_info(plan, &info));
            assert_int_equal(info.from_store, 1);
            spk_plan_destroy(&plan);
        }
    }
    ok(spk_race_kernels(context, NULL, &(spk_gemm){SPK_SIZED(spk_gemm), .m = 50, .n = 50, .k = 50},
                        &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.3},
                        &(spk_race_options){SPK_SIZED(spk_race_options), .rounds = 3}, &report));
    check_report(&report);
}

/* So large that samples of rows, of columns and of items decide. */
static void test_sampling(void **state)
{
    (void)state;
    spk_report *report = NULL;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.2};
    const spk_gemm all[] = {{SPK_SIZED(spk_gemm), .m = 1100, .n = 900, .k = 1000},
                            {SPK_SIZED(spk_gemm), .m = 3000, .n = 30, .k = 500, .layout_d = SPK_COL_MAJOR},
                            {SPK_SIZED(spk_gemm), .m = 30, .n = 3000, .k = 500, .dtype_a = SPK_F16},
                            {SPK_SIZED(spk_gemm), .m = 300, .n = 300, .k = 300, .batch = 40},
                            {SPK_SIZED(spk_gemm), .m = 1000, .n = 1500, .k = 500, .groups = 9, .group_axis = SPK_GROUP_ROWS},
                            {SPK_SIZED(spk_gemm), .m = 900, .n = 900, .k = 2000, .groups = 4, .group_axis = SPK_GROUP_DEPTH}};
    for (int i = 0; i < 6; i += getenv("SPARSEK_TEST_QUICK") != NULL ? 2 : 1) {
        ok(spk_tune(context, NULL, &all[i], &options, &report));
        check_report(&report);
    }
}

/* Decisions go out of a store and into another. */
static void test_export(void **state)
{
    (void)state;
    char path[] = "/tmp/sparsek-gemm-XXXXXX";
    const spk_gemm problem = {SPK_SIZED(spk_gemm), .m = 20, .n = 30, .k = 40};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.1};
    spk_context *other = NULL;
    spk_report *report = NULL;
    int64_t count = 0;
    close(mkstemp(path));
    ok(spk_tune(context, NULL, &problem, &options, &report));
    spk_report_destroy(&report);
    ok(spk_store_export(context, path, &count));
    assert_true(count > 0);
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &other));
    ok(spk_store_import(other, path, &count));
    ok(spk_explain(other, NULL, &problem, &options, &report));
    check_report(&report);
    spk_context_destroy(&other);
    unlink(path);
}

/* ------------------------------------------------------------------------------------------------ one product of a batch */

static int64_t folded(spk_gemm gemm)
{
    spk_problem problem;
    if (spk_problem_read(&spk_op_gemm, NULL, &gemm, NULL, &problem) != SPK_OK)
        fail_msg("%s", spk_error_last());
    spk_problem_fold(&problem);
    return problem.batch > 1 ? 0 : problem.m * 10000 + problem.n;
}

/* A batch becomes one product where its items are the rows, or the columns, of one array: and where nothing else tells them apart. */
static void test_folding(void **state)
{
    (void)state;
    const spk_gemm rows = {SPK_SIZED(spk_gemm), .m = 6, .n = 8, .k = 10, .batch = 5, .stride_b = SPK_STRIDE_SHARED};
    const spk_gemm columns = {
        SPK_SIZED(spk_gemm),      .m = 6, .n = 8, .k = 10, .batch = 5, .stride_a = SPK_STRIDE_SHARED, .layout_b = SPK_COL_MAJOR,
        .layout_d = SPK_COL_MAJOR};
    spk_gemm g = rows;
    assert_int_equal(folded(g), 300008);
    g.bias = SPK_BIAS_PER_COL;
    assert_int_equal(folded(g), 300008);
    g.bias = SPK_BIAS_PER_ROW;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.stride_a = 61;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.lda = 12;
    g.ldd = 9;
    assert_int_equal(folded(g), 300008);
    g.stride_d = 60;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.use_c = 1;
    g.stride_c = SPK_STRIDE_SHARED;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.trans_a = SPK_TRANS; /* rows side by side */
    g.lda = 31;
    g.stride_a = 6;
    assert_int_equal(folded(g), 300008);
    g.lda = 29;
    assert_int_equal(folded(g), 0);
    g = columns;
    assert_int_equal(folded(g), 60040);
    g.bias = SPK_BIAS_PER_ROW;
    assert_int_equal(folded(g), 60040);
    g.bias = SPK_BIAS_PER_COL;
    assert_int_equal(folded(g), 0);
    g = columns;
    g.stride_b = SPK_STRIDE_SHARED;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.m = 0;
    assert_int_equal(folded(g), 0);
    g = rows;
    g.batch = 1;
    g.groups = 3;
    g.group_axis = SPK_GROUP_ROWS;
    assert_int_equal(folded(g), 0);
}

/* A transposed matrix is one of the other layout. */
static void test_transposed(void **state)
{
    (void)state;
    spk_problem turned, plain;
    const spk_gemm one = {SPK_SIZED(spk_gemm),       .m = 3,   .n = 4,  .k = 5, .trans_a = SPK_TRANS, .trans_b = SPK_TRANS,
                          .layout_b = SPK_COL_MAJOR, .lda = 7, .ldb = 9};
    spk_gemm other = one;
    other.trans_a = other.trans_b = SPK_NO_TRANS;
    other.layout_a = SPK_COL_MAJOR;
    other.layout_b = SPK_ROW_MAJOR;
    assert_int_equal(spk_problem_read(&spk_op_gemm, NULL, &one, NULL, &turned), SPK_OK);
    assert_int_equal(spk_problem_read(&spk_op_gemm, NULL, &other, NULL, &plain), SPK_OK);
    assert_true(spk_problem_equal(&turned, &plain));
}

/* ------------------------------------------------------------------------------------------------ what is refused */

static void expect_message(const char *piece)
{
    if (strstr(spk_last_error(context), piece) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", spk_last_error(context), piece);
}

static void test_errors(void **state)
{
    (void)state;
    static float numbers[16 * 1024];
    spk_plan *plan = NULL;
    const spk_gemm good = {SPK_SIZED(spk_gemm), .m = 8, .n = 16, .k = 32};
    spk_gemm p;
#define REFUSE(field, value, status, piece)                                   \
    p = good;                                                                 \
    p.field = value;                                                          \
    assert_int_equal(spk_plan_create_gemm(context, &p, NULL, &plan), status); \
    expect_message(piece)
    REFUSE(struct_size, 0, SPK_ERR_ARGUMENT, "problem.struct_size is 0");
    REFUSE(m, -1, SPK_ERR_ARGUMENT, "m = -1");
    REFUSE(n, -1, SPK_ERR_ARGUMENT, "n = -1");
    REFUSE(k, INT64_C(1) << 41, SPK_ERR_ARGUMENT, "k = 2199023255552: the limit is 2^40");
    REFUSE(dtype_a, SPK_INT32, SPK_ERR_UNSUPPORTED, "dtype_a = i32");
    REFUSE(dtype_b, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_b = f16 with dtype_a = f32");
    REFUSE(dtype_d, SPK_F16, SPK_ERR_UNSUPPORTED, "dtype_d = f16 with dtype_a = f32");
    REFUSE(trans_a, (spk_trans)2, SPK_ERR_ARGUMENT, "trans_a = 2");
    REFUSE(trans_b, (spk_trans)2, SPK_ERR_ARGUMENT, "trans_b = 2");
    REFUSE(layout_a, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_a = 2");
    REFUSE(layout_b, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_b = 2");
    REFUSE(layout_d, (spk_layout)2, SPK_ERR_ARGUMENT, "layout_d = 2");
    REFUSE(activation, (spk_activation)9, SPK_ERR_ARGUMENT, "activation = 9");
    REFUSE(lda, 31, SPK_ERR_ARGUMENT, "lda = 31: a row has 32 elements");
    REFUSE(lda, (p.trans_a = SPK_TRANS, 7), SPK_ERR_ARGUMENT, "lda = 7: a column has 8 elements");
    REFUSE(ldb, 15, SPK_ERR_ARGUMENT, "ldb = 15: a row has 16 elements");
    REFUSE(ldd, 15, SPK_ERR_ARGUMENT, "ldd = 15: a row has 16 elements");
    REFUSE(ldb, (p.k = 0, INT64_C(1) << 62), SPK_ERR_ARGUMENT, "ldb = 4611686018427387904: 1 rows exceed 2^62 bytes"); /* of no rows, too */
    REFUSE(batch, -1, SPK_ERR_ARGUMENT, "batch = -1");
    REFUSE(groups, -1, SPK_ERR_ARGUMENT, "groups = -1");
    REFUSE(groups, 3, SPK_ERR_ARGUMENT, "group_axis = 0 with groups = 3");
    REFUSE(group_axis, SPK_GROUP_ROWS, SPK_ERR_ARGUMENT, "group_axis = 1 with groups = 0");
    REFUSE(group_axis, (spk_group_axis)4, SPK_ERR_ARGUMENT, "group_axis = 4: the values are 0..3");
    REFUSE(batch, (p.groups = 3, p.group_axis = SPK_GROUP_ROWS, 2), SPK_ERR_ARGUMENT, "batch = 2 with groups = 3");
    REFUSE(stride_a, (p.groups = 3, p.group_axis = SPK_GROUP_ROWS, 999), SPK_ERR_ARGUMENT, "stride_a = 999: groups have none of their own");
    REFUSE(stride_d, (p.groups = 3, p.group_axis = SPK_GROUP_COLS, 999), SPK_ERR_ARGUMENT, "stride_d = 999: groups have none of their own");
    REFUSE(stride_a, -2, SPK_ERR_ARGUMENT, "stride_a = -2");
    REFUSE(assume_finite, 2, SPK_ERR_ARGUMENT, "assume_finite = 2: the values are 0..1");
    REFUSE(reserved, 1, SPK_ERR_ARGUMENT, "reserved = 1");
    REFUSE(stride_d, (p.batch = 2, 100), SPK_ERR_ARGUMENT, "stride_d = 100: items of");
    REFUSE(stride_d, (p.batch = 2, SPK_STRIDE_SHARED), SPK_ERR_ARGUMENT, "stride_d = -1");
#undef REFUSE
    assert_int_equal(spk_plan_create_gemm(context, NULL, NULL, &plan), SPK_ERR_ARGUMENT);
    blocks b = {.rows = 8, .cols = 32, .block_rows = 4, .block_cols = 4};
    spk_rng rng;
    spk_rng_seed(&rng, 1);
    draw_blocks(&rng, &b, 0.5);
    assert_int_equal(spk_plan_create(context, b.pattern, &good, NULL, &plan), SPK_ERR_ARGUMENT);
    expect_message("gemm has none, give NULL");
    free_blocks(&b);
    assert_int_equal(spk_plan_create(context, NULL, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 4}, NULL, &plan), SPK_ERR_ARGUMENT);
    expect_message("pattern is NULL");
    ok(spk_plan_create_gemm(context, &good, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "reference_gemm"}, &plan));
    const spk_gemm_args fine = {SPK_SIZED(spk_gemm_args), .a = numbers, .b = numbers + 1024, .d = numbers + 4096, .alpha = 1};
    spk_gemm_args args;
#define REFUSE(field, value, piece)                                           \
    args = fine;                                                              \
    args.field = value;                                                       \
    assert_int_equal(spk_plan_run_gemm(plan, &args, NULL), SPK_ERR_ARGUMENT); \
    expect_message(piece)
    ok(spk_plan_run_gemm(plan, &fine, NULL));
    REFUSE(struct_size, 0, "args.struct_size is 0");
    REFUSE(a, NULL, "args.a is NULL: 256 elements of f32");
    REFUSE(b, NULL, "args.b is NULL");
    REFUSE(d, NULL, "args.d is NULL");
    REFUSE(d, numbers + 1024, "args.d [");
    REFUSE(b, (const char *)numbers + 2, "args.b = ");
    REFUSE(alpha, (double)NAN, "args.alpha = nan");
    REFUSE(reserved, 1, "args.reserved = 1");
#undef REFUSE
    assert_int_equal(spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args)}, NULL), SPK_ERR_ARGUMENT);
    expect_message("the plan was made for gemm");
    spk_plan_destroy(&plan);
}

/* On the CPU wrong offsets are refused, before anything runs. */
static void test_offsets(void **state)
{
    (void)state;
    static float numbers[3][8 * 1024];
    double out[8 * 16];
    int32_t ends[3];
    const spk_gemm p = {SPK_SIZED(spk_gemm), .m = 8, .n = 16, .k = 32, .groups = 3, .group_axis = SPK_GROUP_ROWS};
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = numbers[0], .b = numbers[1], .d = numbers[2], .alpha = 1, .offsets = ends};
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    const struct {
        int32_t ends[3];
        const char *why;
    } all[] = {{{0, 8, 8}, NULL},
               {{0, 0, 3}, NULL},
               {{-1, 4, 8}, "args.offsets[0] = -1"},
               {{4, 3, 8}, "args.offsets[1] = 3: the group begins at 4"},
               {{4, 8, 9}, "args.offsets[2] = 9: the group begins at 8, and the axis has 8 elements"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        memcpy(ends, all[i].ends, sizeof ends);
        const spk_status wanted = all[i].why != NULL ? SPK_ERR_ARGUMENT : SPK_OK;
        assert_int_equal(spk_compute_gemm(context, &p, &args, &estimate), wanted);
        if (wanted != SPK_OK)
            expect_message(all[i].why);
        assert_int_equal(spk_oracle(context, NULL, &p, &args, SPK_FIRST_OUTPUT, NULL, 0, out, NULL), wanted);
    }
    spk_gemm_args none = args;
    none.offsets = NULL;
    assert_int_equal(spk_compute_gemm(context, &p, &none, &estimate), SPK_ERR_ARGUMENT);
    expect_message("args.offsets is NULL: 3 elements of i32");
    /* What fills operands fills these rightly. */
    for (uint64_t seed = 0; seed < 50; seed++) {
        ok(spk_problem_fill(context, NULL, &p, 7, seed, ends));
        assert_true(ends[0] >= 0 && ends[1] >= ends[0] && ends[2] >= ends[1] && ends[2] == 8);
    }
    ok(spk_problem_fill(context, NULL, &p, 0, 1, numbers[0]));
    assert_int_equal(spk_problem_fill(context, NULL, &p, 10, 1, ends), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_problem_fill(context, NULL, &p, 7, 1, NULL), SPK_ERR_ARGUMENT);
}

/* Every allocation of planning, running, the oracle and tuning may fail: an ordinary error, and the next try succeeds. */
static void test_without_memory(void **state)
{
    (void)state;
    static float numbers[3][8 * 1024];
    static double out[8 * 1024];
    const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = 20, .n = 17, .k = 9, .batch = 9, .layout_a = SPK_COL_MAJOR};
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = numbers[0], .b = numbers[1], .d = numbers[2], .alpha = 1};
    const spk_tune_options fresh = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.01, .fresh = 1};
    for (int what = 0; what < 4; what++)
        for (int64_t fail_at = 0;; fail_at += 1 + fail_at / 20) {
            spk_mem_fail_after(fail_at);
            spk_report *report = NULL;
            const spk_status status = what == 0   ? spk_compute_gemm(context, &gemm, &args, &fresh)
                                      : what == 1 ? spk_oracle(context, NULL, &gemm, &args, SPK_FIRST_OUTPUT, NULL, 0, out, NULL)
                                      : what == 2 ? spk_tune(context, NULL, &gemm, &fresh, &report)
                                                  : spk_list_candidates(context, NULL, &gemm, &fresh, &report);
            spk_mem_fail_after(-1);
            spk_report_destroy(&report);
            if (status == SPK_OK && fail_at > 0)
                break;
            if (status != SPK_OK && status != SPK_ERR_OUT_OF_MEMORY && status != SPK_ERR_NO_CANDIDATE)
                fail_msg("call %d, allocation %lld: %s: %s", what, (long long)fail_at, spk_status_name(status), spk_last_error(context));
            assert_true(fail_at < 100000);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),       cmocka_unit_test(test_groups),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_tuning),     cmocka_unit_test(test_sampling),      cmocka_unit_test(test_export),
        cmocka_unit_test(test_folding),    cmocka_unit_test(test_errors),        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_transposed), cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

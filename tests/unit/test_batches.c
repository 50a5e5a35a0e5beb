/* Batches of SpMM on every row of the table that can: against the oracle of each item alone. */
#include "op/problem.h"
#include "operation_case.h"

typedef struct batch_case {
    blocks b;
    spk_spmm problem;
    spk_spmm_args args;
    int64_t items, m, k, value_stride;
    array values, x, c, d, residual, preact, bias;
    double *want, *before, *magnitude, *before_magnitude; /* [item][m][n] */
    double tolerance;
} batch_case;

static void spoil_overhang(batch_case *t)
{
    const blocks *b = &t->b;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++)
                    if (b->row[p] * b->block_rows + r >= b->rows || b->col[p] * b->block_cols + q >= b->cols)
                        spk_value_set(t->values.memory, t->values.dtype,
                                      item * t->value_stride + value_at(b, t->problem.block_layout, p, r, q), (double)NAN);
}

static void expect_batch(batch_case *t)
{
    /* The oracle of each item alone: it has tests of its own. */
    const size_t item_size = (size_t)(t->m * t->problem.n);
    t->want = calloc((size_t)t->items * item_size + 1, sizeof *t->want);
    t->before = calloc((size_t)t->items * item_size + 1, sizeof *t->before);
    t->magnitude = calloc((size_t)t->items * item_size + 1, sizeof *t->magnitude);
    t->before_magnitude = calloc((size_t)t->items * item_size + 1, sizeof *t->before_magnitude);
    spk_spmm alone = t->problem;
    alone.batch = 1;
    for (int64_t item = 0; item < t->items; item++) {
        spk_spmm_args args = t->args;
#define SHIFT(field, from, step) args.field = (from).memory + item * (step) * (int64_t)spk_dtype_bytes((from).dtype)
        SHIFT(values, t->values, t->value_stride);
        SHIFT(b, t->x, t->x.stride);
        SHIFT(c, t->c, t->c.stride);
        SHIFT(residual, t->residual, t->residual.stride);
#undef SHIFT
        const size_t from = (size_t)item * item_size;
        ok(spk_oracle(context, t->b.pattern, &alone, &args, SPK_D, NULL, 0, t->want + from, t->magnitude + from));
        if (alone.keep_preact)
            ok(spk_oracle(context, t->b.pattern, &alone, &args, SPK_PREACT, NULL, 0, t->before + from, t->before_magnitude + from));
    }
}

static void make_batch(spk_rng *rng, batch_case *t)
{
    memset(t, 0, sizeof *t);
    make_blocks(rng, &t->b);
    spk_spmm *p = &t->problem;
    *p = (spk_spmm){SPK_SIZED(spk_spmm), .n = pick(rng, 0, 1) ? pick(rng, 1, 9) : pick(rng, 10, 50), .trans_a = (spk_trans)pick(rng, 0, 1)};
    random_dtypes(rng, &p->dtype_a, &p->dtype_d);
    p->block_layout = (spk_layout)pick(rng, 0, 1);
    p->layout_b = (spk_layout)pick(rng, 0, 1);
    p->layout_d = (spk_layout)pick(rng, 0, 1);
    if (pick(rng, 0, 2) > 0) {
        p->use_c = (int)pick(rng, 0, 1);
        p->bias = (spk_bias)pick(rng, 0, 2);
        p->activation = (spk_activation)pick(rng, 0, 4);
        p->residual = (spk_residual)pick(rng, SPK_RESIDUAL_NONE, SPK_RESIDUAL_MULTIPLY);
        p->keep_preact = (int)pick(rng, 0, 1);
    }
    t->items = p->batch = pick(rng, 2, 19);
    t->m = p->trans_a == SPK_TRANS ? t->b.cols : t->b.rows;
    t->k = p->trans_a == SPK_TRANS ? t->b.rows : t->b.cols;
    const int a_way = pick(rng, 0, 1) ? SHARED : (int)pick(rng, TIGHT, LOOSE), b_way = (int)pick(rng, TIGHT, SHARED),
              c_way = (int)pick(rng, TIGHT, SHARED);
    const int d_way = (int)pick(rng, TIGHT, SIDE_BY_SIDE), r_way = (int)pick(rng, TIGHT, SHARED),
              p_way = (int)pick(rng, TIGHT, SIDE_BY_SIDE);
    make_values(rng, &t->values, p->dtype_a, t->b.nnzb * t->b.block_rows * t->b.block_cols, t->items, a_way);
    make_array(rng, &t->x, p->dtype_a, p->layout_b, t->k, p->n, t->items, b_way);
    make_array(rng, &t->c, p->dtype_d, p->layout_d, t->m, p->n, t->items, c_way);
    make_array(rng, &t->d, p->dtype_d, p->layout_d, t->m, p->n, t->items, d_way);
    make_array(rng, &t->residual, p->dtype_d, p->layout_d, t->m, p->n, t->items, r_way);
    make_array(rng, &t->preact, p->dtype_d, p->layout_d, t->m, p->n, t->items, p_way);
    make_array(rng, &t->bias, p->dtype_d, SPK_ROW_MAJOR, 1, t->m > p->n ? t->m : p->n, 1, TIGHT);
    t->value_stride = p->stride_a = t->values.stride;
    p->ldb = t->x.ld;
    p->ldc = t->c.ld;
    p->ldd = t->d.ld;
    p->ldr = t->residual.ld;
    p->ldp = t->preact.ld;
    p->stride_b = given(&t->x, b_way);
    p->stride_c = given(&t->c, c_way);
    p->stride_d = given(&t->d, d_way);
    p->stride_r = given(&t->residual, r_way);
    p->stride_p = given(&t->preact, p_way);
    t->args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = t->values.memory, .b = t->x.memory, .c = t->c.memory, .d = t->d.memory};
    t->args.bias = t->bias.memory;
    t->args.residual = t->residual.memory;
    t->args.preact = t->preact.memory;
    t->args.alpha = spk_rng_normal(rng);
    t->args.beta = pick(rng, 0, 2) == 0 ? 0 : spk_rng_normal(rng);
    spoil_overhang(t);
    expect_batch(t);
    ok(spk_default_tolerance(context, t->b.pattern, p, SPK_FIRST_OUTPUT, &t->tolerance));
}

static void free_batch(batch_case *t)
{
    array *all[] = {&t->values, &t->x, &t->c, &t->d, &t->residual, &t->preact, &t->bias};
    for (int i = 0; i < 7; i++)
        free(all[i]->memory);
    free(t->want);
    free(t->before);
    free(t->magnitude);
    free(t->before_magnitude);
    free_blocks(&t->b);
}

/* Every element as expected, and as many NaN left as there is no element. */
static void check_output(const batch_case *t, const array *got, const double *want, const double *magnitude, uint64_t seed,
                         const char *choice)
{
    int64_t unwritten = 0;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->problem.n; j++) {
                const int64_t e = (item * t->m + i) * t->problem.n + j;
                const double value = at(got, item, i, j);
                const double error = spk_type_difference(got->dtype, value, want[e]);
                if (!(error <= t->tolerance * magnitude[e]))
                    fail_msg("seed %llu, %s: item %lld (%lld, %lld) is %.9g, expected %.9g", (unsigned long long)seed, choice,
                             (long long)item, (long long)i, (long long)j, value, want[e]);
            }
    for (int64_t e = 0; e < got->elements; e++)
        unwritten += isnan(spk_value_get(got->memory, got->dtype, e));
    assert_int_equal(unwritten, got->elements - t->items * t->m * t->problem.n);
}

static int run_batch(batch_case *t, uint64_t seed)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW};
    ok(spk_list_candidates(context, t->b.pattern, &t->problem, &options, &report));
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        ok(spk_report_get_candidate(report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE || candidate.kind == SPK_KIND_DENSE)
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan *plan = NULL;
        options.choice = choice;
        ok(spk_plan_create_spmm(context, t->b.pattern, &t->problem, &options, &plan));
        if (t->problem.static_values)
            ok(spk_plan_update_values(plan, t->values.memory, NULL));
        memset(t->d.memory, 0xff, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
        memset(t->preact.memory, 0xff, (size_t)t->preact.elements * spk_dtype_bytes(t->preact.dtype));
        ok(spk_plan_run_spmm(plan, &t->args, NULL));
        check_output(t, &t->d, t->want, t->magnitude, seed, choice);
        if (t->problem.keep_preact)
            check_output(t, &t->preact, t->before, t->before_magnitude, seed, choice);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&report);
    return ran;
}

static void test_batches(void **state)
{
    (void)state;
    int most = 0;
    const uint64_t draws = getenv("SPARSEK_TEST_QUICK") != NULL ? 50 : 200;
    for (uint64_t seed = 1; seed <= draws; seed++) {
        spk_rng rng;
        batch_case t;
        spk_rng_seed(&rng, seed);
        make_batch(&rng, &t);
        t.problem.static_values = seed % 4 == 0;
        const int ran = run_batch(&t, seed);
        assert_true(ran >= 1);
        most = ran > most ? ran : most;
        free_batch(&t);
    }
    assert_true(most > 3);
}

/* A batch whose items lie as the columns of one array has the class of that one product. */
static void test_folding(void **state)
{
    (void)state;
    spk_rng rng;
    blocks b;
    spk_rng_seed(&rng, 9);
    make_blocks(&rng, &b);
    const spk_spmm one = {SPK_SIZED(spk_spmm), .n = 40};
    const struct {
        spk_spmm problem;
        bool folds;
    } cases[] = {
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4, .ldb = 40, .ldd = 40, .stride_b = 10, .stride_d = 10, .ldc = 40, .ldr = 40, .ldp = 40},
         true},
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4}, false},
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4, .ldb = 40, .ldd = 40, .stride_b = 10, .stride_d = 10, .bias = SPK_BIAS_PER_COL}, false},
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4, .ldb = 48, .ldd = 48, .stride_b = 12, .stride_d = 12}, false},
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4, .ldb = 40, .ldd = 40, .stride_b = 10, .stride_d = 10, .use_c = 1}, false},
        {{SPK_SIZED(spk_spmm), .n = 10, .batch = 4, .ldb = 40, .ldd = 40, .stride_b = 10, .stride_d = 10, .stride_a = 1 << 20}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_report *wide = NULL, *batch = NULL;
        spk_report_info wide_info = {SPK_SIZED(spk_report_info)}, batch_info = {SPK_SIZED(spk_report_info)};
        ok(spk_list_candidates(context, b.pattern, &one, NULL, &wide));
        ok(spk_list_candidates(context, b.pattern, &cases[i].problem, NULL, &batch));
        ok(spk_report_get_info(wide, &wide_info));
        ok(spk_report_get_info(batch, &batch_info));
        assert_int_equal(strcmp(wide_info.class_key, batch_info.class_key) == 0, cases[i].folds);
        spk_report_destroy(&wide);
        spk_report_destroy(&batch);
    }
    const spk_spmm turned = {SPK_SIZED(spk_spmm),       .n = 16, .batch = 4, .layout_b = SPK_COL_MAJOR, .layout_d = SPK_COL_MAJOR,
                             .activation = SPK_ACT_RELU};
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    ok(spk_list_candidates(context, b.pattern, &turned, NULL, &report));
    ok(spk_report_get_info(report, &info));
    assert_non_null(strstr(info.class_key, ";n=64;"));
    spk_report_destroy(&report);
    free_blocks(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_batches), cmocka_unit_test(test_folding)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

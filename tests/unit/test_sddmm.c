/* SDDMM on every row of the table that can, one by one and in batches: against plain loops. */
#include "operation_case.h"

typedef struct sddmm_case {
    blocks b;
    spk_sddmm problem;
    spk_sddmm_args args;
    int64_t items, values; /* values: elements of D of an item */
    array x, y, c, d;
    double *want, *magnitude; /* of each element of D, item by item */
    double tolerance;
} sddmm_case;

static void expect_values(sddmm_case *t)
{
    const blocks *b = &t->b;
    t->want = calloc((size_t)(t->items * t->values + 1), sizeof *t->want);
    t->magnitude = calloc((size_t)(t->items * t->values + 1), sizeof *t->magnitude);
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++) {
                    const int64_t i = b->row[p] * b->block_rows + r, j = b->col[p] * b->block_cols + q,
                                  v = value_at(b, t->problem.block_layout, p, r, q);
                    double *want = &t->want[item * t->values + v], *magnitude = &t->magnitude[item * t->values + v];
                    if (i >= b->rows || j >= b->cols)
                        continue;
                    for (int64_t k = 0; k < t->problem.k; k++) {
                        const double term = t->args.alpha * at(&t->x, item, i, k) * at(&t->y, item, k, j);
                        *want += term;
                        *magnitude += fabs(term);
                    }
                    if (t->problem.use_c && t->args.beta != 0) {
                        const double term = t->args.beta * spk_value_get(t->c.memory, t->c.dtype, item * t->c.stride + v);
                        *want += term;
                        *magnitude += fabs(term);
                    }
                }
}

/* C is NaN in the overhang, and everywhere where beta is 0. */
static void spoil_c(sddmm_case *t)
{
    const blocks *b = &t->b;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t p = 0; p < b->nnzb; p++)
            for (int64_t r = 0; r < b->block_rows; r++)
                for (int64_t q = 0; q < b->block_cols; q++)
                    if (t->args.beta == 0 || b->row[p] * b->block_rows + r >= b->rows || b->col[p] * b->block_cols + q >= b->cols)
                        spk_value_set(t->c.memory, t->c.dtype, item * t->c.stride + value_at(b, t->problem.block_layout, p, r, q),
                                      (double)NAN);
}

/* Blocks are there; all else is drawn. */
static void draw_sddmm(spk_rng *rng, sddmm_case *t, int64_t k, int64_t most_items)
{
    static const int input_ways[] = {TIGHT, LOOSE, SIDE_BY_SIDE, SHARED};
    spk_sddmm *p = &t->problem;
    *p = (spk_sddmm){SPK_SIZED(spk_sddmm), .k = k};
    random_dtypes(rng, &p->dtype_x, &p->dtype_d);
    p->compute = p->dtype_x == SPK_F32 && pick(rng, 0, 3) == 0 ? SPK_TF32 : SPK_DTYPE_DEFAULT;
    p->block_layout = (spk_layout)pick(rng, 0, 1);
    p->layout_x = (spk_layout)pick(rng, 0, 1);
    p->layout_y = (spk_layout)pick(rng, 0, 1);
    p->use_c = (int)pick(rng, 0, 1);
    t->items = pick(rng, 0, 1) || most_items == 1 ? 1 : pick(rng, 2, most_items);
    p->batch = t->items;
    t->values = t->b.nnzb * t->b.block_rows * t->b.block_cols;
    const int x_way = input_ways[pick(rng, 0, 3)], y_way = input_ways[pick(rng, 0, 3)], d_way = (int)pick(rng, TIGHT, LOOSE),
              c_way = input_ways[pick(rng, 0, 1)];
    make_array(rng, &t->x, p->dtype_x, p->layout_x, t->b.rows, p->k, t->items, x_way);
    make_array(rng, &t->y, p->dtype_x, p->layout_y, p->k, t->b.cols, t->items, y_way);
    make_values(rng, &t->d, p->dtype_d, t->values, t->items, d_way);
    make_values(rng, &t->c, p->dtype_d, t->values, t->items, c_way);
    p->ldx = t->x.ld;
    p->ldy = t->y.ld;
    p->stride_x = given(&t->x, x_way);
    p->stride_y = given(&t->y, y_way);
    p->stride_d = given(&t->d, d_way);
    p->stride_c = given(&t->c, c_way);
    t->args = (spk_sddmm_args){SPK_SIZED(spk_sddmm_args), .x = t->x.memory, .y = t->y.memory, .c = t->c.memory, .d = t->d.memory};
    t->args.alpha = pick(rng, 0, 1) ? 1 : spk_rng_normal(rng);
    t->args.beta = pick(rng, 0, 2) == 0 ? 0 : spk_rng_normal(rng);
    spoil_c(t);
    expect_values(t);
    ok(spk_default_tolerance(context, t->b.pattern, p, SPK_FIRST_OUTPUT, &t->tolerance));
}

static void make_sddmm(spk_rng *rng, sddmm_case *t)
{
    memset(t, 0, sizeof *t);
    make_blocks(rng, &t->b);
    draw_sddmm(rng, t, pick(rng, 0, 5) == 0 ? 0 : pick(rng, 1, 70), 11);
}

static void free_sddmm(sddmm_case *t)
{
    array *all[] = {&t->x, &t->y, &t->c, &t->d};
    for (int i = 0; i < 4; i++)
        free(all[i]->memory);
    free(t->want);
    free(t->magnitude);
    free_blocks(&t->b);
}

static void poison_d(sddmm_case *t)
{
    memset(t->d.memory, 0xff, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
}

static void check_sddmm(const sddmm_case *t, uint64_t seed, const char *choice)
{
    for (int64_t item = 0; item < t->items; item++) {
        for (int64_t v = 0; v < t->values; v++) {
            const double got = spk_value_get(t->d.memory, t->d.dtype, item * t->d.stride + v), want = t->want[item * t->values + v];
            const double error = spk_type_difference(t->d.dtype, got, want);
            if (!(error <= t->tolerance * t->magnitude[item * t->values + v]))
                fail_msg("seed %llu, %s: item %lld value %lld is %.9g, expected %.9g", (unsigned long long)seed, choice, (long long)item,
                         (long long)v, got, want);
        }
        for (int64_t v = t->values; t->values > 0 && item + 1 < t->items && v < t->d.stride; v++)
            assert_true(isnan(spk_value_get(t->d.memory, t->d.dtype, item * t->d.stride + v)));
    }
}

static void check_oracle(const sddmm_case *t, uint64_t seed)
{
    double *out = malloc((size_t)(t->items * t->values + 1) * sizeof *out),
           *magnitude = malloc((size_t)(t->items * t->values + 1) * sizeof *magnitude);
    ok(spk_oracle(context, t->b.pattern, &t->problem, &t->args, SPK_FIRST_OUTPUT, NULL, 0, out, magnitude));
    for (int64_t v = 0; v < t->items * t->values; v++)
        if (!(fabs(out[v] - t->want[v]) <= 1e-13 * t->magnitude[v]) || !(fabs(magnitude[v] - t->magnitude[v]) <= 1e-13 * t->magnitude[v]))
            fail_msg("seed %llu: oracle %lld is %.17g (%g), expected %.17g (%g)", (unsigned long long)seed, (long long)v, out[v],
                     magnitude[v], t->want[v], t->magnitude[v]);
    if (t->values > 0) { /* one row alone: the last */
        const int64_t length = t->problem.block_layout == SPK_ROW_MAJOR ? t->b.block_cols : t->b.block_rows,
                      last = t->items * t->values / length - 1;
        ok(spk_oracle(context, t->b.pattern, &t->problem, &t->args, SPK_FIRST_OUTPUT, &last, 1, magnitude, NULL));
        assert_memory_equal(magnitude, out + last * length, (size_t)length * sizeof *out);
    }
    free(out);
    free(magnitude);
}

/* Every candidate that can, once; returns how many. */
static int run_sddmm(sddmm_case *t, uint64_t seed)
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int ran = 0;
    ok(spk_list_candidates(context, t->b.pattern, &t->problem, NULL, &report));
    ok(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        ok(spk_report_get_candidate(report, i, &candidate));
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE || (ran > 0 && is_left_out(i, seed)))
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        spk_plan *plan = NULL;
        const spk_status status = spk_plan_create_sddmm(context, t->b.pattern, &t->problem,
                                                        &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan);
        if (no_library_has_it(status, candidate.kind))
            continue;
        ok(status);
        poison_d(t);
        ok(spk_plan_run_sddmm(plan, &t->args, NULL));
        check_sddmm(t, seed, choice);
        spk_plan_destroy(&plan);
        ran++;
    }
    spk_report_destroy(&report);
    return ran;
}

/* D may be C, where they lie alike. */
static void run_in_place(sddmm_case *t, uint64_t seed)
{
    if (!t->problem.use_c || t->c.stride != t->d.stride)
        return;
    memcpy(t->d.memory, t->c.memory, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
    for (int64_t item = 0; t->values > 0 && item + 1 < t->items; item++) /* what check_sddmm wants to find between the items */
        for (int64_t v = t->values; v < t->d.stride; v++)
            spk_value_set(t->d.memory, t->d.dtype, item * t->d.stride + v, (double)NAN);
    spk_sddmm_args args = t->args;
    args.c = args.d;
    ok(spk_compute_sddmm(context, t->b.pattern, &t->problem, &args,
                         &(spk_tune_options){SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE}));
    check_sddmm(t, seed, "in place");
}

static void test_sddmm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (getenv("SPARSEK_TEST_QUICK") != NULL ? 80 : 250); seed++) {
        spk_rng rng;
        sddmm_case t;
        spk_rng_seed(&rng, seed);
        make_sddmm(&rng, &t);
        check_oracle(&t, seed);
        assert_true(run_sddmm(&t, seed) >= 1);
        run_in_place(&t, seed);
        free_sddmm(&t);
    }
}

/* So much of X and Y that kernels take them in steps, and the longest one in chunks of Y. */
static void test_long_sddmm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        spk_rng rng;
        sddmm_case t = {.b = {.rows = 45, .cols = 90, .block_rows = 20, .block_cols = 24}};
        spk_rng_seed(&rng, 3000 + seed);
        if (seed > 8)
            t.b = (blocks){.rows = 19, .cols = 700, .block_rows = 20, .block_cols = 7};
        draw_blocks(&rng, &t.b, seed > 8 ? 0.03 : 0.5);
        draw_sddmm(&rng, &t, seed > 8 ? 2700 : pick(&rng, 250, 1300), 1);
        assert_true(run_sddmm(&t, seed) >= 1);
        free_sddmm(&t);
    }
}

/* A Y that is several second caches large, and threads that copy it each for itself, or share a copy. */
static void test_wide_sddmm(void **state)
{
    (void)state;
    spk_context *const two = context;
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 5}, &context));
    for (uint64_t seed = 1; seed <= 6; seed++) {
        spk_rng rng;
        sddmm_case t = {.b = {.rows = 150, .cols = 9000, .block_rows = seed % 2 ? 24 : 50, .block_cols = 30}};
        spk_rng_seed(&rng, 5000 + seed);
        draw_blocks(&rng, &t.b, seed < 5 ? 0.1 : 0.002);
        draw_sddmm(&rng, &t, pick(&rng, 200, 350), 1);
        assert_true(run_sddmm(&t, seed) >= 1);
        free_sddmm(&t);
    }
    spk_context_destroy(&context);
    context = two;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sddmm), cmocka_unit_test(test_long_sddmm), cmocka_unit_test(test_wide_sddmm)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Trials in place on numbers at the ends of float32: sums that vanish below the least normal number, or overflow on their way. No kernel is
 * ruled out for them, no run fails, and what is finite is right. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

enum { SIZE = 192, COLUMNS = 40, BLOCK = 16, RUNS = 100 };

static int warnings;

static void note(void *user, int level, const char *message)
{
    (void)user;
    warnings += level == 1 && strstr(message, "wrong result") != NULL;
}

typedef struct product {
    spk_context *context;
    spk_matrix *matrix;
    spk_pattern *pattern;
    spk_matrix_desc view;
    float *b, *d;
    double *want, *magnitude;
} product;

static product make_product(void)
{
    product p = {.view = {SPK_SIZED(spk_matrix_desc)}};
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .log = note};
    const spk_generate uniform = {SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = SIZE,  .cols = SIZE,
                                  .block_rows = BLOCK,     .block_cols = BLOCK,          .density = 0.4};
    assert_int_equal(spk_context_create(&options, &p.context), SPK_OK);
    assert_int_equal(spk_matrix_generate(p.context, &uniform, &p.matrix, NULL), SPK_OK);
    assert_int_equal(spk_matrix_view(p.matrix, &p.view), SPK_OK);
    assert_int_equal(spk_pattern_from_matrix(p.context, p.matrix, &p.pattern), SPK_OK);
    p.b = malloc(sizeof *p.b * SIZE * COLUMNS);
    p.d = malloc(sizeof *p.d * SIZE * COLUMNS);
    p.want = malloc(sizeof *p.want * SIZE * COLUMNS);
    p.magnitude = malloc(sizeof *p.magnitude * SIZE * COLUMNS);
    assert_true(p.b != NULL && p.d != NULL && p.want != NULL && p.magnitude != NULL);
    warnings = 0;
    return p;
}

static void free_product(product *p)
{
    free(p->b);
    free(p->d);
    free(p->want);
    free(p->magnitude);
    spk_pattern_destroy(&p->pattern);
    spk_matrix_destroy(&p->matrix);
    spk_context_destroy(&p->context);
}

static float number(int i, double scale)
{
    return (float)((i * 7 % 13 - 6) / 6.0 * scale);
}

static void run_with(double scale)
{
    product p = make_product();
    spk_plan *plan = NULL;
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = COLUMNS};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_IN_PLACE};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = p.view.values, .b = p.b, .d = p.d, .alpha = 1};
    for (int i = 0; i < SIZE * COLUMNS; i++)
        p.b[i] = number(i, scale);
    assert_int_equal(spk_plan_create(p.context, p.pattern, &problem, &options, &plan), SPK_OK);
    assert_int_equal(spk_oracle(p.context, p.pattern, &problem, &args, SPK_FIRST_OUTPUT, NULL, SIZE, p.want, p.magnitude), SPK_OK);
    for (int run = 0; run < RUNS; run++) {
        if (spk_plan_run(plan, &args, NULL) != SPK_OK)
            fail_msg("numbers of %g, run %d: %s", scale, run, spk_last_error(p.context));
        for (int i = 0; i < SIZE * COLUMNS; i++) /* a kernel may take what is not normal for 0 */
            if (p.magnitude[i] < FLT_MAX && !(fabs(p.d[i] - p.want[i]) <= 1e-4 * p.magnitude[i] + 1e3 * (double)FLT_MIN))
                fail_msg("numbers of %g, run %d, element %d: %g in place of %g", scale, run, i, p.d[i], p.want[i]);
    }
    assert_int_equal(warnings, 0);
    spk_plan_destroy(&plan);
    free_product(&p);
}

static void what_vanishes(void **state)
{
    (void)state;
    static const double scales[] = {1e-36, 1e-38, 1e-40, 1e-42, 1e-44};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        run_with(scales[i]);
}

static void what_overflows(void **state)
{
    (void)state;
    static const double scales[] = {1e37, 1e38, 3.4e38};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        run_with(scales[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_vanishes), cmocka_unit_test(what_overflows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

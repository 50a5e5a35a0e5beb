/* Where the caller's allocator has no room for the workspace of the model's choice, a plan that nobody measured for takes a row that needs
 * less. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

enum { DEPTH = 1 << 20 };

static const size_t most_bytes = (size_t)128 << 20; /* the oracle's row needs some 8 MiB, the others need 2 GiB */

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return bytes > most_bytes ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static spk_context *context_of(void)
{
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1, .allocate = allocate,
                                         .release = release};
    spk_context *context = NULL;
    assert_int_equal(spk_context_create(&options, &context), SPK_OK);
    return context;
}

static const spk_attention problem = {SPK_SIZED(spk_attention), .queries = 1,     .keys = 1, .heads = 1,
                                      .depth = DEPTH,           .depth_v = DEPTH, .batch = 1};

static void takes_a_row_that_fits(spk_effort effort, spk_tuning tuning)
{
    spk_context *context = context_of();
    spk_plan *plan = NULL;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .effort = effort, .tuning = tuning};
    assert_int_equal(spk_plan_create(context, NULL, &problem, &options, &plan), SPK_OK);
    float *q = calloc(DEPTH, sizeof *q), *v = calloc(DEPTH, sizeof *v), *o = calloc(DEPTH, sizeof *o);
    assert_true(q != NULL && v != NULL && o != NULL);
    for (int i = 0; i < DEPTH; i++) {
        v[i] = (float)(i % 7);
        o[i] = NAN;
    }
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = q, .v = v, .o = o, .scale = 1};
    assert_int_equal(spk_plan_run(plan, &args, NULL), SPK_OK);
    for (int i = 0; i < DEPTH; i++)
        assert_true(o[i] == v[i]);
    free(q);
    free(v);
    free(o);
    spk_plan_destroy(&plan);
    spk_context_destroy(&context);
}

static void an_estimate(void **state)
{
    (void)state;
    takes_a_row_that_fits(SPK_TUNE_ESTIMATE, SPK_TUNING_NOW);
}

static void in_place(void **state)
{
    (void)state;
    takes_a_row_that_fits(SPK_TUNE_MEASURE, SPK_TUNING_IN_PLACE);
}

/* Where none fits the error is of the first. */
static void what_none_can_do_is_refused(void **state)
{
    (void)state;
    spk_context *context = context_of();
    spk_plan *plan = NULL;
    spk_attention large = problem;
    large.depth = large.depth_v = (int64_t)DEPTH << 8;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    assert_int_equal(spk_plan_create(context, NULL, &large, &options, &plan), SPK_ERR_OUT_OF_MEMORY);
    assert_null(plan);
    spk_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_estimate), cmocka_unit_test(in_place),
                                       cmocka_unit_test(what_none_can_do_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

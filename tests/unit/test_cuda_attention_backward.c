/* The rows of attention's gradients, host side: what they take, and what they say of the rest. Needs no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/attention_backward/operands.h"
#include "registry/registry.h"

static spk_device device; /* that nobody has asked */

static const spk_kernel *find(const char *name)
{
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    for (int i = 0; i < rows; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* Whether one of a row's candidates takes it; why: what the first says. */
static bool is_taken(const char *row, spk_pattern *mask, const spk_attention_backward *given, const char **first)
{
    const spk_kernel *kernel = find(row);
    spk_problem problem;
    bool any = false;
    assert_non_null(kernel);
    assert_int_equal(spk_problem_read(&spk_op_attention_backward, mask, given, NULL, &problem), SPK_OK);
    for (int i = 0; i < spk_params_count(kernel); i++) {
        const char *why = NULL;
        spk_params params;
        spk_params_get(kernel, i, &params);
        const bool taken = kernel->ops->applicable(&problem, &device, &params, &why);
        assert_int_equal(taken, why == NULL);
        any = any || taken;
        if (i == 0)
            *first = why;
        if (taken)
            assert_true(kernel->ops->predict_us(&problem, &device, &params) > 0);
    }
    return any;
}

static void what_it_takes(void **state)
{
    (void)state;
    static const struct {
        spk_dtype dtype;
        int64_t depth, depth_v;
        const char *why;
    } cases[] = {{SPK_F16, 64, 0, NULL},
                 {SPK_BF16, 16, 256, NULL},
                 {SPK_BF16, 192, 128, NULL},
                 {SPK_BF16, 160, 160, NULL},
                 {SPK_F16, 168, 160, "depth and depth_v together may be 320 at most"},
                 {SPK_F16, 264, 16, "the depths must be multiples of 8 between 16 and 256"},
                 {SPK_F16, 68, 64, "the depths must be multiples of 8 between 16 and 256"},
                 {SPK_F32, 64, 64, "it is for f16 and bf16"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int limits = 0; limits < 4; limits++) {
            const char *why = NULL;
            const spk_attention_backward given = {SPK_SIZED(spk_attention_backward),
                                                  .dtype = cases[i].dtype,
                                                  .queries = 500,
                                                  .keys = 300,
                                                  .depth = cases[i].depth,
                                                  .depth_v = cases[i].depth_v,
                                                  .heads = 4,
                                                  .heads_kv = 2,
                                                  .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT,
                                                  .causal = limits & 1,
                                                  .use_softcap = limits >> 1};
            assert_int_equal(is_taken("attention_backward_sm80", NULL, &given, &why), cases[i].why == NULL);
            if (cases[i].why != NULL)
                assert_non_null(strstr(why, cases[i].why));
        }
}

/* No queries, no keys: what there is gets zeros. */
static void empty_problems_are_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *why = NULL;
        const spk_attention_backward given = {SPK_SIZED(spk_attention_backward), .dtype = SPK_F16, .queries = i == 1 ? 40 : 0,
                                              .keys = i == 2 ? 40 : 0, .depth = 64};
        assert_true(is_taken("attention_backward_sm80", NULL, &given, &why));
    }
}

/* How much is read at once follows from the distances of five arrays; a run in which one of these lies worse is another candidate's. */
static void every_array_that_is_read_counts(void **state)
{
    (void)state;
    static const int read[] = {ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O, BACKWARD_GRAD_O};
    static _Alignas(16) char memory[64];
    const spk_kernel *kernel = find("attention_backward_sm80");
    const spk_attention_backward given = {SPK_SIZED(spk_attention_backward), .dtype = SPK_F16, .queries = 64, .keys = 64, .depth = 64},
                                 apart = {SPK_SIZED(spk_attention_backward),
                                          .dtype = SPK_F16,
                                          .queries = 64,
                                          .keys = 64,
                                          .depth = 64,
                                          .ld_grad_o = 68};
    spk_bound bound = {.kernel = kernel, .device = &device}, narrow = bound;
    spk_build build = {0};
    assert_int_equal(spk_problem_read(&spk_op_attention_backward, NULL, &given, NULL, &bound.problem), SPK_OK);
    assert_int_equal(spk_problem_read(&spk_op_attention_backward, NULL, &apart, NULL, &narrow.problem), SPK_OK);
    spk_params_get(kernel, 0, &bound.params);
    narrow.params = bound.params;
    kernel->ops->build(&narrow.problem, &device, &narrow.params, &build);
    assert_non_null(strstr(build.options, "-DVECTOR=4"));
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        for (int shift = 0; shift < 8; shift++) {
            spk_args args = {0};
            for (size_t j = 0; j < sizeof read / sizeof read[0]; j++)
                args.at[read[j]] = memory + (i == j ? 2 * shift : 0);
            assert_int_equal(kernel->ops->accepts(&bound, &args), shift == 0);
            assert_int_equal(kernel->ops->accepts(&narrow, &args), shift % 4 == 0);
        }
}

static void what_hopper_takes(void **state)
{
    (void)state;
    static const struct {
        spk_dtype dtype;
        int64_t depth, depth_v, queries, ldq, sequences;
        int use_softcap, side; /* of the mask's blocks; 0: there is none */
        const char *why;
    } cases[] = {{SPK_F16, 64, 0, 512, 0, 0, 0, 0, NULL},
                 {SPK_BF16, 128, 128, 500, 0, 0, 0, 0, NULL},
                 {SPK_BF16, 16, 128, 512, 0, 0, 0, 0, NULL},
                 {SPK_BF16, 72, 40, 512, 0, 0, 0, 0, NULL},
                 {SPK_BF16, 64, 64, 512, 0, 0, 0, 128, NULL},
                 {SPK_BF16, 64, 64, 512, 0, 0, 0, 64, NULL},
                 {SPK_BF16, 64, 64, 512, 0, 0, 0, 32, "a block of the mask is not made of whole tiles"},
                 {SPK_BF16, 136, 64, 512, 0, 0, 0, 0, "the depths must be multiples of 8 between 16 and 128"},
                 {SPK_F32, 64, 64, 512, 0, 0, 0, 0, "it is for f16 and bf16"},
                 {SPK_F16, 64, 64, 0, 0, 0, 0, 0, "there are no queries or no keys"},
                 {SPK_F16, 64, 64, 512, 300, 0, 0, 0, "must be multiples of 8 elements apart"},
                 {SPK_F16, 64, 64, 512, 0, 3, 0, 0, NULL},
                 {SPK_F16, 64, 64, 512, 0, 3, 0, 64, "it takes no packed sequences and no lengths of keys beside a mask or sinks"},
                 {SPK_F16, 64, 64, 512, 0, 0, 1, 0, "it takes no soft cap"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const int64_t offsets[17] = {0};
        const char *why = NULL;
        spk_pattern *mask = NULL;
        const spk_attention_backward given = {SPK_SIZED(spk_attention_backward),
                                              .dtype = cases[i].dtype,
                                              .queries = cases[i].queries,
                                              .keys = 512,
                                              .depth = cases[i].depth,
                                              .depth_v = cases[i].depth_v,
                                              .heads = 4,
                                              .heads_kv = 2,
                                              .ldq = cases[i].ldq,
                                              .sequences = cases[i].sequences,
                                              .mask_heads = cases[i].side > 0,
                                              .use_softcap = cases[i].use_softcap};
        const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                         .rows = 512,
                                         .cols = 512,
                                         .block_rows = cases[i].side,
                                         .block_cols = cases[i].side,
                                         .row_offsets = offsets,
                                         .index_type = SPK_INDEX_I64};
        if (cases[i].side > 0)
            assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &mask), SPK_OK);
        assert_int_equal(is_taken("attention_backward_sm90", mask, &given, &why), cases[i].why == NULL);
        if (cases[i].why != NULL) {
            assert_non_null(why);
            assert_non_null(strstr(why, cases[i].why));
        }
        spk_pattern_release(&mask);
    }
}

static void what_two_passes_take(void **state)
{
    (void)state;
    static const struct {
        spk_dtype dtype;
        int64_t depth, depth_v, side;
        int sequences;
        const char *why;
    } cases[] = {{SPK_F16, 64, 64, 0, 0, NULL},
                 {SPK_BF16, 256, 256, 0, 0, NULL},
                 {SPK_BF16, 192, 128, 0, 0, NULL},
                 {SPK_BF16, 16, 256, 0, 0, NULL},
                 {SPK_BF16, 256, 256, 64, 0, NULL},
                 {SPK_BF16, 128, 128, 64, 0, NULL},
                 {SPK_BF16, 128, 128, 32, 0, "a block of the mask is not made of whole tiles"},
                 {SPK_BF16, 264, 64, 0, 0, "the depths must be multiples of 8 between 16 and 256"},
                 {SPK_F32, 64, 64, 0, 0, "it is for f16 and bf16"},
                 {SPK_F16, 64, 64, 0, 3, "it takes no packed sequences and no lengths of keys"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const int64_t offsets[17] = {0};
        const char *why = NULL;
        spk_pattern *mask = NULL;
        const spk_attention_backward given = {
            SPK_SIZED(spk_attention_backward), .dtype = cases[i].dtype,        .queries = 512, .keys = 512,
            .depth = cases[i].depth,           .depth_v = cases[i].depth_v,    .heads = 4,     .heads_kv = 2,
            .sequences = cases[i].sequences,   .mask_heads = cases[i].side > 0};
        const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                         .rows = 512,
                                         .cols = 512,
                                         .block_rows = cases[i].side,
                                         .block_cols = cases[i].side,
                                         .row_offsets = offsets,
                                         .index_type = SPK_INDEX_I64};
        if (cases[i].side > 0)
            assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &mask), SPK_OK);
        assert_int_equal(is_taken("attention_backward_sm90_two_pass", mask, &given, &why), cases[i].why == NULL);
        if (cases[i].why != NULL) {
            assert_non_null(why);
            assert_non_null(strstr(why, cases[i].why));
        }
        spk_pattern_release(&mask);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_two_passes_take), cmocka_unit_test(what_it_takes),
                                       cmocka_unit_test(empty_problems_are_taken), cmocka_unit_test(every_array_that_is_read_counts),
                                       cmocka_unit_test(what_hopper_takes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Attention through the public calls, against an answer that the test computes itself: bands, sinks, shared heads, layouts, LSE, rows that
 * see nothing, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_case.h"
#include "base/rng.h"

static int64_t below(spk_rng *rng, int64_t limit)
{
    return (int64_t)spk_rng_below(rng, (uint64_t)limit);
}

static void computes_the_definition(void **state)
{
    (void)state;
    static const char *const choices[] = {"attention_reference", "attention_portable QUERIES=6", "attention_portable QUERIES=48",
                                          "attention_avx2 QUERIES=48 KEYS=64", "attention_avx512 QUERIES=6 KEYS=128"};
    spk_rng rng;
    spk_rng_seed(&rng, 19);
    ok(spk_fill_random(context, SPK_F32, MOST, 1, q));
    ok(spk_fill_random(context, SPK_F32, MOST, 2, k));
    ok(spk_fill_random(context, SPK_F32, MOST, 3, v));
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 25 : 120;
    for (int turn = 0; turn < turns; turn++) {
        const char *choice = choices[turn % 5];
        if (!can_run(choice))
            continue;
        spk_attention a = {SPK_SIZED(spk_attention), .batch = 1 + below(&rng, 2), .heads = 1 + below(&rng, 2),
                           .depth = 1 + below(&rng, 40)};
        a.queries = 48 + below(&rng, 60);
        a.keys = below(&rng, 3) == 0 ? a.queries : below(&rng, 130);
        a.depth_v = below(&rng, 2) ? 1 + below(&rng, 40) : 0;
        a.heads_kv = a.heads;
        a.heads *= 1 + below(&rng, 3);
        a.want_lse = (int)below(&rng, 2);
        a.soft_cap = below(&rng, 4) == 0;
        if (below(&rng, 4) > 0) {
            a.diagonal = (spk_diagonal)(1 + below(&rng, 2));
            a.causal = (int)below(&rng, 2);
            a.window_left = below(&rng, 2) * (1 + below(&rng, 50));
            a.window_right = a.causal ? 0 : below(&rng, 2) * (1 + below(&rng, 50));
            a.sinks = a.window_left ? below(&rng, 2) * (1 + below(&rng, 80)) : 0;
        }
        check(a, NULL, &(setting){.by_row = below(&rng, 2) == 1, .scale = 0.5 - 0.01 * (double)turn, .softcap = 3}, choice);
    }
}

/* The tiles of bfloat16 beside the reference, on the same numbers; some of V may be none. */
static void tiles_compute_as_the_reference(void **state)
{
    (void)state;
    static const char *const choices[] = {"attention_bf16_amx QUERIES=32 KEYS=128 SERIAL=0",
                                          "attention_bf16_amx QUERIES=96 KEYS=256 SERIAL=0"};
    static uint16_t from[3][MOST], to[2][MOST];
    spk_rng rng;
    spk_rng_seed(&rng, 23);
    if (!can_run(choices[0]))
        skip();
    for (int turn = 0; turn < 40; turn++) {
        spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .batch = 1, .depth = 32 + 32 * below(&rng, 3),
                           .depth_v = 32 + 32 * below(&rng, 2)};
        a.queries = 96 + below(&rng, 60);
        a.keys = 1 + below(&rng, 300);
        a.heads_kv = 1 + below(&rng, 2);
        a.heads = a.heads_kv * (1 + below(&rng, 2));
        a.soft_cap = below(&rng, 4) == 0;
        a.diagonal = SPK_DIAGONAL_TOP_LEFT;
        a.causal = (int)below(&rng, 2);
        a.window_left = below(&rng, 2) * (1 + below(&rng, 90));
        a.sinks = a.window_left ? below(&rng, 2) * (1 + below(&rng, 40)) : 0;
        for (int i = 0; i < 3; i++)
            ok(spk_fill_random(context, SPK_BF16, MOST, (uint64_t)(3 * turn + i), from[i]));
        if (turn % 3 == 0)
            from[2][below(&rng, a.keys * a.depth_v)] = turn % 2 ? 0x7fc0 : 0x7f80;
        for (int i = 0; i < 2; i++) {
            const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = i ? choices[turn % 2] : "attention_reference"};
            const spk_attention_args args = {
                SPK_SIZED(spk_attention_args), .q = from[0], .k = from[1], .v = from[2], .o = to[i], .scale = 0.2, .softcap = 2};
            memset(to[i], 0xff, sizeof to[i]);
            ok(spk_compute(context, NULL, &a, &args, &pin));
        }
        for (int64_t i = 0; i < a.heads * a.queries * a.depth_v; i++) {
            float got, wanted;
            memcpy(&got, &(uint32_t){(uint32_t)to[1][i] << 16}, sizeof got);
            memcpy(&wanted, &(uint32_t){(uint32_t)to[0][i] << 16}, sizeof wanted);
            if (!(fabsf(got - wanted) <= 0.02f) && !(isnan(got) && isnan(wanted)) && got != wanted)
                fail_msg("turn %d: O[%d] = %.9g, wanted %.9g", turn, (int)i, (double)got, (double)wanted);
        }
    }
}

/* What no query sees has no influence; what one sees alone, none on the others. */
static void hidden_numbers_have_no_influence(void **state)
{
    (void)state;
    enum { N = 200, D = 16 };
    static const char *const choices[] = {"attention_reference", "attention_portable QUERIES=48"};
    const spk_attention a = {SPK_SIZED(spk_attention), .queries = N, .keys = N, .depth = D, .causal = 1, .window_left = 70};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = 0.3};
    for (int c = 0; c < 2; c++) {
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choices[c]};
        static float before[N * D];
        ok(spk_fill_random(context, SPK_F32, N * D, 1, q));
        ok(spk_fill_random(context, SPK_F32, N * D, 2, k));
        ok(spk_fill_random(context, SPK_F32, N * D, 3, v));
        ok(spk_compute(context, NULL, &a, &args, &pin));
        memcpy(before, o, sizeof before);
        for (int d = 0; d < D; d++) {
            v[100 * D + d] = d % 2 ? NAN : INFINITY; /* seen by queries 100 .. 169 */
            k[100 * D + d] = NAN;
        }
        ok(spk_compute(context, NULL, &a, &args, &pin));
        for (int i = 0; i < N; i++)
            for (int d = 0; d < D; d++)
                if (i >= 100 && i < 170)
                    assert_false(isfinite(o[i * D + d]));
                else
                    assert_true(o[i * D + d] == before[i * D + d]);
    }
}

/* The same bits on every run, whatever the threads do. */
static void equal_bits(void **state)
{
    (void)state;
    const spk_attention a = {SPK_SIZED(spk_attention), .queries = 300, .keys = 300, .depth = 32, .heads = 3, .causal = 1};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = 0.3};
    const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = "attention_portable QUERIES=48 KEYS=64 SERIAL=0"};
    static float before[300 * 32 * 3];
    ok(spk_fill_random(context, SPK_F32, MOST, 1, q));
    ok(spk_fill_random(context, SPK_F32, MOST, 2, k));
    ok(spk_fill_random(context, SPK_F32, MOST, 3, v));
    ok(spk_compute(context, NULL, &a, &args, &pin));
    memcpy(before, o, sizeof before);
    const int runs = getenv("SPARSEK_TEST_QUICK") != NULL ? 8 : 200;
    for (int run = 0; run < runs; run++) {
        memset(o, 0xff, sizeof before);
        ok(spk_compute(context, NULL, &a, &args, &pin));
        assert_memory_equal(o, before, sizeof before);
    }
}

static void empty_ones(void **state)
{
    (void)state;
    spk_attention a = {SPK_SIZED(spk_attention), .queries = 3, .keys = 0, .depth = 4, .want_lse = 1};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .lse = lse, .scale = 1};
    ok(spk_compute(context, NULL, &a, &args, NULL));
    for (int i = 0; i < 12; i++)
        assert_true(o[i] == 0);
    assert_true(isinf(lse[0]) && lse[2] < 0);
    a.queries = 0;
    ok(spk_compute(context, NULL, &a, &args, NULL));
    a = (spk_attention){SPK_SIZED(spk_attention), .queries = 2, .keys = 5, .depth = 0, .depth_v = 3}; /* all scores are 0: means */
    ok(spk_compute(context, NULL, &a, &args, NULL));
    for (int c = 0; c < 3; c++)
        assert_true(fabsf(o[c] - (v[c] + v[3 + c] + v[6 + c] + v[9 + c] + v[12 + c]) / 5) < 1e-5F);
}

static void refused(const spk_attention *a, const char *why)
{
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .lse = lse, .scale = 1};
    assert_int_equal(spk_compute(context, NULL, a, &args, NULL), SPK_ERR_ARGUMENT);
    if (strstr(spk_last_error(context), why) == NULL)
        fail_msg("\"%s\" has no \"%s\"", spk_last_error(context), why);
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    const spk_attention good = {SPK_SIZED(spk_attention), .queries = 8, .keys = 8, .depth = 4, .heads = 4};
    spk_attention a;
#define REFUSE(field, value, why) \
    a = good;                     \
    a.field = value;              \
    refused(&a, why)
    REFUSE(queries, -1, "queries = -1: it cannot be negative");
    REFUSE(depth, INT64_C(1) << 41, "depth = 2199023255552: the limit is 2^40");
    REFUSE(heads_kv, 3, "heads_kv = 3: it must divide heads = 4");
    REFUSE(heads, -4, "heads = -4");
    REFUSE(sinks, 2, "sinks = 2: without window_left");
    REFUSE(window_left, -2, "window_left = -2");
    REFUSE(ldq, 3, "ldq = 3: a row has 4 elements");
    REFUSE(head_stride_o, 3, "head_stride_o = 3: heads of 32 elements would overlap");
    REFUSE(head_stride_lse, 7, "head_stride_lse = 7: heads of 8 elements would overlap");
    REFUSE(diagonal, (spk_diagonal)3, "diagonal = 3");
#undef REFUSE
    a = good;
    a.causal = 1;
    a.window_right = 2;
    refused(&a, "window_right = 2: with causal it must be 0");
    a = good;
    a.causal = 1;
    a.keys = 9;
    refused(&a, "diagonal = none with 8 queries and 9 keys");
    const spk_attention_args without_o = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .scale = 1},
                             over_v = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = v + 4, .scale = 1},
                             no_scale = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = NAN},
                             large = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = -1e300};
    assert_int_equal(spk_compute(context, NULL, &good, &without_o, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.o is NULL"));
    assert_int_equal(spk_compute(context, NULL, &good, &over_v, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.o"));
    assert_int_equal(spk_compute(context, NULL, &good, &no_scale, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.scale"));
    assert_int_equal(spk_compute(context, NULL, &good, &large, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.scale = -1e+300: it must be between -1e+38 and 1e+38, as sums are in float32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_the_definition),
        cmocka_unit_test(tiles_compute_as_the_reference),
        cmocka_unit_test(hidden_numbers_have_no_influence),
        cmocka_unit_test(equal_bits),
        cmocka_unit_test(empty_ones),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

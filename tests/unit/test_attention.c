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
    static const char *const choices[] = {"reference_attention", "attention_portable QUERIES=6", "attention_portable QUERIES=48",
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
        a.use_softcap = below(&rng, 4) == 0;
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

enum { REFERENCE, ROW };
static uint16_t from[3][MOST], to[2][MOST];
static float to_lse[2][MOST];
static const char *const pairs[] = {"attention_bf16_avx512 QUERIES=6 KEYS=64 SERIAL=0",
                                    "attention_bf16_avx512 QUERIES=48 KEYS=128 SERIAL=0", "attention_bf16_amx QUERIES=32 KEYS=128 SERIAL=0",
                                    "attention_bf16_amx QUERIES=96 KEYS=256 SERIAL=0"};
static const int64_t pairs_queries[] = {1, 48, 32, 96}; /* at least */

static bool is_tiled(int choice)
{
    return strstr(pairs[choice], "_amx") != NULL;
}

static float from_bf16(uint16_t number)
{
    float x;
    memcpy(&x, &(uint32_t){(uint32_t)number << 16}, sizeof x);
    return x;
}

static void put_bf16(uint16_t *to_number, double number)
{
    const float x = (float)number;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    *to_number = (uint16_t)(bits >> 16);
}

/* Both rows on from[], into to[] and to_lse[]. */
static void compute_both(const spk_attention *a, const char *choice, double scale, double softcap)
{
    for (int i = 0; i < 2; i++) {
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = i == ROW ? choice : "reference_attention"};
        const spk_attention_args args = {SPK_SIZED(spk_attention_args),
                                         .q = from[0],
                                         .k = from[1],
                                         .v = from[2],
                                         .o = to[i],
                                         .lse = to_lse[i],
                                         .scale = scale,
                                         .softcap = softcap};
        memset(to[i], 0xff, sizeof to[i]);
        memset(to_lse[i], 0xff, sizeof to_lse[i]);
        ok(spk_compute(context, NULL, a, &args, &pin));
    }
}

/* The rows of pairs of bfloat16 beside the reference, on the same numbers; some of V may be none. */
static void pairs_compute_as_the_reference(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 23);
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 40 : 160;
    for (int turn = 0; turn < turns; turn++) {
        const int choice = turn % 4;
        if (!can_run(pairs[choice]))
            continue;
        spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .batch = 1, .want_lse = 1};
        a.depth = is_tiled(choice) ? 32 + 32 * below(&rng, 3) : 1 + below(&rng, 149);
        a.depth_v = is_tiled(choice) ? 32 + 32 * below(&rng, 2) : 1 + below(&rng, 140);
        a.queries = pairs_queries[choice] + below(&rng, choice == 0 ? 20 : 60);
        a.keys = 1 + below(&rng, 300);
        a.heads_kv = 1 + below(&rng, 2);
        a.heads = a.heads_kv * (1 + below(&rng, 2));
        if (a.heads * a.queries * (a.depth > a.depth_v ? a.depth : a.depth_v) > MOST)
            a.heads = a.heads_kv;
        a.use_softcap = below(&rng, 4) == 0;
        a.diagonal = SPK_DIAGONAL_TOP_LEFT;
        a.causal = (int)below(&rng, 2);
        a.window_left = below(&rng, 2) * (1 + below(&rng, 90));
        a.sinks = a.window_left ? below(&rng, 2) * (1 + below(&rng, 40)) : 0;
        for (int i = 0; i < 3; i++)
            ok(spk_fill_random(context, SPK_BF16, MOST, (uint64_t)(3 * turn + i), from[i]));
        if (turn % 3 == 0)
            from[2][below(&rng, a.keys * a.depth_v)] = turn % 2 ? 0x7fc0 : 0x7f80;
        compute_both(&a, pairs[choice], turn % 5 == 0 ? -0.3 : 0.2, 2);
        for (int64_t i = 0; i < a.heads * a.queries * a.depth_v; i++) {
            const float got = from_bf16(to[ROW][i]), wanted = from_bf16(to[REFERENCE][i]);
            if (!(fabsf(got - wanted) <= 0.02f) && !(isnan(got) && isnan(wanted)) && got != wanted)
                fail_msg("turn %d, %s: O[%d] = %.9g, wanted %.9g", turn, pairs[choice], (int)i, (double)got, (double)wanted);
        }
        for (int64_t i = 0; i < a.heads * a.queries; i++)
            if (!(fabsf(to_lse[ROW][i] - to_lse[REFERENCE][i]) <= 2e-5f * (1 + fabsf(to_lse[REFERENCE][i]))) &&
                to_lse[ROW][i] != to_lse[REFERENCE][i])
                fail_msg("turn %d, %s: LSE[%d] = %.9g, wanted %.9g", turn, pairs[choice], (int)i, (double)to_lse[ROW][i],
                         (double)to_lse[REFERENCE][i]);
    }
}

/* Products that are denormal, of scores and of weights with V, and weights so small that those with V are: the instructions that take such
 * for 0 must not be used then. */
static void pairs_keep_denormal_products(void **state)
{
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        const int choice = turn % 4, what = turn / 4;
        const int64_t queries = turn % 4 == 0 ? 3 : 97;
        if (!can_run(pairs[choice]))
            continue;
        const spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .queries = queries, .keys = 70, .depth = 32, .want_lse = 1};
        const double q_unit[] = {0x1p-65, 1, 1}, k_unit[] = {0x1p-65, 0x1p-4, 1}, v_unit[] = {1, 0x1p-133, 0x1p-13},
                     scale[] = {0x1p126, 1, -80};
        memset(from, 0, sizeof from);
        for (int64_t i = 0; i < queries; i++)
            put_bf16(&from[0][i * 32 + i % 32], q_unit[what] * (what == 2 ? 1 : 1 + (double)(i % 5)));
        for (int64_t i = 0; i < 70; i++)
            for (int64_t d = 0; d < 32; d++) {
                put_bf16(&from[1][i * 32 + d], k_unit[what] * (what == 2 ? i != 1 : (double)((i + d) % 7)));
                put_bf16(&from[2][i * 32 + d], v_unit[what] * (what == 2 ? i != 1 : 1 + (double)(i % 7)));
            }
        compute_both(&a, pairs[choice], scale[what], 0);
        for (int64_t i = 0; i < queries * 32; i++) {
            const double got = from_bf16(to[ROW][i]), wanted = from_bf16(to[REFERENCE][i]);
            if (wanted <= 0 || fabs(got - wanted) > 0.02 * wanted + 0x1p-133)
                fail_msg("turn %d, %s: O[%d] = %a, wanted %a", turn, pairs[choice], (int)i, got, wanted);
        }
    }
}

/* What no query sees has no influence; what one sees alone, none on the others. */
static void hidden_numbers_have_no_influence(void **state)
{
    (void)state;
    enum { N = 200, D = 16 };
    static const char *const choices[] = {"reference_attention", "attention_portable QUERIES=48"};
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

static void check_all(const spk_attention *a, const mask *m, const setting *s)
{
    for (int64_t head = 0; head < a->heads; head++)
        for (int64_t query = 0; query < a->queries; query++)
            check_query(a, m, s, 0, head, query);
    memset(o, 0xff, sizeof o);
    memset(lse, 0xff, sizeof lse);
}

/* The calls with the structs' types, without a mask and with one: blocks of 4 x 4, of which the first row has one and the second both. */
static void typed_calls(void **state)
{
    (void)state;
    static mask blocks = {.height = 4, .width = 4, .lists = 1, .down = 2, .across = 2, .stored = {true, false, true, true}};
    const int32_t offsets[] = {0, 1, 3}, columns[] = {0, 0, 1};
    const spk_attention a = {SPK_SIZED(spk_attention), .batch = 1, .heads = 2, .queries = 6, .keys = 7, .depth = 5, .want_lse = 1};
    const setting s = {.scale = 0.5};
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    spk_attention_args args = spk_attention_args_make(s.scale);
    ok(spk_pattern_create(context,
                          &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = a.queries, .cols = a.keys, .block_rows = 4,
                                             .block_cols = 4, .nnzb = 3, .row_offsets = offsets, .col_indices = columns},
                          &blocks.pattern));
    ok(spk_fill_random(context, SPK_F32, MOST, 4, q));
    ok(spk_fill_random(context, SPK_F32, MOST, 5, k));
    ok(spk_fill_random(context, SPK_F32, MOST, 6, v));
    args.q = q;
    args.k = k;
    args.v = v;
    args.o = o;
    args.lse = lse;
    for (int masked = 0; masked <= 1; masked++) {
        const mask *m = masked ? &blocks : NULL;
        spk_pattern *pattern = masked ? blocks.pattern : NULL;
        spk_plan *plan = NULL;
        ok(spk_plan_create_attention(context, pattern, &a, &estimate, &plan));
        ok(spk_plan_run_attention(plan, &args, NULL));
        spk_plan_destroy(&plan);
        check_all(&a, m, &s);
        ok(spk_compute_attention(context, pattern, &a, &args, &estimate));
        check_all(&a, m, &s);
    }
    spk_pattern_destroy(&blocks.pattern);
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
        cmocka_unit_test(pairs_compute_as_the_reference),
        cmocka_unit_test(pairs_keep_denormal_products),
        cmocka_unit_test(hidden_numbers_have_no_influence),
        cmocka_unit_test(equal_bits),
        cmocka_unit_test(empty_ones),
        cmocka_unit_test(typed_calls),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

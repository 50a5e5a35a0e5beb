/* Attention under a mask of blocks, against an answer that the test computes itself: blocks of any size, lists for each head and item, with
 * causal, windows and sinks; numbers in hidden keys that are none; and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_masks.h"

static const char *const choices[] = {"reference_attention",
                                      "attention_portable QUERIES=6",
                                      "attention_portable QUERIES=48",
                                      "attention_avx2 QUERIES=6 KEYS=64",
                                      "attention_avx2 QUERIES=48 KEYS=64",
                                      "attention_avx512 QUERIES=6 KEYS=128",
                                      "attention_avx512 QUERIES=48 KEYS=64"};
enum { CHOICES = sizeof choices / sizeof *choices };

static void fill(void)
{
    ok(spk_fill_random(context, SPK_F32, MOST, 1, q));
    ok(spk_fill_random(context, SPK_F32, MOST, 2, k));
    ok(spk_fill_random(context, SPK_F32, MOST, 3, v));
}

/* NaN and infinities in the keys that no query of any head sees. */
static void hide(const spk_attention *a, const mask *m, bool by_row)
{
    const int64_t heads_kv = a->heads_kv, depth_v = a->depth_v ? a->depth_v : a->depth;
    for (int64_t item = 0; item < a->batch; item++)
        for (int64_t head = 0; head < heads_kv; head++)
            for (int64_t key = 0; key < a->keys; key++) {
                bool seen = false;
                for (int64_t h = head * (a->heads / heads_kv); h < (head + 1) * (a->heads / heads_kv); h++)
                    for (int64_t query = 0; query < a->queries && !seen; query++)
                        seen = sees(a, m, item, h, query, key);
                for (int64_t d = 0; d < a->depth && !seen; d++)
                    k[place(by_row, item, head, key, heads_kv, a->keys, a->depth) + d] = d % 2 ? INFINITY : NAN;
                for (int64_t d = 0; d < depth_v && !seen; d++)
                    v[place(by_row, item, head, key, heads_kv, a->keys, depth_v) + d] = d % 2 ? NAN : -INFINITY;
            }
}

static void computes_the_definition(void **state)
{
    (void)state;
    spk_rng_seed(&rng, 77);
    fill();
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 8 : 60;
    for (int turn = 0; turn < turns * CHOICES; turn++) {
        const char *choice = choices[turn % CHOICES];
        const spk_attention a = draw_problem();
        const setting s = {.by_row = below(2) == 1, .scale = 0.6 - 0.003 * (double)turn, .softcap = 3};
        const bool hides = below(3) == 0;
        if (!can_run(choice))
            continue;
        draw_mask(&made, &a);
        if (hides)
            hide(&a, &made, s.by_row);
        check(a, &made, &s, choice);
        spk_pattern_destroy(&made.pattern);
        if (hides)
            fill();
    }
}

/* What a query sees where packed sequences are of equal length. */
static bool sees_within(const spk_attention *a, int64_t head, int64_t query, int64_t key)
{
    const int64_t count = a->sequences ? a->sequences : 1, queries = a->queries / count, keys = a->keys / count;
    if (query / queries != key / keys ||
        !made.stored[(list_of(a, 0, head) * made.down + query / made.height) * made.across + key / made.width])
        return false;
    spk_attention own = *a;
    own.queries = queries;
    own.keys = keys;
    return sees(&own, NULL, 0, head, query % queries, key % keys);
}

/* The operations that are told are of the pairs that the mask, the limits and the sequences keep. */
static void counts_the_pairs_that_are_kept(void **state)
{
    (void)state;
    spk_rng_seed(&rng, 78);
    for (int turn = 0; turn < (getenv("SPARSEK_TEST_QUICK") != NULL ? 20 : 200); turn++) {
        spk_attention a = draw_problem();
        spk_problem_info info = {SPK_SIZED(spk_problem_info)};
        double pairs = 0;
        a.batch = 1;
        a.mask_items = 0;
        if (turn % 4 != 0) {
            a.sequences = 1 + below(5);
            a.queries = a.sequences * (1 + below(40));
            a.keys = a.sequences * (1 + below(40));
        }
        if (a.keys == 0)
            continue;
        draw_mask(&made, &a);
        for (int64_t head = 0; head < a.heads; head++)
            for (int64_t query = 0; query < a.queries; query++)
                for (int64_t key = 0; key < a.keys; key++)
                    pairs += sees_within(&a, head, query, key);
        ok(spk_problem_get_info(context, made.pattern, &a, &info));
        const double wanted = 2 * pairs * (double)(a.depth + (a.depth_v ? a.depth_v : a.depth));
        if (fabs(info.flops - wanted) > 1e-9 * wanted)
            fail_msg("turn %d: %.17g operations, wanted %.17g", turn, info.flops, wanted);
        spk_pattern_destroy(&made.pattern);
    }
}

/* One block row after another that is empty, and a mask of nothing. */
static void rows_without_keys(void **state)
{
    (void)state;
    const spk_attention a = {
        SPK_SIZED(spk_attention), .batch = 1, .queries = 100, .keys = 70, .heads = 2, .heads_kv = 2, .depth = 8, .want_lse = 1};
    fill();
    for (int c = 0; c < CHOICES; c++)
        for (int some = 0; some < 2; some++) {
            if (!can_run(choices[c]))
                continue;
            made.height = made.width = 32;
            made.lists = 1;
            made.down = 4;
            made.across = 3;
            for (int i = 0; i < 12; i++)
                made.stored[i] = some && i / 3 == 2 && i % 3 == 2;
            make_pattern(&made, a.queries, a.keys, false);
            hide(&a, &made, false);
            check(a, &made, &(setting){.scale = 0.3}, choices[c]);
            for (int i = 0; i < 100; i++)
                assert_true((isinf(lse[i]) != 0) == !(some && i >= 64 && i < 96));
            spk_pattern_destroy(&made.pattern);
            fill();
        }
}

/* A key that some block rows hide holds NaN: the others do not notice. */
static void what_others_see_does_not_matter(void **state)
{
    (void)state;
    enum { N = 192, D = 16 };
    const spk_attention a = {SPK_SIZED(spk_attention), .batch = 1, .queries = N, .keys = N, .heads = 1, .depth = D};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = 0.3};
    static float before[N * D];
    for (int c = 0; c < CHOICES; c++) {
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choices[c]};
        if (!can_run(choices[c]))
            continue;
        made.height = made.width = 16;
        made.lists = 1;
        made.down = made.across = 12;
        for (int i = 0; i < 144; i++)
            made.stored[i] = i % 12 != 5 || i / 12 % 2 == 1; /* odd block rows see block column 5 */
        make_pattern(&made, N, N, true);
        fill();
        ok(spk_compute(context, made.pattern, &a, &args, &pin));
        memcpy(before, o, sizeof before);
        for (int d = 0; d < 16 * D; d++) {
            k[80 * D + d] = NAN;
            v[80 * D + d] = NAN;
        }
        ok(spk_compute(context, made.pattern, &a, &args, &pin));
        for (int i = 0; i < N * D; i++)
            if (i / D / 16 % 2 == 1)
                assert_true(isnan(o[i]));
            else
                assert_true(o[i] == before[i]);
        spk_pattern_destroy(&made.pattern);
    }
    fill();
}

/* The same bits on every run; a mask of all blocks keeps all pairs. */
static void equal_bits_and_all_blocks(void **state)
{
    (void)state;
    const spk_attention a = {SPK_SIZED(spk_attention), .batch = 1, .queries = 300, .keys = 300, .heads = 3, .heads_kv = 3, .depth = 32};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .scale = 0.3};
    const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = "attention_portable QUERIES=48 KEYS=64 SERIAL=0"};
    static float before[300 * 32 * 3];
    spk_problem_info whole = {SPK_SIZED(spk_problem_info)}, masked = whole;
    made.height = 32;
    made.width = 64;
    made.lists = 1;
    made.down = 10;
    made.across = 5;
    for (int i = 0; i < 50; i++)
        made.stored[i] = true;
    make_pattern(&made, 300, 300, true);
    ok(spk_problem_get_info(context, NULL, &a, &whole));
    ok(spk_problem_get_info(context, made.pattern, &a, &masked));
    assert_true(whole.flops == masked.flops && whole.dense_flops == masked.dense_flops && whole.flops == 2.0 * 300 * 300 * 64 * 3);
    ok(spk_compute(context, made.pattern, &a, &args, &pin));
    memcpy(before, o, sizeof before);
    const int runs = getenv("SPARSEK_TEST_QUICK") != NULL ? 5 : 100;
    for (int run = 0; run < runs; run++) {
        memset(o, 0xff, sizeof before);
        ok(spk_compute(context, made.pattern, &a, &args, &pin));
        assert_memory_equal(o, before, sizeof before);
    }
    spk_pattern_destroy(&made.pattern);
}

/* FLOPs are those of the pairs that count. */
static void flops_are_of_pairs(void **state)
{
    (void)state;
    spk_rng_seed(&rng, 5);
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 8 : 60;
    for (int turn = 0; turn < turns; turn++) {
        const spk_attention a = draw_problem();
        spk_problem_info info = {SPK_SIZED(spk_problem_info)};
        int64_t pairs = 0, of_band = 0;
        draw_mask(&made, &a);
        ok(spk_problem_get_info(context, made.pattern, &a, &info));
        spk_attention open = a;
        spk_problem_info without = {SPK_SIZED(spk_problem_info)};
        open.mask_heads = open.mask_items = 0;
        ok(spk_problem_get_info(context, NULL, &open, &without));
        for (int64_t item = 0; item < a.batch; item++)
            for (int64_t head = 0; head < a.heads; head++)
                for (int64_t query = 0; query < a.queries; query++)
                    for (int64_t key = 0; key < a.keys; key++) {
                        pairs += sees(&a, &made, item, head, query, key);
                        of_band += sees(&a, NULL, item, head, query, key);
                    }
        const double each = 2.0 * (double)(a.depth + (a.depth_v ? a.depth_v : a.depth));
        assert_true(fabs(info.flops - each * (double)pairs) <= 1e-9 * each * (double)pairs);
        assert_true(fabs(without.flops - each * (double)of_band) <= 1e-9 * each * (double)of_band);
        spk_pattern_destroy(&made.pattern);
    }
}

static void refused(const spk_attention *a, const char *why)
{
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .lse = lse, .scale = 1};
    assert_int_equal(spk_compute(context, made.pattern, a, &args, NULL), SPK_ERR_ARGUMENT);
    if (strcmp(spk_last_error(context), why) != 0)
        fail_msg("\"%s\" is not \"%s\"", spk_last_error(context), why);
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    const spk_attention good = {SPK_SIZED(spk_attention), .batch = 2, .queries = 20, .keys = 24, .heads = 4, .heads_kv = 2, .depth = 4};
    spk_attention a = good;
    a.mask_heads = 2;
    refused(&a, "mask_heads = 2: there is no pattern");
    a = good;
    a.mask_items = 2;
    refused(&a, "mask_items = 2: there is no pattern");
    memset(made.stored, 1, sizeof made.stored);
    made.height = made.width = 8;
    made.lists = 1;
    made.down = made.across = 3;
    make_pattern(&made, 20, 24, true);
    a = good;
    a.mask_heads = 3;
    refused(&a, "mask_heads = 3: it is 1, heads_kv = 2 or heads = 4");
    a.mask_heads = -1;
    refused(&a, "mask_heads = -1: it cannot be negative");
    a = good;
    a.mask_items = 3;
    refused(&a, "mask_items = 3: it is 1 or batch = 2");
    a.mask_items = -7;
    refused(&a, "mask_items = -7: it cannot be negative");
    a = good;
    a.keys = 25;
    refused(&a, "the pattern has 24 columns: keys = 25");
    a = good;
    a.queries = 21;
    refused(&a, "the pattern has 20 rows: 1 list of 21 queries, in blocks of 8, want 21");
    a = good;
    a.mask_heads = 2;
    refused(&a, "the pattern has 20 rows: 2 lists of 20 queries, in blocks of 8, want 48; mask_heads times mask_items = 1 would fit");
    a.mask_heads = 4;
    a.mask_items = 2;
    refused(&a, "the pattern has 20 rows: 8 lists of 20 queries, in blocks of 8, want 192; mask_heads times mask_items = 1 would fit");
    a = good; /* the mask's own limit is all that is wrong with these */
    a.queries = 17;
    refused(&a, "the pattern has 20 rows: 1 list of 17 queries, in blocks of 8, want 17");
    spk_pattern_destroy(&made.pattern);
}

/* Lists that end with the last one's queries, and whole ones; no queries, no keys. */
static void empty_ones(void **state)
{
    (void)state;
    spk_attention a = {SPK_SIZED(spk_attention), .batch = 1, .queries = 3, .keys = 0, .heads = 1, .depth = 4, .want_lse = 1};
    made.height = made.width = 16;
    made.lists = 1;
    made.down = 1;
    made.across = 0;
    make_pattern(&made, 3, 0, true);
    check(a, &made, &(setting){.scale = 1}, NULL);
    spk_pattern_destroy(&made.pattern);
    a.queries = 0;
    a.keys = 5;
    made.down = 0;
    made.across = 1;
    make_pattern(&made, 0, 5, true);
    check(a, &made, &(setting){.scale = 1}, NULL);
    spk_pattern_destroy(&made.pattern);
}

/* A tuned plan of a masked problem, whose items have lists of their own; what the second run takes comes from the plan cache. */
static void is_tuned(void **state)
{
    (void)state;
    spk_rng_seed(&rng, 6);
    spk_attention a = {SPK_SIZED(spk_attention), .batch = 2, .queries = 90, .keys = 110, .heads = 2, .heads_kv = 1, .depth = 16};
    a.mask_heads = 2;
    a.mask_items = 2;
    fill();
    draw_mask(&made, &a);
    for (int run = 0; run < 2; run++)
        check(a, &made, &(setting){.scale = 0.25}, NULL);
    spk_pattern_destroy(&made.pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_the_definition),
        cmocka_unit_test(counts_the_pairs_that_are_kept),
        cmocka_unit_test(rows_without_keys),
        cmocka_unit_test(what_others_see_does_not_matter),
        cmocka_unit_test(equal_bits_and_all_blocks),
        cmocka_unit_test(flops_are_of_pairs),
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(empty_ones),
        cmocka_unit_test(is_tuned),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

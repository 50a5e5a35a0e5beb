/* Attention whose sequences, lengths, pages and tiles of bits are among the arguments of a run: against the words of sparsek.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

#include "base/rng.h"
#include "context_case.h"

enum { D = 8, MOST_ROWS = 600, MOST_INDEX = 600, MOST_BLOCKS = 256, HEADS = 2 };

static float q[MOST_ROWS * D * HEADS], k[MOST_ROWS * D * HEADS], v[MOST_ROWS * D * HEADS], o[MOST_ROWS * D * HEADS];
static int32_t query_ends[MOST_INDEX], key_ends[MOST_INDEX], page_table[MOST_INDEX], tile_numbers[MOST_BLOCKS], tile_bits[4096];
static int64_t row_offsets[MOST_BLOCKS], columns[MOST_BLOCKS];

static int64_t below(spk_rng *rng, int64_t limit)
{
    return (int64_t)spk_rng_below(rng, (uint64_t)limit);
}

static spk_attention_args arguments(void)
{
    return (spk_attention_args){SPK_SIZED(spk_attention_args),
                                .q = q,
                                .k = k,
                                .v = v,
                                .o = o,
                                .scale = 0.4,
                                .query_ends = query_ends,
                                .key_ends = key_ends,
                                .page_table = page_table,
                                .tile_numbers = tile_numbers,
                                .tile_bits = tile_bits};
}

/* ---- the definition */

typedef struct case_of {
    spk_attention a;
    bool masked;
    int height, width; /* of a block */
} case_of;

/* Whether block column of the key is listed in the block row of the query, and its tile of bits keeps the pair. */
static bool in_mask(const case_of *c, int64_t query, int64_t key)
{
    const int64_t row = query / c->height, words = (c->width + 31) / 32;
    for (int64_t e = row_offsets[row]; c->masked && e < row_offsets[row + 1]; e++) {
        if (columns[e] != key / c->width)
            continue;
        if (c->a.tiles == 0 || tile_numbers[e] < 0)
            return true;
        const int64_t line = (int64_t)tile_numbers[e] * c->height + query % c->height, bit = key % c->width;
        return ((uint32_t)tile_bits[line * words + bit / 32] >> (bit % 32) & 1) != 0;
    }
    return !c->masked;
}

/* Whether a query (of the whole array) sees key `key` of its own sequence or item, which has `keys` of them and `queries` queries, of which
 * it is number `number`. */
static bool in_band(const spk_attention *a, int64_t number, int64_t queries, int64_t key, int64_t keys)
{
    const int64_t beside = number + (a->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? keys - queries : 0);
    return (!a->causal || key <= beside) && (!a->window_left || key > beside - a->window_left || key < a->sinks);
}

static void check_query(const case_of *c, int64_t item, int64_t head, int64_t query, int64_t q_begin, int64_t q_end, int64_t k_begin,
                        int64_t keys, const int32_t *table)
{
    const spk_attention *a = &c->a;
    const int64_t rows = a->page_keys ? a->pages * a->page_keys : a->keys;
    const float *row = q + ((item * HEADS + head) * a->queries + query) * D;
    double sum = 0, wanted[D] = {0};
    for (int64_t key = 0; key < keys; key++) {
        if (!in_band(a, query - q_begin, q_end - q_begin, key, keys) || !in_mask(c, query, k_begin + key))
            continue;
        const int64_t at = (((a->page_keys ? 0 : item) * HEADS + head) * rows +
                            (table ? table[key / a->page_keys] * a->page_keys + key % a->page_keys : k_begin + key)) *
                           D;
        double score = 0;
        for (int d = 0; d < D; d++)
            score += (double)row[d] * k[at + d] * 0.4;
        sum += exp(score);
        for (int d = 0; d < D; d++)
            wanted[d] += exp(score) * v[at + d];
    }
    for (int d = 0; d < D; d++) {
        const double got = o[((item * HEADS + head) * a->queries + query) * D + d], want = sum > 0 ? wanted[d] / sum : 0;
        if (!(fabs(got - want) < 1e-4))
            fail_msg("O[%d,%d,%d,%d] = %.9g, wanted %.9g", (int)item, (int)head, (int)query, d, got, want);
    }
}

static void check_all(const case_of *c)
{
    const spk_attention *a = &c->a;
    const int64_t pages = a->page_keys ? (a->keys + a->page_keys - 1) / a->page_keys : 0, items = a->sequences ? 1 : a->batch;
    for (int64_t item = 0; item < items; item++)
        for (int64_t s = 0; s < (a->sequences ? a->sequences : 1); s++) {
            const int64_t q_begin = a->sequences && s > 0 ? query_ends[s - 1] : 0, q_end = a->sequences ? query_ends[s] : a->queries,
                          k_begin = a->sequences && s > 0 && !pages ? key_ends[s - 1] : 0,
                          keys = a->sequences     ? key_ends[s] - k_begin
                                 : a->key_lengths ? key_ends[item]
                                                  : a->keys;
            for (int64_t head = 0; head < HEADS; head++)
                for (int64_t query = q_begin; query < q_end; query++)
                    check_query(c, item, head, query, q_begin, q_end, k_begin, keys, pages ? page_table + (item + s) * pages : NULL);
        }
}

/* ---- drawing */

static void draw_ends(spk_rng *rng, int64_t count, int64_t whole, int32_t *ends)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = i > 0 ? ends[i - 1] : 0;
        ends[i] = (int32_t)(i + 1 == count ? whole : begin + below(rng, (whole - begin) / 2 + 1));
    }
}

static void draw_mask(spk_rng *rng, case_of *c, spk_pattern **pattern)
{
    const int64_t down = (c->a.queries + c->height - 1) / c->height, across = (c->a.keys + c->width - 1) / c->width;
    int64_t count = 0;
    for (int64_t row = 0; row < down; row++) {
        row_offsets[row] = count;
        for (int64_t column = 0; column < across; column++)
            if (below(rng, 2))
                columns[count++] = column;
    }
    row_offsets[down] = count;
    for (int64_t e = 0; e < count; e++)
        tile_numbers[e] = (int32_t)(below(rng, 4) - 1);
    for (size_t w = 0; w < sizeof tile_bits / sizeof *tile_bits; w++)
        tile_bits[w] = (int32_t)(uint32_t)spk_rng_next(rng);
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = c->a.queries,   .cols = c->a.keys,
                                     .block_rows = c->height,    .block_cols = c->width, .nnzb = count,
                                     .row_offsets = row_offsets, .col_indices = columns, .index_type = SPK_INDEX_I64};
    ok(spk_pattern_create(context, &indices, pattern));
    c->a.tiles = below(rng, 2) ? 3 : 0;
}

static void draw_indices(spk_rng *rng, const spk_attention *a)
{
    const int64_t owners = a->sequences ? a->sequences : a->batch, pages = a->page_keys ? (a->keys + a->page_keys - 1) / a->page_keys : 0;
    if (a->sequences)
        draw_ends(rng, a->sequences, a->queries, query_ends);
    if (a->sequences && !a->page_keys)
        draw_ends(rng, a->sequences, a->keys, key_ends);
    else
        for (int64_t i = 0; i < owners; i++)
            key_ends[i] = (int32_t)below(rng, a->keys + 1);
    for (int64_t i = 0; i < owners * pages; i++)
        page_table[i] = (int32_t)below(rng, a->pages);
}

static case_of draw_case(spk_rng *rng)
{
    case_of c = {.a = {SPK_SIZED(spk_attention), .queries = 30 + below(rng, 50), .keys = 30 + below(rng, 50), .depth = D, .heads = HEADS,
                       .batch = 1 + below(rng, 3)}};
    c.height = (int)(5 + below(rng, 30));
    c.width = (int)(5 + below(rng, 40));
    c.masked = below(rng, 2) == 1;
    if (below(rng, 2)) {
        c.a.sequences = 1 + below(rng, 7);
        c.a.batch = 1;
    } else
        c.a.key_lengths = (int)below(rng, 2);
    if (below(rng, 2)) {
        c.a.page_keys = 3 + below(rng, 30);
        c.a.pages = 1 + below(rng, 6);
    }
    c.a.diagonal = (spk_diagonal)(1 + below(rng, 2));
    c.a.causal = (int)below(rng, 2);
    c.a.window_left = below(rng, 2) * (1 + below(rng, 20));
    c.a.sinks = c.a.window_left ? below(rng, 6) : 0;
    return c;
}

static bool has_isa(const char *name)
{
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    bool has = false;
    ok(spk_context_get_device(context, &device));
    for (int i = 0; i < device.isa_count; i++)
        has = has || strcmp(device.isa[i], name) == 0;
    return has;
}

/* One plan, whose index arrays change from run to run. */
static void computes_the_definition(void **state)
{
    (void)state;
    static const char *const choices[] = {"reference_attention", "attention_portable QUERIES=6 KEYS=64", "attention_avx2 QUERIES=6"};
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 40 : 300;
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    ok(spk_fill_random(context, SPK_F32, MOST_ROWS * D * HEADS, 1, q));
    ok(spk_fill_random(context, SPK_F32, MOST_ROWS * D * HEADS, 2, k));
    ok(spk_fill_random(context, SPK_F32, MOST_ROWS * D * HEADS, 3, v));
    for (int turn = 0; turn < turns; turn++) {
        const char *choice = choices[turn % 3];
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choice};
        const spk_attention_args args = arguments();
        case_of c = draw_case(&rng);
        spk_pattern *pattern = NULL;
        spk_plan *plan = NULL;
        if (strstr(choice, "avx2") != NULL && !has_isa("avx2"))
            continue;
        if (c.masked)
            draw_mask(&rng, &c, &pattern);
        ok(spk_plan_create(context, pattern, &c.a, &pin, &plan));
        for (int run = 0; run < 2; run++) {
            draw_indices(&rng, &c.a);
            memset(o, 0xff, sizeof o);
            ok(spk_plan_run(plan, &args, NULL));
            check_all(&c);
        }
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
    }
}

/* Behind the last end nothing is written, and NaN there, in a page's slack and in hidden pairs has no influence. */
static void nothing_behind_the_end(void **state)
{
    (void)state;
    const spk_attention packed = {SPK_SIZED(spk_attention), .queries = 40, .keys = 50, .depth = D, .sequences = 2},
                        paged = {SPK_SIZED(spk_attention), .queries = 9,    .keys = 32, .depth = D,
                                 .key_lengths = 1,         .page_keys = 16, .pages = 3};
    const spk_attention_args args = arguments();
    query_ends[0] = 10, query_ends[1] = 30;
    key_ends[0] = 20, key_ends[1] = 41;
    for (int i = 0; i < 50 * D; i++)
        q[i] = k[i] = v[i] = 0.5F;
    for (int i = 41 * D; i < 50 * D; i++)
        k[i] = v[i] = NAN;
    memset(o, 0xff, sizeof o);
    ok(spk_compute(context, NULL, &packed, &args, NULL));
    for (int i = 0; i < 40 * D; i++)
        assert_true(i < 30 * D ? fabsf(o[i] - 0.5F) < 1e-6F : isnan(o[i]));
    for (int i = 0; i < 48 * D; i++)
        k[i] = v[i] = NAN; /* three pages, of which the last is used, and of the first some rows */
    for (int i = 32 * D; i < 48 * D; i++)
        k[i] = v[i] = 2;
    for (int i = 0; i < 4 * D; i++)
        k[i] = v[i] = 2;
    key_ends[0] = 20;
    page_table[0] = 2, page_table[1] = 0;
    ok(spk_compute(context, NULL, &paged, &args, NULL));
    for (int i = 0; i < 9 * D; i++)
        assert_true(fabsf(o[i] - 2) < 1e-5F);
    key_ends[0] = 16;
    page_table[1] = -7; /* of no key */
    ok(spk_compute(context, NULL, &paged, &args, NULL));
}

static void refused(const spk_attention *a, const char *why)
{
    const spk_attention_args args = arguments();
    assert_int_equal(spk_compute(context, NULL, a, &args, NULL), SPK_ERR_ARGUMENT);
    if (strstr(spk_last_error(context), why) == NULL)
        fail_msg("\"%s\" has no \"%s\"", spk_last_error(context), why);
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    const spk_attention good = {SPK_SIZED(spk_attention), .queries = 20, .keys = 20, .depth = D};
    spk_attention a = good;
    a.sequences = 2;
    query_ends[0] = 12, query_ends[1] = 11;
    key_ends[0] = 10, key_ends[1] = 20;
    refused(&a, "args.query_ends[1] = 11: the sequence begins at 12, and there are 20 queries");
    query_ends[1] = 20;
    key_ends[1] = 21;
    refused(&a, "args.key_ends[1] = 21: the sequence begins at 10, and there are 20 keys");
    a.batch = 2;
    refused(&a, "batch = 2 with sequences = 2");
    a = good;
    a.sequences = -1;
    refused(&a, "sequences = -1");
    a.sequences = INT64_C(1) << 31; /* pages of all of them are counted in 64 bits */
    refused(&a, "sequences = 2147483648");
    a = good;
    a.key_lengths = 1;
    key_ends[0] = 21;
    refused(&a, "args.key_ends[0] = 21: the limits are 0 and keys = 20");
    key_ends[0] = 20;
    a.causal = 1;
    refused(&a, "diagonal = none with 20 queries and 20 keys");
    a = good;
    a.page_keys = 8;
    refused(&a, "page_keys = 8 with pages = 0");
    a.pages = 2;
    page_table[0] = 0, page_table[1] = 2, page_table[2] = 1;
    key_ends[0] = 0; /* which this problem does not have */
    refused(&a, "args.page_table[1] = 2: the limits are 0 and pages - 1 = 1");
    a.stride_k = 800;
    refused(&a, "stride_k = 800: all items share the pages");
    a = good;
    a.tiles = 1;
    refused(&a, "tiles = 1: there is no pattern");
    a = good;
    a.assume_finite = 2;
    refused(&a, "assume_finite = 2: the values are 0..1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_the_definition),
        cmocka_unit_test(nothing_behind_the_end),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

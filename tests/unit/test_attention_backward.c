/* Gradients of attention through the public calls: against differences of a loss that the test computes itself, under bands, masks of
 * blocks, shared heads, a soft cap and a loss that depends on LSE; what is hidden; equal bits; what is refused. */
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
#include "type/half.h"

static const char *const choices[] = {"reference_attention_backward",
                                      "attention_backward_portable QUERIES=6 SHARES=1",
                                      "attention_backward_portable QUERIES=48 SHARES=2",
                                      "attention_backward_avx2 QUERIES=6 KEYS=64 SHARES=4",
                                      "attention_backward_avx2 QUERIES=48 KEYS=128 SHARES=1",
                                      "attention_backward_avx512 QUERIES=6 KEYS=128 SHARES=2",
                                      "attention_backward_avx512 QUERIES=48 KEYS=64 SHARES=1"};
enum { CHOICES = sizeof choices / sizeof *choices };

static float grad_o[MOST], grad_lse[MOST], grad_q[MOST], grad_k[MOST], grad_v[MOST];

static int64_t depth_v_of(const spk_attention *a)
{
    return a->depth_v ? a->depth_v : a->depth;
}

/* An array of which an element is moved, as numbers of more digits. */
static struct {
    const float *array;
    int64_t element;
    double by;
} moved;

static double number(const float *array, int64_t element)
{
    return array[element] + (array == moved.array && element == moved.element ? moved.by : 0);
}

/* What a query adds to the loss: the sum of grad_O O and of grad_LSE LSE. */
static double loss_of(const spk_attention *a, const mask *m, const setting *s, int64_t item, int64_t head, int64_t query, bool with_lse)
{
    const int64_t head_kv = head / (a->heads / a->heads_kv), depth_v = depth_v_of(a);
    const int64_t row = place(s->by_row, item, head, query, a->heads, a->queries, a->depth),
                  out = place(s->by_row, item, head, query, a->heads, a->queries, depth_v);
    double sum = 0, along = 0;
    for (int64_t key = 0; key < a->keys; key++) {
        const int64_t other = place(s->by_row, item, head_kv, key, a->heads_kv, a->keys, a->depth),
                      value = place(s->by_row, item, head_kv, key, a->heads_kv, a->keys, depth_v);
        double score = 0;
        if (!sees(a, m, item, head, query, key))
            continue;
        for (int64_t d = 0; d < a->depth; d++)
            score += number(q, row + d) * number(k, other + d);
        score *= s->scale;
        score = exp(a->use_softcap ? s->softcap * tanh(score / s->softcap) : score);
        sum += score;
        for (int64_t c = 0; c < depth_v; c++)
            along += score * number(v, value + c) * grad_o[out + c];
    }
    if (sum == 0)
        return 0;
    return along / sum + (with_lse ? log(sum) * grad_lse[(item * a->heads + head) * a->queries + query] : 0);
}

static double loss(const spk_attention *a, const mask *m, const setting *s, int64_t item, int64_t head_kv, bool with_lse)
{
    const int64_t sharing = a->heads / a->heads_kv;
    double sum = 0;
    for (int64_t head = head_kv * sharing; head < (head_kv + 1) * sharing; head++)
        for (int64_t query = 0; query < a->queries; query++)
            sum += loss_of(a, m, s, item, head, query, with_lse);
    return sum;
}

/* Some elements of a gradient, of a head of K and V. */
static void check_some(const spk_attention *a, const mask *m, const setting *s, bool with_lse, const char *name, const float *array,
                       const float *gradient, int64_t heads, int64_t rows, int64_t cols)
{
    const double step = 1e-4;
    for (int times = 0; times < 4 && rows > 0; times++) {
        const int64_t item = below(a->batch), head = below(heads), row = below(rows), col = below(cols);
        const int64_t element = place(s->by_row, item, head, row, heads, rows, cols) + col,
                      head_kv = heads == a->heads_kv ? head : head / (a->heads / a->heads_kv);
        moved.array = array;
        moved.element = element;
        moved.by = step;
        const double more = loss(a, m, s, item, head_kv, with_lse);
        moved.by = -step;
        const double want = (more - loss(a, m, s, item, head_kv, with_lse)) / (2 * step), got = gradient[element];
        moved.array = NULL;
        if (!(fabs(got - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s[%d,%d,%d,%d] = %.9g, wanted %.9g", name, (int)item, (int)head, (int)row, (int)col, got, want);
    }
}

/* The gradients' description and arguments, of attention's. */
static spk_attention_backward backward_of(const spk_attention *a)
{
    spk_attention_backward b = {SPK_SIZED(spk_attention_backward)};
#define TAKE(member) b.member = a->member
    TAKE(dtype), TAKE(queries), TAKE(keys), TAKE(depth), TAKE(depth_v), TAKE(batch), TAKE(heads), TAKE(heads_kv), TAKE(diagonal);
    TAKE(causal), TAKE(window_left), TAKE(window_right), TAKE(sinks), TAKE(use_softcap), TAKE(mask_heads), TAKE(mask_items), TAKE(ldq);
    TAKE(ldk), TAKE(ldv), TAKE(ldo), TAKE(head_stride_q), TAKE(head_stride_k), TAKE(head_stride_v), TAKE(head_stride_o);
    TAKE(sequences), TAKE(key_lengths), TAKE(tiles);
    b.ld_grad_o = a->ldo;
    b.ld_grad_q = a->ldq;
    b.ld_grad_k = a->ldk;
    b.ld_grad_v = a->ldv;
    b.head_stride_grad_o = a->head_stride_o;
    b.head_stride_grad_q = a->head_stride_q;
    b.head_stride_grad_k = a->head_stride_k;
    b.head_stride_grad_v = a->head_stride_v;
    return b;
}

static spk_attention_backward_args backward_args(const setting *s)
{
    return (spk_attention_backward_args){SPK_SIZED(spk_attention_backward_args),
                                         .q = q,
                                         .k = k,
                                         .v = v,
                                         .o = o,
                                         .lse = lse,
                                         .grad_o = grad_o,
                                         .grad_lse = grad_lse,
                                         .grad_q = grad_q,
                                         .grad_k = grad_k,
                                         .grad_v = grad_v,
                                         .scale = s->scale,
                                         .softcap = s->softcap};
}

static void go_back(const spk_attention *a, const mask *m, const setting *s, bool with_lse, const char *choice)
{
    const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choice};
    const spk_attention_backward_args args = backward_args(s);
    spk_attention_backward b = backward_of(a);
    b.use_grad_lse = with_lse;
    memset(grad_q, 0xff, sizeof grad_q);
    memset(grad_k, 0xff, sizeof grad_k);
    memset(grad_v, 0xff, sizeof grad_v);
    ok(spk_compute(context, m ? m->pattern : NULL, &b, &args, &pin));
}

static void fill(void)
{
    float *const arrays[] = {q, k, v, grad_o, grad_lse};
    for (int i = 0; i < 5; i++)
        ok(spk_fill_random(context, SPK_F32, MOST, (uint64_t)i + 1, arrays[i]));
}

static void differences_of_a_loss(void **state)
{
    (void)state;
    spk_rng_seed(&rng, 20);
    fill();
    const int turns = getenv("SPARSEK_TEST_QUICK") != NULL ? 4 : 25;
    for (int turn = 0; turn < turns * CHOICES; turn++) {
        const char *choice = choices[turn % CHOICES];
        spk_attention a = draw_problem();
        const setting s = {.by_row = below(2) == 1, .scale = 0.7 - 0.004 * (double)turn, .softcap = 3};
        const bool masked = below(2) == 1, with_lse = below(3) == 0;
        if (!can_run(choice))
            continue;
        a.want_lse = 1;
        if (!masked)
            a.mask_heads = a.mask_items = 0;
        else
            draw_mask(&made, &a);
        if (s.by_row) {
            a.ldq = a.heads * a.depth;
            a.ldk = a.heads_kv * a.depth;
            a.ldv = a.heads_kv * depth_v_of(&a);
            a.ldo = a.heads * depth_v_of(&a);
            a.head_stride_q = a.head_stride_k = a.depth;
            a.head_stride_v = a.head_stride_o = depth_v_of(&a);
        }
        const mask *m = masked ? &made : NULL;
        check(a, m, &s, "reference_attention");
        go_back(&a, m, &s, with_lse, choice);
        check_some(&a, m, &s, with_lse, "grad Q", q, grad_q, a.heads, a.queries, a.depth);
        check_some(&a, m, &s, with_lse, "grad K", k, grad_k, a.heads_kv, a.keys, a.depth);
        check_some(&a, m, &s, with_lse, "grad V", v, grad_v, a.heads_kv, a.keys, depth_v_of(&a));
        if (masked)
            spk_pattern_destroy(&made.pattern);
    }
}

/* Numbers that are none, in a query and in a key: gradients of those that see neither stay as they are, to the bit. */
static void hidden_numbers_have_no_influence(void **state)
{
    (void)state;
    enum { N = 200, D = 16, BAD_QUERY = 30, BAD_KEY = 100, LEFT = 70 };
    static float before[3][N * D];
    const spk_attention a = {
        SPK_SIZED(spk_attention), .batch = 1,   .queries = N, .keys = N, .heads = 1, .heads_kv = 1, .depth = D, .causal = 1,
        .window_left = LEFT,      .want_lse = 1};
    const setting s = {.scale = 0.3};
    for (int c = 0; c < CHOICES; c++) {
        if (!can_run(choices[c]))
            continue;
        fill();
        check(a, NULL, &s, "reference_attention");
        go_back(&a, NULL, &s, false, choices[c]);
        memcpy(before[0], grad_q, sizeof before[0]);
        memcpy(before[1], grad_k, sizeof before[1]);
        memcpy(before[2], grad_v, sizeof before[2]);
        for (int d = 0; d < D; d++) {
            q[BAD_QUERY * D + d] = grad_o[BAD_QUERY * D + d] = NAN;
            k[BAD_KEY * D + d] = d % 2 ? NAN : INFINITY;
            v[BAD_KEY * D + d] = NAN;
        }
        go_back(&a, NULL, &s, false, choices[c]);
        for (int i = 0; i < N; i++) {
            const bool query_is_bad = i == BAD_QUERY || (i >= BAD_KEY && i < BAD_KEY + LEFT);
            /* a query that sees the bad key passes it on to the keys that it sees, too */
            const bool key_is_bad = (i <= BAD_QUERY && i > BAD_QUERY - LEFT) || (i > BAD_KEY - LEFT && i < BAD_KEY + LEFT);
            for (int d = 0; d < D; d++) {
                const int at = i * D + d;
                if (query_is_bad ? isfinite(grad_q[at]) : !(fabsf(grad_q[at] - before[0][at]) <= 1e-6F * fabsf(before[0][at]) + 1e-7F))
                    fail_msg("%s: grad Q[%d,%d] = %g", choices[c], i, d, (double)grad_q[at]);
                if (!key_is_bad && !(fabsf(grad_k[at] - before[1][at]) <= 1e-6F * fabsf(before[1][at]) + 1e-7F))
                    fail_msg("%s: grad K[%d,%d] = %g", choices[c], i, d, (double)grad_k[at]);
                if (!key_is_bad && !(fabsf(grad_v[at] - before[2][at]) <= 1e-6F * fabsf(before[2][at]) + 1e-7F))
                    fail_msg("%s: grad V[%d,%d] = %g", choices[c], i, d, (double)grad_v[at]);
            }
        }
    }
}

/* The same bits on every run, whatever the threads do. */
static void equal_bits(void **state)
{
    (void)state;
    enum { COUNT = 300 * 32 };
    static float before[3][COUNT * 4];
    const spk_attention a = {SPK_SIZED(spk_attention),
                             .batch = 1,
                             .queries = 300,
                             .keys = 300,
                             .heads = 4,
                             .heads_kv = 2,
                             .depth = 32,
                             .causal = 1,
                             .want_lse = 1};
    const setting s = {.scale = 0.3};
    fill();
    check(a, NULL, &s, "reference_attention");
    const int runs = getenv("SPARSEK_TEST_QUICK") != NULL ? 8 : 150;
    for (int run = 0; run < runs; run++) {
        go_back(&a, NULL, &s, false, "attention_backward_portable QUERIES=48 KEYS=64 SHARES=4 SERIAL=0");
        if (run == 0) {
            memcpy(before[0], grad_q, sizeof before[0]);
            memcpy(before[1], grad_k, sizeof before[1] / 2);
            memcpy(before[2], grad_v, sizeof before[2] / 2);
        }
        assert_memory_equal(grad_q, before[0], sizeof before[0]);
        assert_memory_equal(grad_k, before[1], sizeof before[1] / 2);
        assert_memory_equal(grad_v, before[2], sizeof before[2] / 2);
    }
}

/* Each sequence has the gradients that it has alone; behind the last end nothing is written. */
static void sequences_alone(void **state)
{
    (void)state;
    enum { D = 8, ROWS = 180, SEQUENCES = 4 };
    static const int32_t ends[SEQUENCES] = {30, 30, 97, 160};
    static float together[3][ROWS * D];
    const setting s = {.scale = 0.4};
    for (int c = 0; c < CHOICES; c++) {
        if (!can_run(choices[c]))
            continue;
        spk_attention a = {SPK_SIZED(spk_attention),
                           .batch = 1,
                           .queries = ROWS,
                           .keys = ROWS,
                           .heads = 1,
                           .heads_kv = 1,
                           .depth = D,
                           .causal = 1,
                           .diagonal = SPK_DIAGONAL_TOP_LEFT,
                           .want_lse = 1,
                           .sequences = SEQUENCES};
        spk_attention_args forward = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .lse = lse, .scale = s.scale};
        spk_attention_backward_args args = backward_args(&s);
        const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choices[c]};
        forward.query_ends = forward.key_ends = args.query_ends = args.key_ends = ends;
        fill();
        for (int i = 160 * D; i < ROWS * D; i++)
            q[i] = k[i] = v[i] = grad_o[i] = NAN;
        ok(spk_compute(context, NULL, &a, &forward, NULL));
        memset(grad_q, 0xff, sizeof grad_q);
        memset(grad_k, 0xff, sizeof grad_k);
        memset(grad_v, 0xff, sizeof grad_v);
        spk_attention_backward b = backward_of(&a);
        ok(spk_compute(context, NULL, &b, &args, &pin));
        memcpy(together[0], grad_q, sizeof together[0]);
        memcpy(together[1], grad_k, sizeof together[1]);
        memcpy(together[2], grad_v, sizeof together[2]);
        for (int i = 160 * D; i < ROWS * D; i++)
            assert_true(isnan(together[0][i]) && isnan(together[1][i]) && isnan(together[2][i]));
        for (int i = 0; i < SEQUENCES; i++) {
            const int begin = i > 0 ? ends[i - 1] : 0, count = ends[i] - begin;
            b = backward_of(&a);
            b.sequences = 0;
            b.queries = b.keys = count;
            args = backward_args(&s);
            args.q = q + begin * D;
            args.k = k + begin * D;
            args.v = v + begin * D;
            args.o = o + begin * D;
            args.lse = lse + begin;
            args.grad_o = grad_o + begin * D;
            const spk_tune_options reference = {SPK_SIZED(spk_tune_options), .choice = "reference_attention_backward"};
            ok(spk_compute(context, NULL, &b, &args, &reference));
            for (int j = 0; j < count * D; j++) {
                assert_true(fabsf(together[0][begin * D + j] - grad_q[j]) < 1e-5F);
                assert_true(fabsf(together[1][begin * D + j] - grad_k[j]) < 1e-5F);
                assert_true(fabsf(together[2][begin * D + j] - grad_v[j]) < 1e-5F);
            }
        }
    }
}

/* No queries: gradients of keys are 0; no keys: those of queries; a query whose LSE is -infinity has none. */
static void empty_ones(void **state)
{
    (void)state;
    const setting s = {.scale = 1};
    for (int c = 0; c < CHOICES; c++) {
        spk_attention a = {SPK_SIZED(spk_attention), .batch = 1, .queries = 0, .keys = 3, .heads = 1, .heads_kv = 1, .depth = 4};
        const char *choice =
            strstr(choices[c], "QUERIES=48") || strstr(choices[c], "SHARES=2") || strstr(choices[c], "SHARES=4") ? NULL : choices[c];
        if (!can_run(choices[c]))
            continue;
        fill();
        go_back(&a, NULL, &s, false, choice);
        for (int i = 0; i < 12; i++)
            assert_true(grad_k[i] == 0 && grad_v[i] == 0);
        a.queries = 3;
        a.keys = 0;
        go_back(&a, NULL, &s, false, choice);
        for (int i = 0; i < 12; i++)
            assert_true(grad_q[i] == 0);
        a.keys = 5;
        for (int i = 0; i < 3; i++)
            lse[i] = -INFINITY;
        go_back(&a, NULL, &s, false, choice);
        for (int i = 0; i < 20; i++)
            assert_true(grad_q[i % 12] == 0 && grad_k[i] == 0 && grad_v[i] == 0);
    }
}

static void clear_gradients(void)
{
    memset(grad_q, 0xff, sizeof grad_q);
    memset(grad_k, 0xff, sizeof grad_k);
    memset(grad_v, 0xff, sizeof grad_v);
}

static void check_gradients(const spk_attention *a, const setting *s)
{
    check_some(a, NULL, s, true, "grad Q", q, grad_q, a->heads, a->queries, a->depth);
    check_some(a, NULL, s, true, "grad K", k, grad_k, a->heads_kv, a->keys, a->depth);
    check_some(a, NULL, s, true, "grad V", v, grad_v, a->heads_kv, a->keys, depth_v_of(a));
    clear_gradients();
}

/* The calls with the structs' types. */
static void typed_calls(void **state)
{
    (void)state;
    const spk_attention a = {
        SPK_SIZED(spk_attention), .batch = 1, .heads = 4, .heads_kv = 2, .queries = 6, .keys = 7, .depth = 5, .want_lse = 1};
    const setting s = {.scale = 0.5};
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE};
    spk_attention_backward_args args = spk_attention_backward_args_make(s.scale);
    spk_attention_backward b = backward_of(&a);
    spk_plan *plan = NULL;
    spk_rng_seed(&rng, 21);
    b.use_grad_lse = 1;
    args.q = q;
    args.k = k;
    args.v = v;
    args.o = o;
    args.lse = lse;
    args.grad_o = grad_o;
    args.grad_lse = grad_lse;
    args.grad_q = grad_q;
    args.grad_k = grad_k;
    args.grad_v = grad_v;
    fill();
    check(a, NULL, &s, "reference_attention");
    clear_gradients();
    ok(spk_plan_create_attention_backward(context, NULL, &b, &estimate, &plan));
    ok(spk_plan_run_attention_backward(plan, &args, NULL));
    spk_plan_destroy(&plan);
    check_gradients(&a, &s);
    ok(spk_compute_attention_backward(context, NULL, &b, &args, &estimate));
    check_gradients(&a, &s);
}

static void refused(const spk_attention_backward *b, const char *why)
{
    const spk_attention_backward_args args = backward_args(&(setting){.scale = 1});
    assert_int_equal(spk_compute(context, NULL, b, &args, NULL), SPK_ERR_ARGUMENT);
    if (strstr(spk_last_error(context), why) == NULL)
        fail_msg("\"%s\" has no \"%s\"", spk_last_error(context), why);
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    const spk_attention_backward good = {SPK_SIZED(spk_attention_backward), .queries = 8, .keys = 8, .depth = 4, .heads = 4};
    spk_attention_backward b;
#define REFUSE(field, value, why) \
    b = good;                     \
    b.field = value;              \
    refused(&b, why)
    REFUSE(queries, -1, "queries = -1: it cannot be negative");
    REFUSE(heads_kv, 3, "heads_kv = 3: it must divide heads = 4");
    REFUSE(sinks, 2, "sinks = 2: without window_left");
    REFUSE(ld_grad_o, 3, "ld_grad_o = 3: a row has 4 elements");
    REFUSE(head_stride_grad_k, 3, "head_stride_grad_k = 3: heads of 32 elements would overlap");
    REFUSE(head_stride_grad_lse, -1, "head_stride_grad_lse = -1: it cannot be negative");
    REFUSE(stride_grad_v, SPK_STRIDE_SHARED, "stride_grad_v = -1: an output cannot be one for all items");
    REFUSE(assume_finite, 2, "assume_finite = 2: the values are 0..1");
    REFUSE(tiles, 2, "tiles = 2: there is no pattern");
#undef REFUSE
    spk_attention_backward_args args = backward_args(&(setting){.scale = 1});
    args.grad_k = NULL;
    assert_int_equal(spk_compute(context, NULL, &good, &args, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.grad_k is NULL"));
    args = backward_args(&(setting){.scale = 1});
    args.grad_v = grad_k;
    assert_int_equal(spk_compute(context, NULL, &good, &args, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.grad_"));
    args = backward_args(&(setting){.scale = INFINITY});
    assert_int_equal(spk_compute(context, NULL, &good, &args, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "args.scale"));
}

/* The tuner's own numbers stay within f16 at every depth. */
static void half_precision_is_tuned(void **state)
{
    (void)state;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.2,
                                      .only = "attention_backward_portable"};
    for (int64_t depth = 16; depth <= 256; depth *= 4) {
        const spk_attention_backward b = {SPK_SIZED(spk_attention_backward),
                                          .dtype = SPK_F16,
                                          .batch = 1,
                                          .heads = 2,
                                          .heads_kv = 2,
                                          .queries = 80,
                                          .keys = 96,
                                          .depth = depth};
        spk_plan *plan = NULL;
        if (spk_plan_create(context, NULL, &b, &options, &plan) != SPK_OK)
            fail_msg("depth %d: %s", (int)depth, spk_last_error(context));
        spk_plan_destroy(&plan);
    }
}

/* The rows of pairs of bfloat16 beside the reference, on the same numbers; of K some so small that products are denormal. */
static void pairs_compute_as_the_reference(void **state)
{
    (void)state;
    static const char *const pairs[] = {"attention_backward_bf16_avx512 QUERIES=6 KEYS=64 SHARES=1",
                                        "attention_backward_bf16_avx512 QUERIES=48 KEYS=128 SHARES=2",
                                        "attention_backward_bf16_amx QUERIES=32 KEYS=128 SHARES=1"};
    enum { N = 77, D = 32, NUMBERS = 2 * N * D };
    static uint16_t given[5][NUMBERS], found[2][3][NUMBERS]; /* Q, K, V, grad_O, O */
    static float lse_of[2 * N];
    const int q_ = 0, k_ = 1, v_ = 2, grad_o_ = 3, o_ = 4;
    for (int turn = 0; turn < 12; turn++) {
        const char *choice = pairs[turn % 3];
        const bool small = turn >= 6;
        if (!can_run(choice))
            continue;
        const spk_attention a = {
            SPK_SIZED(spk_attention), .dtype = SPK_BF16, .batch = 1, .queries = N, .keys = N, .heads = 2, .heads_kv = 2, .depth = D,
            .causal = turn % 2,       .want_lse = 1};
        for (int i = 0; i < 4; i++) {
            ok(spk_fill_random(context, SPK_BF16, NUMBERS, (uint64_t)(4 * turn + i), given[i]));
            for (int j = 0; small && i == k_ && j < NUMBERS; j++) /* times 2^-116 */
                given[i][j] = (uint16_t)((given[i][j] >> 7 & 0xff) > 116 ? given[i][j] - (116 << 7) : 0);
        }
        const double scale = small ? 0x1p114 : 0.2;
        const spk_attention_args forward = {
            SPK_SIZED(spk_attention_args), .q = given[q_], .k = given[k_], .v = given[v_], .o = given[o_], .lse = lse_of, .scale = scale};
        ok(spk_compute(context, NULL, &a, &forward, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "reference_attention"}));
        spk_attention_backward b = backward_of(&a);
        for (int i = 0; i < 2; i++) {
            const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = i == 0 ? choice : "reference_attention_backward"};
            const spk_attention_backward_args args = {SPK_SIZED(spk_attention_backward_args),
                                                      .q = given[q_],
                                                      .k = given[k_],
                                                      .v = given[v_],
                                                      .o = given[o_],
                                                      .lse = lse_of,
                                                      .grad_o = given[grad_o_],
                                                      .grad_q = found[i][0],
                                                      .grad_k = found[i][1],
                                                      .grad_v = found[i][2],
                                                      .scale = scale};
            memset(found[i], 0xff, sizeof found[i]);
            ok(spk_compute(context, NULL, &b, &args, &pin));
        }
        for (int which = 0; which < 3; which++) {
            float most = 0;
            for (int j = 0; j < NUMBERS; j++)
                most = fmaxf(most, fabsf(spk_bf16_to_float(found[1][which][j])));
            for (int j = 0; j < NUMBERS; j++) {
                const float got = spk_bf16_to_float(found[0][which][j]), wanted = spk_bf16_to_float(found[1][which][j]);
                if (!(fabsf(got - wanted) <= 0.02f * most))
                    fail_msg("turn %d, %s: gradient %d[%d] = %.9g, wanted %.9g", turn, choice, which, j, (double)got, (double)wanted);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_of_a_loss),
        cmocka_unit_test(hidden_numbers_have_no_influence),
        cmocka_unit_test(equal_bits),
        cmocka_unit_test(sequences_alone),
        cmocka_unit_test(empty_ones),
        cmocka_unit_test(typed_calls),
        cmocka_unit_test(pairs_compute_as_the_reference),
        cmocka_unit_test(half_precision_is_tuned),
        cmocka_unit_test(wrong_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

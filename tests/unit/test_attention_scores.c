/* Attention and its gradients with large scores, of every row that this device has, against the words of docs/numerics.md: scores are whole
 * numbers times a power of two, which every row can compute exactly, so that it is known which keys win. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "context_case.h"

enum { QUERIES = 21, KEYS = 150, DEPTH = 16, MOST = KEYS * DEPTH };

/* Numbers in double, as the row has them, and what it makes of them. */
typedef struct numbers {
    double value[MOST];
    double stored[MOST]; /* room for any dtype */
} numbers;

static numbers q, k, v, o, lse, grad_o, grad_q, grad_k, grad_v;

typedef struct setting {
    spk_dtype dtype;
    int power, power_q; /* scores are whole numbers times 2^power */
    bool causal;
    double scale, weight[QUERIES][KEYS], score[QUERIES][KEYS], along[QUERIES][KEYS]; /* along: of grad O and what a weight changes */
} setting;

static uint64_t state;

static int64_t below(int64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

static void give(spk_dtype dtype, numbers *n, int64_t count)
{
    ok(spk_cast_values(context, dtype, n->stored, SPK_F64, n->value, count));
    ok(spk_cast_values(context, SPK_F64, n->value, dtype, n->stored, count));
}

static void take(spk_dtype dtype, numbers *n, int64_t count)
{
    ok(spk_cast_values(context, SPK_F64, n->value, dtype, n->stored, count));
}

static spk_dtype of_lse(spk_dtype dtype)
{
    return dtype == SPK_F64 ? SPK_F64 : SPK_F32;
}

/* Each query has one number, at a column of its own; so that its scores are those of the keys' column. Some share a large part. */
static void draw(setting *s)
{
    const int most = s->dtype == SPK_F16 ? 6 : 30;
    const double part = below(2) == 0 ? 0 : 128;
    s->power = (int)below(90) + 8;
    s->power_q = (int)below(s->power < most ? s->power : most);
    const int left = s->power - s->power_q, power_k = (int)below(left < most ? left : most);
    s->scale = ldexp(below(4) == 0 ? -1 : 1, left - power_k);
    s->causal = below(2) == 0;
    for (int64_t i = 0; i < QUERIES * DEPTH; i++) {
        q.value[i] = i % DEPTH == i / DEPTH % DEPTH ? ldexp(1, s->power_q) : 0;
        grad_o.value[i] = (double)below(17) / 8 - 1;
    }
    for (int64_t i = 0; i < KEYS * DEPTH; i++) {
        k.value[i] = ldexp((double)below(7) - 3 + part, power_k);
        v.value[i] = (double)below(2001) / 1000 - 1;
    }
    give(s->dtype, &q, QUERIES * DEPTH);
    give(s->dtype, &k, KEYS * DEPTH);
    give(s->dtype, &v, KEYS * DEPTH);
    give(s->dtype, &grad_o, QUERIES * DEPTH);
}

static bool sees(const setting *s, int64_t query, int64_t key)
{
    return !s->causal || key <= query + KEYS - QUERIES;
}

/* O and LSE from the definition: of keys with the highest score alone, as all others are lower by 2^8 at least. */
static void attend(setting *s, double *want_o, double *want_lse)
{
    for (int64_t i = 0; i < QUERIES; i++) {
        double highest = -(double)INFINITY, winners = 0;
        for (int64_t j = 0; j < KEYS; j++) {
            s->score[i][j] = s->scale * q.value[i * DEPTH + i % DEPTH] * k.value[j * DEPTH + i % DEPTH];
            highest = sees(s, i, j) ? fmax(highest, s->score[i][j]) : highest;
        }
        for (int64_t j = 0; j < KEYS; j++)
            winners += sees(s, i, j) && s->score[i][j] == highest;
        want_lse[i] = highest + log(winners);
        for (int64_t c = 0; c < DEPTH; c++) {
            want_o[i * DEPTH + c] = 0;
            for (int64_t j = 0; j < KEYS; j++)
                want_o[i * DEPTH + c] += sees(s, i, j) && s->score[i][j] == highest ? v.value[j * DEPTH + c] / winners : 0;
        }
    }
}

static double rounding(spk_dtype dtype)
{
    return dtype == SPK_F64 ? 1e-13 : dtype == SPK_F32 ? 4e-6 : dtype == SPK_F16 ? 0x1p-9 : 0x1p-6;
}

static void compare(const char *row, const setting *s, const char *what, int64_t at, double got, double want, double size)
{
    if (!(fabs(got - want) <= size * rounding(s->dtype)))
        fail_msg("%s, %s, scores of 2^%d (2^%d of them Q's), scale %g, causal %d: %s[%d] = %.9g, wanted %.9g", row,
                 spk_dtype_name(s->dtype), s->power, s->power_q, s->scale, s->causal, what, (int)at, got, want);
}

/* False: the row does not take the problem. */
static bool plan_of(const char *row, const void *problem, spk_plan **plan)
{
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE, .tuning = SPK_TUNING_NEVER, .only = row};
    return spk_plan_create(context, NULL, problem, &options, plan) == SPK_OK;
}

static bool check_forward(const char *row, spk_dtype dtype)
{
    static setting s;
    double want_o[QUERIES * DEPTH], want_lse[QUERIES];
    spk_plan *plan = NULL;
    s = (setting){.dtype = dtype};
    draw(&s);
    const spk_attention problem = {SPK_SIZED(spk_attention), .dtype = dtype, .queries = QUERIES, .keys = KEYS,
                                   .depth = DEPTH,           .want_lse = 1,  .causal = s.causal, .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT};
    if (!plan_of(row, &problem, &plan))
        return false;
    ok(spk_plan_run(plan,
                    &(spk_attention_args){SPK_SIZED(spk_attention_args), .q = q.stored, .k = k.stored, .v = v.stored, .o = o.stored,
                                          .lse = lse.stored, .scale = s.scale},
                    NULL));
    take(dtype, &o, QUERIES * DEPTH);
    take(of_lse(dtype), &lse, QUERIES);
    attend(&s, want_o, want_lse);
    for (int64_t i = 0; i < QUERIES * DEPTH; i++)
        compare(row, &s, "O", i, o.value[i], want_o[i], 1);
    for (int64_t i = 0; i < QUERIES; i++) {
        const double off = of_lse(dtype) == SPK_F64 ? 1e-13 : 4e-6;
        compare(row, &s, "LSE", i, lse.value[i], want_lse[i], off * (1 + fabs(want_lse[i])) / rounding(dtype));
    }
    spk_plan_destroy(&plan);
    return true;
}

/* What a row is to make of the LSE that it is given, which is rounded: no weight is above 1. */
static void weigh(setting *s)
{
    for (int64_t i = 0; i < QUERIES; i++)
        for (int64_t j = 0; j < KEYS; j++) {
            s->weight[i][j] = sees(s, i, j) ? exp(fmin(s->score[i][j] - lse.value[i], 0)) : 0;
            s->along[i][j] = 0;
            for (int64_t c = 0; c < DEPTH; c++)
                s->along[i][j] += grad_o.value[i * DEPTH + c] * (v.value[j * DEPTH + c] - o.value[i * DEPTH + c]);
        }
}

/* A gradient of Q (by_query) or of K. */
static void check_gradient(const char *row, const setting *s, bool by_query, int64_t at)
{
    const numbers *other = by_query ? &k : &q;
    double want = 0, size = 0;
    for (int64_t x = 0; x < (by_query ? KEYS : QUERIES); x++) {
        const int64_t i = by_query ? at / DEPTH : x, j = by_query ? x : at / DEPTH;
        const double factor = s->scale * s->weight[i][j] * other->value[x * DEPTH + at % DEPTH];
        want += factor * s->along[i][j];
        size += (fabs(factor) + fabs(s->scale * other->value[x * DEPTH + at % DEPTH]) * 1e-30) * DEPTH * 2; /* what is less may be 0 */
    }
    const double got = (by_query ? grad_q : grad_k).value[at];
    if (s->dtype == SPK_F16 && fabs(want) + size * rounding(s->dtype) > 65504 && (isinf(got) || fabs(got) > 3e4))
        return; /* more than float16 can hold */
    compare(row, s, by_query ? "grad Q" : "grad K", at, got, want, size);
}

static bool check_backward(const char *row, spk_dtype dtype)
{
    static setting s;
    spk_plan *plan = NULL;
    s = (setting){.dtype = dtype};
    draw(&s);
    attend(&s, o.value, lse.value);
    if (below(2) == 0) /* as if the last bit had been rounded down */
        for (int64_t i = 0; i < QUERIES; i++)
            lse.value[i] -= fabs(lse.value[i]) * (dtype == SPK_F64 ? 0x1p-52 : 0x1p-23);
    give(dtype, &o, QUERIES * DEPTH);
    give(of_lse(dtype), &lse, QUERIES);
    weigh(&s);
    const spk_attention_backward problem = {
        SPK_SIZED(spk_attention_backward),    .dtype = dtype, .queries = QUERIES, .keys = KEYS, .depth = DEPTH, .causal = s.causal,
        .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT};
    if (!plan_of(row, &problem, &plan))
        return false;
    ok(spk_plan_run(plan,
                    &(spk_attention_backward_args){SPK_SIZED(spk_attention_backward_args), .q = q.stored, .k = k.stored, .v = v.stored,
                                                   .o = o.stored, .lse = lse.stored, .grad_o = grad_o.stored, .grad_q = grad_q.stored,
                                                   .grad_k = grad_k.stored, .grad_v = grad_v.stored, .scale = s.scale},
                    NULL));
    take(dtype, &grad_q, QUERIES * DEPTH);
    take(dtype, &grad_k, KEYS * DEPTH);
    take(dtype, &grad_v, KEYS * DEPTH);
    for (int64_t at = 0; at < KEYS * DEPTH; at++) {
        double want = 0, size = 0x1p-14;
        for (int64_t i = 0; i < QUERIES; i++) {
            want += s.weight[i][at / DEPTH] * grad_o.value[i * DEPTH + at % DEPTH];
            size += s.weight[i][at / DEPTH];
        }
        compare(row, &s, "grad V", at, grad_v.value[at], want, size);
        check_gradient(row, &s, false, at);
        if (at < QUERIES * DEPTH)
            check_gradient(row, &s, true, at);
    }
    spk_plan_destroy(&plan);
    return true;
}

static void check_rows(spk_operation operation, bool (*check)(const char *row, spk_dtype dtype))
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    int ran = 0;
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        ok(spk_kernel_get_info(i, &info));
        if (info.operation != operation || strcmp(info.device, "cpu") != 0)
            continue;
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (int times = 0; times < 40; times++) {
                state = (uint64_t)times * 977 + d; /* the same for every row */
                ran += check(info.name, dtypes[d]);
            }
    }
    assert_true(ran >= 2 * 4 * 40); /* the reference and one row of our own, which run everywhere */
}

static void forward_of_every_row(void **unused)
{
    (void)unused;
    check_rows(SPK_ATTENTION, check_forward);
}

static void backward_of_every_row(void **unused)
{
    (void)unused;
    check_rows(SPK_ATTENTION_BACKWARD, check_backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward_of_every_row), cmocka_unit_test(backward_of_every_row)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

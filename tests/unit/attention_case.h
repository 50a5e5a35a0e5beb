/* What the tests of attention share: arrays, what a query sees in the words of sparsek.h, and an answer computed from that. */
#ifndef SPK_TEST_ATTENTION_CASE_H
#define SPK_TEST_ATTENTION_CASE_H

#include "context_case.h"

enum { MOST = 90000 };

static float q[MOST], k[MOST], v[MOST], o[MOST], lse[MOST];

/* Where row `row` of a head of an item begins: by_row: item, row, head, column; else item, head, row, column. */
static int64_t place(bool by_row, int64_t item, int64_t head, int64_t row, int64_t heads, int64_t rows, int64_t cols)
{
    return (by_row ? (item * rows + row) * heads + head : (item * heads + head) * rows + row) * cols;
}

/* Lists of blocks: whether block column `column` of block row `row` is stored is at stored[row * across + column]. */
typedef struct mask {
    int64_t height, width, lists, down, across; /* of a block; lists; block rows of a list, block columns */
    bool stored[1 << 14];
    spk_pattern *pattern;
} mask;

static int64_t list_of(const spk_attention *a, int64_t item, int64_t head)
{
    const int64_t of_item = a->mask_heads ? a->mask_heads : 1;
    return (a->mask_items > 1 ? item * of_item : 0) + head / (a->heads / of_item);
}

/* The definition of what a query sees, in the words of sparsek.h. */
static bool sees(const spk_attention *a, const mask *m, int64_t item, int64_t head, int64_t query, int64_t key)
{
    if (m && !m->stored[(list_of(a, item, head) * m->down + query / m->height) * m->across + key / m->width])
        return false;
    const int64_t beside = a->diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? query + a->keys - a->queries : query;
    if (a->causal && key > beside)
        return false;
    if (a->window_right && key >= beside + a->window_right)
        return false;
    return !a->window_left || key > beside - a->window_left || key < a->sinks;
}

typedef struct setting {
    bool by_row;
    double scale, softcap;
} setting;

static void check_query(const spk_attention *a, const mask *m, const setting *s, int64_t item, int64_t head, int64_t query)
{
    const int64_t heads_kv = a->heads_kv ? a->heads_kv : a->heads, head_kv = head / (a->heads / heads_kv),
                  depth_v = a->depth_v ? a->depth_v : a->depth;
    const float *row = q + place(s->by_row, item, head, query, a->heads, a->queries, a->depth);
    double sum = 0, wanted[512] = {0}, size[512] = {0};
    for (int64_t key = 0; key < a->keys; key++) {
        const float *other = k + place(s->by_row, item, head_kv, key, heads_kv, a->keys, a->depth),
                    *value = v + place(s->by_row, item, head_kv, key, heads_kv, a->keys, depth_v);
        double score = 0;
        if (!sees(a, m, item, head, query, key))
            continue;
        for (int64_t d = 0; d < a->depth; d++)
            score += (double)row[d] * other[d];
        score *= s->scale;
        if (a->use_softcap)
            score = s->softcap * tanh(score / s->softcap);
        sum += exp(score);
        for (int64_t c = 0; c < depth_v; c++) {
            wanted[c] += exp(score) * value[c];
            size[c] += exp(score) * fabs(value[c]);
        }
    }
    for (int64_t c = 0; c < depth_v; c++) {
        const double got = o[place(s->by_row, item, head, query, a->heads, a->queries, depth_v) + c], want = sum > 0 ? wanted[c] / sum : 0;
        if (!(fabs(got - want) <= 2e-5 * (sum > 0 ? size[c] / sum : 0)))
            fail_msg("O[%d,%d,%d,%d] = %.9g, wanted %.9g", (int)item, (int)head, (int)query, (int)c, got, want);
    }
    if (!a->want_lse)
        return;
    const double got = lse[(item * a->heads + head) * a->queries + query];
    if (sum > 0 ? !(fabs(got - log(sum)) < 2e-5 * (1 + fabs(log(sum)))) : !(isinf(got) && got < 0))
        fail_msg("LSE[%d,%d,%d] = %.9g, wanted %.9g", (int)item, (int)head, (int)query, got, log(sum));
}

/* Computes the problem with a candidate, and checks every number. */
static void check(spk_attention a, const mask *m, const setting *s, const char *choice)
{
    const int64_t heads_kv = a.heads_kv ? a.heads_kv : a.heads, depth_v = a.depth_v ? a.depth_v : a.depth;
    const spk_tune_options pin = {SPK_SIZED(spk_tune_options), .choice = choice};
    const spk_attention_args args = {SPK_SIZED(spk_attention_args), .q = q, .k = k, .v = v, .o = o, .lse = lse, .scale = s->scale,
                                     .softcap = s->softcap};
    if (s->by_row) {
        a.ldq = a.heads * a.depth;
        a.ldk = heads_kv * a.depth;
        a.ldv = heads_kv * depth_v;
        a.ldo = a.heads * depth_v;
        a.head_stride_q = a.head_stride_k = a.depth;
        a.head_stride_v = a.head_stride_o = depth_v;
    }
    memset(o, 0xff, sizeof o);
    memset(lse, 0xff, sizeof lse);
    ok(spk_compute(context, m ? m->pattern : NULL, &a, &args, &pin));
    for (int64_t item = 0; item < a.batch; item++)
        for (int64_t head = 0; head < a.heads; head++)
            for (int64_t query = 0; query < a.queries; query++)
                check_query(&a, m, s, item, head, query);
}

/* Whether this processor has what a choice needs. */
static bool can_run(const char *choice)
{
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    bool avx2 = false, avx512 = false, bf16 = false, amx = false;
    ok(spk_context_get_device(context, &device));
    for (int i = 0; i < device.isa_count; i++) {
        avx2 = avx2 || strcmp(device.isa[i], "avx2") == 0;
        avx512 = avx512 || strcmp(device.isa[i], "avx512f") == 0;
        bf16 = bf16 || strcmp(device.isa[i], "avx512_bf16") == 0;
        amx = amx || strcmp(device.isa[i], "amx_bf16") == 0;
    }
    return (!strstr(choice, "avx2") || avx2) && (!strstr(choice, "avx512") || avx512) && (!strstr(choice, "_bf16_") || bf16) &&
           (!strstr(choice, "_amx") || amx);
}

#endif

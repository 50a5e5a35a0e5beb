/* reference_attention: O = softmax(scale Q K^T) V from the definition, a query at a time: scores, exponentials, sums. Takes every problem;
 * serial. The yardstick. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "op/attention/attention.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 1 + spk_problem_flops(problem) / 300;
}

static spk_status bind(spk_bound *bound)
{
    bound->workspace_bytes = (size_t)(2 * bound->problem.n + bound->problem.depth_v) * sizeof(double);
    return SPK_OK;
}

/* A query of a head of an item. */
typedef struct query {
    const spk_problem *problem;
    const spk_args *args;
    int64_t row, row_kv; /* of Q and O; the first of K and V of its head */
    const int64_t *keys; /* rows, from row_kv on, of those that it sees */
    int64_t count;
} query;

static double get(const query *q, int operand, int64_t row, int64_t col)
{
    return spk_operand_get(&q->problem->operand[operand], q->args->at[operand], row, col);
}

static double score(const query *q, int64_t key)
{
    const double cap = q->args->scalar[ATTENTION_SOFTCAP];
    double sum = 0;
    for (int64_t d = 0; d < q->problem->k; d++)
        sum += get(q, ATTENTION_Q, q->row, d) * get(q, ATTENTION_K, q->row_kv + key, d);
    sum *= q->args->scalar[ATTENTION_SCALE];
    return q->problem->band.use_softcap && cap != 0 ? cap * tanh(sum / cap) : sum;
}

static void compute(const query *q, double *scores, double *sums)
{
    const spk_problem *p = q->problem;
    double most = -INFINITY, total = 0;
    for (int64_t i = 0; i < q->count; i++) {
        scores[i] = score(q, q->keys[i]);
        most = scores[i] > most ? scores[i] : most;
    }
    for (int64_t j = 0; j < p->depth_v; j++)
        sums[j] = 0;
    for (int64_t i = 0; i < q->count; i++) {
        const double e = exp(scores[i] - most);
        total += e;
        for (int64_t j = 0; j < p->depth_v; j++)
            sums[j] += e * get(q, ATTENTION_V, q->row_kv + q->keys[i], j);
    }
    for (int64_t j = 0; j < p->depth_v; j++)
        spk_operand_set(&p->operand[ATTENTION_O], q->args->at[ATTENTION_O], q->row, j, q->count > 0 ? sums[j] / total : 0);
    if (p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT)
        spk_operand_set(&p->operand[ATTENTION_LSE], q->args->at[ATTENTION_LSE], q->row, 0, q->count > 0 ? most + log(total) : -INFINITY);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    const int64_t rows = p->m * spk_operand_heads(&p->operand[ATTENTION_Q]);
    double *scores = args->workspace;
    int64_t *keys = (int64_t *)args->workspace + p->n + p->depth_v;
    (void)stream;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t head = row / p->m, number = spk_attention_find_sequence(p, args, row % p->m);
        if (p->packing.sequences > 0 && number == p->packing.sequences)
            continue;
        const spk_sequence sequence = spk_attention_sequence(p, args, number);
        const query q = {.problem = p,
                         .args = args,
                         .row = row,
                         .row_kv = head / spk_attention_sharing(p) * p->operand[ATTENTION_K].rows,
                         .keys = keys,
                         .count = spk_attention_keys(p, args, &sequence, head, row % p->m, keys)};
        for (int64_t i = 0; i < q.count; i++)
            keys[i] = spk_attention_row(p, args, &sequence, keys[i]);
        compute(&q, scores, scores + p->n);
    }
    return SPK_OK;
}

const spk_kernel_ops reference_attention_ops = {.predict_us = predict_us, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH};

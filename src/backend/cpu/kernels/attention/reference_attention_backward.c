/* reference_attention_backward: the gradients of attention from their definition, a query at a time. Takes every problem; serial. The
 * yardstick. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/attention_backward/operands.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 1 + spk_problem_flops(problem) / 300;
}

/* Sums of grad_K and of grad_V of a head, then of grad_Q of a query; the keys that the query sees. */
static spk_status bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    bound->workspace_bytes = (size_t)(p->n * (p->k + p->depth_v + 1) + p->k) * sizeof(double);
    return SPK_OK;
}

/* A query of a head of an item. */
typedef struct query {
    const spk_problem *problem;
    const spk_args *args;
    int64_t row, row_kv; /* of Q; the first of K and V of its head */
    double lse, delta;
} query;

static double get(const query *q, int operand, int64_t row, int64_t col)
{
    return spk_operand_get(&q->problem->operand[operand], q->args->at[operand], row, col);
}

static double dot(const query *q, int a, int64_t row_a, int b, int64_t row_b)
{
    double sum = 0;
    for (int64_t d = 0; d < q->problem->operand[a].cols; d++)
        sum += get(q, a, row_a, d) * get(q, b, row_b, d);
    return sum;
}

static query query_of(const spk_problem *p, const spk_args *args, int64_t row, int64_t row_kv)
{
    query q = {.problem = p, .args = args, .row = row, .row_kv = row_kv};
    q.lse = get(&q, ATTENTION_LSE, row, 0);
    q.delta = dot(&q, BACKWARD_GRAD_O, row, ATTENTION_O, row);
    if (p->operand[BACKWARD_GRAD_LSE].dtype != SPK_DTYPE_DEFAULT)
        q.delta -= get(&q, BACKWARD_GRAD_LSE, row, 0);
    return q;
}

static void add_key(const query *q, int64_t key, double *of_q, double *of_k, double *of_v)
{
    const spk_problem *p = q->problem;
    const double scale = q->args->scalar[ATTENTION_SCALE], cap = q->args->scalar[ATTENTION_SOFTCAP];
    double score = scale * dot(q, ATTENTION_Q, q->row, ATTENTION_K, q->row_kv + key), slope = 1;
    if (p->band.use_softcap && cap != 0) {
        const double bent = tanh(score / cap);
        score = cap * bent;
        slope = 1 - bent * bent;
    }
    const double above = score - q->lse, /* LSE is rounded: no weight is above 1 */
        weight = q->lse == -INFINITY ? 0 : exp(above > 0 ? 0 : above),
                 gradient = scale * weight * slope * (dot(q, BACKWARD_GRAD_O, q->row, ATTENTION_V, q->row_kv + key) - q->delta);
    for (int64_t d = 0; d < p->k; d++) {
        of_q[d] += gradient * get(q, ATTENTION_K, q->row_kv + key, d);
        of_k[key * p->k + d] += gradient * get(q, ATTENTION_Q, q->row, d);
    }
    for (int64_t d = 0; d < p->depth_v; d++)
        of_v[key * p->depth_v + d] += weight * get(q, BACKWARD_GRAD_O, q->row, d);
}

static void store_rows(const spk_problem *p, const spk_args *args, int operand, int64_t row, int64_t rows, const double *from)
{
    const int64_t cols = p->operand[operand].cols;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            spk_operand_set(&p->operand[operand], args->at[operand], row + i, j, from[i * cols + j]);
}

static void run_head(const spk_problem *p, const spk_args *args, int64_t head_kv, double *of_k, double *of_v, double *of_q, int64_t *keys)
{
    const int64_t sharing = spk_attention_sharing(p);
    memset(of_k, 0, (size_t)(p->n * (p->k + p->depth_v)) * sizeof(double));
    for (int64_t row = head_kv * sharing * p->m; row < (head_kv + 1) * sharing * p->m; row++) {
        const int64_t number = spk_attention_find_sequence(p, args, row % p->m);
        if (p->packing.sequences > 0 && number == p->packing.sequences)
            continue;
        const spk_sequence sequence = spk_attention_sequence(p, args, number);
        const int64_t count = spk_attention_keys(p, args, &sequence, row / p->m, row % p->m, keys);
        const query q = query_of(p, args, row, head_kv * p->n);
        memset(of_q, 0, (size_t)p->k * sizeof(double));
        for (int64_t i = 0; i < count; i++)
            add_key(&q, keys[i], of_q, of_k, of_v);
        store_rows(p, args, BACKWARD_GRAD_Q, row, 1, of_q);
    }
    const int64_t written = spk_attention_keys_written(p, args);
    store_rows(p, args, BACKWARD_GRAD_K, head_kv * p->n, written, of_k);
    store_rows(p, args, BACKWARD_GRAD_V, head_kv * p->n, written, of_v);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    double *of_k = args->workspace, *of_v = of_k + p->n * p->k, *of_q = of_v + p->n * p->depth_v;
    int64_t *keys = (int64_t *)(void *)(of_q + p->k);
    (void)stream;
    for (int64_t head = 0; head < spk_operand_heads(&p->operand[ATTENTION_K]); head++)
        run_head(p, args, head, of_k, of_v, of_q, keys);
    return SPK_OK;
}

const spk_kernel_ops reference_attention_backward_ops = {
    .predict_us = predict_us, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH};

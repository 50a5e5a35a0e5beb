/* The oracle of attention's gradients: a pair of a query and a key at a time, from the definition. */
#include <math.h>

#include "op/attention/score.h"
#include "op/attention_backward/operands.h"

/* A query of a head of an item, and the head of K and V that goes with it. */
typedef struct query {
    const spk_problem *problem;
    const spk_args *args; /* of the item */
    int64_t number, head, head_kv;
    spk_sequence sequence;
    bool in_sequence; /* false: it is in none, and sees no key */
    double lse, delta, delta_size, tolerance;
} query;

/* A number, and the scale of its rounding error. */
typedef struct sized {
    double value, size;
} sized;

/* What a pair adds: its weight P, and the gradient of its score. */
typedef struct pair {
    sized weight, gradient;
} pair;

static double get(const query *q, int operand, int64_t head, int64_t row, int64_t col)
{
    const spk_operand *o = &q->problem->operand[operand];
    return spk_operand_get(o, q->args->at[operand], head * o->rows + row, col);
}

/* Of a row of the query's head, and one of another array: a key of its head of K and V, or the same query. */
static sized dot(const query *q, int of_query, int other, int64_t row)
{
    const int64_t head = other == ATTENTION_O ? q->head : q->head_kv, cols = q->problem->operand[other].cols;
    long double sum = 0, size = 0;
    for (int64_t d = 0; d < cols; d++) {
        const long double term = (long double)get(q, of_query, q->head, q->number, d) * get(q, other, head, row, d);
        sum += term;
        size += fabsl(term);
    }
    return (sized){(double)sum, (double)size};
}

static query query_of(const spk_problem *p, const spk_args *args, int64_t head, int64_t number, double tolerance)
{
    query q = {
        .problem = p, .args = args, .number = number, .head = head, .head_kv = head / spk_attention_sharing(p), .tolerance = tolerance};
    const int64_t sequence = spk_attention_find_sequence(p, args, number);
    q.in_sequence = p->packing.sequences == 0 || sequence < p->packing.sequences;
    if (!q.in_sequence)
        return q;
    q.sequence = spk_attention_sequence(p, args, sequence);
    q.lse = get(&q, ATTENTION_LSE, head, number, 0);
    const sized along = dot(&q, BACKWARD_GRAD_O, ATTENTION_O, number);
    const double grad_lse = p->operand[BACKWARD_GRAD_LSE].dtype != SPK_DTYPE_DEFAULT ? get(&q, BACKWARD_GRAD_LSE, head, number, 0) : 0;
    q.delta = along.value - grad_lse;
    q.delta_size = along.size + fabs(grad_lse);
    return q;
}

/* Below the least normal number, over the least tolerance: what is computed in float32 (float64) may be 0 instead. */
static double least_number(const spk_problem *p)
{
    return p->compute == SPK_F64 ? 1e-290 : 1e-32;
}

/* The same of an output. */
static double least_output(const spk_problem *p)
{
    return p->operand[ATTENTION_Q].dtype == SPK_F16 ? 0x1p-14 : p->compute == SPK_F64 ? 1e-290 : 1e-30;
}

/* The same of a weight, or of a score's gradient, that is multiplied as a number of Q's type. */
static double least_factor(const spk_problem *p)
{
    return p->operand[ATTENTION_Q].dtype == SPK_F16 ? 0x1p-14 : 0;
}

/* P is at most 1, as LSE is the log of a sum that has its exponential. Where LSE says otherwise, and more than rounding explains, it is not
 * that of these operands, and P may also be what it says. */
static sized weight_of(const query *q, const spk_score *score)
{
    if (q->lse == -(double)INFINITY)
        return (sized){0, least_number(q->problem)};
    const double above = score->value - q->lse, off = score->off + spk_attention_score_rounding(q->problem) * fabs(above),
                 log_weight = above > 0 ? 0 : above, beyond = above > off ? expm1(fmin(above, 80)) : 0;
    const double weight_off = spk_attention_weight_off(log_weight, off) * (1 + beyond) + beyond;
    return (sized){exp(log_weight), exp(log_weight) + spk_attention_off_size(weight_off, q->tolerance) + least_number(q->problem)};
}

/* The rounding of a score makes one of its weight, and of a capped one, of the cap's slope, too. */
static pair pair_of(const query *q, int64_t key)
{
    const spk_problem *p = q->problem;
    const spk_score score = spk_attention_score(p, q->args, q->head * p->m + q->number, q->head_kv * p->n + key, q->tolerance);
    const sized along = dot(q, BACKWARD_GRAD_O, ATTENTION_V, key), weight = weight_of(q, &score);
    const double held = least_factor(p);
    return (pair){{weight.value, weight.size + held},
                  {weight.value * (along.value - q->delta) * score.slope,
                   weight.size * (along.size + q->delta_size) * (1 + score.slope_off / q->tolerance) + least_number(p) + held}};
}

/* Sums of a row of an output. */
typedef struct sums {
    const spk_oracle_ask *ask;
    double tolerance;
    long double *value, *size; /* ask->cols of each */
} sums;

static void clear(const sums *s)
{
    for (int64_t j = 0; j < s->ask->cols; j++)
        s->value[j] = s->size[j] = 0;
}

static void add(const sums *s, const query *q, sized factor, int operand, int64_t head, int64_t row)
{
    for (int64_t j = 0; j < s->ask->cols; j++) {
        const double x = get(q, operand, head, row, s->ask->col0 + j);
        s->value[j] += (long double)factor.value * x;
        s->size[j] += (long double)factor.size * fabs(x);
    }
}

static void write_row(const sums *s, const spk_problem *p, int64_t row, double scale)
{
    const int64_t at = row * s->ask->cols;
    for (int64_t j = 0; j < s->ask->cols; j++) {
        if (s->ask->want != NULL)
            s->ask->want[at + j] = scale * (double)s->value[j];
        if (s->ask->magnitude != NULL)
            s->ask->magnitude[at + j] = spk_magnitude(fabs(scale) * (double)s->size[j] + least_output(p));
    }
}

static void sum_keys(const sums *s, const spk_problem *p, const spk_args *args, int64_t head, int64_t number, int64_t *keys)
{
    const query q = query_of(p, args, head, number, s->tolerance);
    const int64_t count = q.in_sequence ? spk_attention_keys(p, args, &q.sequence, head, number, keys) : 0;
    for (int64_t i = 0; i < count; i++)
        add(s, &q, pair_of(&q, keys[i]).gradient, ATTENTION_K, q.head_kv, keys[i]);
}

static void sum_queries(const sums *s, const spk_problem *p, const spk_args *args, int64_t head_kv, int64_t key)
{
    const bool of_v = s->ask->output == BACKWARD_GRAD_V;
    for (int64_t shared = 0; shared < spk_attention_sharing(p); shared++) {
        const int64_t head = head_kv * spk_attention_sharing(p) + shared;
        for (int64_t number = 0; number < p->m; number++) {
            if (!spk_attention_sees(p, args, head, number, key))
                continue;
            const query q = query_of(p, args, head, number, s->tolerance);
            const pair both = pair_of(&q, key);
            add(s, &q, of_v ? both.weight : both.gradient, of_v ? BACKWARD_GRAD_O : ATTENTION_Q, head, number);
        }
    }
}

spk_status spk_attention_backward_oracle(const spk_mem *mem, const spk_problem *p, const spk_args *args, const spk_oracle_ask *ask)
{
    const spk_operand *output = &p->operand[ask->output];
    const int64_t rows = output->rows * spk_operand_heads(output), cols = ask->cols > 0 ? ask->cols : 1;
    sums s = {.ask = ask, .tolerance = p->op->tolerance(p, ask->output)};
    int64_t *keys = NULL;
    SPK_TRY(spk_alloc(mem, 2 * (size_t)cols, sizeof *s.value, &s.value));
    s.size = s.value + cols;
    spk_status status = spk_alloc(mem, (size_t)(p->n > 0 ? p->n : 1), sizeof *keys, &keys);
    for (int64_t r = 0; status == SPK_OK && r < ask->row_count; r++) {
        const int64_t row = ask->rows != NULL ? ask->rows[r] : r, head = row / output->rows % spk_operand_heads(output);
        const spk_args item = spk_args_item(p, args, row / rows);
        clear(&s);
        if (ask->output == BACKWARD_GRAD_Q)
            sum_keys(&s, p, &item, head, row % output->rows, keys);
        else
            sum_queries(&s, p, &item, head, row % output->rows);
        write_row(&s, p, r, ask->output == BACKWARD_GRAD_V ? 1 : args->scalar[ATTENTION_SCALE]);
    }
    spk_free(mem, keys);
    spk_free(mem, s.value);
    return status;
}

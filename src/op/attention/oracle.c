/* The oracle of attention: a query at a time, from the definition. */
#include <math.h>

#include "op/attention/attention.h"

/* The scores of one query, in the order of the keys that it sees. */
typedef struct scores {
    const spk_problem *problem;
    spk_args args; /* of the item */
    int64_t query, head, head_kv;
    int64_t *keys;        /* that it sees; then their rows of K and V */
    double *score, *size; /* size: the sum of the terms' absolute values, scaled */
    int64_t count;
    double most;
} scores;

static double get(const scores *s, int operand, int64_t head, int64_t row, int64_t col)
{
    const spk_operand *o = &s->problem->operand[operand];
    return spk_operand_get(o, s->args.at[operand], head * o->rows + row, col);
}

static double capped(const spk_problem *p, const spk_args *args, double score)
{
    const double cap = args->scalar[ATTENTION_SOFTCAP];
    return p->band.soft_cap && cap != 0 ? cap * tanh(score / cap) : score;
}

static void find_keys(scores *s, int64_t number)
{
    const spk_sequence sequence = spk_attention_sequence(s->problem, &s->args, number);
    s->count = spk_attention_keys(s->problem, &s->args, &sequence, s->head, s->query, s->keys);
    for (int64_t i = 0; i < s->count; i++)
        s->keys[i] = spk_attention_row(s->problem, &s->args, &sequence, s->keys[i]);
}

static void score_all(scores *s)
{
    const spk_problem *p = s->problem;
    const double scale = s->args.scalar[ATTENTION_SCALE];
    s->most = -(double)INFINITY;
    for (int64_t i = 0; i < s->count; i++) {
        long double sum = 0, size = 0;
        for (int64_t d = 0; d < p->k; d++) {
            const long double term =
                (long double)get(s, ATTENTION_Q, s->head, s->query, d) * get(s, ATTENTION_K, s->head_kv, s->keys[i], d);
            sum += term;
            size += fabsl(term);
        }
        s->score[i] = capped(p, &s->args, (double)(scale * sum));
        s->size[i] = (double)(fabs(scale) * size);
        s->most = s->score[i] > s->most ? s->score[i] : s->most;
    }
}

/* The sum of exp(score - most), and of what its terms may be off by. */
static double sum_all(const scores *s, double *off)
{
    long double sum = 0, sizes = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const double e = exp(s->score[i] - s->most);
        sum += e;
        sizes += e * s->size[i];
    }
    *off = (double)(sizes / sum);
    return (double)sum;
}

static void write_value(const spk_oracle_ask *ask, int64_t at, double value, double magnitude)
{
    if (ask->want != NULL)
        ask->want[at] = value;
    if (ask->magnitude != NULL)
        ask->magnitude[at] = spk_magnitude(magnitude);
}

static void ask_row(scores *s, const spk_oracle_ask *ask, int64_t at)
{
    double off = 0;
    score_all(s);
    const double sum = s->count > 0 ? sum_all(s, &off) : 0;
    if (ask->output == ATTENTION_LSE) {
        const double lse = s->count > 0 ? s->most + log(sum) : -(double)INFINITY;
        for (int64_t j = 0; j < ask->cols; j++)
            write_value(ask, at + j, lse, 1 + fabs(lse) + off);
        return;
    }
    for (int64_t j = 0; j < ask->cols; j++) {
        long double value = 0, size = 0;
        for (int64_t i = 0; i < s->count; i++) {
            const double e = exp(s->score[i] - s->most) / sum, v = get(s, ATTENTION_V, s->head_kv, s->keys[i], ask->col0 + j);
            value += (long double)e * v;
            size += (long double)e * fabs(v) * (1 + s->size[i] + off);
        }
        write_value(ask, at + j, (double)value, (double)size);
    }
}

spk_status spk_attention_oracle(const spk_mem *mem, const spk_problem *p, const spk_args *args, const spk_oracle_ask *ask)
{
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]);
    scores s = {.problem = p};
    SPK_TRY(spk_alloc(mem, 3 * (size_t)(p->n > 0 ? p->n : 1), sizeof(double), &s.score));
    s.size = s.score + p->n;
    s.keys = (int64_t *)(void *)(s.size + p->n);
    for (int64_t r = 0; r < ask->row_count; r++) {
        const int64_t row = ask->rows != NULL ? ask->rows[r] : r;
        const int64_t item = row / (p->m * heads);
        s.args = spk_args_item(p, args, item);
        s.query = row % p->m;
        s.head = row / p->m % heads;
        s.head_kv = s.head / spk_attention_sharing(p);
        const int64_t number = spk_attention_find_sequence(p, &s.args, s.query);
        if (number < p->packing.sequences || p->packing.sequences == 0)
            find_keys(&s, number);
        else
            s.count = 0; /* of no sequence: nothing is written */
        ask_row(&s, ask, r * ask->cols);
    }
    spk_free(mem, s.score);
    return SPK_OK;
}

/* The oracle of attention: a query at a time, from the definition. */
#include <math.h>

#include "op/attention/score.h"

/* The scores of one query, in the order of the keys that it sees. */
typedef struct scores {
    const spk_problem *problem;
    spk_args args; /* of the item */
    int64_t query, head, head_kv;
    int64_t *keys;       /* that it sees; then their rows of K and V */
    double *score, *off; /* off: what a score may be off by */
    int64_t count;
    double tolerance, most, log_sum; /* log_sum: of exponentials above `most` */
    double spread;                   /* what log_sum may be off by */
} scores;

static void find_keys(scores *s, int64_t number)
{
    const spk_sequence sequence = spk_attention_sequence(s->problem, &s->args, number);
    s->count = spk_attention_keys(s->problem, &s->args, &sequence, s->head, s->query, s->keys);
    for (int64_t i = 0; i < s->count; i++)
        s->keys[i] = spk_attention_row(s->problem, &s->args, &sequence, s->keys[i]);
}

/* Log of the sum of exp(score - most) where each score is off by as much as it may, down (-1) or up (1). */
static double log_of_sum(const scores *s, int way)
{
    double highest = -(double)INFINITY;
    long double sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        highest = fmax(highest, s->score[i] - s->most + way * s->off[i]);
    for (int64_t i = 0; i < s->count; i++)
        sum += exp(s->score[i] - s->most + way * s->off[i] - highest);
    return highest + log((double)sum);
}

/* A distance from the greatest score is rounded, too. */
static void score_all(scores *s)
{
    const spk_problem *p = s->problem;
    const int64_t row = s->head * p->m + s->query, rows_kv = p->operand[ATTENTION_K].rows;
    s->most = -(double)INFINITY;
    for (int64_t i = 0; i < s->count; i++) {
        const spk_score score = spk_attention_score(p, &s->args, row, s->head_kv * rows_kv + s->keys[i], s->tolerance);
        s->score[i] = score.value;
        s->off[i] = score.off;
        s->most = score.value > s->most ? score.value : s->most;
    }
    for (int64_t i = 0; i < s->count; i++)
        s->off[i] += spk_attention_score_rounding(p) * (s->most - s->score[i]);
    s->log_sum = log_of_sum(s, 0);
    s->spread = fmax(fmax(s->log_sum - log_of_sum(s, -1), log_of_sum(s, 1) - s->log_sum), 0);
}

static void write_value(const spk_oracle_ask *ask, int64_t at, double value, double magnitude)
{
    if (ask->want != NULL)
        ask->want[at] = value;
    if (ask->magnitude != NULL)
        ask->magnitude[at] = spk_magnitude(magnitude);
}

static void ask_value(const scores *s, const spk_oracle_ask *ask, int64_t at, int64_t col)
{
    const spk_operand *v = &s->problem->operand[ATTENTION_V];
    long double value = 0, size = 0, off = 0;
    double largest = 0; /* of what has a part in O: weights sum to 1 */
    for (int64_t i = 0; i < s->count; i++) {
        const double log_weight = s->score[i] - s->most - s->log_sum, weight = exp(log_weight),
                     x = spk_operand_get(v, s->args.at[ATTENTION_V], s->head_kv * v->rows + s->keys[i], col),
                     weight_off = spk_attention_weight_off(log_weight, s->off[i] + s->spread);
        value += (long double)weight * x;
        size += (long double)weight * fabs(x);
        off += (long double)weight_off * fabs(x);
        largest = weight_off > 0 ? fmax(largest, fabs(x)) : largest;
    }
    write_value(ask, at, (double)value, (double)size + spk_attention_off_size(off < 2 * largest ? (double)off : 2 * largest, s->tolerance));
}

static void ask_row(scores *s, const spk_oracle_ask *ask, int64_t at)
{
    score_all(s);
    if (ask->output == ATTENTION_LSE) {
        const double lse = s->count > 0 ? s->most + s->log_sum : -(double)INFINITY;
        for (int64_t j = 0; j < ask->cols; j++)
            write_value(ask, at + j, lse, 1 + fabs(lse) + spk_attention_off_size(s->spread, s->tolerance));
        return;
    }
    for (int64_t j = 0; j < ask->cols; j++)
        ask_value(s, ask, at + j, ask->col0 + j);
}

spk_status spk_attention_oracle(const spk_mem *mem, const spk_problem *p, const spk_args *args, const spk_oracle_ask *ask)
{
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]);
    scores s = {.problem = p, .tolerance = p->op->tolerance(p, ask->output)};
    SPK_TRY(spk_alloc(mem, 3 * (size_t)(p->n > 0 ? p->n : 1), sizeof(double), &s.score));
    s.off = s.score + p->n;
    s.keys = (int64_t *)(void *)(s.off + p->n);
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

/* Scores of attention, and their rounding (docs/numerics.md, "Large scores"). */
#include "op/attention/score.h"

#include <math.h>
#include <string.h>

double spk_attention_score_rounding(const spk_problem *p)
{
    return spk_attention_rounding(p, p->k, p->n, false);
}

/* The lowest bit that is set in a number, as a number; infinity of 0, as all units divide it. */
static double lowest_bit(double x)
{
    uint64_t bits;
    int exponent;
    if (x == 0 || !isfinite(x))
        return (double)INFINITY;
    const double whole = ldexp(fabs(frexp(x, &exponent)), 53); /* 53 bits, of which the first is set */
    bits = (uint64_t)whole;
    return ldexp(1, exponent - 53 + __builtin_ctzll(bits));
}

static double get(const spk_problem *p, const spk_args *args, int operand, int64_t row, int64_t col)
{
    return spk_operand_get(&p->operand[operand], args->at[operand], row, col);
}

/* Whether every sum of the products is exact, in any order and before or after the scale: all are multiples of one unit, of which there are
 * no more than the type of the sums can count. */
static bool is_exact(const spk_problem *p, const spk_args *args, int64_t row_q, int64_t row_k, double size)
{
    const double scale = args->scalar[ATTENTION_SCALE], most = ldexp(1, spk_type_of(p->compute)->significand);
    double unit = (double)INFINITY;
    int exponent;
    if (scale != 0 && fabs(frexp(scale, &exponent)) != 0.5)
        return false;
    for (int64_t d = 0; d < p->k; d++)
        unit = fmin(unit, lowest_bit(get(p, args, ATTENTION_Q, row_q, d)) * lowest_bit(get(p, args, ATTENTION_K, row_k, d)));
    return size <= unit * most;
}

spk_score spk_attention_score(const spk_problem *p, const spk_args *args, int64_t row_q, int64_t row_k, double tolerance)
{
    const double scale = args->scalar[ATTENTION_SCALE], cap = args->scalar[ATTENTION_SOFTCAP], rounding = spk_attention_score_rounding(p);
    const bool capped = p->band.use_softcap && cap != 0;
    const double matters = 0x1p-10; /* a smaller part of a weight is not worth the search */
    long double sum = 0, size = 0;
    for (int64_t d = 0; d < p->k; d++) {
        const long double term = (long double)get(p, args, ATTENTION_Q, row_q, d) * get(p, args, ATTENTION_K, row_k, d);
        sum += term;
        size += fabsl(term);
    }
    const double raw = (double)(scale * sum), scaled = fabs(scale) * (double)size;
    const bool exact = rounding * scaled > matters && is_exact(p, args, row_q, row_k, (double)size);
    if (!capped)
        return (spk_score){raw, exact ? 0 : rounding * scaled, 1, 0};
    const double bent = tanh(raw / cap), off = exact ? 0 : tolerance * scaled;
    return (spk_score){cap * bent, fmin(off, 2 * fabs(cap)) + tolerance * fabs(cap * bent), 1 - bent * bent, fmin(2 * off / fabs(cap), 1)};
}

double spk_attention_weight_off(double log_weight, double off)
{
    return off < 1 ? exp(log_weight) * expm1(off) : exp(fmin(log_weight + off, 0));
}

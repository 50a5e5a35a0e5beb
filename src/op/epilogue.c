/* The epilogue of matrix products, as sparsek.h defines it: as text, and in float64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/fields.h"
#include "op/product.h"

double spk_activate_f64(spk_activation activation, double x)
{
    const double sqrt_half = 0.70710678118654752440, sqrt_two_over_pi = 0.79788456080286535588;
    switch (activation) {
    case SPK_ACT_NONE:
        break;
    case SPK_ACT_RELU:
        return x > 0 || isnan(x) ? x : 0;
    case SPK_ACT_GELU_ERF:
        /* erfc keeps the relative accuracy of the left tail, and gives -0 rather than NaN at minus infinity through the guard. */
        return x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * sqrt_half);
    case SPK_ACT_GELU_TANH:
        return x == -INFINITY ? -0.0 : 0.5 * x * (1 + tanh(sqrt_two_over_pi * (x + 0.044715 * x * x * x)));
    case SPK_ACT_SILU:
        return x == -INFINITY ? -0.0 : x / (1 + exp(-x));
    }
    return x;
}

/* Appends "+word", where the word is not empty. */
static int add_term(char *text, int length, const char *terms, int index)
{
    int count = 0;
    const char *word = spk_list_word(terms, index, &count);
    if (count == 0)
        return length;
    text[length] = '+';
    memcpy(text + length + 1, word, (size_t)count);
    return length + 1 + count;
}

void spk_epilogue_text(const spk_epilogue *epilogue, char *buffer, size_t size)
{
    char text[96];
    int length = add_term(text, 0, "|beta", epilogue->use_c);
    length = add_term(text, length, SPK_BIAS_TERMS, (int)epilogue->bias);
    length = add_term(text, length, SPK_ACTIVATION_TERMS, (int)epilogue->activation);
    length = add_term(text, length, SPK_RESIDUAL_TERMS, (int)epilogue->residual);
    length = add_term(text, length, "|preact", epilogue->keep_preact);
    text[length] = '\0';
    snprintf(buffer, size, "%s", length > 0 ? text + 1 : "none");
}

spk_finished spk_product_finish(const spk_problem *p, const spk_args *args, int output, int64_t i, int64_t j, long double sum,
                                long double size)
{
    const spk_epilogue *e = &p->epilogue;
    long double value = (long double)args->alpha * sum, total = fabsl((long double)args->alpha) * size;
    if (e->use_c && args->beta != 0) {
        const long double term = (long double)args->beta * spk_operand_get(&p->c, args->c, i, j);
        value += term;
        total += fabsl(term);
    }
    if (e->bias != SPK_BIAS_NONE) {
        const long double term = spk_value_get(args->bias, p->bias.dtype, e->bias == SPK_BIAS_PER_ROW ? i : j);
        value += term;
        total += fabsl(term);
    }
    if (output == SPK_PREACT)
        return (spk_finished){(double)value, spk_magnitude((double)total)};
    double result = (double)value;
    const bool vague = e->activation != SPK_ACT_NONE && !isfinite(result); /* then kernels may differ */
    if (e->activation != SPK_ACT_NONE) {
        result = spk_activate_f64(e->activation, result);
        total *= 1.13L;
    }
    if (e->residual != SPK_RESIDUAL_NONE) {
        const double term = spk_operand_get(&p->residual, args->residual, i, j);
        const bool factor = e->residual == SPK_RESIDUAL_MULTIPLY;
        result = factor ? result * term : result + term;
        total = factor ? total * fabs(term) : total + fabs(term);
    }
    return (spk_finished){result, vague ? NAN : spk_magnitude((double)total)};
}

/* The activations in float64, as sparsek.h defines them. */
#include <math.h>

#include "op/problem.h"

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

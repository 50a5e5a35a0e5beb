/* For the oracles of attention and of its gradients: a score from its definition, and what rounding may make of it. */
#ifndef SPK_OP_ATTENTION_SCORE_H
#define SPK_OP_ATTENTION_SCORE_H

#include "op/attention/attention.h"

/* slope: by which a score grows with scale Q K^T, other than 1 where it is capped. Beside each number what it may be off by. */
typedef struct spk_score {
    double value, off, slope, slope_off;
} spk_score;

/* Of a row of Q and one of K, counted over all heads of the item. tolerance: of the output that is asked for. */
spk_score spk_attention_score(const spk_problem *problem, const spk_args *args, int64_t row_q, int64_t row_k, double tolerance);

/* What rounding explains of a score, over the sum of its terms' absolute values. */
double spk_attention_score_rounding(const spk_problem *problem);

/* What a weight of log `log_weight` may be off by, where that log may be off by so much: an interval, as exponentials of large numbers are
 * not nearly straight; no weight is above 1. */
double spk_attention_weight_off(double log_weight, double off);

/* What an error that is not rounding adds to a magnitude: of the tolerance times this, the error and what it is rounded by. */
static inline double spk_attention_off_size(double off, double tolerance)
{
    return off + off / tolerance;
}

#endif

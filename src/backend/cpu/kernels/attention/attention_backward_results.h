/* What a worker of attention's gradients has for its tile, besides S(attention) of attention_pieces.h. */
#include "backend/cpu/kernels/attention/attention_backward_plan.h"
#include "backend/cpu/kernels/attention/attention_products.h"
#include "backend/cpu/kernels/vectors/stored.h"
#if PAIRED
#include "backend/cpu/kernels/vectors/pairs.h"
#endif

typedef struct S(results) {
    const backward_job *job;
    const STORED *o, *grad_o; /* of the head */
    const REAL *lse, *grad_lse;
    STORED *grad_q;
    REAL *of_k, *of_v; /* sums of the share */
    REAL *above, *delta;
    bool finite; /* Q and grad_O of the tile are numbers */
#if PAIRED
    int least_q, least_out;                     /* numbers of these (least.h) */
    S(pair_least) least_weight, least_gradient; /* of the keys at hand: weights, and gradients of scores */
#endif
} S(results);

/* What a worker of attention has for its tile, besides S(attention) of attention_pieces.h. */
#include "backend/cpu/kernels/attention/attention_plan.h"
#include "backend/cpu/kernels/attention/attention_products.h"
#include "backend/cpu/kernels/vectors/stored.h"
#if PAIRED
#include "backend/cpu/kernels/vectors/pairs.h"
#endif

typedef struct S(results) {
    const attention_job *job;
    STORED *o; /* of the head */
    REAL *lse; /* NULL: not wanted */
    REAL *most, *sum;
#if PAIRED
    int least_q;                /* numbers of Q (least.h) */
    S(pair_least) least_weight; /* and weights of the keys at hand */
#endif
} S(results);

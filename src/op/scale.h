/* Scale factors of A and B (spk_scale): operands of their own, float32, one after another by rows. The tile of a matrix that a factor
 * covers is a part of the problem (scaled_a, scaled_b): SPK_SCALE_BLOCK where SpMM's A has one for each stored block, in their order. */
#ifndef SPK_OP_SCALE_H
#define SPK_OP_SCALE_H

#include "op/operation.h"

/* The tile that a factor of A (which: 0) or B covers; rows = 0: there are none. */
static inline const spk_operand *spk_scaled(const spk_problem *problem, int which)
{
    return which == 0 ? &problem->scaled_a : &problem->scaled_b;
}

static inline bool spk_problem_is_scaled(const spk_problem *problem)
{
    return problem->scaled_a.rows != 0 || problem->scaled_b.rows != 0;
}

/* As the caller gives it. */
static inline spk_scale spk_given_scale(const spk_problem *problem, int which)
{
    return (spk_scale){spk_scaled(problem, which)->rows, spk_scaled(problem, which)->cols};
}

/* The operands of factors, where sizes, pattern or batch have changed. */
void spk_scales_fit(spk_problem *problem);

/* Where they lie, for who reads them one by one. */
typedef struct spk_scales {
    struct {
        const float *factors; /* NULL: all are 1 */
        int64_t rows, cols;   /* of a tile; INT64_MAX: all that there are */
        int64_t ld;
        bool by_block; /* one for each stored block */
    } of[2];
} spk_scales;

spk_scales spk_scales_of(const spk_problem *problem, const spk_args *args);

/* The factors of A[i][k] and B[k][j] together. position: of the stored block of A that the element is in, where there is one. */
static inline double spk_scale_at(const spk_scales *s, int64_t i, int64_t k, int64_t j, int64_t position)
{
    double product = 1;
    if (s->of[0].factors != NULL)
        product = (double)s->of[0].factors[s->of[0].by_block ? position : i / s->of[0].rows * s->of[0].ld + k / s->of[0].cols];
    if (s->of[1].factors != NULL)
        product *= (double)s->of[1].factors[k / s->of[1].rows * s->of[1].ld + j / s->of[1].cols];
    return product;
}

/* "a=1x128,b=128x128" for keys and messages, "all" for SPK_SCALE_ALL, "blockxblock" for SPK_SCALE_BLOCK. */
enum { SPK_SCALES_TEXT = 96 };
void spk_scales_text(const spk_problem *problem, char *text, size_t size);

#endif

/* Sizes and tolerance of matrix products. */
#include "op/product.h"

#include <math.h>
#include <stdio.h>

void spk_values_fit(const spk_pattern *pattern, spk_layout block_layout, spk_operand *operand)
{
    const bool by_row = block_layout == SPK_ROW_MAJOR;
    operand->rows = pattern->nnzb * (by_row ? pattern->block_rows : pattern->block_cols);
    operand->cols = by_row ? pattern->block_cols : pattern->block_rows;
    operand->layout = SPK_ROW_MAJOR;
}

void spk_product_fit(spk_problem *p, int64_t rows, int64_t cols)
{
    spk_operand *const like_d[] = {&p->c, &p->d, &p->residual, &p->preact};
    for (size_t i = 0; i < sizeof like_d / sizeof like_d[0]; i++)
        if (like_d[i]->dtype != SPK_DTYPE_DEFAULT) {
            like_d[i]->rows = rows;
            like_d[i]->cols = cols;
        }
    if (p->epilogue.bias != SPK_BIAS_NONE) {
        const int64_t length = p->epilogue.bias == SPK_BIAS_PER_ROW ? p->m : p->n;
        p->bias = (spk_operand){.rows = 1, .cols = length, .ld = length, .dtype = p->d.dtype};
    }
    spk_scales_fit(p);
}

bool spk_product_goes_on(const spk_problem *p, bool (*goes_on)(const spk_operand *operand, int64_t items))
{
    return goes_on(&p->c, p->batch) && goes_on(&p->d, p->batch) && goes_on(&p->residual, p->batch) && goes_on(&p->preact, p->batch);
}

int spk_product_defines(const spk_problem *p, spk_layout layout_d, bool a_along_k, char *text, size_t size)
{
    const spk_epilogue *e = &p->epilogue;
    return snprintf(
        text, size,
        "-DDTYPE_A=%d -DDTYPE_B=%d -DDTYPE_D=%d -DCOMPUTE=%d -DLAYOUT_B=%d -DLAYOUT_D=%d -DA_K_CONTIGUOUS=%d -DHAS_POSITIONS=%d -DUSE_C=%d "
        "-DBIAS=%d -DACTIVATION=%d -DRESIDUAL=%d -DKEEP_PREACT=%d -DASSUME_FINITE=%d%s",
        (int)p->a.dtype, (int)p->b.dtype, (int)p->d.dtype, (int)p->compute, (int)p->b.layout, (int)layout_d, a_along_k,
        p->trans_a == SPK_TRANS, e->use_c, (int)e->bias, (int)e->activation, (int)e->residual, e->keep_preact, p->assume_finite,
        p->batch > 1 ? " -DBATCHED=1" : "");
}

double spk_product_dense_flops(const spk_problem *problem)
{
    return 2.0 * (double)problem->m * (double)problem->k * (double)problem->n;
}

double spk_product_tolerance(const spk_problem *problem, double terms)
{
    const spk_type *compute = spk_type_of(problem->compute);
    const double eps =
        spk_type_epsilon(spk_type_is_whole(compute->dtype) ? SPK_F32 : compute->sums); /* what is behind exact sums is float */
    const double inputs =
        compute->use == SPK_USE_PRODUCTS ? 2 * spk_type_epsilon(compute->dtype) : 0; /* two factors, which may be cut off */
    const double output = spk_type_is_narrow(problem->d.dtype) ? spk_type_rounding(problem->d.dtype) : 0; /* |D| <= magnitude */
    return inputs + output + eps * (8.0 + 2.0 * sqrt(terms));
}

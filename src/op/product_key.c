/* Fields of the tuning key of matrix products. */
#include <math.h>

#include "op/product.h"

/* ------------------------------------------------------------------------------------------------ exact fields */

static bool layout_of(char *text, size_t size, spk_layout layout)
{
    return spk_key_text(text, size, layout == SPK_ROW_MAJOR ? "r" : "c");
}

bool spk_key_a(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->a.dtype));
}

bool spk_key_b(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->b.dtype));
}

bool spk_key_d(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->d.dtype));
}

bool spk_key_compute(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->compute));
}

bool spk_key_scales(const spk_problem *p, char *text, size_t size)
{
    spk_scales_text(p, text, size);
    return spk_problem_is_scaled(p);
}

bool spk_key_trans(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, p->trans_a == SPK_TRANS ? "t" : "n");
}

bool spk_key_block_layout(const spk_problem *p, char *text, size_t size)
{
    return layout_of(text, size, p->block_layout);
}

bool spk_key_layout_a(const spk_problem *p, char *text, size_t size)
{
    return layout_of(text, size, p->a.layout);
}

bool spk_key_layout_b(const spk_problem *p, char *text, size_t size)
{
    return layout_of(text, size, p->b.layout);
}

bool spk_key_layout_d(const spk_problem *p, char *text, size_t size)
{
    return layout_of(text, size, p->d.layout);
}

bool spk_key_alignment_a(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, spk_key_alignment(spk_operand_steps(&p->a)));
}

bool spk_key_alignment_b(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, spk_key_alignment(spk_operand_steps(&p->b)));
}

bool spk_key_alignment_d(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size,
                         spk_key_alignment(spk_operand_steps(&p->c) | spk_operand_steps(&p->d) | spk_operand_steps(&p->residual) |
                                           spk_operand_steps(&p->preact)));
}

bool spk_key_epilogue(const spk_problem *p, char *text, size_t size)
{
    spk_epilogue_text(&p->epilogue, text, size);
    return true;
}

/* A batch of values differs from a batch on one A. */
bool spk_key_stride_a(const spk_problem *p, char *text, size_t size)
{
    return p->batch > 1 && spk_key_whole(text, size, p->a.stride == 0 ? 0 : spk_key_alignment(p->a.stride));
}

bool spk_key_stride_b(const spk_problem *p, char *text, size_t size)
{
    return p->batch > 1 && spk_key_whole(text, size, p->b.stride != 0);
}

/* ------------------------------------------------------------------------------------------------ numbers */

/* A size that the pattern fixes. Patterns whose indices stay on the device are new ones at each step, often of other sizes. */
static bool size_of(const spk_problem *p, int64_t size, int64_t *value)
{
    *value = p->pattern != NULL && p->pattern->device_only ? spk_key_size(size) : size;
    return true;
}

bool spk_key_m(const spk_problem *p, int64_t *value)
{
    return size_of(p, p->m, value);
}

bool spk_key_n(const spk_problem *p, int64_t *value)
{
    *value = p->n;
    return true;
}

bool spk_key_k(const spk_problem *p, int64_t *value)
{
    return size_of(p, p->k, value);
}

bool spk_key_m_class(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->m);
    return true;
}

bool spk_key_n_class(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->n);
    return true;
}

bool spk_key_k_class(const spk_problem *p, int64_t *value)
{
    return size_of(p, spk_key_size(p->k), value);
}

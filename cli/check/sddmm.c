/* What `check` draws of SDDMM: on the pattern of a product, with its types. */
#include <string.h>

#include "cli/check/draw.h"

static int64_t draw_depth(random_state *r, bool gpu)
{
    static const int64_t usual[] = {0, 1, 2, 7, 8, 16, 31, 32, 64, 100, 128, 200, 256};
    if (gpu && random_chance(r, 0.15))
        return 8 * random_between(r, 1, 400);
    return random_chance(r, 0.6) ? usual[random_between(r, 0, 12)] : random_between(r, 1, gpu ? 600 : 200);
}

/* Tight or a little more; of TMA's alignment at times. */
static int64_t draw_ld(random_state *r, int64_t tight)
{
    if (random_chance(r, 0.4))
        return (tight + 7) / 8 * 8 + 8 * random_between(r, 0, 2) + (tight == 0 ? 8 : 0);
    return random_chance(r, 0.5) || tight == 0 ? 0 : tight + random_between(r, 0, 17);
}

void check_draw_sddmm(random_state *r, bool gpu, check_draft *draft, operation_struct *given)
{
    const spk_spmm *s = &draft->spmm;
    spk_sddmm sddmm = {SPK_SIZED(spk_sddmm),
                       .dtype_x = s->dtype_a,
                       .dtype_y = s->dtype_b,
                       .dtype_d = s->dtype_d,
                       .compute = s->compute,
                       .block_layout = s->block_layout,
                       .layout_x = (spk_layout)random_between(r, 0, 1),
                       .layout_y = s->layout_b};
    draft->m = draft->rows;
    draft->n = draft->cols;
    draft->k = draw_depth(r, gpu);
    sddmm.k = draft->k;
    sddmm.scale_x = check_draw_scale(r, sddmm.dtype_x, draft->block_rows, 16);
    sddmm.scale_y = check_draw_scale(r, sddmm.dtype_y, 16, draft->block_cols);
    sddmm.use_c = random_chance(r, 0.5);
    sddmm.ldy = draw_ld(r, sddmm.layout_y == SPK_ROW_MAJOR ? draft->cols : draft->k);
    draft->alias_c = sddmm.use_c && draft->alias_c;
    draft->alias_residual = false;
    draft->beta = sddmm.use_c ? (random_chance(r, 0.2) ? 0 : random_normal(r)) : 0;
    sddmm.ldx = draw_ld(r, sddmm.layout_x == SPK_ROW_MAJOR ? draft->k : draft->rows);
    memcpy(given->bytes, &sddmm, sizeof(sddmm));
}

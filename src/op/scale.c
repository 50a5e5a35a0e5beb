#include "op/scale.h"

#include <string.h>

#include "base/c_locale.h"
#include "op/read.h"
#include "type/tile.h"

/* The matrix that is scaled: op(A) of M x K, or B of K x N. */
static int64_t rows_of(const spk_problem *p, int which)
{
    return which == 0 ? p->m : p->k;
}

static int64_t cols_of(const spk_problem *p, int which)
{
    return which == 0 ? p->k : p->n;
}

static int64_t tiles_along(int64_t size, int64_t tile)
{
    return tile == SPK_SCALE_ALL ? size > 0 : size / tile + (size % tile != 0);
}

/* Whether the matrix has stored blocks. */
static bool is_stored_in_blocks(const spk_problem *p, int which)
{
    return which == 0 && strcmp(p->op->operands[SPK_A].extents, SPK_EXTENTS_VALUES) == 0;
}

void spk_scales_fit(spk_problem *p)
{
    for (int which = 0; which < 2; which++) {
        const spk_operand *tile = spk_scaled(p, which);
        spk_operand *factors = &p->operand[p->op->scales + which];
        if (tile->rows == 0)
            continue;
        const bool by_block = tile->rows == SPK_SCALE_BLOCK;
        *factors =
            (spk_operand){.dtype = SPK_F32,
                          .rows = by_block ? (p->pattern != NULL ? p->pattern->nnzb : 0) : tiles_along(rows_of(p, which), tile->rows),
                          .cols = by_block ? 1 : tiles_along(cols_of(p, which), tile->cols)};
        factors->ld = factors->cols > 0 ? factors->cols : 1;
        if (p->operand[which].stride == 0 || __builtin_mul_overflow(factors->rows, factors->cols, &factors->stride))
            factors->stride = 0; /* so many are refused with the other extents */
    }
}

/* Groups cut an axis anywhere: no tile lies across. */
static spk_status check_groups(const char *name, int which, const spk_problem *p)
{
    const spk_operand *tile = spk_scaled(p, which);
    const bool along_rows = which == 0 ? p->group_axis == SPK_GROUP_ROWS : p->group_axis == SPK_GROUP_DEPTH,
               along_cols = which == 0 ? p->group_axis == SPK_GROUP_DEPTH : p->group_axis == SPK_GROUP_COLS;
    const int64_t cut = along_rows ? tile->rows : along_cols ? tile->cols : 1;
    if (cut != 1 && cut != SPK_SCALE_ALL)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s.%s = %lld: along the axis that groups cut, a factor is of 1 or of all", name,
                        along_rows ? "rows" : "cols", (long long)cut);
    return SPK_OK;
}

spk_status spk_read_scale(const char *name, int which, spk_scale given, spk_problem *p)
{
    char types[SPK_TYPE_LIST_TEXT];
    if (given.rows == 0 && given.cols == 0)
        return SPK_OK;
    const bool by_block = given.rows == SPK_SCALE_BLOCK && given.cols == SPK_SCALE_BLOCK;
    if (by_block && !is_stored_in_blocks(p, which))
        return spk_fail(SPK_ERR_ARGUMENT, "%s: a factor for each stored block: this matrix has no stored blocks", name);
    const int64_t sides[] = {given.rows, given.cols};
    for (int i = 0; i < 2 && !by_block; i++)
        if (sides[i] < 1 && sides[i] != SPK_SCALE_ALL)
            return spk_fail(SPK_ERR_ARGUMENT, "%s.%s = %lld: a factor covers 1 element or more, or SPK_SCALE_ALL (%d)", name,
                            i == 0 ? "rows" : "cols", (long long)sides[i], SPK_SCALE_ALL);
    const spk_dtype dtype = p->operand[which].dtype;
    if (!spk_type_is_scaled(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s with %s: this version scales %s", name, spk_dtype_name(dtype),
                        spk_type_list(1u << SPK_USE_FACTORS, "and", types, sizeof types));
    *(which == 0 ? &p->scaled_a : &p->scaled_b) = (spk_operand){.rows = given.rows, .cols = given.cols};
    return check_groups(name, which, p);
}

spk_scales spk_scales_of(const spk_problem *p, const spk_args *args)
{
    spk_scales made;
    memset(&made, 0, sizeof made);
    for (int which = 0; which < 2; which++) {
        const spk_operand *tile = spk_scaled(p, which);
        if (tile->rows == 0)
            continue;
        made.of[which].factors = args->at[p->op->scales + which];
        made.of[which].rows = tile->rows != SPK_SCALE_ALL ? tile->rows : INT64_MAX;
        made.of[which].cols = tile->cols != SPK_SCALE_ALL ? tile->cols : INT64_MAX;
        made.of[which].ld = p->operand[p->op->scales + which].ld;
        made.of[which].by_block = tile->rows == SPK_SCALE_BLOCK;
    }
    return made;
}

void spk_scales_text(const spk_problem *p, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int which = 0; which < 2 && at < size; which++) {
        const spk_operand *tile = spk_scaled(p, which);
        if (tile->rows == 0)
            continue;
        char rows[SPK_TILE_SIDE_TEXT], cols[SPK_TILE_SIDE_TEXT];
        at += (size_t)spk_snprintf(text + at, size - at, "%s%c=%sx%s", at > 0 ? "," : "", "ab"[which],
                                   spk_tile_side_text(tile->rows, rows, sizeof rows), spk_tile_side_text(tile->cols, cols, sizeof cols));
    }
}

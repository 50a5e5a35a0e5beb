/* Masks of attention: which blocks of queries and keys count. Each block row is made twice from the same random numbers: once to count its
 * blocks, once to write them. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "matrix/generate.h"
#include "matrix/mask.h"
#include "matrix/matrix.h"

static const char *const shape_names[] = {
    [SPK_MASK_CAUSAL] = "causal",       [SPK_MASK_WINDOW] = "window",   [SPK_MASK_SINKS] = "sinks",
    [SPK_MASK_DOCUMENTS] = "documents", [SPK_MASK_STRIDED] = "strided", [SPK_MASK_RANDOM] = "random",
    [SPK_MASK_SELECTED] = "selected",   [SPK_MASK_VIDEO] = "video",     [SPK_MASK_NSA] = "nsa",
};
enum { SHAPE_END = sizeof shape_names / sizeof shape_names[0], USUAL_SINKS = 64, USUAL_SELECTED = 16 };
#define MOST_LISTS (INT64_C(1) << 20)

const char *spk_mask_shape_name(spk_mask_shape shape)
{
    const int number = (int)shape;
    return number > 0 && number < SHAPE_END ? shape_names[number] : NULL;
}

spk_mask_shape spk_mask_shape_from_name(const char *name)
{
    for (int i = 1; name != NULL && i < SHAPE_END; i++)
        if (strcmp(name, shape_names[i]) == 0)
            return (spk_mask_shape)i;
    return (spk_mask_shape)0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* A number of the caller's, or the usual one where it is 0, at least 1. */
static spk_status read_number(const char *name, int64_t *value, int64_t usual)
{
    if (*value < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": must be at least 0", name, *value);
    *value = *value == 0 ? usual : *value;
    *value = *value < 1 ? 1 : *value;
    return SPK_OK;
}

static spk_status take_video(spk_generate *o)
{
    if (o->cells_x < 1 || o->cells_y < 1 || o->cells_z < 1 || o->cells_x > SPK_GENERATE_GRID_LIMIT ||
        o->cells_y > SPK_GENERATE_GRID_LIMIT || o->cells_z > SPK_GENERATE_GRID_LIMIT || o->cells_x * o->cells_y > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "cells = %" PRId64 " x %" PRId64 " x %" PRId64 ": each from 1, the first two together to %" PRId64, o->cells_x,
                        o->cells_y, o->cells_z, SPK_GENERATE_GRID_LIMIT);
    const int64_t tokens = o->cells_x * o->cells_y * o->cells_z;
    if (o->rows != tokens || o->cols != tokens)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "rows = %" PRId64 ", cols = %" PRId64 ": of %" PRId64 " frames of %" PRId64 " x %" PRId64 " both are %" PRId64,
                        o->rows, o->cols, o->cells_x, o->cells_y, o->cells_z, tokens);
    SPK_TRY(read_number("window_x", &o->window_x, ceil_div(o->cells_x, 3)));
    SPK_TRY(read_number("window_y", &o->window_y, ceil_div(o->cells_y, 3)));
    return read_number("window_z", &o->window_z, ceil_div(o->cells_z, 3));
}

static spk_status take_options(spk_generate *o)
{
    if (spk_mask_shape_name(o->mask) == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "mask = %d: must be in 1 .. %d", (int)o->mask, SHAPE_END - 1);
    if (!(o->density >= 0 && o->density <= 1))
        return spk_fail(SPK_ERR_ARGUMENT, "density = %g: must be in 0 .. 1", o->density);
    if (o->all_keys != 0 && o->all_keys != 1)
        return spk_fail(SPK_ERR_ARGUMENT, "all_keys = %d: must be 0 or 1", o->all_keys);
    SPK_TRY(read_number("lists", &o->lists, 1));
    if (o->lists > MOST_LISTS)
        return spk_fail(SPK_ERR_ARGUMENT, "lists = %" PRId64 ": the limit is %" PRId64, o->lists, MOST_LISTS);
    SPK_TRY(read_number("window", &o->window, ceil_div(o->cols, 8)));
    SPK_TRY(read_number("sinks", &o->sinks, USUAL_SINKS));
    SPK_TRY(read_number("stride", &o->stride, ceil_div(o->cols, 16)));
    SPK_TRY(read_number("selected", &o->selected, USUAL_SELECTED));
    if (o->tokens_least < 0 || o->tokens_most < o->tokens_least || (o->tokens_most > 0 && o->tokens_least == 0))
        return spk_fail(SPK_ERR_ARGUMENT,
                        "tokens_least = %" PRId64 ", tokens_most = %" PRId64 ": both at least 1, the first no more than the second",
                        o->tokens_least, o->tokens_most);
    if (o->tokens_most == 0) {
        o->tokens_least = o->cols / 32 + 1;
        o->tokens_most = o->cols / 4 + 1;
    }
    return o->mask == SPK_MASK_VIDEO ? take_video(o) : SPK_OK;
}

/* Rows of all lists, with the last one's own end: checked against the limit of a grid. */
static spk_status size(const spk_generate *o, int64_t *list_rows, int64_t *grid_cols)
{
    if (o->block_rows < 1 || o->block_rows > 256 || o->block_cols < 1 || o->block_cols > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_rows = %" PRId64 ", block_cols = %" PRId64 ": must be in 1 .. 256", o->block_rows,
                        o->block_cols);
    if (o->rows < 0 || o->cols < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "rows = %" PRId64 ", cols = %" PRId64 ": must be at least 0", o->rows, o->cols);
    *list_rows = ceil_div(o->rows, o->block_rows);
    *grid_cols = ceil_div(o->cols, o->block_cols);
    if (*list_rows > SPK_GENERATE_GRID_LIMIT / o->lists || *grid_cols > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "rows = %" PRId64 ", cols = %" PRId64 ", lists = %" PRId64 ": make %" PRId64 " block rows each and %" PRId64
                        " block columns, limit %" PRId64 " in all",
                        o->rows, o->cols, o->lists, *list_rows, *grid_cols, SPK_GENERATE_GRID_LIMIT);
    return SPK_OK;
}

/* Goes through all block rows: counts their blocks, and writes them where there is a matrix. */
static int64_t place(const spk_generate *o, int64_t list_rows, spk_mask_row *row, spk_matrix *to)
{
    int64_t count = 0;
    for (int64_t list = 0; list < o->lists; list++)
        for (int64_t i = 0; i < list_rows; i++) {
            spk_mask_mark(row, list, i);
            for (int64_t j = row->first; j < row->end; j++)
                if (row->marks[j]) {
                    if (to != NULL)
                        to->col_indices[count] = j;
                    row->marks[j] = 0;
                    count++;
                }
            if (to != NULL)
                to->row_offsets[list * list_rows + i + 1] = count;
        }
    return count;
}

spk_status spk_generate_mask(const spk_mem *mem, const spk_generate *options, spk_matrix **out)
{
    spk_generate o = *options;
    const spk_dtype dtype = o.dtype == SPK_DTYPE_DEFAULT ? SPK_F32 : o.dtype;
    int64_t list_rows = 0, grid_cols = 0;
    spk_matrix *made = NULL;
    spk_status status;
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: matrices are generated as %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    SPK_TRY(take_options(&o));
    SPK_TRY(size(&o, &list_rows, &grid_cols));
    spk_mask_row row = {.options = &o, .grid_cols = grid_cols};
    SPK_TRY(spk_calloc(mem, (size_t)grid_cols + 1, 1, &row.marks));
    const int64_t rows = o.rows > 0 ? (o.lists - 1) * list_rows * o.block_rows + o.rows : 0;
    SPK_GOTO(spk_matrix_make(mem, SPK_BSR, dtype, rows, o.cols, o.block_rows, o.block_cols, SPK_ROW_MAJOR, place(&o, list_rows, &row, NULL),
                             &made));
    made->pattern_only = 1;
    made->row_offsets[0] = 0;
    (void)place(&o, list_rows, &row, made);
    for (int64_t i = 0, count = spk_matrix_value_count(made); i < count; i++)
        spk_value_set(made->values, dtype, i, 1);
    *out = made;
done:
    spk_free(mem, row.marks);
    return status;
}

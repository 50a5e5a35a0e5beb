/* An operand: an array that an operation reads or writes, as data. What is done to all of them (checks, poison, sizes, items of a batch,
 * proofs, equality, hash) loops over the table of the operation's operands. */
#ifndef SPK_OP_OPERAND_H
#define SPK_OP_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/matrix.h"

enum { SPK_MAX_OPERANDS = 14, SPK_MAX_SCALARS = 2 };

/* Of an array of the pattern's values. */
#define SPK_EXTENTS_VALUES "blocks"

/* What an operation says of an operand, whatever the problem. */
typedef struct spk_operand_row {
    const char *name;    /* as the caller's arguments call it */
    const char *title;   /* in messages on an element of it: "D" */
    const char *extents; /* by the operation's sizes: "k x n", or SPK_EXTENTS_VALUES */
    spk_role role;
    int scalar;           /* of IN_SCALED: its number */
    unsigned may_be;      /* of an output: bit i: it may be the same array as operand i */
    size_t place;         /* of the pointer in the caller's arguments */
    bool may_be_infinite; /* of an output: an element may be an infinity, where the oracle says so */
    bool may_be_static;   /* the caller may promise that it stays as it is from run to run (static_values of its description) */
} spk_operand_row;

/* An operand of a problem: a matrix, or one for each head, for each item of a batch. All zero: it has none. */
typedef struct spk_operand {
    int64_t rows, cols;
    int64_t ld;          /* elements from one line to the next; a line is a row of a row-major matrix, else a column */
    int64_t stride;      /* elements from one item to the next; 0: one for all */
    int64_t heads;       /* matrices of an item; 0: one, of an operation without heads */
    int64_t head_stride; /* elements from one of them to the next */
    spk_dtype dtype;
    spk_layout layout;
} spk_operand;

static inline bool spk_operand_is_empty(const spk_operand *o)
{
    return o->rows == 0 || o->cols == 0;
}

static inline int64_t spk_operand_lines(const spk_operand *o)
{
    return o->layout == SPK_ROW_MAJOR ? o->rows : o->cols;
}

/* Elements of a line. */
static inline int64_t spk_operand_length(const spk_operand *o)
{
    return o->layout == SPK_ROW_MAJOR ? o->cols : o->rows;
}

/* Elements between neighbours along a column, and along a row. */
static inline int64_t spk_operand_row_step(const spk_operand *o)
{
    return o->layout == SPK_ROW_MAJOR ? o->ld : 1;
}

static inline int64_t spk_operand_col_step(const spk_operand *o)
{
    return o->layout == SPK_ROW_MAJOR ? 1 : o->ld;
}

/* Matrices of an item. */
static inline int64_t spk_operand_heads(const spk_operand *o)
{
    return o->heads > 1 ? o->heads : 1;
}

/* Element (i, j) of an item, as a double; and rounded to the operand's dtype. Rows go on from head to head. */
double spk_operand_get(const spk_operand *operand, const void *array, int64_t i, int64_t j);
void spk_operand_set(const spk_operand *operand, void *array, int64_t i, int64_t j, double value);

/* The steps of its lines and items as one: what divides them all divides this. */
static inline int64_t spk_operand_steps(const spk_operand *o)
{
    return o->ld | o->stride | o->head_stride;
}

/* Elements from the first to the last of a matrix: ld * (lines - 1) + length; 0 for an empty one. And of an item, and of `items` items. */
int64_t spk_operand_matrix_elements(const spk_operand *operand);
int64_t spk_operand_item_elements(const spk_operand *operand);
int64_t spk_operand_elements(const spk_operand *operand, int64_t items);

static inline size_t spk_operand_bytes(const spk_operand *operand, int64_t items)
{
    return (size_t)spk_operand_elements(operand, items) * spk_dtype_bytes(operand->dtype);
}

/* How many items of its own an operand has, of `items`: one, where they share it. */
static inline int64_t spk_operand_items(const spk_operand *operand, int64_t items)
{
    return operand->stride != 0 ? items : 1;
}

/* Whether the lines of all heads and items follow one another at equal distances, as those of one array. */
bool spk_operand_is_one_array(const spk_operand *operand, int64_t items);

/* Of an operand without heads: whether the items follow one another as the columns, or the rows, of one array do. So do those of an empty
 * one. */
bool spk_operand_goes_on_across(const spk_operand *operand, int64_t items);
bool spk_operand_goes_on_down(const spk_operand *operand, int64_t items);

#endif

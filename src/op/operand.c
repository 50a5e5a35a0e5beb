/* Elements of operands; sizes, of items and of whole batches. */
#include "op/operand.h"

static int64_t place_of(const spk_operand *o, int64_t i, int64_t j)
{
    const int64_t head = o->heads > 1 ? i / o->rows : 0;
    return head * o->head_stride + (i - head * o->rows) * spk_operand_row_step(o) + j * spk_operand_col_step(o);
}

double spk_operand_get(const spk_operand *operand, const void *array, int64_t i, int64_t j)
{
    return spk_value_get(array, operand->dtype, place_of(operand, i, j));
}

void spk_operand_set(const spk_operand *operand, void *array, int64_t i, int64_t j, double value)
{
    spk_value_set(array, operand->dtype, place_of(operand, i, j), value);
}

int64_t spk_operand_matrix_elements(const spk_operand *operand)
{
    return spk_operand_is_empty(operand) ? 0 : operand->ld * (spk_operand_lines(operand) - 1) + spk_operand_length(operand);
}

int64_t spk_operand_item_elements(const spk_operand *operand)
{
    const int64_t elements = spk_operand_matrix_elements(operand);
    return elements > 0 ? elements + (spk_operand_heads(operand) - 1) * operand->head_stride : 0;
}

int64_t spk_operand_elements(const spk_operand *operand, int64_t items)
{
    const int64_t elements = spk_operand_item_elements(operand);
    return elements > 0 ? elements + (items - 1) * operand->stride : 0;
}

bool spk_operand_is_one_array(const spk_operand *o, int64_t items)
{
    const int64_t matrix = o->ld * spk_operand_lines(o), heads = spk_operand_heads(o);
    return (heads == 1 || o->head_stride == matrix) && (spk_operand_items(o, items) == 1 || o->stride == matrix * heads);
}

/* lines: of one item, where the items' lines are one after another; else each line goes on in the next item. */
static bool goes_on(const spk_operand *o, int64_t items, bool by_lines)
{
    if (spk_operand_is_empty(o))
        return true;
    const int64_t length = spk_operand_length(o);
    return by_lines ? o->stride == o->ld * spk_operand_lines(o) : o->stride == length && o->ld / length >= items;
}

bool spk_operand_goes_on_across(const spk_operand *operand, int64_t items)
{
    return goes_on(operand, items, operand->layout == SPK_COL_MAJOR);
}

bool spk_operand_goes_on_down(const spk_operand *operand, int64_t items)
{
    return goes_on(operand, items, operand->layout == SPK_ROW_MAJOR);
}

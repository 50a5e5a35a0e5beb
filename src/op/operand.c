/* Sizes of operands, of items and of whole batches. */
#include "op/operand.h"

int64_t spk_operand_item_elements(const spk_operand *operand)
{
    return spk_operand_is_empty(operand) ? 0 : operand->ld * (spk_operand_lines(operand) - 1) + spk_operand_length(operand);
}

int64_t spk_operand_elements(const spk_operand *operand, int64_t items)
{
    const int64_t elements = spk_operand_item_elements(operand);
    return elements > 0 ? elements + (items - 1) * operand->stride : 0;
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

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

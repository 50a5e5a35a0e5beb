/* The table of operations. */
#include "op/operation.h"

static const spk_op *const table[] = {
#define SPK_OP(name) &spk_op_##name,
#include "op/operations.def"
#undef SPK_OP
};

const spk_op *spk_op_at(int index)
{
    return index >= 0 && (size_t)index < sizeof table / sizeof table[0] ? table[index] : NULL;
}

const spk_op *spk_op_get(spk_operation operation)
{
    for (int i = 0; spk_op_at(i) != NULL; i++)
        if (table[i]->id == operation)
            return table[i];
    return NULL;
}

int spk_op_static_operand(const spk_op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i].may_be_static)
            return i;
    return -1;
}

void spk_row_list_add(spk_row_list *list, int64_t row)
{
    for (int i = 0; i < list->count; i++)
        if (list->rows[i] == row)
            return;
    if (row >= 0 && row < list->limit && list->count < list->capacity)
        list->rows[list->count++] = row;
}

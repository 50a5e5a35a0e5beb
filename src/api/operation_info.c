/* The tables of operations, as a caller may read them. */
#include <string.h>

#include "api/context.h"
#include "op/operation.h"

int spk_operation_count(void)
{
    int count = 0;
    while (spk_op_at(count) != NULL)
        count++;
    return count;
}

spk_status spk_operation_get_info(int index, spk_operation_info *info)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(info, "info"));
    const spk_op *op = spk_op_at(index);
    if (op == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: the table has %d operations", index, spk_operation_count());
    spk_operation_info ours = {.operation = op->id,
                               .takes_pattern = op->takes_pattern,
                               .name = op->name,
                               .formula = op->formula,
                               .problem_type = op->problem_type,
                               .args_type = op->args_type,
                               .problem_bytes = op->problem_bytes,
                               .args_bytes = op->args_bytes,
                               .workspace_offset = op->workspace_place,
                               .workspace_bytes_offset = op->workspace_bytes_place,
                               .stream_offset = op->stream_place,
                               .field_count = op->field_count,
                               .size_count = op->size_count,
                               .operand_count = op->operand_count,
                               .scalar_count = op->scalar_count,
                               .sentence = op->sentence};
    return spk_struct_write(info, &ours, sizeof ours, "spk_operation_info");
}

static spk_status find(spk_operation operation, const void *info, const spk_op **op)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(info, "info"));
    *op = spk_op_get(operation);
    return *op != NULL ? SPK_OK : spk_fail(SPK_ERR_ARGUMENT, "operation = %d: this version has no such operation", (int)operation);
}

static spk_status check_index(const spk_op *op, int index, int count, const char *what)
{
    if (index < 0 || index >= count)
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: %s has %d %s", index, op->name, count, what);
    return SPK_OK;
}

spk_status spk_operation_get_field(spk_operation operation, int index, spk_field_info *info)
{
    const spk_op *op = NULL;
    SPK_TRY(find(operation, info, &op));
    SPK_TRY(check_index(op, index, op->field_count, "fields"));
    return spk_struct_write(info, &op->fields[index], sizeof op->fields[index], "spk_field_info");
}

spk_status spk_operation_get_size(spk_operation operation, int index, spk_size_info *info)
{
    const spk_op *op = NULL;
    SPK_TRY(find(operation, info, &op));
    SPK_TRY(check_index(op, index, op->size_count, "sizes"));
    const spk_size_row *row = &op->sizes[index];
    const spk_size_info ours = {.name = row->name, .source = row->source, .usual = row->usual, .help = row->help};
    return spk_struct_write(info, &ours, sizeof ours, "spk_size_info");
}

spk_status spk_operation_get_operand(spk_operation operation, int index, spk_operand_info *info)
{
    const spk_op *op = NULL;
    SPK_TRY(find(operation, info, &op));
    SPK_TRY(check_index(op, index, op->operand_count, "operands"));
    const spk_operand_row *row = &op->operands[index];
    const spk_operand_info ours = {.name = row->name,
                                   .title = row->title,
                                   .extents = row->extents,
                                   .offset = row->place,
                                   .role = row->role,
                                   .scalar = row->role == SPK_ROLE_IN_SCALED ? row->scalar : -1,
                                   .is_values = row->extents != NULL && strcmp(row->extents, SPK_EXTENTS_VALUES) == 0,
                                   .may_be_static = row->may_be_static,
                                   .may_be = row->may_be};
    return spk_struct_write(info, &ours, sizeof ours, "spk_operand_info");
}

spk_status spk_operation_get_scalar(spk_operation operation, int index, spk_scalar_info *info)
{
    const spk_op *op = NULL;
    SPK_TRY(find(operation, info, &op));
    SPK_TRY(check_index(op, index, op->scalar_count, "scalars"));
    const spk_scalar_row *row = &op->scalars[index];
    const spk_scalar_info ours = {.name = row->name, .offset = row->place, .operand = row->operand};
    return spk_struct_write(info, &ours, sizeof ours, "spk_scalar_info");
}

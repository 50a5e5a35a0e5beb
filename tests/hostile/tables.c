/* The operations' tables, and the members of the caller's structs that they tell of. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "hostile: %s\n", what);
        exit(2);
    }
}

static void read_one(int index, operation *op)
{
    *op = (operation){.info = {SPK_SIZED(spk_operation_info)}};
    need(spk_operation_get_info(index, &op->info) == SPK_OK, "the table of operations cannot be read");
    need(op->info.field_count <= MOST_FIELDS && op->info.operand_count <= MOST_OPERANDS && op->info.scalar_count <= MOST_SCALARS &&
             op->info.problem_bytes <= sizeof(given) && op->info.args_bytes <= sizeof(given),
         "an operation has more than there is room for");
    for (int i = 0; i < op->info.field_count; i++) {
        op->fields[i] = (spk_field_info){SPK_SIZED(spk_field_info)};
        need(spk_operation_get_field(op->info.operation, i, &op->fields[i]) == SPK_OK, "a field cannot be read");
    }
    for (int i = 0; i < op->info.operand_count; i++) {
        op->operands[i] = (spk_operand_info){SPK_SIZED(spk_operand_info)};
        need(spk_operation_get_operand(op->info.operation, i, &op->operands[i]) == SPK_OK, "an operand cannot be read");
    }
    for (int i = 0; i < op->info.scalar_count; i++) {
        op->scalars[i] = (spk_scalar_info){SPK_SIZED(spk_scalar_info)};
        need(spk_operation_get_scalar(op->info.operation, i, &op->scalars[i]) == SPK_OK, "a scalar cannot be read");
    }
}

int operations_read(operation *list, int most)
{
    const int count = spk_operation_count();
    need(count <= most, "there are more operations than there is room for");
    for (int i = 0; i < count; i++)
        read_one(i, &list[i]);
    return count;
}

given given_problem(const operation *op)
{
    given made = {{0}};
    made.head.struct_size = op->info.problem_bytes;
    made.head.operation = op->info.operation;
    return made;
}

given given_args(const operation *op)
{
    given made = {{0}};
    made.head.struct_size = op->info.args_bytes;
    made.head.operation = op->info.operation;
    return made;
}

bool field_is_wide(const spk_field_info *field)
{
    switch (field->kind) {
    case SPK_FIELD_DTYPE:
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_PART:
    case SPK_FIELD_CHOICE:
    case SPK_FIELD_PROMISE:
        return false;
    default:
        return true;
    }
}

int64_t field_get(const spk_field_info *field, const given *problem)
{
    int64_t wide;
    int narrow;
    memcpy(&wide, problem->bytes + field->offset, sizeof wide);
    memcpy(&narrow, problem->bytes + field->offset, sizeof narrow);
    return field_is_wide(field) ? wide : narrow;
}

void field_put(const spk_field_info *field, given *problem, int64_t value)
{
    const int narrow = (int)value;
    const double real = (double)value;
    const spk_scale tile = {value, value > 1 ? SPK_SCALE_ALL + value : value};
    if (field->kind == SPK_FIELD_REAL)
        memcpy(problem->bytes + field->offset, &real, sizeof real);
    else if (field->kind == SPK_FIELD_SCALE)
        memcpy(problem->bytes + field->offset, &tile, sizeof tile);
    else if (field_is_wide(field))
        memcpy(problem->bytes + field->offset, &value, sizeof value);
    else
        memcpy(problem->bytes + field->offset, &narrow, sizeof narrow);
}

const spk_field_info *field_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.field_count; i++)
        if (strcmp(op->fields[i].name, name) == 0)
            return &op->fields[i];
    return NULL;
}

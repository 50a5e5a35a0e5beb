/* The operations as the library tells of them. */
#include "cli/problem/operation.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"
#include "cli/base/text.h"

static operation table[OPERATION_MOST];
static int table_count = -1;

static void read_rows(operation *op)
{
    const spk_operation id = op->info.operation;
    op->fields = cli_alloc((size_t)op->info.field_count, sizeof(*op->fields));
    op->sizes = cli_alloc((size_t)op->info.size_count, sizeof(*op->sizes));
    op->operands = cli_alloc((size_t)op->info.operand_count, sizeof(*op->operands));
    op->scalars = cli_alloc((size_t)op->info.scalar_count, sizeof(*op->scalars));
    for (int i = 0; i < op->info.field_count; i++) {
        op->fields[i] = (spk_field_info){SPK_SIZED(spk_field_info)};
        (void)spk_operation_get_field(id, i, &op->fields[i]);
    }
    for (int i = 0; i < op->info.size_count; i++) {
        op->sizes[i] = (spk_size_info){SPK_SIZED(spk_size_info)};
        (void)spk_operation_get_size(id, i, &op->sizes[i]);
    }
    for (int i = 0; i < op->info.operand_count; i++) {
        op->operands[i] = (spk_operand_info){SPK_SIZED(spk_operand_info)};
        (void)spk_operation_get_operand(id, i, &op->operands[i]);
    }
    for (int i = 0; i < op->info.scalar_count; i++) {
        op->scalars[i] = (spk_scalar_info){SPK_SIZED(spk_scalar_info)};
        (void)spk_operation_get_scalar(id, i, &op->scalars[i]);
    }
}

/* The program asks before it starts threads. */
static void read_table(void)
{
    int count = 0;
    for (; count < spk_operation_count() && count < OPERATION_MOST; count++) {
        table[count].info = (spk_operation_info){SPK_SIZED(spk_operation_info)};
        if (spk_operation_get_info(count, &table[count].info) != SPK_OK)
            break;
        read_rows(&table[count]);
    }
    table_count = count;
}

const operation *operation_at(int index)
{
    if (table_count < 0)
        read_table();
    return index >= 0 && index < table_count ? &table[index] : NULL;
}

int operation_index(spk_operation id)
{
    for (int i = 0; operation_at(i); i++)
        if (table[i].info.operation == id)
            return i;
    return -1;
}

const char *operation_names(void)
{
    static char *names;
    for (int i = 0; !names && operation_at(i); i++) {
        char *all = NULL;
        for (int j = 0; operation_at(j); j++) {
            char *longer = cli_format("%s%s%s", j ? all : "", j ? "|" : "", table[j].info.name);
            free(all);
            all = longer;
        }
        names = all;
    }
    return names;
}

static operation_struct beginning(size_t bytes, spk_operation id)
{
    operation_struct made;
    memset(&made, 0, sizeof(made));
    memcpy(made.bytes, &bytes, sizeof(bytes));
    memcpy(made.bytes + sizeof(bytes), &id, sizeof(id));
    return made;
}

operation_struct operation_problem(const operation *op)
{
    return beginning(op->info.problem_bytes, op->info.operation);
}

operation_struct operation_args(const operation *op)
{
    return beginning(op->info.args_bytes, op->info.operation);
}

int operation_size_from(const operation *op, spk_size_source source)
{
    for (int i = 0; i < op->info.size_count; i++)
        if (op->sizes[i].source == source || (op->sizes[i].source == SPK_SIZE_LIST_ROWS && source == SPK_SIZE_PATTERN_ROWS) ||
            (op->sizes[i].source == SPK_SIZE_LIST_COLS && source == SPK_SIZE_PATTERN_COLS))
            return i;
    return -1;
}

int operation_size_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.size_count; i++)
        if (strcmp(op->sizes[i].name, name) == 0)
            return i;
    return -1;
}

const spk_field_info *operation_field_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.field_count; i++)
        if (strcmp(op->fields[i].name, name) == 0)
            return &op->fields[i];
    return NULL;
}

const spk_field_info *operation_field(const operation *op, spk_field_kind kind, int operand)
{
    for (int i = 0; i < op->info.field_count; i++)
        if (op->fields[i].kind == kind && (operand == -2 || op->fields[i].operand == operand))
            return &op->fields[i];
    return NULL;
}

int operation_output(const operation *op, int number)
{
    for (int i = 0; i < op->info.operand_count; i++)
        if (op->operands[i].role == SPK_ROLE_OUT && number-- == 0)
            return i;
    return -1;
}

int operation_static_operand(const operation *op)
{
    for (int i = 0; i < op->info.operand_count; i++)
        if (op->operands[i].may_be_static)
            return i;
    return -1;
}

bool operation_is_wide(spk_field_kind kind)
{
    return kind == SPK_FIELD_SIZE || kind == SPK_FIELD_ITEMS || kind == SPK_FIELD_LD || kind == SPK_FIELD_STRIDE ||
           kind == SPK_FIELD_GROUPS || kind == SPK_FIELD_HEADS || kind == SPK_FIELD_HEAD_STRIDE || kind == SPK_FIELD_COUNT;
}

int64_t operation_get(const spk_field_info *field, const operation_struct *problem)
{
    int64_t wide = 0;
    int narrow = 0;
    if (!operation_is_wide(field->kind)) {
        memcpy(&narrow, problem->bytes + field->offset, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, problem->bytes + field->offset, sizeof(wide));
    return wide;
}

void operation_put(const spk_field_info *field, operation_struct *problem, int64_t value)
{
    const int narrow = (int)value;
    if (operation_is_wide(field->kind))
        memcpy(problem->bytes + field->offset, &value, sizeof(value));
    else
        memcpy(problem->bytes + field->offset, &narrow, sizeof(narrow));
}

void operation_promise(const operation *op, operation_struct *problem, const char *name, bool yes)
{
    const spk_field_info *field = operation_field_named(op, name);
    if (field && field->kind == SPK_FIELD_PROMISE)
        operation_put(field, problem, yes);
}

void operation_put_real(const spk_field_info *field, operation_struct *problem, double value)
{
    memcpy(problem->bytes + field->offset, &value, sizeof(value));
}

void operation_put_scale(const spk_field_info *field, operation_struct *problem, spk_scale value)
{
    memcpy(problem->bytes + field->offset, &value, sizeof(value));
}

spk_scale operation_get_scale(const spk_field_info *field, const operation_struct *problem)
{
    spk_scale value;
    memcpy(&value, problem->bytes + field->offset, sizeof(value));
    return value;
}

void *operation_pointer(const operation *op, const operation_struct *given, int operand)
{
    void *pointer;
    memcpy(&pointer, given->bytes + op->operands[operand].offset, sizeof(pointer));
    return pointer;
}

void operation_set_pointer(const operation *op, operation_struct *given, int operand, const void *pointer)
{
    memcpy(given->bytes + op->operands[operand].offset, &pointer, sizeof(pointer));
}

void operation_set_scalar(const operation *op, operation_struct *given, int scalar, double value)
{
    memcpy(given->bytes + op->scalars[scalar].offset, &value, sizeof(value));
}

void operation_set_workspace(const operation *op, operation_struct *given, void *workspace, size_t bytes)
{
    memcpy(given->bytes + op->info.workspace_offset, &workspace, sizeof(workspace));
    memcpy(given->bytes + op->info.workspace_bytes_offset, &bytes, sizeof(bytes));
}

const char *operation_word(const char *list, int index, int *length)
{
    while (index-- > 0 && *list) {
        list += strcspn(list, "|");
        list += *list == '|';
    }
    *length = (int)strcspn(list, "|");
    return list;
}

int operation_words(const char *list)
{
    int count = 1;
    for (; *list; list++)
        count += *list == '|';
    return count;
}

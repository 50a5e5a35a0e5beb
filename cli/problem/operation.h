/* The operations as the library tells of them, read once; and a description of a problem, by its fields. */
#ifndef SPARSEK_CLI_PROBLEM_OPERATION_H
#define SPARSEK_CLI_PROBLEM_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include <sparsek/sparsek.h>

enum { OPERATION_MOST = 16, OPERATION_MOST_ARRAYS = 16, OPERATION_MOST_SCALARS = 4, OPERATION_MOST_BYTES = 1024 };

typedef struct operation {
    spk_operation_info info;
    spk_field_info *fields;
    spk_size_info *sizes;
    spk_operand_info *operands;
    spk_scalar_info *scalars;
} operation;

/* A struct of an operation: a description, or the arguments of a run. */
typedef union operation_struct {
    double aligned;
    char bytes[OPERATION_MOST_BYTES];
} operation_struct;

/* By index of the library's table; NULL: there is none. */
const operation *operation_at(int index);
int operation_index(spk_operation id);

/* "spmm|sddmm", for a choice. */
const char *operation_names(void);

/* An empty description of a problem, and empty arguments. */
operation_struct operation_problem(const operation *op);
operation_struct operation_args(const operation *op);

/* The size that the rows (or columns) of the pattern, or of each of its lists, are; -1: none. */
int operation_size_from(const operation *op, spk_size_source source);
int operation_size_named(const operation *op, const char *name);

/* The field that says which axis groups cut: one of SPK_FIELD_GROUPS goes with it. */
#define OPERATION_GROUP_AXIS "group_axis"

const spk_field_info *operation_field_named(const operation *op, const char *name); /* NULL: there is none */

/* The first field of a kind, about an operand (-2: any); NULL: none. */
const spk_field_info *operation_field(const operation *op, spk_field_kind kind, int operand);

/* Operand `number` of those that a run writes; -1: there are fewer. */
int operation_output(const operation *op, int number);

/* The operand that static_values is about; -1: none. */
int operation_static_operand(const operation *op);

/* Says yes or no to the promise of this name, where the operation has it. */
void operation_promise(const operation *op, operation_struct *problem, const char *name, bool yes);

/* Whole numbers, enumerations and dtypes alike. */
int64_t operation_get(const spk_field_info *field, const operation_struct *problem);
void operation_put(const spk_field_info *field, operation_struct *problem, int64_t value);

void operation_put_real(const spk_field_info *field, operation_struct *problem, double value);

void operation_put_scale(const spk_field_info *field, operation_struct *problem, spk_scale value);
spk_scale operation_get_scale(const spk_field_info *field, const operation_struct *problem);

void *operation_pointer(const operation *op, const operation_struct *given, int operand);
void operation_set_pointer(const operation *op, operation_struct *given, int operand, const void *pointer);
void operation_set_scalar(const operation *op, operation_struct *given, int scalar, double value);
void operation_set_workspace(const operation *op, operation_struct *given, void *workspace, size_t bytes);

/* Whether a field holds 64 bits. */
bool operation_is_wide(spk_field_kind kind);

/* Word `index` of "a|b|c", whose length goes to *length; "" where there are fewer. */
const char *operation_word(const char *list, int index, int *length);
int operation_words(const char *list);

#endif

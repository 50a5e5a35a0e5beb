/* The fields of all operations as options of the command line and keys of JSON: one for each meaning, whichever operations have it. */
#ifndef SPARSEK_CLI_PROBLEM_SETTINGS_H
#define SPARSEK_CLI_PROBLEM_SETTINGS_H

#include "cli/args/args.h"
#include "cli/problem/operation.h"

enum { SETTINGS_MOST = 64, SETTINGS_MOST_SIZES = 8 };

typedef struct setting {
    char *option, *key; /* "layout-b", "layout_b" */
    spk_field_kind kind;
    int value;                 /* of a flag that stands for one value of the field: that; else 0 */
    int field[OPERATION_MOST]; /* of each operation, its index; -1: it has none */
    char *choices;             /* of ARGS_CHOICE */
    const char *terms;         /* of the field's values, in the name of an epilogue; NULL: none */
    char *help;
    double low, high;
} setting;

/* What was given; 0 is the default, but of ITEMS, where it is 1. */
typedef union setting_value {
    int index; /* flags too */
    spk_dtype dtype;
    int64_t whole;
    double real;
    spk_scale scale;
} setting_value;

/* A size: from the pattern, or a field of the description. */
typedef struct size_setting {
    const char *name;         /* "depth_v" */
    char *option;             /* "depth-v" */
    int size[OPERATION_MOST]; /* of each operation, its index; -1: it has none */
    char *help;
} size_setting;

int settings_count(void);
const setting *settings_at(int index);
int settings_named(const char *key); /* -1: there is none */
int settings_size_count(void);
const size_setting *settings_size_at(int index);
int settings_size_named(const char *name);

args_kind settings_args_kind(const setting *s);
bool settings_is_given(const setting *s, const setting_value *value);

/* The least that a count (of items, of groups) may be; it is the default, too. */
int64_t settings_least(const setting *s);

/* How many groups there are, or which axis they cut. */
bool settings_is_of_groups(const setting *s);

/* Two flags that stand for values of one field. */
bool settings_exclude(const setting *a, const setting *b);

/* The field of an operation that a setting is; NULL: it has none. */
const spk_field_info *settings_field(const setting *s, const operation *op);

/* "spmm", "spmm or gemm": who has it. `has` tells of an operation. The caller frees it. */
char *settings_owners(bool (*has)(const operation *op, const void *what), const void *what, const char *between);
bool settings_has(const operation *op, const void *which); /* a setting */

/* Appends the options: of sizes to `sizes`, an int64_t each (-1: not given); of the others to `values`. */
int settings_size_options(args_option *options, int64_t *sizes);
int settings_options(args_option *options, setting_value *values);

#endif

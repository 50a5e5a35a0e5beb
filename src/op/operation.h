/* The operation, as data: a folder beside this file defines one, and operations.def has a line for it. Whatever else in the library
 * knows operations knows them through this. */
#ifndef SPK_OP_OPERATION_H
#define SPK_OP_OPERATION_H

#include <math.h>

#include "base/rng.h"
#include "op/problem.h"

typedef struct spk_scalar_row {
    const char *name;
    size_t place; /* in the caller's arguments */
    int operand;  /* it counts where the problem has this operand; -1: always */
    double check; /* its value where a candidate is checked: none that a kernel can ignore unnoticed */
    double timed; /* its value where a candidate is timed */
} spk_scalar_row;

/* A size: what operands' extents are made of. */
typedef struct spk_size_row {
    const char *name;
    spk_size_source source;
    size_t place;  /* of its int64_t in spk_problem */
    int64_t usual; /* one to measure where nothing says another */
    const char *help;
} spk_size_row;

/* A field of the tuning key, in the order of the key's text (tune/choose/key.c). It has one of the two functions. */
typedef struct spk_key_row {
    const char *name;
    /* Writes the value; false: the problem has no such field. Classes with different values are different, and so are one with the field
     * and one without. A field that comes later is missing where problems are as they were before: stores keep what they know of those. */
    bool (*exact)(const spk_problem *problem, char *text, size_t size);
    /* The same of a number, that the nearest class may differ in: by `weight` an octave, or where it numbers classes, a step. */
    bool (*near)(const spk_problem *problem, int64_t *value);
    double weight;
    bool is_class_number;
    /* Not 0: one layer's calls may differ in it, by the number of a caller's tokens: directly, or (exact) by how arrays of that length are
     * aligned. Of the numbers that are near, those of one group change together. */
    int token_group;
    bool is_smooth;     /* token_group: a few of it are computed as many are; else those up to eight and more may be very different
                           (class_key.c) */
    int step_tolerance; /* is_class_number: patterns that were made alike may be a step apart by chance, up to this class; 0: not */
} spk_key_row;

/* An octave of alignment, between classes that calls of one layer may be in. */
#define SPK_KEY_ALIGNMENT_WEIGHT 0.1
/* A step in what tolerates steps: it decides between classes that are as near otherwise. */
#define SPK_KEY_STEP_WEIGHT 0.05

/* What the oracle is asked: rows of one output, counted on from item to item, and a range of its columns. */
typedef struct spk_oracle_ask {
    int output;          /* of the operands: one that a run writes */
    const int64_t *rows; /* NULL: the first row_count */
    int64_t row_count, col0, cols;
    /* row_count x cols; NULL: not asked. magnitude is the scale of an element's rounding error. Infinite: the element is not finite either.
     * NaN: nothing can be said of it */
    double *want, *magnitude;
} spk_oracle_ask;

/* The magnitude of an element, from the sum of its terms' absolute values: infinite, too, where one of them is NaN. */
static inline double spk_magnitude(double total)
{
    return isnan(total) ? (double)INFINITY : total;
}

/* Rows of an output, of all items, in which kernels go wrong first. */
typedef struct spk_row_list {
    int64_t *rows, limit; /* limit: of what a row may be */
    int count, capacity;
} spk_row_list;
void spk_row_list_add(spk_row_list *list, int64_t row); /* each once, while there is room */

typedef struct spk_op {
    spk_operation id;
    const char *name;
    const char *formula;                  /* "D = alpha (X Y at the blocks) + beta C" */
    const char *sentence;                 /* a problem in words; see spk_operation_info */
    const char *problem_type, *args_type; /* the caller's structs, which begin with their size */
    size_t problem_bytes, args_bytes;
    size_t workspace_place, workspace_bytes_place, stream_place; /* in the caller's arguments */
    const spk_field_info *fields;                                /* of the caller's description (op/fields.h) */
    int field_count;
    const spk_size_row *sizes;
    int size_count;
    const spk_operand_row *operands;
    int operand_count;
    const spk_scalar_row *scalars;
    int scalar_count;
    const spk_key_row *key;        /* ends with a NULL name */
    int scales;                    /* the operand that has the scale factors of A; those of B follow. 0: none */
    spk_pattern_use takes_pattern; /* an optional one is a mask: no sample of its rows stands for the problem */

    /* Checks a copy of the caller's description, whose enumerations are checked, and makes it a problem: all but the cache mode. */
    spk_status (*read)(spk_pattern *pattern, const void *given, spk_problem *problem);
    /* The description that `read` makes this problem of. */
    void (*write)(const spk_problem *problem, void *given);
    /* As spk_problem_fold. NULL: never. */
    void (*fold)(spk_problem *problem);
    /* Makes the operands' rows and columns anew, where pattern or sizes have changed. */
    void (*fit)(spk_problem *problem);
    /* Of an item. */
    double (*flops)(const spk_problem *problem), (*dense_flops)(const spk_problem *problem);
    /* Elements of operand i, of an item, that a run touches at most. NULL: all. */
    double (*touched)(const spk_problem *problem, int i);
    /* Of an output: the largest |output - oracle| / magnitude that rounding explains. Above 0: of what must be exact, DBL_MIN. */
    double (*tolerance)(const spk_problem *problem, int output);
    /* What is added to the random numbers of input i in tuning, which are of mean 0 and variance 1. NULL: nothing. */
    double (*mean)(const spk_problem *problem, int i);
    /* Of an operation with indices among its inputs: some that are right for operand i; whether those of a run, in host memory, are. */
    void (*draw_index)(const spk_problem *problem, int i, spk_rng *rng, int32_t *out);
    spk_status (*check_indices)(const spk_problem *problem, const spk_args *args);
    /* The member that holds the size which no pattern fixes. */
    int64_t *(*free_size)(spk_problem *problem);
    /* The member that holds another one, where there is no pattern whose rows a sample could take. NULL, or NULL from it: none. */
    int64_t *(*other_size)(spk_problem *problem);
    /* About this share of each item of a large problem, whose number of items is set already: spk_problem_part. Strides follow. NULL: free
     * and other size are cut. */
    spk_status (*part)(const spk_mem *mem, const spk_problem *whole, double share, spk_problem *part, spk_pattern **pattern);
    /* What a device program for the problem is compiled with: "-DNAME=VALUE ...". As snprintf. NULL: nothing but its tunables. */
    int (*device_defines)(const spk_problem *problem, char *text, size_t size);
    /* NULL: the last and the first. */
    spk_status (*hard_rows)(const spk_problem *problem, int output, spk_rng *rng, spk_row_list *list);
    /* args point to host memory; problem and rows are checked. Results are not rounded to the outputs' dtypes. */
    spk_status (*oracle)(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);
} spk_op;

/* Of an operation's row: the caller's structs, and where workspace and stream are in the arguments. */
#define SPK_OP_STRUCTS(problem, args)                                                                           \
    .problem_type = #problem, .problem_bytes = sizeof(problem), .args_type = #args, .args_bytes = sizeof(args), \
    .workspace_place = offsetof(args, workspace), .workspace_bytes_place = offsetof(args, workspace_bytes),     \
    .stream_place = offsetof(args, stream)

/* Of an operation's row: the tables of its file, which have these names. */
#define SPK_OP_TABLES SPK_OP_TABLES_BUT_KEY, .key = key
#define SPK_OP_TABLES_BUT_KEY                                                                                                        \
    .fields = fields, .field_count = sizeof fields / sizeof fields[0], .sizes = sizes, .size_count = sizeof sizes / sizeof sizes[0], \
    .operands = operands, .operand_count = sizeof operands / sizeof operands[0], .scalars = scalars,                                 \
    .scalar_count = sizeof scalars / sizeof scalars[0]

#define SPK_OP(name) extern const spk_op spk_op_##name;
#include "op/operations.def"
#undef SPK_OP

/* NULL for an unknown one. */
const spk_op *spk_op_get(spk_operation operation);
const spk_op *spk_op_at(int index);

/* The operand that may be static; -1: none. */
int spk_op_static_operand(const spk_op *op);

#endif

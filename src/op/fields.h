/* Rows of a table of fields (op/NAME/fields.def). Who includes one defines FIELDS_OF, the caller's struct:
 *
 *     static const spk_field_info fields[] = {
 *     #define FIELDS_OF spk_spmm
 *     #include "op/spmm/fields.def"
 *     };
 */
#ifndef SPK_OP_FIELDS_H
#define SPK_OP_FIELDS_H

#include <stddef.h>

#include "base/status.h"
#include "op/operation.h"
#include "type/names.h"

/* Names of values, and what they add to the name of an epilogue: in the order of the enumerations of sparsek.h. */
#define SPK_LAYOUTS "row|col"
#define SPK_ACTIVATIONS "none|relu|gelu_erf|gelu_tanh|silu"
#define SPK_ACTIVATION_TERMS "|relu|gelu_erf|gelu_tanh|silu"
#define SPK_BIASES "none|row|col"
#define SPK_BIAS_TERMS "|bias_row|bias_col"
#define SPK_RESIDUALS "none|residual|factor"
#define SPK_RESIDUAL_TERMS "|residual|factor"

#define SPK_MOST_ELEMENTS 4611686018427387904.0 /* 2^62 */

// clang-format off

#define FIELD_OF(name_, kind_, operand_) .name = #name_, .kind = kind_, .operand = operand_, .offset = offsetof(FIELDS_OF, name_)

/* The size of this name, which has help and default (spk_size_row). */
#define FIELD_SIZE(name)                                                             \
    {                                                                                \
        FIELD_OF(name, SPK_FIELD_SIZE, -1), .option = #name, .high = 1099511627776.0 \
    }
#define FIELD_ITEMS(name, help_)                                                                              \
    {                                                                                                         \
        FIELD_OF(name, SPK_FIELD_ITEMS, -1), .option = #name, .usual = "1", .help = help_, .high = 2147483647 \
    }
/* option_ may be NULL: as another's. */
#define FIELD_DTYPE(name, operand, option_, usual_, help_)                                                                     \
    {FIELD_OF(name, SPK_FIELD_DTYPE, operand), .option = option_, .values = SPK_TYPES_OF_VALUES, .usual = usual_, .help = help_}
/* Of the factors of a product. */
#define FIELD_DTYPE_FACTORS(name, operand, option_, usual_, help_)                                                                      \
    {FIELD_OF(name, SPK_FIELD_DTYPE, operand), .option = option_, .values = SPK_TYPES_OF_MATRICES, .usual = usual_, .help = help_}
/* The tile that a scale factor covers. */
#define FIELD_SCALE(name, operand, option_, least, help_) \
    {FIELD_OF(name, SPK_FIELD_SCALE, operand), .option = option_, .usual = "none", .help = help_, .low = least, .high = SPK_MOST_ELEMENTS}
#define FIELD_COMPUTE(name)                                                                                                          \
    {FIELD_OF(name, SPK_FIELD_DTYPE, -1), .option = #name, .values = SPK_TYPES_OF_SUMS,                                                \
     .usual = "f64 for f64, i32 for i8, else f32", \
     .help = "type of the sums; tf32, for f32: products of values rounded to TF32"}
#define FIELD_LAYOUT(name, operand, option_, help_)                                                                         \
    {                                                                                                                       \
        FIELD_OF(name, SPK_FIELD_LAYOUT, operand), .option = option_, .values = SPK_LAYOUTS, .usual = "row", .help = help_, \
                                                   .high = SPK_COL_MAJOR                                                    \
    }
#define FIELD_BLOCK_LAYOUT(name, help_)                                                                                    \
    {                                                                                                                      \
        FIELD_OF(name, SPK_FIELD_BLOCK_LAYOUT, -1), .option = #name, .values = SPK_LAYOUTS, .usual = "row", .help = help_, \
                                                    .high = SPK_COL_MAJOR                                                  \
    }
#define FIELD_TRANS(name, help_)                                                                                              \
    {                                                                                                                         \
        FIELD_OF(name, SPK_FIELD_TRANS, -1), .option = #name, .values = "n|t", .usual = "n", .help = help_, .high = SPK_TRANS \
    }
/* Of an operand's array: it is one of the other layout, so that no option says it again. */
#define FIELD_TRANS_OF(name, operand)                                                              \
    {                                                                                              \
        FIELD_OF(name, SPK_FIELD_TRANS, operand), .values = "n|t", .usual = "n", .high = SPK_TRANS \
    }
/* last: the last value. option_: one name, or one for each value but the first; so has help_. */
#define FIELD_PART(name, operand, last, option_, values_, terms_, usual_, help_)                                                        \
    {                                                                                                                                   \
        FIELD_OF(name, SPK_FIELD_PART, operand), .option = option_, .values = values_, .terms = terms_, .usual = usual_, .help = help_, \
                                                 .high = last                                                                           \
    }
/* term: what it adds to the name of an epilogue. */
#define FIELD_FLAG_PART(name, operand, term, help) FIELD_PART(name, operand, 1, #name, "no|yes", "|" term, NULL, help)
#define FIELD_CHOICE(name, last, option_, values_, terms_, usual_, help_)                                                            \
    {                                                                                                                                \
        FIELD_OF(name, SPK_FIELD_CHOICE, -1), .option = option_, .values = values_, .terms = terms_, .usual = usual_, .help = help_, \
                                              .high = last                                                                           \
    }
#define FIELD_GROUPS(name)                                                                          \
    {                                                                                               \
        FIELD_OF(name, SPK_FIELD_GROUPS, SPK_OFFSETS), .option = #name, .usual = "0",                \
        .help = "groups that --group-axis is cut into, of uneven sizes; 0: none", .high = 2147483647 \
    }
#define FIELD_GROUP_AXIS(name)                                                                                                     \
    {                                                                                                                              \
        FIELD_OF(name, SPK_FIELD_CHOICE, -1), .option = #name, .values = "none|rows|cols|depth", .usual = "none",                  \
        .help = "what --groups cut: rows of A and D (a mixture of experts), columns of B and D, or K", .high = SPK_GROUP_DEPTH     \
    }
#define FIELD_LD(name, operand)                                          \
    {                                                                    \
        FIELD_OF(name, SPK_FIELD_LD, operand), .high = SPK_MOST_ELEMENTS \
    }
#define FIELD_STRIDE(name, operand)                                                                    \
    {                                                                                                  \
        FIELD_OF(name, SPK_FIELD_STRIDE, operand), .low = SPK_STRIDE_SHARED, .high = SPK_MOST_ELEMENTS \
    }
#define FIELD_STRIDE_OUT(name, operand)                                      \
    {                                                                        \
        FIELD_OF(name, SPK_FIELD_STRIDE, operand), .high = SPK_MOST_ELEMENTS \
    }
#define FIELD_HEADS(name, operand, usual_, help_)                                                                       \
    {                                                                                                                  \
        FIELD_OF(name, SPK_FIELD_HEADS, operand), .option = #name, .usual = usual_, .help = help_, .high = 2147483647 \
    }
#define FIELD_COUNT(name, help) FIELD_COUNT_SAID(name, "0", help)
/* With words for what 0, the default, means. */
#define FIELD_COUNT_SAID(name, usual_, help_)                                                                    \
    {                                                                                                            \
        FIELD_OF(name, SPK_FIELD_COUNT, -1), .option = #name, .usual = usual_, .help = help_, .high = 2147483647 \
    }
#define FIELD_FLAG(name, help) FIELD_CHOICE(name, 1, #name, "no|yes", NULL, NULL, help)
/* A promise about what the arrays hold. Command lines have options of their own for these. */
#define FIELD_PROMISE(name)                                                                 \
    {                                                                                       \
        FIELD_OF(name, SPK_FIELD_PROMISE, -1), .values = "no|yes", .high = 1                \
    }
/* Of a flag that an operand is read by, which other fields may ask for, too. */
#define FIELD_FLAG_OF(name, operand, help_)                                                                                    \
    {                                                                                                                          \
        FIELD_OF(name, SPK_FIELD_CHOICE, operand), .option = #name, .values = "no|yes", .help = help_, .high = 1 \
    }
#define FIELD_HEAD_STRIDE(name, operand)                                          \
    {                                                                             \
        FIELD_OF(name, SPK_FIELD_HEAD_STRIDE, operand), .high = SPK_MOST_ELEMENTS \
    }
/* Of an input that is one for all items unless the option is given: then each has its own, one after another. */
#define FIELD_STRIDE_ASKED(name, operand, option_, help_)                                                                                \
    {                                                                                                                                    \
        FIELD_OF(name, SPK_FIELD_STRIDE, operand), .option = option_, .help = help_, .low = SPK_STRIDE_SHARED, .high = SPK_MOST_ELEMENTS \
    }

/* Of all products: what the epilogue adds. */
#define FIELD_BIAS(name) \
    FIELD_PART(name, SPK_BIAS, SPK_BIAS_PER_COL, "bias", SPK_BIASES, SPK_BIAS_TERMS, "none", "add a bias per row or per column")
#define FIELD_ACTIVATION(name) \
    FIELD_CHOICE(name, SPK_ACT_SILU, "activation", SPK_ACTIVATIONS, SPK_ACTIVATION_TERMS, "none", "applied to the sum")
#define FIELD_RESIDUAL(name)                                                                                          \
    FIELD_PART(name, SPK_RESIDUAL, SPK_RESIDUAL_MULTIPLY, "residual|factor", SPK_RESIDUALS, SPK_RESIDUAL_TERMS, NULL, \
               "add a residual after the activation|multiply by a factor of each element after the activation")

// clang-format on

/* The value of an enumeration's or a dtype's field in a copy of the caller's description. */
int spk_field_index(const spk_field_info *field, const void *given);

/* Whether the enumerations among the fields have values that they may have. */
spk_status spk_fields_check(const spk_op *op, const void *given);

/* Word `index` of "a|b|c", with its length; of too short a list an empty one. */
const char *spk_list_word(const char *list, int index, int *length);

#endif

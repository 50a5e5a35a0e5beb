/* Which element types a kernel row takes: a list in its row, (f16, bf16), of the types of the factors that it multiplies. Of tf32 are
 * factors of f32 whose products may be rounded to TF32, and of f32 those whose products may not. What else depends on types, as that of
 * the output, is said by spk_kernel_ops.applicable. */
#ifndef SPK_KERNEL_TYPES_H
#define SPK_KERNEL_TYPES_H

#include <sparsek/sparsek.h>

typedef struct spk_row_types {
    unsigned bits;    /* 1 << SPK_F16, ...; 0: all that the operation has */
    const char *text; /* "f16, bf16" */
    const char *why;  /* it does not take another one */
} spk_row_types;

/* SPK_BIT_f16, ...: one for each name in types.def. */
#define SPK_TYPE(enumerator, name, ...) SPK_BIT_##name = 1 << enumerator,
enum {
#include "type/types.def"
    SPK_BIT_none = 0
};
#undef SPK_TYPE

/* SPK_ROW_TYPES(f16, bf16): up to sixteen of them. */
#define SPK_ROW_TYPES(...)                                                                                                              \
    {                                                                                                                                   \
        SPK_ROW_TYPES_BITS(__VA_ARGS__, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, \
                           none),                                                                                                       \
            #__VA_ARGS__, "it is for " #__VA_ARGS__                                                                                     \
    }
#define SPK_ROW_TYPES_BITS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...) \
    (SPK_ROW_TYPES_EIGHT(a, b, c, d, e, f, g, h) | SPK_ROW_TYPES_EIGHT(i, j, k, l, m, n, o, p))
#define SPK_ROW_TYPES_EIGHT(a, b, c, d, e, f, g, h) \
    (SPK_BIT_##a | SPK_BIT_##b | SPK_BIT_##c | SPK_BIT_##d | SPK_BIT_##e | SPK_BIT_##f | SPK_BIT_##g | SPK_BIT_##h)

#endif

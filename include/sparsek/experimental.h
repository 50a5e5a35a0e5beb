/* sparsek: operations as data, and generators of test data. From one minor version to the next this header may change, also
 * after 1.0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_EXPERIMENTAL_H
#define SPARSEK_EXPERIMENTAL_H

#include "matrix.h"
#include "tune.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_SIZED_spk_operation_info sizeof(spk_operation_info)
#define SPK_SIZED_spk_field_info sizeof(spk_field_info)
#define SPK_SIZED_spk_size_info sizeof(spk_size_info)
#define SPK_SIZED_spk_operand_info sizeof(spk_operand_info)
#define SPK_SIZED_spk_scalar_info sizeof(spk_scalar_info)
#define SPK_SIZED_spk_problem_info sizeof(spk_problem_info)
#define SPK_SIZED_spk_array_info sizeof(spk_array_info)
#define SPK_SIZED_spk_generate sizeof(spk_generate)
#define SPK_SIZED_spk_mask_shape_info sizeof(spk_mask_shape_info)
#define SPK_SIZED_spk_mask_parameter_info sizeof(spk_mask_parameter_info)
#define SPK_SIZED_spk_mask_desc sizeof(spk_mask_desc)

/* ------------------------------------------------------------------------------------------------ operations as data */

/* What the structs of each operation hold, for programs that take any operation (command lines, bindings, tests). The description of a
 * problem has fields; the arguments of a run point to operands and hold scalars; sizes are what the operands' extents are made of.
 * A program that sets the fields it knows of and leaves 0 in all others has the defaults. Strings are static. */

/* Whether an operation takes a pattern. */
typedef enum spk_pattern_use {
    SPK_PATTERN_NONE = 0,    /* the calls take none: NULL */
    SPK_PATTERN_NEEDED = 1,  /* it says where the stored blocks are */
    SPK_PATTERN_OPTIONAL = 2 /* it says which blocks of pairs count; NULL: all */
} spk_pattern_use;

/* A row of the table of operations. */
typedef struct spk_operation_info {
    size_t struct_size;
    spk_operation operation;
    spk_pattern_use takes_pattern;
    const char *name;                     /* "spmm" */
    const char *formula;                  /* "D = act(alpha op(A) B + beta C + bias) + residual" */
    const char *problem_type, *args_type; /* "spk_spmm", "spk_spmm_args" */
    size_t problem_bytes, args_bytes;     /* struct_size of those */
    size_t workspace_offset;              /* in the arguments: of workspace, workspace_bytes and stream */
    size_t workspace_bytes_offset, stream_offset;
    int field_count, size_count, operand_count, scalar_count;
    /* A problem in words: "A{transposed} {m} x {k} {pattern} times B {k} x {n}", with sizes, the pattern, and " transposed" in braces */
    const char *sentence;
} spk_operation_info;

/* The table of operations, index in [0, spk_operation_count). The functions below take an operation of it, and an index in
 * [0, info.field_count) and so on. */
SPK_API int spk_operation_count(void);
SPK_API spk_status spk_operation_get_info(int index, spk_operation_info *info);

/* What a field of a problem is, and with that the type of the member. */
typedef enum spk_field_kind {
    SPK_FIELD_SIZE = 1,         /* int64_t: the size of this name */
    SPK_FIELD_ITEMS = 2,        /* int64_t: of a batch */
    SPK_FIELD_DTYPE = 3,        /* spk_dtype: of `operand`, and of those that are to be like it; operand -1: of the sums */
    SPK_FIELD_LAYOUT = 4,       /* spk_layout: of `operand`, likewise */
    SPK_FIELD_BLOCK_LAYOUT = 5, /* spk_layout: inside a block of arrays of values */
    SPK_FIELD_TRANS = 6,        /* spk_trans: of the pattern, or of the array of `operand` */
    SPK_FIELD_PART = 7,         /* int, or an enumeration: whether and how `operand` takes part; 0: it does not */
    SPK_FIELD_CHOICE = 8,       /* int, or an enumeration */
    SPK_FIELD_LD = 9,           /* int64_t: leading dimension of `operand` */
    SPK_FIELD_STRIDE = 10,      /* int64_t: of `operand`, from one item of a batch to the next */
    SPK_FIELD_REAL = 11,        /* double */
    SPK_FIELD_GROUPS = 12,      /* int64_t: how many pieces the product is cut into; 0: none */
    SPK_FIELD_HEADS = 13,       /* int64_t: matrices in an item of `operand`, and of those that are to be like it; 0: 1 */
    SPK_FIELD_HEAD_STRIDE = 14, /* int64_t: of `operand`, from one head of an item to the next */
    SPK_FIELD_COUNT = 15,       /* int64_t: a number of something else, >= 0 */
    SPK_FIELD_SCALE = 16,       /* spk_scale: the tile of `operand` that a scale factor covers */
    SPK_FIELD_PROMISE = 17      /* int: 1: what the caller promises of the arrays' numbers; it changes no result */
} spk_field_kind;

/* A field of a problem: a member of its struct, what it means, what it may be. */
typedef struct spk_field_info {
    size_t struct_size;
    const char *name; /* of the member: "layout_x" */
    spk_field_kind kind;
    int operand;   /* index of the operand that the field is about; -1: of none */
    size_t offset; /* of the member, in the problem's struct */
    /* What command lines and files call it, the same in every operation where it means the same: "layout_a". NULL: they do not. Several,
     * separated by '|', are for the values from 1 on: "residual|factor" */
    const char *option;
    const char *values; /* of an enumeration, '|'-separated, from 0 on: "row|col"; of a dtype, those that it may be. NULL: a number */
    const char *terms;  /* what each value adds to the name of an epilogue: "|relu|gelu_erf|gelu_tanh|silu". NULL: nothing */
    const char *usual;  /* the default in words: "none"; NULL: 0 */
    const char *help;   /* in a few words; NULL where it has no option */
    double low, high;   /* of a number, and of an enumeration's */
} spk_field_info;

/* A field of an operation, index in [0, spk_operation_info.field_count). */
SPK_API spk_status spk_operation_get_field(spk_operation operation, int index, spk_field_info *info);

/* Where a size's value comes from. */
typedef enum spk_size_source {
    SPK_SIZE_FIELD = 0,        /* the problem's field of the same name */
    SPK_SIZE_PATTERN_ROWS = 1, /* rows and columns of op(pattern), where the problem has a field of SPK_FIELD_TRANS of it */
    SPK_SIZE_PATTERN_COLS = 2,
    SPK_SIZE_LIST_ROWS = 3, /* the field; an optional pattern has as many rows for each of its lists, and as many columns */
    SPK_SIZE_LIST_COLS = 4
} spk_size_source;

/* A size of an operation: what the extents of its operands are made of. */
typedef struct spk_size_info {
    size_t struct_size;
    const char *name; /* "m" */
    spk_size_source source;
    int reserved;
    int64_t usual;    /* one to measure where nothing says another */
    const char *help; /* "rows of op(A) and of D" */
} spk_size_info;

/* A size of an operation, index in [0, spk_operation_info.size_count). */
SPK_API spk_status spk_operation_get_size(spk_operation operation, int index, spk_size_info *info);

/* What a run does with an operand. */
typedef enum spk_role {
    SPK_ROLE_IN = 0,
    SPK_ROLE_IN_SCALED = 1, /* not read where the scalar that it is multiplied by is 0 */
    SPK_ROLE_OUT = 2
} spk_role;

/* An operand of an operation: an array that its arguments point to. */
typedef struct spk_operand_info {
    size_t struct_size;
    const char *name;    /* of the pointer in the arguments: "values" */
    const char *title;   /* in formulas and messages: "D" */
    const char *extents; /* by sizes: "k x n"; "blocks": an array of the pattern's values */
    size_t offset;       /* of the pointer, in the arguments' struct */
    spk_role role;
    int scalar;        /* of SPK_ROLE_IN_SCALED: index of that scalar; else -1 */
    int is_values;     /* 1: it has an element for each of the pattern's blocks' */
    int may_be_static; /* 1: the problem's static_values promises that it stays as it is */
    uint64_t may_be;   /* of an output: bit i: it may be the same array as operand i */
} spk_operand_info;

/* An operand of an operation, index in [0, spk_operation_info.operand_count). */
SPK_API spk_status spk_operation_get_operand(spk_operation operation, int index, spk_operand_info *info);

/* A scalar of an operation: a number of type double in its arguments. */
typedef struct spk_scalar_info {
    size_t struct_size;
    const char *name; /* of a double in the arguments: "alpha" */
    size_t offset;
    int operand; /* it counts where the problem has this operand; -1: always */
    int reserved;
} spk_scalar_info;

/* A scalar of an operation, index in [0, spk_operation_info.scalar_count). */
SPK_API spk_status spk_operation_get_scalar(spk_operation operation, int index, spk_scalar_info *info);

enum { SPK_MOST_SIZES = 8 };

/* What follows from a problem. */
typedef struct spk_problem_info {
    size_t struct_size;
    spk_operation operation;
    spk_dtype compute;             /* of the sums */
    int64_t items;                 /* of the batch, >= 1; groups, where there are any */
    int64_t sizes[SPK_MOST_SIZES]; /* in the order of spk_operation_get_size */
    double flops;                  /* of stored blocks, of all items */
    double dense_flops;            /* had nothing been left out */
    double bytes;                  /* that a run must read and write once */
} spk_problem_info;

/* Sizes, flops and bytes of a problem; it refuses what planning would refuse. */
SPK_API spk_status spk_problem_get_info(spk_context *context, const spk_pattern *pattern, const void *problem, spk_problem_info *info);

/* How an operand of a problem lies: rows x cols for each item, or for each head of it; a line is a row of a row-major array, else a column.
 * All 0: the problem has none. Values of a pattern are rows of blocks: nnzb * block_rows x block_cols (column-major blocks: nnzb *
 * block_cols x block_rows). */
typedef struct spk_array_info {
    size_t struct_size;
    int64_t rows, cols;
    int64_t ld;       /* elements from one line to the next */
    int64_t stride;   /* elements from one item to the next; 0: one for all */
    int64_t elements; /* from the first to the last, of all items */
    spk_dtype dtype;
    spk_layout layout;
    int64_t heads;       /* matrices of rows x cols in an item, >= 1 where the problem has the operand */
    int64_t head_stride; /* elements from one of them to the next; 0: there is one */
} spk_array_info;

/* How an operand of a problem lies, by its index (spk_operation_get_operand). */
SPK_API spk_status spk_problem_get_array(spk_context *context, const spk_pattern *pattern, const void *problem, int operand,
                                         spk_array_info *info);

/* Fills an operand of a problem, in host memory, with numbers that it may hold: offsets are uneven and end at the whole size; others are
 * as spk_fill_random makes them, in the whole of what it occupies. `out` has the elements of spk_problem_get_array. */
SPK_API spk_status spk_problem_fill(spk_context *context, const spk_pattern *pattern, const void *problem, int operand, uint64_t seed,
                                    void *out);

/* ------------------------------------------------------------------------------------------------ generators */

/* The shape of a generated pattern. */
typedef enum spk_generator {
    SPK_GEN_UNIFORM = 1,    /* exactly round(density * grid) blocks; rows differ by at most one */
    SPK_GEN_BERNOULLI = 2,  /* uniformly random blocks, no limit on a row */
    SPK_GEN_BANDED = 3,     /* the blocks nearest the diagonal */
    SPK_GEN_WINDOW = 4,     /* a sliding window of whole rows */
    SPK_GEN_CAUSAL = 5,     /* uniform, at and below the diagonal */
    SPK_GEN_DIAGONAL = 6,   /* square groups along the diagonal */
    SPK_GEN_POWER_LAW = 7,  /* row length ~ rank^-0.5, shuffled, capped at the grid */
    SPK_GEN_EMPTY_ROWS = 8, /* uniform over half of the rows, the others empty */
    SPK_GEN_ELASTICITY = 9, /* 3-D linear elasticity, hexahedral elements: see cells_* */
    SPK_GEN_EXPERTS = 10,   /* block-diagonal with uneven groups: a group of block rows for each expert, see experts */
    SPK_GEN_MASK = 11       /* which blocks of queries and keys attention keeps, without values: see mask */
} spk_generator;

/* Masks of attention. Query i stands beside key i + keys - queries, so that the last ones stand beside each other, or beside key i with
 * top_left; "so far" is up to the key beside, unless all_keys or window_right is set. spk_matrix_generate keeps a block where any of its
 * pairs is seen; spk_mask_create says which pairs these are. A version may have more shapes than have names here: see
 * spk_mask_shape_get_info. */
typedef enum spk_mask_shape {
    SPK_MASK_CAUSAL = 1,    /* all keys so far */
    SPK_MASK_WINDOW = 2,    /* `window` keys so far; all_keys: as many on the other side */
    SPK_MASK_SINKS = 3,     /* a window, and the first `sinks` keys */
    SPK_MASK_DOCUMENTS = 4, /* packed sequences of random lengths, or of `lengths`, each of which sees itself so far */
    SPK_MASK_STRIDED = 5,   /* a window, and every key number stride - 1, 2 stride - 1, .. (Child et al. 2019, arXiv:1904.10509) */
    SPK_MASK_RANDOM = 6,    /* of each block row the share `density` of the blocks so far, at random */
    SPK_MASK_SELECTED = 7,  /* of each block row `selected` blocks so far, at random, as if a model had chosen the best */
    SPK_MASK_VIDEO = 8, /* tokens are cells_x frames of cells_y lines of cells_z: those in a box of window_x, _y and _z about the own one */
    SPK_MASK_NSA = 9,   /* sinks, a window, and `selected` blocks of the rest (native sparse attention, mixture of block attention) */
    SPK_MASK_PREFIX = 10 /* the first `prefix` keys, which all queries see, and all keys so far */
} spk_mask_shape;

/* Which matrix or mask spk_matrix_generate makes. */
typedef struct spk_generate {
    size_t struct_size;
    spk_generator generator;
    int64_t rows, cols, block_rows, block_cols; /* not for elasticity (3 x 3 blocks); experts: rows follow */
    double density;                             /* [0, 1]; not for elasticity and experts */
    uint64_t seed;
    spk_dtype dtype;                   /* default: f32; elasticity f64 */
    int64_t cells_x, cells_y, cells_z; /* elasticity: hexahedra along each axis, >= 1 */
    double young, poisson;             /* elasticity: 0: 1.0 and 0.3 */
    int64_t experts;                   /* experts: how many share the block columns evenly; 0: 8 */
    /* experts: of each, which make ceil(tokens / block_rows) full block rows; NULL: at random by the seed, within */
    const int64_t *tokens;
    int64_t tokens_least,
        tokens_most; /* experts: these two; both 0: 16 and 256. Masks of documents: both 0: a 32nd and a 4th of the keys */
    /* masks: rows are the queries and cols the keys of each of `lists` lists (0: 1), which stand one below the other as spk_attention has
     * them, each with choices of its own. density is that of SPK_MASK_RANDOM alone. No values: all are one */
    spk_mask_shape mask;
    int all_keys;                         /* 1: keys behind the one beside count, too. Of video they always do */
    int64_t lists;                        /* 0: 1 */
    int64_t window, sinks;                /* keys; 0: an 8th of them, and 64 */
    int64_t stride;                       /* 0: a 16th of the keys */
    int64_t selected;                     /* blocks; 0: 16 */
    int64_t window_x, window_y, window_z; /* video; 0: a third of the frames, lines and columns */
    int64_t window_right;   /* windows and sinks: no key is seen that is so many or more behind the one beside; 0: see all_keys */
    int64_t prefix;         /* keys */
    const int64_t *lengths; /* documents: of each, the sum being `cols`; NULL: at random, within tokens_least .. tokens_most */
    int64_t length_count;
    int top_left; /* 1: query i stands beside key i, however many there are */
    int reserved;
} spk_generate;

/* A BSR matrix with normally distributed values (elasticity: the stiffness matrix with one face clamped, symmetric positive
 * definite). The same bits on every machine for one seed. *shortfall (may be NULL) gets the blocks that the pattern's shape
 * had no room for: requested minus stored. */
SPK_API spk_status spk_matrix_generate(spk_context *context, const spk_generate *options, spk_matrix **matrix, int64_t *shortfall);

/* Name of a generator ("uniform", "power-law", ...), NULL if unknown; 0 for an unknown name. */
SPK_API const char *spk_generator_name(spk_generator generator);
SPK_API spk_generator spk_generator_from_name(const char *name);

/* ------------------------------------------------------------------------------------------------ masks of attention */

/* Name of a shape ("causal", "prefix", ...), NULL if unknown; 0 for an unknown name. */
SPK_API const char *spk_mask_shape_name(spk_mask_shape shape);
SPK_API spk_mask_shape spk_mask_shape_from_name(const char *name);

/* A row of the table of shapes. Strings are static. */
typedef struct spk_mask_shape_info {
    size_t struct_size;
    const char *name;    /* "window" */
    const char *help;    /* what a query sees, in a few words; options of command lines stand as --window */
    int is_random;       /* 1: `seed` changes what is seen */
    int parameter_count; /* what the shape takes, beside sizes, block, seed and dtype */
} spk_mask_shape_info;

/* What a parameter is, and with that the type of its first member in spk_generate. */
typedef enum spk_mask_value {
    SPK_MASK_VALUE_COUNT = 1, /* int64_t */
    SPK_MASK_VALUE_SHARE = 2, /* double; 0 stands for itself: where the share is left open, `usual`, a number, is to be written */
    SPK_MASK_VALUE_FLAG = 3,  /* int */
    SPK_MASK_VALUE_CELLS = 4, /* three of int64_t: frames, lines, columns */
    SPK_MASK_VALUE_RANGE = 5, /* two of int64_t: the least and the largest */
    SPK_MASK_VALUE_LIST = 6   /* a pointer to numbers of int64_t, and behind it how many there are */
} spk_mask_value;

/* What a shape may be told. */
typedef struct spk_mask_parameter_info {
    size_t struct_size;
    const char *name;    /* what command lines call it: "window-right". Two shapes may have different ones of one name, not one shape */
    size_t offset;       /* of the member in spk_generate */
    const char *usual;   /* the default in words, "an 8th of the keys"; NULL: it must be given */
    const char *help;    /* in a few words */
    int64_t least, most; /* of each number, if it is given */
    spk_mask_value value;
    int reserved;
} spk_mask_parameter_info;

/* The shapes are numbered from 1 on; SPK_ERR_ARGUMENT behind the last one. index in [0, parameter_count). */
SPK_API spk_status spk_mask_shape_get_info(spk_mask_shape shape, spk_mask_shape_info *info);
SPK_API spk_status spk_mask_shape_get_parameter(spk_mask_shape shape, int index, spk_mask_parameter_info *info);

/* A mask: blocks of keys for each block of queries, and which pairs of those are seen. */
typedef struct spk_mask spk_mask;

/* The arrays of a mask, as an spk_pattern and spk_attention_args take them. Lists of several heads stand one below the other. */
typedef struct spk_mask_desc {
    size_t struct_size;
    int64_t grid_rows, blocks;  /* block rows of all lists; blocks that are seen */
    int64_t tiles, tile_words;  /* no two are alike; words of 32 bits in a tile */
    const int64_t *row_offsets; /* grid_rows + 1 */
    const int64_t *col_indices; /* blocks, increasing within a block row */
    const void *tile_numbers;   /* int32_t, blocks: -1: all pairs are seen, t: those of tile t; NULL with tiles 0 */
    const void *tile_bits;      /* 32-bit words, tiles * tile_words: see spk_attention; what is beyond the edges is 0 */
} spk_mask_desc;

/* The mask that options.mask says; options.generator and dtype are not looked at. context may be NULL: memory is the system's then, and
 * spk_last_error(NULL) has the message of a failure. */
SPK_API spk_status spk_mask_create(spk_context *context, const spk_generate *options, spk_mask **mask);
SPK_API void spk_mask_destroy(spk_mask **mask);

/* Borrowed pointers, valid as long as the mask. */
SPK_API spk_status spk_mask_view(const spk_mask *mask, spk_mask_desc *desc);

/* Fills count elements, aligned as their dtype, with standard normal numbers, the same on every machine for one seed. */
SPK_API spk_status spk_fill_random(spk_context *context, spk_dtype dtype, int64_t count, uint64_t seed, void *out);

#ifdef __cplusplus
}
#endif
#endif /* SPARSEK_EXPERIMENTAL_H */

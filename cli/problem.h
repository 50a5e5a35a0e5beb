/* From flags (or a JSON object) to a pattern and an spk_spmm or spk_sddmm. */
#ifndef SPARSEK_CLI_PROBLEM_H
#define SPARSEK_CLI_PROBLEM_H

#include <jansson.h>

#include "cli.h"

typedef struct problem_flags {
    const char *file, *tensor; /* a matrix file instead of a generated pattern */
    int op;                    /* index into PROBLEM_OPERATIONS */
    int64_t m, k, n;           /* -1 where not given */
    args_block block;
    double density;        /* -1: not given */
    spk_generator pattern; /* 0: not given */
    args_cells cells;
    int64_t experts;    /* of that pattern; 0: not given */
    const char *tokens; /* of its experts; NULL: not given */
    spk_dtype dtype, dtype_d;
    int compute; /* index into PROBLEM_COMPUTES */
    int trans_a, block_layout, layout_a, layout_b, layout_d, use_c, bias, activation, residual, factor, keep_preact, cache;
    int64_t batch;
    int batch_values; /* each item of the batch has values of its own */
    uint64_t seed;
    int assume_finite, static_values;
} problem_flags;

typedef struct problem {
    spk_pattern *pattern;
    spk_pattern_info info;
    spk_operation operation;
    spk_spmm spmm; /* of SDDMM: its types, layout of Y as B's, block layout, use_c */
    spk_sddmm sddmm;
    spk_tune_options options; /* strings are borrowed from the cli */
    int64_t m, k, n;          /* of the product */
    int64_t items;            /* of the batch */
    uint64_t seed;
    const char *file, *tensor; /* as given, borrowed from the flags; NULL: generated */
    int64_t experts;           /* as given; 0: not */
    const char *tokens;
    args_cells cells; /* of elasticity */
    char *source;     /* generator's name, or "file:<basename>" */
    char *flags;      /* options that make this problem again: "--m 2048 ... " */
} problem;

problem_flags problem_defaults(void);

/* Adds the options that describe a problem; the file is the command's operand. */
void problem_options(args *a, problem_flags *flags);

/* Whether the flags go together and with the operation. where: what a list's message begins with (EXIT_INPUT then); NULL: of the command
 * line (EXIT_USAGE). */
int problem_check_flags(const cli *app, const problem_flags *flags, const char *where);

/* Generates or reads the matrix, keeps its pattern. Returns an exit code. */
int problem_make(cli *app, const problem_flags *flags, problem *out);
void problem_release(problem *p);

/* Flags from one object of a list (`tune --from`), in the shape of a result's "problem" or with the names of the options; *flags holds what
 * the object leaves open. 0, or an exit code after a message that begins with `where`. Strings are borrowed from the object, where tokens
 * become text. */
int problem_from_json(const cli *app, json_t *object, const char *where, problem_flags *flags);

/* The "problem" object of a result. */
json_t *problem_json(const problem *p);

/* "f32 2048 x 2048 (64x64 blocks, 102 stored, 9.96 %) times 2048 x 512". */
char *problem_text(const problem *p);

double problem_flops(const problem *p);       /* of stored blocks, of all items */
double problem_dense_flops(const problem *p); /* 2 M K N, of all items */

/* The library's functions, by operation. */
spk_status problem_list(const cli *app, const problem *p, spk_report **report);
spk_status problem_tune(const cli *app, const problem *p, spk_report **report);
spk_status problem_explain(const cli *app, const problem *p, spk_report **report);
spk_status problem_race(const cli *app, const problem *p, const spk_race_options *race, spk_report **report);

/* The block that spk_matrix_advise scores best; {1, 1} for an empty list. Returns an exit code. */
int problem_advised_block(cli *app, const spk_matrix *matrix, args_block *block);

/* Reads a matrix file: message and exit code on failure. */
int problem_read(cli *app, const char *path, const char *tensor, spk_dtype dtype, spk_matrix **matrix);

/* "32" or "64x32" for a block, into a buffer of 24 bytes. */
const char *problem_block_text(char *buffer, int64_t rows, int64_t cols);

#define PROBLEM_OPERATIONS "spmm|sddmm"
/* Type of the sums; tf32: f32 sums of products rounded to TF32. */
#define PROBLEM_COMPUTES "default|f32|f64|tf32"
#define PROBLEM_BIASES "none|row|col"
#define PROBLEM_ACTIVATIONS "none|relu|gelu_erf|gelu_tanh|silu"

#endif

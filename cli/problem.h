/* From flags (or a JSON object) to a pattern, where the operation takes one, and the description of a problem. */
#ifndef SPARSEK_CLI_PROBLEM_H
#define SPARSEK_CLI_PROBLEM_H

#include <jansson.h>

#include "cli.h"
#include "settings.h"

typedef struct problem_flags {
    const char *file, *tensor;          /* a matrix file instead of a generated pattern */
    int64_t cols;                       /* of the file's matrix; 0: as the file says */
    int op;                             /* index of operation_at */
    int64_t sizes[SETTINGS_MOST_SIZES]; /* by settings_size_at; -1 where not given */
    setting_value set[SETTINGS_MOST];   /* by settings_at */
    args_block block;
    double density;        /* -1: not given */
    spk_generator pattern; /* 0: not given */
    args_cells cells;
    int64_t experts;    /* of that pattern; 0: not given */
    const char *tokens; /* of its experts; NULL: not given */
    uint64_t seed;
    int cache, assume_finite, static_values;
} problem_flags;

typedef struct problem {
    const operation *op;
    spk_pattern *pattern;     /* NULL: the operation takes none */
    spk_pattern_info info;    /* of that */
    operation_struct given;   /* the description */
    spk_problem_info numbers; /* what follows from it */
    spk_array_info arrays[OPERATION_MOST_ARRAYS];
    bool is_empty;            /* no output has an element */
    spk_tune_options options; /* strings are borrowed from the cli */
    uint64_t seed;
    const char *file, *tensor; /* as given, borrowed from the flags; NULL: generated */
    int64_t cols;              /* likewise; 0: not given */
    int64_t experts;           /* as given; 0: not */
    const char *tokens;
    args_cells cells; /* of elasticity */
    char *source;     /* generator's name, or "file:<basename>"; NULL: no pattern */
    char *flags;      /* options that make this problem again: "--m 2048 ... " */
} problem;

problem_flags problem_defaults(void);

/* Sets what is called so in JSON ("layout_b"), or a size ("m"); where there is no such, nothing. */
void problem_set(problem_flags *flags, const char *key, int value);
void problem_set_size(problem_flags *flags, const char *name, int64_t value);

/* The place of the size that the pattern's rows (or columns) are, of op(pattern); NULL: there is none. */
int64_t *problem_pattern_size(problem_flags *flags, spk_size_source source);
const char *problem_pattern_size_name(const problem_flags *flags, spk_size_source source);

/* Whether the pattern is transposed. */
bool problem_is_transposed(const problem_flags *flags);

/* Of a pattern that may be left out (problem_mask.c): whether there is one; the first option given that only a pattern has (NULL: none);
 * whether its generator makes no mask; lists of blocks that it has; rows of all lists where one has so many, and back. */
bool problem_has_pattern(const problem_flags *flags);
const char *problem_of_pattern(const problem_flags *flags);
bool problem_is_shapeless(const problem_flags *flags);
int64_t problem_lists(const problem_flags *flags);
int64_t problem_rows_of_lists(const problem_flags *flags, int64_t queries, int64_t block);
int64_t problem_rows_of_list(const problem_flags *flags, const spk_pattern_info *mask);

/* Into how many lists of as many block rows a mask can be cut: "1, 2, 5 or 10". The caller frees it. */
char *problem_list_counts(int64_t block_rows);

/* EXIT_USAGE after a message where the lists that were asked for are not that. */
int problem_check_lists(const cli *app, const problem_flags *flags, const spk_pattern_info *mask);

/* Whether the problem has a field of the size: whether a pattern has it, too, or not. */
bool problem_is_given_size(const spk_size_info *size);

/* Whether a generated matrix is described: by its size, or otherwise. */
bool problem_is_generated(const problem_flags *flags);

/* Adds the options that describe a problem; the file is the command's operand. */
void problem_options(args *a, problem_flags *flags);

/* Whether the flags go together and with the operation. where: what a list's message begins with (EXIT_INPUT then); NULL: of the command
 * line (EXIT_USAGE). */
int problem_check_flags(const cli *app, const problem_flags *flags, const char *where);

/* Generates or reads the matrix, keeps its pattern. Returns an exit code. */
int problem_make(cli *app, const problem_flags *flags, problem *out);
void problem_release(problem *p);

/* The matrix that the flags describe (problem_matrix.c). An exit code. */
int problem_matrix(cli *app, const problem_flags *flags, spk_matrix **bsr);

/* Flags from one object of a list (`tune --from`), in the shape of a result's "problem" or with the names of the options; *flags holds what
 * the object leaves open. 0, or an exit code after a message that begins with `where`. Strings are borrowed from the object, where tokens
 * become text. */
int problem_from_json(const cli *app, json_t *object, const char *where, problem_flags *flags);

/* The "problem" object of a result. */
json_t *problem_json(const problem *p);

/* "f32, A 2048 x 2048 (uniform, 64x64 blocks, 102 stored, 9.96 %) times B 2048 x 512" (problem_text.c). */
char *problem_text(const problem *p);

/* The options that make a problem again. */
char *problem_flags_text(const problem_flags *f, const problem *p);

/* The value of a dtype's setting in the problem, whether it was given or not. */
spk_dtype problem_dtype(const problem *p, const setting *s);

double problem_flops(const problem *p);       /* of stored blocks, of all items */
double problem_dense_flops(const problem *p); /* of whole products, of all items */

/* The library's functions. */
spk_status problem_list(const cli *app, const problem *p, spk_report **report);
spk_status problem_tune(const cli *app, const problem *p, spk_report **report);
spk_status problem_explain(const cli *app, const problem *p, spk_report **report);
spk_status problem_race(const cli *app, const problem *p, const spk_race_options *race, spk_report **report);

#endif

/* From flags (or a JSON object) to a pattern, where the operation takes one, and the description of a problem. */
#ifndef SPARSEK_CLI_PROBLEM_PROBLEM_H
#define SPARSEK_CLI_PROBLEM_PROBLEM_H

#include <jansson.h>

#include "cli/problem/flags.h"

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

/* Generates or reads the matrix, keeps its pattern. Returns an exit code. */
int problem_make(cli *app, const problem_flags *flags, problem *out);
void problem_release(problem *p);

/* The matrix that the flags describe (matrix.c). An exit code. */
int problem_matrix(cli *app, const problem_flags *flags, spk_matrix **bsr);

/* Flags from one object of a list (`tune --from`), in the shape of a result's "problem" or with the names of the options; *flags holds what
 * the object leaves open. 0, or an exit code after a message that begins with `where`. Strings are borrowed from the object, where tokens
 * become text. */
int problem_from_json(const cli *app, json_t *object, const char *where, problem_flags *flags);

/* The "problem" object of a result. */
json_t *problem_json(const problem *p);

/* "f32, A 2048 x 2048 (uniform, 64x64 blocks, 102 stored, 9.96 %) times B 2048 x 512" (text.c). */
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

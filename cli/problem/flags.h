/* What was given of a problem: by options of the command line, by an object of a list, or drawn. */
#ifndef SPARSEK_CLI_PROBLEM_FLAGS_H
#define SPARSEK_CLI_PROBLEM_FLAGS_H

#include "cli/base/cli.h"
#include "cli/problem/settings.h"

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

problem_flags problem_defaults(void);

/* Sets what is called so in JSON ("layout_b"), or a size ("m"); where there is no such, nothing. */
void problem_set(problem_flags *flags, const char *key, int value);
void problem_set_size(problem_flags *flags, const char *name, int64_t value);

/* The place of the size that the pattern's rows (or columns) are, of op(pattern); NULL: there is none. */
int64_t *problem_pattern_size(problem_flags *flags, spk_size_source source);
const char *problem_pattern_size_name(const problem_flags *flags, spk_size_source source);

/* Whether the pattern is transposed. */
bool problem_is_transposed(const problem_flags *flags);

/* Of a pattern that may be left out (mask.c): whether there is one; the first option given that only a pattern has (NULL: none);
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

#endif

/* The differential test: one random case, its data, its candidates compared with the oracle. */
#ifndef SPARSEK_CLI_CHECK_CHECK_H
#define SPARSEK_CLI_CHECK_CHECK_H

#include <stdatomic.h>

#include "cli/base/random.h"
#include "cli/check/state.h"
#include "cli/problem/operation.h"

enum { CHECK_MAX_THREADS = 4, CHECK_MOST_PLACES = 64, CHECK_ALIKE = 2 };

/* Of attention: Q, K and the scale are numbers times powers of two, by which scores are of about 2^power. are_exact: the numbers are whole
 * and small, so that scores are exact in any order; share: and all have a large part in common. */
typedef struct check_scores {
    bool are_large, are_exact, share;
    int power, power_q, power_k;
} check_scores;

/* A case: everything is drawn from (seed, number). What is by array is by the index of the operation's operand. */
typedef struct check_case {
    uint64_t seed;
    int64_t number;
    const operation *op;
    bool has_pattern;
    /* of the pattern */
    int64_t rows, cols, block_rows, block_cols, grid_rows, grid_cols, nnzb;
    int64_t *offsets, *columns;
    bool overhang; /* NaN stands in what stored blocks have beyond the edges */
    spk_index_type index_type;
    operation_struct given; /* the description */
    int64_t items;          /* of the batch */
    spk_array_info arrays[OPERATION_MOST_ARRAYS];
    int same_as[OPERATION_MOST_ARRAYS]; /* of an input: the output that is the same array; -1: none */
    double scalars[OPERATION_MOST_SCALARS];
    check_scores scores;
    bool assume_finite, static_values, own_workspace;
    bool inf_in_use;                   /* with !assume_finite: an inf stands in a line of an input that blocks do touch */
    int shifts[OPERATION_MOST_ARRAYS]; /* elements by which an array in a GPU's memory is off a multiple of 256 bytes */
    int threads;
    /* for check_lay_out */
    bool aligned;
    const struct check_own *own; /* NULL: the tables say all */
    random_state later;
} check_case;

/* gpu: more of 16-bit dtypes and of the blocks that tensor cores like; the same numbers give other cases then. Two cases of a series are of
 * one family there: they share what programs are compiled for (types, layouts, blocks, epilogue, n), and have sizes, patterns and numbers
 * of their own. */
typedef struct check_wish {
    bool gpu;
    unsigned operations; /* bit i: of operation_at(i) */
    int64_t alike;       /* on a GPU: cases of a family, which has the same programs */
} check_wish;
uint64_t check_family(const check_wish *wish, int64_t number);
void check_draw(uint64_t seed, int64_t number, const check_wish *wish, check_case *c);

/* The end of the drawing, on the pattern (NULL: none): how the arrays lie. A status of the library where it refuses the case. */
spk_status check_lay_out(check_case *c, spk_context *context, const spk_pattern *pattern);

/* Whether the case has this array; how many items of it differ; where an element lies. */
bool check_takes_part(const check_case *c, int which);
int64_t check_items(const check_case *c, int which);
int64_t check_rows(const spk_array_info *a); /* of all heads of an item */
int64_t check_place(const spk_array_info *a, int64_t item, int64_t i, int64_t j);
void check_release(check_case *c);
bool check_is_shifted(const check_case *c);

/* "spmm, 17x203 in 9 blocks of 3x5, n 24, dtype_a f32, ..." (text.c): for messages. */
char *check_text(const check_case *c);

/* Operands of a case and what the oracle makes of them. Arrays lie between guards; what is no element holds a canary. */
typedef struct check_data {
    const check_case *c;
    spk_context *context; /* borrowed */
    bool far;             /* its device has memory of its own; asked once, as the answer counts all proofs */
    spk_pattern *pattern; /* borrowed */
    bool finite;          /* promised as assume_finite; else hostile values stand where no result may see them */
    bool hostile;         /* they do: inf and NaN in lines of an input that no block touches, or in one of those that are touched */
    void *arrays[OPERATION_MOST_ARRAYS]; /* inputs, and outputs' memory before a run; NULL: none */
    struct {
        double *want, *magnitude; /* what the oracle makes of an output, rows of all items one after another; NULL: none */
        double tolerance;
    } out[OPERATION_MOST_ARRAYS];
} check_data;

struct check_draft;

/* What `check` knows of an operation besides its tables. Functions may be NULL. */
typedef struct check_own {
    const char *name;
    void (*draw)(random_state *r, bool gpu, struct check_draft *draft, operation_struct *given);
    bool draws_lds; /* it leaves leading dimensions and strides open */
    /* Changes the numbers of a case: scalars first, then an input's array of normal numbers. From numbers of their own: what else is drawn
     * stays. */
    void (*draw_numbers)(random_state *r, check_case *c);
    void (*fill)(random_state *r, const check_case *c, int which, void *array);
    /* Puts numbers that mean nothing into indices that a run does not look at. */
    void (*spoil)(random_state *r, const check_data *d);
    /* Makes the inputs that follow from the others. */
    spk_status (*derive)(const check_data *d);
    /* Puts inf and NaN where no result may see them, in an input's array; says whether it did. The data's index arrays are there. */
    bool (*hide)(random_state *r, const check_data *d, int which, void *array);
} check_own;

/* Makes the pattern (NULL: the operation takes none), and the data on it; a status of the library where it refuses the case. */
spk_status check_pattern_make(const check_case *c, spk_context *context, spk_pattern **pattern);
spk_status check_data_make(const check_case *c, spk_context *context, spk_pattern *pattern, bool finite, check_data *out);
void check_data_release(check_data *d);

/* The arguments of a run with the data's arrays. */
operation_struct check_args(const check_data *d);

/* Whether a run writes the array. */
bool check_is_output(const check_case *c, int which);

typedef struct check_outcome {
    bool failed;
    bool unproved; /* it did not run: on a GPU only what is proved does */
    bool refused;  /* it did not run: its library does not take the problem, which it says when it is bound */
    bool no_room;  /* it did not run: a limit on address space leaves its library too little */
    bool lost;     /* the device is of no more use to this process: what it last ran died, or hung */
    double error;  /* largest |output - oracle| / magnitude over the tolerance */
    char why[320];
} check_outcome;

/* Binds the candidate ("name params"), runs it (twice if again: the bits must be the same), compares. */
void check_candidate(const check_data *d, spk_kind kind, const char *choice, bool again, check_outcome *outcome);

/* The options of a case for the library. */
operation_struct check_given(const check_case *c, bool finite); /* its problem with these promises */

/* What all cases of a series share. */
typedef struct check_setup {
    cli *app;
    uint64_t seed;
    check_wish wish;
    const char *params; /* NULL: any */
    bool all_params;
    const check_row *rows; /* their names alone are read */
    int row_count;
    spk_context *contexts[CHECK_MAX_THREADS + 1]; /* by their number of threads, 0: the default; made when one is needed */
} check_setup;

/* How many threads may be at a case each: one on the CPU, whose kernels have threads of their own; on a GPU, for which much is compiled, as
 * many as the host has. Exit code. */
int check_setup_workers(check_setup *setup, int *workers);
void check_setup_release(check_setup *setup);

typedef struct check_result_row {
    bool ran, hostile; /* hostile: on data with inf and NaN where no result may see them */
    int64_t failures;
    double worst;
    int64_t no_room; /* candidates that did not run for want of address space, and why the last of them did not */
    char why[320];
} check_result_row;

/* What came of a case. */
typedef struct check_result {
    bool whole; /* all of it was done */
    bool lost;  /* the device was lost before that */
    bool overhang, shifted;
    int64_t unproved; /* candidates that did not run for want of a proof */
    int code;         /* exit code; not EXIT_DONE: the case could not be made, */
    char *trouble;    /* for this reason (NULL: it was told) */
    check_result_row rows[CHECK_MAX_ROWS];
    int message_count;
    char *messages[CHECK_MAX_FAILURES]; /* the first failures */
} check_result;

/* Runs a case in thread `place` of CHECK_MOST_PLACES; stops between candidates once *stop is true. */
check_result *check_one(const check_setup *setup, int place, int64_t number, const atomic_bool *stop);
void check_result_release(check_result **result);

/* What this thread runs now, for the message of a crash (crash.c). */
void check_running(int place, const char *text);
void check_catch_crashes(void);

#endif

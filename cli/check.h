/* The differential test: one random case, its data, its candidates compared with the oracle. */
#ifndef SPARSEK_CLI_CHECK_H
#define SPARSEK_CLI_CHECK_H

#include <stdatomic.h>

#include "check_state.h"
#include "cli.h"
#include "random.h"

enum { CHECK_MAX_THREADS = 4, CHECK_MOST_PLACES = 64 };

/* The arrays of a run, for check_case.shifts. */
enum { CHECK_VALUES, CHECK_B, CHECK_C, CHECK_BIAS, CHECK_RESIDUAL, CHECK_D, CHECK_PREACT, CHECK_ARRAYS };

/* How an array of a case lies: items of rows x cols, stride elements from one to the next (0: one for all). */
typedef struct check_array {
    spk_layout layout;
    int64_t rows, cols, ld, stride;
} check_array;

/* A case: everything is drawn from (seed, number). */
typedef struct check_case {
    uint64_t seed;
    int64_t number;
    int64_t rows, cols, block_rows, block_cols, grid_rows, grid_cols, nnzb;
    int64_t *offsets, *columns;
    bool overhang; /* NaN stands in what stored blocks have beyond the edges */
    spk_index_type index_type;
    spk_operation operation;
    spk_spmm spmm; /* of SDDMM: its types, block layout, layout and leading dimension of Y as B's, and use_c */
    spk_sddmm sddmm;
    int64_t m, k, n;                  /* of the product */
    int64_t items;                    /* of the batch */
    check_array arrays[CHECK_ARRAYS]; /* CHECK_VALUES of SDDMM is X, CHECK_B is Y */
    double alpha, beta;
    bool assume_finite, static_values, alias_c, alias_residual, own_workspace;
    bool inf_in_use;          /* with !assume_finite: an inf stands in a row of B that blocks do touch */
    int shifts[CHECK_ARRAYS]; /* elements by which an array in a GPU's memory is off a multiple of 256 bytes */
    int threads;
} check_case;

/* gpu: more of 16-bit dtypes and of the blocks that tensor cores like; the same numbers give other cases then. Two cases of a series are of
 * one family there: they share what programs are compiled for (types, layouts, blocks, epilogue, n), and have sizes, patterns and numbers
 * of their own. */
typedef struct check_wish {
    bool gpu;
    spk_operation operation; /* 0: any */
} check_wish;
uint64_t check_family(int64_t number);
void check_draw(uint64_t seed, int64_t number, const check_wish *wish, check_case *c);

/* The end of the drawing (check_arrays.c): the operation, a batch, how the arrays lie. t: what a family of cases shares, r: the rest. */
void check_complete(random_state *t, random_state *r, const check_wish *wish, check_case *c);

/* Where an element lies; how many elements there are from an array's first to its last; its type. */
int64_t check_place(const check_array *a, int64_t item, int64_t i, int64_t j);
int64_t check_span(const check_case *c, int which);
spk_dtype check_dtype(const check_case *c, int which);
void check_release(check_case *c);
bool check_is_shifted(const check_case *c);

/* "f32 17x203 blocks 3x5 ...": for messages. */
char *check_text(const check_case *c);

/* Operands of a case and what the oracle makes of them. Arrays lie between guards; what is no element holds a canary. */
typedef struct check_data {
    const check_case *c;
    spk_context *context;       /* borrowed */
    spk_pattern *pattern;       /* borrowed */
    bool finite;                /* promised as assume_finite; else hostile values stand where no result may see them */
    bool hostile;               /* they do: inf and NaN in rows of B that no block touches, or in one of those that are touched */
    void *arrays[CHECK_ARRAYS]; /* inputs, and D's memory before a run; NULL: none */
    double *out, *preact, *magnitude;
    double tolerance;
    uint64_t input_hash;
} check_data;

/* Makes the pattern, and the data on it; a status of the library where it refuses the case. */
spk_status check_pattern_make(const check_case *c, spk_context *context, spk_pattern **pattern);
spk_status check_data_make(const check_case *c, spk_context *context, spk_pattern *pattern, bool finite, check_data *out);
void check_data_release(check_data *d);

typedef struct check_outcome {
    bool failed;
    bool unproved; /* it did not run: on a GPU only what is proved does */
    bool no_room;  /* it did not run: a limit on address space leaves its library too little */
    bool lost;     /* the device is of no more use to this process: what it last ran died, or hung */
    double error;  /* largest |D - oracle| / magnitude over the tolerance */
    char why[320];
} check_outcome;

/* Binds the candidate ("name params"), runs it (twice if again: the bits must be the same), compares. */
void check_candidate(const check_data *d, spk_kind kind, const char *choice, bool again, check_outcome *outcome);

/* The struct of its operation. */
const void *check_problem(const check_case *c);

/* The arguments of SDDMM, from where those of SpMM have them. */
spk_sddmm_args check_sddmm_args(const spk_spmm_args *given);

/* The options of a case for the library. */
spk_tune_options check_options(const check_case *c, bool finite);

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

/* What this thread runs now, for the message of a crash (check_crash.c). */
void check_running(int place, const char *text);
void check_catch_crashes(void);

#endif

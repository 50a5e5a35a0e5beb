/* The differential test: one random case, its data, and one candidate compared with the oracle on it. */
#ifndef SPARSEK_CLI_CHECK_H
#define SPARSEK_CLI_CHECK_H

#include "cli.h"
#include "random.h"

/* A case: everything is drawn from (seed, number). */
typedef struct check_case {
    uint64_t seed;
    int64_t number;
    int64_t rows, cols, block_rows, block_cols, grid_rows, grid_cols, nnzb;
    int64_t *offsets, *columns;
    spk_index_type index_type;
    spk_spmm spmm;
    int64_t m, k, n;
    double alpha, beta;
    bool assume_finite, static_values, alias_c, alias_residual, own_workspace;
    bool inf_in_use; /* with !assume_finite: an inf stands in a row of B that blocks do touch */
    int threads;
} check_case;

/* gpu: more of 16-bit dtypes and of the blocks that tensor cores like; the same numbers give other cases then. */
void check_draw(uint64_t seed, int64_t number, bool gpu, check_case *c);
void check_release(check_case *c);

/* "f32 17x203 blocks 3x5 ...": for messages. */
char *check_text(const check_case *c);

/* Operands of a case and what the oracle makes of them. Arrays lie between guards; what is no element holds a canary. */
typedef struct check_data {
    const check_case *c;
    spk_context *context; /* borrowed */
    spk_pattern *pattern;
    bool finite; /* promised as assume_finite; else hostile values stand where no result may see them */
    int64_t value_count, b_count, c_count, d_count, r_count, p_count, bias_count;
    void *values, *b, *c_in, *d_image, *residual, *bias; /* d_image: D's memory before a run */
    double *out, *preact, *magnitude;
    double tolerance;
    uint64_t input_hash;
} check_data;

/* Makes the data; a status of the library where it refuses the case. */
spk_status check_data_make(const check_case *c, spk_context *context, bool finite, check_data *out);
void check_data_release(check_data *d);

typedef struct check_outcome {
    bool failed;
    double error; /* largest |D - oracle| / magnitude over the tolerance */
    char why[320];
} check_outcome;

/* Binds the candidate ("name params"), runs it (twice if again: the bits must be the same), compares. */
void check_candidate(const check_data *d, const char *choice, bool again, check_outcome *outcome);

/* The options of a case for the library. */
spk_tune_options check_options(const check_case *c, bool finite);

#endif

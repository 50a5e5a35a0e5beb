/* What `inspect` finds out about a matrix. */
#ifndef SPARSEK_CLI_COMMANDS_INSPECT_H
#define SPARSEK_CLI_COMMANDS_INSPECT_H

#include "cli/args/args.h"
#include "cli/base/cli.h"

typedef struct inspect_structure {
    int64_t rows, cols, entries, empty_rows, row_min, row_max;
    int64_t bandwidth; /* largest |row - column| of an entry */
    double density, row_median, row_mean;
    double row_spread;    /* standard deviation of the entries per row over their mean */
    const char *symmetry; /* static: "symmetric", "symmetric positions", "skew-symmetric", "unsymmetric", "not square" */
} inspect_structure;

/* Of a CSR matrix. Returns an exit code. */
int inspect_find_structure(cli *app, const spk_matrix *csr, inspect_structure *out);

/* Of a mask: prints it, writes a picture of its blocks where svg is no NULL. Returns an exit code. */
int inspect_mask(cli *app, const spk_matrix *matrix, const char *path, const char *svg);

typedef struct inspect_estimate {
    int64_t block_rows, block_cols, n;
    spk_dtype dtype;
    double sparse_us, dense_us; /* the model's times; 0: no candidate */
    char sparse_name[64], dense_name[64];
    char *command; /* that measures it; the caller's to free */
} inspect_estimate;

/* Asks the cost model for the best candidate and the best dense one. Returns an exit code. */
int inspect_make_estimate(cli *app, const spk_matrix *matrix, const char *path, const char *tensor, int64_t cols, args_block block,
                          int64_t n, spk_dtype dtype, inspect_estimate *out);

#endif

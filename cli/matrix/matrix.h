/* Steps that several commands take with matrix files. */
#ifndef SPARSEK_CLI_MATRIX_MATRIX_H
#define SPARSEK_CLI_MATRIX_MATRIX_H

#include "cli/args/args.h"
#include "cli/base/cli.h"
#include "cli/io/matrix_file.h"

/* How many columns a matrix has that does not tell, as a layer of a model. */
#define MATRIX_COLS_OPTION(to, file)                                                                                              \
    {                                                                                                                             \
        "cols", 0, ARGS_INT, to, "COLS", 1, 2147483647,                                                                           \
            "columns of the matrix in " file ", where it does not tell: a layer of a safetensors model (default: by config.json)" \
    }

/* Reads a matrix file: message and exit code on failure. */
int matrix_read(cli *app, const char *path, const char *tensor, int64_t cols, spk_dtype dtype, spk_matrix **matrix);

/* What is written to the output: --format, else by the name. */
matrix_file matrix_output_file(const cli *app, const char *path);

/* EXIT_USAGE after a message where an option names a tensor (NULL: it does not) and the file has none. */
int matrix_check_tensor(const cli *app, const char *option, const char *tensor, matrix_file file, const char *path);

/* Sees that the format is known and the path writable, before any work. Returns an exit code. */
int matrix_check_output(const cli *app, const char *path);

/* Replaces *matrix by *made, what a step made of it (NULL where the step failed), and takes that over. */
int matrix_take(cli *app, spk_status status, const char *what, spk_matrix **matrix, spk_matrix **made);

/* Brings *matrix into a form that the file of `path` can hold: dense for .npy, CSR for .smtx, COO or dense for .mtx, BSR or dense for
 * .safetensors (with the advised block where it is neither). pattern_only drops the values. */
int matrix_fit(cli *app, const char *path, bool pattern_only, spk_matrix **matrix);

/* Writes; a refused file operation is code 5, a form that the format cannot hold code 2. */
int matrix_write(cli *app, const spk_matrix *matrix, const char *path, const char *tensor);

/* The description of a matrix that is there. */
spk_matrix_desc matrix_view(const spk_matrix *matrix);

/* The pattern of a BSR matrix, for values of any dtype. */
spk_status matrix_pattern(spk_context *context, const spk_matrix *bsr, spk_pattern **pattern);
const char *matrix_format_name(spk_format format);

/* The block that spk_matrix_advise scores best; {1, 1} for an empty list. Returns an exit code. */
int matrix_advised_block(cli *app, const spk_matrix *matrix, args_block *block);

/* "32" or "64x32" for a block, into a buffer of 24 bytes. */
const char *matrix_block_text(char *buffer, int64_t rows, int64_t cols);

/* "BSR 4884 x 4884 f64, 8136 blocks of 3x3" */
char *matrix_text(const spk_matrix *matrix);

#endif

/* Steps that several commands take with matrix files. */
#include "cli/matrix/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/text.h"
#include "cli/base/values.h"
#include "cli/io/files.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/signals.h"

int matrix_read(cli *app, const char *path, const char *tensor, int64_t cols, spk_dtype dtype, spk_matrix **matrix)
{
    spk_read_options options = {SPK_SIZED(spk_read_options), .tensor = tensor, .cols = cols, .dtype = dtype};
    int code = files_add(app, FILE_READ, "the input", path);
    if (code)
        return code;
    spk_status status = spk_matrix_read(app->context, files_input(path), &options, matrix);
    if (status == SPK_OK)
        return EXIT_DONE;
    const char *message = spk_last_error(app->context);
    code = status == SPK_ERR_ARGUMENT || status == SPK_ERR_UNSUPPORTED ? EXIT_INPUT : cli_exit_code(status);
    /* the library's message names the file in most cases */
    return strstr(message, files_input(path)) ? cli_fail(app, code, "%s", message) : cli_fail(app, code, "%s: %s", path, message);
}

matrix_file matrix_output_file(const cli *app, const char *path)
{
    return app->format ? (matrix_file)app->format : matrix_file_of(path);
}

int matrix_check_tensor(const cli *app, const char *option, const char *tensor, matrix_file file, const char *path)
{
    if (!tensor || file == MATRIX_FILE_UNKNOWN || file == MATRIX_FILE_SAFETENSORS)
        return EXIT_DONE;
    return cli_fail(app, EXIT_USAGE, "--%s names a tensor of a safetensors file; %s is none", option, path);
}

int matrix_check_output(const cli *app, const char *path)
{
    if (matrix_output_file(app, path) == MATRIX_FILE_UNKNOWN && files_is_stdout(path))
        return cli_fail(app, EXIT_USAGE, "%s: which format? --format mtx, smtx, npy or safetensors", path);
    if (matrix_is_compressed(path) && matrix_is_name(path))
        return cli_fail(app, EXIT_USAGE, "%s: compressed files are read, not written; pipe '-o -' through gzip", path);
    if (matrix_output_file(app, path) == MATRIX_FILE_UNKNOWN)
        return cli_fail(app, EXIT_USAGE, "%s: no known format; the name must end in .mtx, .smtx, .npy or .safetensors", path);
    int code = files_add(app, FILE_MATRIX, "the output", path);
    return code == EXIT_DONE && !files_is_stdout(path) ? output_probe(app, path) : code;
}

spk_matrix_desc matrix_view(const spk_matrix *matrix)
{
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    (void)spk_matrix_view(matrix, &desc); /* fails on a NULL matrix only */
    return desc;
}

spk_status matrix_pattern(spk_context *context, const spk_matrix *bsr, spk_pattern **pattern)
{
    const spk_matrix_desc d = matrix_view(bsr);
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = d.rows,
                                     .cols = d.cols,
                                     .block_rows = d.block_rows,
                                     .block_cols = d.block_cols,
                                     .nnzb = d.nnz,
                                     .row_offsets = d.row_offsets,
                                     .col_indices = d.col_indices,
                                     .index_type = SPK_INDEX_I64};
    return spk_pattern_create(context, &indices, pattern);
}

const char *matrix_format_name(spk_format format)
{
    static const char *const names[] = {"", "dense", "COO", "CSR", "BSR"};
    return (unsigned)format < 5 ? names[format] : "";
}

int matrix_advised_block(cli *app, const spk_matrix *matrix, args_block *block)
{
    spk_block_advice advice[32];
    int count = 32;
    for (int i = 0; i < count; i++)
        advice[i] = (spk_block_advice){SPK_SIZED(spk_block_advice)};
    spk_status status = spk_matrix_advise(app->context, matrix, advice, &count);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, "block advice");
    *block = (args_block){1, 1};
    double best = 0;
    for (int i = 0; i < count; i++)
        if (best == 0 || advice[i].score < best) {
            best = advice[i].score;
            *block = (args_block){advice[i].block_rows, advice[i].block_cols};
        }
    return EXIT_DONE;
}

const char *matrix_block_text(char *buffer, int64_t rows, int64_t cols)
{
    if (rows == cols)
        snprintf(buffer, 24, "%lld", (long long)rows);
    else
        snprintf(buffer, 24, "%lldx%lld", (long long)rows, (long long)cols);
    return buffer;
}

char *matrix_text(const spk_matrix *matrix)
{
    spk_matrix_desc d = matrix_view(matrix);
    char block[24];
    char *shape =
             cli_format("%s %lld x %lld %s", matrix_format_name(d.format), (long long)d.rows, (long long)d.cols, spk_dtype_name(d.dtype)),
         *text;
    if (d.format == SPK_BSR)
        text = cli_format("%s, %lld %s of %s%s", shape, (long long)d.nnz, d.nnz == 1 ? "block" : "blocks",
                          matrix_block_text(block, d.block_rows, d.block_cols), d.pattern_only ? ", no values" : "");
    else if (d.format == SPK_DENSE)
        text = cli_format("%s", shape);
    else
        text = cli_format("%s, %lld %s%s", shape, (long long)d.nnz, d.nnz == 1 ? "entry" : "entries", d.pattern_only ? ", no values" : "");
    free(shape);
    return text;
}

int matrix_take(cli *app, spk_status status, const char *what, spk_matrix **matrix, spk_matrix **made)
{
    spk_matrix_destroy(matrix);
    *matrix = *made;
    *made = NULL;
    return cli_status(app, NULL, status, what);
}

/* The same positions, without values. */
static int drop_values(cli *app, spk_matrix **matrix)
{
    spk_matrix *csr = NULL, *bare = NULL;
    spk_status status = spk_matrix_to_csr(app->context, *matrix, &csr);
    if (status == SPK_OK) {
        spk_matrix_desc desc = matrix_view(csr);
        desc.values = NULL;
        desc.pattern_only = 1;
        status = spk_matrix_create(app->context, &desc, &bare);
    }
    spk_matrix_destroy(&csr);
    return matrix_take(app, status, "dropping the values", matrix, &bare);
}

enum { LARGE_ELEMENTS = 1 << 22, WANTED_SHARE = 20 };

/* Elements that are not zero, or more than `most`. */
static int64_t count_entries(const spk_matrix_desc *d, int64_t most)
{
    if (d->format != SPK_DENSE)
        return d->nnz * d->block_rows * d->block_cols;
    const int64_t lines = d->layout == SPK_COL_MAJOR ? d->cols : d->rows, length = d->layout == SPK_COL_MAJOR ? d->rows : d->cols;
    int64_t count = 0;
    for (int64_t i = 0; i < lines && count <= most; i++)
        for (int64_t j = 0; j < length; j++)
            count += value_get(d->dtype, d->values, i * (d->ld ? d->ld : length) + j) != 0;
    return count;
}

/* A large file that will hold zeros for the most part: another form may be what was meant. */
static void note_zeros(const cli *app, const spk_matrix *matrix, matrix_file file, const char *path)
{
    const spk_matrix_desc d = matrix_view(matrix);
    const int64_t elements = d.rows * d.cols, most = elements / WANTED_SHARE;
    if (app->quiet || elements < LARGE_ELEMENTS || file == MATRIX_FILE_SMTX || (file != MATRIX_FILE_NPY && d.format != SPK_DENSE))
        return;
    const int64_t entries = count_entries(&d, most);
    if (entries <= most)
        cli_note(app, "%s: writing all %lld elements, of which %.3g %% are not zero; %s", path, (long long)elements,
                 100 * (double)entries / (double)elements,
                 file == MATRIX_FILE_NPY ? ".mtx and .safetensors hold those alone" : "--to sparse writes those alone");
}

int matrix_fit(cli *app, const char *path, bool pattern_only, spk_matrix **matrix)
{
    matrix_file file = matrix_output_file(app, path);
    if (pattern_only && file != MATRIX_FILE_MTX && file != MATRIX_FILE_SMTX)
        return cli_fail(app, EXIT_USAGE, "--pattern-only goes with .mtx and .smtx");
    int code = pattern_only ? drop_values(app, matrix) : EXIT_DONE;
    if (code)
        return code;
    spk_format format = matrix_view(*matrix).format;
    spk_matrix *made = NULL;
    note_zeros(app, *matrix, file, path);
    if (file == MATRIX_FILE_NPY && format != SPK_DENSE)
        return matrix_take(app, spk_matrix_to_dense(app->context, *matrix, SPK_ROW_MAJOR, &made), "making it dense", matrix, &made);
    if (file == MATRIX_FILE_SMTX && format != SPK_CSR)
        return matrix_take(app, spk_matrix_to_csr(app->context, *matrix, &made), "making it CSR", matrix, &made);
    if (file == MATRIX_FILE_MTX && format != SPK_COO && format != SPK_DENSE)
        return matrix_take(app, spk_matrix_to_coo(app->context, *matrix, &made), "making it COO", matrix, &made);
    if (file == MATRIX_FILE_SAFETENSORS && format != SPK_BSR && format != SPK_DENSE) {
        args_block block;
        char text[24];
        code = matrix_advised_block(app, *matrix, &block);
        if (code)
            return code;
        cli_note(app, "--block not given: taking the advised %s", matrix_block_text(text, block.rows, block.cols));
        return matrix_take(app, spk_matrix_to_bsr(app->context, *matrix, block.rows, block.cols, SPK_ROW_MAJOR, &made), "making it BSR",
                           matrix, &made);
    }
    return EXIT_DONE;
}

int matrix_write(cli *app, const spk_matrix *matrix, const char *path, const char *tensor)
{
    static const char *const formats[] = {NULL, "mtx", "smtx", "npy", "safetensors"};
    spk_write_options options = {SPK_SIZED(spk_write_options), .tensor = tensor, .format = formats[matrix_output_file(app, path)]};
    cli_interrupt_ends(app, false); /* there is a file to be removed now */
    cli_writes_in_folder_of(ASIDE_BY_LIBRARY, path);
    progress_phase(app, "writing", path);
    spk_status status = spk_matrix_write(app->context, matrix, files_output(path), &options);
    cli_writes_in_folder_of(ASIDE_BY_LIBRARY, NULL);
    if (status == SPK_OK || status == SPK_ERR_INTERRUPTED)
        return cli_status(app, NULL, status, NULL);
    int code = status == SPK_ERR_IO                                        ? EXIT_RESOURCES
               : status == SPK_ERR_UNSUPPORTED || status == SPK_ERR_FORMAT ? EXIT_USAGE
                                                                           : cli_exit_code(status);
    return cli_fail(app, code, "%s", spk_last_error(app->context));
}

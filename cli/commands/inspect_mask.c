/* `inspect` on a mask, which has blocks and no values: what it keeps, how evenly, a picture of the blocks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/commands/inspect.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/matrix/matrix.h"
#include "cli/matrix/spy.h"
#include "cli/problem/flags.h"

typedef struct mask_facts {
    int64_t rows, cols, shortest, longest, empty_rows; /* of blocks; rows of the grid */
    int64_t square;                                    /* lists, were queries as many as keys; 0: they cannot be */
    double kept, mean, balance;
} mask_facts;

static mask_facts measure_mask(const spk_matrix_desc *d)
{
    mask_facts f = {.rows = (d->rows + d->block_rows - 1) / d->block_rows, .cols = (d->cols + d->block_cols - 1) / d->block_cols};
    const int64_t *offsets = d->row_offsets;
    for (int64_t i = 0; i < f.rows; i++) {
        const int64_t length = offsets[i + 1] - offsets[i];
        f.empty_rows += length == 0;
        f.shortest = i == 0 || length < f.shortest ? length : f.shortest;
        f.longest = length > f.longest ? length : f.longest;
    }
    f.mean = f.rows ? (double)d->nnz / (double)f.rows : 0;
    f.kept = f.rows && f.cols ? f.mean / (double)f.cols : 0;
    f.balance = f.mean > 0 ? (double)f.longest / f.mean : 0;
    const int64_t side = (d->cols + d->block_rows - 1) / d->block_rows;
    f.square = side && f.rows % side == 0 && (f.rows > side || d->rows == d->cols) ? f.rows / side : 0;
    return f;
}

static json_t *facts_json(const char *path, const char *text, const spk_matrix_desc *d, const mask_facts *f, const char *command)
{
    json_t *o = json_object(), *mask = json_object();
    json_put(mask, "block_rows", json_integer(d->block_rows));
    json_put(mask, "block_cols", json_integer(d->block_cols));
    json_put(mask, "nnzb", json_integer(d->nnz));
    json_put(mask, "grid_rows", json_integer(f->rows));
    json_put(mask, "grid_cols", json_integer(f->cols));
    json_put(mask, "kept", json_number(f->kept));
    json_put(mask, "row_min", json_integer(f->shortest));
    json_put(mask, "row_mean", json_number(f->mean));
    json_put(mask, "row_max", json_integer(f->longest));
    json_put(mask, "balance", json_number(f->balance));
    json_put(mask, "empty_rows", json_integer(f->empty_rows));
    json_put(mask, "square_lists", f->square ? json_integer(f->square) : json_null());
    json_put(o, "file", json_text(path));
    json_put(o, "format", json_text(text));
    json_put(o, "mask", mask);
    json_put(o, "measure", json_text(command));
    return o;
}

int inspect_mask(cli *app, const spk_matrix *matrix, const char *path, const char *svg)
{
    const spk_matrix_desc d = matrix_view(matrix);
    const mask_facts f = measure_mask(&d);
    const spk_matrix_desc grid = {
        SPK_SIZED(spk_matrix_desc),   .format = SPK_CSR,           .dtype = d.dtype, .rows = f.rows, .cols = f.cols, .nnz = d.nnz,
        .row_offsets = d.row_offsets, .col_indices = d.col_indices};
    char *text = matrix_text(matrix), *file = cli_quoted(path), *command = cli_format("sparsek bench %s --op attention", file),
         *fit = problem_list_counts(f.rows);
    if (f.square > 1) {
        free(command);
        command =
            cli_format("sparsek bench %s --op attention --heads %lld --mask-heads %lld", file, (long long)f.square, (long long)f.square);
    }
    int code = svg ? spy_write_svg(app, &grid, path, svg) : EXIT_DONE;
    if (code == EXIT_DONE && cli_talks(app)) {
        printf("%s: %s\n\n", cli_clean(path), text);
        spk_fprintf(stdout, "  keeps            %.3g %% of %lld x %lld blocks\n", 100 * f.kept, (long long)f.rows, (long long)f.cols);
        spk_fprintf(stdout, "  a block row has  %lld to %lld blocks, mean %.4g; %lld %s empty\n", (long long)f.shortest,
                    (long long)f.longest, f.mean, (long long)f.empty_rows, f.empty_rows == 1 ? "is" : "are");
        spk_fprintf(stdout, "  balance          %.2f (the longest over the mean)\n", f.balance);
        printf("  lists            the file does not say: %s, one below the other\n", fit);
        if (f.square)
            printf("                   %lld where queries are as many as keys\n", (long long)f.square);
        putchar('\n');
        spy_print(&grid, term_width(1));
        printf("\nMeasure it: %s\n", cli_clean(command));
    }
    if (code == EXIT_DONE) {
        json_t *results = json_array();
        json_push(results, facts_json(path, text, &d, &f, command));
        code = json_finish(app, json_envelope(app, results), code);
    }
    free(text);
    free(file);
    free(command);
    free(fit);
    return code;
}

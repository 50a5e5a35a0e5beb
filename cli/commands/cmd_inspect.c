/* sparsek inspect: what a matrix file holds, how it would block, and what that is estimated to gain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/free_memory.h"
#include "cli/args/command.h"
#include "cli/base/table.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/inspect.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/session.h"
#include "cli/matrix/matrix.h"
#include "cli/matrix/spy.h"

static const char about[] =
    "Shows shape and structure of a matrix, the fill-in at each block size (stored elements over entries), how uneven\n"
    "its rows are, a spy plot, which block to take, and what that block is estimated to gain over dense for a product\n"
    "with --n columns. The estimate is the cost model's; the command that measures it is printed. Of a mask (blocks without\n"
    "values, see 'sparsek gen --help'): the share that it keeps, how even its block rows are, a picture.";

typedef struct inspect_flags {
    const char *tensor, *svg;
    args_block block;
    int64_t n, cols;
    spk_dtype dtype;
} inspect_flags;

enum { MAX_ADVICE = 32 };

static int parse(cli *app, inspect_flags *f, args *a, int argc, char **argv)
{
    *f = (inspect_flags){.n = 128};
    const args_option options[] = {
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0, "estimate this block, in elements (default: the advised one)"},
        {"n", 0, ARGS_INT, &f->n, "COLS", 1, 2147483647, "columns of B in the estimate (default: 128)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0, "type in the estimate (default: the file's)"},
        {"spy", 0, ARGS_FILE, &f->svg, "FILE", 0, 0, "write the spy plot as SVG"},
        {"tensor", 0, ARGS_TEXT, &f->tensor, "NAME", 0, 0,
         "safetensors: which tensor (default: the only one); a part of names lists those that have it"},
        MATRIX_COLS_OPTION(&f->cols, "FILE"),
    };
    args_add(a, "Inspection", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(a, app, HEEDS_THREADS | HEEDS_DEVICE | HEEDS_KERNELS);
    return cli_parse(a, argc, argv);
}

static int find_advice(cli *app, const spk_matrix *matrix, spk_block_advice *advice, int *count)
{
    *count = MAX_ADVICE;
    for (int i = 0; i < MAX_ADVICE; i++)
        advice[i] = (spk_block_advice){SPK_SIZED(spk_block_advice)};
    return cli_status(app, NULL, spk_matrix_advise(app->context, matrix, advice, count), "block advice");
}

static int best_advice(const spk_block_advice *advice, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (best < 0 || advice[i].score < advice[best].score)
            best = i;
    return best;
}

static void print_advice(const spk_block_advice *advice, int count, int best)
{
    const table_column columns[] = {{"  block", false, 0, false}, {"stored", true, 2, false},    {"density %", true, 3, false},
                                    {"fill-in", true, 0, false},  {"est. time", true, 4, false}, {"", false, 1, true}};
    table *t = table_make(columns, 6);
    char block[24];
    for (int i = 0; i < count; i++) {
        table_row(t, i == best ? TABLE_GOOD : TABLE_PLAIN);
        table_cell(t, 0, "%s%s", i == best ? "> " : "  ", matrix_block_text(block, advice[i].block_rows, advice[i].block_cols));
        table_cell(t, 1, "%lld", (long long)advice[i].nnzb);
        table_cell(t, 2, "%.3g", 100 * advice[i].density);
        table_cell(t, 3, "%.2f", advice[i].fill);
        table_cell(t, 4, "%.2f", advice[i].score);
        table_bar(t, advice[i].score > 0 ? 1 / advice[i].score : 0);
    }
    puts("\nBlock sizes (fill-in: stored elements over entries; est. time: relative to the advised block)");
    table_print(t, 0);
    table_release(&t);
}

static json_t *advice_json(const spk_block_advice *advice, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *o = json_object();
        json_put(o, "block_rows", json_integer(advice[i].block_rows));
        json_put(o, "block_cols", json_integer(advice[i].block_cols));
        json_put(o, "nnzb", json_integer(advice[i].nnzb));
        json_put(o, "density", json_number(advice[i].density));
        json_put(o, "fill", json_number(advice[i].fill));
        json_put(o, "score", json_number(advice[i].score));
        json_push(list, o);
    }
    return list;
}

static json_t *structure_json(const inspect_structure *s)
{
    json_t *o = json_object();
    json_put(o, "rows", json_integer(s->rows));
    json_put(o, "cols", json_integer(s->cols));
    json_put(o, "entries", json_integer(s->entries));
    json_put(o, "density", json_number(s->density));
    json_put(o, "empty_rows", json_integer(s->empty_rows));
    json_put(o, "row_min", json_integer(s->row_min));
    json_put(o, "row_median", json_number(s->row_median));
    json_put(o, "row_mean", json_number(s->row_mean));
    json_put(o, "row_max", json_integer(s->row_max));
    json_put(o, "row_spread", json_number(s->row_spread));
    json_put(o, "bandwidth", json_integer(s->bandwidth));
    json_put(o, "symmetry", json_string(s->symmetry));
    return o;
}

static json_t *estimate_json(const inspect_estimate *e)
{
    json_t *o = json_object();
    json_put(o, "estimate", json_true());
    json_put(o, "block_rows", json_integer(e->block_rows));
    json_put(o, "block_cols", json_integer(e->block_cols));
    json_put(o, "n", json_integer(e->n));
    json_put(o, "dtype", json_string(spk_dtype_name(e->dtype)));
    json_put(o, "kernel", json_text(e->sparse_us > 0 ? e->sparse_name : NULL));
    json_put(o, "sparse_us", e->sparse_us > 0 ? json_number(e->sparse_us) : json_null());
    json_put(o, "dense_kernel", json_text(e->dense_us > 0 ? e->dense_name : NULL));
    json_put(o, "dense_us", e->dense_us > 0 ? json_number(e->dense_us) : json_null());
    json_put(o, "gain", e->sparse_us > 0 && e->dense_us > 0 ? json_number(e->dense_us / e->sparse_us) : json_null());
    json_put(o, "measure", json_text(e->command));
    return o;
}

static void print_structure(const char *path, const char *text, const inspect_structure *s)
{
    printf("%s: %s\n\n", cli_clean(path), text);
    spk_fprintf(stdout, "  entries    %lld (%.3g %%)\n", (long long)s->entries, 100 * s->density);
    spk_fprintf(stdout, "  a row has  %lld to %lld entries, median %.6g, mean %.4g, spread %.2f; %lld rows are empty\n",
                (long long)s->row_min, (long long)s->row_max, s->row_median, s->row_mean, s->row_spread, (long long)s->empty_rows);
    printf("  bandwidth  %lld\n  structure  %s\n\n", (long long)s->bandwidth, s->symmetry);
}

/* Two digits at least, and never a power of ten. */
static void number_text(double value, const char *unit, char *out, size_t size)
{
    spk_snprintf(out, size, "%.*f%s", value >= 10 ? 0 : value >= 1 ? 1 : value >= 0.1 ? 2 : 3, value, unit);
}

static void print_estimate(const inspect_estimate *e)
{
    char block[24], sparse[32], dense[32], ratio[32];
    number_text(e->sparse_us, " us", sparse, sizeof(sparse));
    number_text(e->dense_us, " us", dense, sizeof(dense));
    number_text(e->sparse_us > 0 ? e->dense_us / e->sparse_us : 0, "", ratio, sizeof(ratio));
    putchar('\n');
    matrix_block_text(block, e->block_rows, e->block_cols);
    char *text;
    if (e->sparse_us > 0 && e->dense_us > 0)
        text = cli_format(
            "Estimate (cost model, not measured): with blocks of %s and %lld columns of B in %s, %s takes %s and %s %s: dense takes %s "
            "times as long.",
            block, (long long)e->n, spk_dtype_name(e->dtype), e->sparse_name, sparse, e->dense_name, dense, ratio);
    else if (e->sparse_us > 0)
        text = cli_format("Estimate (cost model, not measured): with blocks of %s and %lld columns of B in %s, %s takes %s; no dense "
                          "implementation is here to "
                          "compare with.",
                          block, (long long)e->n, spk_dtype_name(e->dtype), e->sparse_name, sparse);
    else
        text = cli_format("No kernel can multiply blocks of %s in %s.", block, spk_dtype_name(e->dtype));
    term_paragraph(text, 0);
    free(text);
    printf("Measure it: %s\n", cli_clean(e->command));
}

static int inspect(cli *app, const inspect_flags *f, const char *path, spk_matrix *matrix, spk_matrix *csr)
{
    spk_matrix_desc view = matrix_view(csr);
    spk_block_advice advice[MAX_ADVICE];
    inspect_structure structure;
    inspect_estimate estimate = {0};
    int count = 0, code = find_advice(app, matrix, advice, &count);
    if (code == EXIT_DONE)
        code = inspect_find_structure(app, csr, &structure);
    if (code)
        return code;
    int best = best_advice(advice, count);
    args_block block = f->block;
    if (!block.rows)
        block = best >= 0 ? (args_block){advice[best].block_rows, advice[best].block_cols} : (args_block){1, 1};
    spk_matrix_desc source = matrix_view(matrix);
    code = inspect_make_estimate(app, matrix, path, f->tensor, f->cols, block, f->n, f->dtype ? f->dtype : source.dtype, &estimate);
    char *text = matrix_text(matrix);
    if (code == EXIT_DONE && f->svg)
        code = spy_write_svg(app, &view, path, f->svg);
    if (code == EXIT_DONE && cli_talks(app)) {
        print_structure(path, text, &structure);
        spy_print(&view, term_width(1));
        print_advice(advice, count, best);
        print_estimate(&estimate);
    }
    if (code == EXIT_DONE) {
        json_t *results = json_array(), *o = json_object();
        json_put(o, "file", json_text(path));
        json_put(o, "format", json_text(text));
        json_put(o, "structure", structure_json(&structure));
        json_put(o, "blocks", advice_json(advice, count));
        json_put(o, "advice",
                 best >= 0 ? json_pack("[I,I]", (json_int_t)advice[best].block_rows, (json_int_t)advice[best].block_cols) : json_null());
        json_put(o, "gain_over_dense", estimate_json(&estimate));
        json_push(results, o);
        code = json_finish(app, json_envelope(app, results), code);
    }
    free(text);
    free(estimate.command);
    return code;
}

/* Rows and columns are listed, empty ones too: a file of a few bytes may announce billions of them. */
static int check_size(const cli *app, const char *path, const spk_matrix *matrix)
{
    enum { BYTES_EACH = 8, LARGE = 1 << 24 };
    spk_matrix_desc d = matrix_view(matrix);
    int64_t lines = d.rows + d.cols, room = lines < LARGE ? 0 : spk_free_memory() / 4;
    if (room <= 0 || lines <= room / BYTES_EACH)
        return EXIT_DONE;
    return cli_fail(app, EXIT_RESOURCES, "%s: %lld rows and %lld columns need %lld bytes or more; a quarter of those that are free is %lld",
                    path, (long long)d.rows, (long long)d.cols, (long long)lines * BYTES_EACH, (long long)room);
}

int cmd_inspect(cli *app, int argc, char **argv)
{
    args a = {.command = "inspect",
              .synopsis = "FILE [options]",
              .about = about,
              .min_operands = 1,
              .max_operands = 1,
              .operand_names = "a FILE"};
    a.often = "block n spy tensor";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek inspect matrix.mtx --n 32\nsparsek inspect weights.safetensors --spy weights.svg\n";
    inspect_flags f;
    int code = parse(app, &f, &a, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = matrix_check_tensor(app, "tensor", f.tensor, matrix_input_file(a.operands[0]), a.operands[0]);
    if (code)
        return code;
    if (f.svg)
        code = output_check(app, "--spy", f.svg);
    else
        code = EXIT_DONE;
    if (code == EXIT_DONE)
        code = cli_open(app);
    cli_interrupt_ends(app, true);
    spk_matrix *matrix = NULL, *csr = NULL;
    if (code == EXIT_DONE)
        code = matrix_read(app, a.operands[0], f.tensor, f.cols, SPK_DTYPE_DEFAULT, &matrix);
    if (code)
        return code;
    const spk_matrix_desc view = matrix_view(matrix);
    if (view.format == SPK_BSR && view.pattern_only) {
        code = inspect_mask(app, matrix, a.operands[0], f.svg);
        spk_matrix_destroy(&matrix);
        return code;
    }
    code = check_size(app, a.operands[0], matrix);
    if (code == EXIT_DONE)
        code = cli_status(app, NULL, spk_matrix_to_csr(app->context, matrix, &csr), a.operands[0]);
    progress_phase(app, "analysing", "");
    if (code == EXIT_DONE)
        code = inspect(app, &f, a.operands[0], matrix, csr);
    spk_matrix_destroy(&csr);
    spk_matrix_destroy(&matrix);
    return code;
}

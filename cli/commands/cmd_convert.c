/* sparsek convert: reads a matrix file, re-blocks, prunes or casts it, writes another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/progress.h"
#include "cli/io/session.h"
#include "cli/matrix/matrix.h"

static const char about[] =
    "Reads IN and writes OUT; OUT's ending says its format: .mtx (Matrix Market), .smtx (positions only), .npy (dense),\n"
    ".safetensors (BSR or dense). IN may be compressed (.gz). '-' is standard input or output. Nothing is left behind where it fails.";

typedef struct convert_flags {
    const char *tensor, *tensor_out;
    int64_t cols;
    args_block block;
    double prune;
    int by, to, pattern_only;
    spk_dtype dtype;
} convert_flags;

static int parse(cli *app, convert_flags *f, args *a, int argc, char **argv)
{
    *f = (convert_flags){.prune = -1, .by = -1};
    const args_option options[] = {
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0, "make it BSR with this block, in elements: 64 or 64x32"},
        {"prune", 0, ARGS_SHARE, &f->prune, "DENSITY", 0, 1,
         "keep this share of the blocks, those of largest norm: 0.1 or 10%; with --block, unless IN is BSR"},
        {"by", 0, ARGS_CHOICE, &f->by, "l1|l2|max", 0, 0, "the norm for --prune (default: l2)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0, "type of the values (default: as they are)"},
        {"to", 0, ARGS_CHOICE, &f->to, "auto|dense|sparse", 0, 0,
         "what OUT is where its format leaves that open: array or coordinate in .mtx, tensor or BSR in .safetensors (default: as IN)"},
        {"format", 0, ARGS_CHOICE, &app->format, MATRIX_FORMATS, 0, 0, "OUT's format (default: by its ending); needed where OUT is '-'"},
        {"pattern-only", 0, ARGS_FLAG, &f->pattern_only, NULL, 0, 0, ".mtx and .smtx: positions without values"},
        {"tensor", 0, ARGS_TEXT, &f->tensor, "NAME", 0, 0, "safetensors IN: which tensor (default: the only one)"},
        MATRIX_COLS_OPTION(&f->cols, "IN"),
        {"tensor-out", 0, ARGS_TEXT, &f->tensor_out, "NAME", 0, 0, "safetensors OUT: name to write under (default: matrix)"},
    };
    args_add(a, "Conversion", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(a, app, 0);
    int code = cli_parse(a, argc, argv);
    if (code != ARGS_GO)
        return code;
    if (f->by >= 0 && f->prune < 0)
        return cli_fail(app, EXIT_USAGE, "--by goes with --prune");
    if (f->to == 1 && f->block.rows)
        return cli_fail(app, EXIT_USAGE, "--to dense and --block exclude each other");
    const matrix_file out = matrix_output_file(app, a->operands[1]);
    if (f->to == 2 && out == MATRIX_FILE_NPY)
        return cli_fail(app, EXIT_USAGE, "--to sparse: .npy holds dense matrices only (%s)", a->operands[1]);
    if (f->to == 1 && out == MATRIX_FILE_SMTX)
        return cli_fail(app, EXIT_USAGE, "--to dense: .smtx holds the positions of sparse matrices only (%s)", a->operands[1]);
    code = matrix_check_tensor(app, "tensor", f->tensor, matrix_input_file(a->operands[0]), a->operands[0]);
    if (code == EXIT_DONE)
        code = matrix_check_tensor(app, "tensor-out", f->tensor_out, out, a->operands[1]);
    return code ? code : ARGS_GO;
}

/* matrix_take for a step that depends on the values: what it refuses is the file's fault, as it is where a reader finds it. */
static int take_values(cli *app, spk_status status, const char *what, spk_matrix **matrix, spk_matrix **made)
{
    int code = matrix_take(app, status, what, matrix, made);
    return status == SPK_ERR_ARGUMENT ? EXIT_INPUT : code;
}

/* Every change that was asked for, in place. */
static int change(cli *app, const convert_flags *f, spk_matrix **matrix)
{
    spk_matrix *made = NULL;
    int code = EXIT_DONE;
    args_block block = f->block;
    spk_matrix_desc view = matrix_view(*matrix);
    if (!block.rows && view.format == SPK_BSR)
        block = (args_block){view.block_rows, view.block_cols};
    if (f->prune >= 0 && !block.rows)
        return cli_fail(app, EXIT_USAGE, "--prune needs --block: IN is %s, which has no blocks of its own",
                        matrix_format_name(view.format));
    bool prunes = f->prune >= 0;
    /* a dense matrix gets the blocks that hold something first: no other is stored */
    if (f->block.rows && (!prunes || view.format == SPK_DENSE))
        code = matrix_take(app, spk_matrix_to_bsr(app->context, *matrix, block.rows, block.cols, SPK_ROW_MAJOR, &made), "making it BSR",
                           matrix, &made);
    if (prunes && code == EXIT_DONE)
        code = take_values(app,
                           spk_matrix_prune(app->context, *matrix, block.rows, block.cols, f->prune,
                                            f->by < 0 ? SPK_NORM_L2 : (spk_norm)(f->by + 1), &made),
                           "pruning", matrix, &made);
    if (code == EXIT_DONE && f->dtype && matrix_view(*matrix).dtype != f->dtype)
        code = take_values(app, spk_matrix_cast(app->context, *matrix, f->dtype, &made), "changing the type", matrix, &made);
    bool dense = code == EXIT_DONE && matrix_view(*matrix).format == SPK_DENSE;
    if (code == EXIT_DONE && f->to == 1 && !dense)
        code = matrix_take(app, spk_matrix_to_dense(app->context, *matrix, SPK_ROW_MAJOR, &made), "making it dense", matrix, &made);
    else if (code == EXIT_DONE && f->to == 2 && dense)
        code = matrix_take(app, spk_matrix_to_coo(app->context, *matrix, &made), "making it sparse", matrix, &made);
    return code;
}

int cmd_convert(cli *app, int argc, char **argv)
{
    args a = {.command = "convert",
              .synopsis = "IN OUT [options]",
              .about = about,
              .min_operands = 2,
              .max_operands = 2,
              .operand_names = "IN and OUT"};
    a.often = "block prune dtype to tensor tensor-out";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek convert matrix.mtx matrix.safetensors --block 3\n"
                 "zcat matrix.mtx.gz | sparsek convert - - --format npy >matrix.npy\n"
                 "sparsek convert weights.npy pruned.safetensors --block 32 --prune 10% --by l1 --dtype f32\n";
    convert_flags f;
    int code = parse(app, &f, &a, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = matrix_check_output(app, a.operands[1]);
    if (code == EXIT_DONE)
        code = cli_open(app);
    cli_interrupt_ends(app, true);
    spk_matrix *matrix = NULL;
    if (code == EXIT_DONE)
        code = matrix_read(app, a.operands[0], f.tensor, f.cols, SPK_DTYPE_DEFAULT, &matrix);
    if (code)
        return code;
    char *before = matrix_text(matrix), *after = NULL;
    progress_phase(app, "converting", "");
    code = change(app, &f, &matrix);
    if (code == EXIT_DONE)
        code = matrix_fit(app, a.operands[1], f.pattern_only, &matrix);
    if (code == EXIT_DONE)
        code = matrix_write(app, matrix, a.operands[1], f.tensor_out);
    if (code == EXIT_DONE) {
        after = matrix_text(matrix);
        if (cli_talks(app))
            printf("%s: %s\n%s: %s\n", cli_clean(a.operands[0]), before, cli_clean(a.operands[1]), after);
        json_t *results = json_array(), *r = json_object();
        json_put(r, "in", json_text(a.operands[0]));
        json_put(r, "out", json_text(a.operands[1]));
        json_put(r, "before", json_text(before));
        json_put(r, "after", json_text(after));
        json_push(results, r);
        code = json_finish(app, json_envelope(app, results), code);
    }
    free(before);
    free(after);
    spk_matrix_destroy(&matrix);
    return code;
}

/* sparsek gen: writes a generated block-sparse matrix to a file. */
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
#include "cli/matrix/experts.h"
#include "cli/matrix/gen_mask.h"
#include "cli/matrix/matrix.h"

static const char about_patterns[] =
    "Generates a block-sparse matrix, the same bits on every machine for one seed, with normally distributed values.\n"
    "Patterns; each stores round(density x blocks down x blocks across) blocks where its shape has room:\n\n"
    "  uniform      random blocks; rows differ by at most one block\n"
    "  bernoulli    random blocks, no limit on a row\n"
    "  banded       the blocks nearest the diagonal\n"
    "  window       a sliding window of whole rows\n"
    "  causal       random blocks at and below the diagonal\n"
    "  diagonal     square groups along the diagonal\n"
    "  power-law    row length in proportion to rank^-0.5, shuffled\n"
    "  empty-rows   random blocks in half of the rows, the others empty\n"
    "  experts      block-diagonal: uneven groups of block rows, one for each of --experts, of --tokens rows each; --cols are\n"
    "               shared evenly\n"
    "  elasticity   3-D linear elasticity by finite elements (hexahedra, one face clamped; 3x3 blocks, symmetric\n"
    "               positive definite), of --cells hexahedra\n"
    "  mask         which blocks of queries (--rows) and keys (--cols) attention keeps, without values: of --heads lists one\n"
    "               below the other, of a --shape\n\n"
    "Shapes of masks; a query's own key is the last one so far:\n\n";

static const char about_files[] = "\n"
                                  "The ending of FILE says the format: .safetensors (BSR), .mtx (coordinate), .smtx (positions only, with\n"
                                  "--pattern-only), .npy (dense).";

enum { NO_POISSON = -2 };

typedef struct gen_flags {
    const char *out, *tensor;
    int64_t rows, cols, m, k;
    args_block block;
    args_cells cells;
    int64_t experts, *token_list;
    const char *tokens;
    double density, young, poisson;
    spk_dtype dtype;
    uint64_t seed;
    int pattern_only;
    mask_flags mask;
} gen_flags;

static int parse(cli *app, gen_flags *f, args *a, int argc, char **argv)
{
    *f = (gen_flags){.rows = -1, .cols = -1, .m = -1, .k = -1, .density = -1, .poisson = NO_POISSON, .seed = 1};
    args_option of_masks[GEN_MASK_MOST];
    const int mask_options = gen_mask_options(of_masks, &f->mask);
    const args_option options[] = {
        {"out", 'o', ARGS_MATRIX, &f->out, "FILE", 0, 0, "the file to write; '-': standard output"},
        {"format", 0, ARGS_CHOICE, &app->format, MATRIX_FORMATS, 0, 0, "FILE's format (default: by its ending); needed where FILE is '-'"},
        {"rows", 0, ARGS_INT, &f->rows, "ROWS", 0, 2147483647, "rows, in elements (default: 2048)"},
        {"cols", 0, ARGS_INT, &f->cols, "COLS", 0, 2147483647, "columns, in elements (default: as many as rows)"},
        {"m", 0, ARGS_INT, &f->m, "ROWS", 0, 2147483647, "the same as --rows"},
        {"k", 0, ARGS_INT, &f->k, "COLS", 0, 2147483647, "the same as --cols"},
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0, "block, in elements: 64 or 64x32 (default: 64)"},
        {"density", 0, ARGS_SHARE, &f->density, NULL, 0, 1, "stored share of the blocks: 0.1 or 10% (default: 0.1)"},
        {"seed", 0, ARGS_SEED, &f->seed, NULL, 0, 0, "seed (default: 1)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0, "type of the values (default: f32; f64 for elasticity)"},
        {"cells", 0, ARGS_CELLS, &f->cells, NULL, 0, 0,
         "elasticity: hexahedra along each axis, 20 or 20x10x10 (default: 10); mask video: frames, lines, columns"},
        {"young", 0, ARGS_REAL, &f->young, NULL, 1e-20, 1e20, "elasticity: Young's modulus (default: 1)"},
        {"poisson", 0, ARGS_REAL, &f->poisson, NULL, -0.999999, 0.499999, "elasticity: Poisson's ratio (default: 0.3)"},
        {"experts", 0, ARGS_INT, &f->experts, NULL, 1, 1073741824, "experts: how many (default: 8, or as many as --tokens names)"},
        {"tokens", 0, ARGS_TEXT, &f->tokens, "TOKENS", 0, 0,
         "experts: a range to draw from, or a list, one for each (default: 16-256); mask documents: a range"},
        {"pattern-only", 0, ARGS_FLAG, &f->pattern_only, NULL, 0, 0, ".mtx and .smtx: positions without values"},
        {"tensor", 0, ARGS_TEXT, &f->tensor, "NAME", 0, 0, ".safetensors: name to write under (default: matrix)"},
    };
    args_add(a, "Matrix", options, (int)(sizeof(options) / sizeof(*options)));
    args_add(a, "Mask", of_masks, mask_options);
    cli_common_options(a, app, 0);
    char *shapes = gen_mask_about(), *about = cli_format("%s%s%s", about_patterns, shapes, about_files);
    a->about = about;
    int code = cli_parse(a, argc, argv);
    free(shapes);
    free(about);
    a->about = NULL;
    if (code != ARGS_GO)
        return code;
    if (!f->out)
        return cli_fail(app, EXIT_USAGE, "needs -o FILE");
    if ((f->rows >= 0 && f->m >= 0) || (f->cols >= 0 && f->k >= 0))
        return cli_fail(app, EXIT_USAGE, "--m and --rows, --k and --cols are the same: give one of each");
    code = matrix_check_tensor(app, "tensor", f->tensor, matrix_output_file(app, f->out), f->out);
    return code ? code : ARGS_GO;
}

static int options_of_mask(const cli *app, gen_flags *f, int64_t rows, int64_t cols, spk_generate *o)
{
    const args_cells c = f->cells;
    if (f->young > 0 || f->poisson != NO_POISSON || f->experts)
        return cli_fail(app, EXIT_USAGE, "--young and --poisson go with elasticity, --experts with experts");
    if (c.x && (rows >= 0 || cols >= 0))
        return cli_fail(app, EXIT_USAGE, "--shape video: its size comes from --cells, not from --rows or --cols");
    int64_t tokens = 0;
    if (__builtin_mul_overflow(c.x, c.y, &tokens) || __builtin_mul_overflow(tokens, c.z, &tokens))
        return cli_fail(app, EXIT_USAGE, "--cells: so many tokens have no number of 64 bits");
    o->rows = c.x ? tokens : rows >= 0 ? rows : cols >= 0 ? cols : 2048;
    o->cols = c.x ? o->rows : cols >= 0 ? cols : o->rows;
    o->block_rows = f->block.rows ? f->block.rows : 64;
    o->block_cols = f->block.cols ? f->block.cols : 64;
    return gen_mask_take(app, &f->mask, (mask_shared){c, f->tokens, f->density}, o, &f->token_list);
}

static int options_of(const cli *app, gen_flags *f, const char *pattern, spk_generate *o)
{
    *o = (spk_generate){SPK_SIZED(spk_generate), .generator = spk_generator_from_name(pattern), .seed = f->seed, .dtype = f->dtype};
    if (!o->generator) {
        const char *near = args_nearest_pattern(pattern);
        const spk_mask_shape shape = spk_mask_shape_from_name(pattern);
        if (shape && strcmp(pattern, "random") != 0) /* that is near a pattern's name, too */
            return cli_fail(app, EXIT_USAGE, "no pattern is called '%s'; it is a shape of masks: 'sparsek gen mask --shape %s'", pattern,
                            pattern);
        return near ? cli_fail(app, EXIT_USAGE, "no pattern is called '%s'; did you mean %s?", pattern, near)
                    : cli_fail(app, EXIT_USAGE, "no pattern is called '%s' (see 'sparsek gen --help')", pattern);
    }
    int64_t rows = f->rows >= 0 ? f->rows : f->m, cols = f->cols >= 0 ? f->cols : f->k;
    if (o->generator != SPK_GEN_MASK && gen_mask_given(&f->mask))
        return cli_fail(app, EXIT_USAGE, "--%s goes with mask", gen_mask_given(&f->mask));
    if (o->generator == SPK_GEN_MASK)
        return options_of_mask(app, f, rows, cols, o);
    if (o->generator == SPK_GEN_ELASTICITY) {
        if (rows >= 0 || cols >= 0 || f->density >= 0 || f->block.rows)
            return cli_fail(app, EXIT_USAGE,
                            "elasticity has 3x3 blocks and its size comes from --cells, not from --rows, --cols, --block or --density");
        args_cells cells = f->cells.x ? f->cells : (args_cells){10, 10, 10};
        o->cells_x = cells.x;
        o->cells_y = cells.y;
        o->cells_z = cells.z;
        o->young = f->young;
        o->poisson = f->poisson == NO_POISSON ? 0 : f->poisson == 0 ? 1e-30 : f->poisson; /* 0: the library's default */
        return EXIT_DONE;
    }
    if (f->cells.x || f->young > 0 || f->poisson != NO_POISSON)
        return cli_fail(app, EXIT_USAGE, "--cells, --young and --poisson go with elasticity");
    o->rows = rows >= 0 ? rows : cols >= 0 ? cols : 2048;
    o->cols = cols >= 0 ? cols : o->rows;
    o->block_rows = f->block.rows ? f->block.rows : 64;
    o->block_cols = f->block.cols ? f->block.cols : 64;
    if (o->generator == SPK_GEN_EXPERTS) {
        if (rows >= 0 || f->density >= 0)
            return cli_fail(app, EXIT_USAGE, "experts: rows and density come from --experts and --tokens, not from --rows or --density");
        o->rows = 0;
        return experts_options(app, f->experts, f->tokens, o, &f->token_list);
    }
    if (f->experts || f->tokens)
        return cli_fail(app, EXIT_USAGE, "--experts and --tokens go with experts");
    o->density = f->density < 0 ? 0.1 : f->density;
    return EXIT_DONE;
}

static int finish(cli *app, const gen_flags *f, const spk_generate *o, const spk_matrix *bsr, int64_t shortfall, const char *text)
{
    spk_matrix_desc d = matrix_view(bsr);
    json_t *results = json_array(), *r = json_object();
    json_put(r, "pattern", json_string(spk_generator_name(o->generator)));
    if (o->generator == SPK_GEN_MASK)
        json_put(r, "shape", json_string(spk_mask_shape_name(o->mask)));
    json_put(r, "seed", json_integer((json_int_t)o->seed));
    json_put(r, "rows", json_integer(d.rows));
    json_put(r, "cols", json_integer(d.cols));
    json_put(r, "block_rows", json_integer(d.block_rows));
    json_put(r, "block_cols", json_integer(d.block_cols));
    json_put(r, "nnzb", json_integer(d.nnz));
    json_put(r, "shortfall", json_integer(shortfall));
    json_put(r, "dtype", json_string(spk_dtype_name(d.dtype)));
    json_put(r, "path", json_text(f->out));
    json_push(results, r);
    if (cli_talks(app))
        printf("%s: %s\n", cli_clean(f->out), text);
    return json_finish(app, json_envelope(app, results), EXIT_DONE);
}

int cmd_gen(cli *app, int argc, char **argv)
{
    args a = {
        .command = "gen", .synopsis = "PATTERN -o FILE [options]", .min_operands = 1, .max_operands = 1, .operand_names = "a PATTERN"};
    a.often = "out rows cols block density seed dtype";
    a.operand_kind = ARGS_PATTERN;
    a.examples = "sparsek gen uniform --rows 4096 --cols 4096 --block 64x32 --density 10% -o a.safetensors\n"
                 "sparsek gen mask --shape window --window 1024 --rows 8192 --block 128 -o mask.safetensors\n"
                 "sparsek gen elasticity --cells 20x10x10 -o beam.mtx\n";
    gen_flags f;
    int code = parse(app, &f, &a, argc, argv);
    if (code != ARGS_GO)
        return code;
    spk_generate options;
    code = options_of(app, &f, a.operands[0], &options);
    if (code == EXIT_DONE)
        code = matrix_check_output(app, f.out);
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code)
        return code;
    cli_interrupt_ends(app, true);
    spk_matrix *bsr = NULL, *file = NULL;
    int64_t shortfall = 0;
    progress_phase(app, "generating", a.operands[0]);
    spk_status status = spk_matrix_generate(app->context, &options, &bsr, &shortfall);
    free(f.token_list);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    if (shortfall > 0)
        cli_note(app, "the pattern has no room for %lld of the blocks asked for", (long long)shortfall);
    if (matrix_view(bsr).nnz == 0 && options.generator != SPK_GEN_MASK && options.density > 0 && options.rows > 0 && options.cols > 0)
        cli_note(app, "a density of %g is less than half a block here: the matrix is empty", options.density);
    char *text = matrix_text(bsr);
    status = spk_matrix_canonicalize(app->context, bsr, &file); /* a second handle: the first one is described below */
    code = cli_status(app, NULL, status, NULL);
    if (code == EXIT_DONE)
        code = matrix_fit(app, f.out, f.pattern_only, &file);
    if (code == EXIT_DONE && matrix_view(file).format != SPK_BSR) { /* what the file holds, and of what it was made */
        char *written = matrix_text(file), *made = text;
        text = cli_format("%s, of %s", written, made);
        free(written);
        free(made);
    }
    if (code == EXIT_DONE)
        code = matrix_write(app, file, f.out, f.tensor);
    if (code == EXIT_DONE)
        code = finish(app, &f, &options, bsr, shortfall, text);
    free(text);
    spk_matrix_destroy(&file);
    spk_matrix_destroy(&bsr);
    return code;
}

/* The matrix of a problem: from a file, or generated. */
#include <stdlib.h>
#include <string.h>

#include "cli/io/messages.h"
#include "cli/io/progress.h"
#include "cli/matrix/experts.h"
#include "cli/matrix/matrix.h"
#include "cli/problem/problem.h"

static const args_cells default_cells = {10, 10, 10};

/* The type that a file is read in, or values are generated in. */
static spk_dtype wanted_dtype(const problem_flags *f)
{
    const int dtype = settings_named("dtype");
    return dtype >= 0 ? f->set[dtype].dtype : SPK_DTYPE_DEFAULT;
}

static spk_layout wanted_block_layout(const problem_flags *f)
{
    const int layout = settings_named("block_layout");
    return layout >= 0 ? (spk_layout)f->set[layout].index : SPK_ROW_MAJOR;
}

static int from_file(cli *app, const problem_flags *f, spk_matrix **bsr)
{
    if (problem_is_generated(f))
        return cli_fail(
            app, EXIT_USAGE,
            "--%s, --%s, --density, --pattern, --cells, --experts and --tokens describe a generated matrix; they do not go with a file",
            problem_pattern_size_name(f, SPK_SIZE_PATTERN_ROWS), problem_pattern_size_name(f, SPK_SIZE_PATTERN_COLS));
    spk_matrix *source = NULL;
    int code = matrix_read(app, f->file, f->tensor, f->cols, wanted_dtype(f), &source);
    if (code)
        return code;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_status status = spk_matrix_view(source, &desc);
    args_block block = f->block;
    if (status == SPK_OK && block.rows == 0 && desc.format == SPK_BSR)
        block = (args_block){desc.block_rows, desc.block_cols};
    if (status == SPK_OK && block.rows == 0) {
        code = matrix_advised_block(app, source, &block);
        char text[24];
        if (code == EXIT_DONE)
            cli_note(app, "--block not given: taking the advised %s", matrix_block_text(text, block.rows, block.cols));
    }
    if (status == SPK_OK && code == EXIT_DONE)
        status = spk_matrix_to_bsr(app->context, source, block.rows, block.cols, wanted_block_layout(f), bsr);
    spk_matrix_destroy(&source);
    return code ? code : cli_status(app, NULL, status, f->file);
}

/* The shape of a generated matrix, as far as it was given: -1. */
typedef struct shape {
    int64_t rows, cols;
} shape;

static shape given_shape(const problem_flags *f)
{
    problem_flags copy = *f;
    const int64_t *rows = problem_pattern_size(&copy, SPK_SIZE_PATTERN_ROWS), *cols = problem_pattern_size(&copy, SPK_SIZE_PATTERN_COLS);
    return problem_is_transposed(f) ? (shape){*cols, *rows} : (shape){*rows, *cols};
}

static int64_t usual_size(const problem_flags *f, spk_size_source source)
{
    const operation *op = operation_at(f->op);
    return op->sizes[operation_size_from(op, source)].usual;
}

/* A mixture of experts: its rows follow. */
static int of_experts(const cli *app, const problem_flags *f, spk_generate *options, int64_t **list)
{
    if (given_shape(f).rows >= 0 || f->density >= 0)
        return cli_fail(app, EXIT_USAGE, "--pattern experts: rows and density come from --experts and --tokens, not from --%s or --density",
                        problem_pattern_size_name(f, problem_is_transposed(f) ? SPK_SIZE_PATTERN_COLS : SPK_SIZE_PATTERN_ROWS));
    options->rows = 0;
    options->density = 0;
    return experts_options(app, f->experts, f->tokens, options, list);
}

static int of_elasticity(const cli *app, const problem_flags *f, spk_generate *options)
{
    const shape given = given_shape(f);
    if (given.rows >= 0 || given.cols >= 0 || f->density >= 0)
        return cli_fail(app, EXIT_USAGE, "--pattern elasticity: its size comes from --cells, not from --%s, --%s or --density",
                        problem_pattern_size_name(f, SPK_SIZE_PATTERN_ROWS), problem_pattern_size_name(f, SPK_SIZE_PATTERN_COLS));
    const args_cells cells = f->cells.x ? f->cells : default_cells;
    options->cells_x = cells.x;
    options->cells_y = cells.y;
    options->cells_z = cells.z;
    return EXIT_DONE;
}

static int of_shape(const cli *app, const problem_flags *f, spk_generate *options, int64_t **tokens)
{
    const bool turned = problem_is_transposed(f);
    const shape given = given_shape(f);
    if (f->cells.x)
        return cli_fail(app, EXIT_USAGE, "--cells goes with --pattern elasticity");
    options->rows = given.rows >= 0 ? given.rows : usual_size(f, turned ? SPK_SIZE_PATTERN_COLS : SPK_SIZE_PATTERN_ROWS);
    options->cols = given.cols >= 0 ? given.cols : usual_size(f, turned ? SPK_SIZE_PATTERN_ROWS : SPK_SIZE_PATTERN_COLS);
    options->block_rows = f->block.rows ? f->block.rows : 64;
    options->rows = problem_rows_of_lists(f, options->rows, options->block_rows);
    options->block_cols = f->block.cols ? f->block.cols : 64;
    options->density = f->density < 0 ? 0.1 : f->density;
    if (options->generator == SPK_GEN_EXPERTS)
        return of_experts(app, f, options, tokens);
    if (f->experts || f->tokens)
        return cli_fail(app, EXIT_USAGE, "--experts and --tokens go with --pattern experts");
    return EXIT_DONE;
}

static int generated(cli *app, const problem_flags *f, spk_matrix **bsr)
{
    if (f->pattern == SPK_GEN_MASK)
        return cli_fail(app, EXIT_USAGE, "--pattern mask: 'sparsek gen mask' writes masks to files, which are given in its place");
    int64_t *tokens = NULL;
    spk_generate options = {SPK_SIZED(spk_generate), .generator = f->pattern ? f->pattern : SPK_GEN_UNIFORM, .seed = f->seed,
                            .dtype = wanted_dtype(f)};
    const int code = options.generator == SPK_GEN_ELASTICITY ? of_elasticity(app, f, &options) : of_shape(app, f, &options, &tokens);
    if (code)
        return code;
    int64_t shortfall = 0;
    progress_phase(app, "generating", spk_generator_name(options.generator));
    spk_status status = spk_matrix_generate(app->context, &options, bsr, &shortfall);
    free(tokens);
    if (status == SPK_OK && shortfall > 0)
        cli_note(app, "the pattern %s has no room for %lld of the blocks asked for", spk_generator_name(options.generator),
                 (long long)shortfall);
    if (status == SPK_OK && options.generator == SPK_GEN_ELASTICITY && f->block.rows && (f->block.rows != 3 || f->block.cols != 3)) {
        spk_matrix *natural = *bsr;
        *bsr = NULL;
        status = spk_matrix_to_bsr(app->context, natural, f->block.rows, f->block.cols, wanted_block_layout(f), bsr);
        spk_matrix_destroy(&natural);
    }
    return cli_status(app, NULL, status, NULL);
}

int problem_matrix(cli *app, const problem_flags *flags, spk_matrix **bsr)
{
    return flags->file ? from_file(app, flags, bsr) : generated(app, flags, bsr);
}

/* From flags to a pattern and a product; what the flags leave open comes from the file or the generator. */
#include "problem.h"

#include <stdlib.h>
#include <string.h>

#include "experts.h"
#include "files.h"
#include "matrix.h"
#include "progress.h"

static const args_cells default_cells = {10, 10, 10};
static const char *const bias_names[] = {"none", "row", "col"};
static const char *const residual_flags[] = {"", " --residual", " --factor"};
static const char *const activation_names[] = {"none", "relu", "gelu_erf", "gelu_tanh", "silu"};

problem_flags problem_defaults(void)
{
    return (problem_flags){.m = -1, .k = -1, .n = -1, .density = -1, .batch = 1, .seed = 1};
}

void problem_options(args *a, problem_flags *f)
{
    const args_option matrix[] = {
        {"m", 0, ARGS_INT, &f->m, "ROWS", 0, 2147483647, "rows of op(A) and of D; of sddmm: of X and of the pattern (default: 2048)"},
        {"k", 0, ARGS_INT, &f->k, "COLS", 0, 2147483647,
         "columns of op(A), rows of B (default: 2048); of sddmm: columns of X (default: 512)"},
        {"n", 0, ARGS_INT, &f->n, "COLS", 0, 2147483647,
         "columns of B and D (default: 512); of sddmm: columns of Y and of the pattern (default: 2048)"},
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0,
         "block of A, in elements: 64 or 64x32 (default: 64; for a file its own, else the advised one)"},
        {"density", 0, ARGS_SHARE, &f->density, NULL, 0, 1, "stored share of A's blocks: 0.1 or 10% (default: 0.1)"},
        {"pattern", 0, ARGS_PATTERN, &f->pattern, NULL, 0, 0, "where the blocks are, see 'sparsek gen --help' (default: uniform)"},
        {"cells", 0, ARGS_CELLS, &f->cells, NULL, 0, 0, "with --pattern elasticity: hexahedra along each axis (default: 10)"},
        {"experts", 0, ARGS_INT, &f->experts, NULL, 1, 1073741824,
         "with --pattern experts: how many (default: 8, or as many as --tokens names)"},
        {"tokens", 0, ARGS_TEXT, &f->tokens, "TOKENS", 0, 0,
         "with --pattern experts: a range to draw from, or a list, one for each (default: 16-256)"},
        {"seed", 0, ARGS_SEED, &f->seed, NULL, 0, 0, "seed of the pattern and of the operands (default: 1)"},
        {"tensor", 0, ARGS_TEXT, &f->tensor, "NAME", 0, 0, "tensor of a safetensors FILE (default: the only one)"},
    };
    const args_option operation[] = {
        {"op", 0, ARGS_CHOICE, &f->op, PROBLEM_OPERATIONS, 0, 0, "operation: A times B, or X times Y at A's blocks (default: spmm)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0,
         "type of A and B, or X and Y (default: f32; f64 for elasticity; for a file its own)"},
        {"dtype-d", 0, ARGS_DTYPE, &f->dtype_d, NULL, 0, 0, "type of C and D (default: as --dtype)"},
        {"compute", 0, ARGS_CHOICE, &f->compute, PROBLEM_COMPUTES, 0, 0,
         "type of the sums; tf32, for f32: products of values rounded to TF32 (default: f64 for f64, else f32)"},
        {"trans-a", 0, ARGS_CHOICE, &f->trans_a, "n|t", 0, 0, "op(A): A, or A transposed; of spmm (default: n)"},
        {"block-layout", 0, ARGS_CHOICE, &f->block_layout, "row|col", 0, 0, "inside a block: row- or column-major (default: row)"},
        {"layout-a", 0, ARGS_CHOICE, &f->layout_a, "row|col", 0, 0, "X: row- or column-major; of sddmm (default: row)"},
        {"layout-b", 0, ARGS_CHOICE, &f->layout_b, "row|col", 0, 0, "B or Y: row- or column-major (default: row)"},
        {"layout-d", 0, ARGS_CHOICE, &f->layout_d, "row|col", 0, 0, "C and D: row- or column-major; of spmm (default: row)"},
        {"use-c", 0, ARGS_FLAG, &f->use_c, NULL, 0, 0, "add beta C"},
        {"bias", 0, ARGS_CHOICE, &f->bias, PROBLEM_BIASES, 0, 0, "add a bias per row or per column; of spmm (default: none)"},
        {"activation", 0, ARGS_CHOICE, &f->activation, PROBLEM_ACTIVATIONS, 0, 0, "applied to the sum; of spmm (default: none)"},
        {"residual", 0, ARGS_FLAG, &f->residual, NULL, 0, 0, "add a residual after the activation; of spmm"},
        {"factor", 0, ARGS_FLAG, &f->factor, NULL, 0, 0, "multiply by a factor of each element after the activation; of spmm"},
        {"keep-preact", 0, ARGS_FLAG, &f->keep_preact, NULL, 0, 0, "keep the value before the activation too; of spmm"},
        {"batch", 0, ARGS_INT, &f->batch, NULL, 1, 2147483647, "products at once, of one A (default: 1)"},
        {"batch-values", 0, ARGS_FLAG, &f->batch_values, NULL, 0, 0, "each product of the batch has values of A of its own; of spmm"},
    };
    const args_option promises[] = {
        {"cache", 0, ARGS_CHOICE, &f->cache, "cold|warm", 0, 0, "operands come from memory, or stay in the cache (default: cold)"},
        {"assume-finite", 0, ARGS_FLAG, &f->assume_finite, NULL, 0, 0, "B holds no inf or NaN: dense implementations may win"},
        {"static-values", 0, ARGS_FLAG, &f->static_values, NULL, 0, 0, "A's values stay: packing them once is free; of spmm"},
    };
    args_add(a, "Matrix", matrix, (int)(sizeof(matrix) / sizeof(*matrix)));
    args_add(a, "Operation", operation, (int)(sizeof(operation) / sizeof(*operation)));
    args_add(a, "Promises", promises, (int)(sizeof(promises) / sizeof(*promises)));
}

const char *problem_block_text(char *buffer, int64_t rows, int64_t cols)
{
    if (rows == cols)
        snprintf(buffer, 24, "%lld", (long long)rows);
    else
        snprintf(buffer, 24, "%lldx%lld", (long long)rows, (long long)cols);
    return buffer;
}

int problem_read(cli *app, const char *path, const char *tensor, spk_dtype dtype, spk_matrix **matrix)
{
    spk_read_options options = {SPK_SIZED(spk_read_options), .tensor = tensor, .dtype = dtype};
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

int problem_advised_block(cli *app, const spk_matrix *matrix, args_block *block)
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

static int from_file(cli *app, const problem_flags *f, spk_matrix **bsr)
{
    if (f->m >= 0 || (f->op ? f->n : f->k) >= 0 || f->density >= 0 || f->pattern || f->cells.x || f->experts || f->tokens)
        return cli_fail(
            app, EXIT_USAGE,
            "--m, --%s, --density, --pattern, --cells, --experts and --tokens describe a generated matrix; they do not go with a file",
            f->op ? "n" : "k");
    spk_matrix *source = NULL;
    int code = problem_read(app, f->file, f->tensor, f->dtype, &source);
    if (code)
        return code;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_status status = spk_matrix_view(source, &desc);
    args_block block = f->block;
    if (status == SPK_OK && block.rows == 0 && desc.format == SPK_BSR)
        block = (args_block){desc.block_rows, desc.block_cols};
    if (status == SPK_OK && block.rows == 0) {
        code = problem_advised_block(app, source, &block);
        char text[24];
        if (code == EXIT_DONE)
            cli_note(app, "--block not given: taking the advised %s", problem_block_text(text, block.rows, block.cols));
    }
    if (status == SPK_OK && code == EXIT_DONE)
        status = spk_matrix_to_bsr(app->context, source, block.rows, block.cols, (spk_layout)f->block_layout, bsr);
    spk_matrix_destroy(&source);
    return code ? code : cli_status(app, NULL, status, f->file);
}

/* A mixture of experts: its rows follow. Across: of op(A), or of the pattern. */
static int of_experts(const cli *app, const problem_flags *f, int64_t across, spk_generate *options, int64_t **list)
{
    const int64_t rows = f->trans_a ? across : f->m, cols = f->trans_a ? f->m : across;
    if (rows >= 0 || f->density >= 0)
        return cli_fail(app, EXIT_USAGE, "--pattern experts: rows and density come from --experts and --tokens, not from --%s or --density",
                        f->trans_a ? "k" : "m");
    options->rows = 0;
    options->cols = cols < 0 ? 2048 : cols;
    options->density = 0;
    return experts_options(app, f->experts, f->tokens, options, list);
}

static int generated(cli *app, const problem_flags *f, spk_matrix **bsr)
{
    int64_t *tokens = NULL;
    spk_generate options = {SPK_SIZED(spk_generate), .generator = f->pattern ? f->pattern : SPK_GEN_UNIFORM, .seed = f->seed,
                            .dtype = f->dtype};
    if (options.generator == SPK_GEN_ELASTICITY) {
        if (f->m >= 0 || (f->op ? f->n : f->k) >= 0 || f->density >= 0)
            return cli_fail(app, EXIT_USAGE, "--pattern elasticity: its size comes from --cells, not from --m, --%s or --density",
                            f->op ? "n" : "k");
        const args_cells cells = f->cells.x ? f->cells : default_cells;
        options.cells_x = cells.x;
        options.cells_y = cells.y;
        options.cells_z = cells.z;
    } else {
        if (f->cells.x)
            return cli_fail(app, EXIT_USAGE, "--cells goes with --pattern elasticity");
        const int64_t across = f->op ? f->n : f->k; /* of op(A), or of the pattern */
        const int64_t m = f->m < 0 ? 2048 : f->m, k = across < 0 ? 2048 : across;
        options.rows = f->trans_a ? k : m;
        options.cols = f->trans_a ? m : k;
        options.block_rows = f->block.rows ? f->block.rows : 64;
        options.block_cols = f->block.cols ? f->block.cols : 64;
        options.density = f->density < 0 ? 0.1 : f->density;
        if (options.generator != SPK_GEN_EXPERTS && (f->experts || f->tokens))
            return cli_fail(app, EXIT_USAGE, "--experts and --tokens go with --pattern experts");
        const int code = options.generator == SPK_GEN_EXPERTS ? of_experts(app, f, across, &options, &tokens) : EXIT_DONE;
        if (code)
            return code;
    }
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
        status = spk_matrix_to_bsr(app->context, natural, f->block.rows, f->block.cols, (spk_layout)f->block_layout, bsr);
        spk_matrix_destroy(&natural);
    }
    return cli_status(app, NULL, status, NULL);
}

static void fill_spmm(const problem_flags *f, spk_dtype dtype, problem *p)
{
    spk_spmm *spmm = &p->spmm;
    *spmm = (spk_spmm){SPK_SIZED(spk_spmm), .n = p->n, .dtype_a = dtype, .dtype_b = dtype, .dtype_d = f->dtype_d ? f->dtype_d : dtype};
    static const spk_dtype computes[] = {SPK_DTYPE_DEFAULT, SPK_F32, SPK_F64, SPK_TF32};
    spmm->compute = computes[f->compute];
    spmm->trans_a = (spk_trans)f->trans_a;
    spmm->block_layout = (spk_layout)f->block_layout;
    spmm->layout_b = (spk_layout)f->layout_b;
    spmm->layout_d = (spk_layout)f->layout_d;
    spmm->use_c = f->use_c;
    spmm->bias = (spk_bias)f->bias;
    spmm->activation = (spk_activation)f->activation;
    spmm->residual = f->factor ? SPK_RESIDUAL_MULTIPLY : f->residual ? SPK_RESIDUAL_ADD : SPK_RESIDUAL_NONE;
    spmm->keep_preact = f->keep_preact;
    spmm->batch = p->items;
    if (f->batch_values)
        spmm->stride_a = p->info.nnzb * p->info.block_rows * p->info.block_cols;
}

static void fill_sddmm(const problem_flags *f, problem *p)
{
    const spk_spmm *s = &p->spmm;
    p->sddmm = (spk_sddmm){SPK_SIZED(spk_sddmm),
                           .k = p->k,
                           .dtype_x = s->dtype_a,
                           .dtype_y = s->dtype_b,
                           .dtype_d = s->dtype_d,
                           .compute = s->compute,
                           .block_layout = s->block_layout,
                           .layout_x = (spk_layout)f->layout_a,
                           .layout_y = s->layout_b,
                           .use_c = s->use_c,
                           .batch = p->items};
}

int problem_check_flags(const cli *app, const problem_flags *f, const char *where)
{
    const int code = where ? EXIT_INPUT : EXIT_USAGE;
    const char *at = where ? where : "", *colon = where ? ": " : "";
    const struct {
        const char *name;
        int given;
    } of_spmm[] = {{"trans-a", f->trans_a},         {"layout-d", f->layout_d},           {"bias", f->bias},
                   {"activation", f->activation},   {"residual", f->residual},           {"factor", f->factor},
                   {"keep-preact", f->keep_preact}, {"static-values", f->static_values}, {"batch-values", f->batch_values}};
    for (size_t i = 0; f->op && i < sizeof(of_spmm) / sizeof(*of_spmm); i++)
        if (of_spmm[i].given)
            return cli_fail(app, code, "%s%s--%s goes with --op spmm", at, colon, of_spmm[i].name);
    if (f->tensor && !f->file)
        return cli_fail(app, code, "%s%s--tensor goes with a FILE", at, colon);
    if (f->tensor && matrix_input_file(f->file) != MATRIX_FILE_SAFETENSORS && matrix_is_name(f->file))
        return cli_fail(app, code, "%s%s--tensor names a tensor of a safetensors file; %s is none", at, colon, f->file);
    if (f->residual && f->factor)
        return cli_fail(app, code, "%s%s--factor does not go with --residual", at, colon);
    if (!f->op && f->layout_a)
        return cli_fail(app, code, "%s%s--layout-a goes with --op sddmm", at, colon);
    if (f->batch_values && f->batch < 2)
        return cli_fail(app, code, "%s%s--batch-values goes with --batch", at, colon);
    return EXIT_DONE;
}

static char *flags_text(const problem_flags *f, const problem *p)
{
    const spk_spmm *s = &p->spmm;
    const bool sampled = p->operation == SPK_SDDMM;
    char block[24], batch[32] = "", *matrix;
    problem_block_text(block, p->info.block_rows, p->info.block_cols);
    if (f->file) {
        char *file = cli_quoted(f->file), *tensor = cli_quoted(f->tensor ? f->tensor : "");
        matrix = cli_format("%s%s%s --block %s", file, f->tensor ? " --tensor " : "", f->tensor ? tensor : "", block);
        free(file);
        free(tensor);
    } else if (f->pattern == SPK_GEN_ELASTICITY)
        matrix = cli_format("--pattern elasticity --cells %lldx%lldx%lld --block %s", (long long)p->cells.x, (long long)p->cells.y,
                            (long long)p->cells.z, block);
    else if (f->pattern == SPK_GEN_EXPERTS) {
        char experts[32] = "";
        if (f->experts)
            snprintf(experts, sizeof(experts), " --experts %lld", (long long)f->experts);
        matrix = cli_format("--pattern experts --%s %lld --block %s%s%s%s --seed %llu",
                            s->trans_a ? "m"
                            : sampled  ? "n"
                                       : "k",
                            (long long)p->info.cols, block, experts, f->tokens ? " --tokens " : "", f->tokens ? f->tokens : "",
                            (unsigned long long)f->seed);
    } else
        matrix = cli_format("--m %lld --%s %lld --block %s --density %.10g --pattern %s --seed %llu", (long long)p->m, sampled ? "n" : "k",
                            (long long)(sampled ? p->n : p->k), block, f->density < 0 ? 0.1 : f->density, p->source,
                            (unsigned long long)f->seed);
    if (p->items > 1)
        snprintf(batch, sizeof(batch), " --batch %lld", (long long)p->items);
    char *text = cli_format(
        "%s%s --%s %lld --dtype %s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s", sampled ? "--op sddmm " : "", matrix, sampled ? "k" : "n",
        (long long)(sampled ? p->k : p->n), spk_dtype_name(s->dtype_a), batch, f->batch_values ? " --batch-values" : "",
        f->layout_a ? " --layout-a col" : "", s->dtype_d != s->dtype_a ? " --dtype-d " : "",
        s->dtype_d != s->dtype_a ? spk_dtype_name(s->dtype_d) : "", s->compute == SPK_TF32 ? " --compute tf32" : "",
        s->trans_a ? " --trans-a t" : "", s->block_layout ? " --block-layout col" : "", s->layout_b ? " --layout-b col" : "",
        s->layout_d ? " --layout-d col" : "", s->use_c ? " --use-c" : "", s->bias ? " --bias " : "", s->bias ? bias_names[s->bias] : "",
        s->activation ? " --activation " : "", s->activation ? activation_names[s->activation] : "", residual_flags[s->residual],
        s->keep_preact ? " --keep-preact" : "", f->cache ? " --cache warm" : "", f->assume_finite ? " --assume-finite" : "",
        f->static_values ? " --static-values" : "");
    free(matrix);
    return text;
}

int problem_make(cli *app, const problem_flags *f, problem *out)
{
    problem p = {.seed = f->seed,
                 .file = f->file,
                 .tensor = f->tensor,
                 .experts = f->experts,
                 .tokens = f->tokens,
                 .cells = f->cells,
                 .info = {SPK_SIZED(spk_pattern_info)}};
    spk_matrix *bsr = NULL;
    int code = problem_check_flags(app, f, NULL);
    if (code)
        return code;
    code = f->file ? from_file(app, f, &bsr) : generated(app, f, &bsr);
    if (code)
        return code;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_status status = spk_matrix_view(bsr, &desc);
    if (status == SPK_OK)
        status = spk_pattern_from_matrix(app->context, bsr, &p.pattern);
    if (status == SPK_OK)
        status = spk_pattern_get_info(p.pattern, &p.info);
    spk_matrix_destroy(&bsr);
    if (status != SPK_OK) {
        spk_pattern_destroy(&p.pattern);
        return cli_status(app, NULL, status, f->file);
    }
    p.operation = f->op ? SPK_SDDMM : SPK_SPMM;
    p.items = f->batch > 1 ? f->batch : 1;
    p.m = f->trans_a ? p.info.cols : p.info.rows;
    if (f->op) {
        p.n = p.info.cols;
        p.k = f->k < 0 ? 512 : f->k;
    } else {
        p.k = f->trans_a ? p.info.rows : p.info.cols;
        p.n = f->n < 0 ? 512 : f->n;
    }
    if (p.m == 0 || p.n == 0)
        cli_note(app, "the product is empty (%lld x %lld): there is nothing to measure", (long long)p.m, (long long)p.n);
    fill_spmm(f, f->dtype ? f->dtype : desc.dtype, &p);
    if (f->op)
        fill_sddmm(f, &p);
    cli_tune_options(app, &p.options);
    p.options.cache = (spk_cache_mode)f->cache;
    p.options.assume_finite = f->assume_finite;
    p.options.static_values = f->static_values;
    p.options.seed = f->seed;
    if (f->pattern == SPK_GEN_ELASTICITY && p.cells.x == 0)
        p.cells = default_cells;
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    p.source = f->file ? cli_format("file:%s", slash ? slash + 1 : f->file)
                       : cli_format("%s", spk_generator_name(f->pattern ? f->pattern : SPK_GEN_UNIFORM));
    p.flags = flags_text(f, &p);
    *out = p;
    return EXIT_DONE;
}

void problem_release(problem *p)
{
    spk_pattern_destroy(&p->pattern);
    free(p->source);
    free(p->flags);
    *p = (problem){0};
}

double problem_flops(const problem *p)
{
    const double free_size = (double)(p->operation == SPK_SDDMM ? p->k : p->n) * (double)p->items;
    return 2.0 * (double)p->info.nnzb * (double)p->info.block_rows * (double)p->info.block_cols * free_size;
}

double problem_dense_flops(const problem *p)
{
    return 2.0 * (double)p->m * (double)p->k * (double)p->n * (double)p->items;
}

char *problem_text(const problem *p)
{
    const spk_pattern_info *i = &p->info;
    const spk_spmm *s = &p->spmm;
    const char *tf32 = s->compute == SPK_TF32 ? " (TF32 products)" : "";
    char batch[64] = "";
    if (p->items > 1)
        snprintf(batch, sizeof(batch), ", %lld of them%s", (long long)p->items, s->stride_a ? ", each with its values" : "");
    if (p->operation == SPK_SDDMM)
        return cli_format(
            "%s%s, X %lld x %lld times Y %lld x %lld at the blocks of a pattern (%s, %lldx%lld blocks, %lld stored, %.3g %%)%s",
            spk_dtype_name(s->dtype_a), tf32, (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n, cli_clean(p->source),
            (long long)i->block_rows, (long long)i->block_cols, (long long)i->nnzb, 100 * i->density, batch);
    return cli_format("%s%s, A%s %lld x %lld (%s, %lldx%lld blocks, %lld stored, %.3g %%) times B %lld x %lld%s",
                      spk_dtype_name(s->dtype_a), tf32, s->trans_a ? " transposed" : "", (long long)p->m, (long long)p->k,
                      cli_clean(p->source), (long long)i->block_rows, (long long)i->block_cols, (long long)i->nnzb, 100 * i->density,
                      (long long)p->k, (long long)p->n, batch);
}

/* The struct of its operation. */
static const void *given(const problem *p)
{
    return p->operation == SPK_SDDMM ? (const void *)&p->sddmm : &p->spmm;
}

spk_status problem_list(const cli *app, const problem *p, spk_report **report)
{
    return spk_list(app->context, p->pattern, given(p), &p->options, report);
}

spk_status problem_tune(const cli *app, const problem *p, spk_report **report)
{
    return spk_tune(app->context, p->pattern, given(p), &p->options, report);
}

spk_status problem_explain(const cli *app, const problem *p, spk_report **report)
{
    return spk_explain(app->context, p->pattern, given(p), &p->options, report);
}

spk_status problem_race(const cli *app, const problem *p, const spk_race_options *race, spk_report **report)
{
    return spk_race(app->context, p->pattern, given(p), &p->options, race, report);
}

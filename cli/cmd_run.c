/* sparsek run: D = act(alpha op(A) B + beta C + bias) + residual, or times a factor, on files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "device_memory.h"
#include "matrix.h"
#include "problem.h"
#include "stats.h"
#include "values.h"

static const char about[] =
    "Multiplies the block-sparse matrix of file A with the dense matrix of file B and writes the product:\n"
    "D = activation(alpha op(A) B + beta C + bias) + residual, or times a factor. A plan comes from the store where it knows\n"
    "the problem's class, else from tuning now. B is looked through: where it is finite, dense implementations may win.";

typedef struct run_flags {
    const char *out, *c, *bias_row, *bias_col, *residual, *factor, *tensor_a, *tensor_b, *tensor_out, *choice;
    args_block block;
    double alpha, beta;
    int trans_a, activation;
    spk_dtype dtype;
} run_flags;

typedef struct run_data {
    spk_matrix *a, *b, *c, *bias, *residual;
    spk_pattern *pattern;
    spk_plan *plan;
    void *d;
    int64_t m, k, n;
    bool finite;
    double run_us;
} run_data;

static int parse(cli *app, run_flags *f, args *a, int argc, char **argv)
{
    *f = (run_flags){.alpha = 1, .beta = 1};
    const args_option options[] = {
        {"out", 'o', ARGS_MATRIX, &f->out, "FILE", 0, 0, "the file for D (.npy, .mtx, .safetensors); '-': standard output"},
        {"format", 0, ARGS_CHOICE, &app->format, MATRIX_FORMATS, 0, 0, "D's format (default: by its ending); needed where D is '-'"},
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0, "block of A, in elements (default: A's own, else the advised one)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0, "compute in this type (default: that of A)"},
        {"trans-a", 0, ARGS_CHOICE, &f->trans_a, "n|t", 0, 0, "op(A): A, or A transposed (default: n)"},
        {"alpha", 0, ARGS_REAL, &f->alpha, NULL, -1e300, 1e300, "factor of the product (default: 1)"},
        {"c", 0, ARGS_MATRIX, &f->c, "FILE", 0, 0, "C: dense, of the size of D, added beta times"},
        {"beta", 0, ARGS_REAL, &f->beta, NULL, -1e300, 1e300, "factor of C (default: 1)"},
        {"bias-row", 0, ARGS_MATRIX, &f->bias_row, "FILE", 0, 0, "bias: a value for each row of D"},
        {"bias-col", 0, ARGS_MATRIX, &f->bias_col, "FILE", 0, 0, "bias: a value for each column of D"},
        {"activation", 0, ARGS_CHOICE, &f->activation, settings_at(settings_named("activation"))->choices, 0, 0,
         "applied to the sum (default: none)"},
        {"residual", 0, ARGS_MATRIX, &f->residual, "FILE", 0, 0, "added after the activation"},
        {"factor", 0, ARGS_MATRIX, &f->factor, "FILE", 0, 0, "multiplied with, element by element, after the activation"},
        {"choice", 0, ARGS_TEXT, &f->choice, "TEXT", 0, 0, "pin a candidate, such as \"spmm_portable NV=2 PACK=1 GROUP=1\""},
        {"tensor-a", 0, ARGS_TEXT, &f->tensor_a, "NAME", 0, 0, "safetensors A: which tensor (default: the only one)"},
        {"tensor-b", 0, ARGS_TEXT, &f->tensor_b, "NAME", 0, 0, "safetensors B: which tensor (default: the only one)"},
        {"tensor-out", 0, ARGS_TEXT, &f->tensor_out, "NAME", 0, 0, "safetensors D: name to write under (default: matrix)"},
    };
    args_add(a, "Product", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(a, app, HEEDS_ALL);
    int code = args_parse(a, argc, argv);
    if (code != ARGS_GO)
        return code;
    if (!f->out)
        return cli_fail(app, EXIT_USAGE, "needs -o FILE");
    if (f->bias_row && f->bias_col)
        return cli_fail(app, EXIT_USAGE, "--bias-row and --bias-col exclude each other");
    if (f->residual && f->factor)
        return cli_fail(app, EXIT_USAGE, "--residual and --factor exclude each other");
    if (f->beta != 1 && !f->c)
        return cli_fail(app, EXIT_USAGE, "--beta goes with --c");
    code = matrix_check_tensor(app, "tensor-a", f->tensor_a, matrix_input_file(a->operands[0]), a->operands[0]);
    if (code == EXIT_DONE)
        code = matrix_check_tensor(app, "tensor-b", f->tensor_b, matrix_input_file(a->operands[1]), a->operands[1]);
    if (code == EXIT_DONE)
        code = matrix_check_tensor(app, "tensor-out", f->tensor_out, matrix_output_file(app, f->out), f->out);
    return code ? code : ARGS_GO;
}

/* A dense, row-major, tight matrix of the wanted size; a vector may lie or stand. */
static int read_dense(cli *app, const char *path, const char *tensor, spk_dtype dtype, int64_t rows, int64_t cols, bool vector,
                      spk_matrix **out)
{
    spk_matrix *made = NULL;
    int code = problem_read(app, path, tensor, dtype, out);
    if (code)
        return code;
    spk_matrix_desc d = matrix_view(*out);
    int64_t wanted = vector ? rows * cols : rows;
    bool fits =
        vector ? (d.rows == wanted && d.cols == 1) || (d.rows == 1 && d.cols == wanted) : d.rows == rows && (cols < 0 || d.cols == cols);
    if (!fits && vector)
        return cli_fail(app, EXIT_INPUT, "%s: is %lld x %lld; a vector of %lld is needed", path, (long long)d.rows, (long long)d.cols,
                        (long long)wanted);
    if (!fits && cols >= 0)
        return cli_fail(app, EXIT_INPUT, "%s: is %lld x %lld; %lld x %lld is needed", path, (long long)d.rows, (long long)d.cols,
                        (long long)rows, (long long)cols);
    if (!fits)
        return cli_fail(app, EXIT_INPUT, "%s: has %lld rows; op(A) has %lld columns", path, (long long)d.rows, (long long)rows);
    if (d.format == SPK_DENSE && d.layout == SPK_ROW_MAJOR && (d.ld == 0 || d.ld == d.cols))
        return EXIT_DONE;
    return matrix_take(app, spk_matrix_to_dense(app->context, *out, SPK_ROW_MAJOR, &made), path, out, &made);
}

static int read_a(cli *app, const run_flags *f, const char *path, run_data *r)
{
    spk_matrix *made = NULL;
    int code = problem_read(app, path, f->tensor_a, f->dtype, &r->a);
    if (code)
        return code;
    spk_matrix_desc d = matrix_view(r->a);
    args_block block = f->block;
    if (!block.rows && d.format == SPK_BSR)
        block = (args_block){d.block_rows, d.block_cols};
    if (!block.rows) {
        char text[24];
        code = problem_advised_block(app, r->a, &block);
        if (code)
            return code;
        cli_note(app, "--block not given: taking the advised %s", problem_block_text(text, block.rows, block.cols));
    }
    code = matrix_take(app, spk_matrix_to_bsr(app->context, r->a, block.rows, block.cols, SPK_ROW_MAJOR, &made), path, &r->a, &made);
    if (code == EXIT_DONE)
        code = cli_status(app, NULL, spk_pattern_from_matrix(app->context, r->a, &r->pattern), path);
    r->m = f->trans_a ? d.cols : d.rows;
    r->k = f->trans_a ? d.rows : d.cols;
    return code;
}

static bool all_finite(const spk_matrix_desc *d)
{
    int64_t count = d->rows * d->cols;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(value_get(d->dtype, d->values, i)))
            return false;
    return true;
}

static int read_operands(cli *app, const run_flags *f, const args *a, run_data *r)
{
    int code = read_a(app, f, a->operands[0], r);
    if (code)
        return code;
    spk_dtype dtype = matrix_view(r->a).dtype;
    code = read_dense(app, a->operands[1], f->tensor_b, dtype, r->k, -1, false, &r->b);
    if (code)
        return code;
    spk_matrix_desc b = matrix_view(r->b);
    r->n = b.cols;
    r->finite = all_finite(&b);
    if (f->c)
        code = read_dense(app, f->c, NULL, dtype, r->m, r->n, false, &r->c);
    if (code == EXIT_DONE && (f->bias_row || f->bias_col))
        code = read_dense(app, f->bias_row ? f->bias_row : f->bias_col, NULL, dtype, f->bias_row ? r->m : 1, f->bias_row ? 1 : r->n, true,
                          &r->bias);
    if (code == EXIT_DONE && (f->residual || f->factor))
        code = read_dense(app, f->residual ? f->residual : f->factor, NULL, dtype, r->m, r->n, false, &r->residual);
    return code;
}

static const void *values_of(const spk_matrix *matrix)
{
    return matrix ? matrix_view(matrix).values : NULL;
}

/* The run proper: on a device with memory of its own the operands go there and D comes back, which is not in the time. */
static spk_status run_plan(cli *app, run_data *r, spk_spmm_args *run, size_t size)
{
    if (!device_is_far(app->context)) {
        double start = stats_now();
        spk_status status = spk_run_spmm(r->plan, run, NULL);
        r->run_us = 1e6 * (stats_now() - start);
        return status;
    }
    const spk_matrix *matrices[] = {r->a, r->b, r->c, r->bias, r->residual};
    const void **pointers[] = {&run->values, &run->b, &run->c, &run->bias, &run->residual};
    device_array all[5];
    for (int i = 0; i < 5; i++) {
        spk_matrix_desc d = {.rows = 0};
        if (matrices[i])
            d = matrix_view(matrices[i]);
        size_t count = (size_t)(d.format == SPK_BSR ? d.nnz * d.block_rows * d.block_cols : d.rows * d.cols);
        all[i] = (device_array){.pointer = pointers[i], .bytes = count * size};
    }
    size_t bytes = (size_t)(r->m * r->n) * size;
    spk_status status = device_arrays_in(app->context, all, 5);
    if (status == SPK_OK)
        status = spk_memory_allocate(app->context, bytes, &run->d);
    double start = stats_now();
    if (status == SPK_OK)
        status = spk_run_spmm(r->plan, run, NULL);
    if (status == SPK_OK)
        status = spk_synchronize(app->context, NULL);
    r->run_us = 1e6 * (stats_now() - start);
    if (status == SPK_OK)
        status = spk_memory_copy(app->context, r->d, SPK_HOST, run->d, SPK_DEVICE, bytes);
    if (run->d != r->d)
        spk_memory_release(app->context, &run->d);
    return device_arrays_out(app->context, all, 5, status);
}

static int multiply(cli *app, const run_flags *f, run_data *r)
{
    spk_dtype dtype = matrix_view(r->a).dtype;
    spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = r->n,        .dtype_a = dtype,
                     .dtype_b = dtype,    .dtype_d = dtype, .trans_a = (spk_trans)f->trans_a};
    spmm.use_c = r->c != NULL;
    spmm.bias = f->bias_row ? SPK_BIAS_PER_ROW : f->bias_col ? SPK_BIAS_PER_COL : SPK_BIAS_NONE;
    spmm.activation = (spk_activation)f->activation;
    spmm.residual = f->factor ? SPK_RESIDUAL_MULTIPLY : f->residual ? SPK_RESIDUAL_ADD : SPK_RESIDUAL_NONE;
    spk_tune_options options;
    cli_tune_options(app, &options);
    options.assume_finite = r->finite;
    options.choice = f->choice;
    cli_interrupt_ends(app, false); /* tuning keeps what it has measured */
    spk_status status = spk_plan_spmm(app->context, r->pattern, &spmm, &options, &r->plan);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    cli_interrupt_ends(app, true);
    r->d = cli_alloc((size_t)(r->m * r->n), spk_dtype_bytes(dtype));
    spk_spmm_args run = {SPK_SIZED(spk_spmm_args), .values = values_of(r->a), .b = values_of(r->b), .c = values_of(r->c), .d = r->d};
    run.bias = values_of(r->bias);
    run.residual = values_of(r->residual);
    run.alpha = f->alpha;
    run.beta = f->beta;
    return cli_status(app, NULL, run_plan(app, r, &run, spk_dtype_bytes(dtype)), NULL);
}

static int write_product(cli *app, const run_flags *f, run_data *r)
{
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),
                            .format = SPK_DENSE,
                            .dtype = matrix_view(r->a).dtype,
                            .rows = r->m,
                            .cols = r->n,
                            .block_rows = 1,
                            .block_cols = 1};
    desc.nnz = r->m * r->n;
    desc.values = r->d;
    spk_matrix *product = NULL;
    int code = cli_status(app, NULL, spk_matrix_create(app->context, &desc, &product), f->out);
    if (code == EXIT_DONE)
        code = matrix_write(app, product, f->out, f->tensor_out);
    spk_matrix_destroy(&product);
    return code;
}

static int tell(cli *app, const run_flags *f, const run_data *r)
{
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    spk_status status = spk_plan_get_info(r->plan, &info);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    if (cli_talks(app))
        printf("%s: %lld x %lld %s, %s in %.0f us (%s)\n", cli_clean(f->out), (long long)r->m, (long long)r->n,
               spk_dtype_name(matrix_view(r->a).dtype), spk_plan_choice(r->plan), r->run_us, info.why);
    json_t *results = json_array(), *o = json_object();
    json_put(o, "out", json_text(f->out));
    json_put(o, "m", json_integer(r->m));
    json_put(o, "k", json_integer(r->k));
    json_put(o, "n", json_integer(r->n));
    json_put(o, "dtype", json_string(spk_dtype_name(matrix_view(r->a).dtype)));
    json_put(o, "chosen", json_text(info.kernel));
    json_put(o, "params", json_text(info.params));
    json_put(o, "why", json_text(info.why));
    json_put(o, "from_store", json_boolean(info.from_store));
    json_put(o, "assume_finite", json_boolean(r->finite));
    json_put(o, "prepare_us", json_number(info.prepare_us));
    json_put(o, "run_us", json_number(r->run_us));
    json_push(results, o);
    return json_finish(app, json_envelope(app, results), EXIT_DONE);
}

/* Standard input is one of the files at most. */
static int check_inputs(const cli *app, const run_flags *f, const args *a)
{
    const char *const inputs[] = {a->operands[0], a->operands[1], f->c, f->bias_row, f->bias_col, f->residual, f->factor};
    int streams = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        streams += inputs[i] && strcmp(inputs[i], "-") == 0;
    return streams > 1 ? cli_fail(app, EXIT_USAGE, "'-' stands for %d inputs, and there is one standard input", streams) : EXIT_DONE;
}

int cmd_run(cli *app, int argc, char **argv)
{
    args a = {.command = "run",
              .synopsis = "A B -o D [options]",
              .about = about,
              .min_operands = 2,
              .max_operands = 2,
              .operand_names = "A and B"};
    a.often = "out block trans-a alpha c beta activation choice";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek run a.safetensors b.npy -o d.npy\n"
                 "sparsek run matrix.mtx b.npy -o d.npy --block 3 --alpha 2 --c c.npy --beta -1 --activation relu\n";
    run_flags f;
    int code = parse(app, &f, &a, argc, argv);
    if (code != ARGS_GO)
        return code;
    if (matrix_output_file(app, f.out) == MATRIX_FILE_SMTX)
        return cli_fail(app, EXIT_USAGE, "%s: .smtx holds positions only; D needs .npy, .mtx or .safetensors", f.out);
    code = check_inputs(app, &f, &a);
    if (code == EXIT_DONE)
        code = matrix_check_output(app, f.out);
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code)
        return code;
    run_data r = {0};
    cli_interrupt_ends(app, true);
    code = read_operands(app, &f, &a, &r);
    if (code == EXIT_DONE)
        code = multiply(app, &f, &r);
    if (code == EXIT_DONE)
        code = write_product(app, &f, &r);
    if (code == EXIT_DONE)
        code = tell(app, &f, &r);
    free(r.d);
    spk_plan_destroy(&r.plan);
    spk_pattern_destroy(&r.pattern);
    spk_matrix *all[] = {r.a, r.b, r.c, r.bias, r.residual};
    for (int i = 0; i < 5; i++)
        spk_matrix_destroy(&all[i]);
    return code;
}

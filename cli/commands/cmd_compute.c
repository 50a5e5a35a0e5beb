/* sparsek compute: computes on files, written like the inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/args/command.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/compute.h"
#include "cli/io/files.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"
#include "cli/matrix/matrix.h"

static const char about[] =
    "Multiplies the block-sparse matrix of file A with the dense matrix of file B and writes the product:\n"
    "D = activation(alpha op(A) B + beta C + bias) + residual, or times a factor; with --op what another operation makes of its\n"
    "inputs (sddmm: X and Y at the blocks of --at FILE; gemm: a dense A and B; attention: Q, K and V, all dense, and a mask in the\n"
    "blocks of --at FILE; attention_backward: Q, K, V, O, LSE and the gradient of O, and the mask). A plan comes from the store where it "
    "knows the problem's class, else from tuning now. Dense\n"
    "inputs are looked through: where they are finite, dense implementations may win.";

enum { MOST_OPTIONS = 16 + SETTINGS_MOST + RUN_MOST_SLOTS + RUN_MOST_SCALARS + RUN_MOST_OUTPUTS };

static int scalar_options(args_option *options, run_flags *f)
{
    run_list_scalars(f);
    for (int i = 0; i < f->scalar_count; i++)
        options[i] = (args_option){f->scalars[i].name, 0, ARGS_REAL, &f->scalars[i].value, NULL, -1e300, 1e300, f->scalars[i].help};
    return f->scalar_count;
}

static int output_options(args_option *options, run_flags *f)
{
    run_list_outputs(f);
    for (int i = 0; i < f->other_count; i++)
        options[i] = (args_option){f->others[i].option, 0, ARGS_MATRIX, &f->others[i].path, "FILE", 0, 0, f->others[i].help};
    return f->other_count;
}

/* A field about ends or tables, which no file gives. */
static bool of_line(const setting *s)
{
    for (int i = 0; operation_at(i); i++) {
        const spk_field_info *field = settings_field(s, operation_at(i));
        if (field && field->operand >= 0 && run_is_line(&operation_at(i)->operands[field->operand]))
            return true;
    }
    return false;
}

/* The counts that hide keys from a query. The others are of heads, lists, pages and sequences, which no file gives. */
static bool of_window(const setting *s)
{
    return strcmp(s->key, "window_left") == 0 || strcmp(s->key, "window_right") == 0 || strcmp(s->key, "sinks") == 0;
}

/* A flag that a scalar says: another value than 0. */
static bool is_said_by_scalar(const setting *s)
{
    for (int i = 0; operation_at(i); i++)
        for (int j = 0; j < operation_at(i)->info.scalar_count; j++) {
            const int flag = run_scalar_flag(operation_at(i)->scalars[j].name);
            if (flag >= 0 && settings_at(flag) == s)
                return true;
        }
    return false;
}

static bool is_taken(const setting *s)
{
    if (is_said_by_scalar(s))
        return false;
    if (s->kind == SPK_FIELD_COUNT)
        return of_window(s);
    return (s->kind == SPK_FIELD_CHOICE || s->kind == SPK_FIELD_TRANS || s->kind == SPK_FIELD_REAL) && !settings_is_of_groups(s) &&
           !of_line(s);
}

/* Why an option of other commands is none here; NULL: it is of none, or has another name here (--bias row: --bias-row FILE). */
static const char *why_unknown(const char *option)
{
    for (int i = 0; i < settings_size_count(); i++)
        if (strcmp(settings_size_at(i)->option, option) == 0)
            return "the files of the inputs say the sizes";
    for (int i = 0; i < settings_count(); i++) {
        const spk_field_kind kind = settings_at(i)->kind;
        if (strcmp(settings_at(i)->option, option) != 0 || kind == SPK_FIELD_PART || kind == SPK_FIELD_DTYPE)
            continue;
        if (kind == SPK_FIELD_LAYOUT || kind == SPK_FIELD_BLOCK_LAYOUT || kind == SPK_FIELD_LD)
            return "'compute' reads the inputs from files, and lays them as it needs them";
        if (is_said_by_scalar(settings_at(i)))
            return "the number itself says it";
        if (kind == SPK_FIELD_SCALE)
            return "'compute' takes no scale factors";
        return "'compute' computes one item of one head, whole, from files; a mask is the blocks of --at FILE";
    }
    return NULL;
}

static int field_options(args_option *options, run_flags *f)
{
    args_option all[SETTINGS_MOST];
    int count = 0;
    (void)settings_options(all, f->set);
    for (int i = 0; i < settings_count(); i++)
        if (is_taken(settings_at(i)))
            options[count++] = all[i];
    f->slot_count = run_list_slots(f->slots);
    for (int i = 0; i < f->slot_count; i++)
        options[count++] = (args_option){f->slots[i].option, 0, ARGS_MATRIX, &f->slots[i].path, "FILE", 0, 0, f->slots[i].help};
    return count;
}

/* EXIT_USAGE, where an option belongs to other operations. */
static int refuse(const cli *app, const char *option, bool (*has)(const operation *op, const void *what), const void *what)
{
    char *owners = settings_owners(has, what, " or ");
    (void)cli_fail(app, EXIT_USAGE, "--%s goes with --op %s", option, owners);
    free(owners);
    return EXIT_USAGE;
}

static bool has_scalar(const operation *op, const void *name)
{
    return run_scalar_named(op, name) >= 0;
}

static bool has_output(const operation *op, const void *name)
{
    return run_output_named(op, name) >= 0;
}

/* Checks the scalars that are given, and sets the flags that they say. */
static int check_scalars(const cli *app, run_flags *f)
{
    const operation *op = operation_at(f->op);
    for (int i = 0; i < f->scalar_count; i++) {
        const int scalar = run_scalar_named(op, f->scalars[i].name), operand = scalar >= 0 ? op->scalars[scalar].operand : -1;
        const int flag = run_scalar_flag(f->scalars[i].name);
        const bool given = !isnan(f->scalars[i].value);
        if (!given)
            continue;
        if (scalar < 0)
            return refuse(app, f->scalars[i].name, has_scalar, f->scalars[i].name);
        if (flag >= 0)
            f->set[flag].index = f->scalars[i].value != 0;
        for (int j = 0; operand >= 0 && j < f->slot_count; j++)
            if (run_slot_operand(&f->slots[j], op) == operand && !f->slots[j].path)
                return cli_fail(app, EXIT_USAGE, "--%s goes with --%s", f->scalars[i].name, f->slots[j].option);
    }
    return EXIT_DONE;
}

static int check_outputs(const cli *app, const run_flags *f)
{
    for (int i = 0; i < f->other_count; i++)
        if (f->others[i].path && run_output_named(operation_at(f->op), f->others[i].name) < 0)
            return refuse(app, f->others[i].option, has_output, f->others[i].name);
    return EXIT_DONE;
}

static int check_slots(const cli *app, run_flags *f)
{
    const operation *op = operation_at(f->op);
    for (int i = 0; i < f->slot_count; i++) {
        const run_slot *a = &f->slots[i];
        const setting *s = settings_at(a->setting);
        if (a->path && run_slot_operand(a, op) < 0)
            return refuse(app, a->option, settings_has, s);
        for (int j = 0; j < i; j++) {
            const run_slot *b = &f->slots[j];
            if (a->path && b->path && run_slot_operand(a, op) == run_slot_operand(b, op))
                return cli_fail(app, EXIT_USAGE, "--%s and --%s exclude each other", b->option, a->option);
        }
    }
    const int code = check_scalars(app, f);
    return code ? code : check_outputs(app, f);
}

/* "Q, K, V". The caller frees it. */
static char *titles_of(const operation *op, const int *operands, int count)
{
    char *text = cli_format("%s", "");
    for (int i = 0; i < count; i++) {
        char *longer = cli_format("%s%s%s", text, i > 0 ? ", " : "", op->operands[operands[i]].title);
        free(text);
        text = longer;
    }
    return text;
}

static int check_operation(const cli *app, run_flags *f, const args *a)
{
    const operation *op = operation_at(f->op);
    int operands[OPERATION_MOST_ARRAYS];
    bool has_values = false;
    const int count = run_required(op, operands);
    for (int i = 0; i < count; i++)
        has_values = has_values || op->operands[operands[i]].is_values;
    if (a->operand_count != count) {
        char *titles = titles_of(op, operands, count);
        (void)cli_fail(app, EXIT_USAGE, "--op %s takes %d input%s, %s: %d %s given", op->info.name, count, count == 1 ? "" : "s", titles,
                       a->operand_count, a->operand_count == 1 ? "is" : "are");
        free(titles);
        return EXIT_USAGE;
    }
    for (int i = 0; i < settings_count(); i++)
        if (!settings_field(settings_at(i), op) && settings_is_given(settings_at(i), &f->set[i]))
            return refuse(app, settings_at(i)->option, settings_has, settings_at(i));
    if (f->at && (has_values || op->info.takes_pattern == SPK_PATTERN_NONE))
        return cli_fail(app, EXIT_USAGE, "--at is for operations whose inputs are all dense and that take a pattern, such as sddmm");
    if (!f->at && !has_values && op->info.takes_pattern == SPK_PATTERN_NEEDED)
        return cli_fail(app, EXIT_USAGE, "--op %s needs --at FILE, whose blocks are the pattern", op->info.name);
    if (f->block.rows && op->info.takes_pattern == SPK_PATTERN_OPTIONAL && !f->at)
        return cli_fail(app, EXIT_USAGE, "--block goes with --at FILE, whose blocks are the mask");
    if (f->block.rows && op->info.takes_pattern == SPK_PATTERN_NONE)
        return cli_fail(app, EXIT_USAGE, "--block: %s has no blocks", op->info.name);
    return check_slots(app, f);
}

static int parse(cli *app, run_flags *f, args *a, int argc, char **argv)
{
    args_option options[MOST_OPTIONS];
    *f = (run_flags){.op = 0};
    const args_option first[] = {
        {"out", 'o', ARGS_MATRIX, &f->out, "FILE", 0, 0, "the file for D (.npy, .mtx, .safetensors); '-': standard output"},
        {"format", 0, ARGS_CHOICE, &app->format, MATRIX_FORMATS, 0, 0, "D's format (default: by its ending); needed where D is '-'"},
        {"op", 0, ARGS_CHOICE, &f->op, operation_names(), 0, 0, "operation (default: spmm)"},
        {"at", 0, ARGS_MATRIX, &f->at, "FILE", 0, 0,
         "the matrix whose blocks are the pattern of sddmm, or the mask of attention and its gradients"},
        {"block", 0, ARGS_BLOCK, &f->block, NULL, 0, 0, "block of A, in elements (default: A's own, else the advised one)"},
        {"dtype", 0, ARGS_DTYPE, &f->dtype, NULL, 0, 0, "compute in this type (default: that of the first input)"},
    };
    const args_option last[] = {
        {"tuning", 0, ARGS_CHOICE, &f->tuning, "now|never|ahead|ahead_each", 0, 0,
         "a class that the store does not know is tuned first (now), estimated (never) or an error (ahead, ahead_each; ahead takes "
         "another size of a known layer; default: now)"},
        {"choice", 0, ARGS_TEXT, &f->choice, "TEXT", 0, 0, "pin a candidate, such as \"spmm_portable NV=2 PACK=1 GROUP=1\""},
        {"tensor-a", 0, ARGS_TEXT, &f->tensor[0], "NAME", 0, 0, "safetensors, the first input: which tensor (default: the only one)"},
        {"tensor-b", 0, ARGS_TEXT, &f->tensor[1], "NAME", 0, 0, "safetensors, the second input: which tensor (default: the only one)"},
        MATRIX_COLS_OPTION(&f->cols, "A, or --at,"),
        {"tensor-out", 0, ARGS_TEXT, &f->tensor_out, "NAME", 0, 0, "safetensors D: name to write under (default: matrix)"},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
        options[count++] = first[i];
    count += scalar_options(options + count, f);
    count += field_options(options + count, f);
    count += output_options(options + count, f);
    for (size_t i = 0; i < sizeof(last) / sizeof(*last); i++)
        options[count++] = last[i];
    args_add(a, "Product", options, count);
    a->why_unknown = why_unknown;
    cli_common_options(a, app, HEEDS_ALL);
    int code = cli_parse(a, argc, argv);
    if (code != ARGS_GO)
        return code;
    for (int i = 0; i < a->operand_count; i++)
        f->inputs[i] = a->operands[i];
    if (!f->out)
        return cli_fail(app, EXIT_USAGE, "needs -o FILE");
    code = check_operation(app, f, a);
    if (code == EXIT_DONE)
        code = matrix_check_tensor(app, "tensor-a", f->tensor[0], matrix_input_file(a->operands[0]), a->operands[0]);
    if (code == EXIT_DONE && a->operand_count > 1)
        code = matrix_check_tensor(app, "tensor-b", f->tensor[1], matrix_input_file(a->operands[1]), a->operands[1]);
    if (code == EXIT_DONE)
        code = matrix_check_tensor(app, "tensor-out", f->tensor_out, matrix_output_file(app, f->out), f->out);
    return code ? code : ARGS_GO;
}

static int print_outcome(cli *app, const run_flags *f, const run_data *r)
{
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    const spk_array_info *d = &r->arrays[operation_output(r->op, 0)];
    spk_status status = spk_plan_get_info(r->plan, &info);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    const bool at_blocks = r->op->operands[operation_output(r->op, 0)].is_values; /* what is written is a matrix with blocks */
    const spk_matrix_desc blocks = at_blocks ? matrix_view(r->blocks) : (spk_matrix_desc){.rows = d->rows, .cols = d->cols};
    if (cli_talks(app))
        spk_fprintf(stdout, "%s: %lld x %lld %s, %s in %.0f us (%s)\n", cli_clean(f->out), (long long)blocks.rows, (long long)blocks.cols,
                    spk_dtype_name(d->dtype), spk_plan_choice(r->plan), r->run_us, info.why);
    json_t *results = json_array(), *o = json_object();
    json_put(o, "out", json_text(f->out));
    json_put(o, "op", json_text(r->op->info.name));
    for (int i = 0; i < r->op->info.size_count; i++)
        json_put(o, r->op->sizes[i].name, json_integer(r->sizes[i]));
    json_put(o, "dtype", json_string(spk_dtype_name(r->dtype)));
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
    int streams = f->at && strcmp(f->at, "-") == 0;
    for (int i = 0; i < a->operand_count; i++)
        streams += strcmp(a->operands[i], "-") == 0;
    for (int i = 0; i < f->slot_count; i++)
        streams += f->slots[i].path && strcmp(f->slots[i].path, "-") == 0;
    return streams > 1 ? cli_fail(app, EXIT_USAGE, "'-' stands for %d inputs, and there is one standard input", streams) : EXIT_DONE;
}

static int check_replaced(const cli *app, const char *path, const char *input)
{
    if (!input || !files_same(path, input))
        return EXIT_DONE;
    return cli_fail(app, EXIT_USAGE, "the output %s: is the same file as the input %s, which this command reads", path, input);
}

/* A result replaces no input but those that its operand may be: C, for one, which D is made of. */
static int check_inputs_stay(const cli *app, const run_flags *f, const args *a, const char *path, int output)
{
    const operation *op = operation_at(f->op);
    int code = check_replaced(app, path, f->at);
    for (int i = 0; i < a->operand_count && code == EXIT_DONE; i++)
        code = check_replaced(app, path, a->operands[i]);
    for (int i = 0; i < f->slot_count && code == EXIT_DONE; i++) {
        const int operand = run_slot_operand(&f->slots[i], op);
        if (operand < 0 || !(op->operands[output].may_be >> operand & 1))
            code = check_replaced(app, path, f->slots[i].path);
    }
    return code;
}

static int check_other(const cli *app, const run_output *o)
{
    if (matrix_output_file(app, o->path) == MATRIX_FILE_SMTX)
        return cli_fail(app, EXIT_USAGE, "%s: .smtx holds positions only; --%s needs .npy, .mtx or .safetensors", o->path, o->option);
    return matrix_check_output(app, o->path);
}

/* Inputs of the operation that takes the fewest. */
static int fewest_inputs(void)
{
    int operands[OPERATION_MOST_ARRAYS], fewest = run_required(operation_at(0), operands);
    for (int i = 1; operation_at(i); i++) {
        const int count = run_required(operation_at(i), operands);
        fewest = count < fewest ? count : fewest;
    }
    return fewest;
}

static int execute(cli *app, const run_flags *f, const args *a)
{
    if (matrix_output_file(app, f->out) == MATRIX_FILE_SMTX)
        return cli_fail(app, EXIT_USAGE, "%s: .smtx holds positions only; D needs .npy, .mtx or .safetensors", f->out);
    const operation *op = operation_at(f->op);
    int code = check_inputs(app, f, a);
    if (code == EXIT_DONE)
        code = check_inputs_stay(app, f, a, f->out, operation_output(op, 0));
    if (code == EXIT_DONE)
        code = matrix_check_output(app, f->out);
    for (int i = 0; i < f->other_count && code == EXIT_DONE; i++) {
        if (!f->others[i].path)
            continue;
        code = check_inputs_stay(app, f, a, f->others[i].path, run_output_named(op, f->others[i].name));
        if (code == EXIT_DONE)
            code = check_other(app, &f->others[i]);
    }
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code)
        return code;
    run_data r = {.finite = true};
    cli_interrupt_ends(app, true);
    code = run_read(app, f, &r);
    if (code == EXIT_DONE)
        code = run_now(app, f, &r);
    if (code == EXIT_DONE)
        code = run_write(app, f, &r);
    if (code == EXIT_DONE)
        code = print_outcome(app, f, &r);
    run_release(&r);
    return code;
}

int cmd_compute(cli *app, int argc, char **argv)
{
    args a = {.command = "compute",
              .synopsis = "A B -o D [options]",
              .about = about,
              .min_operands = fewest_inputs(),
              .max_operands = RUN_MOST_INPUTS,
              .operand_names = "A and B"};
    a.often = "out block trans-a alpha c beta activation choice";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek compute a.safetensors b.npy -o d.npy\n"
                 "sparsek compute matrix.mtx b.npy -o d.npy --block 3 --alpha 2 --c c.npy --beta -1 --activation relu\n"
                 "sparsek compute x.npy y.npy --op sddmm --at a.safetensors -o d.safetensors\n";
    run_flags f;
    int code = parse(app, &f, &a, argc, argv);
    if (code == ARGS_GO)
        code = execute(app, &f, &a);
    for (int i = 0; i < f.slot_count; i++) {
        free(f.slots[i].option);
        free(f.slots[i].help);
    }
    for (int i = 0; i < f.scalar_count; i++)
        free(f.scalars[i].help);
    for (int i = 0; i < f.other_count; i++) {
        free(f.others[i].option);
        free(f.others[i].help);
    }
    return code;
}

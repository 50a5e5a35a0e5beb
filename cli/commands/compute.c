/* One run of an operation on files. */
#include "cli/commands/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/clock.h"
#include "cli/base/device_memory.h"
#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/base/values.h"
#include "cli/io/messages.h"
#include "cli/matrix/matrix.h"
#include "cli/problem/flags.h"

/* ------------------------------------------------------------------------------------------------ what may be given */

int run_slot_operand(const run_slot *slot, const operation *op)
{
    const spk_field_info *field = settings_field(settings_at(slot->setting), op);
    return field ? field->operand : -1;
}

/* The operation that a setting comes from first. */
static const operation *first_owner(const setting *s)
{
    int i = 0;
    while (!settings_field(s, operation_at(i)))
        i++;
    return operation_at(i);
}

/* word: of a choice, which; "" of a flag. */
static void add_slot(run_slot *slot, int at, int value, char *option, const char *word, int length)
{
    const setting *s = settings_at(at);
    const operation *op = first_owner(s);
    const char *title = op->operands[settings_field(s, op)->operand].title, *usual = strstr(s->help, " (default: ");
    *slot = (run_slot){.setting = at, .value = value, .option = option};
    slot->help = cli_format("%s%s%.*s: %.*s", title, length ? ", " : "", length, word,
                            (int)(usual ? usual - s->help : (long)strlen(s->help)), s->help);
}

int run_list_slots(run_slot *slots)
{
    int count = 0;
    for (int i = 0; i < settings_count(); i++) {
        const setting *s = settings_at(i);
        const operation *op = first_owner(s);
        const spk_field_info *field = settings_field(s, op);
        if (s->kind != SPK_FIELD_PART || op->operands[field->operand].role == SPK_ROLE_OUT)
            continue;
        const bool is_flag = s->value > 0, is_named = is_flag && operation_words(field->option) == 1;
        for (int value = is_flag ? s->value : 1; count < RUN_MOST_SLOTS && value <= (is_flag ? s->value : (int)s->high); value++) {
            int length = 0;
            const char *word = is_flag ? "" : operation_word(s->choices, value, &length);
            const char *name = op->operands[field->operand].name;
            char *option = is_named  ? cli_dashed(name, (int)strlen(name))
                           : is_flag ? cli_format("%s", s->option)
                                     : cli_format("%s-%.*s", s->option, length, word);
            add_slot(&slots[count++], i, value, option, word, length);
        }
    }
    return count;
}

int run_scalar_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.scalar_count; i++)
        if (strcmp(op->scalars[i].name, name) == 0)
            return i;
    return -1;
}

int run_output_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.operand_count; i++)
        if (op->operands[i].role == SPK_ROLE_OUT && strcmp(op->operands[i].name, name) == 0)
            return i;
    return -1;
}

int run_scalar_flag(const char *name)
{
    static const char prefix[] = "use_";
    for (int i = 0; i < settings_count(); i++) {
        const char *key = settings_at(i)->key;
        if (settings_at(i)->kind == SPK_FIELD_CHOICE && strncmp(key, prefix, strlen(prefix)) == 0 &&
            strcmp(key + strlen(prefix), name) == 0)
            return i;
    }
    return -1;
}

static bool has_scalar(const run_flags *f, const char *name)
{
    for (int i = 0; i < f->scalar_count; i++)
        if (strcmp(f->scalars[i].name, name) == 0)
            return true;
    return false;
}

void run_list_scalars(run_flags *f)
{
    for (int o = 0; operation_at(o); o++)
        for (int i = 0; i < operation_at(o)->info.scalar_count && f->scalar_count < RUN_MOST_SCALARS; i++) {
            const operation *op = operation_at(o);
            const spk_scalar_info *s = &op->scalars[i];
            if (has_scalar(f, s->name))
                continue;
            const int flag = run_scalar_flag(s->name);
            char *help = flag >= 0
                             ? cli_format("%s (default: 0, as they are)", settings_at(flag)->help)
                             : cli_format("factor of %s (default: 1)", s->operand >= 0 ? op->operands[s->operand].title : "the product");
            f->scalars[f->scalar_count++] = (run_scalar){s->name, help, NAN};
        }
}

static bool has_other(const run_flags *f, const char *name)
{
    for (int i = 0; i < f->other_count; i++)
        if (strcmp(f->others[i].name, name) == 0)
            return true;
    return false;
}

void run_list_outputs(run_flags *f)
{
    for (int o = 0; operation_at(o); o++)
        for (int number = 1; operation_output(operation_at(o), number) >= 0 && f->other_count < RUN_MOST_OUTPUTS; number++) {
            const spk_operand_info *operand = &operation_at(o)->operands[operation_output(operation_at(o), number)];
            if (!has_other(f, operand->name))
                f->others[f->other_count++] = (run_output){operand->name, cli_dashed(operand->name, (int)strlen(operand->name)),
                                                           cli_format("the file for %s", operand->title), NULL};
        }
}

bool run_is_line(const spk_operand_info *operand)
{
    return strncmp(operand->extents, "1 x ", 4) == 0;
}

/* Scale factors, which no file gives here. */
static bool is_factors(const spk_operand_info *operand)
{
    return strcmp(operand->extents, "factors") == 0;
}

int run_required(const operation *op, int operands[OPERATION_MOST_ARRAYS])
{
    int count = 0;
    for (int i = 0; i < op->info.operand_count; i++)
        if (op->operands[i].role == SPK_ROLE_IN && !run_is_line(&op->operands[i]) && !is_factors(&op->operands[i]) &&
            !operation_field(op, SPK_FIELD_PART, i))
            operands[count++] = i;
    return count;
}

/* ------------------------------------------------------------------------------------------------ inputs */

/* A dense, row-major, tight matrix of the wanted size (rows -1: any); a vector may lie or stand. */
static int read_dense(cli *app, const char *path, const char *tensor, spk_dtype dtype, int64_t rows, int64_t cols, bool vector,
                      spk_matrix **out)
{
    spk_matrix *made = NULL;
    int code = matrix_read(app, path, tensor, 0, dtype, out);
    if (code)
        return code;
    spk_matrix_desc d = matrix_view(*out);
    int64_t wanted = vector ? rows * cols : rows;
    bool fits =
        vector ? (d.rows == wanted && d.cols == 1) || (d.rows == 1 && d.cols == wanted) : rows < 0 || (d.rows == rows && d.cols == cols);
    if (!fits && vector)
        return cli_fail(app, EXIT_INPUT, "%s: is %lld x %lld; a vector of %lld is needed", path, (long long)d.rows, (long long)d.cols,
                        (long long)wanted);
    if (!fits)
        return cli_fail(app, EXIT_INPUT, "%s: is %lld x %lld; %lld x %lld is needed", path, (long long)d.rows, (long long)d.cols,
                        (long long)rows, (long long)cols);
    if (d.format == SPK_DENSE && d.layout == SPK_ROW_MAJOR && (d.ld == 0 || d.ld == d.cols))
        return EXIT_DONE;
    return matrix_take(app, spk_matrix_to_dense(app->context, *out, SPK_ROW_MAJOR, &made), path, out, &made);
}

static int64_t *size_named(run_data *r, const char *name, size_t length, char ***known)
{
    for (int i = 0; i < r->op->info.size_count; i++)
        if (strlen(r->op->sizes[i].name) == length && strncmp(r->op->sizes[i].name, name, length) == 0) {
            *known = &r->known[i];
            return &r->sizes[i];
        }
    return NULL;
}

/* Learns a size from an input, or compares it with what is known. */
static int take_size(const cli *app, run_data *r, const char *path, const char *title, const char *name, size_t length, const char *what,
                     int64_t value)
{
    char **known = NULL;
    int64_t *size = size_named(r, name, length, &known);
    if (!size || *size == value)
        return EXIT_DONE;
    if (value == 0 && r->op->sizes[size - r->sizes].usual == 0) /* a size that may be left out: 0 stands for another's value */
        return cli_fail(app, EXIT_INPUT, "%s: has no %s", path, what);
    if (*size >= 0)
        return cli_fail(app, EXIT_INPUT, "%s: has %lld %s; %s", path, (long long)value, what, *known);
    *size = value;
    *known = cli_format("%s has %lld %s", title, (long long)value, what);
    return EXIT_DONE;
}

static int take_extents(const cli *app, run_data *r, const char *path, const spk_operand_info *operand, const spk_matrix_desc *d)
{
    const char *times = strstr(operand->extents, " x ");
    if (!times)
        return EXIT_DONE;
    const int code = take_size(app, r, path, operand->title, operand->extents, (size_t)(times - operand->extents), "rows", d->rows);
    return code ? code : take_size(app, r, path, operand->title, times + 3, strlen(times + 3), "columns", d->cols);
}

/* A BSR matrix, in the block that is asked for, its own, or the advised one. */
static int read_blocks(cli *app, const char *path, const char *tensor, int64_t cols, spk_dtype dtype, args_block block, spk_matrix **out)
{
    spk_matrix *made = NULL;
    int code = matrix_read(app, path, tensor, cols, dtype, out);
    if (code)
        return code;
    spk_matrix_desc d = matrix_view(*out);
    if (!block.rows && d.format == SPK_BSR)
        block = (args_block){d.block_rows, d.block_cols};
    if (!block.rows) {
        char text[24];
        code = matrix_advised_block(app, *out, &block);
        if (code)
            return code;
        cli_note(app, "--block not given: taking the advised %s", matrix_block_text(text, block.rows, block.cols));
    }
    return matrix_take(app, spk_matrix_to_bsr(app->context, *out, block.rows, block.cols, SPK_ROW_MAJOR, &made), path, out, &made);
}

static bool is_transposed(const run_flags *f, const operation *op)
{
    for (int i = 0; i < settings_count(); i++)
        if (settings_at(i)->kind == SPK_FIELD_TRANS && settings_field(settings_at(i), op))
            return f->set[i].index != 0;
    return false;
}

/* The pattern of r->blocks, and the sizes that it gives. */
static int take_pattern(cli *app, const run_flags *f, const char *path, run_data *r)
{
    const bool turned = is_transposed(f, r->op), may_turn = operation_field(r->op, SPK_FIELD_TRANS, -2) != NULL;
    const spk_matrix_desc d = matrix_view(r->blocks);
    for (int i = 0; i < r->op->info.size_count; i++) {
        const bool rows = r->op->sizes[i].source == SPK_SIZE_PATTERN_ROWS || r->op->sizes[i].source == SPK_SIZE_LIST_ROWS;
        if (r->op->sizes[i].source == SPK_SIZE_FIELD)
            continue;
        r->sizes[i] = rows != turned ? d.rows : d.cols;
        r->known[i] = cli_format("%s has %lld %s", may_turn ? "op(A)" : "the pattern", (long long)r->sizes[i], rows ? "rows" : "columns");
    }
    return cli_status(app, NULL, spk_pattern_from_matrix(app->context, r->blocks, &r->pattern), path);
}

static bool all_finite(const spk_matrix_desc *d)
{
    int64_t count = d->rows * d->cols;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(value_get(d->dtype, d->values, i)))
            return false;
    return true;
}

/* The inputs that are always there; of one of them, or of a file of its own, is the pattern. */
static int read_required(cli *app, const run_flags *f, run_data *r)
{
    int operands[OPERATION_MOST_ARRAYS], code = EXIT_DONE;
    const int count = run_required(r->op, operands);
    r->dtype = f->dtype;
    if (f->at) {
        r->owns_blocks = true;
        code = read_blocks(app, f->at, NULL, f->cols, SPK_DTYPE_DEFAULT, f->block, &r->blocks);
        if (code == EXIT_DONE)
            code = take_pattern(app, f, f->at, r);
    }
    for (int i = 0; i < count && code == EXIT_DONE; i++) {
        const spk_operand_info *operand = &r->op->operands[operands[i]];
        const char *tensor = i < 2 ? f->tensor[i] : NULL;
        spk_matrix **matrix = &r->inputs[operands[i]];
        if (operand->is_values) {
            code = read_blocks(app, f->inputs[i], tensor, f->cols, r->dtype, f->block, matrix);
            r->blocks = *matrix;
            if (code == EXIT_DONE)
                code = take_pattern(app, f, f->inputs[i], r);
        } else {
            /* Read as it is: a file of another type is refused below, not rounded to eight bits unasked. */
            const spk_dtype wanted = f->dtype || spk_dtype_bytes(r->dtype) != 1 ? r->dtype : SPK_DTYPE_DEFAULT;
            code = read_dense(app, f->inputs[i], tensor, wanted, -1, -1, false, matrix);
        }
        if (code)
            break;
        const spk_matrix_desc d = matrix_view(*matrix);
        if (i > 0 && r->dtype && d.dtype != r->dtype) {
            code = cli_fail(app, EXIT_INPUT, "%s: holds %s, and %s %s: say which with --dtype", f->inputs[i], spk_dtype_name(d.dtype),
                            f->inputs[0], spk_dtype_name(r->dtype));
            break;
        }
        r->dtype = r->dtype ? r->dtype : d.dtype;
        if (!operand->is_values) {
            r->finite = all_finite(&d) && r->finite;
            code = take_extents(app, r, f->inputs[i], operand, &d);
        }
    }
    return code;
}

/* Values at the blocks of the pattern, which must be the file's, too. */
static int read_values(cli *app, const char *path, run_data *r, spk_matrix **out)
{
    const spk_matrix_desc p = matrix_view(r->blocks);
    const int code = read_blocks(app, path, NULL, 0, r->dtype, (args_block){p.block_rows, p.block_cols}, out);
    if (code)
        return code;
    const spk_matrix_desc d = matrix_view(*out);
    const size_t lines = (size_t)((p.rows + p.block_rows - 1) / p.block_rows) + 1;
    const bool same = d.rows == p.rows && d.cols == p.cols && d.nnz == p.nnz &&
                      memcmp(d.row_offsets, p.row_offsets, lines * sizeof(int64_t)) == 0 &&
                      (p.nnz == 0 || memcmp(d.col_indices, p.col_indices, (size_t)p.nnz * sizeof(int64_t)) == 0);
    return same ? EXIT_DONE : cli_fail(app, EXIT_INPUT, "%s: its blocks are not those of the pattern", path);
}

/* ------------------------------------------------------------------------------------------------ the problem */

static void describe(const run_flags *f, run_data *r)
{
    r->given = operation_problem(r->op);
    for (int i = 0; i < settings_count(); i++) {
        const spk_field_info *field = settings_field(settings_at(i), r->op);
        if (!field)
            continue;
        if (field->kind == SPK_FIELD_CHOICE || field->kind == SPK_FIELD_TRANS)
            operation_put(field, &r->given, f->set[i].index);
        else if (field->kind == SPK_FIELD_COUNT)
            operation_put(field, &r->given, f->set[i].whole);
        else if (field->kind == SPK_FIELD_REAL)
            operation_put_real(field, &r->given, f->set[i].real);
        else if (strcmp(settings_at(i)->key, "dtype") == 0)
            operation_put(field, &r->given, r->dtype);
    }
    for (int i = 0; i < f->slot_count; i++)
        if (f->slots[i].path)
            operation_put(settings_field(settings_at(f->slots[i].setting), r->op), &r->given, f->slots[i].value);
    for (int i = 0; i < f->other_count; i++) {
        const int output = f->others[i].path ? run_output_named(r->op, f->others[i].name) : -1;
        const spk_field_info *part = output >= 0 ? operation_field(r->op, SPK_FIELD_PART, output) : NULL;
        if (part)
            operation_put(part, &r->given, 1);
    }
    for (int i = 0; i < r->op->info.size_count; i++)
        for (int j = 0; problem_is_given_size(&r->op->sizes[i]) && j < r->op->info.field_count; j++)
            if (r->op->fields[j].kind == SPK_FIELD_SIZE && strcmp(r->op->fields[j].name, r->op->sizes[i].name) == 0)
                operation_put(&r->op->fields[j], &r->given, r->sizes[i]);
}

static int find_arrays(cli *app, run_data *r)
{
    for (int i = 0; i < r->op->info.operand_count; i++) {
        r->arrays[i] = (spk_array_info){SPK_SIZED(spk_array_info)};
        const int code = cli_status(app, NULL, spk_problem_get_array(app->context, r->pattern, &r->given, i, &r->arrays[i]), NULL);
        if (code)
            return code;
    }
    return EXIT_DONE;
}

/* A dense input whose type is not that of the first (the logarithms of attention in 16 bits), or whose size the others do not say. */
static int read_again(cli *app, const run_flags *f, run_data *r)
{
    int operands[OPERATION_MOST_ARRAYS], code = EXIT_DONE;
    const int count = run_required(r->op, operands);
    for (int i = 0; i < count && code == EXIT_DONE; i++) {
        const spk_array_info *a = &r->arrays[operands[i]];
        spk_matrix **matrix = &r->inputs[operands[i]];
        const spk_matrix_desc d = matrix_view(*matrix);
        if (r->op->operands[operands[i]].is_values || (d.dtype == a->dtype && d.rows == a->rows && d.cols == a->cols))
            continue;
        spk_matrix_destroy(matrix);
        code = read_dense(app, f->inputs[i], i < 2 ? f->tensor[i] : NULL, a->dtype, a->rows, a->cols, false, matrix);
    }
    return code;
}

int run_read(cli *app, const run_flags *f, run_data *r)
{
    *r = (run_data){.op = operation_at(f->op), .finite = true};
    for (int i = 0; i < SPK_MOST_SIZES; i++)
        r->sizes[i] = -1;
    int code = read_required(app, f, r);
    if (code)
        return code;
    describe(f, r);
    code = find_arrays(app, r);
    code = code ? code : read_again(app, f, r);
    for (int i = 0; i < f->slot_count && code == EXIT_DONE; i++) {
        const run_slot *slot = &f->slots[i];
        const int operand = slot->path ? run_slot_operand(slot, r->op) : -1;
        if (operand < 0)
            continue;
        const spk_array_info *a = &r->arrays[operand];
        code = r->op->operands[operand].is_values
                   ? read_values(app, slot->path, r, &r->inputs[operand])
                   : read_dense(app, slot->path, NULL, a->dtype, a->rows, a->cols, a->rows == 1, &r->inputs[operand]);
    }
    return code;
}

/* ------------------------------------------------------------------------------------------------ the run */

static size_t bytes_of(const run_data *r, int operand)
{
    return (size_t)r->arrays[operand].elements * spk_dtype_bytes(r->arrays[operand].dtype);
}

/* The memory of an output; NULL: it takes no part. */
static void *output_of(const run_data *r, int operand)
{
    return r->whole[operand] ? (char *)r->whole[operand] + DEVICE_GUARD_BYTES : NULL;
}

/* On a device with memory of its own the operands go there and the results come back, which is not in the time. */
static spk_status run_plan(cli *app, run_data *r, operation_struct *given)
{
    const int count = r->op->info.operand_count;
    const bool far = device_is_far(app->context);
    const void *pointers[OPERATION_MOST_ARRAYS] = {0};
    device_array all[OPERATION_MOST_ARRAYS] = {0};
    spk_status status = SPK_OK;
    for (int i = 0; i < count; i++) {
        pointers[i] = r->inputs[i] ? matrix_view(r->inputs[i]).values : output_of(r, i);
        all[i] = (device_array){.pointer = &pointers[i], .bytes = bytes_of(r, i), .output = r->whole[i] != NULL};
    }
    if (far)
        status = device_arrays_in(app->context, all, count);
    for (int i = 0; i < count; i++)
        operation_set_pointer(r->op, given, i, pointers[i]);
    const double start = clock_now_s();
    if (status == SPK_OK)
        status = spk_plan_run(r->plan, given, NULL);
    if (status == SPK_OK && far)
        status = spk_synchronize(app->context, NULL);
    r->run_us = 1e6 * (clock_now_s() - start);
    return far ? device_arrays_out(app->context, all, count, status) : status;
}

int run_now(cli *app, const run_flags *f, run_data *r)
{
    spk_tune_options options;
    cli_tune_options(app, &options);
    static const spk_tuning tunings[] = {SPK_TUNING_NOW, SPK_TUNING_NEVER, SPK_TUNING_AHEAD, SPK_TUNING_AHEAD_EACH};
    options.tuning = tunings[f->tuning];
    operation_promise(r->op, &r->given, "assume_finite", r->finite);
    options.choice = f->choice;
    cli_interrupt_ends(app, false); /* tuning keeps what it has measured */
    spk_status status = spk_plan_create(app->context, r->pattern, &r->given, &options, &r->plan);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    cli_interrupt_ends(app, true);
    for (int i = 0; i < r->op->info.operand_count; i++)
        if (r->op->operands[i].role == SPK_ROLE_OUT && r->arrays[i].dtype != SPK_DTYPE_DEFAULT)
            r->whole[i] = cli_alloc(bytes_of(r, i) + 2 * DEVICE_GUARD_BYTES, 1);
    operation_struct given = operation_args(r->op);
    for (int i = 0; i < f->scalar_count; i++)
        if (run_scalar_named(r->op, f->scalars[i].name) >= 0)
            operation_set_scalar(r->op, &given, run_scalar_named(r->op, f->scalars[i].name),
                                 isnan(f->scalars[i].value) ? 1 : f->scalars[i].value);
    return cli_status(app, NULL, run_plan(app, r, &given), NULL);
}

static int write_output(cli *app, const run_data *r, int output, const char *path, const char *tensor)
{
    const spk_array_info *a = &r->arrays[output];
    spk_matrix_desc desc = {
        SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .rows = a->rows, .cols = a->cols, .block_rows = 1, .block_cols = 1,
        .nnz = a->rows * a->cols};
    if (r->op->operands[output].is_values)
        desc = matrix_view(r->blocks);
    desc.dtype = a->dtype;
    desc.values = output_of(r, output);
    spk_matrix *made = NULL;
    int code = cli_status(app, NULL, spk_matrix_create(app->context, &desc, &made), path);
    if (code == EXIT_DONE && desc.format == SPK_BSR)
        code = matrix_fit(app, path, false, &made);
    if (code == EXIT_DONE)
        code = matrix_write(app, made, path, tensor);
    spk_matrix_destroy(&made);
    return code;
}

int run_write(cli *app, const run_flags *f, run_data *r)
{
    int code = write_output(app, r, operation_output(r->op, 0), f->out, f->tensor_out);
    for (int i = 0; i < f->other_count && code == EXIT_DONE; i++)
        if (f->others[i].path)
            code = write_output(app, r, run_output_named(r->op, f->others[i].name), f->others[i].path, NULL);
    return code;
}

void run_release(run_data *r)
{
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        free(r->whole[i]);
    spk_plan_destroy(&r->plan);
    spk_pattern_destroy(&r->pattern);
    if (r->owns_blocks)
        spk_matrix_destroy(&r->blocks);
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        spk_matrix_destroy(&r->inputs[i]);
    for (int i = 0; i < SPK_MOST_SIZES; i++)
        free(r->known[i]);
    *r = (run_data){.finite = false};
}

/* From flags to a pattern and the description of a problem; what the flags leave open comes from the file or the generator. */
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "matrix.h"
#include "messages.h"
#include "text.h"

enum { MOST_MATRIX = 16 };

problem_flags problem_defaults(void)
{
    problem_flags f = {.density = -1, .seed = 1};
    for (int i = 0; i < SETTINGS_MOST_SIZES; i++)
        f.sizes[i] = -1;
    for (int i = 0; i < settings_count(); i++)
        f.set[i].whole = (int)settings_least(settings_at(i));
    return f;
}

void problem_set(problem_flags *flags, const char *key, int value)
{
    const int at = settings_named(key);
    if (at >= 0 && settings_args_kind(settings_at(at)) == ARGS_INT)
        flags->set[at].whole = value;
    else if (at >= 0)
        flags->set[at].index = value;
}

void problem_set_size(problem_flags *flags, const char *name, int64_t value)
{
    const int at = settings_size_named(name);
    if (at >= 0)
        flags->sizes[at] = value;
}

const char *problem_pattern_size_name(const problem_flags *flags, spk_size_source source)
{
    const operation *op = operation_at(flags->op);
    const int at = operation_size_from(op, source);
    return at >= 0 ? op->sizes[at].name : "";
}

int64_t *problem_pattern_size(problem_flags *flags, spk_size_source source)
{
    const int at = settings_size_named(problem_pattern_size_name(flags, source));
    return at >= 0 ? &flags->sizes[at] : NULL;
}

bool problem_is_transposed(const problem_flags *flags)
{
    for (int i = 0; i < settings_count(); i++)
        if (settings_at(i)->kind == SPK_FIELD_TRANS && settings_has(operation_at(flags->op), settings_at(i)))
            return flags->set[i].index != 0;
    return false;
}

bool problem_is_generated(const problem_flags *flags)
{
    problem_flags copy = *flags;
    const int64_t *rows = problem_pattern_size(&copy, SPK_SIZE_PATTERN_ROWS), *cols = problem_pattern_size(&copy, SPK_SIZE_PATTERN_COLS);
    const bool sized = operation_at(flags->op)->info.takes_pattern == SPK_PATTERN_NEEDED;
    return (sized && rows && *rows >= 0) || (sized && cols && *cols >= 0) || flags->density >= 0 || flags->pattern || flags->cells.x ||
           flags->experts || flags->tokens;
}

/* "operation; spmm: D = ...; sddmm: D = ... (default: spmm)" */
static const char *operation_help(void)
{
    static char *help;
    for (int i = 0; operation_at(i); i++) {
        const spk_operation_info *info = &operation_at(i)->info;
        if (i == 0 && help)
            break;
        char *longer = cli_format("%s; %s: %s", i ? help : "operation", info->name, info->formula);
        free(i ? help : NULL);
        help = longer;
        if (!operation_at(i + 1)) {
            longer = cli_format("%s (default: %s)", help, operation_at(0)->info.name);
            free(help);
            help = longer;
        }
    }
    return help;
}

static bool has_static(const operation *op, const void *unused)
{
    (void)unused;
    return operation_static_operand(op) >= 0;
}

static bool takes_pattern(const operation *op, const void *unused)
{
    (void)unused;
    return op->info.takes_pattern != SPK_PATTERN_NONE;
}

static bool needs_pattern(const operation *op, const void *unused)
{
    (void)unused;
    return op->info.takes_pattern == SPK_PATTERN_NEEDED;
}

static const char *static_help(void)
{
    static char *help;
    if (!help) {
        char *owners = settings_owners(has_static, NULL, " and ");
        help = cli_format("A's values stay: packing them once is free; of %s", owners);
        free(owners);
    }
    return help;
}

void problem_options(args *a, problem_flags *f)
{
    args_option sizes[SETTINGS_MOST_SIZES + MOST_MATRIX], fields[SETTINGS_MOST + 1];
    const args_option matrix[] = {
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
        {"tensor", 0, ARGS_TEXT, &f->tensor, "NAME", 0, 0, "tensor of a safetensors FILE, or layer of a model's (default: the only one)"},
        MATRIX_COLS_OPTION(&f->cols, "FILE"),
    };
    const args_option promises[] = {
        {"cache", 0, ARGS_CHOICE, &f->cache, "cold|warm", 0, 0, "operands come from memory, or stay in the cache (default: cold)"},
        {"assume-finite", 0, ARGS_FLAG, &f->assume_finite, NULL, 0, 0, "B holds no inf or NaN: dense implementations may win"},
        {"static-values", 0, ARGS_FLAG, &f->static_values, NULL, 0, 0, static_help()},
    };
    const int size_count = settings_size_options(sizes, f->sizes);
    for (size_t i = 0; i < sizeof(matrix) / sizeof(*matrix); i++)
        sizes[(size_t)size_count + i] = matrix[i];
    fields[0] = (args_option){"op", 0, ARGS_CHOICE, &f->op, operation_names(), 0, 0, operation_help()};
    const int count = settings_options(fields + 1, f->set);
    args_add(a, "Matrix", sizes, size_count + (int)(sizeof(matrix) / sizeof(*matrix)));
    args_add(a, "Operation", fields, count + 1);
    args_add(a, "Promises", promises, (int)(sizeof(promises) / sizeof(*promises)));
}

/* "--trans-a goes with --op spmm" */
static int goes_with(const cli *app, int code, const char *where, const char *option, char *owners)
{
    (void)cli_fail(app, code, "%s%s--%s goes with --op %s", where ? where : "", where ? ": " : "", option, owners);
    free(owners);
    return code;
}

static int check_operation(const cli *app, const problem_flags *f, int code, const char *where)
{
    const operation *op = operation_at(f->op);
    for (int i = 0; i < settings_count(); i++)
        if (!settings_field(settings_at(i), op) && settings_is_given(settings_at(i), &f->set[i]))
            return goes_with(app, code, where, settings_at(i)->option, settings_owners(settings_has, settings_at(i), " or "));
    for (int i = 0; i < settings_size_count(); i++)
        if (f->sizes[i] >= 0 && settings_size_at(i)->size[f->op] < 0)
            return cli_fail(app, code, "%s%s--%s: %s has no such size", where ? where : "", where ? ": " : "", settings_size_at(i)->option,
                            op->info.name);
    if (f->static_values && operation_static_operand(op) < 0)
        return goes_with(app, code, where, "static-values", settings_owners(has_static, NULL, " or "));
    if (op->info.takes_pattern == SPK_PATTERN_OPTIONAL && problem_is_shapeless(f))
        return goes_with(app, code, where,
                         f->cells.x   ? "cells"
                         : f->experts ? "experts"
                         : f->tokens  ? "tokens"
                                      : "pattern elasticity or experts",
                         settings_owners(needs_pattern, NULL, " or "));
    if (op->info.takes_pattern != SPK_PATTERN_NONE)
        return EXIT_DONE;
    if (f->file)
        return cli_fail(app, code, "%s%s%s takes no matrix FILE", where ? where : "", where ? ": " : "", op->info.name);
    const char *given = problem_of_pattern(f);
    return given ? goes_with(app, code, where, given, settings_owners(takes_pattern, NULL, " or ")) : EXIT_DONE;
}

int problem_check_flags(const cli *app, const problem_flags *f, const char *where)
{
    const int code = where ? EXIT_INPUT : EXIT_USAGE;
    const char *at = where ? where : "", *colon = where ? ": " : "";
    const int wrong = check_operation(app, f, code, where);
    if (wrong)
        return wrong;
    if ((f->tensor || f->cols) && !f->file)
        return cli_fail(app, code, "%s%s--%s goes with a FILE", at, colon, f->tensor ? "tensor" : "cols");
    if (f->tensor && matrix_input_file(f->file) != MATRIX_FILE_SAFETENSORS && matrix_is_name(f->file))
        return cli_fail(app, code, "%s%s--tensor names a tensor of a safetensors file; %s is none", at, colon, f->file);
    for (int i = 0; i < settings_count(); i++)
        for (int j = 0; j < i; j++)
            if (settings_exclude(settings_at(i), settings_at(j)) && f->set[i].index && f->set[j].index)
                return cli_fail(app, code, "%s%s--%s does not go with --%s", at, colon, settings_at(i)->option, settings_at(j)->option);
    const setting *of_groups = NULL;
    int groups_given = 0;
    for (int i = 0; i < settings_count(); i++)
        if (settings_is_of_groups(settings_at(i)) && settings_is_given(settings_at(i), &f->set[i])) {
            of_groups = settings_at(i);
            groups_given++;
        }
    if (groups_given == 1)
        return cli_fail(app, code, "%s%s--%s goes with --%s", at, colon, of_groups->option,
                        of_groups->kind == SPK_FIELD_GROUPS ? "group-axis" : "groups");
    bool batch = false;
    for (int i = 0; i < settings_count(); i++)
        batch = batch || (settings_at(i)->kind == SPK_FIELD_ITEMS && f->set[i].whole > 1);
    for (int i = 0; i < settings_count(); i++)
        if (settings_at(i)->kind == SPK_FIELD_STRIDE && f->set[i].index && !batch)
            return cli_fail(app, code, "%s%s--%s goes with --batch", at, colon, settings_at(i)->option);
    return EXIT_DONE;
}

/* ------------------------------------------------------------------------------------------------ the description */

/* A choice of a dtype: "default|f32|f64|tf32". */
static spk_dtype chosen_dtype(const setting *s, int index)
{
    int length;
    char name[16];
    const char *word = operation_word(s->choices, index, &length);
    snprintf(name, sizeof(name), "%.*s", length, word);
    return spk_dtype_from_name(name);
}

static int64_t value_of(const setting *s, const setting_value *value)
{
    switch (settings_args_kind(s)) {
    case ARGS_INT:
        return value->whole > settings_least(s) ? value->whole : settings_least(s);
    case ARGS_DTYPE:
        return value->dtype;
    case ARGS_CHOICE:
        return s->kind == SPK_FIELD_DTYPE ? (int)chosen_dtype(s, value->index) : value->index;
    default:
        return value->index;
    }
}

/* All but strides, which follow from how the arrays lie. */
static void apply_flags(const problem_flags *f, spk_dtype dtype, problem *p)
{
    p->given = operation_problem(p->op);
    for (int i = 0; i < settings_count(); i++) {
        const setting *s = settings_at(i);
        const spk_field_info *field = settings_field(s, p->op);
        if (!field || s->kind == SPK_FIELD_STRIDE)
            continue;
        if (s->kind == SPK_FIELD_REAL)
            operation_put_real(field, &p->given, f->set[i].real);
        else if (s->value == 0)
            operation_put(field, &p->given, value_of(s, &f->set[i]));
        else if (f->set[i].index)
            operation_put(field, &p->given, s->value);
    }
    const int first = settings_named("dtype");
    if (first >= 0 && settings_field(settings_at(first), p->op) && !f->set[first].dtype)
        operation_put(settings_field(settings_at(first), p->op), &p->given, dtype);
    for (int i = 0; i < p->op->info.size_count; i++) {
        const spk_size_info *size = &p->op->sizes[i];
        const int64_t given = f->sizes[settings_size_named(size->name)];
        int64_t usual = size->usual;
        if (p->pattern && size->source == SPK_SIZE_LIST_ROWS)
            usual = problem_rows_of_list(f, &p->info);
        else if (p->pattern && size->source == SPK_SIZE_LIST_COLS)
            usual = p->info.cols;
        for (int j = 0; problem_is_given_size(size) && j < p->op->info.field_count; j++)
            if (p->op->fields[j].kind == SPK_FIELD_SIZE && strcmp(p->op->fields[j].name, size->name) == 0)
                operation_put(&p->op->fields[j], &p->given, given < 0 ? usual : given);
    }
}

static spk_status find_arrays(const cli *app, problem *p)
{
    spk_status status = SPK_OK;
    p->is_empty = true;
    for (int i = 0; i < p->op->info.operand_count && status == SPK_OK; i++) {
        p->arrays[i] = (spk_array_info){SPK_SIZED(spk_array_info)};
        status = spk_problem_array(app->context, p->pattern, &p->given, i, &p->arrays[i]);
        p->is_empty = p->is_empty && (p->op->operands[i].role != SPK_ROLE_OUT || p->arrays[i].elements == 0);
    }
    return status;
}

/* Strides that were asked for: each item has an array of its own, one behind the other. */
static spk_status describe(const cli *app, const problem_flags *f, problem *p)
{
    spk_status status = find_arrays(app, p);
    for (int i = 0; i < settings_count() && status == SPK_OK; i++) {
        const spk_field_info *field = settings_field(settings_at(i), p->op);
        if (settings_at(i)->kind != SPK_FIELD_STRIDE || !f->set[i].index)
            continue;
        operation_put(field, &p->given, p->arrays[field->operand].elements);
        status = find_arrays(app, p);
    }
    p->numbers = (spk_problem_info){SPK_SIZED(spk_problem_info)};
    return status == SPK_OK ? spk_problem_get_info(app->context, p->pattern, &p->given, &p->numbers) : status;
}

/* The pattern of the matrix that the flags describe; *dtype is that of its values. */
static int make_pattern(cli *app, const problem_flags *f, problem *p, spk_dtype *dtype)
{
    spk_matrix *bsr = NULL;
    const int code = problem_matrix(app, f, &bsr);
    if (code)
        return code;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_status status = spk_matrix_view(bsr, &desc);
    if (status == SPK_OK)
        status = matrix_pattern(app->context, bsr, &p->pattern);
    if (status == SPK_OK)
        status = spk_pattern_get_info(p->pattern, &p->info);
    spk_matrix_destroy(&bsr);
    *dtype = desc.dtype;
    return cli_status(app, NULL, status, f->file);
}

static char *source_of(const problem_flags *f)
{
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    return f->file ? cli_format("file:%s", slash ? slash + 1 : f->file)
                   : cli_format("%s", spk_generator_name(f->pattern ? f->pattern : SPK_GEN_UNIFORM));
}

int problem_make(cli *app, const problem_flags *f, problem *out)
{
    problem p = {.op = operation_at(f->op),
                 .seed = f->seed,
                 .file = f->file,
                 .tensor = f->tensor,
                 .cols = f->cols,
                 .experts = f->experts,
                 .tokens = f->tokens,
                 .cells = f->cells,
                 .info = {SPK_SIZED(spk_pattern_info)}};
    spk_dtype dtype = SPK_DTYPE_DEFAULT;
    int code = problem_check_flags(app, f, NULL);
    if (code == EXIT_DONE && problem_has_pattern(f))
        code = make_pattern(app, f, &p, &dtype);
    if (code == EXIT_DONE && p.pattern)
        code = problem_check_lists(app, f, &p.info);
    if (code == EXIT_DONE) {
        apply_flags(f, dtype, &p);
        code = cli_status(app, NULL, describe(app, f, &p), NULL);
    }
    if (code) {
        spk_pattern_destroy(&p.pattern);
        return code;
    }
    if (p.is_empty) {
        const spk_array_info *d = &p.arrays[operation_output(p.op, 0)];
        cli_note(app, "the product is empty (%lld x %lld): there is nothing to measure", (long long)d->rows, (long long)d->cols);
    }
    cli_tune_options(app, &p.options);
    p.options.cache = (spk_cache_mode)f->cache;
    p.options.assume_finite = f->assume_finite;
    p.options.static_values = f->static_values;
    p.options.seed = f->seed;
    if (f->pattern == SPK_GEN_ELASTICITY && p.cells.x == 0)
        p.cells = (args_cells){10, 10, 10};
    p.source = p.pattern ? source_of(f) : NULL;
    p.flags = problem_flags_text(f, &p);
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
    return p->numbers.flops;
}

double problem_dense_flops(const problem *p)
{
    return p->numbers.dense_flops;
}

spk_status problem_list(const cli *app, const problem *p, spk_report **report)
{
    return spk_list(app->context, p->pattern, &p->given, &p->options, report);
}

spk_status problem_tune(const cli *app, const problem *p, spk_report **report)
{
    return spk_tune(app->context, p->pattern, &p->given, &p->options, report);
}

spk_status problem_explain(const cli *app, const problem *p, spk_report **report)
{
    return spk_explain(app->context, p->pattern, &p->given, &p->options, report);
}

spk_status problem_race(const cli *app, const problem *p, const spk_race_options *race, spk_report **report)
{
    return spk_race(app->context, p->pattern, &p->given, &p->options, race, report);
}

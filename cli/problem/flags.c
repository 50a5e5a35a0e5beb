/* What was given of a problem, as options; whether it goes together. */
#include "cli/problem/flags.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/matrix/matrix.h"

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

/* Whether the matrix has an element for each of the stored blocks'. */
static bool is_in_blocks(const operation *op, const setting *s)
{
    const spk_field_info *field = settings_field(s, op);
    return field && op->operands[field->operand].is_values;
}

int problem_check_flags(const cli *app, const problem_flags *f, const char *where)
{
    const operation *op = operation_at(f->op);
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
    for (int i = 0; i < settings_count(); i++)
        if (settings_at(i)->kind == SPK_FIELD_SCALE && f->set[i].scale.rows == SPK_SCALE_BLOCK && !is_in_blocks(op, settings_at(i)))
            return cli_fail(app, code, "%s%s--%s block: this matrix has no stored blocks; say RxC", at, colon, settings_at(i)->option);
    bool batch = false;
    for (int i = 0; i < settings_count(); i++)
        batch = batch || (settings_at(i)->kind == SPK_FIELD_ITEMS && f->set[i].whole > 1);
    for (int i = 0; i < settings_count(); i++)
        if (settings_at(i)->kind == SPK_FIELD_STRIDE && f->set[i].index && !batch)
            return cli_fail(app, code, "%s%s--%s goes with --batch", at, colon, settings_at(i)->option);
    return EXIT_DONE;
}

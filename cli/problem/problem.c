/* From flags to a pattern and the description of a problem; what the flags leave open comes from the file or the generator. */
#include "cli/problem/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/matrix/matrix.h"

/* A choice of a dtype, of sums among them "default". */
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
        else if (s->kind == SPK_FIELD_SCALE)
            operation_put_scale(field, &p->given, f->set[i].scale);
        else if (s->value == 0)
            operation_put(field, &p->given, value_of(s, &f->set[i]));
        else if (f->set[i].index)
            operation_put(field, &p->given, s->value);
    }
    operation_promise(p->op, &p->given, "assume_finite", f->assume_finite);
    operation_promise(p->op, &p->given, "static_values", f->static_values);
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
        status = spk_problem_get_array(app->context, p->pattern, &p->given, i, &p->arrays[i]);
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
    return spk_list_candidates(app->context, p->pattern, &p->given, &p->options, report);
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
    return spk_race_kernels(app->context, p->pattern, &p->given, &p->options, race, report);
}

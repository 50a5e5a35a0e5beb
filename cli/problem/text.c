/* A problem in words: a sentence, and the options that make it again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/text.h"
#include "cli/matrix/matrix.h"
#include "cli/problem/problem.h"
#include "type/tile.h"
#include "type/type.h"

/* What is appended to as it grows; freed by who made it. */
static void append(char **text, char *more)
{
    char *longer = cli_format("%s%s", *text ? *text : "", more);
    free(*text);
    free(more);
    *text = longer;
}

spk_dtype problem_dtype(const problem *p, const setting *s)
{
    const spk_field_info *field = settings_field(s, p->op);
    return field->operand >= 0 ? p->arrays[field->operand].dtype : p->numbers.compute;
}

/* ------------------------------------------------------------------------------------------------ options */

static char *matrix_options(const problem_flags *f, const problem *p)
{
    char block[24], *text;
    const char *rows = problem_pattern_size_name(f, SPK_SIZE_PATTERN_ROWS), *cols = problem_pattern_size_name(f, SPK_SIZE_PATTERN_COLS);
    const bool turned = problem_is_transposed(f);
    matrix_block_text(block, p->info.block_rows, p->info.block_cols);
    if (f->file) {
        char *file = cli_quoted(f->file), *tensor = cli_quoted(f->tensor ? f->tensor : "");
        char *sized = f->cols ? cli_format(" --cols %lld", (long long)f->cols) : cli_format("%s", "");
        text = cli_format("%s%s%s%s --block %s", file, f->tensor ? " --tensor " : "", f->tensor ? tensor : "", sized, block);
        free(sized);
        free(file);
        free(tensor);
        return text;
    }
    if (f->pattern == SPK_GEN_ELASTICITY)
        return cli_format("--pattern elasticity --cells %lldx%lldx%lld --block %s", (long long)p->cells.x, (long long)p->cells.y,
                          (long long)p->cells.z, block);
    if (f->pattern == SPK_GEN_EXPERTS) {
        char experts[32] = "";
        if (f->experts)
            snprintf(experts, sizeof(experts), " --experts %lld", (long long)f->experts);
        return cli_format("--pattern experts --%s %lld --block %s%s%s%s --seed %llu", turned ? rows : cols, (long long)p->info.cols, block,
                          experts, f->tokens ? " --tokens " : "", f->tokens ? f->tokens : "", (unsigned long long)f->seed);
    }
    if (p->op->info.takes_pattern == SPK_PATTERN_OPTIONAL) /* its sizes follow */
        return cli_format("--block %s --density %.10g --pattern %s --seed %llu", block, f->density < 0 ? 0.1 : f->density, p->source,
                          (unsigned long long)f->seed);
    return cli_format("--%s %lld --%s %lld --block %s --density %.10g --pattern %s --seed %llu", rows,
                      (long long)(turned ? p->info.cols : p->info.rows), cols, (long long)(turned ? p->info.rows : p->info.cols), block,
                      f->density < 0 ? 0.1 : f->density, p->source, (unsigned long long)f->seed);
}

static void append_setting(char **text, const problem_flags *f, const problem *p, int index)
{
    const setting *s = settings_at(index);
    const setting_value *value = &f->set[index];
    const int first = settings_named("dtype");
    int length;
    if (!settings_field(s, p->op) || (!settings_is_given(s, value) && index != first))
        return;
    switch (settings_args_kind(s)) {
    case ARGS_FLAG:
        append(text, cli_format(" --%s", s->option));
        break;
    case ARGS_INT:
        append(text, cli_format(" --%s %lld", s->option, (long long)value->whole));
        break;
    case ARGS_REAL:
        append(text, cli_format(" --%s %.17g", s->option, value->real));
        break;
    case ARGS_SCALE: {
        char tile[SPK_TILE_TEXT];
        spk_tile_text(value->scale, tile, sizeof(tile));
        append(text, cli_format(" --%s %s", s->option, tile));
        break;
    }
    case ARGS_DTYPE:
        if (index == first || problem_dtype(p, s) != problem_dtype(p, settings_at(first)))
            append(text, cli_format(" --%s %s", s->option, spk_dtype_name(problem_dtype(p, s))));
        break;
    default: {
        const char *word = operation_word(s->choices, value->index, &length);
        append(text, cli_format(" --%s %.*s", s->option, length, word));
    }
    }
}

char *problem_flags_text(const problem_flags *f, const problem *p)
{
    char *text = f->op ? cli_format("--op %s ", p->op->info.name) : cli_format("%s", "");
    if (p->pattern)
        append(&text, matrix_options(f, p));
    for (int i = 0; i < p->op->info.size_count; i++)
        if (problem_is_given_size(&p->op->sizes[i]))
            append(&text, cli_format("%s--%s %lld", text[0] && text[strlen(text) - 1] != ' ' ? " " : "",
                                     settings_size_at(settings_size_named(p->op->sizes[i].name))->option, (long long)p->numbers.sizes[i]));
    if (!p->pattern)
        append(&text, cli_format(" --seed %llu", (unsigned long long)f->seed));
    for (int i = 0; i < settings_count(); i++)
        append_setting(&text, f, p, i);
    append(&text, cli_format("%s%s%s", f->cache ? " --cache warm" : "", f->assume_finite ? " --assume-finite" : "",
                             f->static_values ? " --static-values" : ""));
    return text;
}

/* ------------------------------------------------------------------------------------------------ a sentence */

static char *pattern_text(const problem *p)
{
    const spk_pattern_info *i = &p->info;
    return cli_format("(%s, %lldx%lld blocks, %lld stored, %.3g %%)", cli_clean(p->source), (long long)i->block_rows,
                      (long long)i->block_cols, (long long)i->nnzb, 100 * i->density);
}

/* What stands in braces in the operation's sentence: a size, "pattern", or "transposed", which is a word of its own where it is so. */
static char *filled_in(const problem *p, const char *name, int length)
{
    const spk_field_info *trans = operation_field(p->op, SPK_FIELD_TRANS, -2);
    for (int i = 0; i < p->op->info.size_count; i++)
        if ((int)strlen(p->op->sizes[i].name) == length && strncmp(p->op->sizes[i].name, name, (size_t)length) == 0)
            return cli_format("%lld", (long long)p->numbers.sizes[i]);
    if (strncmp(name, "pattern", (size_t)length) == 0)
        return pattern_text(p);
    return cli_format("%s", trans && operation_get(trans, &p->given) ? " transposed" : "");
}

static bool has_own_values(const problem *p)
{
    for (int i = 0; i < settings_count(); i++) {
        const spk_field_info *field = settings_field(settings_at(i), p->op);
        if (field && field->kind == SPK_FIELD_STRIDE && operation_get(field, &p->given) > 0)
            return true;
    }
    return false;
}

/* ", 8 heads (heads_kv 2), causal, window_left 100": what only some operations have. */
static char *own_words(const problem *p)
{
    char *text = cli_format("%s", "");
    int64_t heads = 1;
    for (int i = 0; i < p->op->info.field_count; i++) {
        const spk_field_info *f = &p->op->fields[i];
        const bool is_flag = f->kind == SPK_FIELD_CHOICE && strcmp(f->values, "no|yes") == 0;
        const int64_t value = f->kind == SPK_FIELD_HEADS              ? p->arrays[f->operand].heads
                              : is_flag || f->kind == SPK_FIELD_COUNT ? operation_get(f, &p->given)
                                                                      : 0;
        if (f->kind == SPK_FIELD_HEADS && value != heads && heads == 1)
            append(&text, cli_format(", %lld heads", (long long)(heads = value)));
        else if (f->kind == SPK_FIELD_HEADS && value != heads)
            append(&text, cli_format(" (%s %lld)", f->option, (long long)value));
        else if (is_flag && value)
            append(&text, cli_format(", %s", f->option));
        else if (f->kind == SPK_FIELD_COUNT && value)
            append(&text, cli_format(", %s %lld", f->option, (long long)value));
        else if (f->kind == SPK_FIELD_SCALE && operation_get_scale(f, &p->given).rows != 0) {
            char tile[SPK_TILE_TEXT];
            spk_tile_text(operation_get_scale(f, &p->given), tile, sizeof(tile));
            append(&text, cli_format(", %s %s", f->option, tile));
        }
    }
    return text;
}

char *problem_text(const problem *p)
{
    const int first = settings_named("dtype");
    char *text = NULL;
    append(&text, cli_format("%s%s, ", spk_dtype_name(problem_dtype(p, settings_at(first))),
                             spk_type_of((spk_dtype)p->numbers.compute)->use == SPK_USE_PRODUCTS ? " (TF32 products)" : ""));
    for (const char *at = p->op->info.sentence; *at;) {
        const int plain = (int)strcspn(at, "{");
        append(&text, cli_format("%.*s", plain, at));
        at += plain;
        if (*at) {
            const int length = (int)strcspn(at + 1, "}");
            append(&text, filled_in(p, at + 1, length));
            at += length + 2;
        }
    }
    if (p->pattern && p->op->info.takes_pattern == SPK_PATTERN_OPTIONAL) {
        append(&text, cli_format(", in the blocks of a mask "));
        append(&text, pattern_text(p));
    }
    append(&text, own_words(p));
    const spk_field_info *groups = operation_field(p->op, SPK_FIELD_GROUPS, -2), *axis = operation_field_named(p->op, OPERATION_GROUP_AXIS);
    static const char *const axes[] = {"", "rows", "columns", "depth"};
    if (groups && axis && operation_get(groups, &p->given) > 0)
        append(&text, cli_format(", in %lld groups along its %s", (long long)operation_get(groups, &p->given),
                                 axes[operation_get(axis, &p->given)]));
    else if (p->numbers.items > 1)
        append(&text, cli_format(", %lld of them%s", (long long)p->numbers.items, has_own_values(p) ? ", each with its values" : ""));
    return text;
}

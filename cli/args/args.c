/* Parses a command's options from its table; every message names the option, the value and what would be right. */
#include "cli/args/args.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/cli.h"
#include "cli/base/text.h"
#include "type/tile.h"
#include "type/type.h"

void args_add(args *a, const char *title, const args_option *options, int count)
{
    if (a->count + count > ARGS_MAX_OPTIONS) { /* an option that is left out in silence is worse */
        fprintf(stderr, "sparsek %s: more options than ARGS_MAX_OPTIONS\n", a->command);
        abort();
    }
    for (int i = 0; i < count; i++) {
        a->group[a->count] = i == 0 ? title : NULL;
        a->list[a->count++] = options[i];
    }
}

bool args_read_int(const char *text, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || text[0] == ' ')
        return false;
    *out = value;
    return true;
}

bool args_read_real(const char *text, double *out)
{
    char *end = NULL;
    double value = spk_real(text, &end);
    if (end == text || *end || text[0] == ' ' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool args_read_share(const char *text, double *out)
{
    char copy[64];
    size_t length = strlen(text);
    if (length == 0 || length >= sizeof(copy))
        return false;
    memcpy(copy, text, length + 1);
    bool percent = copy[length - 1] == '%';
    if (percent)
        copy[length - 1] = 0;
    double value;
    if (!args_read_real(copy, &value))
        return false;
    *out = percent ? value / 100 : value;
    return true;
}

static bool read_seed(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long long value = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    if (errno || *end || value > INT64_MAX) /* results carry seeds as JSON integers */
        return false;
    *out = value;
    return true;
}

/* "a", "axb", "axbxc": how many there were, 0 for a bad text. */
static int read_times(const char *text, int64_t *out, int most)
{
    int count = 0;
    for (;;) {
        char *end = NULL;
        errno = 0;
        if (count == most || text[0] < '0' || text[0] > '9')
            return 0;
        long long value = strtoll(text, &end, 10);
        if (errno || value < 1)
            return 0;
        out[count++] = value;
        if (!*end)
            return count;
        if (*end != 'x')
            return 0;
        text = end + 1;
    }
}

bool args_read_block(const char *text, args_block *out)
{
    int64_t v[2];
    int count = read_times(text, v, 2);
    if (count == 0 || v[0] > 256 || v[count - 1] > 256)
        return false;
    *out = (args_block){v[0], v[count - 1]};
    return true;
}

bool args_read_cells(const char *text, args_cells *out)
{
    int64_t v[3];
    int count = read_times(text, v, 3);
    if (count != 1 && count != 3)
        return false;
    *out = count == 1 ? (args_cells){v[0], v[0], v[0]} : (args_cells){v[0], v[1], v[2]};
    return true;
}

int args_choice(const char *choices, const char *text)
{
    int index = 0;
    for (const char *at = choices;; index++) {
        size_t length = strcspn(at, "|");
        bool same = strlen(text) == length;
        for (size_t i = 0; same && i < length; i++)
            same = at[i] == text[i] || (at[i] == '_' && text[i] == '-');
        if (same)
            return index;
        if (!at[length])
            return -1;
        at += length + 1;
    }
}

static bool kernel_known(const char *name)
{
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) == SPK_OK && strcmp(info.name, name) == 0)
            return true;
    }
    return false;
}

bool args_kernels_known(const char *list, char *bad, int size)
{
    for (const char *at = list;;) {
        int length = (int)strcspn(at, ",");
        snprintf(bad, (size_t)size, "%.*s", length, at);
        if (!kernel_known(bad))
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
}

__attribute__((format(printf, 2, 3))) static int wrong(const args *a, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = cli_vformat(format, list);
    va_end(list);
    fprintf(stderr, "sparsek %s: %s\nTry 'sparsek %s --help'.\n", a->command, text ? cli_clean(text) : "out of memory", a->command);
    free(text);
    return 2;
}

static int unknown_option(const args *a, const char *name)
{
    const char *names[ARGS_MAX_OPTIONS + 1], *why = a->why_unknown ? a->why_unknown(name) : NULL;
    int count = 0;
    if (why)
        return wrong(a, "unknown option --%s: %s", name, why);
    for (int i = 0; i < a->count; i++)
        if (!a->idle[i])
            names[count++] = a->list[i].name;
    names[count++] = "help";
    const char *near = args_nearest_key(name, names, count);
    return near ? wrong(a, "unknown option --%s; did you mean --%s?", name, near) : wrong(a, "unknown option --%s", name);
}

static int wrong_choice(const args *a, const args_option *o, const char *text)
{
    const char *near = args_nearest_of(text, o->values);
    return near ? wrong(a, "--%s: '%s' is none of %s; did you mean %s?", o->name, text, o->values, near)
                : wrong(a, "--%s: '%s' is none of %s", o->name, text, o->values);
}

static int take_pattern(const args *a, const args_option *o, const char *text)
{
    spk_generator generator = spk_generator_from_name(text);
    if (generator) {
        *(spk_generator *)o->to = generator;
        return ARGS_GO;
    }
    const char *near = args_nearest_pattern(text);
    return near ? wrong(a, "--%s: no pattern is called '%s'; did you mean %s?", o->name, text, near)
                : wrong(a, "--%s: no pattern is called '%s' (see 'sparsek gen --help')", o->name, text);
}

static int take_dtype(const args *a, const args_option *o, const char *text)
{
    spk_dtype dtype = spk_dtype_from_name(text);
    char types[SPK_TYPE_LIST_TEXT];
    spk_type_list(SPK_USES_OF_VALUES, "and", types, sizeof types);
    if (dtype == SPK_DTYPE_DEFAULT || spk_type_of(dtype)->use == SPK_USE_PRODUCTS) {
        const char *near = args_nearest_dtype(text);
        return near ? wrong(a, "--%s: '%s' is no data type (%s are); did you mean %s?", o->name, text, types, near)
                    : wrong(a, "--%s: '%s' is no data type (%s are)", o->name, text, types);
    }
    if (!spk_type_holds_values(dtype)) {
        wrong(a, "--%s: %s is not in this version (%s are)", o->name, text, types);
        return 4;
    }
    *(spk_dtype *)o->to = dtype;
    return ARGS_GO;
}

static int take_kernels(const args *a, const args_option *o, const char *text)
{
    char bad[64];
    if (!args_kernels_known(text, bad, sizeof(bad))) {
        const char *near = args_nearest_kernel(bad);
        return near ? wrong(a, "--%s: no kernel is called '%s'; did you mean %s?", o->name, bad, near)
                    : wrong(a, "--%s: no kernel is called '%s' (see 'sparsek info')", o->name, bad);
    }
    *(const char **)o->to = text;
    return ARGS_GO;
}

static int take_number(const args *a, const args_option *o, const char *text)
{
    int64_t whole = 0;
    double value = 0;
    bool fine = o->kind == ARGS_INT    ? args_read_int(text, &whole)
                : o->kind == ARGS_REAL ? args_read_real(text, &value)
                                       : args_read_share(text, &value);
    size_t digits = o->kind == ARGS_INT ? strspn(text + (text[0] == '-'), "0123456789") : 0;
    if (!fine && digits && !text[digits + (text[0] == '-')]) /* a whole number that 64 bits do not hold */
        return wrong(a, "--%s: %s is not between %.15g and %.15g", o->name, text, o->low, o->high);
    if (!fine)
        return wrong(a, "--%s: '%s' is not a %s", o->name, text, o->kind == ARGS_INT ? "whole number" : "finite number");
    if (o->kind == ARGS_INT)
        value = (double)whole;
    const bool percent = o->kind == ARGS_SHARE && value > o->high && value <= 100 && !strchr(text, '%');
    if (value < o->low || value > o->high)
        return wrong(a, "--%s: %s is not between %.15g and %.15g%s%s%s", o->name, text, o->low, o->high, percent ? "; did you mean " : "",
                     percent ? text : "", percent ? "%?" : "");
    if (o->kind == ARGS_INT)
        *(int64_t *)o->to = whole;
    else
        *(double *)o->to = value;
    return ARGS_GO;
}

static int take_scale(const args *a, const args_option *o, const char *text)
{
    char words[SPK_TILE_LIST_TEXT];
    if (spk_tile_read(text, o->to))
        return ARGS_GO;
    return wrong(a, "--%s: '%s' is neither %s nor the rows and columns of a tile, 1x128 or allx128", o->name, text,
                 spk_tile_words("", words, sizeof(words)));
}

static int parse_value(const args *a, const args_option *o, const char *text)
{
    switch (o->kind) {
    case ARGS_TEXT:
    case ARGS_FILE:
    case ARGS_MATRIX:
    case ARGS_DEVICE:
        if (!text[0])
            return wrong(a, "--%s: the value is empty", o->name);
        *(const char **)o->to = text;
        return ARGS_GO;
    case ARGS_INT:
    case ARGS_REAL:
    case ARGS_SHARE:
        return take_number(a, o, text);
    case ARGS_SEED:
        return read_seed(text, o->to) ? ARGS_GO : wrong(a, "--%s: '%s' is not a whole number from 0 to 2^63-1", o->name, text);
    case ARGS_BLOCK:
        return args_read_block(text, o->to) ? ARGS_GO
                                            : wrong(a, "--%s: '%s' is no block size: ROWS or ROWSxCOLS, each 1 to 256", o->name, text);
    case ARGS_CELLS:
        return args_read_cells(text, o->to)
                   ? ARGS_GO
                   : wrong(a, "--%s: '%s' is neither a number of 1 or more nor three of them, XxYxZ", o->name, text);
    case ARGS_SCALE:
        return take_scale(a, o, text);
    case ARGS_CHOICE: {
        int index = args_choice(o->values, text);
        if (index < 0)
            return wrong_choice(a, o, text);
        *(int *)o->to = index;
        return ARGS_GO;
    }
    case ARGS_DTYPE:
        return take_dtype(a, o, text);
    case ARGS_PATTERN:
        return take_pattern(a, o, text);
    case ARGS_KERNELS:
        return take_kernels(a, o, text);
    case ARGS_FLAG:
        break;
    }
    return ARGS_GO;
}

static const args_option *find(const args *a, const char *name, size_t length)
{
    for (int i = 0; i < a->count; i++)
        if (strlen(a->list[i].name) == length && strncmp(a->list[i].name, name, length) == 0)
            return &a->list[i];
    return NULL;
}

/* One option at argv[*at]; moves *at past a value of its own. */
static int parse_option(args *a, int argc, char **argv, int *at)
{
    const char *text = argv[*at];
    const args_option *option = NULL;
    const char *value = NULL;
    if (text[1] == '-') {
        size_t length = strcspn(text + 2, "=");
        option = find(a, text + 2, length);
        if (!option) {
            char name[64];
            snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), text + 2);
            return unknown_option(a, name);
        }
        value = text[2 + length] ? text + 3 + length : NULL;
    } else {
        for (int i = 0; i < a->count && !option; i++)
            option = a->list[i].letter && a->list[i].letter == text[1] ? &a->list[i] : NULL;
        if (!option)
            return wrong(a, "unknown option %s", text);
        value = text[2] ? text + 2 : NULL;
    }
    if (a->idle[option - a->list])
        return wrong(a, "--%s does nothing for this command", option->name);
    if (option->kind == ARGS_FLAG) {
        if (value)
            return wrong(a, "--%s takes no value", option->name);
        *(int *)option->to = 1;
        return ARGS_GO;
    }
    if (!value) {
        if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
            return wrong(a, "--%s needs a value", option->name);
        value = argv[++*at];
    }
    return parse_value(a, option, value);
}

int args_parse(args *a, int argc, char **argv)
{
    bool open = true; /* until "--" */
    if (a->visit) {
        a->visit(a->visit_user, a);
        return EXIT_DONE;
    }
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            break;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return argv[i][1] == '-' ? ARGS_HELP : ARGS_SHORT_HELP;
    for (int i = 1; i < argc; i++) {
        if (open && strcmp(argv[i], "--") == 0) {
            open = false;
        } else if (open && argv[i][0] == '-' && argv[i][1]) {
            int code = parse_option(a, argc, argv, &i);
            if (code != ARGS_GO)
                return code;
        } else if (a->operand_count < a->max_operands) {
            a->operands[a->operand_count++] = argv[i];
        } else {
            return wrong(a, "one argument too many: '%s'", argv[i]);
        }
    }
    if (a->operand_count < a->min_operands)
        return wrong(a, "needs %s", a->operand_names);
    return ARGS_GO;
}

/* A problem as JSON: written into results, read from lists of problems. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/json_text.h"
#include "cli/base/text.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/problem/problem.h"
#include "type/names.h"
#include "type/tile.h"
#include "type/type.h"

/* "none", or what takes part, joined with '+': "beta+bias_row+gelu_erf+residual+preact" ("factor" where the residual multiplies). NULL: the
 * operation has no epilogue. */
static char *epilogue_text(const problem *p)
{
    char *text = NULL;
    for (int i = 0; i < p->op->info.field_count; i++) {
        const spk_field_info *field = &p->op->fields[i];
        if (!field->terms)
            continue;
        int length;
        const char *term = operation_word(field->terms, (int)operation_get(field, &p->given), &length);
        char *longer = cli_format("%s%s%.*s", text ? text : "", text && text[0] && length ? "+" : "", length, term);
        free(text);
        text = longer;
    }
    if (text && !text[0]) {
        free(text);
        text = cli_format("none");
    }
    return text;
}

static void put_matrix(json_t *o, const problem *p)
{
    json_put(o, "block_rows", json_integer(p->info.block_rows));
    json_put(o, "block_cols", json_integer(p->info.block_cols));
    json_put(o, "nnzb", json_integer(p->info.nnzb));
    json_put(o, "density", json_number(p->info.density));
    json_put(o, "pattern", json_text(p->source));
    if (p->experts)
        json_put(o, "experts", json_integer(p->experts));
    if (p->tokens)
        json_put(o, "tokens", json_text(p->tokens));
    if (p->cells.x)
        json_put(o, "cells", json_sprintf("%lldx%lldx%lld", (long long)p->cells.x, (long long)p->cells.y, (long long)p->cells.z));
    if (p->file)
        json_put(o, "file", json_text(p->file));
    if (p->file && p->tensor)
        json_put(o, "tensor", json_text(p->tensor));
    if (p->file && p->cols)
        json_put(o, "cols", json_integer(p->cols));
}

/* What is no part of the epilogue's name. Of some only what is not the default. */
static void put_setting(json_t *o, const problem *p, const setting *s)
{
    const spk_field_info *field = settings_field(s, p->op);
    if (!field || field->terms)
        return;
    const int64_t value = s->kind == SPK_FIELD_REAL || s->kind == SPK_FIELD_SCALE ? 0 : operation_get(field, &p->given);
    int length;
    double real;
    char tile[SPK_TILE_TEXT];
    switch (s->kind) {
    case SPK_FIELD_DTYPE:
        json_put(o, s->key, json_string(spk_dtype_name(problem_dtype(p, s))));
        break;
    case SPK_FIELD_HEADS:
        json_put(o, s->key, json_integer(p->arrays[field->operand].heads));
        break;
    case SPK_FIELD_ITEMS:
        json_put(o, s->key, json_integer(value > 1 ? value : 1));
        break;
    case SPK_FIELD_STRIDE:
        if (value)
            json_put(o, s->key, json_boolean(true));
        break;
    case SPK_FIELD_GROUPS:
    case SPK_FIELD_COUNT:
        if (value)
            json_put(o, s->key, json_integer(value));
        break;
    case SPK_FIELD_REAL:
        memcpy(&real, p->given.bytes + field->offset, sizeof(real));
        json_put(o, s->key, json_number(real));
        break;
    case SPK_FIELD_SCALE:
        spk_tile_text(operation_get_scale(field, &p->given), tile, sizeof(tile));
        if (operation_get_scale(field, &p->given).rows)
            json_put(o, s->key, json_text(tile));
        break;
    case SPK_FIELD_PROMISE: /* no setting */
    case SPK_FIELD_SIZE:
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_PART:
    case SPK_FIELD_CHOICE:
    case SPK_FIELD_LD:
    case SPK_FIELD_HEAD_STRIDE:
        if (s->value > 0)
            json_put(o, s->key, json_boolean(value == s->value));
        else if ((s->kind != SPK_FIELD_BLOCK_LAYOUT && s->kind != SPK_FIELD_CHOICE) || value) {
            const char *word = operation_word(s->choices, (int)value, &length);
            json_put(o, s->key, json_stringn(word, (size_t)length));
        }
    }
}

static bool promised(const problem *p, const char *name)
{
    const spk_field_info *field = operation_field_named(p->op, name);
    return field && operation_get(field, &p->given);
}

json_t *problem_json(const problem *p)
{
    char *epilogue = epilogue_text(p);
    json_t *o = json_object();
    json_put(o, "op", json_string(p->op->info.name));
    for (int i = 0; i < p->op->info.size_count; i++)
        json_put(o, p->op->sizes[i].name, json_integer(p->numbers.sizes[i]));
    if (p->pattern)
        put_matrix(o, p);
    for (int i = 0; i < settings_count(); i++)
        put_setting(o, p, settings_at(i));
    if (epilogue)
        json_put(o, "epilogue", json_string(epilogue));
    free(epilogue);
    json_put(o, "seed", json_integer((json_int_t)p->seed));
    json_put(o, "assume_finite", json_boolean(promised(p, "assume_finite")));
    json_put(o, "static_values", json_boolean(promised(p, "static_values")));
    json_put(o, "cache", json_string(p->options.cache == SPK_WARM ? "warm" : "cold"));
    return o;
}

typedef enum field_kind {
    FIELD_INT,
    FIELD_SEED,
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_CHOICE,
    FIELD_DTYPE,
    FIELD_BLOCK,
    FIELD_SIDE,
    FIELD_CELLS,
    FIELD_SCALE,
    FIELD_PATTERN,
    FIELD_TEXT,
    FIELD_TOKENS,
    FIELD_EPILOGUE,
    FIELD_IGNORED
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    void *to;
    const char *choices;
    double low, high;
} field;

/* The place of a word among an epilogue's terms: a setting and its value; false: it is none. */
static bool find_term(const char *word, int *at, int *index)
{
    for (*at = 0; *at < settings_count(); ++*at) {
        const setting *s = settings_at(*at);
        const int first = s->value ? s->value : 1, last = s->value ? s->value : s->terms ? operation_words(s->terms) - 1 : 0;
        for (int i = first; s->terms && i <= last; i++) {
            int length;
            const char *term = operation_word(s->terms, i, &length);
            *index = s->value ? 1 : i;
            if ((int)strlen(word) == length && strncmp(word, term, (size_t)length) == 0)
                return true;
        }
    }
    return false;
}

static bool take_epilogue(const char *text, problem_flags *f)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "+");
        char word[24];
        int setting_at = 0, index = 0;
        if (length >= sizeof(word))
            return false;
        memcpy(word, at, length);
        word[length] = 0;
        if (find_term(word, &setting_at, &index))
            f->set[setting_at].index = index;
        else if (strcmp(word, "none") != 0)
            return false;
        at += length + (at[length] == '+');
    }
    return true;
}

/* "\"none\", or some of beta, bias_row ... and preact, joined with +" */
static char *epilogue_words(void)
{
    char *text = cli_format("\"none\", or some of"), *last = NULL;
    for (int i = 0; i < settings_count(); i++) {
        const setting *s = settings_at(i);
        const int first_term = s->value ? s->value : 1, end = s->value ? s->value + 1 : s->terms ? operation_words(s->terms) : 0;
        for (int t = first_term; s->terms && t < end; t++) {
            int length;
            const char *term = operation_word(s->terms, t, &length);
            char *longer = last ? cli_format("%s %s%s", text, last, ",") : cli_format("%s", text);
            free(text);
            free(last);
            text = longer;
            last = cli_format("%.*s", length, term);
        }
    }
    char *whole = cli_format("%.*s and %s, joined with +", (int)strlen(text) - (last != NULL), text, last ? last : "");
    free(text);
    free(last);
    return whole;
}

static bool take_pattern(const char *text, problem_flags *f)
{
    if (strncmp(text, "file:", 5) == 0) {
        f->file = f->file ? f->file : text + 5; /* "file" has the whole path */
        return true;
    }
    f->pattern = spk_generator_from_name(text);
    return f->pattern != 0;
}

static bool take_number(const json_t *value, const field *f)
{
    double x = json_number_value(value);
    const bool share = f->kind == FIELD_REAL && json_is_string(value);
    if (share ? !args_read_share(json_string_value(value), &x) : f->kind == FIELD_REAL ? !json_is_number(value) : !json_is_integer(value))
        return false;
    if (x < f->low || x > f->high)
        return false;
    if (f->kind == FIELD_REAL)
        *(double *)f->to = x;
    else
        *(int64_t *)f->to = json_integer_value(value);
    return true;
}

/* False where the value does not fit the field. */
static bool take_field(const json_t *value, const field *f, problem_flags *flags)
{
    const char *text = json_string_value(value);
    switch (f->kind) {
    case FIELD_INT:
    case FIELD_SIDE:
    case FIELD_REAL:
        return take_number(value, f);
    case FIELD_SEED:
        if (!json_is_integer(value))
            return false;
        *(uint64_t *)f->to = (uint64_t)json_integer_value(value);
        return true;
    case FIELD_BOOL:
        *(int *)f->to = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_CHOICE: {
        int index = text ? args_choice(f->choices, text) : -1;
        if (index >= 0)
            *(int *)f->to = index;
        return index >= 0;
    }
    case FIELD_DTYPE:
        *(spk_dtype *)f->to = text ? spk_dtype_from_name(text) : SPK_DTYPE_DEFAULT;
        return *(spk_dtype *)f->to != SPK_DTYPE_DEFAULT;
    case FIELD_BLOCK:
        if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 256) {
            flags->block = (args_block){json_integer_value(value), json_integer_value(value)};
            return true;
        }
        return text && args_read_block(text, &flags->block);
    case FIELD_CELLS:
        if (json_is_integer(value) && json_integer_value(value) >= 1) {
            flags->cells = (args_cells){json_integer_value(value), json_integer_value(value), json_integer_value(value)};
            return true;
        }
        return text && args_read_cells(text, &flags->cells);
    case FIELD_SCALE:
        return text && spk_tile_read(text, f->to);
    case FIELD_PATTERN:
        return text && take_pattern(text, flags);
    case FIELD_TOKENS:
    case FIELD_TEXT:
        *(const char **)f->to = text;
        return text != NULL;
    case FIELD_EPILOGUE:
        return text && take_epilogue(text, flags);
    case FIELD_IGNORED:
        break;
    }
    return true;
}

/* [16, 200, 31] as the option has it, "16,200,31", put in its place; anything else stays. */
static void spell_tokens(json_t *object)
{
    const json_t *list = json_object_get(object, "tokens");
    size_t index;
    json_t *one;
    char *text = cli_format("%s", "");
    if (json_is_array(list)) {
        json_array_foreach(list, index, one)
        {
            char *longer = json_is_integer(one) ? cli_format("%s%s%lld", text, index ? "," : "", (long long)json_integer_value(one)) : NULL;
            free(text);
            text = longer;
            if (text == NULL)
                return;
        }
        json_put(object, "tokens", json_text(text));
    }
    free(text);
}

/* What a field takes, and the nearest of its values where there is one. The caller frees it. */
static char *allowed(const field *f, const char *text)
{
    const char *near = NULL, *takes;
    char range[80], words[SPK_TILE_LIST_TEXT];
    switch (f->kind) {
    case FIELD_INT:
    case FIELD_SIDE:
        spk_snprintf(range, sizeof(range), "a whole number from %.10g to %.10g", f->low, f->high);
        return cli_format("%s", range);
    case FIELD_REAL:
        return cli_format("a number from %.10g to %.10g, or a text such as \"10%%\"", f->low, f->high);
    case FIELD_SEED:
        return cli_format("a whole number");
    case FIELD_BOOL:
        return cli_format("true or false");
    case FIELD_CHOICE:
        takes = f->choices;
        near = text ? args_nearest_of(text, f->choices) : NULL;
        break;
    case FIELD_DTYPE:
        takes = f->choices ? f->choices : SPK_TYPES_OF_MATRICES;
        near = text ? args_nearest_dtype(text) : NULL;
        break;
    case FIELD_PATTERN:
        takes = "a pattern of 'sparsek gen --help'";
        near = text ? args_nearest_pattern(text) : NULL;
        break;
    case FIELD_BLOCK:
        return cli_format("64 or \"64x32\", sides of 1 to 256");
    case FIELD_SCALE:
        return cli_format("%s, or a tile such as \"1x128\" or \"allx128\"", spk_tile_words("\"", words, sizeof(words)));
    case FIELD_CELLS:
        return cli_format("20 or \"20x10x10\", each 1 or more");
    case FIELD_TOKENS:
        return cli_format("\"16-256\", \"16,200,31\" or [16, 200, 31]");
    case FIELD_EPILOGUE:
        return epilogue_words();
    default:
        return cli_format("a text");
    }
    return near ? cli_format("%s; did you mean \"%s\"?", takes, near) : cli_format("%s", takes);
}

static int wrong_value(const cli *app, const char *where, const field *f, const json_t *value)
{
    char *dumped = spk_json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12)),
         *takes = allowed(f, json_string_value(value));
    int code = cli_fail(app, EXIT_INPUT, "%s: \"%s\" has a wrong value, %.80s: it takes %s", where, f->name, dumped ? dumped : "?", takes);
    free(dumped);
    free(takes);
    return code;
}

enum { MOST_KEYS = 24 + SETTINGS_MOST + SETTINGS_MOST_SIZES };

static field field_of(const setting *s, setting_value *value)
{
    static const struct {
        args_kind from;
        field_kind to;
    } kinds[] = {{ARGS_FLAG, FIELD_BOOL}, {ARGS_CHOICE, FIELD_CHOICE}, {ARGS_DTYPE, FIELD_DTYPE},
                 {ARGS_INT, FIELD_INT},   {ARGS_REAL, FIELD_REAL},     {ARGS_SCALE, FIELD_SCALE}};
    field made = {s->key, FIELD_TEXT, value, s->choices, settings_args_kind(s) == ARGS_INT ? (double)settings_least(s) : s->low, s->high};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].from == settings_args_kind(s))
            made.kind = kinds[i].to;
    return made;
}

/* All keys: of the matrix, of the sizes, of the operations' fields. How many there are. */
static int list_fields(problem_flags *f, field *fields)
{
    const double most = 2147483647;
    const field fixed[] = {
        {"file", FIELD_TEXT, &f->file, NULL, 0, 0},
        {"tensor", FIELD_TEXT, &f->tensor, NULL, 0, 0},
        {"cols", FIELD_INT, &f->cols, NULL, 1, 2147483647},
        {"op", FIELD_CHOICE, &f->op, operation_names(), 0, 0},
        {"block", FIELD_BLOCK, NULL, NULL, 0, 0},
        {"block_rows", FIELD_SIDE, &f->block.rows, NULL, 1, 256},
        {"block_cols", FIELD_SIDE, &f->block.cols, NULL, 1, 256},
        {"nnzb", FIELD_IGNORED, NULL, NULL, 0, 0},
        {"density", FIELD_REAL, &f->density, NULL, 0, 1},
        {"pattern", FIELD_PATTERN, NULL, NULL, 0, 0},
        {"cells", FIELD_CELLS, NULL, NULL, 0, 0},
        {"experts", FIELD_INT, &f->experts, NULL, 1, 1 << 30},
        {"tokens", FIELD_TOKENS, &f->tokens, NULL, 0, 0},
        {"epilogue", FIELD_EPILOGUE, NULL, NULL, 0, 0},
        {"seed", FIELD_SEED, &f->seed, NULL, 0, 0},
        {"cache", FIELD_CHOICE, &f->cache, "cold|warm", 0, 0},
        {"assume_finite", FIELD_BOOL, &f->assume_finite, NULL, 0, 0},
        {"static_values", FIELD_BOOL, &f->static_values, NULL, 0, 0},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        fields[count++] = fixed[i];
    for (int i = 0; i < settings_size_count(); i++)
        fields[count++] = (field){settings_size_at(i)->name, FIELD_INT, &f->sizes[i], NULL, 0, most};
    for (int i = 0; i < settings_count(); i++)
        fields[count++] = field_of(settings_at(i), &f->set[i]);
    return count;
}

/* Each key of the object into its field. */
static int take_keys(const cli *app, json_t *object, const char *where, problem_flags *f)
{
    field fields[MOST_KEYS];
    const int count = list_fields(f, fields);
    const char *key, *names[MOST_KEYS];
    json_t *value;
    for (int i = 0; i < count; i++)
        names[i] = fields[i].name;
    json_object_foreach(object, key, value)
    {
        int at = 0;
        while (at < count && strcmp(names[at], key) != 0)
            at++;
        if (at == count) {
            const char *near = args_nearest_key(key, names, count);
            return near ? cli_fail(app, EXIT_INPUT, "%s: unknown key \"%s\"; did you mean \"%s\"?", where, key, near)
                        : cli_fail(app, EXIT_INPUT, "%s: unknown key \"%s\"", where, key);
        }
        if (!json_is_null(value) && !take_field(value, &fields[at], f))
            return wrong_value(app, where, &fields[at], value);
    }
    return EXIT_DONE;
}

/* A result's "problem" names what follows from its file, its grid or its experts, too. */
static void forget_what_follows(problem_flags *f)
{
    int64_t *rows = problem_pattern_size(f, SPK_SIZE_PATTERN_ROWS), *cols = problem_pattern_size(f, SPK_SIZE_PATTERN_COLS);
    if (!rows || !cols)
        return;
    if (operation_at(f->op)->info.takes_pattern == SPK_PATTERN_OPTIONAL) { /* the sizes are fields of their own */
        f->density = f->file ? -1 : f->density;
        return;
    }
    if (f->file || f->cells.x)
        *rows = *cols = -1;
    if (f->pattern == SPK_GEN_EXPERTS)
        *(problem_is_transposed(f) ? cols : rows) = -1;
    if (f->file || f->cells.x || f->pattern == SPK_GEN_EXPERTS)
        f->density = -1;
}

/* Of flags that stand for values of one field, the one that the object gives takes the other's place in the options. */
static void take_turns(const json_t *object, problem_flags *f)
{
    for (int i = 0; i < settings_count(); i++)
        for (int j = 0; j < settings_count(); j++)
            if (settings_exclude(settings_at(i), settings_at(j)) && json_is_true(json_object_get(object, settings_at(i)->key)) &&
                !json_is_true(json_object_get(object, settings_at(j)->key)))
                f->set[j].index = 0;
}

int problem_from_json(const cli *app, json_t *object, const char *where, problem_flags *flags)
{
    problem_flags f = *flags;
    if (!json_is_object(object))
        return cli_fail(app, EXIT_INPUT, "%s: is not an object", where);
    spell_tokens(object);
    const bool is_whole = json_is_string(json_object_get(object, "epilogue")); /* says all of it */
    for (int i = 0; is_whole && i < settings_count(); i++)
        if (settings_at(i)->terms)
            f.set[i].index = 0;
    int code = take_keys(app, object, where, &f);
    if (code)
        return code;
    if (!f.block.rows != !f.block.cols)
        return cli_fail(app, EXIT_INPUT, "%s: \"block_rows\" and \"block_cols\" go together", where);
    const char *pattern = json_string_value(json_object_get(object, "pattern"));
    const bool of_result = pattern && strncmp(pattern, "file:", 5) == 0;
    if (f.file && !of_result && problem_is_generated(&f))
        return cli_fail(app, EXIT_INPUT,
                        "%s: \"%s\", \"%s\", \"density\", \"pattern\", \"cells\", \"experts\" and \"tokens\" describe a generated matrix; "
                        "they do not go with \"file\"",
                        where, problem_pattern_size_name(&f, SPK_SIZE_PATTERN_ROWS), problem_pattern_size_name(&f, SPK_SIZE_PATTERN_COLS));
    forget_what_follows(&f);
    take_turns(object, &f);
    code = problem_check_flags(app, &f, where);
    if (code == EXIT_DONE)
        *flags = f;
    return code;
}

/* A problem as JSON: written into results, read from lists of problems. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "problem.h"

static const char *const layout_names[] = {"row", "col"};

/* "none", or what takes part, joined with '+': "beta+bias_row+gelu_erf+residual+preact" ("factor" where the residual multiplies). */
static void epilogue_text(const spk_spmm *s, char *out, size_t size)
{
    static const char *const bias[] = {"", "+bias_row", "+bias_col"};
    static const char *const activation[] = {"", "+relu", "+gelu_erf", "+gelu_tanh", "+silu"};
    static const char *const residual[] = {"", "+residual", "+factor"};
    char text[96];
    snprintf(text, sizeof(text), "%s%s%s%s%s", s->use_c ? "+beta" : "", bias[s->bias], activation[s->activation], residual[s->residual],
             s->keep_preact ? "+preact" : "");
    snprintf(out, size, "%s", text[0] ? text + 1 : "none");
}

static spk_dtype compute_type(const spk_spmm *s)
{
    return s->compute ? s->compute : s->dtype_a == SPK_F64 ? SPK_F64 : SPK_F32;
}

json_t *problem_json(const problem *p)
{
    const spk_spmm *s = &p->spmm;
    char epilogue[96];
    epilogue_text(s, epilogue, sizeof(epilogue));
    json_t *o = json_object();
    json_put(o, "op", json_string(p->operation == SPK_SDDMM ? "sddmm" : "spmm"));
    json_put(o, "m", json_integer(p->m));
    json_put(o, "k", json_integer(p->k));
    json_put(o, "n", json_integer(p->n));
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
    json_put(o, "dtype", json_string(spk_dtype_name(s->dtype_a)));
    json_put(o, "dtype_d", json_string(spk_dtype_name(s->dtype_d)));
    json_put(o, "compute", json_string(spk_dtype_name(compute_type(s))));
    json_put(o, "trans_a", json_string(s->trans_a ? "t" : "n"));
    if (s->block_layout == SPK_COL_MAJOR)
        json_put(o, "block_layout", json_string("col"));
    if (p->operation == SPK_SDDMM)
        json_put(o, "layout_a", json_string(layout_names[p->sddmm.layout_x]));
    json_put(o, "layout_b", json_string(layout_names[s->layout_b]));
    json_put(o, "layout_d", json_string(layout_names[s->layout_d]));
    json_put(o, "epilogue", json_string(epilogue));
    json_put(o, "batch", json_integer(p->items));
    if (s->stride_a)
        json_put(o, "batch_values", json_boolean(true));
    json_put(o, "seed", json_integer((json_int_t)p->seed));
    json_put(o, "assume_finite", json_boolean(p->options.assume_finite));
    json_put(o, "static_values", json_boolean(p->options.static_values));
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

static bool take_epilogue(const char *text, problem_flags *f)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "+");
        char word[24];
        if (length >= sizeof(word))
            return false;
        memcpy(word, at, length);
        word[length] = 0;
        int activation = args_choice(PROBLEM_ACTIVATIONS, word);
        if (strcmp(word, "beta") == 0)
            f->use_c = 1;
        else if (strcmp(word, "bias_row") == 0)
            f->bias = SPK_BIAS_PER_ROW;
        else if (strcmp(word, "bias_col") == 0)
            f->bias = SPK_BIAS_PER_COL;
        else if (strcmp(word, "residual") == 0)
            f->residual = 1;
        else if (strcmp(word, "factor") == 0)
            f->factor = 1;
        else if (strcmp(word, "preact") == 0)
            f->keep_preact = 1;
        else if (activation >= 0)
            f->activation = activation;
        else
            return false;
        at += length + (at[length] == '+');
    }
    return true;
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
    char range[80];
    switch (f->kind) {
    case FIELD_INT:
    case FIELD_SIDE:
        snprintf(range, sizeof(range), "a whole number from %.10g to %.10g", f->low, f->high);
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
        takes = ARGS_DTYPES;
        near = text ? args_nearest_dtype(text) : NULL;
        break;
    case FIELD_PATTERN:
        takes = "a pattern of 'sparsek gen --help'";
        near = text ? args_nearest_pattern(text) : NULL;
        break;
    case FIELD_BLOCK:
        return cli_format("64 or \"64x32\", sides of 1 to 256");
    case FIELD_CELLS:
        return cli_format("20 or \"20x10x10\", each 1 or more");
    case FIELD_TOKENS:
        return cli_format("\"16-256\", \"16,200,31\" or [16, 200, 31]");
    case FIELD_EPILOGUE:
        return cli_format(
            "\"none\", or some of beta, bias_row, bias_col, relu, gelu_erf, gelu_tanh, silu, residual, factor and preact, joined with +");
    default:
        return cli_format("a text");
    }
    return near ? cli_format("%s; did you mean \"%s\"?", takes, near) : cli_format("%s", takes);
}

static int wrong_value(const cli *app, const char *where, const field *f, const json_t *value)
{
    char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12)),
         *takes = allowed(f, json_string_value(value));
    int code = cli_fail(app, EXIT_INPUT, "%s: \"%s\" has a wrong value, %.80s: it takes %s", where, f->name, dumped ? dumped : "?", takes);
    free(dumped);
    free(takes);
    return code;
}

int problem_from_json(const cli *app, json_t *object, const char *where, problem_flags *flags)
{
    problem_flags f = *flags;
    const double most = 2147483647;
    const field fields[] = {
        {"file", FIELD_TEXT, &f.file, NULL, 0, 0},
        {"tensor", FIELD_TEXT, &f.tensor, NULL, 0, 0},
        {"op", FIELD_CHOICE, &f.op, PROBLEM_OPERATIONS, 0, 0},
        {"m", FIELD_INT, &f.m, NULL, 0, most},
        {"k", FIELD_INT, &f.k, NULL, 0, most},
        {"n", FIELD_INT, &f.n, NULL, 0, most},
        {"block", FIELD_BLOCK, NULL, NULL, 0, 0},
        {"block_rows", FIELD_SIDE, &f.block.rows, NULL, 1, 256},
        {"block_cols", FIELD_SIDE, &f.block.cols, NULL, 1, 256},
        {"nnzb", FIELD_IGNORED, NULL, NULL, 0, 0},
        {"density", FIELD_REAL, &f.density, NULL, 0, 1},
        {"pattern", FIELD_PATTERN, NULL, NULL, 0, 0},
        {"cells", FIELD_CELLS, NULL, NULL, 0, 0},
        {"experts", FIELD_INT, &f.experts, NULL, 1, 1 << 30},
        {"tokens", FIELD_TOKENS, &f.tokens, NULL, 0, 0},
        {"dtype", FIELD_DTYPE, &f.dtype, NULL, 0, 0},
        {"dtype_d", FIELD_DTYPE, &f.dtype_d, NULL, 0, 0},
        {"compute", FIELD_CHOICE, &f.compute, PROBLEM_COMPUTES, 0, 0},
        {"trans_a", FIELD_CHOICE, &f.trans_a, "n|t", 0, 0},
        {"block_layout", FIELD_CHOICE, &f.block_layout, "row|col", 0, 0},
        {"layout_a", FIELD_CHOICE, &f.layout_a, "row|col", 0, 0},
        {"layout_b", FIELD_CHOICE, &f.layout_b, "row|col", 0, 0},
        {"layout_d", FIELD_CHOICE, &f.layout_d, "row|col", 0, 0},
        {"epilogue", FIELD_EPILOGUE, NULL, NULL, 0, 0},
        {"use_c", FIELD_BOOL, &f.use_c, NULL, 0, 0},
        {"bias", FIELD_CHOICE, &f.bias, PROBLEM_BIASES, 0, 0},
        {"activation", FIELD_CHOICE, &f.activation, PROBLEM_ACTIVATIONS, 0, 0},
        {"residual", FIELD_BOOL, &f.residual, NULL, 0, 0},
        {"factor", FIELD_BOOL, &f.factor, NULL, 0, 0},
        {"keep_preact", FIELD_BOOL, &f.keep_preact, NULL, 0, 0},
        {"batch", FIELD_INT, &f.batch, NULL, 1, most},
        {"batch_values", FIELD_BOOL, &f.batch_values, NULL, 0, 0},
        {"seed", FIELD_SEED, &f.seed, NULL, 0, 0},
        {"cache", FIELD_CHOICE, &f.cache, "cold|warm", 0, 0},
        {"assume_finite", FIELD_BOOL, &f.assume_finite, NULL, 0, 0},
        {"static_values", FIELD_BOOL, &f.static_values, NULL, 0, 0},
    };
    enum { COUNT = sizeof(fields) / sizeof(*fields) };
    const char *key, *names[COUNT];
    for (int i = 0; i < COUNT; i++)
        names[i] = fields[i].name;
    if (!json_is_object(object))
        return cli_fail(app, EXIT_INPUT, "%s: is not an object", where);
    json_t *value;
    spell_tokens(object);
    if (json_is_string(json_object_get(object, "epilogue"))) /* says all of it */
        f.use_c = f.bias = f.activation = f.residual = f.factor = f.keep_preact = 0;
    json_object_foreach(object, key, value)
    {
        int at = 0;
        while (at < COUNT && strcmp(names[at], key) != 0)
            at++;
        if (at == COUNT) {
            const char *near = args_nearest(key, names, COUNT);
            return near ? cli_fail(app, EXIT_INPUT, "%s: unknown key \"%s\"; did you mean \"%s\"?", where, key, near)
                        : cli_fail(app, EXIT_INPUT, "%s: unknown key \"%s\"", where, key);
        }
        if (!json_is_null(value) && !take_field(value, &fields[at], &f))
            return wrong_value(app, where, &fields[at], value);
    }
    if (!f.block.rows != !f.block.cols)
        return cli_fail(app, EXIT_INPUT, "%s: \"block_rows\" and \"block_cols\" go together", where);
    bool of_result =
        strncmp(json_string_value(json_object_get(object, "pattern")) ? json_string_value(json_object_get(object, "pattern")) : "",
                "file:", 5) == 0;
    if (f.file && !of_result && (f.m >= 0 || (f.op ? f.n : f.k) >= 0 || f.density >= 0 || f.pattern || f.cells.x || f.experts || f.tokens))
        return cli_fail(app, EXIT_INPUT,
                        "%s: \"m\", \"%s\", \"density\", \"pattern\", \"cells\", \"experts\" and \"tokens\" describe a generated matrix; "
                        "they do not go with \"file\"",
                        where, f.op ? "n" : "k");
    if (f.file || f.cells.x) { /* a result's "problem" names what follows from the file or the grid, too */
        f.m = *(f.op ? &f.n : &f.k) = -1;
        f.density = -1;
    }
    if (f.pattern == SPK_GEN_EXPERTS) { /* likewise the rows of experts */
        *(f.trans_a ? &f.k : &f.m) = -1;
        f.density = -1;
    }
    const bool adds = json_is_true(json_object_get(object, "residual")), multiplies = json_is_true(json_object_get(object, "factor"));
    if (adds != multiplies) /* one of them takes the other's place in the options */
        *(adds ? &f.factor : &f.residual) = 0;
    int code = problem_check_flags(app, &f, where);
    if (code == EXIT_DONE)
        *flags = f;
    return code;
}

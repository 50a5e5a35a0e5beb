/* The class of a problem in words. A key is "name=value;name=value|name=value;..."; what is as usual is left out. */
#include "cli/problem/class_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/text.h"
#include "cli/problem/operation.h"

typedef struct field {
    char text[64];
} field;

/* The value of a field, cut where it is long; "" where there is none. */
static field value_of(const char *key, const char *name)
{
    field f = {""};
    size_t length = strlen(name);
    for (const char *at = key; *at; at += strcspn(at, ";|"), at += *at != 0) {
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        size_t count = strcspn(at + length + 1, ";|");
        count = count < sizeof(f.text) ? count : sizeof(f.text) - 1;
        memcpy(f.text, at + length + 1, count);
        break;
    }
    return f;
}

static bool is(const char *key, const char *name, const char *value)
{
    return strcmp(value_of(key, name).text, value) == 0;
}

/* text and what the format makes, as one; frees text. */
__attribute__((format(printf, 2, 3))) static char *more(char *text, const char *format, ...)
{
    char added[256];
    va_list list;
    va_start(list, format);
    spk_vsnprintf(added, sizeof(added), format, list);
    va_end(list);
    char *longer = cli_format("%s%s", text, added);
    free(text);
    return longer;
}

/* "cpu:MODEL:t2:...": 2, or 0. */
static int threads_of(const char *device)
{
    const char *at = strncmp(device, "cpu:", 4) == 0 ? strstr(device + 4, ":t") : NULL;
    return at ? atoi(at + 2) : 0;
}

/* Products have a type of A and one of D; others have one for all, in t. */
static bool is_product(const char *key)
{
    return value_of(key, "a").text[0] != 0;
}

static char *with_types(char *text, const char *key)
{
    const field first = value_of(key, is_product(key) ? "a" : "t"), d = value_of(key, "d"), sums = value_of(key, "acc");
    text = more(text, "%s ", first.text);
    if (is_product(key) && strcmp(first.text, d.text) != 0)
        text = more(text, "to %s ", d.text);
    if (strcmp(sums.text, "tf32") == 0)
        text = more(text, "in tf32 ");
    return text;
}

/* The value of a size: keys have short names for some. */
static field size_of(const char *key, const spk_size_info *size)
{
    static const char *const names[][2] = {{"queries", "q"}, {"keys", "kv"}, {"depth", "d"}, {"depth_v", "dv"}};
    const char *name = size->name;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i][0]) == 0)
            name = names[i][1];
    return value_of(key, name);
}

/* "512x512 n=64 block 32x16": first the sizes of the pattern, where there is one. */
static char *with_sizes(char *text, const char *key, const operation *op)
{
    const field rows = value_of(key, "br"), cols = value_of(key, "bc");
    field last = {""};
    const char *between = "";
    for (int given = 0; given < 2; given++)
        for (int i = 0; i < op->info.size_count; i++) {
            const spk_size_info *size = &op->sizes[i];
            const field value = size_of(key, size);
            if ((size->usual == 0 && strcmp(value.text, last.text) == 0) ||
                (size->source != SPK_SIZE_PATTERN_ROWS && size->source != SPK_SIZE_PATTERN_COLS) != (given == 1))
                continue;
            if (given)
                text = more(text, "%s%s=%s", between[0] ? " " : "", size->name, value.text);
            else
                text = more(text, "%s%s", between, value.text);
            between = "x";
            last = value;
        }
    if (!rows.text[0])
        return text;
    text = more(text, " block %s", rows.text);
    return strcmp(rows.text, cols.text) != 0 ? more(text, "x%s", cols.text) : text;
}

/* Fields that are said with their value, unless it is the usual one. */
static char *with_values(char *text, const char *key)
{
    static const struct {
        const char *name, *usual, *before, *behind;
    } values[] = {{"nz", "", "about ", " blocks"},
                  {"h", "1", "", " heads"},
                  {"share", "1", "", " to one of K and V"},
                  {"items", "", "batch of about ", ""},
                  {"seqs", "", "about ", " sequences"},
                  {"win", "", "window of about ", ""},
                  {"seen", "", "about ", " keys a query"},
                  {"page", "", "pages of ", " keys"},
                  {"group", "none", "groups along ", ""},
                  {"ep", "none", "", ""},
                  {"scale", "", "scales ", ""}};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const field value = value_of(key, values[i].name);
        if (value.text[0] && strcmp(value.text, values[i].usual) != 0)
            text = more(text, ", %s%s%s", values[i].before, value.text, values[i].behind);
    }
    return text;
}

static char *with_extras(char *text, const char *key)
{
    static const struct {
        const char *name, *value, *words;
    } extras[] = {{"t", "t", "A transposed"},
                  {"lv", "c", "column-major blocks"},
                  {"la", "c", "X column-major"},
                  {"lb", "c", "B column-major"},
                  {"ld", "c", "D column-major"},
                  {"band", "left", "limit to the left"},
                  {"band", "band", "limits to both sides"},
                  {"band", "sinks", "sinks"},
                  {"band", "sinks_left", "sinks, limit to the left"},
                  {"band", "sinks_right", "sinks, limit to the right"},
                  {"band", "sinks_band", "sinks, limits to both sides"},
                  {"diag", "1", "diagonal bottom right"},
                  {"cap", "1", "soft cap"},
                  {"lse", "1", "LSE"},
                  {"lists", "groups", "a mask for each group of heads"},
                  {"lists", "heads", "a mask for each head"},
                  {"packing", "lengths", "key lengths"},
                  {"packing", "lengths_paged", "key lengths"},
                  {"tiles", "1", "tiles"},
                  {"cache", "warm", "warm"},
                  {"finite", "1", "finite inputs"},
                  {"static", "1", "static values"},
                  {"ix", "device", "indices on the device"}};
    if (is(key, "band", "right"))
        text = more(text, ", %s", value_of(key, "win").text[0] ? "limit to the right" : "causal");
    for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++)
        if (is(key, extras[i].name, extras[i].value))
            text = more(text, ", %s", extras[i].words);
    if (value_of(key, "among").text[0])
        text = more(text, ", of some kernels only");
    const int threads = threads_of(value_of(key, "dev").text);
    return threads ? more(text, ", %d thread%s", threads, threads == 1 ? "" : "s") : text;
}

/* The operation of a key that has all of its sizes; NULL: another version's. */
static const operation *operation_in(const char *key)
{
    const operation *op = NULL;
    for (int i = 0; operation_at(i); i++)
        if (is(key, "op", operation_at(i)->info.name))
            op = operation_at(i);
    for (int i = 0; op && i < op->info.size_count; i++)
        if (!size_of(key, &op->sizes[i]).text[0])
            return NULL;
    return op && value_of(key, is_product(key) ? "d" : "t").text[0] ? op : NULL;
}

char *class_words(const char *key)
{
    const operation *op = operation_in(key);
    if (!op)
        return cli_format("%s", key);
    char *text = op == operation_at(0) ? cli_format("%s", "") : cli_format("%s ", op->info.name);
    return with_extras(with_values(with_sizes(with_types(text, key), key, op), key), key);
}

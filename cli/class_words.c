/* The class of a problem in words. A key is "name=value;name=value|name=value;..."; what is as usual is left out. */
#include "class_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "operation.h"

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
    vsnprintf(added, sizeof(added), format, list);
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

static char *with_types(char *text, const char *key)
{
    const field a = value_of(key, "a"), d = value_of(key, "d"), sums = value_of(key, "acc");
    text = more(text, "%s ", a.text);
    if (strcmp(a.text, d.text) != 0)
        text = more(text, "to %s ", d.text);
    if (strcmp(sums.text, "tf32") == 0)
        text = more(text, "in tf32 ");
    return text;
}

/* "512x512 n=64 block 32x16": first the sizes of the pattern, where there is one. */
static char *with_sizes(char *text, const char *key, const operation *op)
{
    const field rows = value_of(key, "br"), cols = value_of(key, "bc");
    const char *between = "";
    for (int given = 0; given < 2; given++)
        for (int i = 0; i < op->info.size_count; i++) {
            const spk_size_info *size = &op->sizes[i];
            if ((size->source != SPK_SIZE_PATTERN_ROWS && size->source != SPK_SIZE_PATTERN_COLS) != (given == 1))
                continue;
            if (given)
                text = more(text, "%s%s=%s", between[0] ? " " : "", size->name, value_of(key, size->name).text);
            else
                text = more(text, "%s%s", between, value_of(key, size->name).text);
            between = "x";
        }
    if (!rows.text[0])
        return text;
    text = more(text, " block %s", rows.text);
    return strcmp(rows.text, cols.text) != 0 ? more(text, "x%s", cols.text) : text;
}

static char *with_extras(char *text, const char *key)
{
    static const struct {
        const char *name, *value, *words;
    } extras[] = {{"t", "t", "A transposed"},    {"lv", "c", "column-major blocks"}, {"la", "c", "X column-major"},
                  {"lb", "c", "B column-major"}, {"ld", "c", "D column-major"},      {"cache", "warm", "warm"},
                  {"finite", "1", "B finite"},   {"static", "1", "static values"},   {"ix", "device", "indices on the device"}};
    const field epilogue = value_of(key, "ep"), items = value_of(key, "items");
    if (value_of(key, "nz").text[0])
        text = more(text, ", about %s blocks", value_of(key, "nz").text);
    if (items.text[0])
        text = more(text, ", batch of about %s", items.text);
    if (epilogue.text[0] && strcmp(epilogue.text, "none") != 0)
        text = more(text, ", %s", epilogue.text);
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
        if (!value_of(key, op->sizes[i].name).text[0])
            return NULL;
    return op && value_of(key, "a").text[0] && value_of(key, "d").text[0] ? op : NULL;
}

char *class_words(const char *key)
{
    const operation *op = operation_in(key);
    if (!op)
        return cli_format("%s", key);
    char *text = op == operation_at(0) ? cli_format("%s", "") : cli_format("%s ", op->info.name);
    return with_extras(with_sizes(with_types(text, key), key, op), key);
}

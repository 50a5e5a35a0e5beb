/* The class of a problem in words. A key is "name=value;name=value|name=value;..."; what is as usual is left out. */
#include "class_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

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

static char *with_sizes(char *text, const char *key, bool sampled)
{
    const field rows = value_of(key, "br"), cols = value_of(key, "bc");
    text = more(text, "%sx%s %s=%s block %s", value_of(key, "m").text, value_of(key, sampled ? "n" : "k").text, sampled ? "k" : "n",
                value_of(key, sampled ? "k" : "n").text, rows.text);
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

char *class_words(const char *key)
{
    static const char *const needed[] = {"op", "a", "d", "m", "k", "n", "br", "bc", "nz"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!value_of(key, needed[i]).text[0])
            return cli_format("%s", key);
    const bool sampled = is(key, "op", "sddmm");
    char *text = is(key, "op", "spmm") ? cli_format("%s", "") : cli_format("%s ", value_of(key, "op").text);
    return with_extras(with_sizes(with_types(text, key), key, sampled), key);
}

/* Text that is made, and made fit for a shell or a terminal. */
#include "cli/base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/cli.h"
#include "cli/base/memory.h"

char *cli_vformat(const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    const int length = spk_vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text)
        spk_vsnprintf(text, (size_t)length + 1, format, list);
    return text;
}

char *cli_format(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = cli_vformat(format, list);
    va_end(list);
    if (!text) {
        fputs("sparsek: out of memory\n", stderr);
        exit(EXIT_RESOURCES);
    }
    return text;
}

char *cli_dashed(const char *name, int length)
{
    char *made = cli_format("%.*s", length, name);
    for (char *at = made; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return made;
}

char *cli_quoted(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./%@^";
    if (word[0] && strspn(word, plain) == strlen(word))
        return cli_format("%s", word);
    char *text = cli_alloc(4 * strlen(word) + 3, 1), *at = text;
    *at++ = '\'';
    for (const char *c = word; *c; c++)
        at += *c == '\'' ? sprintf(at, "'\\''") : sprintf(at, "%c", *c);
    *at = '\'';
    return text;
}

const char *cli_clean(const char *text)
{
    enum { KEPT = 8 };
    static char *kept[KEPT];
    static int next;
    size_t length = strlen(text);
    char *clean = cli_alloc(4 * length + 1, 1), *out = clean;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool second = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0; /* U+0080 to U+009F: control characters too */
        if (*at < ' ' || *at == 0x7F || second)
            out += sprintf(out, "\\x%02x", second ? at[1] : at[0]);
        else
            *out++ = (char)*at;
        at += second;
    }
    *out = 0;
    next = (next + 1) % KEPT;
    free(kept[next]);
    return kept[next] = clean;
}

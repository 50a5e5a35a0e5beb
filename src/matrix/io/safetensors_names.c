#include "matrix/io/safetensors_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_name(spk_name_list *names, const char *name)
{
    const char *separator = names->count > 0 ? ", " : "";
    const bool all_before = names->shown == names->count++;
    char quoted[SPK_QUOTE_ROOM];
    const size_t length = strlen(name), start = names->used + strlen(separator);
    if (names->shown == 0 && length + 2 > SPK_NAMES_BYTES) { /* a message about names names one, cut as it may be */
        spk_io_quote(quoted, name, length);
        names->used += (size_t)snprintf(names->text, sizeof names->text, "%s", quoted);
    } else if (all_before && start + length + 2 <= SPK_NAMES_BYTES) {
        names->used += (size_t)snprintf(names->text + names->used, sizeof names->text - names->used, "%s'%s'", separator, name);
        for (size_t i = start + 1; i <= start + length; i++)
            names->text[i] = names->text[i] >= ' ' && names->text[i] <= '~' ? names->text[i] : '?';
    } else {
        return;
    }
    names->shown++;
}

static int by_letters(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void spk_names_list(const char *asked, const char **all, size_t count, spk_name_list *names)
{
    if (count > 0)
        qsort(all, count, sizeof *all, by_letters);
    for (size_t i = 0; i < count; i++)
        if (asked != NULL && asked[0] != '\0' && strstr(all[i], asked) != NULL)
            add_name(names, all[i]);
    names->near = names->count > 0;
    for (size_t i = 0; i < count && !names->near; i++)
        add_name(names, all[i]);
    if (names->count > names->shown)
        snprintf(names->text + names->used, sizeof names->text - names->used, " and %lld more", (long long)(names->count - names->shown));
}

spk_status spk_names_fail(const char *file, const char *asked, const spk_name_list *names)
{
    char quoted[SPK_QUOTE_ROOM];
    if (asked == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "%s: name one of its tensors: %s%s", file, names->text,
                        names->count > names->shown ? "; a part of a name lists those that have it" : "");
    spk_io_quote(quoted, asked, strlen(asked));
    return spk_fail(SPK_ERR_ARGUMENT, "%s: holds no tensor %s, but%s %s", file, quoted, names->near ? " with it in the name" : "",
                    names->text);
}

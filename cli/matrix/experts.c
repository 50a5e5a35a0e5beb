/* How many tokens the experts of a mixture have, from the command line. */
#include "cli/matrix/experts.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"
#include "cli/io/messages.h"

static const int64_t MOST = 1 << 30;

/* A number at *text, which goes on behind it. */
static bool read_number(const char **text, int64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    long long value = strtoll(*text, &end, 10);
    *text = end;
    *out = value;
    return value <= MOST;
}

bool experts_read_range(const char *text, int64_t *least, int64_t *most)
{
    if (!read_number(&text, least) || *text++ != '-' || !read_number(&text, most))
        return false;
    return *text == '\0' && *least <= *most && *most > 0;
}

int64_t *experts_read_list(const char *text, int64_t *count)
{
    int64_t *list = cli_alloc(strlen(text) / 2 + 1, sizeof *list);
    *count = 0;
    while (read_number(&text, &list[*count])) {
        ++*count;
        if (*text == '\0')
            return list;
        if (*text++ != ',')
            break;
    }
    free(list);
    return NULL;
}

int experts_options(const cli *app, int64_t experts, const char *tokens, spk_generate *o, int64_t **list)
{
    int64_t count = 0;
    o->experts = experts;
    if (tokens == NULL || experts_read_range(tokens, &o->tokens_least, &o->tokens_most))
        return EXIT_DONE;
    o->tokens_least = o->tokens_most = 0;
    *list = experts_read_list(tokens, &count);
    if (*list == NULL)
        return cli_fail(app, EXIT_USAGE, "--tokens: '%s' is neither a range like 16-256 nor a list like 16,200,31", tokens);
    if (experts > 0 && experts != count) {
        free(*list);
        *list = NULL;
        return cli_fail(app, EXIT_USAGE, "--tokens names %lld experts, --experts %lld", (long long)count, (long long)experts);
    }
    o->experts = count;
    o->tokens = *list;
    return EXIT_DONE;
}

/* The options that commands share: their table, and what they say. */
#include "cli/args/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/help.h"
#include "cli/base/text.h"

void cli_common_options(args *a, cli *app, unsigned heeds)
{
    const args_option options[] = {
        {"json", 0, ARGS_FILE, &app->json, "FILE", 0, 0, "write the result as JSON to FILE; '-': to standard output, instead of text"},
        {"threads", 0, ARGS_INT, &app->threads, "N", 1, 1024, "threads (default: OMP_NUM_THREADS, else the processors at hand)"},
        {"device", 0, ARGS_DEVICE, &app->device, "NAME", 0, 0, "cpu, or an NVIDIA GPU: cuda (the first), cuda:1 and so on (default: cpu)"},
        {"effort", 0, ARGS_CHOICE, &app->effort, "measure|estimate|exhaustive", 0, 0,
         "how much to measure: the promising candidates, none, or all (default: measure)"},
        {"budget", 0, ARGS_REAL, &app->budget_s, "S", 0.001, 86400,
         heeds & HEEDS_EFFORT ? "seconds for measuring one problem (default: 2, on a GPU 5; none for --effort exhaustive)"
                              : "seconds for measuring one problem (default: none; a race takes 5 to 20 s mostly, 300 s at most)"},
        {"store", 0, ARGS_FILE, &app->store, "FILE", 0, 0,
         "the store (default: SPARSEK_STORE, else store.db in SPARSEK_CACHE_DIR or the user's cache folder)"},
        {"only", 0, ARGS_KERNELS, &app->only, "NAMES", 0, 0, "only these kernels, comma-separated"},
        {"exclude", 0, ARGS_KERNELS, &app->exclude, "NAMES", 0, 0, "without these kernels, comma-separated"},
        {"quiet", 'q', ARGS_FLAG, &app->quiet, NULL, 0, 0, "no text, notes, warnings or progress: errors and JSON alone"},
    };
    static const unsigned needs[] = {0, HEEDS_THREADS, HEEDS_DEVICE, HEEDS_EFFORT, HEEDS_BUDGET, HEEDS_STORE, HEEDS_KERNELS, HEEDS_KERNELS,
                                     0};
    const int first = a->count;
    args_add(a, "Common options", options, (int)(sizeof(options) / sizeof(*options)));
    for (int i = first; i < a->count; i++)
        a->idle[i] = needs[i - first] && !(needs[i - first] & heeds);
    a->brief = app->brief;
    a->visit = app->visit;
    a->visit_user = app->visit_user;
}

int cli_parse(args *a, int argc, char **argv)
{
    const int code = args_parse(a, argc, argv);
    return code == ARGS_HELP || code == ARGS_SHORT_HELP ? help_command(a, code == ARGS_HELP) : code;
}

void cli_visit(cli *app, const cli_command *command, void (*visit)(void *user, const args *a))
{
    char *argv[] = {(char *)command->name, NULL};
    app->brief = command->about;
    app->visit = visit;
    (void)command->run(app, 1, argv);
    app->visit = NULL;
}

/* text, and where there is a word " --name word"; frees text. */
static char *with_option(char *text, const char *name, const char *word)
{
    if (word == NULL)
        return text;
    char *quoted = cli_quoted(word), *longer = cli_format("%s --%s %s", text, name, quoted);
    free(quoted);
    free(text);
    return longer;
}

char *cli_common_text(const cli *app)
{
    char threads[24];
    snprintf(threads, sizeof threads, "%lld", (long long)app->threads);
    char *text = with_option(cli_format("%s", ""), "threads", app->threads ? threads : NULL);
    text = with_option(text, "device", app->device);
    text = with_option(text, "store", app->store);
    text = with_option(text, "only", app->only);
    return with_option(text, "exclude", app->exclude);
}

/* Of comma-separated names. */
static bool listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

bool cli_names(const cli *app, const char *kernel)
{
    return listed(app->only, kernel);
}

bool cli_leaves(const cli *app, const char *kernel)
{
    return (!app->only || cli_names(app, kernel)) && !listed(app->exclude, kernel);
}

void cli_tune_options(const cli *app, spk_tune_options *options)
{
    *options = (spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW};
    options->effort = (spk_effort)app->effort;
    options->budget_s = app->budget_s;
    options->only = app->only;
    options->exclude = app->exclude;
}

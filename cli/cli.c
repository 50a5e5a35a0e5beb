/* The frame of every subcommand: common options, the context, messages and exit codes. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/free_memory.h"
#include "files.h"
#include "help.h"
#include "output.h"
#include "progress.h"

bool cli_talks(const cli *app)
{
    progress_clear();
    return !app->quiet && !(app->json && strcmp(app->json, "-") == 0) && !files_take_stdout();
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

/* "sparsek COMMAND: kind: message" */
__attribute__((format(printf, 3, 0))) static void print_message(const cli *app, const char *kind, const char *format, va_list list)
{
    char *text = cli_vformat(format, list);
    progress_clear();
    fflush(stdout); /* what was printed before stands before, where both go to one file */
    fprintf(stderr, "sparsek%s%s: %s%s\n", app->command[0] ? " " : "", app->command, kind, text ? cli_clean(text) : "out of memory");
    free(text);
}

int cli_fail(const cli *app, int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(app, "", format, list);
    va_end(list);
    return code;
}

void cli_note(const cli *app, const char *format, ...)
{
    if (app->quiet)
        return;
    va_list list;
    va_start(list, format);
    print_message(app, "note: ", format, list);
    va_end(list);
}

int cli_exit_code(spk_status status)
{
    switch (status) {
    case SPK_OK:
        return EXIT_DONE;
    case SPK_ERR_ARGUMENT:
        return EXIT_USAGE;
    case SPK_ERR_UNSUPPORTED:
    case SPK_ERR_UNAVAILABLE:
    case SPK_ERR_NO_CANDIDATE:
        return EXIT_ABSENT;
    case SPK_ERR_IO: /* of a file to be read; writers say so themselves */
    case SPK_ERR_FORMAT:
        return EXIT_INPUT;
    case SPK_ERR_OUT_OF_MEMORY:
    case SPK_ERR_NO_SPACE:
        return EXIT_RESOURCES;
    case SPK_ERR_INTERRUPTED:
        return EXIT_INTERRUPTED;
    case SPK_ERR_UNKNOWN_CLASS:
    case SPK_ERR_INTERNAL:
        break;
    }
    return EXIT_SHORT;
}

int cli_status(const cli *app, const spk_context *context, spk_status status, const char *what)
{
    if (status == SPK_OK)
        return EXIT_DONE;
    const char *message = spk_last_error(context ? context : app->context);
    if (status == SPK_ERR_INTERRUPTED) {
        (void)cli_interrupted(); /* the work has ended; what is left to do is short */
        cli_note(app, "%s", message[0] ? message : "interrupted");
        return EXIT_INTERRUPTED;
    }
    return cli_fail(app, cli_exit_code(status), "%s%s%s", what ? what : "", what ? ": " : "",
                    message[0] ? message : spk_status_name(status));
}

void *cli_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    int64_t room;
    const bool fits = !__builtin_mul_overflow(count, size, &bytes);
    if (fits && !spk_memory_suffices(bytes, &room)) {
        fprintf(stderr, "sparsek: out of memory: %zu bytes are asked for; %lld are free\n", bytes, (long long)room);
        exit(EXIT_RESOURCES);
    }
    void *memory = fits ? calloc(count ? count : 1, size ? size : 1) : NULL;
    if (!memory) {
        fprintf(stderr, "sparsek: out of memory: %zu x %zu bytes\n", count, size);
        exit(EXIT_RESOURCES);
    }
    spk_memory_use(memory, bytes);
    return memory;
}

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

static void on_log(void *user, int level, const char *message)
{
    const cli *app = user;
    if (level > 1 || app->quiet)
        return;
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "sparsek %s: warning: %s\n", app->command, cli_clean(message));
}

int cli_context(cli *app, const char *store_path, int threads, spk_context **context)
{
    spk_context_options options = {SPK_SIZED(spk_context_options), .device = app->device, .store_path = store_path, .log = on_log,
                                   .log_user = app};
    options.threads = threads ? threads : (int)app->threads;
    if (context == &app->context && progress_wanted(app)) {
        options.progress = progress_step;
        options.progress_user = app;
    }
    spk_status status = spk_context_create(&options, context);
    if (status != SPK_OK)
        return cli_fail(app, cli_exit_code(status), "%s", spk_last_error(NULL));
    return EXIT_DONE;
}

/* The store's file, and those that SQLite and the locks keep beside it. */
static int add_store(const cli *app, const char *path)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal", ".lock"};
    int code = files_add(app, FILE_STORE, "the store", path);
    for (size_t i = 0; code == EXIT_DONE && i < sizeof(beside) / sizeof(*beside); i++) {
        char *own = cli_format("%s%s", path, beside[i]);
        code = files_add(app, FILE_STORE, "the store's own", own);
        free(own);
    }
    return code;
}

int cli_open(cli *app)
{
    int code = app->json ? output_check(app, "--json", app->json) : EXIT_DONE;
    if (code == EXIT_DONE)
        code = cli_context(app, app->store, 0, &app->context);
    if (code)
        return code;
    cli_watch(0, app->context);
    const char *store = spk_store_path(app->context);
    return store[0] ? add_store(app, store) : EXIT_DONE;
}

void cli_close(cli *app)
{
    cli_watch(0, NULL);
    cli_watch(1, NULL);
    spk_context_destroy(&app->context);
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
    *options = (spk_tune_options){SPK_SIZED(spk_tune_options)};
    options->effort = (spk_effort)app->effort;
    options->budget_s = app->budget_s;
    options->only = app->only;
    options->exclude = app->exclude;
}

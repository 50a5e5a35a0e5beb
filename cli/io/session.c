/* Opens the context of a command as its options say. */
#include "cli/io/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/base/text.h"
#include "cli/io/files.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/signals.h"

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

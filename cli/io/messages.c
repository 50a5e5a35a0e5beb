/* Messages: one line on stderr, below what was printed before; and the exit code of a status. */
#include "cli/io/messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/text.h"
#include "cli/io/progress.h"
#include "cli/io/signals.h"

static bool stdout_taken;

void cli_takes_stdout(void)
{
    stdout_taken = true;
}

bool cli_talks(const cli *app)
{
    progress_clear();
    return !app->quiet && !(app->json && strcmp(app->json, "-") == 0) && !stdout_taken;
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

void cli_interrupt_ends(const cli *app, bool at_once)
{
    if (!cli_signal_ends(at_once, !app->quiet) || !at_once)
        return;
    cli_note(app, "interrupted");
    exit(EXIT_INTERRUPTED);
}

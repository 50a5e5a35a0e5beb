/* What a command says on stderr, whether it prints text at all, and the exit code of what went wrong. */
#ifndef SPARSEK_CLI_IO_MESSAGES_H
#define SPARSEK_CLI_IO_MESSAGES_H

#include "cli/base/cli.h"

/* Human output is wanted: not --quiet, and standard output is not taken by JSON. Clears the line of progress for what is printed then. */
bool cli_talks(const cli *app);

/* A matrix or a result goes to standard output: the text stays out from now on. */
void cli_takes_stdout(void);

/* Prints "sparsek COMMAND: message" on stderr and returns code. */
__attribute__((format(printf, 3, 4))) int cli_fail(const cli *app, int code, const char *format, ...);

/* The same for a status of the library on app->context (context NULL: app->context's message). `what` names the work ("reading x.mtx").
 * Interruption prints nothing but a short note. */
int cli_status(const cli *app, const spk_context *context, spk_status status, const char *what);
int cli_exit_code(spk_status status);

/* A note on stderr, unless --quiet. */
__attribute__((format(printf, 2, 3))) void cli_note(const cli *app, const char *format, ...);

/* True: from now on Ctrl-C ends the program on the spot, since there is nothing to keep nor to remove (reading, generating,
 * converting); false: the work that follows stops by itself, and cleans up. */
void cli_interrupt_ends(const cli *app, bool at_once);

#endif

/* The context that a command works in, with the store and the log of its options. */
#ifndef SPARSEK_CLI_IO_SESSION_H
#define SPARSEK_CLI_IO_SESSION_H

#include "cli/base/cli.h"

/* Checks the common options, sees that --json can be written, opens the context. Returns an exit code. */
int cli_open(cli *app);

/* Closes what cli_open opened; accepts an app that was not opened. */
void cli_close(cli *app);

/* A further context with a store and a number of threads of its own (0: as the common options say); same log, no progress. */
int cli_context(cli *app, const char *store_path, int threads, spk_context **context);

#endif

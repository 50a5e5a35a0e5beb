/* Progress on stderr, on one line that is cleared again; only where stderr is a terminal. */
#ifndef SPARSEK_CLI_IO_PROGRESS_H
#define SPARSEK_CLI_IO_PROGRESS_H

#include "cli/base/cli.h"

/* stderr is a terminal and --quiet was not given. */
bool progress_wanted(const cli *app);

/* An spk_progress; user is the cli. Draws at most ten times a second. */
void progress_step(void *user, int64_t done, int64_t total, const char *what);

/* Begins a piece of work of unknown length: "writing a.mtx". */
void progress_phase(const cli *app, const char *what, const char *name);

/* Of several pieces of work, `at` of `count` begins, from 0: lines begin with that, and with how long the rest may take by the pace so far.
 * at = count: there are no more. */
void progress_part(int64_t at, int64_t count);

/* Removes the line before something else is printed. */
void progress_clear(void);

#endif

/* Signals that end the work, and what is to be removed where they end the program. */
#ifndef SPARSEK_CLI_IO_SIGNALS_H
#define SPARSEK_CLI_IO_SIGNALS_H

#include <stdbool.h>

#include <sparsek/sparsek.h>

void cli_catch_signals(void);

/* Makes Ctrl-C reach this context: place 0 is the command's own, 1 is free; NULL: none. */
void cli_watch(int place, spk_context *context);

/* Whether the first signal ends the program on the spot from now on, and whether it says so. True where one has come already. */
bool cli_signal_ends(bool at_once, bool says_so);

/* Names of what is being written, for a signal that ends the program: a file aside (kept, not copied), and the file in whose folder the
 * library, or this program, is making one whose name is not known yet. NULL: no more. */
typedef enum aside_writer { ASIDE_BY_LIBRARY, ASIDE_BY_PROGRAM, ASIDE_FOLDERS } aside_writer;
void cli_writes_aside(const char *name);
void cli_writes_in_folder_of(aside_writer writer, const char *target);

/* True once Ctrl-C (or SIGTERM, or SIGHUP) came. Whoever asks is about to end, and is given the time for that: without being asked, the
 * program ends a second after the signal. */
bool cli_interrupted(void);

#endif

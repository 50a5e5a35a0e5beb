/* The files of a command: what it reads and what it writes, so that no result lands on a matrix, on an input or on the store. */
#ifndef SPARSEK_CLI_IO_FILES_H
#define SPARSEK_CLI_IO_FILES_H

#include "cli/base/cli.h"

typedef enum file_use {
    FILE_READ,   /* an input */
    FILE_STORE,  /* the store, which several commands may write */
    FILE_MATRIX, /* a matrix that is written, whole or not at all: it may replace an input */
    FILE_RESULT  /* any other output: --json, --spy, --resume, an export */
} file_use;

/* Makes a file of this command known. `option` names it in messages: "--json", "OUT". EXIT_USAGE after a message where a result has a
 * matrix's ending or is the same file as another one of the command (through links too), and where standard input or output is taken
 * twice. */
int files_add(const cli *app, file_use use, const char *option, const char *path);

/* "-" as the library and the system know it; other paths as they are. */
const char *files_input(const char *path);
const char *files_output(const char *path);

/* Whether two paths are one file, through links; streams never are. */
bool files_same(const char *a, const char *b);

bool files_is_stdout(const char *path); /* "-" or "/dev/stdout" */

#endif

/* Output files: written aside and renamed, so that a path holds the old file or the whole new one. */
#ifndef SPARSEK_CLI_IO_OUTPUT_H
#define SPARSEK_CLI_IO_OUTPUT_H

#include "cli/base/cli.h"

/* Sees before long work that a matrix can be written to `path`: 0, or the exit code after a message. */
int output_probe(const cli *app, const char *path);

/* The same for the file of another output, `option`, which it makes known (files_add): it must be no matrix, no input and no folder. "-" is
 * standard output. */
int output_check(const cli *app, const char *option, const char *path);

/* Writes a file, or standard output ("-"); devices and pipes are written straight. Returns an exit code. */
int output_write(const cli *app, const char *path, const char *bytes, size_t count);

/* Flushes standard output. A reader that went away is no error; a full disk is. Returns `code`, or EXIT_RESOURCES. */
int output_finish(const cli *app, int code);

#endif

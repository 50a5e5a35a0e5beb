/* What a command is given, and what it returns: the common options, its context, exit codes. The program uses the library's public headers,
 * and of src/ those files of base/ and type/ that are compiled into it: cli_shared in cli/CMakeLists.txt has their names. */
#ifndef SPARSEK_CLI_BASE_CLI_H
#define SPARSEK_CLI_BASE_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

struct args;

/* Exit codes, part of the program's contract (docs/cli.md). */
enum {
    EXIT_DONE = 0,
    EXIT_SHORT = 1,     /* a check fell short */
    EXIT_USAGE = 2,     /* the command line is wrong */
    EXIT_INPUT = 3,     /* a file or its content is wrong */
    EXIT_ABSENT = 4,    /* a device, a library or a feature is not there */
    EXIT_RESOURCES = 5, /* out of memory or disk, or an output cannot be written */
    EXIT_INTERRUPTED = 130
};

typedef struct cli {
    const char *command;      /* "bench" */
    const char *command_line; /* as typed */
    spk_context *context;     /* made by cli_open, destroyed by main */
    const char *json, *device, *store, *only, *exclude;
    int64_t threads;
    int effort; /* spk_effort */
    int format; /* matrix_file of the matrix that is written; 0: by its name */
    double budget_s;
    int quiet, all;    /* all: tables list what did not run too */
    const char *brief; /* what the command does, in one line */
    void (*visit)(void *user,
                  const struct args *a); /* NULL, or who is told of the command's table of options; the command does nothing then */
    void *visit_user;
} cli;

#endif

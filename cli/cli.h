/* The command line's frame: what every subcommand shares. The program uses the library's public header only. */
#ifndef SPARSEK_CLI_H
#define SPARSEK_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <sparsek/sparsek.h>

#include "args.h"

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
    int quiet, all;                           /* all: tables list what did not run too */
    const char *brief;                        /* what the command does, in one line */
    void (*visit)(void *user, const args *a); /* NULL, or who is told of the command's table of options; the command does nothing then */
    void *visit_user;
} cli;

/* What a command heeds of the common options, beside --json and --quiet; the others are refused. */
enum { HEEDS_THREADS = 1, HEEDS_DEVICE = 2, HEEDS_EFFORT = 4, HEEDS_BUDGET = 8, HEEDS_STORE = 16, HEEDS_KERNELS = 32, HEEDS_ALL = 63 };
void cli_common_options(args *a, cli *app, unsigned heeds);

/* Parses the command's options (args_parse), and prints its help where that is asked for. ARGS_GO, or the exit code. */
int cli_parse(args *a, int argc, char **argv);

/* Those given of them that choose a class and its store, each after a space: " --device cuda:0 --threads 2". The caller frees it. */
char *cli_common_text(const cli *app);

/* Checks the common options, sees that --json can be written, opens the context. Returns an exit code. */
int cli_open(cli *app);

/* Closes what cli_open opened; accepts an app that was not opened. */
void cli_close(cli *app);

/* A further context with a store and a number of threads of its own (0: as the common options say); same log, no progress. */
int cli_context(cli *app, const char *store_path, int threads, spk_context **context);

/* Whether --only and --exclude leave a kernel, and whether --only names it. */
bool cli_leaves(const cli *app, const char *kernel);
bool cli_names(const cli *app, const char *kernel);

/* The option that shows what tables leave out. */
#define CLI_ALL_OPTION(app)                                                                               \
    {                                                                                                     \
        "all", 0, ARGS_FLAG, &(app)->all, NULL, 0, 0, "list those that did not run too, with the reasons" \
    }

/* Makes Ctrl-C reach this context: place 0 is app->context, 1 is free; NULL: none. */
void cli_watch(int place, spk_context *context);

/* Names of what is being written, for a signal that ends the program: a file aside (kept, not copied), and the file in whose folder the
 * library, or this program, is making one whose name is not known yet. NULL: no more. */
typedef enum aside_writer { ASIDE_BY_LIBRARY, ASIDE_BY_PROGRAM, ASIDE_FOLDERS } aside_writer;
void cli_writes_aside(const char *name);
void cli_writes_in_folder_of(aside_writer writer, const char *target);

/* True once Ctrl-C (or SIGTERM, or SIGHUP) came. Whoever asks is about to end, and is given the time for that: without being asked, the
 * program ends a second after the signal. */
bool cli_interrupted(void);
void cli_catch_signals(void);

/* True: from now on Ctrl-C ends the program on the spot, since there is nothing to keep nor to remove (reading, generating,
 * converting); false: the work that follows stops by itself, and cleans up. */
void cli_interrupt_ends(const cli *app, bool at_once);

/* Human output is wanted: not --quiet, and standard output is not taken by JSON. Clears the line of progress for what is printed then. */
bool cli_talks(const cli *app);

/* Prints "sparsek COMMAND: message" on stderr and returns code. */
__attribute__((format(printf, 3, 4))) int cli_fail(const cli *app, int code, const char *format, ...);

/* The same for a status of the library on app->context (context NULL: app->context's message). `what` names the work ("reading x.mtx").
 * Interruption prints nothing but a short note. */
int cli_status(const cli *app, const spk_context *context, spk_status status, const char *what);
int cli_exit_code(spk_status status);

/* A note on stderr, unless --quiet. */
__attribute__((format(printf, 2, 3))) void cli_note(const cli *app, const char *format, ...);

/* Memory of the program: exits with code 5 where there is none. */
void *cli_alloc(size_t count, size_t size);
__attribute__((format(printf, 1, 2))) char *cli_format(const char *format, ...);
__attribute__((format(printf, 1, 0))) char *cli_vformat(const char *format, va_list list); /* NULL where there is no memory */
char *cli_dashed(const char *name, int length);                                            /* as options have it: "depth-v" of "depth_v" */
char *cli_quoted(const char *word);                                                        /* as a shell reads it as one word */

/* A text of unknown origin (a file's name, a file's content) as it may reach a terminal: control characters as \x1b. Valid for the next
 * few calls. */
const char *cli_clean(const char *text);

/* The options for tuning that the common flags give. */
void cli_tune_options(const cli *app, spk_tune_options *options);

typedef struct cli_command {
    const char *name, *about;
    int (*run)(cli *app, int argc, char **argv);
} cli_command;

/* Has `visit` told of a command's table of options. */
void cli_visit(cli *app, const cli_command *command, void (*visit)(void *user, const args *a));

int cmd_info(cli *app, int argc, char **argv);
int cmd_bench(cli *app, int argc, char **argv);
int cmd_tune(cli *app, int argc, char **argv);
int cmd_explain(cli *app, int argc, char **argv);
int cmd_run(cli *app, int argc, char **argv);
int cmd_inspect(cli *app, int argc, char **argv);
int cmd_convert(cli *app, int argc, char **argv);
int cmd_gen(cli *app, int argc, char **argv);
int cmd_check(cli *app, int argc, char **argv);
int cmd_regret(cli *app, int argc, char **argv);
int cmd_cache(cli *app, int argc, char **argv);

#endif

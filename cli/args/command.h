/* A command: its row in the program's table, how its options are read, and those that it shares with the others. */
#ifndef SPARSEK_CLI_ARGS_COMMAND_H
#define SPARSEK_CLI_ARGS_COMMAND_H

#include "cli/args/args.h"
#include "cli/base/cli.h"

typedef struct cli_command {
    const char *name, *about;
    int (*run)(cli *app, int argc, char **argv);
} cli_command;

/* What a command heeds of the common options, beside --json and --quiet; the others are refused. */
enum { HEEDS_THREADS = 1, HEEDS_DEVICE = 2, HEEDS_EFFORT = 4, HEEDS_BUDGET = 8, HEEDS_STORE = 16, HEEDS_KERNELS = 32, HEEDS_ALL = 63 };
void cli_common_options(args *a, cli *app, unsigned heeds);

/* Parses the command's options (args_parse), and prints its help where that is asked for. ARGS_GO, or the exit code. */
int cli_parse(args *a, int argc, char **argv);

/* Has `visit` told of a command's table of options. */
void cli_visit(cli *app, const cli_command *command, void (*visit)(void *user, const args *a));

/* Those given of the common options that choose a class and its store, each after a space: " --device cuda:0 --threads 2". The caller frees
 * it. */
char *cli_common_text(const cli *app);

/* Whether --only and --exclude leave a kernel, and whether --only names it. */
bool cli_leaves(const cli *app, const char *kernel);
bool cli_names(const cli *app, const char *kernel);

/* The option that shows what tables leave out. */
#define CLI_ALL_OPTION(app)                                                                               \
    {                                                                                                     \
        "all", 0, ARGS_FLAG, &(app)->all, NULL, 0, 0, "list those that did not run too, with the reasons" \
    }

/* The options for tuning that the common flags give. */
void cli_tune_options(const cli *app, spk_tune_options *options);

#endif

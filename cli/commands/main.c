/* sparsek: finds the subcommand and runs it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args/completion.h"
#include "cli/args/help.h"
#include "cli/args/manual.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/matrix_file.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"

static const cli_command commands[] = {
    {"info", "CPU, threads, vendor libraries, kernels, store", cmd_info},
    {"bench", "race every implementation on one problem and show the times", cmd_bench},
    {"tune", "tune one problem or a list of problems and keep the answer", cmd_tune},
    {"explain", "why the stored choice for a problem won", cmd_explain},
    {"compute", "multiply matrices of files, or attend", cmd_compute},
    {"inspect", "structure of a matrix file, fill-in per block size, which block to take", cmd_inspect},
    {"convert", "convert a matrix file: format, blocks, pruning, data type", cmd_convert},
    {"gen", "generate a block-sparse matrix", cmd_gen},
    {"check", "compare every kernel with the oracle on random problems", cmd_check},
    {"regret", "how far the default tuning is from the best, on unseen problems", cmd_regret},
    {"store", "what was learned: path, list, export, import, merge, verify, clear", cmd_store},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(*commands) };

/* The command line as typed, quoted where a shell needs it; the program by its name alone. */
static char *command_line(int argc, char **argv)
{
    char *line = cli_format("sparsek");
    for (int i = 1; i < argc; i++) {
        char *word = cli_quoted(argv[i]), *longer = cli_format("%s %s", line, word);
        free(word);
        free(line);
        line = longer;
    }
    return line;
}

static const cli_command *find_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static bool is_file(const char *name)
{
    return matrix_is_name(name) || access(name, F_OK) == 0;
}

static int unknown_command(int argc, char **argv)
{
    const char *name = argv[1], *names[COMMAND_COUNT], *command = NULL;
    const bool option = name[0] == '-';
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    for (int i = 2; i < argc && option && !command; i++)
        command = find_command(argv[i]) ? argv[i] : NULL;
    const char *near = args_nearest_command(name, names, COMMAND_COUNT);
    fprintf(stderr, "sparsek: unknown %s '%s'", option ? "option" : "command", cli_clean(name));
    if (command)
        fprintf(stderr, ": a command's options come after it, as in 'sparsek %s %s'", command, cli_clean(name));
    else if (is_file(name) && args_other_command(name) == NULL) {
        char *quoted = cli_quoted(name);
        fprintf(stderr, "; 'sparsek inspect %s' shows what a matrix file holds", cli_clean(quoted));
        free(quoted);
    } else if (near || args_nearest_of(name, "--help|--version"))
        fprintf(stderr, "; did you mean '%s'?", near ? near : args_nearest_of(name, "--help|--version"));
    fputs("\nTry 'sparsek --help'.\n", stderr);
    return EXIT_USAGE;
}

/* help, help COMMAND, and help --format scd COMMAND: the source of its manual page, for the build. */
static int help(cli *app, int argc, char **argv)
{
    if (argc == 2)
        return help_program(commands, COMMAND_COUNT, true);
    if (argc == 3 && strcmp(argv[2], "completion") == 0)
        return completion_print(app, commands, COMMAND_COUNT, "--help");
    const bool manual = argc == 5 && strcmp(argv[2], "--format") == 0 && strcmp(argv[3], "scd") == 0;
    const cli_command *command = find_command(argv[argc - 1]);
    if ((argc != 3 && !manual) || !command) {
        char *words[] = {argv[0], argv[argc - 1]};
        return command ? cli_fail(app, EXIT_USAGE, "help: takes one COMMAND") : unknown_command(2, words);
    }
    if (manual) {
        cli_visit(app, command, manual_print);
        return EXIT_DONE;
    }
    char *words[] = {argv[2], (char[]){"--help"}, NULL};
    app->brief = command->about;
    return command->run(app, 2, words);
}

static int dispatch(cli *app, int argc, char **argv)
{
    if (argc < 2) {
        fputs("sparsek: needs a command\nTry 'sparsek --help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_program(commands, COMMAND_COUNT, argv[1][1] == '-');
    if (strcmp(argv[1], "--version") == 0) {
        printf("sparsek %s (%s)\n", spk_version(), spk_commit());
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(app, argc, argv);
    if (strcmp(argv[1], "completion") == 0)
        return argc == 3 ? completion_print(app, commands, COMMAND_COUNT, argv[2])
                         : cli_fail(app, EXIT_USAGE, "completion: needs a shell: bash, zsh or fish");
    const cli_command *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argc, argv);
    app->command = command->name;
    app->brief = command->about;
    return command->run(app, argc - 1, argv + 1);
}

/* Closed standard streams would be given to the next files that are opened, the store among them. What takes their places refuses as they
 * would: input cannot be read, and text for standard output that is lost counts as an output that cannot be written. */
static void open_streams(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
    for (int stream = 0; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            (void)open("/dev/null", modes[stream]); /* the lowest number that is free: this one */
}

int main(int argc, char **argv)
{
    open_streams();
    /* OpenBLAS' threads would spin for some 100 ms after each call, beside whatever runs next: 2^20 cycles are enough. No thread runs
     * yet. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
    char *line = command_line(argc, argv);
    cli app = {.command = "", .command_line = line};
    cli_catch_signals();
    int code = output_finish(&app, dispatch(&app, argc, argv));
    progress_clear();
    cli_close(&app);
    free(line);
    return code;
}

/* sparsek: finds the subcommand and runs it. */
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "help.h"
#include "output.h"
#include "progress.h"

static const cli_command commands[] = {
    {"info", "CPU, threads, vendor libraries, kernels, store", cmd_info},
    {"bench", "race every implementation on one problem and show the times", cmd_bench},
    {"tune", "tune one problem or a list of problems and keep the answer", cmd_tune},
    {"explain", "why the stored choice for a problem won", cmd_explain},
    {"run", "multiply two files", cmd_run},
    {"inspect", "structure of a matrix file, fill-in per block size, which block to take", cmd_inspect},
    {"convert", "convert a matrix file: format, blocks, pruning, data type", cmd_convert},
    {"gen", "generate a block-sparse matrix", cmd_gen},
    {"check", "compare every kernel with the oracle on random problems", cmd_check},
    {"regret", "how far the default tuning is from the best, on unseen problems", cmd_regret},
    {"cache", "the store: path, list, export, import, verify, clear", cmd_cache},
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

static int unknown_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *near = args_nearest(name, names, COMMAND_COUNT);
    fprintf(stderr, "sparsek: unknown %s '%s'", name[0] == '-' ? "option" : "command", cli_clean(name));
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs("\nTry 'sparsek --help'.\n", stderr);
    return EXIT_USAGE;
}

static int dispatch(cli *app, int argc, char **argv)
{
    if (argc < 2) {
        fputs("sparsek: needs a command\nTry 'sparsek --help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (strcmp(argv[1], "help") == 0 && argc == 2))
        return help_program(commands, COMMAND_COUNT);
    if (strcmp(argv[1], "--version") == 0) {
        printf("sparsek %s (%s)\n", spk_version(), spk_commit());
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "help") == 0) { /* sparsek help bench */
        argv[1] = argv[2];
        argv[2] = (char[]){"--help"};
        return dispatch(app, 3, argv);
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            app->command = commands[i].name;
            return commands[i].run(app, argc - 1, argv + 1);
        }
    return unknown_command(argv[1]);
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
    setlocale(LC_CTYPE, "");
    char *line = command_line(argc, argv);
    cli app = {.command = "", .command_line = line};
    cli_catch_signals();
    int code = output_finish(&app, dispatch(&app, argc, argv));
    progress_clear();
    cli_close(&app);
    free(line);
    return code;
}

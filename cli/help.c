/* Prints help from the tables of options, wrapped at 100 columns. */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { HELP_INDENT = 28, HELP_WIDTH = 100 };

static const char *placeholder(const args_option *o)
{
    if (o->values)
        return o->values;
    switch (o->kind) {
    case ARGS_INT:
    case ARGS_SEED:
        return "N";
    case ARGS_REAL:
        return "X";
    case ARGS_SHARE:
        return "SHARE";
    case ARGS_BLOCK:
        return "R[xC]";
    case ARGS_CELLS:
        return "X[xYxZ]";
    case ARGS_DTYPE:
        return "f32|f64|f16|bf16";
    case ARGS_PATTERN:
        return "PATTERN";
    case ARGS_KERNELS:
        return "NAMES";
    default:
        return "TEXT";
    }
}

static void wrapped(const char *text)
{
    int column = HELP_INDENT;
    for (bool first = true; *text; first = false) {
        int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void option_help(const args_option *o)
{
    char left[128];
    int length = snprintf(left, sizeof(left), "  %s%s--%s", o->letter ? (char[]){'-', o->letter, 0} : "", o->letter ? ", " : "", o->name);
    if (o->kind != ARGS_FLAG)
        length += snprintf(left + length, sizeof(left) - (size_t)length, " %s", placeholder(o));
    if (length + 2 > HELP_INDENT)
        printf("%s\n%*s", left, HELP_INDENT, "");
    else
        printf("%-*s", HELP_INDENT, left);
    wrapped(o->help);
}

int help_command(const args *a)
{
    printf("Usage: sparsek %s %s\n\n%s\n", a->command, a->synopsis, a->about);
    for (int i = 0; i < a->count; i++) {
        if (a->group[i])
            printf("\n%s:\n", a->group[i]);
        option_help(&a->list[i]);
    }
    printf("  -h, --help                this text\n\nExamples:\n");
    for (const char *at = a->examples; *at;) {
        int length = (int)strcspn(at, "\n");
        printf("  %.*s\n", length, at);
        at += length + (at[length] == '\n');
    }
    return EXIT_DONE;
}

int help_program(const cli_command *commands, int count)
{
    printf("Usage: sparsek COMMAND [options]\n\n"
           "Block-sparse times dense matrix multiplication: measures every implementation that this machine has,\n"
           "proves each right, remembers the fastest and runs it.\n\nCommands:\n");
    for (int i = 0; i < count; i++)
        printf("  %-10s%s\n", commands[i].name, commands[i].about);
    printf("\n'sparsek COMMAND --help' lists a command's options with units and defaults.\n\n"
           "Options:\n"
           "  -h, --help  this text\n"
           "  --version   version and source revision\n\n"
           "Exit codes: 0 done; 1 a check fell short; 2 wrong command line; 3 bad input; 4 a device or library is\n"
           "not there; 5 out of memory or disk; 130 interrupted (what was measured is kept).\n\n"
           "Environment: SPARSEK_STORE (the store's file), SPARSEK_CACHE_DIR (the folder of store.db), SPARSEK_MKL,\n"
           "SPARSEK_OPENBLAS, SPARSEK_CUDA, SPARSEK_NVRTC, SPARSEK_CUBLASLT, SPARSEK_CUBLAS, SPARSEK_CUSPARSE and SPARSEK_NVML (full\n"
           "paths of libraries, or none), SPARSEK_PROVER (the program that proves kernels), OMP_NUM_THREADS, NO_COLOR, COLUMNS.\n\n"
           "Example:\n"
           "  sparsek bench --m 2048 --k 2048 --n 512 --block 64 --density 10%% --assume-finite\n");
    return EXIT_DONE;
}

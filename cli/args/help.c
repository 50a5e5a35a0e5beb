/* Prints help from the tables of options, wrapped to the terminal's width. */
#include "cli/args/help.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "type/names.h"
#include "type/tile.h"
#include "type/type.h"

enum { NARROW = 72, INDENT_NARROW = 6, INDENT_SHORT = 24, INDENT_WHOLE = 28, SHORT_TEXT = 54 };

const char *help_placeholder(const args_option *o)
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
    case ARGS_SCALE:
        return "TILE";
    case ARGS_DTYPE:
        return SPK_TYPES_OF_MATRICES;
    case ARGS_PATTERN:
        return "PATTERN";
    case ARGS_KERNELS:
        return "NAMES";
    default:
        return "TEXT";
    }
}

static char *pattern_names(void)
{
    const char *names[ARGS_MOST_PATTERNS];
    char *text = cli_format("%s", "");
    for (int i = 0, count = args_patterns(names); i < count; i++) {
        char *longer = cli_format("%s%s%s", text, i ? ", " : "", names[i]);
        free(text);
        text = longer;
    }
    return text;
}

char *help_text(const args_option *o)
{
    const double most = 1e9, unlimited = 1e15; /* as good as no limit */
    const bool number = o->kind == ARGS_INT || o->kind == ARGS_REAL;
    char words[SPK_TILE_LIST_TEXT];
    if (number && (o->high < most || o->low > 1) && o->high < unlimited)
        return cli_format("%s; %.10g to %.10g", o->help, o->low, o->high);
    if (o->kind == ARGS_SEED)
        return cli_format("%s; 0 to 2^63-1, 0x... too", o->help);
    if (o->kind == ARGS_BLOCK)
        return cli_format("%s; sides of 1 to 256", o->help);
    if (o->kind == ARGS_SCALE)
        return cli_format("%s; %s, or a tile such as 1x128 or allx128", o->help, spk_tile_words("", words, sizeof(words)));
    if (o->kind == ARGS_PATTERN) {
        char *names = pattern_names(), *text = cli_format("%s; one of %s", o->help, names);
        free(names);
        return text;
    }
    return cli_format("%s", o->help);
}

/* "rows of op(A) (default: 2048)" of "rows of op(A); of sddmm: of X (default: 2048; for a file its own)". */
static char *short_text(const args_option *o)
{
    const char *end = strstr(o->help, "; "), *aside = strstr(o->help, " ("), *given = strstr(o->help, "(default: ");
    int length = (int)(end && (!aside || end < aside) ? end - o->help : aside ? aside - o->help : (long)strlen(o->help));
    const size_t sentence = strcspn(o->help, ":,");
    if (length > SHORT_TEXT && (int)sentence < length)
        length = (int)sentence;
    int value = given ? (int)strcspn(given + strlen("(default: "), ";,)") : 0;
    if (given && length + value + 12 <= SHORT_TEXT)
        return cli_format("%.*s (default: %.*s)", length, o->help, value, given + strlen("(default: "));
    return cli_format("%.*s", length, o->help);
}

static void print_entry(const char *left, const char *text, int indent)
{
    const int width = term_text_width();
    int column = printf("%s", left);
    indent = width < NARROW ? INDENT_NARROW : indent;
    if (column + 2 > indent) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", indent - column, "");
    term_words(text, (int)strlen(text), indent, indent, width);
    putchar('\n');
}

static void option_help(const args_option *o, bool whole)
{
    const bool takes = o->kind != ARGS_FLAG, lists = o->kind == ARGS_CHOICE || o->kind == ARGS_DTYPE;
    const char *value = takes ? !whole && lists && strlen(help_placeholder(o)) > 12 ? "NAME" : help_placeholder(o) : "";
    char *left =
        cli_format("  %s%s--%s%s%s", o->letter ? (char[]){'-', o->letter, 0} : "", o->letter ? ", " : "", o->name, takes ? " " : "", value);
    char *text = whole ? help_text(o) : short_text(o);
    print_entry(left, text, whole ? INDENT_WHOLE : INDENT_SHORT);
    free(left);
    free(text);
}

/* "Usage: sparsek compute A B -o D [options]" */
static void print_usage(const args *a)
{
    char *usage = cli_format("Usage: sparsek %s %s", a->command, a->synopsis);
    term_words(usage, (int)strlen(usage), 0, 4, term_text_width());
    puts("\n");
    free(usage);
}

/* Lines of commands; one that is too long is broken behind a backslash, so that it can be copied. */
static void print_examples(const char *examples)
{
    const int width = term_text_width();
    for (const char *at = examples; *at;) {
        const int length = (int)strcspn(at, "\n");
        int column = printf("  ");
        for (const char *word = at; word < at + length;) {
            int size = 1 + (int)strcspn(word + 1, "\n"); /* up to the next option: a value stays with its option */
            for (int i = 1; i < size; i++)
                if (word[i] == ' ' && word[i + 1] == '-' && (word[i + 2] < '0' || word[i + 2] > '9'))
                    size = i;
            if (word > at && column + size + 2 > width)
                column = printf(" \\\n     ") - 3;
            column += printf("%.*s", size, word);
            word += size;
        }
        putchar('\n');
        at += length + (at[length] == '\n');
    }
}

static bool listed(const char *words, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

static int short_help(const args *a)
{
    print_usage(a);
    char *brief = cli_format("%c%s.", spk_capital(a->brief[0]), a->brief + 1);
    term_paragraph(brief, 0);
    free(brief);
    puts("\nOptions used most:");
    for (int i = 0; i < a->count; i++)
        if (!a->idle[i] && listed(a->often, a->list[i].name))
            option_help(&a->list[i], false);
    char *more =
        cli_format("'sparsek %s --help' tells of all options, with examples; 'man sparsek-%s' has the same.", a->command, a->command);
    putchar('\n');
    term_paragraph(more, 0);
    free(more);
    return EXIT_DONE;
}

int help_command(const args *a, bool whole)
{
    if (!whole)
        return short_help(a);
    const char *title = NULL;
    print_usage(a);
    term_text(a->about);
    for (int i = 0; i < a->count; i++) {
        title = a->group[i] ? a->group[i] : title;
        if (a->idle[i])
            continue;
        if (title)
            printf("\n%s:\n", title);
        title = NULL;
        option_help(&a->list[i], true);
    }
    puts("\nHelp:");
    print_entry("  -h", "the options used most, on one screen", INDENT_WHOLE);
    print_entry("  --help", "this text", INDENT_WHOLE);
    puts("\nExamples:");
    print_examples(a->examples);
    return EXIT_DONE;
}

int help_program(const cli_command *commands, int count, bool whole)
{
    puts("Usage: sparsek COMMAND [options]\n");
    term_paragraph("Block-sparse times dense matrix multiplication: measures every implementation that this machine has, proves each "
                   "right, remembers the fastest "
                   "and runs it.",
                   0);
    puts("\nCommands:");
    for (int i = 0; i < count; i++) {
        char *left = cli_format("  %s", commands[i].name);
        print_entry(left, commands[i].about, 12);
        free(left);
    }
    putchar('\n');
    term_paragraph(
        "'sparsek COMMAND -h' lists a command's most used options, 'sparsek COMMAND --help' all of them with units and defaults.", 0);
    if (!whole) {
        term_paragraph("'sparsek --help' tells of exit codes and the environment.", 0);
        return EXIT_DONE;
    }
    term_text("\nOptions:\n"
              "  -h  the commands\n"
              "  --help  this text\n"
              "  --version  version and source revision\n"
              "\nExit codes: 0 done; 1 a check fell short; 2 wrong command line; 3 bad input; 4 a device or library is not there; 5 out of "
              "memory or disk; "
              "130 interrupted (what was measured is kept).\n"
              "\nEnvironment: SPARSEK_STORE (the store's file), SPARSEK_CACHE_DIR (the folder of store.db), SPARSEK_MKL, SPARSEK_OPENBLAS, "
              "SPARSEK_BLIS, "
              "SPARSEK_ONEDNN, "
              "SPARSEK_CUDA, "
              "SPARSEK_NVRTC, SPARSEK_CUBLASLT, SPARSEK_CUBLAS, SPARSEK_CUSPARSE, SPARSEK_CUDNN and SPARSEK_NVML (full paths of libraries, "
              "or none), "
              "SPARSEK_PROVER (the program "
              "that proves kernels), SPARSEK_CUDA_PROCESSORS (most multiprocessors), OMP_NUM_THREADS, NO_COLOR, COLUMNS.\n"
              "\nCompletion for the shell: 'sparsek completion bash', zsh or fish prints it.\n"
              "\nExamples:");
    print_examples("sparsek inspect matrix.mtx\nsparsek bench --m 2048 --k 2048 --n 512 --block 64 --density 10% --assume-finite\n");
    return EXIT_DONE;
}

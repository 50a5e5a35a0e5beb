/* Writes manual pages for scdoc. */
#include "cli/args/manual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/args/help.h"
#include "cli/base/term.h"

/* Text whose marks are none. */
static void plain(const char *text, int length)
{
    for (int i = 0; i < length; i++) {
        if (strchr("\\*_#~<>[]|", text[i]))
            putchar('\\');
        putchar(text[i]);
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n';
}

static void plain_words(const char *text, int length)
{
    for (int i = 0; i < length;) {
        int word = 0;
        while (i + word < length && !is_space(text[i + word]))
            word++;
        plain(text + i, word);
        i += word;
        if (i < length)
            putchar(' ');
        while (i < length && is_space(text[i]))
            i++;
    }
}

static void option(const args_option *o)
{
    char *text = help_text(o);
    if (o->letter)
        printf("*-%c*, ", o->letter);
    printf("*--%s*", o->name);
    if (o->kind != ARGS_FLAG) {
        putchar(' ');
        plain(help_placeholder(o), (int)strlen(help_placeholder(o)));
    }
    fputs("\n\t", stdout);
    putchar(spk_capital(text[0]));
    plain_words(text + 1, (int)strlen(text + 1));
    puts(".\n");
    free(text);
}

static void description(const char *about)
{
    while (*about) {
        const term_piece p = term_next(&about);
        if (p.length == 0)
            continue;
        if (p.entry) {
            putchar('*');
            plain(p.name, p.name_length);
            fputs("*\n\t", stdout);
        }
        plain_words(p.text, p.length);
        puts("\n");
    }
}

static void examples(const char *text)
{
    puts("# EXAMPLES\n");
    while (*text) {
        const int length = (int)strcspn(text, "\n");
        putchar('\t');
        plain(text, length);
        puts("\n");
        text += length + (text[length] == '\n');
    }
}

void manual_print(void *user, const args *a)
{
    const char *title = NULL;
    (void)user;
    printf("sparsek-%s(1)\n\n# NAME\n\nsparsek-%s - %s\n\n# SYNOPSIS\n\n*sparsek %s* ", a->command, a->command, a->brief, a->command);
    plain(a->synopsis, (int)strlen(a->synopsis));
    puts("\n\n# DESCRIPTION\n");
    description(a->about);
    puts("# OPTIONS\n");
    for (int i = 0; i < a->count; i++) {
        title = a->group[i] ? a->group[i] : title;
        if (a->idle[i])
            continue;
        if (title)
            printf("## %s\n\n", title);
        title = NULL;
        option(&a->list[i]);
    }
    puts("*-h*\n\tThe options used most, on one screen.\n\n*--help*\n\tAll options.\n");
    examples(a->examples);
    puts("# SEE ALSO\n\n*sparsek*(1), which tells of exit codes and the environment.");
}

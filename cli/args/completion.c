/* Writes the scripts: what is fixed is text, what depends on commands and options comes from the tables. */
#include "cli/args/completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/help.h"
#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "type/names.h"
#include "type/type.h"

#define MATRIX_ENDINGS "mtx|smtx|npy|safetensors"

/* The words that an option's value may be, space-separated; NULL: there is no list. The caller frees it. */
static char *words_of(args_kind kind, const char *values)
{
    const char *names[256];
    int count = 0;
    char *text;
    if (kind == ARGS_PATTERN) {
        count = args_patterns(names);
    } else if (kind == ARGS_KERNELS) {
        for (int i = 0; i < spk_kernel_count() && count < 256; i++) {
            spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
            if (spk_kernel_get_info(i, &info) == SPK_OK)
                names[count++] = info.name;
        }
    } else if (kind == ARGS_CHOICE || kind == ARGS_DTYPE || kind == ARGS_DEVICE) {
        text = cli_format("%s", kind == ARGS_DTYPE && !values ? SPK_TYPES_OF_MATRICES : kind == ARGS_DEVICE ? "cpu|cuda" : values);
        for (char *at = text; *at; at++)
            *at = *at == '|' ? ' ' : *at;
        return text;
    } else {
        return NULL;
    }
    text = cli_format("%s", "");
    for (int i = 0; i < count; i++) {
        char *longer = cli_format("%s%s%s", text, i ? " " : "", names[i]);
        free(text);
        text = longer;
    }
    return text;
}

static void visit_all(cli *app, const cli_command *commands, int count, void (*visit)(void *, const args *))
{
    for (int i = 0; i < count; i++)
        cli_visit(app, &commands[i], visit);
}

/* Up to the first place where a reader may stop, without what the shells' quotes do not bear. */
static char *told(const char *help)
{
    const char *end = strstr(help, "; "), *aside = strstr(help, " (");
    size_t length = end && (!aside || end < aside) ? (size_t)(end - help) : aside ? (size_t)(aside - help) : strlen(help);
    char *text = cli_format("%.*s", (int)length, help);
    for (char *at = text; *at; at++)
        if (strchr("'[]:\\\"`$", *at))
            *at = ' ';
    return text;
}

/* ------------------------------------------------------------------------------------------------ bash */

static void bash_value(const char *command, const args_option *o)
{
    if (o->kind == ARGS_FLAG)
        return;
    char *words = words_of(o->kind, o->values);
    printf("    '%s --%s'", command, o->name);
    if (o->letter)
        printf(" | '%s -%c'", command, o->letter);
    if (o->kind == ARGS_KERNELS)
        printf(") _sparsek_list '%s' ;;\n", words);
    else if (words)
        printf(") _sparsek_words '%s' ;;\n", words);
    else
        printf(") %s ;;\n", o->kind == ARGS_MATRIX ? "_sparsek_files 1" : o->kind == ARGS_FILE ? "_sparsek_files" : ":");
    free(words);
}

static void bash_values(void *user, const args *a)
{
    (void)user;
    for (int i = 0; i < a->count; i++)
        if (!a->idle[i])
            bash_value(a->command, &a->list[i]);
}

static void bash_operands(void *user, const args *a)
{
    char *words = words_of(a->operand_kind, a->operand_values);
    (void)user;
    printf("    '%s') options='", a->command);
    for (int i = 0; i < a->count; i++)
        if (!a->idle[i])
            printf("--%s ", a->list[i].name);
    printf("--help'; operands='%s'; files=%s ;;\n", words ? words : "",
           a->operand_kind == ARGS_MATRIX ? "1"
           : a->max_operands > 1          ? "any"
                                          : "");
    free(words);
}

static const char bash_begin[] =
    "# bash completion for sparsek\n"
    "_sparsek_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
    "_sparsek_list() { # the last of comma-separated names\n"
    "    local head=''\n"
    "    [[ $cur == *,* ]] && head=${cur%,*},\n"
    "    mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$1\" -- \"${cur##*,}\")\n"
    "    type compopt &>/dev/null && compopt -o nospace 2>/dev/null\n"
    "}\n"
    "_sparsek_files() { # with an argument: matrix files and folders only\n"
    "    local file\n"
    "    while IFS= read -r file; do\n"
    "        [[ -z $1 || -d $file || ${file,,} =~ \\.(" MATRIX_ENDINGS ")(\\.gz)?$ ]] && COMPREPLY+=(\"$file\")\n"
    "    done < <(compgen -f -- \"$cur\")\n"
    "    type compopt &>/dev/null && compopt -o filenames 2>/dev/null\n"
    "}\n"
    "_sparsek() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' options='' operands='' files='' i\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == = ]]; then # --name=value comes as three words\n"
    "        cur=''\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}\n"
    "    if [[ -z $command ]]; then\n"
    "        _sparsek_words '";

static void bash(cli *app, const cli_command *commands, int count)
{
    fputs(bash_begin, stdout);
    for (int i = 0; i < count; i++)
        printf("%s ", commands[i].name);
    puts("help --help --version'\n        return\n    fi\n    case \"$command $prev\" in");
    visit_all(app, commands, count, bash_values);
    puts("    *) prev= ;;\n    esac\n    [[ -n $prev ]] && return\n    case $command in");
    visit_all(app, commands, count, bash_operands);
    printf("    help) operands='");
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", commands[i].name);
    puts("' ;;\n"
         "    completion) operands='bash zsh fish' ;;\n"
         "    esac\n"
         "    if [[ $cur == -* ]]; then\n"
         "        _sparsek_words \"$options\"\n"
         "    elif [[ $files == 1 ]]; then\n"
         "        _sparsek_files 1\n"
         "    elif [[ -n $operands ]] && ((COMP_CWORD == 2)); then\n"
         "        _sparsek_words \"$operands\"\n"
         "    elif [[ $files == any ]]; then\n"
         "        _sparsek_files\n"
         "    fi\n"
         "}\n"
         "complete -F _sparsek sparsek");
}

/* ------------------------------------------------------------------------------------------------ zsh */

static void zsh_action(args_kind kind, const char *values)
{
    char *words = words_of(kind, values);
    if (kind == ARGS_KERNELS)
        printf("_values -s , kernel %s", words);
    else if (words)
        printf("(%s)", words);
    else
        fputs(kind == ARGS_MATRIX ? "_sparsek_matrix" : kind == ARGS_FILE ? "_files" : " ", stdout);
    free(words);
}

static void zsh_command(void *user, const args *a)
{
    (void)user;
    printf("    %s) _arguments", a->command);
    for (int i = 0; i < a->count; i++) {
        const args_option *o = &a->list[i];
        if (a->idle[i])
            continue;
        char *text = told(o->help);
        for (int form = o->letter ? 0 : 1; form < 2; form++) {
            printf(" \\\n        '");
            printf(form ? "--%s" : "-%.1s", form ? o->name : (char[]){o->letter, 0});
            printf("%s[%s]", o->kind == ARGS_FLAG ? "" : form ? "=" : "+", text);
            if (o->kind != ARGS_FLAG) {
                printf(":%s:", o->kind == ARGS_CHOICE || o->kind == ARGS_DTYPE ? "value" : help_placeholder(o));
                zsh_action(o->kind, o->values);
            }
            putchar('\'');
        }
        free(text);
    }
    fputs(" \\\n        '(-h --help)'{-h,--help}'[help]'", stdout);
    if (a->max_operands > 0 && a->operand_kind != ARGS_MATRIX) {
        fputs(" \\\n        '1:word:", stdout);
        zsh_action(a->operand_kind, a->operand_values);
        puts(a->max_operands > 1 ? "' '2:file:_files' ;;" : "' ;;");
    } else {
        puts(a->max_operands > 0 ? " \\\n        '*:matrix:_sparsek_matrix' ;;" : " ;;");
    }
}

static void zsh(cli *app, const cli_command *commands, int count)
{
    puts("#compdef sparsek\n"
         "_sparsek_matrix() { _files -g '(#i)*.(" MATRIX_ENDINGS ")(|.gz)(-.)' }\n"
         "_sparsek() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (int i = 0; i < count; i++) {
        char *text = told(commands[i].about);
        printf("        '%s:%s'\n", commands[i].name, text);
        free(text);
    }
    puts("        'help:the help of a command'\n"
         "    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command commands\n"
         "        _arguments '--help[help]' '--version[version and source revision]'\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case $command in");
    visit_all(app, commands, count, zsh_command);
    puts("    help) _describe command commands ;;\n"
         "    completion) _values shell bash zsh fish ;;\n"
         "    esac\n"
         "}\n"
         "if [[ $funcstack[1] == _sparsek ]]; then\n"
         "    _sparsek \"$@\"\n"
         "else\n"
         "    compdef _sparsek sparsek\n"
         "fi");
}

/* ------------------------------------------------------------------------------------------------ fish */

static void fish_action(args_kind kind, const char *values)
{
    char *words = words_of(kind, values);
    if (kind == ARGS_KERNELS)
        printf(" -x -a '(__fish_complete_list , \"string split \\\" \\\" \\\"%s\\\"\")'", words);
    else if (words)
        printf(" -x -a '%s'", words);
    else if (kind == ARGS_MATRIX)
        fputs(" -x -k -a '(__sparsek_matrix)'", stdout);
    else
        fputs(kind == ARGS_FILE ? " -r -F" : " -x", stdout);
    free(words);
}

static void fish_command(void *user, const args *a)
{
    (void)user;
    for (int i = 0; i < a->count; i++) {
        const args_option *o = &a->list[i];
        if (a->idle[i])
            continue;
        char *text = told(o->help);
        printf("complete -c sparsek -n '__fish_seen_subcommand_from %s' -l %s", a->command, o->name);
        if (o->letter)
            printf(" -s %c", o->letter);
        if (o->kind != ARGS_FLAG)
            fish_action(o->kind, o->values);
        printf(" -d '%s'\n", text);
        free(text);
    }
    if (a->max_operands == 0)
        return;
    const bool files = a->operand_kind == ARGS_MATRIX;
    printf("complete -c sparsek -n '__fish_seen_subcommand_from %s%s'", a->command,
           files ? "" : "; and test (count (commandline -opc)) -eq 2");
    fish_action(a->operand_kind, a->operand_values);
    putchar('\n');
    if (a->max_operands > 1 && a->operand_kind == ARGS_CHOICE)
        printf("complete -c sparsek -n '__fish_seen_subcommand_from %s; and test (count (commandline -opc)) -ge 3' -F\n", a->command);
}

static void fish(cli *app, const cli_command *commands, int count)
{
    puts("# fish completion for sparsek\n"
         "function __sparsek_matrix\n"
         "    for file in (commandline -ct)*\n"
         "        if test -d $file\n"
         "            echo $file/\n"
         "        else if string match -qir '\\.(" MATRIX_ENDINGS ")(\\.gz)?$' -- $file\n"
         "            echo $file\n"
         "        end\n"
         "    end\n"
         "end\n"
         "complete -c sparsek -f\n"
         "complete -c sparsek -s h -l help -d 'help'\n"
         "complete -c sparsek -n __fish_use_subcommand -l version -d 'version and source revision'\n"
         "complete -c sparsek -n __fish_use_subcommand -a help -d 'the help of a command'\n"
         "complete -c sparsek -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'");
    for (int i = 0; i < count; i++) {
        char *text = told(commands[i].about);
        printf("complete -c sparsek -n __fish_use_subcommand -a %s -d '%s'\n", commands[i].name, text);
        free(text);
    }
    visit_all(app, commands, count, fish_command);
}

/* ------------------------------------------------------------------------------------------------ all */

int completion_print(cli *app, const cli_command *commands, int count, const char *shell)
{
    if (strcmp(shell, "-h") == 0 || strcmp(shell, "--help") == 0) {
        puts("Usage: sparsek completion bash|zsh|fish\n\n"
             "Prints a script that completes commands, options, their values and matrix files in that shell:\n\n"
             "  source <(sparsek completion bash)\n"
             "  sparsek completion fish | source");
        return EXIT_DONE;
    }
    switch (args_choice(COMPLETION_SHELLS, shell)) {
    case 0:
        bash(app, commands, count);
        return EXIT_DONE;
    case 1:
        zsh(app, commands, count);
        return EXIT_DONE;
    case 2:
        fish(app, commands, count);
        return EXIT_DONE;
    default: {
        const char *near = args_nearest_of(shell, COMPLETION_SHELLS);
        return near ? cli_fail(app, EXIT_USAGE, "completion: '%s' is none of " COMPLETION_SHELLS "; did you mean %s?", shell, near)
                    : cli_fail(app, EXIT_USAGE, "completion: '%s' is none of " COMPLETION_SHELLS, shell);
    }
    }
}

/* Help texts, from the tables of options. */
#ifndef SPARSEK_CLI_ARGS_HELP_H
#define SPARSEK_CLI_ARGS_HELP_H

#include "cli/args/command.h"

/* Prints a command's help: the whole of it, or one screen with the options that are used most. Returns the exit code. */
int help_command(const args *a, bool whole);

/* Prints the program's help, likewise. */
int help_program(const cli_command *commands, int count, bool whole);

/* What stands for an option's value: "ROWS", "n|t". */
const char *help_placeholder(const args_option *o);

/* What an option does, with what its value may be. The caller frees it. */
char *help_text(const args_option *o);

#endif

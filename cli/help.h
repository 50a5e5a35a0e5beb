/* Help texts, made from the tables of options. */
#ifndef SPARSEK_CLI_HELP_H
#define SPARSEK_CLI_HELP_H

#include "args.h"
struct cli_command;

/* Prints a command's help on stdout; returns 0. */
int help_command(const args *a);

/* `sparsek --help`. */
int help_program(const struct cli_command *commands, int count);

#endif

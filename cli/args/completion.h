/* Scripts that complete command lines of sparsek, for bash, zsh and fish, from the tables of options. */
#ifndef SPARSEK_CLI_ARGS_COMPLETION_H
#define SPARSEK_CLI_ARGS_COMPLETION_H

#include "cli/args/command.h"

/* Prints the script for a shell of COMPLETION_SHELLS. Returns the exit code. */
int completion_print(cli *app, const cli_command *commands, int count, const char *shell);

#define COMPLETION_SHELLS "bash|zsh|fish"

#endif

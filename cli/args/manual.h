/* The manual page of a command, in the source form of scdoc(5), from the table of its options. */
#ifndef SPARSEK_CLI_ARGS_MANUAL_H
#define SPARSEK_CLI_ARGS_MANUAL_H

#include "cli/args/args.h"

void manual_print(void *user, const args *a);

#endif

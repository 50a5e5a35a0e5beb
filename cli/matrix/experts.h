/* The options of a mixture of experts, for the commands that generate one. */
#ifndef SPARSEK_CLI_MATRIX_EXPERTS_H
#define SPARSEK_CLI_MATRIX_EXPERTS_H

#include "cli/base/cli.h"

/* Fills what of the options is for experts: how many (0: not given, or as many as the list has), and the text of --tokens, NULL or
 * LEAST-MOST or a list. *list (for the caller to free) holds the tokens that options->tokens points to. Returns an exit code. */
int experts_options(const cli *app, int64_t experts, const char *tokens, spk_generate *options, int64_t **list);

#endif

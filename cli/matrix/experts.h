/* The options of a mixture of experts, for the commands that generate one. */
#ifndef SPARSEK_CLI_MATRIX_EXPERTS_H
#define SPARSEK_CLI_MATRIX_EXPERTS_H

#include <stdbool.h>

#include "cli/base/cli.h"

/* Fills what of the options is for experts: how many (0: not given, or as many as the list has), and the text of --tokens, NULL or
 * LEAST-MOST or a list. *list (for the caller to free) holds the tokens that options->tokens points to. Returns an exit code. */
int experts_options(const cli *app, int64_t experts, const char *tokens, spk_generate *options, int64_t **list);

/* "100-8000", and "100,28,172": an array for the caller to free, NULL where it is no list. */
bool experts_read_range(const char *text, int64_t *least, int64_t *most);
int64_t *experts_read_list(const char *text, int64_t *count);

#endif

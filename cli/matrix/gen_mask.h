/* `gen mask`: the options of masks of attention. */
#ifndef SPARSEK_CLI_MATRIX_GEN_MASK_H
#define SPARSEK_CLI_MATRIX_GEN_MASK_H

#include "cli/args/args.h"
#include "cli/base/cli.h"

typedef struct mask_flags {
    const char *shape; /* NULL: not given */
    int all_keys;
    int64_t lists, sinks, stride, selected;
    args_cells window;
} mask_flags;

enum { GEN_MASK_OPTIONS = 7 };

/* Fills GEN_MASK_OPTIONS options. */
void gen_mask_options(args_option *options, mask_flags *f);

/* The option that is given though only masks have it; NULL: none is. */
const char *gen_mask_given(const mask_flags *f);

/* What of the library's options is for a mask, once its sizes are in; cells: of --cells, tokens: of --tokens. An exit code. */
int gen_mask_take(const cli *app, const mask_flags *f, args_cells cells, const char *tokens, double density, spk_generate *o);

#endif

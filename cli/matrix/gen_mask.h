/* `gen mask`: options of masks of attention, from the library's table of shapes. */
#ifndef SPARSEK_CLI_MATRIX_GEN_MASK_H
#define SPARSEK_CLI_MATRIX_GEN_MASK_H

#include "cli/args/args.h"
#include "cli/base/cli.h"

enum { GEN_MASK_MOST = 32, GEN_MASK_HELP = 400 };

/* A parameter of some shapes, as the command line gives it; what is not given is -1, 0 cells or NULL. */
typedef struct mask_flag {
    const char *name;
    spk_mask_value value; /* cells where one shape takes three numbers and another takes one */
    int64_t count;
    double share;
    int flag;
    args_cells cells;
    const char *text; /* of a range or a list */
    char help[GEN_MASK_HELP];
} mask_flag;

typedef struct mask_flags {
    const char *shape; /* NULL: not given */
    mask_flag list[GEN_MASK_MOST];
    int count;
} mask_flags;

/* Fills the options that only masks have, at most GEN_MASK_MOST, and returns how many there are. */
int gen_mask_options(args_option *options, mask_flags *f);

/* The shapes, as entries of a help text, for the caller to free. */
char *gen_mask_about(void);

/* The option that is given though only masks have it; NULL: none is. */
const char *gen_mask_given(const mask_flags *f);

/* What other patterns have, too. */
typedef struct mask_shared {
    args_cells cells;
    const char *tokens;
    double density; /* -1: not given */
} mask_shared;

/* What of the library's options is for a mask, once its sizes are in; *list (for the caller to free) is what options->lengths points to. An
 * exit code. */
int gen_mask_take(const cli *app, mask_flags *f, mask_shared shared, spk_generate *options, int64_t **list);

#endif

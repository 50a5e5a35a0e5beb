/* `gen mask`: from flags to the library's options. */
#include "cli/matrix/gen_mask.h"

#include <stdlib.h>

#include "cli/io/messages.h"
#include "cli/matrix/experts.h"

void gen_mask_options(args_option *options, mask_flags *f)
{
    *f = (mask_flags){.shape = NULL};
    const args_option all[GEN_MASK_OPTIONS] = {
        {"shape", 0, ARGS_TEXT, &f->shape, "SHAPE", 0, 0, "mask: which (needed)"},
        {"heads", 0, ARGS_INT, &f->lists, "N", 1, 1 << 20, "mask: so many lists of blocks, one below the other (default: 1)"},
        {"window", 0, ARGS_CELLS, &f->window, NULL, 0, 0,
         "mask: keys up to the one beside a query (default: an 8th); video: 5x9x9, about each token (default: a third)"},
        {"sinks", 0, ARGS_INT, &f->sinks, NULL, 1, 2147483647, "mask sinks and nsa: so many of the first keys (default: 64)"},
        {"stride", 0, ARGS_INT, &f->stride, NULL, 1, 2147483647,
         "mask strided: from one such key to the next (default: a 16th of the keys)"},
        {"selected", 0, ARGS_INT, &f->selected, NULL, 1, 2147483647,
         "mask selected and nsa: blocks chosen for each block row (default: 16)"},
        {"all-keys", 0, ARGS_FLAG, &f->all_keys, NULL, 0, 0, "mask: keys behind the one beside a query, too"},
    };
    for (int i = 0; i < GEN_MASK_OPTIONS; i++)
        options[i] = all[i];
}

const char *gen_mask_given(const mask_flags *f)
{
    return f->shape      ? "shape"
           : f->lists    ? "heads"
           : f->window.x ? "window"
           : f->sinks    ? "sinks"
           : f->stride   ? "stride"
           : f->selected ? "selected"
           : f->all_keys ? "all-keys"
                         : NULL;
}

/* Of what only some shapes have. */
static int check_shape(const cli *app, const mask_flags *f, spk_mask_shape shape, args_cells cells, const char *tokens, double density)
{
    const bool has_window = shape == SPK_MASK_WINDOW || shape == SPK_MASK_SINKS || shape == SPK_MASK_STRIDED || shape == SPK_MASK_NSA,
               video = shape == SPK_MASK_VIDEO;
    const struct {
        const char *name;
        bool given, goes;
    } all[] = {{"cells", cells.x != 0, video},
               {"tokens", tokens != NULL, shape == SPK_MASK_DOCUMENTS},
               {"density", density >= 0, shape == SPK_MASK_RANDOM},
               {"window", f->window.x != 0, has_window || video},
               {"sinks", f->sinks != 0, shape == SPK_MASK_SINKS || shape == SPK_MASK_NSA},
               {"stride", f->stride != 0, shape == SPK_MASK_STRIDED},
               {"selected", f->selected != 0, shape == SPK_MASK_SELECTED || shape == SPK_MASK_NSA},
               {"all-keys", f->all_keys != 0, !video}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i].given && !all[i].goes)
            return cli_fail(app, EXIT_USAGE, "--%s does not go with --shape %s", all[i].name, spk_mask_shape_name(shape));
    if (video && !cells.x)
        return cli_fail(app, EXIT_USAGE, "--shape video needs --cells FRAMESxLINESxCOLUMNS");
    return EXIT_DONE;
}

int gen_mask_take(const cli *app, const mask_flags *f, args_cells cells, const char *tokens, double density, spk_generate *o)
{
    int64_t *list = NULL;
    if (!f->shape)
        return cli_fail(app, EXIT_USAGE, "mask needs --shape, see 'sparsek gen --help'");
    o->mask = spk_mask_shape_from_name(f->shape);
    if (!o->mask)
        return cli_fail(app, EXIT_USAGE, "--shape: no mask is called '%s' (see 'sparsek gen --help')", f->shape);
    int code = check_shape(app, f, o->mask, cells, tokens, density);
    if (code == EXIT_DONE && tokens)
        code = experts_options(app, 0, tokens, o, &list);
    if (list) {
        free(list);
        return cli_fail(app, EXIT_USAGE, "--tokens: of documents it is a range like 100-8000, not '%s'", tokens);
    }
    o->tokens = NULL;
    o->experts = 0;
    o->density = density < 0 ? 0.1 : density;
    o->lists = f->lists;
    o->all_keys = f->all_keys;
    o->window = o->window_x = f->window.x;
    o->window_y = f->window.y;
    o->window_z = f->window.z;
    o->sinks = f->sinks;
    o->stride = f->stride;
    o->selected = f->selected;
    o->cells_x = cells.x;
    o->cells_y = cells.y;
    o->cells_z = cells.z;
    return code;
}

/* Masks of attention and the table of their shapes, as the public header has them. */
#include <string.h>

#include "api/context.h"
#include "matrix/mask.h"

const char *spk_mask_shape_name(spk_mask_shape shape)
{
    const spk_mask_shape_row *row = spk_mask_shape_of(shape);
    return row != NULL ? row->name : NULL;
}

spk_mask_shape spk_mask_shape_from_name(const char *name)
{
    for (int i = 1; name != NULL && spk_mask_shape_of((spk_mask_shape)i) != NULL; i++)
        if (strcmp(name, spk_mask_shape_of((spk_mask_shape)i)->name) == 0)
            return (spk_mask_shape)i;
    return (spk_mask_shape)0;
}

static int count_words(const spk_mask_shape_row *row)
{
    int count = 0;
    while (count < SPK_MASK_MOST_WORDS && row->words[count] != SPK_MASK_TAKES_NOTHING)
        count++;
    return count;
}

static spk_status find(spk_mask_shape shape, const void *info, const spk_mask_shape_row **row)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(info, "info"));
    *row = spk_mask_shape_of(shape);
    return *row != NULL ? SPK_OK : spk_fail(SPK_ERR_ARGUMENT, "shape = %d: this version has no such mask", (int)shape);
}

spk_status spk_mask_shape_get_info(spk_mask_shape shape, spk_mask_shape_info *info)
{
    const spk_mask_shape_row *row = NULL;
    SPK_TRY(find(shape, info, &row));
    spk_mask_shape_info ours = {.name = row->name, .help = row->help, .is_random = row->is_random, .parameter_count = count_words(row)};
    return spk_struct_write(info, &ours, sizeof ours, "spk_mask_shape_info");
}

spk_status spk_mask_shape_get_parameter(spk_mask_shape shape, int index, spk_mask_parameter_info *info)
{
    const spk_mask_shape_row *row = NULL;
    SPK_TRY(find(shape, info, &row));
    if (index < 0 || index >= count_words(row))
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: %s has %d parameters", index, row->name, count_words(row));
    const spk_mask_parameter *p = spk_mask_parameter_of(row->words[index]);
    spk_mask_parameter_info ours = {.name = p->name,
                                    .offset = p->offset,
                                    .usual = p->usual_text,
                                    .help = p->help,
                                    .least = p->least,
                                    .most = p->most,
                                    .value = p->value};
    return spk_struct_write(info, &ours, sizeof ours, "spk_mask_parameter_info");
}

spk_status spk_mask_create(spk_context *context, const spk_generate *theirs, spk_mask **mask)
{
    if (context == NULL)
        spk_error_enter(0);
    SPK_TRY(context != NULL ? spk_enter(context) : spk_check_caller());
    SPK_TRY(spk_check_pointer(theirs, "options"));
    SPK_TRY(spk_check_pointer(mask, "mask"));
    spk_generate options;
    SPK_TRY(spk_struct_read(&options, sizeof options, theirs, "spk_generate"));
    if (options.reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "options.reserved = %d: it must be 0", options.reserved);
    return spk_mask_make(context != NULL ? &context->mem : &spk_mem_system, &options, true, mask);
}

void spk_mask_destroy(spk_mask **mask)
{
    spk_mask_release(mask);
}

spk_status spk_mask_view(const spk_mask *mask, spk_mask_desc *desc)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(mask, "mask"));
    SPK_TRY(spk_check_pointer(desc, "desc"));
    spk_mask_desc ours = {.grid_rows = mask->grid_rows,
                          .blocks = mask->blocks,
                          .tiles = mask->tiles,
                          .tile_words = mask->tile_words,
                          .row_offsets = mask->row_offsets,
                          .col_indices = mask->col_indices,
                          .tile_numbers = mask->tiles > 0 ? mask->tile_numbers : NULL,
                          .tile_bits = mask->tiles > 0 ? mask->tile_bits : NULL};
    return spk_struct_write(desc, &ours, sizeof ours, "spk_mask_desc");
}

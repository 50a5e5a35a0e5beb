/* Masks of attention as matrices: which blocks of queries and keys count; all values are ones. */
#include "matrix/mask.h"
#include "matrix/matrix.h"

#include <string.h>

spk_status spk_generate_mask(const spk_mem *mem, const spk_generate *options, spk_matrix **out)
{
    const spk_dtype dtype = options->dtype == SPK_DTYPE_DEFAULT ? SPK_F32 : options->dtype;
    spk_mask *mask = NULL;
    spk_matrix *made = NULL;
    spk_status status;
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: matrices are generated as %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    SPK_TRY(spk_mask_make(mem, options, false, &mask));
    const int64_t high = options->block_rows, lines = mask->grid_rows - mask->block_rows_of_list, /* of all lists but the last one */
        rows = lines * high + options->rows;
    SPK_GOTO(spk_matrix_make(mem, SPK_BSR, dtype, rows, options->cols, high, options->block_cols, SPK_ROW_MAJOR, mask->blocks, &made));
    made->pattern_only = 1;
    memcpy(made->row_offsets, mask->row_offsets, (size_t)(mask->grid_rows + 1) * sizeof *made->row_offsets);
    memcpy(made->col_indices, mask->col_indices, (size_t)mask->blocks * sizeof *made->col_indices);
    for (int64_t i = 0, count = spk_matrix_value_count(made); i < count; i++)
        spk_value_set(made->values, dtype, i, 1);
    *out = made;
done:
    spk_mask_release(&mask);
    return status;
}

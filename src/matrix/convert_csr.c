/* Any format to canonical CSR (sorted, no duplicates) and from there to COO. Linear: rows are sorted by transposing twice. */
#include <string.h>

#include "matrix/check.h"
#include "matrix/entries.h"

static bool is_sorted(const spk_matrix *csr)
{
    for (int64_t row = 0; row < csr->rows; row++)
        for (int64_t p = csr->row_offsets[row] + 1; p < csr->row_offsets[row + 1]; p++)
            if (csr->col_indices[p] <= csr->col_indices[p - 1])
                return false;
    return true;
}

/* Entries as they are stored, row by row. */
static spk_status expand(const spk_mem *mem, const spk_matrix *in, spk_matrix **out)
{
    if (in->format == SPK_COO)
        return spk_coo_to_rows(mem, in, out);
    if (in->format == SPK_CSR)
        return spk_convert_cast(mem, in, in->dtype, out);
    spk_entries entries;
    spk_matrix *made = NULL;
    SPK_TRY(spk_entries_open(mem, in, &entries));
    spk_status status =
        spk_matrix_make(mem, SPK_CSR, in->dtype, in->rows, in->cols, 1, 1, SPK_ROW_MAJOR, spk_entries_total(&entries), &made);
    if (status == SPK_OK) {
        int64_t filled = 0;
        made->row_offsets[0] = 0;
        for (int64_t row = 0; row < in->rows; row++) {
            spk_entries_load(&entries, row, true);
            for (int64_t i = 0; i < entries.count; i++, filled++) {
                made->col_indices[filled] = entries.cols[i];
                spk_value_set(made->values, made->dtype, filled, entries.values[i]);
            }
            made->row_offsets[row + 1] = filled;
        }
        made->pattern_only = in->pattern_only;
        *out = made;
    }
    spk_entries_close(mem, &entries);
    return status;
}

/* Sums neighbours of equal column, in place. */
static spk_status sum_duplicates(spk_matrix *csr)
{
    int64_t kept = 0, p = 0;
    for (int64_t row = 0; row < csr->rows; row++) {
        const int64_t end = csr->row_offsets[row + 1];
        while (p < end) {
            const int64_t first = p, col = csr->col_indices[p];
            double sum = spk_value_at(csr->values, csr->dtype, p);
            for (p++; p < end && csr->col_indices[p] == col; p++)
                sum = spk_value_sum(csr->dtype, sum, spk_value_at(csr->values, csr->dtype, p));
            if (p - first > 1 && spk_value_is_lost(csr->dtype, sum))
                return spk_fail(SPK_ERR_ARGUMENT, "row %lld, column %lld: the sum of %lld entries, %g, is out of the range of %s",
                                (long long)row, (long long)col, (long long)(p - first), sum, spk_dtype_name(csr->dtype));
            csr->col_indices[kept] = col;
            spk_value_set(csr->values, csr->dtype, kept++, sum);
        }
        csr->row_offsets[row + 1] = kept;
    }
    if (kept < csr->nnz)
        csr->pattern_only = 0;
    csr->nnz = kept;
    return SPK_OK;
}

spk_status spk_convert_to_csr(const spk_mem *mem, const spk_matrix *in, spk_matrix **out)
{
    spk_matrix *loose = NULL, *turned = NULL, *sorted = NULL;
    SPK_TRY(expand(mem, in, &loose));
    if (is_sorted(loose)) {
        *out = loose;
        return SPK_OK;
    }
    spk_status status = spk_convert_transpose(mem, loose, &turned);
    spk_matrix_release(&loose);
    if (status == SPK_OK)
        status = spk_convert_transpose(mem, turned, &sorted);
    spk_matrix_release(&turned);
    if (status != SPK_OK)
        return status;
    status = sum_duplicates(sorted);
    if (status != SPK_OK)
        spk_matrix_release(&sorted);
    *out = sorted;
    return status;
}

spk_status spk_convert_to_coo(const spk_mem *mem, const spk_matrix *in, spk_matrix **out)
{
    spk_matrix *made = NULL;
    SPK_TRY(spk_convert_to_csr(mem, in, &made));
    spk_status status = spk_alloc(mem, (size_t)made->nnz, sizeof *made->row_indices, &made->row_indices);
    if (status != SPK_OK) {
        spk_matrix_release(&made);
        return status;
    }
    for (int64_t row = 0; row < made->rows; row++)
        for (int64_t p = made->row_offsets[row]; p < made->row_offsets[row + 1]; p++)
            made->row_indices[p] = row;
    spk_free(mem, made->row_offsets);
    made->row_offsets = NULL;
    made->format = SPK_COO;
    *out = made;
    return SPK_OK;
}

static bool columns_increase(const spk_matrix *bsr)
{
    const int64_t rows = spk_matrix_grid_rows(bsr);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = bsr->row_offsets[row] + 1; i < bsr->row_offsets[row + 1]; i++)
            if (bsr->col_indices[i] <= bsr->col_indices[i - 1])
                return false;
    return true;
}

spk_status spk_convert_canonicalize(const spk_mem *mem, const spk_matrix *in, spk_matrix **out)
{
    switch (in->format) {
    case SPK_COO:
        return spk_convert_to_coo(mem, in, out);
    case SPK_CSR:
        return spk_convert_to_csr(mem, in, out);
    case SPK_BSR:
        if (in->pattern_only && columns_increase(in)) /* it stays one */
            return spk_convert_cast(mem, in, in->dtype, out);
        return spk_convert_to_bsr(mem, in, in->block_rows, in->block_cols, in->layout, out);
    default:
        return spk_convert_cast(mem, in, in->dtype, out);
    }
}

/* .smtx out: a sparse matrix whose values are all one, as "rows, cols, entries", row offsets, columns. */
#include "matrix/io/io.h"
#include "matrix/io/number.h"

static spk_status write_list(spk_writer *writer, const int64_t *list, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char text[SPK_NUMBER_ROOM], *end = text;
        if (i > 0)
            *end++ = ' ';
        end = spk_number_print_int(end, list[i]);
        SPK_TRY(spk_writer_bytes(writer, text, (size_t)(end - text)));
    }
    return spk_writer_bytes(writer, "\n", 1);
}

static spk_status write_csr(const spk_matrix *csr, spk_writer *writer)
{
    for (int64_t i = 0; i < csr->nnz; i++) {
        double value = spk_value_get(csr->values, csr->dtype, i);
        if (value != 1)
            return spk_fail(SPK_ERR_ARGUMENT, ".smtx holds no values, but entry %lld of the matrix is %g, not 1", (long long)i, value);
    }
    SPK_TRY(spk_writer_printf(writer, "%lld, %lld, %lld\n", (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz));
    SPK_TRY(write_list(writer, csr->row_offsets, csr->rows + 1));
    return write_list(writer, csr->col_indices, csr->nnz);
}

spk_status spk_write_smtx(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options)
{
    spk_matrix *csr = NULL;
    (void)options;
    if (matrix->format == SPK_DENSE)
        return spk_fail(SPK_ERR_ARGUMENT, ".smtx holds sparse matrices, and this one is dense: convert it first");
    if (matrix->format == SPK_CSR)
        return write_csr(matrix, writer);
    SPK_TRY(spk_convert_to_csr(&matrix->mem, matrix, &csr));
    spk_status status = write_csr(csr, writer);
    spk_matrix_release(&csr);
    return status;
}

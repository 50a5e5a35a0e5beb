/* .npy out, version 1.0: a dense matrix in the layout and byte order it has. */
#include <stdio.h>
#include <string.h>

#include "matrix/io/io.h"

enum { PREFIX = 10, HEADER = 128 }; /* together 128: a multiple of 64, as NumPy aligns it */

spk_status spk_write_npy(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options)
{
    char header[HEADER];
    (void)options;
    if (matrix->format != SPK_DENSE)
        return spk_fail(SPK_ERR_ARGUMENT, ".npy holds dense matrices, and this one is sparse: convert it first");
    const char *type = spk_type_of(matrix->dtype)->npy;
    const char order = spk_dtype_bytes(matrix->dtype) == 1 ? '|' : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    if (type == NULL)
        return spk_fail(SPK_ERR_UNSUPPORTED, ".npy has no %s: cast the matrix to f32 first", spk_dtype_name(matrix->dtype));
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER - PREFIX;
    header[9] = 0;
    int length = snprintf(header + PREFIX, HEADER - PREFIX, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (%lld, %lld), }", order, type,
                          matrix->layout == SPK_COL_MAJOR ? "True" : "False", (long long)matrix->rows, (long long)matrix->cols);
    header[PREFIX + length] = ' '; /* over snprintf's NUL */
    header[HEADER - 1] = '\n';
    SPK_TRY(spk_writer_bytes(writer, header, sizeof header));
    return spk_writer_bytes(writer, matrix->values, (size_t)matrix->nnz * spk_dtype_bytes(matrix->dtype));
}

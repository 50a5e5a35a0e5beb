/* Matrix Market out: COO, CSR and BSR as coordinate general (every stored element, the overhang of edge blocks left out), dense as
 * array. A pattern whose values are all one is written as a pattern. Numbers round-trip. */
#include <string.h>

#include "matrix/check.h"
#include "matrix/io/io.h"
#include "matrix/io/number.h"

/* Called for every stored element in file order. */
typedef spk_status (*element_visit)(void *user, int64_t row, int64_t col, int64_t at);

static spk_status visit_block(const spk_matrix *m, int64_t grid_row, int64_t block, element_visit visit, void *user)
{
    int64_t row = grid_row * m->block_rows, col = m->col_indices[block] * m->block_cols, first = block * m->block_rows * m->block_cols;
    int64_t rows = spk_min_i64(m->block_rows, m->rows - row), cols = spk_min_i64(m->block_cols, m->cols - col);
    int64_t row_stride = m->layout == SPK_ROW_MAJOR ? m->block_cols : 1, col_stride = m->layout == SPK_ROW_MAJOR ? 1 : m->block_rows;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            SPK_TRY(visit(user, row + i, col + j, first + i * row_stride + j * col_stride));
    return SPK_OK;
}

static spk_status visit_sparse(const spk_matrix *m, element_visit visit, void *user)
{
    if (m->format == SPK_COO) {
        for (int64_t i = 0; i < m->nnz; i++)
            SPK_TRY(visit(user, m->row_indices[i], m->col_indices[i], i));
        return SPK_OK;
    }
    int64_t grid_rows = spk_matrix_grid_rows(m);
    for (int64_t row = 0; row < grid_rows; row++)
        for (int64_t i = m->row_offsets[row]; i < m->row_offsets[row + 1]; i++)
            SPK_TRY(m->format == SPK_BSR ? visit_block(m, row, i, visit, user) : visit(user, row, m->col_indices[i], i));
    return SPK_OK;
}

typedef struct output {
    const spk_matrix *matrix;
    spk_writer *writer;
    int64_t count;
    bool ones; /* all values are one */
} output;

static spk_status count_element(void *user, int64_t row, int64_t col, int64_t at)
{
    output *out = user;
    (void)row, (void)col;
    out->count++;
    out->ones = out->ones && spk_value_get(out->matrix->values, out->matrix->dtype, at) == 1;
    return SPK_OK;
}

static char *print_value(char *to, const spk_matrix *m, int64_t at)
{
    double value = spk_value_get(m->values, m->dtype, at);
    return spk_type_is_double(m->dtype) ? spk_number_print_f64(to, value) : spk_number_print_f32(to, (float)value);
}

static spk_status write_element(void *user, int64_t row, int64_t col, int64_t at)
{
    output *out = user;
    char line[3 * SPK_NUMBER_ROOM], *end = spk_number_print_int(line, row + 1);
    *end++ = ' ';
    end = spk_number_print_int(end, col + 1);
    if (!out->ones) {
        *end++ = ' ';
        end = print_value(end, out->matrix, at);
    }
    *end++ = '\n';
    return spk_writer_bytes(out->writer, line, (size_t)(end - line));
}

static spk_status write_comment(spk_writer *writer, const char *comment)
{
    while (comment && *comment) {
        size_t length = strcspn(comment, "\r\n");
        if (length > 0) {
            SPK_TRY(spk_writer_bytes(writer, "% ", 2));
            SPK_TRY(spk_writer_bytes(writer, comment, length));
            SPK_TRY(spk_writer_bytes(writer, "\n", 1));
        }
        comment += length + (comment[length] != '\0');
    }
    return SPK_OK;
}

static spk_status write_array(const spk_matrix *m, spk_writer *writer)
{
    int64_t row_stride = m->layout == SPK_ROW_MAJOR ? m->cols : 1, col_stride = m->layout == SPK_ROW_MAJOR ? 1 : m->rows;
    if (m->nnz == 0)
        return SPK_OK; /* however many columns without rows there are */
    for (int64_t col = 0; col < m->cols; col++) {
        for (int64_t row = 0; row < m->rows; row++) {
            char line[2 * SPK_NUMBER_ROOM], *end = print_value(line, m, row * row_stride + col * col_stride);
            *end++ = '\n';
            SPK_TRY(spk_writer_bytes(writer, line, (size_t)(end - line)));
        }
    }
    return SPK_OK;
}

spk_status spk_write_mtx(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options)
{
    const char *comment = options ? options->comment : NULL;
    output out = {.matrix = matrix, .writer = writer, .ones = matrix->pattern_only != 0};
    if (matrix->format == SPK_DENSE) {
        SPK_TRY(spk_writer_printf(writer, "%%%%MatrixMarket matrix array real general\n"));
        SPK_TRY(write_comment(writer, comment));
        SPK_TRY(spk_writer_printf(writer, "%lld %lld\n", (long long)matrix->rows, (long long)matrix->cols));
        return write_array(matrix, writer);
    }
    SPK_TRY(visit_sparse(matrix, count_element, &out));
    SPK_TRY(spk_writer_printf(writer, "%%%%MatrixMarket matrix coordinate %s general\n", out.ones ? "pattern" : "real"));
    SPK_TRY(write_comment(writer, comment));
    SPK_TRY(spk_writer_printf(writer, "%lld %lld %lld\n", (long long)matrix->rows, (long long)matrix->cols, (long long)out.count));
    return visit_sparse(matrix, write_element, &out);
}

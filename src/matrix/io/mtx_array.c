/* Matrix Market array files as a dense column-major matrix. */
#include <math.h>

#include "matrix/io/mtx.h"

typedef struct elements {
    const spk_mtx *file;
    void *values; /* in file order */
    int64_t count;
    spk_growth growth;
} elements;

/* A line with one plain number. Nothing is consumed where it answers false. */
static inline bool fast_element(const spk_mtx *file, double *value)
{
    const unsigned char *at = file->scan->at;
    if (file->field != SPK_MTX_REAL || (*at == ' ' && !(at = spk_scan_fast_blanks(at))) || !(at = spk_number_fast(at, value)))
        return false;
    at += *at == '\r';
    if (*at != '\n' || spk_value_is_lost(file->dtype, *value))
        return false;
    file->scan->at = at + 1;
    file->scan->line++;
    return true;
}

static spk_status careful_element(const spk_mtx *file, int64_t count, double *value)
{
    spk_word word;
    SPK_TRY(spk_mtx_next_line(file, &word));
    if (word.kind == SPK_SCAN_END)
        return spk_scan_fail(file->scan, file->scan->line, "the file ends after %lld of %lld entries", (long long)count,
                             (long long)file->declared);
    SPK_TRY(spk_mtx_value(file, &word, value));
    return spk_mtx_end_line(file, "value");
}

static spk_status read_elements(elements *list, size_t bytes)
{
    const spk_mtx *file = list->file;
    for (; list->count < file->declared; list->count++) {
        double value;
        SPK_TRY(spk_scan_room(file->scan));
        if (!fast_element(file, &value))
            SPK_TRY(careful_element(file, list->count, &value));
        if (list->count == list->growth.capacity) {
            list->growth.capacity = spk_growth_next(&list->growth);
            SPK_TRY(spk_realloc(file->scan->in->mem, &list->values, (size_t)list->growth.capacity, bytes));
        }
        spk_value_set(list->values, file->dtype, list->count, value);
    }
    return spk_mtx_end_file(file);
}

/* The lower triangle (without the diagonal: skew) in columns, as the whole matrix. */
static spk_status unfold(elements *list, size_t bytes)
{
    const spk_mtx *file = list->file;
    const spk_mem *mem = file->scan->in->mem;
    int64_t n = file->rows, from = 0;
    void *whole = NULL;
    bool skew = file->symmetry == SPK_MTX_SKEW;
    SPK_TRY(spk_calloc(mem, (size_t)(n * n), bytes, &whole));
    for (int64_t col = 0; col < n; col++) {
        for (int64_t row = col + skew; row < n; row++) {
            double value = spk_value_get(list->values, file->dtype, from++);
            spk_value_set(whole, file->dtype, row + col * n, value);
            spk_value_set(whole, file->dtype, col + row * n, skew ? -value : value);
        }
    }
    spk_free(mem, list->values);
    list->values = whole;
    return SPK_OK;
}

spk_status spk_mtx_read_array(const spk_mtx *file, spk_matrix **out)
{
    const spk_read_context *in = file->scan->in;
    spk_status status = SPK_OK;
    size_t bytes = spk_dtype_bytes(file->dtype);
    int64_t all = file->rows * file->cols;
    elements list = {.file = file};
    SPK_TRY(spk_mtx_check_declared(file, 2));
    SPK_TRY(spk_io_check_room(in, all, (int64_t)bytes, 0));
    list.growth = spk_growth_start(file->declared, spk_scan_left(file->scan), 2);
    SPK_GOTO(spk_alloc(in->mem, (size_t)list.growth.capacity, bytes, &list.values));
    SPK_GOTO(read_elements(&list, bytes));
    if (file->symmetry != SPK_MTX_GENERAL)
        SPK_GOTO(unfold(&list, bytes));
    SPK_GOTO(spk_io_adopt(in->mem,
                          &(spk_matrix){.format = SPK_DENSE,
                                        .dtype = file->dtype,
                                        .rows = file->rows,
                                        .cols = file->cols,
                                        .block_rows = 1,
                                        .block_cols = 1,
                                        .layout = SPK_COL_MAJOR,
                                        .nnz = all,
                                        .values = list.values},
                          out));
    return SPK_OK;
done:
    spk_free(in->mem, list.values);
    return status;
}

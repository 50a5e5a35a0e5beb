/* Matrix Market coordinate files as COO in file order; what symmetry implies follows the entry that implies it. A quick way reads
 * the usual line, a careful way every other and all that is wrong. A symmetric file may hold either triangle, or some of both: every entry
 * off the diagonal is mirrored, so that a position given in both triangles is there twice, and is summed like any repeated entry. */
#include <math.h>

#include "matrix/io/mtx.h"

typedef struct entries {
    const spk_mtx *file;
    int64_t *rows, *cols;
    void *values;
    int64_t count;
    spk_growth growth;
} entries;

typedef struct entry {
    int64_t row, col;
    double value;
} entry;

static int64_t value_bytes(const spk_mtx *file)
{
    return (int64_t)spk_dtype_bytes(file->dtype);
}

static spk_status reserve(entries *list, int64_t capacity)
{
    const spk_mem *mem = list->file->scan->in->mem;
    SPK_TRY(spk_realloc(mem, &list->rows, (size_t)capacity, sizeof *list->rows));
    SPK_TRY(spk_realloc(mem, &list->cols, (size_t)capacity, sizeof *list->cols));
    SPK_TRY(spk_realloc(mem, &list->values, (size_t)capacity, (size_t)value_bytes(list->file)));
    list->growth.capacity = capacity;
    return SPK_OK;
}

/* Room for `need` entries in all, within the limit on memory. */
static spk_status make_room(entries *list, int64_t need)
{
    const spk_read_context *in = list->file->scan->in;
    int64_t bytes = 16 + value_bytes(list->file), allowed = in->max_bytes / bytes;
    if (need > allowed)
        SPK_TRY(spk_io_check_room(in, need, bytes, 0));
    int64_t next = spk_growth_next(&list->growth);
    if (next > allowed)
        next = allowed;
    return reserve(list, next < need ? need : next);
}

static void append_entry(entries *list, int64_t row, int64_t col, double value)
{
    int64_t at = list->count++;
    list->rows[at] = row;
    list->cols[at] = col;
    spk_value_put(list->values, list->file->dtype, at, value);
}

/* A line of plain numbers, indices in range, off the diagonal where the matrix is skew. Nothing is consumed where it answers false. */
static inline bool fast_entry(const spk_mtx *file, entry *got)
{
    const unsigned char *at = file->scan->at;
    if (*at == ' ' && !(at = spk_scan_fast_blanks(at)))
        return false;
    if (!(at = spk_scan_fast_index(at, &got->row)) || !(at = spk_scan_fast_blanks(at)) || !(at = spk_scan_fast_index(at, &got->col)))
        return false;
    got->value = 1;
    if (file->field != SPK_MTX_PATTERN) {
        if (!(at = spk_scan_fast_blanks(at)))
            return false;
        if (file->field != SPK_MTX_REAL) {
            int64_t whole;
            bool negative = *at == '-' && file->field == SPK_MTX_INTEGER;
            if (!(at = spk_scan_fast_index(at + negative, &whole)) || whole > INT64_C(1) << 53)
                return false;
            got->value = negative ? -(double)whole : (double)whole;
        } else if (!(at = spk_number_fast(at, &got->value))) {
            return false;
        }
        if (spk_value_is_lost(file->dtype, got->value))
            return false;
    }
    if (*at == ' ' && !(at = spk_scan_fast_blanks(at)))
        return false;
    at += *at == '\r';
    got->row--;
    got->col--;
    if (*at != '\n' || (uint64_t)got->row >= (uint64_t)file->rows || (uint64_t)got->col >= (uint64_t)file->cols)
        return false;
    if (file->symmetry == SPK_MTX_SKEW && got->row == got->col)
        return false;
    file->scan->at = at + 1;
    file->scan->line++;
    return true;
}

static spk_status careful_entry(const spk_mtx *file, int64_t count, entry *got)
{
    spk_word word;
    spk_scan *scan = file->scan;
    SPK_TRY(spk_mtx_next_line(file, &word));
    int64_t line = scan->line;
    if (word.kind == SPK_SCAN_END)
        return spk_scan_fail(scan, line, "the file ends after %lld of %lld entries", (long long)count, (long long)file->declared);
    SPK_TRY(spk_scan_index(scan, &word, "row index", 1, file->rows, &got->row));
    SPK_TRY(spk_mtx_need_word(file, "column index", &word));
    SPK_TRY(spk_scan_index(scan, &word, "column index", 1, file->cols, &got->col));
    got->value = 1;
    if (file->field != SPK_MTX_PATTERN) {
        SPK_TRY(spk_mtx_need_word(file, "value", &word));
        SPK_TRY(spk_mtx_value(file, &word, &got->value));
    }
    SPK_TRY(spk_mtx_end_line(file, "entry"));
    if (file->symmetry == SPK_MTX_SKEW && got->row == got->col && got->value != 0)
        return spk_scan_fail(scan, line, "entry %lld, %lld is on the diagonal, which is zero in a skew-symmetric matrix",
                             (long long)got->row + 1, (long long)got->col + 1);
    return SPK_OK;
}

static spk_status read_entries(entries *list)
{
    const spk_mtx *file = list->file;
    entry got;
    for (int64_t i = 0; i < file->declared; i++) {
        SPK_TRY(spk_scan_room(file->scan));
        if (!fast_entry(file, &got))
            SPK_TRY(careful_entry(file, i, &got));
        bool mirrored = file->symmetry != SPK_MTX_GENERAL && got.row != got.col;
        int64_t need = list->count + 1 + mirrored;
        if (need > list->growth.capacity)
            SPK_TRY(make_room(list, need));
        append_entry(list, got.row, got.col, got.value);
        if (mirrored)
            append_entry(list, got.col, got.row, file->symmetry == SPK_MTX_SKEW ? -got.value : got.value);
    }
    return spk_mtx_end_file(file);
}

spk_status spk_mtx_read_coordinate(const spk_mtx *file, spk_matrix **out)
{
    const spk_read_context *in = file->scan->in;
    spk_status status = SPK_OK;
    int64_t least = file->field == SPK_MTX_PATTERN ? 4 : 6; /* "1 1\n", "1 1 1\n" */
    int64_t most = file->declared;
    entries list = {.file = file};
    SPK_TRY(spk_mtx_check_declared(file, least));
    SPK_TRY(spk_io_check_room(in, file->declared, 16 + value_bytes(file), 0));
    if (file->symmetry != SPK_MTX_GENERAL)
        most *= 2;
    list.growth = spk_growth_start(file->declared, spk_scan_left(file->scan), least);
    list.growth.most = most;
    SPK_GOTO(reserve(&list, list.growth.capacity));
    SPK_GOTO(read_entries(&list));
    if (list.growth.capacity - list.count > list.count / 8) /* what growing asked for too much */
        SPK_GOTO(reserve(&list, list.count));
    SPK_GOTO(spk_io_adopt(in->mem,
                          &(spk_matrix){.format = SPK_COO,
                                        .dtype = file->dtype,
                                        .rows = file->rows,
                                        .cols = file->cols,
                                        .block_rows = 1,
                                        .block_cols = 1,
                                        .nnz = list.count,
                                        .row_indices = list.rows,
                                        .col_indices = list.cols,
                                        .values = list.values,
                                        .pattern_only = file->field == SPK_MTX_PATTERN},
                          out));
    return SPK_OK;
done:
    spk_free(in->mem, list.rows);
    spk_free(in->mem, list.cols);
    spk_free(in->mem, list.values);
    return status;
}

/* The .smtx files of the Deep Learning Matrix Collection: "rows, cols, entries", the row offsets, the columns (from 0); no values. */
#include "matrix/check.h"
#include "matrix/io/scan.h"
#include "matrix/io/support.h"

typedef struct smtx {
    const spk_read_context *in;
    spk_scan *scan;
    spk_dtype dtype;
    int64_t rows, cols, nnz;
} smtx;

/* The next word on this line or a later one; SPK_ERR_FORMAT at the end of the file. */
static spk_status next_word(const smtx *file, const char *what, int64_t done, int64_t count, spk_word *word)
{
    do
        SPK_TRY(spk_scan_word(file->scan, word));
    while (word->kind == SPK_SCAN_LINE_END);
    if (word->kind == SPK_SCAN_END)
        return spk_scan_fail(file->scan, file->scan->line, "the file ends after %lld of %lld %s", (long long)done, (long long)count, what);
    return SPK_OK;
}

/* Three numbers with commas, blanks or both between them, on the first line. */
static spk_status read_sizes(smtx *file)
{
    static const char *const names[] = {"number of rows", "number of columns", "number of entries"};
    int64_t *const sizes[] = {&file->rows, &file->cols, &file->nnz};
    spk_word word = {.length = 0};
    bool comma = false;
    for (int i = 0; i < 3;) {
        if (word.length == 0) {
            SPK_TRY(spk_scan_word(file->scan, &word));
            if (word.kind != SPK_SCAN_WORD)
                return spk_scan_fail(file->scan, 1, "ends before the %s", names[i]);
        }
        if (word.text[0] == ',' && i > 0 && !comma) {
            comma = true;
            word.text++;
            word.length--;
            continue;
        }
        const char *end = memchr(word.text, ',', word.length);
        spk_word number = {.text = word.text, .length = end ? (size_t)(end - word.text) : word.length};
        SPK_TRY(spk_scan_count(file->scan, &number, names[i], sizes[i]));
        if (i < 2 && *sizes[i] > SPK_SIZE_LIMIT)
            return spk_scan_fail(file->scan, 1, "%s %lld is above %lld", names[i], (long long)*sizes[i], (long long)SPK_SIZE_LIMIT);
        word.text += number.length;
        word.length -= number.length;
        comma = false;
        i++;
    }
    if (word.length == 0)
        SPK_TRY(spk_scan_word(file->scan, &word));
    if (word.length > 0 && word.kind == SPK_SCAN_WORD)
        return spk_scan_fail(file->scan, 1, "more than three sizes");
    return SPK_OK;
}

/* The lists are numbers with single blanks between them as a rule. Nothing is consumed where it answers false. */
static inline bool fast_number(spk_scan *scan, int64_t last, int64_t *value)
{
    const unsigned char *at = scan->at;
    if (*at == ' ')
        at++;
    if (!(at = spk_scan_fast_index(at, value)) || *at != ' ' || *value > last)
        return false;
    scan->at = at;
    return true;
}

static spk_status read_list(const smtx *file, int64_t count, const char *what, const char *one, int64_t last, int64_t **out)
{
    spk_growth growth = spk_growth_start(count, spk_scan_left(file->scan), 2);
    int64_t *list = NULL;
    SPK_TRY(spk_alloc(file->in->mem, (size_t)growth.capacity, sizeof *list, &list));
    spk_status status = SPK_OK;
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        spk_word word;
        if (i == growth.capacity) {
            growth.capacity = spk_growth_next(&growth);
            SPK_GOTO(spk_realloc(file->in->mem, &list, (size_t)growth.capacity, sizeof *list));
        }
        SPK_GOTO(spk_scan_room(file->scan));
        if (!fast_number(file->scan, last, &value)) {
            SPK_GOTO(next_word(file, what, i, count, &word));
            SPK_GOTO(spk_scan_index(file->scan, &word, one, 0, last, &value));
        }
        list[i] = value;
    }
    *out = list;
    return SPK_OK;
done:
    spk_free(file->in->mem, list);
    return status;
}

static spk_status check_offsets(const smtx *file, const int64_t *offsets, int64_t line)
{
    if (offsets[0] != 0)
        return spk_scan_fail(file->scan, line, "the first row offset is %lld, not 0", (long long)offsets[0]);
    for (int64_t i = 0; i < file->rows; i++)
        if (offsets[i + 1] < offsets[i])
            return spk_scan_fail(file->scan, line, "row offset %lld falls from %lld to %lld", (long long)i + 1, (long long)offsets[i],
                                 (long long)offsets[i + 1]);
    if (offsets[file->rows] != file->nnz)
        return spk_scan_fail(file->scan, line, "the last row offset is %lld, not the %lld entries of line 1",
                             (long long)offsets[file->rows], (long long)file->nnz);
    return SPK_OK;
}

static spk_status check_sizes(const smtx *file)
{
    int64_t left = spk_scan_left(file->scan), most = (left + 1) / 2; /* of numbers with a separator each, but the last */
    if (left >= 0 && (file->rows >= most || file->nnz > most - file->rows - 1))
        return spk_scan_fail(file->scan, 1,
                             "announces %lld rows and %lld entries, but the %lld bytes that follow hold %lld numbers at most",
                             (long long)file->rows, (long long)file->nnz, (long long)left, (long long)most);
    int64_t offsets_bytes = (file->rows + 1) * 8;
    return spk_io_check_room(file->in, file->nnz, 8 + (int64_t)spk_dtype_bytes(file->dtype), offsets_bytes);
}

static spk_status end_file(const smtx *file)
{
    spk_word word;
    do
        SPK_TRY(spk_scan_word(file->scan, &word));
    while (word.kind == SPK_SCAN_LINE_END);
    if (word.kind == SPK_SCAN_WORD)
        return spk_scan_fail(file->scan, file->scan->line, "more than the %lld columns of line 1", (long long)file->nnz);
    return SPK_OK;
}

spk_status spk_read_smtx(const spk_read_context *in, spk_matrix **out)
{
    spk_scan scan;
    smtx file = {.in = in, .scan = &scan};
    int64_t *offsets = NULL, *columns = NULL;
    void *values = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_io_dtype(in, SPK_F64, &file.dtype));
    SPK_TRY(spk_scan_open(in, &scan));
    SPK_TRY(read_sizes(&file));
    SPK_TRY(check_sizes(&file));
    SPK_GOTO(read_list(&file, file.rows + 1, "row offsets", "row offset", file.nnz, &offsets));
    SPK_GOTO(check_offsets(&file, offsets, scan.line));
    SPK_GOTO(read_list(&file, file.nnz, "columns", "column", file.cols - 1, &columns));
    SPK_GOTO(end_file(&file));
    SPK_GOTO(spk_alloc(in->mem, (size_t)file.nnz, spk_dtype_bytes(file.dtype), &values));
    for (int64_t i = 0; i < file.nnz; i++)
        spk_value_set(values, file.dtype, i, 1);
    SPK_GOTO(spk_io_adopt(in->mem,
                          &(spk_matrix){.format = SPK_CSR,
                                        .dtype = file.dtype,
                                        .rows = file.rows,
                                        .cols = file.cols,
                                        .block_rows = 1,
                                        .block_cols = 1,
                                        .nnz = file.nnz,
                                        .row_offsets = offsets,
                                        .col_indices = columns,
                                        .values = values,
                                        .pattern_only = 1},
                          out));
    return SPK_OK;
done:
    spk_free(in->mem, offsets);
    spk_free(in->mem, columns);
    spk_free(in->mem, values);
    return status;
}

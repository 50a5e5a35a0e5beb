/* Matrix Market: the header, the size line and what both kinds of body share.
 * Stricter than some: one entry a line, an integer field holds no fractions and no integer that f64 would round. More lenient than some:
 * comments and blank lines anywhere, exponents written with D, either triangle of a symmetric matrix. */
#include <math.h>

#include "base/c_locale.h"
#include "matrix/check.h"
#include "matrix/io/mtx.h"

static bool word_is(const spk_word *word, const char *text)
{
    return word->length == strlen(text) && spk_same_letters(word->text, text, word->length);
}

spk_status spk_mtx_next_line(const spk_mtx *file, spk_word *word)
{
    for (;;) {
        int byte = 0;
        SPK_TRY(spk_scan_peek(file->scan, &byte));
        if (byte != '%' && byte != '\n')
            return spk_scan_word(file->scan, word);
        SPK_TRY(spk_scan_drop_line(file->scan)); /* a comment, or nothing */
    }
}

spk_status spk_mtx_need_word(const spk_mtx *file, const char *what, spk_word *word)
{
    int64_t line = file->scan->line;
    SPK_TRY(spk_scan_word(file->scan, word));
    return word->kind == SPK_SCAN_WORD ? SPK_OK : spk_scan_fail(file->scan, line, "ends before the %s", what);
}

spk_status spk_mtx_end_line(const spk_mtx *file, const char *what)
{
    spk_word word;
    char quoted[SPK_QUOTE_ROOM];
    SPK_TRY(spk_scan_word(file->scan, &word));
    if (word.kind != SPK_SCAN_WORD)
        return SPK_OK;
    spk_io_quote(quoted, word.text, word.length);
    return spk_scan_fail(file->scan, file->scan->line, "unexpected %s after the %s", quoted, what);
}

/* Whether the digits say what the value is. An f64 has 309 digits before its point at most. */
static bool is_exact(const char *digits, size_t count, double value)
{
    char exact[320];
    while (count > 1 && *digits == '0') {
        digits++;
        count--;
    }
    return (size_t)spk_snprintf(exact, sizeof exact, "%.0f", fabs(value)) == count && memcmp(exact, digits, count) == 0;
}

static spk_status integer_value(const spk_mtx *file, const spk_word *word, double *value)
{
    char quoted[SPK_QUOTE_ROOM];
    const bool negative = word->text[0] == '-', no_sign = file->field == SPK_MTX_UNSIGNED;
    size_t sign = negative || word->text[0] == '+', digits = sign;
    while (digits < word->length && word->text[digits] >= '0' && word->text[digits] <= '9')
        digits++;
    spk_io_quote(quoted, word->text, word->length);
    if (digits < word->length || digits == sign || (negative && no_sign))
        return spk_scan_fail(file->scan, file->scan->line, "%s is not an %sinteger, as the header promises", quoted,
                             no_sign ? "unsigned " : "");
    SPK_TRY(spk_scan_value(file->scan, word, file->dtype, value));
    if (fabs(*value) >= 0x1p53 && !is_exact(word->text + sign, word->length - sign, *value))
        return spk_scan_fail(file->scan, file->scan->line,
                             "the integer %s has no exact value in f64; a header that says real lets it be rounded", quoted);
    return SPK_OK;
}

spk_status spk_mtx_value(const spk_mtx *file, const spk_word *word, double *value)
{
    if (file->field == SPK_MTX_INTEGER || file->field == SPK_MTX_UNSIGNED)
        return integer_value(file, word, value);
    return spk_scan_value(file->scan, word, file->dtype, value);
}

spk_status spk_mtx_end_file(const spk_mtx *file)
{
    spk_word word;
    SPK_TRY(spk_mtx_next_line(file, &word));
    if (word.kind == SPK_SCAN_END)
        return SPK_OK;
    return spk_scan_fail(file->scan, file->scan->line, "more than the %lld entries of line %lld", (long long)file->declared,
                         (long long)file->size_line);
}

spk_status spk_mtx_check_declared(const spk_mtx *file, int64_t least_bytes)
{
    int64_t left = spk_scan_left(file->scan);
    if (left < 0 || file->declared <= (left + 1) / least_bytes) /* the last line may lack its end */
        return SPK_OK;
    return spk_scan_fail(file->scan, file->size_line, "announces %lld %s, but the %lld bytes that follow hold %lld at most",
                         (long long)file->declared, file->declared == 1 ? "entry" : "entries", (long long)left,
                         (long long)((left + 1) / least_bytes));
}

/* One word of the header against the names that are understood. */
static spk_status header_word(const spk_mtx *file, const char *what, const char *const names[], int count, const char *refused, int *choice)
{
    spk_word word;
    char quoted[SPK_QUOTE_ROOM];
    SPK_TRY(spk_mtx_need_word(file, what, &word));
    for (*choice = 0; *choice < count; ++*choice)
        if (word_is(&word, names[*choice]))
            return SPK_OK;
    if (refused && word_is(&word, refused))
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: line 1: %s matrices are not supported", spk_reader_name(file->scan->in->reader), refused);
    spk_io_quote(quoted, word.text, word.length);
    return spk_scan_fail(file->scan, 1, "unknown %s %s", what, quoted);
}

static spk_status read_header(spk_mtx *file)
{
    static const char *const objects[] = {"matrix"}, *const formats[] = {"array", "coordinate"};
    static const char *const fields[] = {"real", "integer", "pattern", "unsigned-integer", "double"};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
    spk_word word;
    int choice;
    SPK_TRY(spk_scan_word(file->scan, &word));
    if (word.kind != SPK_SCAN_WORD || !word_is(&word, "%%MatrixMarket"))
        return spk_scan_fail(file->scan, 1, "does not begin with %%%%MatrixMarket");
    SPK_TRY(header_word(file, "object", objects, 1, NULL, &choice));
    SPK_TRY(header_word(file, "format", formats, 2, NULL, &choice));
    file->coordinate = choice == 1;
    SPK_TRY(header_word(file, "field", fields, 5, "complex", &choice));
    file->field = choice == 4 ? SPK_MTX_REAL : (spk_mtx_field)choice;
    SPK_TRY(header_word(file, "symmetry", symmetries, 4, NULL, &choice));
    file->symmetry = choice == 3 ? SPK_MTX_SYMMETRIC : (spk_mtx_symmetry)choice; /* without imaginary parts both are the same */
    SPK_TRY(spk_mtx_end_line(file, "header"));
    if (file->field == SPK_MTX_PATTERN && !file->coordinate)
        return spk_scan_fail(file->scan, 1, "an array has values, so its field cannot be pattern");
    if (file->field == SPK_MTX_PATTERN && file->symmetry == SPK_MTX_SKEW)
        return spk_scan_fail(file->scan, 1, "a pattern has no signs, so it cannot be skew-symmetric");
    return SPK_OK;
}

/* Elements that an array file holds: all, the lower triangle, or what is strictly below the diagonal. */
static spk_status array_declared(spk_mtx *file)
{
    int64_t n = file->rows, all;
    if (__builtin_mul_overflow(n, file->cols, &all) || all > INT64_MAX / 8)
        return spk_scan_fail(file->scan, file->size_line, "an array of %lld x %lld elements overflows 64-bit sizes", (long long)n,
                             (long long)file->cols);
    int64_t diagonal = file->symmetry == SPK_MTX_SYMMETRIC ? n : 0;
    file->declared = file->symmetry == SPK_MTX_GENERAL ? all : (all - n) / 2 + diagonal;
    return SPK_OK;
}

static spk_status read_sizes(spk_mtx *file)
{
    static const char *const names[] = {"number of rows", "number of columns", "number of entries"};
    int64_t *const sizes[] = {&file->rows, &file->cols, &file->declared};
    spk_word word;
    SPK_TRY(spk_mtx_next_line(file, &word));
    if (word.kind == SPK_SCAN_END)
        return spk_scan_fail(file->scan, file->scan->line, "ends before the sizes");
    file->size_line = file->scan->line;
    for (int i = 0; i < (file->coordinate ? 3 : 2); i++) {
        if (i > 0)
            SPK_TRY(spk_mtx_need_word(file, names[i], &word));
        SPK_TRY(spk_scan_count(file->scan, &word, names[i], sizes[i]));
        if (i < 2 && *sizes[i] > SPK_SIZE_LIMIT)
            return spk_scan_fail(file->scan, file->size_line, "%s %lld is above %lld", names[i], (long long)*sizes[i],
                                 (long long)SPK_SIZE_LIMIT);
    }
    SPK_TRY(spk_mtx_end_line(file, "sizes"));
    if (file->symmetry != SPK_MTX_GENERAL && file->rows != file->cols)
        return spk_scan_fail(file->scan, file->size_line, "a symmetric matrix cannot be %lld x %lld", (long long)file->rows,
                             (long long)file->cols);
    return file->coordinate ? SPK_OK : array_declared(file);
}

spk_status spk_read_mtx(const spk_read_context *in, spk_matrix **out)
{
    spk_scan scan;
    spk_mtx file = {.scan = &scan};
    SPK_TRY(spk_io_dtype(in, SPK_F64, &file.dtype));
    SPK_TRY(spk_scan_open(in, &scan));
    SPK_TRY(read_header(&file));
    SPK_TRY(read_sizes(&file));
    return file.coordinate ? spk_mtx_read_coordinate(&file, out) : spk_mtx_read_array(&file, out);
}

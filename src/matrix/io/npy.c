/* NumPy .npy, versions 1 to 3: f2, f4, f8 and i1 of either byte order, one or two dimensions, C or Fortran order, as a dense matrix. */
#include <string.h>

#include "matrix/check.h"
#include "matrix/io/support.h"

#define HEADER_LIMIT ((int64_t)1 << 16)

/* The header is a Python dictionary with three keys; this walks over its text. */
typedef struct header {
    const spk_read_context *in;
    const char *at, *end, *start;
    int64_t offset; /* of start in the file */
    char descr[16];
    bool has_descr, has_order, has_shape;
    bool fortran;
    int rank;
    int64_t shape[2];
} header;

static spk_status header_fail(const header *h, const char *what)
{
    return spk_io_fail_at(h->in, h->offset + (h->at - h->start), "%s in the header", what);
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n'))
        h->at++;
}

static bool skip_byte(header *h, char byte)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != byte)
        return false;
    h->at++;
    return true;
}

static spk_status read_string(header *h, char *out, size_t room)
{
    skip_blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return header_fail(h, "a string is missing");
    char quote = *h->at;
    const char *close = memchr(h->at + 1, quote, (size_t)(h->end - h->at - 1));
    size_t length = close ? (size_t)(close - h->at - 1) : room;
    if (length >= room || memchr(h->at, '\\', length + 1))
        return header_fail(h, "a string that does not belong here");
    memcpy(out, h->at + 1, length);
    out[length] = '\0';
    h->at = close + 1;
    return SPK_OK;
}

static spk_status read_shape(header *h)
{
    h->rank = 0;
    if (!skip_byte(h, '('))
        return header_fail(h, "'(' of the shape is missing");
    while (!skip_byte(h, ')')) {
        int64_t size = 0;
        const char *from = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(size, (int64_t)10, &size) || __builtin_add_overflow(size, (int64_t)(*h->at - '0'), &size))
                return header_fail(h, "a size above 2^63");
        if (h->at == from)
            return header_fail(h, "a size of the shape is missing");
        if (size > SPK_SIZE_LIMIT)
            return header_fail(h, "a size above 2^48");
        if (h->rank < 2)
            h->shape[h->rank] = size;
        h->rank++;
        if (!skip_byte(h, ',')) {
            if (h->rank == 1 || !skip_byte(h, ')'))
                return header_fail(h, "',' of the shape is missing");
            break;
        }
    }
    return SPK_OK;
}

static spk_status read_order(header *h)
{
    skip_blanks(h);
    size_t left = (size_t)(h->end - h->at);
    h->fortran = left >= 4 && memcmp(h->at, "True", 4) == 0;
    if (!h->fortran && !(left >= 5 && memcmp(h->at, "False", 5) == 0))
        return header_fail(h, "True or False is missing");
    h->at += h->fortran ? 4 : 5;
    return SPK_OK;
}

static spk_status read_descr(header *h)
{
    skip_blanks(h);
    if (h->at < h->end && (*h->at == '[' || *h->at == '('))
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: structured arrays are not supported", spk_reader_name(h->in->reader));
    return read_string(h, h->descr, sizeof h->descr);
}

static spk_status read_entry(header *h)
{
    char key[16];
    SPK_TRY(read_string(h, key, sizeof key));
    if (!skip_byte(h, ':'))
        return header_fail(h, "':' is missing");
    bool *seen;
    spk_status status;
    if (strcmp(key, "descr") == 0) {
        seen = &h->has_descr;
        status = read_descr(h);
    } else if (strcmp(key, "fortran_order") == 0) {
        seen = &h->has_order;
        status = read_order(h);
    } else if (strcmp(key, "shape") == 0) {
        seen = &h->has_shape;
        status = read_shape(h);
    } else {
        return header_fail(h, "an unknown key");
    }
    if (status == SPK_OK && *seen)
        return header_fail(h, "a key given twice");
    *seen = true;
    return status;
}

static spk_status parse_header(header *h)
{
    if (!skip_byte(h, '{'))
        return header_fail(h, "'{' is missing");
    while (!skip_byte(h, '}')) {
        SPK_TRY(read_entry(h));
        if (!skip_byte(h, ',')) {
            if (!skip_byte(h, '}'))
                return header_fail(h, "',' or '}' is missing");
            break;
        }
    }
    skip_blanks(h);
    if (h->at != h->end)
        return header_fail(h, "something behind the '}'");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return header_fail(h, "descr, fortran_order or shape is missing");
    return SPK_OK;
}

/* The magic, the version and the length of what follows. */
static spk_status read_prefix(const spk_read_context *in, int64_t *length)
{
    unsigned char bytes[12];
    SPK_TRY(spk_reader_bytes(in->reader, bytes, 8));
    if (memcmp(bytes, "\x93NUMPY", 6) != 0)
        return spk_io_fail_at(in, 0, "does not begin with \\x93NUMPY");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return spk_io_fail_at(in, 6, "version %d.%d is unknown: 1.0, 2.0 and 3.0 are known", bytes[6], bytes[7]);
    int count = bytes[6] == 1 ? 2 : 4;
    SPK_TRY(spk_reader_bytes(in->reader, bytes, (size_t)count));
    *length = 0;
    for (int i = 0; i < count; i++)
        *length |= (int64_t)bytes[i] << (8 * i);
    if (*length > HEADER_LIMIT)
        return spk_io_fail_at(in, 8, "a header of %lld bytes, the limit is %lld", (long long)*length, (long long)HEADER_LIMIT);
    return SPK_OK;
}

static spk_status element_of(const header *h, spk_array *array, spk_dtype *dtype)
{
    const char *name = spk_reader_name(h->in->reader);
    bool little = h->descr[0] == '<', big = h->descr[0] == '>', native = h->descr[0] == '=';
    const spk_type *type = spk_type_of_npy(h->descr[0] != '\0' ? h->descr + 1 : NULL);
    const bool byte = h->descr[0] == '|' && type->bytes == 1; /* has no order of bytes */
    if ((!little && !big && !native && !byte) || !spk_type_holds_values(type->dtype)) {
        char quoted[SPK_QUOTE_ROOM];
        spk_io_quote(quoted, h->descr, strlen(h->descr));
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: elements of type %s are not supported: f2, f4, f8 and i1 are", name, quoted);
    }
    array->swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? big : little;
    array->from = spk_element_of(type->dtype);
    SPK_TRY(spk_io_dtype(h->in, type->dtype, dtype));
    array->to = spk_element_of(*dtype);
    return SPK_OK;
}

static spk_status read_elements(const header *h, spk_matrix **out)
{
    const spk_read_context *in = h->in;
    spk_matrix fields = {.format = SPK_DENSE, .block_rows = 1, .block_cols = 1, .layout = h->fortran ? SPK_COL_MAJOR : SPK_ROW_MAJOR};
    spk_array array;
    int64_t reported = 0, bytes;
    if (h->rank < 1 || h->rank > 2)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: an array of %d dimensions: 1 (a column) and 2 are supported", spk_reader_name(in->reader),
                        h->rank);
    SPK_TRY(element_of(h, &array, &fields.dtype));
    fields.rows = h->shape[0];
    fields.cols = h->rank == 2 ? h->shape[1] : 1;
    if (__builtin_mul_overflow(fields.rows, fields.cols, &array.count) || __builtin_mul_overflow(array.count, (int64_t)8, &bytes))
        return spk_io_fail_at(in, h->offset, "an array of %lld x %lld elements overflows 64-bit sizes", (long long)fields.rows,
                              (long long)fields.cols);
    fields.nnz = array.count;
    SPK_TRY(spk_io_check_room(in, array.count, array.to.bytes, 0));
    SPK_TRY(spk_io_array(in, &array, &reported, &fields.values));
    int next = spk_reader_peek(in->reader);
    spk_status status = next == -1   ? SPK_OK
                        : next == -2 ? spk_reader_status(in->reader)
                                     : spk_io_fail_at(in, spk_reader_offset(in->reader), "more bytes than the shape has elements");
    if (status == SPK_OK)
        status = spk_io_adopt(in->mem, &fields, out);
    if (status != SPK_OK)
        spk_free(in->mem, fields.values);
    return status;
}

spk_status spk_read_npy(const spk_read_context *in, spk_matrix **out)
{
    header h = {.in = in};
    const unsigned char *bytes;
    size_t have;
    int64_t length = 0;
    SPK_TRY(read_prefix(in, &length));
    SPK_TRY(spk_reader_window(in->reader, (size_t)length, &bytes, &have));
    h.offset = spk_reader_offset(in->reader);
    if ((int64_t)have < length)
        return spk_io_fail_at(in, h.offset + (int64_t)have, "ends within the header of %lld bytes", (long long)length);
    h.start = h.at = (const char *)bytes;
    h.end = h.start + length;
    SPK_TRY(parse_header(&h));
    spk_reader_skip(in->reader, (size_t)length);
    return read_elements(&h, out);
}

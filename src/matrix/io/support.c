/* What the readers share. Promises that memory is asked for only in proportion to what the file has shown it holds. */
#include "matrix/io/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/callback.h"

#define PROGRESS_BYTES (INT64_C(4) << 20)
#define FIRST_CAPACITY (INT64_C(1) << 16)
#define PIECE_ELEMENTS 8192

void spk_io_quote(char out[SPK_QUOTE_ROOM], const char *text, size_t length)
{
    size_t shown = length > 40 ? 37 : length, at = 0;
    out[at++] = '\'';
    for (size_t i = 0; i < shown; i++)
        out[at++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    if (shown < length) {
        memcpy(out + at, "...", 3);
        at += 3;
    }
    out[at++] = '\'';
    out[at] = '\0';
}

void spk_io_progress(const spk_read_context *in, int64_t *reported)
{
    int64_t offset = spk_reader_offset(in->reader), done, total;
    if (!in->progress || offset - *reported < PROGRESS_BYTES)
        return;
    *reported = offset;
    spk_reader_progress(in->reader, &done, &total);
    spk_tell_progress(in->progress, in->progress_user, done, total < 0 ? 0 : total, "reading");
}

spk_status spk_io_check_room(const spk_read_context *in, int64_t count, int64_t size, int64_t more)
{
    int64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, more, &bytes))
        return spk_fail(SPK_ERR_FORMAT, "%s: needs more than 2^63 bytes of memory, the limit is %lld", spk_reader_name(in->reader),
                        (long long)in->max_bytes);
    if (bytes > in->max_bytes)
        return spk_fail(SPK_ERR_FORMAT, "%s: needs %lld bytes of memory, the limit is %lld", spk_reader_name(in->reader), (long long)bytes,
                        (long long)in->max_bytes);
    return SPK_OK;
}

spk_status spk_io_fail_at(const spk_read_context *in, int64_t offset, const char *format, ...)
{
    char text[700];
    va_list arguments;
    va_start(arguments, format);
    spk_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return spk_fail(SPK_ERR_FORMAT, "%s: byte %lld: %s", spk_reader_name(in->reader), (long long)offset, text);
}

spk_status spk_io_dtype(const spk_read_context *in, spk_dtype of_file, spk_dtype *dtype)
{
    spk_dtype wanted = in->dtype == SPK_DTYPE_DEFAULT ? of_file : in->dtype;
    if (!spk_type_holds_values(wanted) || (spk_type_is_narrow(wanted) && wanted != of_file)) {
        const char *name = spk_dtype_name(wanted);
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: cannot be read as %s: f32 and f64 are", spk_reader_name(in->reader),
                        name ? name : "an unknown dtype");
    }
    *dtype = wanted;
    return SPK_OK;
}

spk_growth spk_growth_start(int64_t count, int64_t left, int64_t least_bytes)
{
    bool shown = left >= 0 && count <= left / least_bytes + 1;
    return (spk_growth){.capacity = shown || count < FIRST_CAPACITY ? count : FIRST_CAPACITY, .most = count};
}

int64_t spk_growth_next(const spk_growth *growth)
{
    int64_t more = growth->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : growth->capacity / 2;
    return more > growth->most - growth->capacity ? growth->most : growth->capacity + more;
}

static bool same(spk_element a, spk_element b)
{
    return a.dtype == b.dtype && a.bytes == b.bytes;
}

spk_element spk_element_of(spk_dtype dtype)
{
    return (spk_element){dtype, (int64_t)spk_dtype_bytes(dtype)};
}

static void swap_bytes(void *bytes, int64_t count, int64_t size)
{
    for (int64_t i = 0; i < count; i++) {
        if (size == 8) {
            uint64_t *word = (uint64_t *)bytes + i;
            *word = __builtin_bswap64(*word);
        } else if (size == 2) {
            uint16_t *word = (uint16_t *)bytes + i;
            *word = __builtin_bswap16(*word);
        } else if (size == 4) {
            uint32_t *word = (uint32_t *)bytes + i;
            *word = __builtin_bswap32(*word);
        }
    }
}

/* Converts a piece; gives the index of the first value that does not fit, or -1. */
static int64_t convert(const void *from, void *to, int64_t offset, const spk_array *array, int64_t count)
{
    char *place = (char *)to + offset * array->to.bytes;
    if (same(array->from, array->to)) {
        memcpy(place, from, (size_t)(count * array->from.bytes));
        return -1;
    }
    if (array->to.dtype == SPK_DTYPE_DEFAULT) {
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)(void *)place)[i] = ((const int32_t *)from)[i];
        return -1;
    }
    if (array->to.bytes < array->from.bytes)
        for (int64_t i = 0; i < count; i++) {
            const double value = spk_value_at(from, array->from.dtype, i);
            if (spk_value_is_lost(array->to.dtype, value))
                return i;
        }
    spk_values_convert(array->to.dtype, place, array->from.dtype, from, count);
    return -1;
}

static spk_status read_pieces(const spk_read_context *in, const spk_array *array, int64_t *reported, void **out, spk_growth growth)
{
    uint64_t piece[PIECE_ELEMENTS];
    int64_t from_size = array->from.bytes, to_size = array->to.bytes;
    bool straight = same(array->from, array->to) && !array->swap;
    for (int64_t done = 0; done < array->count;) {
        if (done == growth.capacity) {
            growth.capacity = spk_growth_next(&growth);
            SPK_TRY(spk_realloc(in->mem, out, (size_t)growth.capacity, (size_t)to_size));
        }
        int64_t room = straight ? PROGRESS_BYTES / from_size : PIECE_ELEMENTS, left = growth.capacity - done;
        int64_t count = left < room ? left : room, offset = spk_reader_offset(in->reader);
        void *place = straight ? (char *)*out + done * from_size : (void *)piece;
        SPK_TRY(spk_reader_bytes(in->reader, place, (size_t)(count * from_size)));
        if (array->swap)
            swap_bytes(place, count, from_size);
        int64_t bad = straight ? -1 : convert(piece, *out, done, array, count);
        if (bad >= 0)
            return spk_io_fail_at(in, offset + bad * from_size, "the value %g is out of the range of %s",
                                  spk_value_at(piece, array->from.dtype, bad), spk_dtype_name(array->to.dtype));
        done += count;
        spk_io_progress(in, reported);
    }
    return SPK_OK;
}

spk_status spk_io_array(const spk_read_context *in, const spk_array *array, int64_t *reported, void *out_pointer)
{
    int64_t size = spk_reader_size(in->reader), offset = spk_reader_offset(in->reader), from_size = array->from.bytes;
    int64_t left = size < 0 ? -1 : size - offset;
    if (left >= 0 && array->count > left / from_size)
        return spk_io_fail_at(in, size, "ends in the middle of %lld elements of %lld bytes that begin at byte %lld",
                              (long long)array->count, (long long)from_size, (long long)offset);
    spk_growth growth = spk_growth_start(array->count, left, from_size);
    void *out = NULL;
    SPK_TRY(spk_alloc(in->mem, (size_t)growth.capacity, (size_t)array->to.bytes, &out));
    spk_status status = read_pieces(in, array, reported, &out, growth);
    if (status != SPK_OK) {
        spk_free(in->mem, out);
        return status;
    }
    memcpy(out_pointer, &out, sizeof out);
    return SPK_OK;
}

spk_status spk_io_adopt(const spk_mem *mem, const spk_matrix *fields, spk_matrix **out)
{
    spk_matrix *matrix = NULL;
    SPK_TRY(spk_alloc(mem, 1, sizeof *matrix, &matrix));
    *matrix = *fields;
    matrix->mem = *mem;
    *out = matrix;
    return SPK_OK;
}

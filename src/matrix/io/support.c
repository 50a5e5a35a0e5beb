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
    bool own_half = wanted == of_file && (wanted == SPK_F16 || wanted == SPK_BF16);
    if (wanted != SPK_F32 && wanted != SPK_F64 && !own_half) {
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

int64_t spk_element_bytes(spk_element element)
{
    if (element == SPK_ELEMENT_F16 || element == SPK_ELEMENT_BF16)
        return 2;
    return element == SPK_ELEMENT_F64 || element == SPK_ELEMENT_I64 ? 8 : 4;
}

spk_element spk_element_of(spk_dtype dtype)
{
    return dtype == SPK_F32 ? SPK_ELEMENT_F32 : dtype == SPK_F64 ? SPK_ELEMENT_F64 : dtype == SPK_F16 ? SPK_ELEMENT_F16 : SPK_ELEMENT_BF16;
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
        } else {
            uint32_t *word = (uint32_t *)bytes + i;
            *word = __builtin_bswap32(*word);
        }
    }
}

/* Converts a piece; gives the index of the first value that does not fit, or -1. */
static int64_t convert(const void *from, void *to, int64_t offset, const spk_array *array, int64_t count)
{
    if (array->from == array->to) {
        int64_t size = spk_element_bytes(array->from);
        memcpy((char *)to + offset * size, from, (size_t)(count * size));
    } else if (array->to == SPK_ELEMENT_I64) {
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)to)[offset + i] = ((const int32_t *)from)[i];
    } else if (array->from == SPK_ELEMENT_F16 || array->from == SPK_ELEMENT_BF16) {
        spk_dtype dtype = array->from == SPK_ELEMENT_F16 ? SPK_F16 : SPK_BF16;
        for (int64_t i = 0; i < count; i++)
            spk_value_set(to, array->to == SPK_ELEMENT_F32 ? SPK_F32 : SPK_F64, offset + i, spk_value_get(from, dtype, i));
    } else if (array->to == SPK_ELEMENT_F64) {
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[offset + i] = (double)((const float *)from)[i];
    } else {
        for (int64_t i = 0; i < count; i++) {
            double value = ((const double *)from)[i];
            /* beyond this the nearest f32 is infinite */
            if (isfinite(value) && fabs(value) >= 0x1.ffffffp127)
                return i;
            ((float *)to)[offset + i] = (float)value;
        }
    }
    return -1;
}

static spk_status read_pieces(const spk_read_context *in, const spk_array *array, int64_t *reported, void **out, spk_growth growth)
{
    uint64_t piece[PIECE_ELEMENTS];
    int64_t from_size = spk_element_bytes(array->from), to_size = spk_element_bytes(array->to);
    bool straight = array->from == array->to && !array->swap;
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
            return spk_io_fail_at(in, offset + bad * from_size, "the value %g is out of the range of f32",
                                  ((const double *)(const void *)piece)[bad]);
        done += count;
        spk_io_progress(in, reported);
    }
    return SPK_OK;
}

spk_status spk_io_array(const spk_read_context *in, const spk_array *array, int64_t *reported, void *out_pointer)
{
    int64_t size = spk_reader_size(in->reader), offset = spk_reader_offset(in->reader), from_size = spk_element_bytes(array->from);
    int64_t left = size < 0 ? -1 : size - offset;
    if (left >= 0 && array->count > left / from_size)
        return spk_io_fail_at(in, size, "ends in the middle of %lld elements of %lld bytes that begin at byte %lld",
                              (long long)array->count, (long long)from_size, (long long)offset);
    spk_growth growth = spk_growth_start(array->count, left, from_size);
    void *out = NULL;
    SPK_TRY(spk_alloc(in->mem, (size_t)growth.capacity, (size_t)spk_element_bytes(array->to), &out));
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

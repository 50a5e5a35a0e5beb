/* The careful way through a text file: words, lines, messages. */
#include "matrix/io/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/c_locale.h"
#include "matrix/io/support.h"

spk_status spk_scan_open(const spk_read_context *in, spk_scan *scan)
{
    scan->in = in;
    scan->at = scan->end = scan->start = scan->tail;
    scan->in_tail = false;
    scan->line = 1;
    scan->reported = 0;
    return spk_scan_refill(scan);
}

spk_status spk_scan_refill(spk_scan *scan)
{
    size_t have;
    if (scan->in_tail)
        return SPK_OK;
    spk_reader *reader = scan->in->reader;
    spk_reader_skip(reader, (size_t)(scan->at - scan->start));
    SPK_TRY(spk_reader_window(reader, SPK_SCAN_ROOM, &scan->start, &have));
    spk_io_progress(scan->in, &scan->reported);
    if (have < SPK_SCAN_ROOM) { /* the end of the file: a NUL behind it stops every loop */
        if (have > 0)
            memcpy(scan->tail, scan->start, have);
        scan->tail[have] = '\0';
        spk_reader_skip(reader, have);
        scan->start = scan->tail;
        scan->in_tail = true;
    }
    scan->at = scan->start;
    scan->end = scan->start + have;
    return SPK_OK;
}

int64_t spk_scan_left(const spk_scan *scan)
{
    int64_t size = spk_reader_size(scan->in->reader), offset = spk_reader_offset(scan->in->reader);
    if (size < 0)
        return -1;
    int64_t left = scan->in_tail ? size - offset + (scan->end - scan->at) : size - offset - (scan->at - scan->start);
    return left < scan->end - scan->at ? scan->end - scan->at : left; /* a file that grows while it is read */
}

spk_status spk_scan_fail(const spk_scan *scan, int64_t line, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    spk_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return spk_fail(SPK_ERR_FORMAT, "%s: line %lld: %s", spk_reader_name(scan->in->reader), (long long)line, text);
}

spk_status spk_scan_peek(spk_scan *scan, int *byte)
{
    for (;; scan->at++) {
        SPK_TRY(spk_scan_room(scan));
        const unsigned char *at = scan->at;
        bool carriage = *at == '\r' && (at + 1 == scan->end || at[1] == '\n');
        if (at < scan->end && (*at == ' ' || *at == '\t' || carriage))
            continue;
        *byte = at == scan->end ? -1 : *at;
        return SPK_OK;
    }
}

spk_status spk_scan_word(spk_scan *scan, spk_word *word)
{
    int byte = 0;
    SPK_TRY(spk_scan_peek(scan, &byte));
    if (byte == -1 || byte == '\n') {
        scan->at += byte == '\n';
        scan->line += byte == '\n';
        word->kind = byte == '\n' ? SPK_SCAN_LINE_END : SPK_SCAN_END;
        return SPK_OK;
    }
    size_t length = 0, room = (size_t)(scan->end - scan->at);
    while (length < room && length < SPK_SCAN_ROOM && scan->at[length] > ' ')
        length++;
    if (length == 0)
        return spk_scan_fail(scan, scan->line, "unexpected byte 0x%02x", (unsigned)byte);
    if (length > SPK_NUMBER_LONGEST)
        return spk_scan_fail(scan, scan->line, "a word of more than %d characters", SPK_NUMBER_LONGEST);
    *word = (spk_word){.text = (const char *)scan->at, .length = length, .kind = SPK_SCAN_WORD};
    scan->at += length;
    return SPK_OK;
}

spk_status spk_scan_drop_line(spk_scan *scan)
{
    for (;;) {
        SPK_TRY(spk_scan_room(scan));
        size_t room = (size_t)(scan->end - scan->at);
        if (room == 0)
            return SPK_OK;
        const unsigned char *newline = memchr(scan->at, '\n', room);
        size_t length = newline ? (size_t)(newline - scan->at) : room;
        if (memchr(scan->at, '\0', length))
            return spk_scan_fail(scan, scan->line, "unexpected byte 0x00");
        scan->at += length;
        if (newline) {
            scan->at++;
            scan->line++;
            return SPK_OK;
        }
    }
}

spk_status spk_scan_value(const spk_scan *scan, const spk_word *word, spk_dtype dtype, double *value)
{
    char quoted[SPK_QUOTE_ROOM];
    spk_number_status result = spk_number_parse(word->text, word->length, value);
    if (result == SPK_NUMBER_OK && spk_value_is_lost(dtype, *value))
        result = SPK_NUMBER_RANGE;
    spk_io_quote(quoted, word->text, word->length);
    if (result == SPK_NUMBER_BAD)
        return spk_scan_fail(scan, scan->line, "%s is not a number", quoted);
    if (result == SPK_NUMBER_RANGE)
        return spk_scan_fail(scan, scan->line, "the value %s is out of the range of %s", quoted, spk_dtype_name(dtype));
    return SPK_OK;
}

spk_status spk_scan_count(const spk_scan *scan, const spk_word *word, const char *what, int64_t *value)
{
    char quoted[SPK_QUOTE_ROOM];
    spk_number_status result = spk_number_parse_index(word->text, word->length, value);
    spk_io_quote(quoted, word->text, word->length);
    if (result == SPK_NUMBER_BAD)
        return spk_scan_fail(scan, scan->line, "%s %s is not a whole number", what, quoted);
    if (result == SPK_NUMBER_RANGE)
        return spk_scan_fail(scan, scan->line, "%s %s is above %lld", what, quoted, (long long)INT64_MAX);
    return SPK_OK;
}

spk_status spk_scan_index(const spk_scan *scan, const spk_word *word, const char *what, int64_t first, int64_t last, int64_t *value)
{
    int64_t index = 0;
    SPK_TRY(spk_scan_count(scan, word, what, &index));
    if (index < first || index > last)
        return spk_scan_fail(scan, scan->line, "%s %lld is outside %lld..%lld", what, (long long)index, (long long)first, (long long)last);
    *value = index - first;
    return SPK_OK;
}

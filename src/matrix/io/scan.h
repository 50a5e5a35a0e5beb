/* Words and lines of a text file, streamed. Promises: no limit on a line, one on a word (SPK_NUMBER_LONGEST characters), the number of
 * the line at hand, and that at[0..SPK_SCAN_ROOM) may be looked at or a NUL byte stands before its end. */
#ifndef SPK_MATRIX_IO_SCAN_H
#define SPK_MATRIX_IO_SCAN_H

#include <string.h>

#include "matrix/io/io.h"
#include "matrix/io/number.h"

enum { SPK_SCAN_ROOM = SPK_NUMBER_LONGEST + 1 };

typedef enum spk_scan_kind { SPK_SCAN_WORD, SPK_SCAN_LINE_END, SPK_SCAN_END } spk_scan_kind;

typedef struct spk_scan {
    const spk_read_context *in;
    const unsigned char *at, *end;         /* what is unread of the window */
    const unsigned char *start;            /* of the window; what lies before `at` is not yet skipped in the reader */
    bool in_tail;                          /* the window is `tail`, the last bytes of the file */
    int64_t line;                          /* of *at, from 1 */
    int64_t reported;                      /* bytes when progress was last told */
    unsigned char tail[SPK_SCAN_ROOM + 1]; /* with a NUL behind */
} spk_scan;

typedef struct spk_word {
    const char *text; /* valid until the next call on the scan */
    size_t length;
    spk_scan_kind kind;
} spk_word;

spk_status spk_scan_open(const spk_read_context *in, spk_scan *scan);
spk_status spk_scan_refill(spk_scan *scan);

/* What the rest of the file can hold in bytes; -1: unknown (a pipe). */
int64_t spk_scan_left(const spk_scan *scan);

/* The next byte of this line that is not blank, not consumed; -1 at the end of the file. */
spk_status spk_scan_peek(spk_scan *scan, int *byte);

/* The next word of this line, the end of the line (consumed), or the end of the file. */
spk_status spk_scan_word(spk_scan *scan, spk_word *word);

/* Drops what is left of the line, its end too. */
spk_status spk_scan_drop_line(spk_scan *scan);

/* SPK_ERR_FORMAT "<name>: line <line>: ...". */
__attribute__((format(printf, 3, 4))) spk_status spk_scan_fail(const spk_scan *scan, int64_t line, const char *format, ...);

/* The word as a number, with the message where it is none; `what` names it: "row index". */
spk_status spk_scan_value(const spk_scan *scan, const spk_word *word, spk_dtype dtype, double *value);
spk_status spk_scan_count(const spk_scan *scan, const spk_word *word, const char *what, int64_t *value);
/* The same in first..last, made zero-based where first is 1. */
spk_status spk_scan_index(const spk_scan *scan, const spk_word *word, const char *what, int64_t first, int64_t last, int64_t *value);

static inline spk_status spk_scan_room(spk_scan *scan)
{
    return scan->in_tail || scan->end - scan->at >= SPK_SCAN_ROOM ? SPK_OK : spk_scan_refill(scan);
}

/* Quick ways, for text of the usual kind: NULL for everything else, which the careful way then reads again. Each looks at no more
 * than 20 bytes and stops at a NUL. */
static inline const unsigned char *spk_scan_fast_index(const unsigned char *at, int64_t *value)
{
    int64_t result = 0;
    const unsigned char *from = at;
    for (unsigned digit; (digit = *at - (unsigned)'0') <= 9; at++) {
        if (at - from == 18)
            return NULL;
        result = result * 10 + digit;
    }
    *value = result;
    return at > from ? at : NULL;
}

static inline const unsigned char *spk_scan_fast_blanks(const unsigned char *at)
{
    const unsigned char *from = at;
    while (*at == ' ' || *at == '\t')
        if (++at - from == 16)
            return NULL;
    return at > from ? at : NULL;
}

#endif

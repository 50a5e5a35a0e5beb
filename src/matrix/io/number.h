/* Decimal numbers from and to text: correctly rounded, and the same whatever the locale. */
#ifndef SPK_MATRIX_IO_NUMBER_H
#define SPK_MATRIX_IO_NUMBER_H

#include <stddef.h>
#include <stdint.h>

typedef enum spk_number_status {
    SPK_NUMBER_OK = 0,
    SPK_NUMBER_BAD = 1,  /* not a number */
    SPK_NUMBER_RANGE = 2 /* beyond the largest finite one */
} spk_number_status;

/* Longest number that is read, in characters, and room that a printed one needs. */
enum { SPK_NUMBER_LONGEST = 4095, SPK_NUMBER_ROOM = 40 };

/* [+-]digits[.digits][(e|d)[+-]digits], [+-]inf[inity], [+-]nan, any case, the whole of text[0..length). */
spk_number_status spk_number_parse(const char *text, size_t length, double *value);

/* Digits only. */
spk_number_status spk_number_parse_index(const char *text, size_t length, int64_t *value);

/* The quick way for plain numbers of at most 19 significant digits: gives the first byte behind, or NULL for whatever needs
 * spk_number_parse. Looks at no more than 64 bytes and stops at the first that is not part of a number. */
const unsigned char *spk_number_fast(const unsigned char *at, double *value);

/* Write at `at`, without a terminating NUL; give the first byte behind. What spk_number_parse reads back is the same value (for
 * f32: once rounded to f32); the short form is taken where 15 (f32: 6) digits suffice, else 17 (9). */
char *spk_number_print_int(char *at, int64_t value);
char *spk_number_print_f64(char *at, double value);
char *spk_number_print_f32(char *at, float value);

#endif

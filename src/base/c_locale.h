/* Text in the C locale, whatever locale the program has set: a decimal point is a point, letters and digits are those of ASCII, messages
 * are in English. Nothing else calls what depends on a locale (tests/abi/c_locale.py). */
#ifndef SPK_BASE_C_LOCALE_H
#define SPK_BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* This thread in the C locale until it leaves; other threads and the program's own locale stay as they are. Allocates nothing. */
locale_t spk_c_locale_enter(void);
void spk_c_locale_leave(locale_t before);

/* snprintf, vsnprintf and fprintf. */
__attribute__((format(printf, 3, 4))) int spk_snprintf(char *out, size_t size, const char *format, ...);
__attribute__((format(printf, 3, 0))) int spk_vsnprintf(char *out, size_t size, const char *format, va_list arguments);
__attribute__((format(printf, 2, 3))) int spk_fprintf(FILE *to, const char *format, ...);

/* strtod. */
double spk_real(const char *text, char **end);

/* Whether `length` characters are the same but for capitals; both texts hold as many, or end. */
bool spk_same_letters(const char *a, const char *b, size_t length);

/* Whether a text of `length` characters has more than the ending, and ends with it, but for capitals. */
bool spk_ends_with(const char *text, size_t length, const char *ending);

/* Whether a text has the word somewhere, but for capitals. */
bool spk_holds_letters(const char *text, const char *word);

/* A letter's capital; every other character as it is. */
char spk_capital(char letter);

/* fnmatch with FNM_PERIOD: whether a file's name matches a pattern. */
bool spk_name_matches(const char *pattern, const char *name);

/* Whether the environment asks for a locale whose text is UTF-8. */
bool spk_locale_is_utf8(void);

/* What an errno says. Valid until this thread's next call. */
const char *spk_system_error(int error);

#endif

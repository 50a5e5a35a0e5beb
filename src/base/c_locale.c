#include "base/c_locale.h"

#include <fnmatch.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

/* glibc and musl hand out a static one, which is never freed: it cannot fail. */
static locale_t plain(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t spk_c_locale_enter(void)
{
    return uselocale(plain());
}

void spk_c_locale_leave(locale_t before)
{
    uselocale(before);
}

int spk_vsnprintf(char *out, size_t size, const char *format, va_list arguments)
{
    const locale_t before = spk_c_locale_enter();
    const int length = vsnprintf(out, size, format, arguments);
    spk_c_locale_leave(before);
    return length;
}

int spk_snprintf(char *out, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = spk_vsnprintf(out, size, format, arguments);
    va_end(arguments);
    return length;
}

int spk_fprintf(FILE *to, const char *format, ...)
{
    va_list arguments;
    const locale_t before = spk_c_locale_enter();
    va_start(arguments, format);
    const int length = vfprintf(to, format, arguments);
    va_end(arguments);
    spk_c_locale_leave(before);
    return length;
}

double spk_real(const char *text, char **end)
{
    return strtod_l(text, end, plain());
}

char spk_capital(char letter)
{
    return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
}

bool spk_same_letters(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (spk_capital(a[i]) != spk_capital(b[i]))
            return false;
        if (a[i] == '\0')
            return true;
    }
    return true;
}

bool spk_ends_with(const char *text, size_t length, const char *ending)
{
    const size_t tail = strlen(ending);
    return length > tail && spk_same_letters(text + length - tail, ending, tail);
}

bool spk_holds_letters(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (size_t left = strlen(text); left >= length; left--, text++)
        if (spk_same_letters(text, word, length))
            return true;
    return false;
}

bool spk_name_matches(const char *pattern, const char *name)
{
    const locale_t before = spk_c_locale_enter();
    const bool matches = fnmatch(pattern, name, FNM_PERIOD) == 0;
    spk_c_locale_leave(before);
    return matches;
}

bool spk_locale_is_utf8(void)
{
    const locale_t wanted = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (wanted == (locale_t)0) /* unknown here: programs stay in the C locale */
        return false;
    const bool utf8 = strcmp(nl_langinfo_l(CODESET, wanted), "UTF-8") == 0;
    freelocale(wanted);
    return utf8;
}

const char *spk_system_error(int error)
{
    return strerror_l(error, plain());
}

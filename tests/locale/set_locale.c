/* Preloaded: the program runs in the locale that TEST_LOCALE names, as one would that a graphical toolkit set up. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void)
{
    const char *name = getenv("TEST_LOCALE");
    if (name == NULL || setlocale(LC_ALL, name) != NULL)
        return;
    fprintf(stderr, "there is no locale %s in LOCPATH\n", name);
    abort();
}

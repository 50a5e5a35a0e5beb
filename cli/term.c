/* What the terminal can show: width, colour, Unicode. */
#include "term.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int term_width(int file)
{
    const char *text = getenv("COLUMNS");
    int width = text ? atoi(text) : 0;
    struct winsize size;
    if (width <= 0 && isatty(file) && ioctl(file, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = 120;
    return width < 20 ? 20 : width > 1000 ? 1000 : width;
}

bool term_color(void)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(none && none[0]) && term && strcmp(term, "dumb") != 0;
}

bool term_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int term_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns;
}

void term_paragraph(const char *text, int indent)
{
    int width = term_width(STDOUT_FILENO), column = 0;
    if (width > 100)
        width = 100;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column && column + 1 + length > width) {
            putchar('\n');
            column = 0;
        }
        if (column == 0)
            column = printf("%*s%.*s", indent, "", length, text);
        else
            column += printf(" %.*s", length, text);
        text += length;
        while (*text == ' ' || *text == '\n')
            text++;
    }
    putchar('\n');
}

void term_broken(const char *text, const char *behind)
{
    int width = term_width(STDOUT_FILENO), column = 0;
    while (*text) {
        int length = (int)strcspn(text, behind);
        length += text[length] != 0;
        if (column > 2 && column + length > width) {
            fputs("\n  ", stdout);
            column = 2;
        }
        column += printf("%.*s", length, text);
        text += length;
    }
    putchar('\n');
}

/* What the terminal can show: width, colour, Unicode. */
#include "cli/base/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/c_locale.h"

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
    static int known = -1;
    if (known < 0)
        known = spk_locale_is_utf8();
    return known;
}

int term_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns;
}

enum { TEXT_WIDTH = 100 }; /* longer lines are hard to read */

int term_text_width(void)
{
    const int width = term_width(STDOUT_FILENO);
    return width > TEXT_WIDTH ? TEXT_WIDTH : width;
}

int term_words(const char *text, int length, int column, int indent, int width)
{
    const char *end = text + length;
    for (bool first = true; text < end; first = false) {
        const char *word = text;
        int columns = 0;
        for (; text < end && *text != ' ' && *text != '\n'; text++)
            columns += ((unsigned char)*text & 0xC0) != 0x80;
        if (!first && column + 1 + columns > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)(text - word), word);
        column += columns;
        while (text < end && (*text == ' ' || *text == '\n'))
            text++;
    }
    return column;
}

void term_paragraph(const char *text, int indent)
{
    printf("%*s", indent, "");
    term_words(text, (int)strlen(text), indent, indent, term_text_width());
    putchar('\n');
}

static bool is_entry(const char *line)
{
    return strncmp(line, "  ", 2) == 0 && line[2] != ' ';
}

/* What belongs together: a line, and those after it that neither are empty nor begin an entry. */
static int piece(const char *text)
{
    int length = (int)strcspn(text, "\n");
    const bool entry = is_entry(text);
    while (length && text[length] == '\n' && text[length + 1] != '\n' && text[length + 1] && !is_entry(text + length + 1) &&
           (!entry || text[length + 1] == ' '))
        length += 1 + (int)strcspn(text + length + 1, "\n");
    return length;
}

term_piece term_next(const char **text)
{
    term_piece p = {.text = *text};
    int length = piece(*text);
    const char *gap = is_entry(*text) ? strstr(p.text + 2, "  ") : NULL;
    p.entry = gap && gap - *text < length;
    if (p.entry) {
        p.name = p.text + 2;
        p.name_length = (int)(gap - p.name);
        p.text = gap + strspn(gap, " ");
        length -= (int)(p.text - *text);
    }
    p.length = length;
    *text = p.text + length;
    *text += **text == '\n';
    return p;
}

void term_text(const char *text)
{
    const int width = term_text_width();
    int across = 0; /* of the entries' names */
    for (const char *at = text; *at;) {
        const term_piece p = term_next(&at);
        across = p.entry && p.name_length > across ? p.name_length : across;
    }
    const int indent = across + 4 <= width / 3 ? across + 4 : 6;
    for (const char *at = text; *at;) {
        const term_piece p = term_next(&at);
        int column = 0;
        if (p.entry) {
            printf("  %.*s", p.name_length, p.name);
            column = 2 + p.name_length;
            if (column + 2 > indent) {
                putchar('\n');
                column = 0;
            }
            printf("%*s", indent - column, "");
            column = indent;
        }
        term_words(p.text, p.length, column, p.entry ? indent : 0, width);
        putchar('\n');
    }
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

/* Tables for people. Cells are kept, widths are found when all is known. */
#include "cli/base/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "cli/base/memory.h"
#include "cli/base/term.h"
#include "cli/base/text.h"

enum { MAX_COLUMNS = 12, MIN_STRETCH = 8, MAX_BAR = 18, REMARK_INDENT = 4 };

typedef struct table_line {
    table_style style;
    double bar; /* negative: none */
    char *cells[MAX_COLUMNS], *remark;
} table_line;

struct table {
    table_column columns[MAX_COLUMNS];
    bool hidden[MAX_COLUMNS];
    int count, rows, capacity;
    table_line *lines;
};

table *table_make(const table_column *columns, int count)
{
    table *t = cli_alloc(1, sizeof(*t));
    t->count = count < MAX_COLUMNS ? count : MAX_COLUMNS;
    memcpy(t->columns, columns, (size_t)t->count * sizeof(*columns));
    return t;
}

void table_release(table **t)
{
    if (!*t)
        return;
    for (int r = 0; r < (*t)->rows; r++) {
        free((*t)->lines[r].remark);
        for (int c = 0; c < MAX_COLUMNS; c++)
            free((*t)->lines[r].cells[c]);
    }
    free((*t)->lines);
    free(*t);
    *t = NULL;
}

void table_hide(table *t, int column)
{
    t->hidden[column] = true;
}

void table_row(table *t, table_style style)
{
    if (t->rows == t->capacity) {
        int capacity = t->capacity ? 2 * t->capacity : 16;
        table_line *lines = cli_alloc((size_t)capacity, sizeof(*lines));
        if (t->rows)
            memcpy(lines, t->lines, (size_t)t->rows * sizeof(*lines));
        free(t->lines);
        t->lines = lines;
        t->capacity = capacity;
    }
    t->lines[t->rows++] = (table_line){.style = style, .bar = -1};
}

void table_cell(table *t, int column, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    spk_vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    free(t->lines[t->rows - 1].cells[column]);
    t->lines[t->rows - 1].cells[column] = cli_format("%s", cli_clean(text));
}

void table_bar(table *t, double share)
{
    t->lines[t->rows - 1].bar = share < 0 ? 0 : share > 1 ? 1 : share;
}

void table_remark(table *t, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    spk_vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    free(t->lines[t->rows - 1].remark);
    t->lines[t->rows - 1].remark = cli_format("%s", cli_clean(text));
}

/* Prints text in exactly `width` columns; cuts it with an ellipsis. pad: fill to the width. */
static void fitted(const char *text, int width, bool right, bool pad)
{
    int columns = term_columns(text);
    if (columns <= width) {
        int space = width - columns;
        if (right)
            printf("%*s%s", space, "", text);
        else
            printf("%s%*s", text, pad ? space : 0, "");
        return;
    }
    const char *dots = term_utf8() ? "…" : width > 3 ? "..." : "";
    int left = width - term_columns(dots);
    for (const char *at = text; *at; at++) {
        if (((unsigned char)*at & 0xC0) != 0x80 && left-- == 0)
            break;
        putchar(*at);
    }
    fputs(dots, stdout);
}

/* Returns the columns it took. */
static int bar(double share, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!term_utf8()) {
        int count = (int)lround(share * width);
        for (int i = 0; i < count; i++)
            putchar('#');
        return count;
    }
    int parts = (int)lround(share * width * 8);
    for (int i = 0; i < parts / 8; i++)
        fputs("█", stdout);
    fputs(eighths[parts % 8], stdout);
    return (parts + 7) / 8;
}

static int bar_room(int width)
{
    return width / 2 < MIN_STRETCH ? (width < MIN_STRETCH ? width : MIN_STRETCH) : width / 2 > MAX_BAR ? MAX_BAR : width / 2;
}

/* A bar, and behind it a text where there is one and room for it; all bars of a table have one scale. */
static void bar_and_text(double share, const char *text, int width)
{
    const int available_width = bar_room(width), taken = bar(share, available_width);
    if (text && text[0] && width > available_width + 6) {
        printf("%*s", available_width + 1 - taken, "");
        fitted(text, width - available_width - 1, false, false);
    }
}

/* Widths of the columns that fit; 0: left out. Returns nothing: a table is always shown, cut if it must be. */
static void fit_widths(const table *t, int available_width, int *widths)
{
    int total = 0;
    for (int c = 0; c < t->count; c++) {
        widths[c] = term_columns(t->columns[c].title);
        for (int r = 0; r < t->rows; r++)
            if (t->lines[r].cells[c] && term_columns(t->lines[r].cells[c]) > widths[c])
                widths[c] = term_columns(t->lines[r].cells[c]);
        if (t->columns[c].stretch)
            widths[c] = MIN_STRETCH;
        if (t->hidden[c]) {
            widths[c] = 0;
            continue;
        }
        total += widths[c] + (c ? 2 : 0);
    }
    while (total > available_width) {
        int victim = -1;
        for (int c = 1; c < t->count; c++)
            if (widths[c] && t->columns[c].keep && (victim < 0 || t->columns[c].keep < t->columns[victim].keep))
                victim = c;
        if (victim < 0)
            break;
        total -= widths[victim] + 2;
        widths[victim] = 0;
    }
    for (int c = 0; c < t->count; c++)
        if (t->columns[c].stretch && widths[c] && available_width > total)
            widths[c] += available_width - total;
    /* two columns of text tell the rows apart: the terminal may wrap */
    bool tells = t->count > 1 && t->columns[1].keep == 0 && !t->columns[1].right;
    if (total > available_width && !tells) /* even the columns that stay are too wide: the first one is cut */
        widths[0] = widths[0] - (total - available_width) > 4 ? widths[0] - (total - available_width) : 4;
}

static void print_line(const table *t, const int *widths, const table_line *line, bool titles)
{
    int last = 0;
    for (int c = 0; c < t->count; c++)
        if (widths[c] && (titles || (line->cells[c] && line->cells[c][0]) || (t->columns[c].stretch && line->bar >= 0)))
            last = c;
    for (int c = 0; c <= last; c++) {
        if (!widths[c])
            continue;
        if (c)
            fputs("  ", stdout);
        if (!titles && t->columns[c].stretch && line->bar >= 0)
            bar_and_text(line->bar, line->cells[c], widths[c]);
        else
            fitted(titles ? t->columns[c].title : line->cells[c] ? line->cells[c] : "", widths[c], t->columns[c].right, c < last);
    }
}

/* Puts the remarks that have room into the stretching column, which is the last. */
static void place_remarks(table *t, const int *widths)
{
    const int last = t->count - 1;
    for (int r = 0; r < t->rows; r++) {
        table_line *line = &t->lines[r];
        const int available_width = widths[last] - (line->bar >= 0 ? bar_room(widths[last]) + 1 : 0);
        if (!line->remark || !t->columns[last].stretch || line->cells[last] || term_columns(line->remark) > available_width)
            continue;
        line->cells[last] = line->remark;
        line->remark = NULL;
    }
}

void table_print(table *t, int indent)
{
    static const char *const styles[] = {"", "\033[32m", "\033[2m", "\033[31m"};
    int widths[MAX_COLUMNS] = {0};
    const bool color = term_color();
    const bool unbounded = !getenv("COLUMNS") && !isatty(STDOUT_FILENO); /* a file or a pipe: nothing is cut */
    const int width = unbounded ? 1000 : term_width(STDOUT_FILENO);
    fit_widths(t, width - indent, widths);
    place_remarks(t, widths);
    printf("%*s%s", indent, "", color ? "\033[1m" : "");
    print_line(t, widths, NULL, true);
    printf("%s\n", color ? "\033[0m" : "");
    for (int r = 0; r < t->rows; r++) {
        const table_line *line = &t->lines[r];
        const char *style = styles[line->style];
        printf("%*s%s", indent, "", color ? style : "");
        print_line(t, widths, line, false);
        if (line->remark) {
            printf("\n%*s", indent + REMARK_INDENT, "");
            term_words(line->remark, (int)strlen(line->remark), indent + REMARK_INDENT, indent + REMARK_INDENT, width);
        }
        printf("%s\n", color && style[0] ? "\033[0m" : "");
    }
}

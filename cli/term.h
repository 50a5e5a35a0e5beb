/* What the terminal can show: width, colour, Unicode. */
#ifndef SPARSEK_CLI_TERM_H
#define SPARSEK_CLI_TERM_H

#include <stdbool.h>

/* Columns: COLUMNS where set, else the terminal's, else 120 (pipes and files). At least 20. */
int term_width(int file);

/* Colour: standard output is a terminal, NO_COLOR is not set, TERM is not "dumb". */
bool term_color(void);

/* The locale is UTF-8. */
bool term_utf8(void);

/* Prints text wrapped at words to the terminal's width, each line after `indent` spaces. */
void term_paragraph(const char *text, int indent);

/* Prints a long word, broken behind any of these characters where the line is full; what follows the first line is set in. */
void term_broken(const char *text, const char *behind);

/* Columns that a UTF-8 text takes (one a code point). */
int term_columns(const char *text);

#endif

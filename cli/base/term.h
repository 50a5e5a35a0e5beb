/* What the terminal can show: width, colour, Unicode. */
#ifndef SPARSEK_CLI_BASE_TERM_H
#define SPARSEK_CLI_BASE_TERM_H

#include <stdbool.h>

/* Columns: COLUMNS where set, else the terminal's, else 120 (pipes and files). At least 20. */
int term_width(int file);

/* Colour: standard output is a terminal, NO_COLOR is not set, TERM is not "dumb". */
bool term_color(void);

/* The locale is UTF-8. */
bool term_utf8(void);

/* The width of running text on standard output: the terminal's, and 100 at most. */
int term_text_width(void);

/* Prints `length` bytes of words from a column on, wrapped at `width`, each further line after `indent` spaces. Returns the column it ends
 * in. */
int term_words(const char *text, int length, int column, int indent, int width);

/* Prints text wrapped at words to the terminal's width, each line after `indent` spaces. */
void term_paragraph(const char *text, int indent);

/* Texts of several pieces: paragraphs, whose lines are joined, and entries, which are lines of two spaces, a name, two spaces or more and a
 * text, which may go on in lines that begin with spaces. An empty line is a piece of length 0. */
typedef struct term_piece {
    const char *name, *text; /* not ended by 0 */
    int name_length, length;
    bool entry;
} term_piece;

/* The piece at *text, which goes on behind it. */
term_piece term_next(const char **text);

/* Prints such a text, wrapped to the terminal's width. */
void term_text(const char *text);

/* Prints a long word, broken behind any of these characters where the line is full; what follows the first line is set in. */
void term_broken(const char *text, const char *behind);

/* Columns that a UTF-8 text takes (one a code point). */
int term_columns(const char *text);

#endif

/* Tables for people: columns that fit the terminal's width (the least important go first), bars, the chosen row marked. */
#ifndef SPARSEK_CLI_BASE_TABLE_H
#define SPARSEK_CLI_BASE_TABLE_H

#include <stdbool.h>

typedef enum table_style { TABLE_PLAIN, TABLE_GOOD, TABLE_FAINT, TABLE_BAD } table_style;

typedef struct table_column {
    const char *title;
    bool right;   /* aligned to the right */
    int keep;     /* columns with a small number go first on a narrow terminal; 0: always stays */
    bool stretch; /* takes what width is left (one, the last); its cells are cut where there is too little, remarks are not */
} table_column;

typedef struct table table;

/* columns are copied; at most 12. */
table *table_make(const table_column *columns, int count);
void table_release(table **t);

/* Leaves out a column, which is not the first. */
void table_hide(table *t, int column);

/* Starts a row; the cells are then set one by one (missing ones are empty). */
void table_row(table *t, table_style style);
__attribute__((format(printf, 3, 4))) void table_cell(table *t, int column, const char *format, ...);

/* A bar in the stretching column, before its text: a share in [0, 1] of its room. */
void table_bar(table *t, double share);

/* A remark on the row: it stands in the stretching column behind the bar where the whole of it has room there, else in lines of its own
 * below the row. */
__attribute__((format(printf, 2, 3))) void table_remark(table *t, const char *format, ...);

void table_print(table *t, int indent);

#endif

/* Spy plots: where the entries of a sparse matrix are, in the terminal and as SVG. */
#ifndef SPARSEK_CLI_MATRIX_SPY_H
#define SPARSEK_CLI_MATRIX_SPY_H

#include "cli/base/cli.h"

typedef struct spy {
    int rows, cols; /* of the picture */
    double *share;  /* rows x cols: entries over the elements that the cell covers, in [0, 1] */
} spy;

/* Counts the entries of a CSR matrix into a picture of at most rows x cols cells (fewer where the matrix is smaller). */
void spy_make(const spk_matrix_desc *csr, int rows, int cols, spy *out);
void spy_release(spy *s);

/* A framed plot of at most `columns` columns: braille dots where the locale is UTF-8, shades of ASCII else. */
void spy_print(const spk_matrix_desc *csr, int columns);

/* Writes an SVG picture; darker cells hold more entries. Returns an exit code. */
int spy_write_svg(const cli *app, const spk_matrix_desc *csr, const char *title, const char *path);

#endif

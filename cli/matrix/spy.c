/* Spy plots: where the entries of a sparse matrix are, in the terminal and as SVG. */
#include "cli/matrix/spy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/memory.h"
#include "cli/base/term.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"

enum { SVG_CELLS = 256, MAX_COLUMNS = 72, MAX_LINES = 40 };

/* The first element of cell i when `count` elements are dealt to `cells` cells. */
static int64_t cell_begin(int64_t count, int cells, int i)
{
    return (int64_t)((double)count * i / cells);
}

static int cell_of(int64_t count, int cells, int64_t at)
{
    int i = (int)((double)at * cells / (double)count);
    while (i + 1 < cells && cell_begin(count, cells, i + 1) <= at)
        i++;
    while (i > 0 && cell_begin(count, cells, i) > at)
        i--;
    return i;
}

void spy_make(const spk_matrix_desc *csr, int rows, int cols, spy *out)
{
    const int64_t *offsets = csr->row_offsets, *columns = csr->col_indices;
    spy s = {.rows = csr->rows < rows ? (int)csr->rows : rows, .cols = csr->cols < cols ? (int)csr->cols : cols};
    s.share = cli_alloc((size_t)s.rows * (size_t)s.cols, sizeof(double));
    for (int64_t i = 0; i < csr->rows; i++) {
        double *line = s.share + (int64_t)cell_of(csr->rows, s.rows, i) * s.cols;
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++)
            line[cell_of(csr->cols, s.cols, columns[e])] += 1;
    }
    for (int i = 0; i < s.rows; i++)
        for (int j = 0; j < s.cols; j++) {
            double area = (double)(cell_begin(csr->rows, s.rows, i + 1) - cell_begin(csr->rows, s.rows, i)) *
                          (double)(cell_begin(csr->cols, s.cols, j + 1) - cell_begin(csr->cols, s.cols, j));
            double share = area > 0 ? s.share[i * s.cols + j] / area : 0;
            s.share[i * s.cols + j] = share > 1 ? 1 : share; /* duplicates of a CSR matrix count twice */
        }
    *out = s;
}

void spy_release(spy *s)
{
    free(s->share);
    *s = (spy){0};
}

/* One braille sign: 2 x 4 dots, a dot where the cell holds an entry. */
static void put_braille(const spy *s, int top, int left)
{
    static const unsigned char dots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned code = 0x2800;
    for (int i = 0; i < 4 && top + i < s->rows; i++)
        for (int j = 0; j < 2 && left + j < s->cols; j++)
            if (s->share[(top + i) * s->cols + left + j] > 0)
                code |= dots[i][j];
    printf("%c%c%c", 0xE0 | (code >> 12), 0x80 | ((code >> 6) & 0x3F), 0x80 | (code & 0x3F));
}

static void put_shade(double share, double most)
{
    static const char shades[] = " .:-=+*#%@";
    int level = share <= 0 ? 0 : 1 + (int)lround(8 * sqrt(share / most));
    putchar(shades[level > 9 ? 9 : level]);
}

static void frame(const char *left, const char *line, const char *right, int columns)
{
    printf("  %s", left);
    for (int i = 0; i < columns; i++)
        fputs(line, stdout);
    printf("%s\n", right);
}

void spy_print(const spk_matrix_desc *csr, int columns)
{
    bool braille = term_utf8();
    int across = braille ? 2 : 1, down = braille ? 4 : 1;
    if (csr->rows == 0 || csr->cols == 0)
        return;
    /* a sign is about twice as high as wide */
    int width = columns - 4 < 4 ? 4 : columns - 4 > MAX_COLUMNS ? MAX_COLUMNS : columns - 4;
    double aspect = (double)csr->rows / (double)csr->cols;
    if (width * aspect / 2 > MAX_LINES)
        width = (int)(2 * MAX_LINES / aspect) < 1 ? 1 : (int)(2 * MAX_LINES / aspect);
    int lines = (int)lround(width * aspect / 2);
    lines = lines < 1 ? 1 : lines > MAX_LINES ? MAX_LINES : lines;
    spy s;
    spy_make(csr, lines * down, width * across, &s);
    int signs = (s.cols + across - 1) / across;
    double most = 1e-300;
    for (int i = 0; i < s.rows * s.cols; i++)
        most = s.share[i] > most ? s.share[i] : most;
    frame(braille ? "┌" : "+", braille ? "─" : "-", braille ? "┐" : "+", signs);
    for (int i = 0; i < s.rows; i += down) {
        fputs(braille ? "  │" : "  |", stdout);
        for (int j = 0; j < s.cols; j += across)
            if (braille)
                put_braille(&s, i, j);
            else
                put_shade(s.share[i * s.cols + j], most);
        puts(braille ? "│" : "|");
    }
    frame(braille ? "└" : "+", braille ? "─" : "-", braille ? "┘" : "+", signs);
    spy_release(&s);
}

/* Appends the cells of one line as rectangles, equal neighbours in one. */
static void svg_line(FILE *out, const spy *s, int row)
{
    const double *share = s->share + (int64_t)row * s->cols;
    for (int j = 0; j < s->cols;) {
        int level = share[j] <= 0 ? 0 : 1 + (int)lround(9 * sqrt(share[j])), end = j + 1;
        while (end < s->cols && (share[end] <= 0 ? 0 : 1 + (int)lround(9 * sqrt(share[end]))) == level)
            end++;
        if (level) /* the faintest cell is still well seen */
            spk_fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"1\" fill-opacity=\"%.2f\"/>\n", j, row, end - j,
                        0.4 + 0.06 * level);
        j = end;
    }
}

int spy_write_svg(const cli *app, const spk_matrix_desc *csr, const char *title, const char *path)
{
    double longest = (double)(csr->rows > csr->cols ? csr->rows : csr->cols), scale = longest > SVG_CELLS ? SVG_CELLS / longest : 1;
    int rows = (int)ceil((double)csr->rows * scale), cols = (int)ceil((double)csr->cols * scale);
    spy s;
    spy_make(csr, rows, cols, &s);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) {
        spy_release(&s);
        return cli_fail(app, EXIT_RESOURCES, "out of memory for %s", path);
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-1 -1 %d %d\" width=\"%d\" height=\"%d\" "
            "shape-rendering=\"crispEdges\">\n<title>",
            s.cols + 2, s.rows + 2, 3 * (s.cols + 2), 3 * (s.rows + 2));
    for (const char *c = title; *c; c++) {
        const char *entity = *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : *c == '&' ? "&amp;" : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*c, out);
    }
    fprintf(out,
            "</title>\n<rect x=\"-0.5\" y=\"-0.5\" width=\"%d\" height=\"%d\" fill=\"#fff\" stroke=\"#888\" stroke-width=\"0.5\"/>\n<g "
            "fill=\"#14487a\">\n",
            s.cols + 1, s.rows + 1);
    for (int i = 0; i < s.rows; i++)
        svg_line(out, &s, i);
    fputs("</g>\n</svg>\n", out);
    int failed = ferror(out);
    failed |= fclose(out) != 0 || !text; /* closing may fail to make the text, and not say so */
    int code = failed ? cli_fail(app, EXIT_RESOURCES, "out of memory for %s", path) : output_write(app, path, text, bytes);
    free(text);
    spy_release(&s);
    return code;
}

/* What the parts of the Matrix Market reader share. */
#ifndef SPK_MATRIX_IO_MTX_H
#define SPK_MATRIX_IO_MTX_H

#include "matrix/io/scan.h"
#include "matrix/io/support.h"

typedef enum spk_mtx_field { SPK_MTX_REAL, SPK_MTX_INTEGER, SPK_MTX_PATTERN, SPK_MTX_UNSIGNED } spk_mtx_field;
typedef enum spk_mtx_symmetry { SPK_MTX_GENERAL, SPK_MTX_SYMMETRIC, SPK_MTX_SKEW } spk_mtx_symmetry;

typedef struct spk_mtx {
    spk_scan *scan;
    bool coordinate;
    spk_mtx_field field;
    spk_mtx_symmetry symmetry;
    spk_dtype dtype;
    int64_t rows, cols;
    int64_t declared;  /* entries that the file holds */
    int64_t size_line; /* the line that says so */
} spk_mtx;

spk_status spk_mtx_read_coordinate(const spk_mtx *file, spk_matrix **out);
spk_status spk_mtx_read_array(const spk_mtx *file, spk_matrix **out);

/* The first word of the next line that is neither blank nor a comment; kind is SPK_SCAN_END where there is none. */
spk_status spk_mtx_next_line(const spk_mtx *file, spk_word *word);
/* The next word of an entry's line; `what` names it where it is missing. */
spk_status spk_mtx_need_word(const spk_mtx *file, const char *what, spk_word *word);
/* Nothing but blanks follows on the line. */
spk_status spk_mtx_end_line(const spk_mtx *file, const char *what);
/* A word as a value of the file's field. An integer that f64 does not hold exactly is refused. */
spk_status spk_mtx_value(const spk_mtx *file, const spk_word *word, double *value);
/* Nothing but comments and blank lines follows in the file. */
spk_status spk_mtx_end_file(const spk_mtx *file);
/* Refuses an announcement that what follows in the file cannot hold. */
spk_status spk_mtx_check_declared(const spk_mtx *file, int64_t least_bytes);

#endif

/* A matrix of any format read row by row as (column, value) entries; and small tools of the conversions. */
#ifndef SPK_MATRIX_ENTRIES_H
#define SPK_MATRIX_ENTRIES_H

#include <stdbool.h>

#include "matrix/matrix.h"

/* Non-zeros of a dense matrix, stored entries of the others (of BSR those inside the logical size), explicit zeros included. Entries of a
 * row come in stored order and may repeat a column. A COO or column-major source is first rearranged into `made`. */
typedef struct spk_entries {
    const spk_matrix *matrix; /* row-major dense, CSR or BSR */
    spk_matrix *made;         /* NULL, or what `matrix` points to */
    int64_t *cols_room;
    double *values_room;
    /* the row loaded last */
    int64_t count;
    const int64_t *cols;
    const double *values; /* NULL unless asked for */
} spk_entries;

/* Borrows the matrix. close frees what open made, also after a failed open of a zeroed struct. */
spk_status spk_entries_open(const spk_mem *mem, const spk_matrix *matrix, spk_entries *entries);
void spk_entries_close(const spk_mem *mem, spk_entries *entries);
void spk_entries_load(spk_entries *entries, int64_t row, bool with_values);
/* Entries of all rows, repeats counted each time. */
int64_t spk_entries_total(spk_entries *entries);

/* COO as CSR, entries of a row in the order of the source: neither sorted nor summed. */
spk_status spk_coo_to_rows(const spk_mem *mem, const spk_matrix *coo, spk_matrix **csr);

/* Copies rows x cols elements of `bytes` (1, 2, 4 or 8) between two strided arrays (strides in elements), tile by tile. */
void spk_copy_strided(void *to, int64_t to_row_stride, int64_t to_col_stride, const void *from, int64_t from_row_stride,
                      int64_t from_col_stride, int64_t rows, int64_t cols, size_t bytes);

/* The transposed compressed index: new_offsets has cols + 1 elements, new_indices (rows) and positions (old place) as many as the old has.
 * Stable: entries of one new row keep the old order. */
void spk_transpose_index(int64_t rows, int64_t cols, const int64_t *offsets, const int64_t *indices, int64_t *new_offsets,
                         int64_t *new_indices, int64_t *positions);

/* x / by for by in 1..256 and 0 <= x < 2^55 by one multiplication: a division for every entry would dominate the conversions. */
typedef struct spk_divider {
    uint64_t magic; /* floor(2^64 / by) + 1; 0: by = 1 */
} spk_divider;

__extension__ typedef unsigned __int128 spk_u128;

static inline spk_divider spk_divider_make(int64_t by)
{
    return (spk_divider){by == 1 ? 0 : UINT64_MAX / (uint64_t)by + 1};
}

static inline int64_t spk_divide(spk_divider divider, int64_t x)
{
    return divider.magic == 0 ? x : (int64_t)((spk_u128)(uint64_t)x * divider.magic >> 64);
}

#endif

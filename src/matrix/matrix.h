/* Matrices in host memory: dense, COO, CSR, BSR. What the library holds always has 64-bit indices; values are of a type that holds values.
 */
#ifndef SPK_MATRIX_MATRIX_H
#define SPK_MATRIX_MATRIX_H

#include <stdbool.h>

#include "base/mem.h"
#include "type/value.h"

struct spk_matrix {
    spk_mem mem;
    spk_format format;
    spk_dtype dtype;
    int64_t rows, cols;
    int64_t block_rows, block_cols; /* 1 unless BSR */
    spk_layout layout;              /* dense: of the array, tight; BSR: inside a block */
    int64_t nnz;                    /* entries, blocks, or rows * cols */
    int64_t *row_offsets;           /* CSR, BSR */
    int64_t *row_indices;           /* COO */
    int64_t *col_indices;           /* COO, CSR, BSR */
    void *values;                   /* never NULL; 64-byte aligned */
    int pattern_only;               /* the source had no values: they are ones */
    int unvalued;                   /* no value is a caller's or a file's: made of one with pattern_only, however converted since */
};

/* An empty shell with its arrays allocated (uninitialised) for nnz entries or blocks; checks that the sizes do not overflow.
 * rows, cols >= 0. */
spk_status spk_matrix_make(const spk_mem *mem, spk_format format, spk_dtype dtype, int64_t rows, int64_t cols, int64_t block_rows,
                           int64_t block_cols, spk_layout layout, int64_t nnz, spk_matrix **matrix);
void spk_matrix_release(spk_matrix **matrix); /* accepts NULL */

int64_t spk_matrix_grid_rows(const spk_matrix *matrix);
int64_t spk_matrix_grid_cols(const spk_matrix *matrix);
int64_t spk_matrix_value_count(const spk_matrix *matrix); /* elements in values */

/* The work behind the public spk_matrix_* functions (src/api checks arguments, these do the rest). */
spk_status spk_convert_create(const spk_mem *mem, const spk_matrix_desc *desc, spk_matrix **out); /* validates every index */
spk_status spk_convert_to_bsr(const spk_mem *mem, const spk_matrix *in, int64_t block_rows, int64_t block_cols, spk_layout layout,
                              spk_matrix **out);
spk_status spk_convert_to_csr(const spk_mem *mem, const spk_matrix *in, spk_matrix **out);
spk_status spk_convert_to_coo(const spk_mem *mem, const spk_matrix *in, spk_matrix **out);
spk_status spk_convert_to_dense(const spk_mem *mem, const spk_matrix *in, spk_layout layout, spk_matrix **out);
spk_status spk_convert_cast(const spk_mem *mem, const spk_matrix *in, spk_dtype dtype, spk_matrix **out);
spk_status spk_convert_transpose(const spk_mem *mem, const spk_matrix *in, spk_matrix **out);
spk_status spk_convert_canonicalize(const spk_mem *mem, const spk_matrix *in, spk_matrix **out);
spk_status spk_convert_prune(const spk_mem *mem, const spk_matrix *in, int64_t block_rows, int64_t block_cols, double density,
                             spk_norm norm, spk_matrix **out);
spk_status spk_advise_blocks(const spk_mem *mem, const spk_matrix *in, spk_block_advice *advice, int *count);

/* Generators (generate.c, elasticity.c). */
spk_status spk_generate_matrix(const spk_mem *mem, const spk_generate *options, spk_matrix **out, int64_t *shortfall);
spk_status spk_generate_elasticity(const spk_mem *mem, const spk_generate *options, spk_matrix **out);
spk_status spk_generate_mask(const spk_mem *mem, const spk_generate *options, spk_matrix **out);
spk_status spk_generate_values(spk_dtype dtype, int64_t count, uint64_t seed, void *out);

#endif

/* sparsek: matrices in host memory, and their files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_MATRIX_H
#define SPARSEK_MATRIX_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_SIZED_spk_matrix_desc sizeof(spk_matrix_desc)
#define SPK_SIZED_spk_block_advice sizeof(spk_block_advice)
#define SPK_SIZED_spk_read_options sizeof(spk_read_options)
#define SPK_SIZED_spk_write_options sizeof(spk_write_options)

/* ------------------------------------------------------------------------------------------------ matrices in host memory */

/* A matrix in the host's memory; immutable. Any context reads it, whichever made it. */
typedef struct spk_matrix spk_matrix;
/* How a matrix is stored. */
typedef enum spk_format { SPK_DENSE = 1, SPK_COO = 2, SPK_CSR = 3, SPK_BSR = 4 } spk_format;

/* A matrix in arrays: what spk_matrix_create copies and spk_matrix_view shows. */
typedef struct spk_matrix_desc {
    size_t struct_size;
    spk_format format;
    spk_dtype dtype; /* f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8 */
    int64_t rows, cols;
    int64_t block_rows, block_cols; /* BSR; else 1 */
    spk_layout layout;              /* dense: of the array; BSR: inside a block */
    int64_t ld;                     /* dense; 0: tight */
    int64_t nnz;                    /* stored entries (COO, CSR) or stored blocks (BSR); dense: rows * cols */
    spk_index_type index_type;      /* what the library hands out is always SPK_INDEX_I64 */
    const void *row_offsets;        /* CSR: rows + 1; BSR: block rows + 1 */
    const void *row_indices;        /* COO */
    const void *col_indices;        /* COO, CSR: columns; BSR: block columns */
    const void *values;             /* NULL: all ones */
    int pattern_only;               /* the source gave no values */
    int reserved;
} spk_matrix_desc;

/* Copies a caller's arrays after checking every index. Duplicates and unsorted entries are allowed in COO and CSR;
 * BSR may have them too until it becomes a pattern (see spk_matrix_canonicalize). */
SPK_API spk_status spk_matrix_create(spk_context *context, const spk_matrix_desc *desc, spk_matrix **matrix);
SPK_API void spk_matrix_destroy(spk_matrix **matrix);

/* Borrowed pointers, valid as long as the matrix. */
SPK_API spk_status spk_matrix_view(const spk_matrix *matrix, spk_matrix_desc *desc);

/* The pattern of a canonical BSR matrix. It remembers the dtype: a plan that reads the stored values as another is refused. For values of
 * another dtype give the matrix of spk_matrix_cast, or the indices (spk_matrix_view) to spk_pattern_create. */
SPK_API spk_status spk_pattern_from_matrix(spk_context *context, const spk_matrix *bsr, spk_pattern **pattern);

/* Each makes a new matrix. to_bsr takes any format (BSR too: re-blocks); explicit zeros are kept as stored entries, a dense
 * source stores the blocks that hold a non-zero. Duplicate entries are summed. The overhang of edge blocks is zero. A cast to f32
 * refuses what is finite in f64 and too large for f32. */
SPK_API spk_status spk_matrix_to_bsr(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols,
                                     spk_layout block_layout, spk_matrix **out);
SPK_API spk_status spk_matrix_to_csr(spk_context *context, const spk_matrix *matrix, spk_matrix **out);
SPK_API spk_status spk_matrix_to_coo(spk_context *context, const spk_matrix *matrix, spk_matrix **out);
SPK_API spk_status spk_matrix_to_dense(spk_context *context, const spk_matrix *matrix, spk_layout layout, spk_matrix **out);
SPK_API spk_status spk_matrix_cast(spk_context *context, const spk_matrix *matrix, spk_dtype dtype, spk_matrix **out);
SPK_API spk_status spk_matrix_transpose(spk_context *context, const spk_matrix *matrix, spk_matrix **out);

/* Sorts the blocks (entries) of each row and sums duplicates. */
SPK_API spk_status spk_matrix_canonicalize(spk_context *context, const spk_matrix *matrix, spk_matrix **out);

/* How the size of a block is measured for pruning. */
typedef enum spk_norm { SPK_NORM_L1 = 1, SPK_NORM_L2 = 2, SPK_NORM_MAX = 3 } spk_norm;

/* Keeps the round(density * grid) blocks of largest norm (ties: the lower block index first). Any source format, of finite values; what is
 * kept is a BSR matrix. density in [0, 1]. Every block of a dense source counts, zero or not, so that a layer can be trained from zeros; a
 * sparse source has the blocks that hold its entries: spk_matrix_to_bsr first leaves out those of a dense one that are zero. */
SPK_API spk_status spk_matrix_prune(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols, double density,
                                    spk_norm norm, spk_matrix **out);

/* What one block size would cost a matrix: an entry of the list that spk_matrix_advise writes. */
typedef struct spk_block_advice {
    size_t struct_size;
    int64_t block_rows, block_cols;
    int64_t nnzb;
    double density; /* of blocks */
    double fill;    /* stored elements (edge overhang not counted) over entries of the source, >= 1 */
    double score;   /* estimated time relative to the best of the list, >= 1: 1 marks the advice */
} spk_block_advice;

/* Fill-in at natural square sizes (1 2 3 4 5 6 8 12 16 24 32 48 64 128) up to the matrix's size. In: *count = room in advice, and
 * advice[0].struct_size is that of every entry; out: *count = entries written, sorted by block size. */
SPK_API spk_status spk_matrix_advise(spk_context *context, const spk_matrix *matrix, spk_block_advice *advice, int *count);

/* ------------------------------------------------------------------------------------------------ files */

/* How spk_matrix_read reads a file. */
typedef struct spk_read_options {
    size_t struct_size;
    const char *tensor; /* safetensors: name of a tensor or of a BSR triple; NULL: the only one in the file */
    spk_dtype dtype;    /* convert on reading; default: the file's (Matrix Market and .smtx: f64) */
    int64_t max_bytes;  /* refuse a file that would need more memory; 0: three quarters of the machine's memory */
    int64_t cols;       /* columns of the matrix, which a BSR triple without metadata does not tell; 0: not known (see below) */
} spk_read_options;

/* Format by content and extension: .mtx, .smtx, .npy, .safetensors, each in gzip's compression too. "/dev/stdin" is standard input,
 * from where it stands. options may be NULL. A bad file gives SPK_ERR_FORMAT with
 * the line or byte offset. Matrix Market coordinate gives COO in file order (symmetric files expanded), array and .npy dense,
 * .smtx CSR with values of one, safetensors BSR or dense. A BSR triple of a safetensors file (NAME.values, NAME.row_offsets,
 * NAME.col_indices) that has no metadata, such as a layer of a model, has the block that its values' shape says; its columns are
 * options.cols, else what config.json beside the file says of that layer, else those up to the last stored block, with a note in the log.
 * A matrix of another number of columns than options.cols is refused. */
SPK_API spk_status spk_matrix_read(spk_context *context, const char *path, const spk_read_options *options, spk_matrix **matrix);

/* How spk_matrix_write writes a file. */
typedef struct spk_write_options {
    size_t struct_size;
    const char *tensor;  /* safetensors: name to write under; NULL: "matrix" */
    const char *comment; /* Matrix Market: a comment line */
    const char *format;  /* "mtx", "smtx", "npy" or "safetensors"; NULL: by the extension of the path */
} spk_write_options;

/* Written aside, fsynced and renamed: at any moment the path holds the old file or the whole new one. A killed
 * process may leave a file .sparsek-*.tmp beside it, which the next write into that folder removes.
 * What is no regular file is written straight to; "/dev/stdout" is standard output.
 * What a format cannot hold is refused (.smtx: values are dropped only where all are one; .npy: dense only). */
SPK_API spk_status spk_matrix_write(spk_context *context, const spk_matrix *matrix, const char *path, const spk_write_options *options);

#ifdef __cplusplus
}
#endif
#endif /* SPARSEK_MATRIX_H */

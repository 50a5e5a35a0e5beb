/* The header of a safetensors file, and what reader and writer agree on for BSR:
 *   <name>.row_offsets  I64 (I32 is read too) [block rows + 1]
 *   <name>.col_indices  I64 (I32 is read too) [stored blocks]
 *   <name>.values       F32 or F64 [stored blocks, block rows, block columns]; for column-major blocks
 *                       [stored blocks, block columns, block rows]
 *   __metadata__ "sparsek.bsr.<name>": {"rows":, "cols":, "block_rows":, "block_cols":, "block_layout": "row" or "col"} as text; with
 *   "pattern_only": true there is no <name>.values, and all are one
 * A bare triple is one of which the metadata does not tell, as models of PyTorch hold it: the block is that of the values' shape,
 * row-major; rows and columns come from elsewhere (safetensors_bare.c). */
#ifndef SPK_MATRIX_IO_SAFETENSORS_H
#define SPK_MATRIX_IO_SAFETENSORS_H

#include <jansson.h>

#include "matrix/io/support.h"

#define SPK_BSR_PREFIX "sparsek.bsr."
#define SPK_TENSORS_HEADER_LIMIT ((int64_t)100000000)
#define SPK_TENSORS_HEADER_MEMORY (INT64_C(16) << 20) /* allowed in any case: max_bytes is meant for matrices */

enum { SPK_TENSOR_RANK = 3 };

typedef struct spk_tensor {
    const char *name, *dtype;
    int rank;
    int64_t shape[SPK_TENSOR_RANK]; /* the first sizes */
    int64_t begin, end;             /* of its bytes, behind the header */
    bool in_bsr;                    /* part of a BSR matrix */
    char *bare;                     /* of the values of a bare triple: its name; NULL of all others */
} spk_tensor;

typedef struct spk_tensors {
    const spk_read_context *in;
    json_t *root; /* owns the names */
    json_t *metadata;
    spk_tensor *list; /* by where they lie in the file */
    int64_t count;
    int64_t data; /* offset in the file of the first byte behind the header */
} spk_tensors;

/* Reads and checks the whole header: sizes, overlaps, gaps, limits of the file. Release in any case. */
spk_status spk_tensors_read(const spk_read_context *in, spk_tensors *tensors);
void spk_tensors_release(spk_tensors *tensors);

const spk_tensor *spk_tensors_find(const spk_tensors *tensors, const char *name);

/* Sizes of a bare triple: *fields but for what its parts say. cols is -1 where nobody tells: up to the last block that is stored, which
 * spk_bare_cols finds once the columns are read. */
spk_status spk_bare_sizes(const spk_tensors *tensors, const char *name, spk_matrix *fields);
spk_status spk_bare_cols(const spk_tensors *tensors, const char *name, const int64_t *columns, spk_matrix *fields);

/* A JSON text parsed strictly; `what` names it, `offset` is its place in the file (negative: it stands there escaped, within the
 * header). */
spk_status spk_tensors_json(const spk_read_context *in, const char *text, size_t length, const char *what, int64_t offset, json_t **json);

#endif

/* A test double of cuSPARSE that records: what it is asked to multiply, and for which product it is asked for the size of a buffer. */
#include "record.h"

enum { STREAM, MADE_OF = 0, WIDE = 1, BUFFER_BYTES = 12345 };

int cusparseCreate(record_thing **handle)
{
    return *handle = record_thing_make("cusparse", 0), 0;
}
int cusparseSetStream(record_thing *handle, void *stream)
{
    const int is_given = stream != NULL;
    return record_thing_set(handle, STREAM, &is_given, sizeof is_given);
}

static int make(record_thing **matrix, const char *kind, const int64_t *made_of, size_t bytes)
{
    *matrix = record_thing_make(kind, 0);
    return record_thing_set(*matrix, MADE_OF, made_of, bytes);
}

int cusparseCreateBsr(record_thing **matrix, int64_t block_rows, int64_t block_cols, int64_t blocks, int64_t rows_of_block,
                      int64_t cols_of_block, void *offsets, void *columns, void *values, int offsets_type, int columns_type, int base,
                      int value_type, int order)
{
    const int64_t made_of[] = {
        block_rows,   block_cols,   blocks, rows_of_block, cols_of_block, (intptr_t)offsets, (intptr_t)columns, (intptr_t)values,
        offsets_type, columns_type, base,   value_type,    order};
    return make(matrix, "bsr", made_of, sizeof made_of);
}
int cusparseCreateBlockedEll(record_thing **matrix, int64_t rows, int64_t cols, int64_t block, int64_t ell_cols, void *columns,
                             void *values, int columns_type, int base, int value_type)
{
    const int64_t made_of[] = {rows, cols, block, ell_cols, (intptr_t)columns, (intptr_t)values, columns_type, base, value_type};
    return make(matrix, "ell", made_of, sizeof made_of);
}
int cusparseCreateDnMat(record_thing **matrix, int64_t rows, int64_t cols, int64_t ld, void *values, int value_type, int order)
{
    const int64_t made_of[] = {rows, cols, ld, (intptr_t)values, value_type, order};
    return make(matrix, "dense", made_of, sizeof made_of);
}
int cusparseDestroySpMat(record_thing *matrix)
{
    return record_thing_destroy(matrix);
}
int cusparseDestroyDnMat(record_thing *matrix)
{
    return record_thing_destroy(matrix);
}

typedef struct product {
    record_thing *handle;
    int op_a, op_b, compute, algorithm;
    const void *alpha, *beta;
    record_thing *a, *b, *c;
} product;

static void record_product(const char *call, const product *p)
{
    const size_t scalar = p->compute == WIDE ? 8 : 4;
    record_line("%s ops %d %d compute %d algorithm %d", call, p->op_a, p->op_b, p->compute, p->algorithm);
    record_words(p->alpha, scalar, NULL);
    record_words(p->beta, scalar, NULL);
    record_addresses(4, (const void *const[]){p->handle, p->a, p->b, p->c});
}

int cusparseSpMM_bufferSize(record_thing *handle, int op_a, int op_b, const void *alpha, record_thing *a, record_thing *b, const void *beta,
                            record_thing *c, int compute, int algorithm, size_t *bytes)
{
    record_product("cusparseSpMM_bufferSize", &(product){handle, op_a, op_b, compute, algorithm, alpha, beta, a, b, c});
    record_end_line();
    return *bytes = BUFFER_BYTES, 0;
}
int cusparseSpMM(record_thing *handle, int op_a, int op_b, const void *alpha, record_thing *a, record_thing *b, const void *beta,
                 record_thing *c, int compute, int algorithm, void *buffer)
{
    record_product("cusparseSpMM", &(product){handle, op_a, op_b, compute, algorithm, alpha, beta, a, b, c});
    record_addresses(1, (const void *const[]){buffer});
    record_end_line();
    return 0;
}

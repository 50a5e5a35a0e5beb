/* cuSPARSE's functions and its handle, for the rows that use it. */
#ifndef SPK_BACKEND_CUDA_VENDOR_CUSPARSE_H
#define SPK_BACKEND_CUDA_VENDOR_CUSPARSE_H

#include "backend/cuda/host/frame/rows.h"

/* Handles, matrices and vectors of the library are pointers. */
typedef struct spk_sparse_functions {
    int (*create)(void **handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*create_bsr)(void **matrix, int64_t block_rows, int64_t block_cols, int64_t blocks, int64_t rows_of_block, int64_t cols_of_block,
                      void *offsets, void *columns, void *values, int offsets_type, int columns_type, int base, int value_type, int order);
    int (*create_ell)(void **matrix, int64_t rows, int64_t cols, int64_t block, int64_t ell_cols, void *columns, void *values,
                      int columns_type, int base, int value_type);
    int (*create_dense)(void **matrix, int64_t rows, int64_t cols, int64_t ld, void *values, int value_type, int order);
    int (*destroy_sparse)(void *matrix);
    int (*destroy_dense)(void *matrix);
    int (*buffer)(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int compute,
                  int algorithm, size_t *bytes);
    int (*multiply)(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int compute,
                    int algorithm, void *buffer);
} spk_sparse_functions;

enum { SPARSE_I32 = 2, SPARSE_ORDER_COL = 1, SPARSE_ORDER_ROW = 2, SPARSE_ALG_ELL = 13, SPARSE_ALG_BSR = 14 };

/* Between the two nobody else uses the device's handle, which carries the stream. *functions and *handle are good where it returns SPK_OK;
 * end is called in any case. */
spk_status spk_sparse_begin(const spk_device *device, const spk_sparse_functions **functions, void **handle);
void spk_sparse_end(void);

/* What the library returned, as a status; of a call that is named. */
spk_status spk_sparse_try(int result, const char *call);

static inline int spk_sparse_order(spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? SPARSE_ORDER_ROW : SPARSE_ORDER_COL;
}

#endif

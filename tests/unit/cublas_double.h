/* What a test asks of the test double of libcublas (cublas_double.c), and what it may look at. */
#ifndef CUBLAS_DOUBLE_H
#define CUBLAS_DOUBLE_H

#include <stddef.h>

enum { CUBLAS_DOUBLE_CALLS = 16 };

typedef struct cublas_double {
    int create, batched; /* the status that the call gives from now on; 0: good */
    int fail_at;         /* `batched` befalls this call alone; -1: each */
    void *stream, *workspace;
    size_t workspace_bytes;
    int calls;
    struct {
        int op_a, op_b, m, n, k, lda, ldb, ldc, type_a, type_c, count, compute;
        float alpha, beta;
        const void *a, *b, *c; /* the lists */
    } call[CUBLAS_DOUBLE_CALLS];
} cublas_double;

#endif

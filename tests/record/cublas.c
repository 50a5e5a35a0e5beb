/* A test double of cuBLAS that records: what it is asked to multiply. */
#include "record.h"

enum { STREAM, WORKSPACE }; /* of a handle */
enum { COMPUTE_64F = 70 };

int cublasCreate_v2(record_thing **handle)
{
    return *handle = record_thing_make("cublas", 0), 0;
}

/* The handle's own workspace comes back. */
int cublasSetStream_v2(record_thing *handle, void *stream)
{
    const int is_given = stream != NULL;
    record_thing_clear(handle);
    return record_thing_set(handle, STREAM, &is_given, sizeof is_given);
}

int cublasSetWorkspace_v2(record_thing *handle, void *workspace, size_t bytes)
{
    const uint64_t words[] = {(uint64_t)(uintptr_t)workspace, bytes};
    return record_thing_set(handle, WORKSPACE, words, sizeof words);
}

int cublasGemmBatchedEx(record_thing *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *const *a, int type_a,
                        int lda, const void *const *b, int type_b, int ldb, const void *beta, void *const *c, int type_c, int ldc,
                        int count, int compute, int algorithm)
{
    const size_t scalar = compute == COMPUTE_64F ? 8 : 4;
    record_line("cublasGemmBatchedEx ops %d %d sizes %d %d %d types %d %d %d steps %d %d %d count %d compute %d algorithm %d", op_a, op_b,
                m, n, k, type_a, type_b, type_c, lda, ldb, ldc, count, compute, algorithm);
    record_words(alpha, scalar, NULL);
    record_words(beta, scalar, NULL);
    record_addresses(4, (const void *const[]){handle, a, b, c});
    record_end_line();
    return 0;
}

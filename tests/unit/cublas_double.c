/* A test double of libcublas for what cublas_blocks asks of it and for errors: it computes nothing. */
#include "cublas_double.h"

cublas_double cublas_double_state = {.fail_at = -1};
#define STATE (&cublas_double_state)

int cublasCreate_v2(void **handle)
{
    return *handle = STATE, STATE->create;
}
int cublasSetStream_v2(void *handle, void *stream)
{
    return STATE->stream = stream, STATE->workspace = 0, 0;
}
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes)
{
    return STATE->workspace = workspace, STATE->workspace_bytes = bytes, 0;
}
int cublasGemmBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *const *a, int type_a, int lda,
                        const void *const *b, int type_b, int ldb, const void *beta, void *const *c, int type_c, int ldc, int count,
                        int compute, int algorithm)
{
    int now = STATE->calls++;
    if (now < CUBLAS_DOUBLE_CALLS) {
        STATE->call[now].op_a = op_a, STATE->call[now].op_b = op_b, STATE->call[now].m = m, STATE->call[now].n = n, STATE->call[now].k = k;
        STATE->call[now].lda = lda, STATE->call[now].ldb = ldb, STATE->call[now].ldc = ldc, STATE->call[now].type_a = type_a,
        STATE->call[now].type_c = type_c;
        STATE->call[now].count = count, STATE->call[now].compute = compute, STATE->call[now].a = a, STATE->call[now].b = b,
        STATE->call[now].c = c;
        STATE->call[now].alpha = *(const float *)alpha, STATE->call[now].beta = *(const float *)beta;
    }
    return STATE->fail_at < 0 || STATE->fail_at == now ? STATE->batched : 0;
}

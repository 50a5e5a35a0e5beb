/* The caller's structs of rowsum: D = alpha X, and S, the sums of D's rows. Its outputs differ in shape, layout and dtype. */
#ifndef SPK_ROWSUM_H
#define SPK_ROWSUM_H

#include <sparsek/sparsek.h>

#define SPK_ROWSUM ((spk_operation)101)
#define SPK_SIZED_spk_rowsum sizeof(spk_rowsum), .operation = SPK_ROWSUM
#define SPK_SIZED_spk_rowsum_args sizeof(spk_rowsum_args), .operation = SPK_ROWSUM

typedef struct spk_rowsum {
    size_t struct_size;
    spk_operation operation; /* SPK_ROWSUM */
    spk_dtype dtype;         /* of X and D; default: SPK_F32. S is f32, of f64 f64 */
    int64_t m, n;
    spk_layout layout_d;
    int reserved;                                        /* 0 */
    int64_t ldx, ldd;                                    /* 0: tight */
    int64_t batch;                                       /* items; 0: 1 */
    int64_t stride_x, stride_d, stride_s;                /* 0: tight; X: SPK_STRIDE_SHARED */
    int64_t heads;                                       /* matrices of an item; 0: 1 */
    int64_t head_stride_x, head_stride_d, head_stride_s; /* 0: tight */
} spk_rowsum;

typedef struct spk_rowsum_args {
    size_t struct_size;
    spk_operation operation; /* SPK_ROWSUM */
    int reserved;            /* 0 */
    const void *x;
    void *d, *s;
    double alpha;
    void *workspace;
    size_t workspace_bytes;
    void *stream;
} spk_rowsum_args;

#endif

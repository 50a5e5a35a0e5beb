/* The caller's structs of axpy, D = alpha X + Y. Of an operation that the library ships they are in operations.h, and its number is in
 * spk_operation. */
#ifndef SPK_AXPY_H
#define SPK_AXPY_H

#include <sparsek/sparsek.h>

#define SPK_AXPY ((spk_operation)100)
#define SPK_SIZED_spk_axpy sizeof(spk_axpy), .operation = SPK_AXPY
#define SPK_SIZED_spk_axpy_args sizeof(spk_axpy_args), .operation = SPK_AXPY

typedef struct spk_axpy {
    size_t struct_size;
    spk_operation operation; /* SPK_AXPY */
    spk_dtype dtype;         /* of X, Y and D; default: SPK_F32 */
    int64_t m, n;            /* rows and columns, >= 0 */
    int64_t ldx, ldy, ldd;   /* from one row to the next; 0: tight */
} spk_axpy;

typedef struct spk_axpy_args {
    size_t struct_size;
    spk_operation operation; /* SPK_AXPY */
    int reserved;            /* 0 */
    const void *x;
    const void *y;
    void *d;         /* may equal y (then ldd must equal ldy) */
    double alpha;    /* finite */
    void *workspace; /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_plan_run takes its own and ignores this one */
} spk_axpy_args;

#endif

/* The facts of a problem that device programs are specialised for: the host defines each (spk_problem_device_defines). The defaults are for
 * reading and for a compiler run by hand.
 *
 *   DTYPE_A, DTYPE_B, DTYPE_D   element types (spk_dtype); C, bias, residual and preact have D's
 *   COMPUTE                     what sums are kept in: F32, F64, or TF32 (F32 sums of products of operands rounded to TF32)
 *   LAYOUT_B, LAYOUT_D          ROW_MAJOR or COL_MAJOR (C, residual and preact have D's); LAYOUT_D of SDDMM: of D's blocks
 *   A_K_CONTIGUOUS              of SDDMM and GEMM: 1: X, or A, is row-major. Of SpMM: 1: neighbours along K inside a block of op(A) lie
 *                               together (col_stride is 1); 0: neighbours along M do (row_stride is 1)
 *   HAS_POSITIONS               1: block p of op(A) lies at positions[p]
 *   USE_C                       1: C takes part, where beta is not 0
 *   BIAS                        NO_BIAS, BIAS_PER_ROW or BIAS_PER_COL
 *   ACTIVATION                  NO_ACTIVATION, RELU, GELU_ERF, GELU_TANH or SILU
 *   RESIDUAL                    NO_RESIDUAL, ADDED or MULTIPLIED
 *   KEEP_PREACT                 0 or 1
 *   ASSUME_FINITE               1: B holds no inf or NaN
 *   BATCHED                     1: there are several items
 *   GROUP_AXIS                  NO_GROUPS, or the axis that the items cut: ROW_GROUPS, COLUMN_GROUPS or DEPTH_GROUPS
 */
#ifndef SPK_CUDA_PROBLEM_CUH
#define SPK_CUDA_PROBLEM_CUH

#include "backend/cuda/device/common/arguments.h"
#include "backend/cuda/device/common/number.cuh"

/* The values of sparsek.h. */
#define F32 1
#define F64 2
#define F16 3
#define BF16 4
#define TF32 7
#define ROW_MAJOR 0
#define COL_MAJOR 1
#define NO_BIAS 0
#define BIAS_PER_ROW 1
#define BIAS_PER_COL 2
#define NO_ACTIVATION 0
#define RELU 1
#define GELU_ERF 2
#define GELU_TANH 3
#define SILU 4
#define NO_RESIDUAL 0
#define ADDED 1
#define MULTIPLIED 2
#define NO_GROUPS 0
#define ROW_GROUPS 1
#define COLUMN_GROUPS 2
#define DEPTH_GROUPS 3

#ifndef DTYPE_A
#define DTYPE_A F32
#endif
#ifndef DTYPE_B
#define DTYPE_B DTYPE_A
#endif
#ifndef DTYPE_D
#define DTYPE_D DTYPE_B
#endif
#ifndef COMPUTE
#define COMPUTE F32
#endif
#ifndef LAYOUT_B
#define LAYOUT_B ROW_MAJOR
#endif
#ifndef LAYOUT_D
#define LAYOUT_D ROW_MAJOR
#endif
#ifndef A_K_CONTIGUOUS
#define A_K_CONTIGUOUS 1
#endif
#ifndef HAS_POSITIONS
#define HAS_POSITIONS 0
#endif
#ifndef USE_C
#define USE_C 0
#endif
#ifndef BIAS
#define BIAS NO_BIAS
#endif
#ifndef ACTIVATION
#define ACTIVATION NO_ACTIVATION
#endif
#ifndef RESIDUAL
#define RESIDUAL NO_RESIDUAL
#endif
#ifndef KEEP_PREACT
#define KEEP_PREACT 0
#endif
#ifndef ASSUME_FINITE
#define ASSUME_FINITE 0
#endif
#ifndef BATCHED
#define BATCHED 0
#endif
#ifndef GROUP_AXIS
#define GROUP_AXIS NO_GROUPS
#endif

template <int DTYPE> struct element_of;
template <> struct element_of<F32> {
    typedef float type;
};
template <> struct element_of<F64> {
    typedef double type;
};
template <> struct element_of<F16> {
    typedef f16 type;
};
template <> struct element_of<BF16> {
    typedef bf16 type;
};

typedef element_of<DTYPE_A>::type element_a;
typedef element_of<DTYPE_B>::type element_b;
typedef element_of<DTYPE_D>::type element_d;
typedef element_of<COMPUTE == F64 ? F64 : F32>::type real; /* of sums */

/* Where a group begins and ends on the axis that is cut. Offsets that do not ascend, or reach beyond the axis, are held inside of it. */
struct group_range {
    int begin, end;
};
inline group_range group_at(const spk_cuda_arguments &batch, int group)
{
    const int size = (int)(GROUP_AXIS == ROW_GROUPS ? batch.m : GROUP_AXIS == COLUMN_GROUPS ? batch.n : batch.k);
    const int begin = group > 0 ? min(max(batch.ends[group - 1], 0), size) : 0;
    return group_range{begin, max(begin, min(batch.ends[group], size))};
}

/* The arguments of an item of the batch: where there is one item alone they are its own. */
#if BATCHED || GROUP_AXIS != NO_GROUPS
typedef const spk_cuda_arguments item_view;
inline spk_cuda_arguments whole_item_arguments(const spk_cuda_arguments &batch, long long item)
{
    spk_cuda_arguments arg = batch;
    arg.values = (const element_a *)batch.values + item * batch.stride_a;
    arg.b = (const element_b *)batch.b + item * batch.stride_b;
    arg.c = (const element_d *)batch.c + item * batch.stride_c;
    arg.d = (element_d *)batch.d + item * batch.stride_d;
    arg.bias = (const element_d *)batch.bias + item * batch.stride_bias;
    arg.residual = (const element_d *)batch.residual + item * batch.stride_r;
    arg.preact = (element_d *)batch.preact + item * batch.stride_p;
    return arg;
}
#endif

#if GROUP_AXIS != NO_GROUPS
/* A group's product as one of its own: its part of the axis that is cut. */
inline spk_cuda_arguments item_arguments(const spk_cuda_arguments &batch, long long group)
{
    constexpr bool rows = GROUP_AXIS == ROW_GROUPS, columns = GROUP_AXIS == COLUMN_GROUPS;
    spk_cuda_arguments arg = whole_item_arguments(batch, group);
    const group_range range = group_at(batch, (int)group);
    const long long first = range.begin;
    if (!columns)
        arg.values = (const element_a *)arg.values + first * (rows == (A_K_CONTIGUOUS != 0) ? batch.lda : 1);
    if (!rows)
        arg.b = (const element_b *)arg.b + first * (columns == (LAYOUT_B == COL_MAJOR) ? batch.ldb : 1);
    if (rows || columns) {
        constexpr bool down = rows == (LAYOUT_D == ROW_MAJOR);
        arg.c = (const element_d *)arg.c + first * (down ? batch.ldc : 1);
        arg.d = (element_d *)arg.d + first * (down ? batch.ldd : 1);
        arg.residual = (const element_d *)arg.residual + first * (down ? batch.ldr : 1);
        arg.preact = (element_d *)arg.preact + first * (down ? batch.ldp : 1);
        if (BIAS == (rows ? BIAS_PER_ROW : BIAS_PER_COL))
            arg.bias = (const element_d *)arg.bias + first;
    }
    (rows ? arg.m : columns ? arg.n : arg.k) = range.end - range.begin;
    return arg;
}
#elif BATCHED
inline spk_cuda_arguments item_arguments(const spk_cuda_arguments &batch, long long item)
{
    return whole_item_arguments(batch, item);
}
#else
typedef const spk_cuda_arguments &item_view;
inline const spk_cuda_arguments &item_arguments(const spk_cuda_arguments &batch, long long item)
{
    return batch;
}
#endif

/* Where every item has item_blocks thread blocks: this one's item, and its place among them. */
inline unsigned block_item(const spk_cuda_arguments &batch)
{
    return BATCHED ? blockIdx.x / batch.item_blocks : 0;
}
inline unsigned block_of_item(const spk_cuda_arguments &batch)
{
    return BATCHED ? blockIdx.x % batch.item_blocks : blockIdx.x;
}

/* Where the values of block p of op(A) begin. */
inline const element_a *block_values(const spk_cuda_arguments &arg, int p)
{
#if HAS_POSITIONS
    return (const element_a *)arg.values + __ldg(arg.positions + p) * arg.block_stride;
#else
    return (const element_a *)arg.values + p * arg.block_stride;
#endif
}

#endif

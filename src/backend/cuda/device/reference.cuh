/* What the reference programs share: one thread an element of D, sums from the definition. Threads of a warp are neighbours along D's
 * contiguous dimension. */
#ifndef SPK_CUDA_REFERENCE_CUH
#define SPK_CUDA_REFERENCE_CUH

#include "backend/cuda/device/epilogue.cuh"
#include "backend/cuda/device/reference.h"

/* Row i of a dense A times column j of B. */
inline real dot(const spk_cuda_arguments &arg, long long i, long long j)
{
    const long long a_step = A_K_CONTIGUOUS ? 1 : arg.lda, b_step = LAYOUT_B == ROW_MAJOR ? arg.ldb : 1;
    const element_a *a = (const element_a *)arg.values + (A_K_CONTIGUOUS ? i * arg.lda : i);
    const element_b *b = (const element_b *)arg.b + (LAYOUT_B == ROW_MAJOR ? j : j * arg.ldb);
    real sum = 0;
    for (long long k = 0; k < arg.k; k++)
        sum += as<real>(a[k * a_step]) * as<real>(b[k * b_step]);
    return sum;
}

/* Stores every element (i, j) of every item's D, from its sum. */
template <class S> inline void store_all(const spk_cuda_arguments &batch, S sum_of)
{
    const long long lines = LAYOUT_D == ROW_MAJOR ? batch.m : batch.n, along = LAYOUT_D == ROW_MAJOR ? batch.n : batch.m;
    for (long long place = blockIdx.x * (long long)REFERENCE_THREADS + threadIdx.x; place < batch.items * lines * along;
         place += gridDim.x * (long long)REFERENCE_THREADS) {
        item_view arg = item_arguments(batch, place / (lines * along));
        const long long at = place % (lines * along);
        const long long line = at / along, place_in_line = at % along;
        const long long i = LAYOUT_D == ROW_MAJOR ? line : place_in_line, j = LAYOUT_D == ROW_MAJOR ? place_in_line : line;
        store_one(arg, i, j, sum_of(arg, i, j));
    }
}

#endif

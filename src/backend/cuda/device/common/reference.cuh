/* What the reference programs share: one thread an element of D, sums from the definition. Threads of a warp are neighbours along D's
 * contiguous dimension. */
#ifndef SPK_CUDA_REFERENCE_CUH
#define SPK_CUDA_REFERENCE_CUH

#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/common/reference.h"

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

/* Groups that cut D lie in one array. */
constexpr bool D_IS_CUT = GROUP_AXIS == ROW_GROUPS || GROUP_AXIS == COLUMN_GROUPS;

/* The group that has element `at` of the axis that is cut, which becomes the group's; batch.items: none has it. */
inline int group_with(const spk_cuda_arguments &batch, long long &at)
{
    int group = 0;
    while (group < batch.items && group_at(batch, group).end <= at)
        group++;
    if (group < batch.items)
        at -= group_at(batch, group).begin;
    return group;
}

/* Stores every element (i, j) of every item's D, from its sum. */
template <class S> inline void store_all(const spk_cuda_arguments &batch, S sum_of)
{
    const long long lines = LAYOUT_D == ROW_MAJOR ? batch.m : batch.n, along = LAYOUT_D == ROW_MAJOR ? batch.n : batch.m;
    const long long arrays = D_IS_CUT ? 1 : batch.items;
    for (long long place = blockIdx.x * (long long)REFERENCE_THREADS + threadIdx.x; place < arrays * lines * along;
         place += gridDim.x * (long long)REFERENCE_THREADS) {
        const long long at = place % (lines * along);
        const long long line = at / along, place_in_line = at % along;
        long long i = LAYOUT_D == ROW_MAJOR ? line : place_in_line, j = LAYOUT_D == ROW_MAJOR ? place_in_line : line;
        const long long item = D_IS_CUT ? group_with(batch, GROUP_AXIS == ROW_GROUPS ? i : j) : place / (lines * along);
        if (D_IS_CUT && item == batch.items)
            continue;
        item_view arg = item_arguments(batch, item);
        store_one(arg, i, j, sum_of(arg, i, j));
    }
}

#endif

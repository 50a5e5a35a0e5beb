/* finish: the epilogue over sums that a library left in an array with D's layout and leading dimension acc_ld, which is even, item after
 * item. A thread takes two neighbours at a time. Bound: memory. */
#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/helpers/finish.h"

extern "C" __global__ void __launch_bounds__(FINISH_THREADS)
    finish_product(const __grid_constant__ spk_cuda_arguments batch, const real *acc, long long acc_ld)
{
    const long long lines = LAYOUT_D == ROW_MAJOR ? batch.m : batch.n, along = LAYOUT_D == ROW_MAJOR ? batch.n : batch.m;
    const long long pairs = (along + 1) / 2, all = lines * pairs;
    for (long long place = blockIdx.x * (long long)FINISH_THREADS + threadIdx.x; place < all * batch.items;
         place += gridDim.x * (long long)FINISH_THREADS) {
        const long long item = BATCHED ? place / all : 0, at = BATCHED ? place % all : place;
        item_view arg = item_arguments(batch, item);
        const long long line = at / pairs, in = at % pairs * 2;
        const long long i = LAYOUT_D == ROW_MAJOR ? line : in, j = LAYOUT_D == ROW_MAJOR ? in : line;
        const pieces<real, 2> sums = load_pieces<real, 2>(acc + (item * lines + line) * acc_ld + in);
        store_pair(arg, i, j, sums.at[0], sums.at[1], pairs_aligned(arg));
    }
}

/* A caller's indices, checked and copied as 32-bit numbers; INDEX: their type. check_indices finds the first that is wrong, settle_indices
 * says what is wrong with it, and makes the copy one of a pattern without blocks. Bound: latency. */
#include "backend/cuda/helpers/check_indices.h"

inline const INDEX *offsets_of(const check_arguments &all)
{
    return (const INDEX *)all.offsets;
}

inline const INDEX *columns_of(const check_arguments &all)
{
    return (const INDEX *)all.columns;
}

inline long long inside(long long value, long long most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

inline void check_offset(const check_arguments &all, long long i)
{
    const long long value = offsets_of(all)[i];
    const bool wrong = i == 0 ? value != 0 : value < offsets_of(all)[i - 1];
    if (wrong || (i == all.grid_rows && value != all.nnzb))
        atomicMin(&all.said->first, (spk_u64)i);
    all.to_offsets[i] = (int)inside(value, all.nnzb);
}

/* A warp a block row. */
extern "C" __global__ void __launch_bounds__(CHECK_THREADS) check_indices(const __grid_constant__ check_arguments all)
{
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
    for (long long i = thread; i <= all.grid_rows; i += threads)
        check_offset(all, i);
    for (long long row = thread / 32; row < all.grid_rows; row += threads / 32) {
        const long long from = inside(offsets_of(all)[row], all.nnzb), to = inside(offsets_of(all)[row + 1], all.nnzb);
        for (long long p = from + threadIdx.x % 32; p < to; p += 32) {
            const long long column = columns_of(all)[p];
            if (column < 0 || column >= all.grid_cols || (p > from && columns_of(all)[p - 1] >= column))
                atomicMin(&all.said->first, WRONG_COLUMN | (spk_u64)p);
            all.to_columns[p] = (int)inside(column, all.grid_cols - 1);
        }
    }
}

/* One block of threads. */
extern "C" __global__ void __launch_bounds__(SETTLE_THREADS) settle_indices(const __grid_constant__ check_arguments all)
{
    const spk_u64 first = all.said->first;
    const bool wrong = first != ~0ull;
    for (long long i = threadIdx.x; wrong && i <= all.grid_rows; i += blockDim.x)
        all.to_offsets[i] = 0;
    for (long long p = threadIdx.x; wrong && p < all.nnzb; p += blockDim.x) /* some belong to no row, and may not have been written */
        all.to_columns[p] = 0;
    if (threadIdx.x != 0)
        return;
    const INDEX *array = first & WRONG_COLUMN ? columns_of(all) : offsets_of(all);
    const long long at = (long long)(first & ~WRONG_COLUMN);
    all.said->fault = wrong;
    all.said->value = wrong ? (long long)array[at] : 0;
    all.said->before = wrong && at > 0 ? (long long)array[at - 1] : -1;
    all.said->stamp = all.said->stamp_again = all.stamp;
}

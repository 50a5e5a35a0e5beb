/* A caller's indices, checked and copied as 32-bit numbers; INDEX: their type. check_indices finds the first that is wrong, settle_indices
 * says what is wrong with it, and makes the copy one of a pattern without blocks. Bound: latency. */
typedef unsigned long long spk_u64;
typedef long long spk_i64;

/* As src/backend/cuda/deferred.c has it. */
struct verdict {
    spk_u64 stamp;
    spk_u64 first; /* all bits: none is wrong; else the place, with COLUMN where it is one of a column */
    long long fault, value, before;
    spk_u64 pad[2];
    spk_u64 stamp_again;
};

struct indices {
    const INDEX *offsets, *columns;
    long long grid_rows, grid_cols, nnzb;
    int *to_offsets, *to_columns;
    verdict *said;
    spk_u64 stamp;
};

static const spk_u64 COLUMN = 1ull << 62;

inline long long inside(long long value, long long most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

inline void check_offset(const indices &all, long long i)
{
    const long long value = all.offsets[i];
    const bool wrong = i == 0 ? value != 0 : value < all.offsets[i - 1];
    if (wrong || (i == all.grid_rows && value != all.nnzb))
        atomicMin(&all.said->first, (spk_u64)i);
    all.to_offsets[i] = (int)inside(value, all.nnzb);
}

/* A warp a block row. */
extern "C" __global__ void __launch_bounds__(256) check_indices(const __grid_constant__ indices all)
{
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
    for (long long i = thread; i <= all.grid_rows; i += threads)
        check_offset(all, i);
    for (long long row = thread / 32; row < all.grid_rows; row += threads / 32) {
        const long long from = inside(all.offsets[row], all.nnzb), to = inside(all.offsets[row + 1], all.nnzb);
        for (long long p = from + threadIdx.x % 32; p < to; p += 32) {
            const long long column = all.columns[p];
            if (column < 0 || column >= all.grid_cols || (p > from && all.columns[p - 1] >= column))
                atomicMin(&all.said->first, COLUMN | (spk_u64)p);
            all.to_columns[p] = (int)inside(column, all.grid_cols - 1);
        }
    }
}

/* One block of threads. */
extern "C" __global__ void __launch_bounds__(1024) settle_indices(const __grid_constant__ indices all)
{
    const spk_u64 first = all.said->first;
    const bool wrong = first != ~0ull;
    for (long long i = threadIdx.x; wrong && i <= all.grid_rows; i += blockDim.x)
        all.to_offsets[i] = 0;
    for (long long p = threadIdx.x; wrong && p < all.nnzb; p += blockDim.x) /* some belong to no row, and may not have been written */
        all.to_columns[p] = 0;
    if (threadIdx.x != 0)
        return;
    const INDEX *array = first & COLUMN ? all.columns : all.offsets;
    const long long at = (long long)(first & ~COLUMN);
    all.said->fault = wrong;
    all.said->value = wrong ? (long long)array[at] : 0;
    all.said->before = wrong && at > 0 ? (long long)array[at - 1] : -1;
    all.said->stamp = all.said->stamp_again = all.stamp;
}

/* block_pointers: the addresses that a batched product takes, for the operands at hand. Entry e of the list multiplies the stored block
 * places[e].position with the rows of B below its block column into its block row of the sums. Strides in bytes. Bound: latency. */
#include "backend/cuda/helpers/block_pointers.h"

extern "C" __global__ void __launch_bounds__(BLOCK_POINTERS_THREADS)
    block_pointers(const block_place *places, int count, const char *values, const char *b, char *sums, long long value_step,
                   long long b_step, long long sum_step, const char **out_values, const char **out_b, char **out_sums)
{
    const int e = blockIdx.x * BLOCK_POINTERS_THREADS + threadIdx.x;
    if (e >= count)
        return;
    const block_place here = places[e];
    out_values[e] = values + here.position * value_step;
    out_b[e] = b + here.column * b_step;
    out_sums[e] = sums + here.row * sum_step;
}

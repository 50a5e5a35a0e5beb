/* gather_lines: of each of `lines` lines, ld elements apart, the elements at `count` places, one place after the other. Bound: latency. */
#include "backend/cuda/helpers/gather_lines.h"

typedef unsigned short spk_u16;
typedef unsigned spk_u32;
typedef unsigned long long spk_u64;

extern "C" __global__ void __launch_bounds__(GATHER_LINES_THREADS)
    gather_lines(const BITS *array, long long lines, long long ld, const __grid_constant__ gather_places places, int count, BITS *out)
{
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < lines * count; i += step)
        out[i] = array[i % lines * ld + places.at[i / lines]];
}

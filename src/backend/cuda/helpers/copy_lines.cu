/* Lines at any address to lines that begin at multiples of 16 bytes, as TMA wants them. */
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/helpers/copy_lines.h"

extern "C" __global__ void __launch_bounds__(COPY_LINES_THREADS) copy_lines(const __grid_constant__ copy_lines_task task)
{
    next_launch_may_start();
    previous_launch_done();
    const long long width = task.to_ld / COPY_LINES_PIECE, pieces = task.items * task.lines * width;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < pieces; at += gridDim.x * (long long)blockDim.x) {
        const long long row = at / width, piece = at - row * width, item = row / task.lines, line = row - item * task.lines;
        const unsigned short *from = task.from + item * task.from_stride + line * task.from_ld + piece * COPY_LINES_PIECE;
        unsigned word[COPY_LINES_PIECE / 2];
#pragma unroll
        for (int i = 0; i < COPY_LINES_PIECE / 2; i++) {
            const long long j = piece * COPY_LINES_PIECE + 2 * i;
            const unsigned low = j < task.length ? from[2 * i] : 0, high = j + 1 < task.length ? from[2 * i + 1] : 0;
            word[i] = low | high << 16;
        }
        *(uint4 *)(task.to + item * task.to_stride + line * task.to_ld + piece * COPY_LINES_PIECE) =
            make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* Accumulators of a 64-row tile (mma.cuh says which thread holds what) to D: the epilogue in registers, then through shared memory and TMA,
 * or straight to memory where TMA cannot (a D that is not 16-byte aligned, or of 32-bit elements).
 *
 * A tile's 64 rows are 64 / piece_rows pieces of piece_rows (64, 32 or 16) rows each: rows of D that need not be neighbours. Staging: 64
 * columns at a time (a tile of 32 or 16: all), 128 bytes a column, at a multiple of 1024; each piece as its TMA box wants it, D row-major:
 * rows of these columns, D column-major: columns of 2 * piece_rows bytes. */
#ifndef SPK_DEVICE_STORE_CUH
#define SPK_DEVICE_STORE_CUH

#include "backend/cuda/device/epilogue/finish.cuh"
#include "backend/cuda/device/ptx/tma.cuh"

namespace sm90 {

SPK_INLINE unsigned pack_d(float low, float high)
{
#if DTYPE_D == BF16
    return pack_bf16(low, high);
#else
    return pack_f16(low, high);
#endif
}

/* Finished values straight to D. */
template <int columns>
SPK_INLINE void store_direct(const spk_cuda_arguments &arg, const float (&value)[columns / 2], long long i0, long long j0)
{
    const int lane = threadIdx.x % 32;
    element_d *d = (element_d *)arg.d;
    const bool whole = LAYOUT_D == ROW_MAJOR && j0 % 2 == 0 && arg.ldd % 2 == 0 && aligned_to(d, 2 * sizeof(element_d));
    if (i0 < 0)
        return;
#pragma unroll
    for (int at = 0; at < columns / 2; at += 2) {
        const long long i = i0 + lane / 4 + at / 2 % 2 * 8, j = j0 + at / 4 * 8 + lane % 4 * 2;
        if (i < arg.m && j < arg.n) {
            const bool both = j + 1 < arg.n;
            const element_d first = to<element_d>(value[at]), second = to<element_d>(value[at + 1]);
            if (whole && both) {
                store_pieces<element_d, 2>(d + place(i, j, arg.ldd), pieces<element_d, 2>{{first, second}});
            } else {
                d[place(i, j, arg.ldd)] = first;
                if (both)
                    d[place(i, j + 1, arg.ldd)] = second;
            }
        }
    }
}

/* A staging tile of `width` columns (64, 32 or 16), byte `at` of it counted piece by piece, line by line: where TMA wants it. */
template <int piece_rows, int width> SPK_INLINE unsigned swizzled(unsigned at)
{
    return at ^ (at >> 7 & ((LAYOUT_D == ROW_MAJOR ? width : piece_rows) / 8 - 1)) << 4;
}

/* Where the lane's line of the j-th 16 columns begins, as stmatrix and ldmatrix want it: matrices of the warp's rows 0-7 and 8-15 of the
 * left 8 columns, then of the right 8. */
template <int piece_rows, int width> SPK_INLINE unsigned matrix_line(int j)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#if LAYOUT_D == ROW_MAJOR
    const unsigned row = warp * 16 + lane % 16;
    return swizzled<piece_rows, width>(row * (width * 2) + (j * 16 + lane / 16 * 8) * 2);
#else
    const unsigned row = warp * 16 + lane / 8 % 2 * 8, column = j * 16 + lane / 16 * 8 + lane % 8;
    return swizzled<piece_rows, width>(row / piece_rows * (piece_rows * width * 2) + column * (piece_rows * 2) + row % piece_rows * 2);
#endif
}

/* `width` columns of finished values, from register `from` on, to the staging tile. */
template <int piece_rows, int width, int registers>
SPK_INLINE void stage_columns(unsigned staging, const float (&value)[registers], int from)
{
#pragma unroll
    for (int j = 0; j < width / 16; j++) {
        unsigned x[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int at = from + (j * 2 + u / 2) * 4 + u % 2 * 2;
            x[u] = pack_d(value[at], value[at + 1]);
        }
#if LAYOUT_D == ROW_MAJOR
        stmatrix4(staging + matrix_line<piece_rows, width>(j), x);
#else
        stmatrix4_transposed(staging + matrix_line<piece_rows, width>(j), x);
#endif
    }
}

/* Finished values through `buffers` staging tiles and TMA. By all 128 threads of a warpgroup with its own staging and named barrier;
 * row_of(piece): D's row of a piece's first row, negative: none. spare: a staging tile for the columns after the first `buffers` tiles,
 * which nothing reads or writes before the call; 0: there is none. The caller may use it again after tma_store_wait_read<tiles behind
 * it>. */
template <int columns, int piece_rows, int buffers, class Rows>
SPK_INLINE void store_tma(const spk_tensor_map *map, const float (&value)[columns / 2], unsigned staging, int &buffer, int barrier, int j0,
                          int n, Rows row_of, [[maybe_unused]] int item = 0, unsigned spare = 0)
{
    constexpr int width = columns < 64 ? columns : 64;
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int c = 0; c < (columns + width - 1) / width; c++) {
        const int first = c * width < columns - width ? c * width : columns - width; /* the last may overlap, with the same values */
        const bool apart = buffers > 1 && c == buffers && spare != 0;
        const unsigned tile = apart ? spare : staging + buffer * (width * 128);
        if (leader && buffers > 1 && c == buffers + 1 && spare != 0)
            tma_store_wait_read<buffers>(); /* the spare one is in between */
        else if (leader && !apart)
            tma_store_wait_read<buffers - 1>();
        named_barrier(barrier, 128);
        stage_columns<piece_rows, width>(tile, value, first / 2);
        fence_async_shared();
        named_barrier(barrier, 128);
        if (leader) {
            const int j = j0 + first;
#pragma unroll
            for (int piece = 0; piece < 64 / piece_rows; piece++) {
                const int i = row_of(piece);
                if (i >= 0 && j < n) {
                    const unsigned from = tile + piece * (piece_rows * width * 2);
                    const int x = LAYOUT_D == ROW_MAJOR ? j : i, y = LAYOUT_D == ROW_MAJOR ? i : j;
#if BATCHED
                    tma_store_3d(map, from, x, y, item);
#else
                    tma_store_2d(map, from, x, y);
#endif
                }
            }
            tma_store_commit();
        }
        if (!apart)
            buffer = buffer + 1 == buffers ? 0 : buffer + 1;
    }
}

} // namespace sm90

#endif

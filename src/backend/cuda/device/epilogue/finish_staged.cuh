/* The epilogue of a tile of 64 rows that reads an array of D's layout (C or a residual) and leaves through the staging tile (store.cuh):
 * the array comes that way, too. Read by the accumulators' places, 16 bytes here and there, and turned pair by pair, it takes longer than
 * the tile's products. */
#ifndef SPK_DEVICE_FINISH_STAGED_CUH
#define SPK_DEVICE_FINISH_STAGED_CUH

#include "backend/cuda/device/mma/matrices.cuh"
#include "backend/cuda/device/epilogue/store.cuh"

namespace sm90 {

/* Of both arrays, or with kept values besides, registers would run out. */
#define STAGED_EPILOGUE (USE_C + (RESIDUAL != NO_RESIDUAL) == 1 && !KEEP_PREACT && (DTYPE_D == F16 || DTYPE_D == BF16))

#if STAGED_EPILOGUE

/* A thread's share of `width` columns of an array, 16 bytes each, in the order of the staging tile. */
template <int width> struct column_share {
    uint4 at[width / 16];
};

/* What the epilogue reads of one pair after the other. */
template <int width> struct pair_share {
    unsigned at[width / 4];
};

/* Zeros for rows that are not there; array null: zeros alone. */
template <int piece_rows, int width, class Rows>
SPK_INLINE void fetch_columns(column_share<width> &to, const void *array, long long ld, int j0, Rows row_of)
{
#pragma unroll
    for (int u = 0; u < width / 16; u++) {
        const int at = (u * 128 + threadIdx.x % 128) * 16;
#if LAYOUT_D == ROW_MAJOR
        const int row = at / (width * 2), first = row_of(row / piece_rows), i = first + row % piece_rows, j = j0 + at % (width * 2) / 2;
#else
        const int in = at % (piece_rows * width * 2), first = row_of(at / (piece_rows * width * 2)), i = first + in % (piece_rows * 2) / 2,
                  j = j0 + in / (piece_rows * 2);
#endif
        to.at[u] = first < 0 || array == nullptr ? make_uint4(0, 0, 0, 0) : *(const uint4 *)((const element_d *)array + place(i, j, ld));
    }
}

/* By way of the staging tile to the threads that have the sums. The next call takes another tile, or comes after a barrier. */
template <int piece_rows, int width>
SPK_INLINE void exchange_columns(pair_share<width> &to, const column_share<width> &from, unsigned staging, int barrier)
{
#pragma unroll
    for (int u = 0; u < width / 16; u++)
        shared_store_16_bytes(staging + swizzled<piece_rows, width>((u * 128 + threadIdx.x % 128) * 16), from.at[u]);
    named_barrier(barrier, 128);
#pragma unroll
    for (int j = 0; j < width / 16; j++) {
        unsigned x[4];
        load_four_matrices<LAYOUT_D == COL_MAJOR>(x, staging + matrix_line<piece_rows, width>(j));
#pragma unroll
        for (int u = 0; u < 4; u++)
            to.at[j * 4 + u] = x[u];
    }
}

/* Columns that come at a time: of many sums fewer, else registers run out. */
constexpr int staged_columns(int columns)
{
    return columns < 64 ? columns : columns <= 128 || columns % 64 == 0 ? 64 : columns <= 168 ? 32 : 16;
}

/* As finish_tile, before store_tma of the same staging tiles, named barrier and rows; false: the tile wants finish_tile. By all 128 threads
 * of a warpgroup. ahead: the next columns are on their way while some are finished, where registers suffice. */
template <int columns, int piece_rows, int buffers, bool ahead, class Rows>
SPK_INLINE bool finish_staged(const spk_cuda_arguments &arg, float (&sum)[columns / 2], unsigned staging, int barrier, int i0, int j0,
                              Rows row_of)
{
    constexpr int width = staged_columns(columns), pieces = (columns + width - 1) / width;
    static_assert(columns % 8 == 0 && width % 16 == 0);
    const void *array = !USE_C ? arg.residual : arg.beta != 0 ? arg.c : nullptr; /* C is not read at a beta of 0 */
    const long long ld = USE_C ? arg.ldc : arg.ldr;
    bool inside = (LAYOUT_D == COL_MAJOR || j0 % 8 == 0) && j0 + columns <= arg.n && pairs_aligned(arg) && aligned_to(array, 16) &&
                  (array == nullptr || ld % 8 == 0);
#pragma unroll
    for (int piece = 0; piece < 64 / piece_rows; piece++)
        inside = inside && row_of(piece) + piece_rows <= arg.m && (LAYOUT_D == ROW_MAJOR || row_of(piece) % 8 == 0);
    if (!inside) /* all threads alike */
        return false;
    column_share<width> columns_read;
    pair_share<width> pairs_read;
    float row_bias[2] = {0, 0};
    fetch_columns<piece_rows, width>(columns_read, array, ld, j0, row_of);
    if (i0 >= 0)
        load_row_bias(arg, row_bias, i0);
    if (threadIdx.x % 128 == 0)
        tma_store_wait_read<0>();
    named_barrier(barrier, 128);
#pragma unroll
    for (int c = 0; c < pieces; c++) {
        /* the last piece may overlap the one before it: what that has finished stays */
        const int first = c + 1 < pieces ? c * width : columns - width, next = c + 2 < pieces ? first + width : columns - width;
        if (buffers == 1 && c > 0)
            named_barrier(barrier, 128);
        exchange_columns<piece_rows, width>(pairs_read, columns_read, staging + c % buffers * (width * 128), barrier);
        if (ahead && c + 1 < pieces)
            fetch_columns<piece_rows, width>(columns_read, array, ld, j0 + next, row_of);
#pragma unroll
        for (int p = 0; p < width / 4 && i0 >= 0; p++) {
            if (first + p / 2 * 8 < c * width)
                continue;
            const int at = first / 2 + 2 * p;
            const float read[2] = {as<float>(low_half(pairs_read.at[p], element_d())), as<float>(high_half(pairs_read.at[p], element_d()))};
            float value[2] = {sum[at], sum[at + 1]};
            finish_inside(arg, value, read, read, i0 + p % 2 * 8, j0 + first + p / 2 * 8, row_bias[p % 2]);
            sum[at] = value[0];
            sum[at + 1] = value[1];
        }
        asm volatile("" ::: "memory"); /* else registers run out */
        if (!ahead && c + 1 < pieces)
            fetch_columns<piece_rows, width>(columns_read, array, ld, j0 + next, row_of);
    }
    return true;
}

#else

template <int columns, int piece_rows, int buffers, bool ahead, class Rows>
SPK_INLINE bool finish_staged(const spk_cuda_arguments &, float (&)[columns / 2], unsigned, int, int, int, Rows)
{
    return false;
}

#endif

} // namespace sm90

#endif

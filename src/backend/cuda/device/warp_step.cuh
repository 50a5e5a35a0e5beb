/* Steps of a product in f16 or bf16 on mma.sync for kernels that see stored blocks: 16 bytes of op(A) and of B by cp.async into shared
 * memory, what a warp multiplies there, and its sums' way to D. Lines of a step run along what is contiguous in memory. BLOCK_ROWS
 * BLOCK_COLS   of op(A), multiples of 8 RAGGED_K                1: K is no multiple of BLOCK_COLS */
#ifndef SPK_DEVICE_WARP_STEP_CUH
#define SPK_DEVICE_WARP_STEP_CUH

#include "backend/cuda/device/copy_async.cuh"
#include "backend/cuda/device/mma_sync.cuh"
#include "backend/cuda/device/store.cuh"

static_assert(DTYPE_A == DTYPE_B && (DTYPE_A == F16 || DTYPE_A == BF16), "the tensor instruction takes these types only");
static_assert(BLOCK_ROWS % 8 == 0 && BLOCK_COLS % 8 == 0, "16 bytes straddle lines of a block");

/* Bytes of a line, of so many rows by so much depth of op(A), of so many columns by so much depth of B; and how many lines there are. */
constexpr int a_line(int rows, int depth)
{
    return (A_K_CONTIGUOUS ? depth : rows) * 2;
}
constexpr int b_line(int columns, int depth)
{
    return (LAYOUT_B == COL_MAJOR ? depth : columns) * 2;
}

/* Where 16 bytes of a line lie: eight lines of one fragment in different banks. */
template <int LINE> inline unsigned spot(int line, int chunk)
{
    const int turned = LINE >= 128 ? line & 7 : LINE == 64 ? line >> 1 & 3 : line >> 2 & 1;
    return line * LINE + (chunk ^ turned) * 16;
}

/* Eight elements, of which the first `valid` exist; zeros in place of the rest, which is not read. */
inline void copy_valid(unsigned to, const element_b *from, int valid)
{
    if (CUT_EIGHTS && valid > 0 && valid < 8) {
#pragma unroll
        for (int e = 0; e < 8; e++)
            sm90::shared_store_16(to + e * 2, e < valid ? from[e].bits : (unsigned short)0);
        return;
    }
    copy_async<8>(to, from, valid > 0);
}

inline int clipped(long long left)
{
    return left < 0 ? 0 : left > 8 ? 8 : (int)left;
}

/* Eight values of the block at `position`, from its row `row` and depth `in` on. column: the block's, negative: there is none. */
inline void copy_a(unsigned to, const spk_cuda_arguments &arg, int position, int column, int row, int in)
{
    const long long k = (long long)column * BLOCK_COLS + in;
    int valid = column < 0 || row >= BLOCK_ROWS ? 0 : 8;
    if (RAGGED_K && valid > 0)
        valid = A_K_CONTIGUOUS ? clipped(arg.k - k) : k < arg.k ? 8 : 0;
    const element_a *from = (const element_a *)arg.values;
    if (valid > 0)
        from += position * arg.block_stride + (A_K_CONTIGUOUS ? row * BLOCK_COLS + in : in * BLOCK_ROWS + row);
    copy_valid(to, from, valid);
}

/* Eight elements of B from row `in` of block column `column`, column j on. */
inline void copy_b(unsigned to, const spk_cuda_arguments &arg, int column, int in, long long j)
{
    const long long k = (long long)column * BLOCK_COLS + in;
    int valid = column < 0 || j >= arg.n || (RAGGED_K && k >= arg.k) ? 0 : 8;
    if (LAYOUT_B == ROW_MAJOR)
        valid = min(valid, clipped(arg.n - j));
    else if (RAGGED_K)
        valid = min(valid, clipped(arg.k - k));
    copy_valid(to, (const element_b *)arg.b + (valid > 0 ? (LAYOUT_B == COL_MAJOR ? j * arg.ldb + k : k * arg.ldb + j) : 0), valid);
}

/* sum += A B for DOWN tiles of 16 rows and COLUMNS columns, from column `first` of the step on, which holds WIDTH. */
template <int DOWN, int COLUMNS, int WIDTH, int DEPTH>
inline void multiply_step(float (&sum)[DOWN][COLUMNS / 2], unsigned a_step, unsigned b_step, int first)
{
    constexpr int A_LINE = a_line(DOWN * 16, DEPTH), B_LINE = b_line(WIDTH, DEPTH);
    const int i = threadIdx.x % 8, u = threadIdx.x % 32 / 8;
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        unsigned a[DOWN][4];
#pragma unroll
        for (int m = 0; m < DOWN; m++)
            if (A_K_CONTIGUOUS)
                load_four_matrices<false>(a[m], a_step + spot<A_LINE>(m * 16 + u % 2 * 8 + i, k * 2 + u / 2));
            else
                load_four_matrices<true>(a[m], a_step + spot<A_LINE>(k * 16 + u / 2 * 8 + i, m * 2 + u % 2));
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            unsigned b[4];
            if (LAYOUT_B == COL_MAJOR)
                load_four_matrices<false>(b, b_step + spot<B_LINE>(first + n * 16 + u / 2 * 8 + i, k * 2 + u % 2));
            else
                load_four_matrices<true>(b, b_step + spot<B_LINE>(k * 16 + u % 2 * 8 + i, first / 8 + n * 2 + u / 2));
#pragma unroll
            for (int m = 0; m < DOWN; m++) {
                mma_sync(sum[m] + n * 8, a[m], b[0], b[1], element_a());
                mma_sync(sum[m] + n * 8 + 4, a[m], b[2], b[3], element_a());
            }
        }
    }
}

/* Sums of 16 rows to D: i0 is D's row of the first, of which the block row has `rows`. */
template <int COLUMNS> inline void store_tile_sums(const spk_cuda_arguments &arg, float (&sum)[COLUMNS / 2], int i0, int rows, int j0)
{
    if constexpr (BLOCK_ROWS % 16 == 0) {
        sm90::finish_tile<COLUMNS>(arg, sum, i0, j0);
        sm90::store_direct<COLUMNS>(arg, sum, i0, j0);
    } else {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int at = 0; at < COLUMNS / 2; at++) {
            const int row = lane / 4 + at / 2 % 2 * 8, j = j0 + at / 4 * 8 + lane % 4 * 2 + at % 2;
            if (row < rows && i0 + row < arg.m && j < arg.n)
                store_one(arg, i0 + row, j, sum[at]);
        }
    }
}

#endif

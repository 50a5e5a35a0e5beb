/* Steps of a product on mma.sync for kernels that see stored blocks: 16 bytes of op(A) and of B by cp.async into shared memory, what a warp
 * multiplies there, and its sums' way to D. Lines of a step run along what is contiguous in memory. Elements are f16, bf16, f32 (rounded to
 * TF32) or f64.
 *   BLOCK_ROWS BLOCK_COLS   of op(A)
 *   RAGGED_K                1: K is no multiple of BLOCK_COLS
 *   CUT_PIECES              1: 16 bytes of a line may end outside of the operand */
#ifndef SPK_DEVICE_WARP_STEP_CUH
#define SPK_DEVICE_WARP_STEP_CUH

#include "backend/cuda/device/ptx/copy_async.cuh"
#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"
#if DTYPE_A == F16 || DTYPE_A == BF16
#include "backend/cuda/device/mma/mma_sync.cuh"
#include "backend/cuda/device/epilogue/store.cuh"
#define HALVES 1
#else
#include "backend/cuda/device/mma/mma_sync_wide.cuh"
#define HALVES 0
#endif

constexpr int BYTES = sizeof(element_b), PIECE = 16 / BYTES; /* PIECE: elements of 16 bytes */

/* A block of one column lies along its rows, whatever its layout. A piece of op(A) stays inside of a line of a block. */
constexpr bool A_ALONG_K = A_K_CONTIGUOUS && BLOCK_COLS > 1, B_ALONG_K = LAYOUT_B == COL_MAJOR;
constexpr int A_PIECE = A_ALONG_K && BLOCK_COLS < PIECE ? BLOCK_COLS : PIECE;

static_assert(DTYPE_A == DTYPE_B && (HALVES || (DTYPE_A == F32 && COMPUTE == TF32) || (DTYPE_A == F64 && COMPUTE == F64)),
              "the tensor instructions take these types only");
static_assert((A_ALONG_K ? BLOCK_COLS : BLOCK_ROWS) % A_PIECE == 0 && (!B_ALONG_K || BLOCK_COLS % PIECE == 0), "a piece straddles lines");

/* Bytes of a line, of so many rows by so much depth of op(A), of so many columns by so much depth of B; and how many lines there are. */
constexpr int a_line(int rows, int depth)
{
    return (A_ALONG_K ? depth : rows) * BYTES;
}
constexpr int b_line(int columns, int depth)
{
    return (B_ALONG_K ? depth : columns) * BYTES;
}

/* Where 16 bytes of a line lie, such that what a warp reads at once is in different banks: 16 bytes of each of eight lines (of f32: lines
 * along K), or 32 bytes of each of four. */
template <int LINE, bool ALONG_K> inline unsigned spot(int line, int chunk)
{
    constexpr bool EIGHT = HALVES || (BYTES == 4 && ALONG_K);
    const int eight = LINE >= 128  ? line & 7
                      : LINE == 64 ? line >> 1 & 3
                                   : line >> 2 & 1,
              four = (LINE >= 128  ? line & 3
                      : LINE == 64 ? line >> 1 & 1
                                   : 0) *
                     2;
    return line * LINE + (chunk ^ (EIGHT ? eight : four)) * 16;
}

/* Some elements, of which the first `valid` exist; zeros in place of the rest, which is not read. */
template <int COUNT> inline void copy_valid(unsigned to, const element_b *from, int valid)
{
    if (CUT_PIECES && valid > 0 && valid < COUNT) {
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            copy_async<1>(to + e * BYTES, from + e, e < valid);
        return;
    }
    copy_async<COUNT>(to, from, valid > 0);
}

template <int COUNT> inline int clipped(long long left)
{
    return left < 0 ? 0 : left > COUNT ? COUNT : (int)left;
}

/* A piece of values of the block at `position`, from its row `row` and depth `in` on. column: the block's, negative: there is none. */
inline void copy_a(unsigned to, const spk_cuda_arguments &arg, int position, int column, int row, int in)
{
    const long long k = (long long)column * BLOCK_COLS + in;
    int valid = column < 0 || row >= BLOCK_ROWS ? 0 : A_PIECE;
    if (RAGGED_K && valid > 0)
        valid = A_ALONG_K ? clipped<A_PIECE>(arg.k - k) : k < arg.k ? A_PIECE : 0;
    const element_a *from = (const element_a *)arg.values;
    if (valid > 0)
        from += position * arg.block_stride + (A_ALONG_K ? row * BLOCK_COLS + in : in * BLOCK_ROWS + row);
    copy_valid<A_PIECE>(to, from, valid);
}

/* A piece of B from row `in` of block column `column`, column j on. */
inline void copy_b(unsigned to, const spk_cuda_arguments &arg, int column, int in, long long j)
{
    const long long k = (long long)column * BLOCK_COLS + in;
    int valid = column < 0 || j >= arg.n || (RAGGED_K && k >= arg.k) ? 0 : PIECE;
    if (!B_ALONG_K)
        valid = min(valid, clipped<PIECE>(arg.n - j));
    else if (RAGGED_K)
        valid = min(valid, clipped<PIECE>(arg.k - k));
    copy_valid<PIECE>(to, (const element_b *)arg.b + (valid > 0 ? (B_ALONG_K ? j * arg.ldb + k : k * arg.ldb + j) : 0), valid);
}

/* sum += A B for DOWN tiles of 16 rows and COLUMNS columns. */
#if HALVES
template <int DOWN, int COLUMNS, int DEPTH> inline void multiply_step(float (&sum)[DOWN][COLUMNS / 2], unsigned a_step, unsigned b_step)
{
    constexpr int A_LINE = a_line(DOWN * 16, DEPTH), B_LINE = b_line(COLUMNS, DEPTH);
    const int i = threadIdx.x % 8, u = threadIdx.x % 32 / 8;
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        unsigned a[DOWN][4];
#pragma unroll
        for (int m = 0; m < DOWN; m++)
            if (A_ALONG_K)
                load_four_matrices<false>(a[m], a_step + spot<A_LINE, A_ALONG_K>(m * 16 + u % 2 * 8 + i, k * 2 + u / 2));
            else
                load_four_matrices<true>(a[m], a_step + spot<A_LINE, A_ALONG_K>(k * 16 + u / 2 * 8 + i, m * 2 + u % 2));
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            unsigned b[4];
            if (B_ALONG_K)
                load_four_matrices<false>(b, b_step + spot<B_LINE, B_ALONG_K>(n * 16 + u / 2 * 8 + i, k * 2 + u % 2));
            else
                load_four_matrices<true>(b, b_step + spot<B_LINE, B_ALONG_K>(k * 16 + u % 2 * 8 + i, n * 2 + u / 2));
#pragma unroll
            for (int m = 0; m < DOWN; m++) {
                mma_sync(sum[m] + n * 8, a[m], b[0], b[1], element_a());
                mma_sync(sum[m] + n * 8 + 4, a[m], b[2], b[3], element_a());
            }
        }
    }
}
#else
inline void load_part(unsigned &part, unsigned address)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
    part = tf32_bits(x);
}
inline void load_part(double &part, unsigned address)
{
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(part) : "r"(address) : "memory");
}

/* Of an operand's lines in shared memory: element x along its side, k along the depth. */
template <int LINE, bool ALONG_K, class P> inline void load_element(P &part, unsigned lines, int x, int k)
{
    const int line = ALONG_K ? x : k, at = ALONG_K ? k : x;
    load_part(part, lines + spot<LINE, ALONG_K>(line, at / PIECE) + at % PIECE * BYTES);
}

template <class T> struct part_of {
    typedef unsigned type;
};
template <> struct part_of<double> {
    typedef double type;
};

template <int DOWN, int COLUMNS, int DEPTH> inline void multiply_step(real (&sum)[DOWN][COLUMNS / 2], unsigned a_step, unsigned b_step)
{
    constexpr int A_LINE = a_line(DOWN * 16, DEPTH), B_LINE = b_line(COLUMNS, DEPTH);
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 8) {
        part_of<element_a>::type a[DOWN][4];
#pragma unroll
        for (int m = 0; m < DOWN; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                load_element<A_LINE, A_ALONG_K>(a[m][i], a_step, m * 16 + g + i % 2 * 8, k + t + i / 2 * 4);
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            part_of<element_a>::type b0, b1;
            load_element<B_LINE, B_ALONG_K>(b0, b_step, n * 8 + g, k + t);
            load_element<B_LINE, B_ALONG_K>(b1, b_step, n * 8 + g, k + t + 4);
#pragma unroll
            for (int m = 0; m < DOWN; m++)
                mma_sync(sum[m] + n * 4, a[m], b0, b1);
        }
    }
}
#endif

/* Sums of 16 rows to D: i0 is D's row of the first, of which the block row has `rows`. */
template <int COLUMNS> inline void store_tile_sums(const spk_cuda_arguments &arg, real (&sum)[COLUMNS / 2], int i0, int rows, int j0)
{
#if HALVES
    constexpr bool WHOLE = BLOCK_ROWS % 16 == 0;
    if constexpr (WHOLE) {
        sm90::finish_tile<COLUMNS>(arg, sum, i0, j0);
        sm90::store_direct<COLUMNS>(arg, sum, i0, j0);
    }
#else
    constexpr bool WHOLE = false;
#endif
    if constexpr (!WHOLE) {
        const int lane = threadIdx.x % 32;
        const bool pairs = LAYOUT_D == ROW_MAJOR && pairs_aligned(arg);
#pragma unroll
        for (int at = 0; at < COLUMNS / 2; at += 2) {
            const int row = lane / 4 + at / 2 % 2 * 8, j = j0 + at / 4 * 8 + lane % 4 * 2;
            if (row >= rows || i0 + row >= arg.m || j >= arg.n)
                continue;
            if (LAYOUT_D == ROW_MAJOR) {
                store_pair(arg, i0 + row, j, sum[at], sum[at + 1], pairs);
            } else {
                store_one(arg, i0 + row, j, sum[at]);
                if (j + 1 < arg.n)
                    store_one(arg, i0 + row, j + 1, sum[at + 1]);
            }
        }
    }
}

#endif

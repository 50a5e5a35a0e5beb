/* spmm_sm80_warp: D = epilogue(A_bsr B), f16 or bf16 in, f32 sums, for small blocks and few columns. Each warp goes its own way: cp.async
 * brings a step of A and of B into a ring of its own, mma.sync multiplies it, and no warp waits for another but at the end, where several
 * share a block row. Bound: bytes from L2; where there are few columns, the latency of a row's indices, its operands and its sums.
 * The constants: spmm_sm80_warp.h. */
#include "backend/cuda/device/copy_async.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/mma_sync.cuh"
#include "backend/cuda/device/store.cuh"
#include "backend/cuda/kernels/spmm_sm80_warp.h"

constexpr warp_constants CONSTANTS = {WARP_CONSTANTS(SPK_CONSTANT_VALUE)};
constexpr warp_shape SHAPE = warp_shape_of(CONSTANTS);
constexpr int ROWS = SHAPE.rows, PARTS = SHAPE.parts, WARPS = SHAPE.warps, A_BYTES = SHAPE.a_bytes, STAGE_BYTES = SHAPE.stage_bytes,
              WARP_BYTES = SHAPE.warp_bytes, FINISH_COLUMNS = SHAPE.finish_columns;

/* Thread blocks of a multiprocessor that registers must suffice for. */
constexpr int RESIDENT_WARPS = TILES * TILE_N <= 64 ? 20 : TILES * TILE_N <= 128 && __CUDA_ARCH__ < 1000 ? 12 : 8;
constexpr int RESIDENT = RESIDENT_WARPS / WARPS > 1 ? RESIDENT_WARPS / WARPS : 1;

/* Lines of a step in shared memory run along what is contiguous in memory. */
constexpr int A_LINE = (A_K_CONTIGUOUS ? TILE_K : ROWS) * 2, B_LINE = (LAYOUT_B == COL_MAJOR ? TILE_K : TILE_N) * 2;
constexpr int A_LINES = A_BYTES / A_LINE, B_LINES = (STAGE_BYTES - A_BYTES) / B_LINE;
constexpr int STEP_BLOCKS = BLOCK_COLS < TILE_K ? TILE_K / BLOCK_COLS : 1, BLOCK_STEPS = BLOCK_COLS < TILE_K ? 1 : BLOCK_COLS / TILE_K;
static_assert(BLOCK_COLS % TILE_K == 0 || (BLOCK_COLS == 8 && 32 % STEP_BLOCKS == 0), "a step straddles blocks");
static_assert(DTYPE_A == DTYPE_B && (DTYPE_A == F16 || DTYPE_A == BF16), "the tensor instruction takes these types only");

/* Where 16 bytes of a line lie: eight lines of one fragment in different banks. */
template <int LINE> inline unsigned spot(int line, int chunk)
{
    const int turned = LINE >= 128 ? line & 7 : LINE == 64 ? line >> 1 & 3 : line >> 2 & 1;
    return line * LINE + (chunk ^ turned) * 16;
}

/* 16 bytes, of which `valid` elements exist; zeros in place of the rest, which is not read. */
inline void copy_valid(unsigned to, const element_b *from, int valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid * 2) : "memory");
}

inline int clipped(long long left)
{
    return left < 0 ? 0 : left > 8 ? 8 : (int)left;
}

/* A warp's part of a block row, and where its lanes have the columns of 32 blocks. */
struct job {
    int row;                /* first row in the block row */
    int first, last;        /* blocks */
    int step, end;          /* steps of the block row that are the warp's */
    int window;             /* the block whose column lane 0 has */
    int column, position;   /* of block window + lane; column negative: there is no such block */
    long long j0;           /* first column */
};

inline void read_window(job &of, const spk_cuda_arguments &arg, int block)
{
    const int at = block + threadIdx.x % 32;
    of.window = block;
    of.column = at < of.last ? __ldg(arg.columns + at) : -1;
#if HAS_POSITIONS
    of.position = at < of.last ? __ldg(arg.positions + at) : 0;
#endif
}

/* Steps come in order. */
inline void load_step(job &of, const spk_cuda_arguments &arg, int step, unsigned stage)
{
    const int lane = threadIdx.x % 32, block = of.first + (BLOCK_COLS < TILE_K ? step * STEP_BLOCKS : step / BLOCK_STEPS),
              inside = BLOCK_COLS < TILE_K ? 0 : step % BLOCK_STEPS * TILE_K;
    if (block >= of.window + 32)
        read_window(of, arg, of.window + 32);
    const int from = block - of.window;
    const int only = STEP_BLOCKS == 1 ? __shfl_sync(~0u, of.column, from) : 0; /* the column of a step inside of one block */
    const int place = HAS_POSITIONS && STEP_BLOCKS == 1 ? __shfl_sync(~0u, of.position, from) : 0;
#pragma unroll
    for (int p = lane; p < A_LINES * (A_LINE / 16); p += 32) {
        const int line = p / (A_LINE / 16), chunk = p % (A_LINE / 16), k = A_K_CONTIGUOUS ? chunk * 8 : line,
                  row = of.row + (A_K_CONTIGUOUS ? line : chunk * 8);
        const int which = from + (STEP_BLOCKS > 1 ? k / BLOCK_COLS : 0), in = inside + (STEP_BLOCKS > 1 ? k % BLOCK_COLS : k);
        const int column = STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.column, which) : only,
                  position = !HAS_POSITIONS ? block - from + which : STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.position, which) : place;
        int valid = column < 0 || row >= BLOCK_ROWS ? 0 : 8;
        if (RAGGED_K && valid > 0)
            valid = A_K_CONTIGUOUS ? clipped(arg.k - ((long long)column * BLOCK_COLS + in))
                    : (long long)column * BLOCK_COLS + in < arg.k ? 8
                                                                  : 0;
        const element_a *values = (const element_a *)arg.values + (valid > 0 ? position * arg.block_stride + (A_K_CONTIGUOUS ? row * BLOCK_COLS + in : in * BLOCK_ROWS + row) : 0);
        copy_valid(stage + spot<A_LINE>(line, chunk), values, valid);
    }
#pragma unroll
    for (int p = lane; p < B_LINES * (B_LINE / 16); p += 32) {
        const int line = p / (B_LINE / 16), chunk = p % (B_LINE / 16), in = LAYOUT_B == COL_MAJOR ? chunk * 8 : line;
        const int which = from + (STEP_BLOCKS > 1 ? in / BLOCK_COLS : 0), column = STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.column, which) : only;
        const long long k = (long long)column * BLOCK_COLS + inside + (STEP_BLOCKS > 1 ? in % BLOCK_COLS : in),
                        j = of.j0 + (LAYOUT_B == COL_MAJOR ? line : chunk * 8);
        int valid = column < 0 || (RAGGED_K && k >= arg.k) ? 0 : 8;
        if (LAYOUT_B == ROW_MAJOR)
            valid = min(valid, clipped(arg.n - j));
        else
            valid = j < arg.n ? (RAGGED_K && valid > 0 ? clipped(arg.k - k) : valid) : 0;
        const element_b *b = (const element_b *)arg.b + (valid > 0 ? (LAYOUT_B == COL_MAJOR ? j * arg.ldb + k : k * arg.ldb + j) : 0);
        copy_valid(stage + A_BYTES + spot<B_LINE>(line, chunk), b, valid);
    }
}

inline void multiply_step(float (&sum)[TILES][TILE_N / 2], unsigned stage)
{
    const int i = threadIdx.x % 8, u = threadIdx.x % 32 / 8;
#pragma unroll
    for (int k = 0; k < TILE_K / 16; k++) {
        unsigned a[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++)
            if (A_K_CONTIGUOUS)
                load_four_matrices<false>(a[m], stage + spot<A_LINE>(m * 16 + u % 2 * 8 + i, k * 2 + u / 2));
            else
                load_four_matrices<true>(a[m], stage + spot<A_LINE>(k * 16 + u / 2 * 8 + i, m * 2 + u % 2));
#pragma unroll
        for (int n = 0; n < TILE_N / 16; n++) {
            unsigned b[4];
            if (LAYOUT_B == COL_MAJOR)
                load_four_matrices<false>(b, stage + A_BYTES + spot<B_LINE>(n * 16 + u / 2 * 8 + i, k * 2 + u % 2));
            else
                load_four_matrices<true>(b, stage + A_BYTES + spot<B_LINE>(k * 16 + u % 2 * 8 + i, n * 2 + u / 2));
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                mma_sync(sum[m] + n * 8, a[m], b[0], b[1], element_a());
                mma_sync(sum[m] + n * 8 + 4, a[m], b[2], b[3], element_a());
            }
        }
    }
}

inline void sum_steps(float (&sum)[TILES][TILE_N / 2], job &of, const spk_cuda_arguments &arg, unsigned ring)
{
    int ahead = of.step;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (ahead < of.end)
            load_step(of, arg, ahead++, ring + s * STAGE_BYTES);
        copies_commit();
    }
    unsigned read = 0, written = (STAGES - 1) * STAGE_BYTES;
#pragma unroll 1
    for (int step = of.step; step < of.end; step++) {
        copies_wait<STAGES - 2>();
        __syncwarp();
        if (ahead < of.end)
            load_step(of, arg, ahead++, ring + written);
        copies_commit();
        multiply_step(sum, ring + read);
        written = read;
        read = read + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : read + STAGE_BYTES;
    }
}

/* The sums of a unit's warps, added in their order: those of the columns that this warp finishes. */
template <int COLUMNS> inline void add_parts(float (&total)[TILES][COLUMNS / 2], const char *unit, int part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            const float4 *at = (const float4 *)unit + (m * (TILE_N / 8) + part * (COLUMNS / 8) + n) * 32 + lane;
            float4 x = *at;
#pragma unroll
            for (int s = 1; s < SPLIT; s++) {
                const float4 y = *(const float4 *)((const char *)at + s * WARP_BYTES);
                x = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
            }
            total[m][n * 4] = x.x;
            total[m][n * 4 + 1] = x.y;
            total[m][n * 4 + 2] = x.z;
            total[m][n * 4 + 3] = x.w;
        }
}

/* Of one tile: i0 is D's row of its first row, `rows` how many the block row has of it. */
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

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    spmm_sm80_warp(const __grid_constant__ spk_cuda_arguments batch, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    item_view arg = item_arguments(batch, block_item(batch));
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, part = warp % SPLIT;
    const unsigned row_blocks = batch.item_blocks / (unsigned)((arg.n + TILE_N - 1) / TILE_N), at = block_of_item(batch);
    const unsigned index = at % row_blocks * UNITS + warp / SPLIT, place_of_row = index / PARTS;
    const bool there = place_of_row < (unsigned)arg.grid_rows;
    char *own = shared + warp * WARP_BYTES;
    next_launch_may_start();
    job of = {};
    int top = 0;
    if (there) {
        const int block_row = order != nullptr ? __ldg(order + place_of_row) : (int)place_of_row;
        top = block_row * BLOCK_ROWS;
        of.row = (int)(index % PARTS) * ROWS;
        of.first = __ldg(arg.offsets + block_row);
        of.last = __ldg(arg.offsets + block_row + 1);
        of.j0 = (long long)(at / row_blocks) * TILE_N;
        const int blocks = of.last - of.first,
                  steps = BLOCK_COLS < TILE_K ? (blocks + STEP_BLOCKS - 1) / STEP_BLOCKS : blocks * BLOCK_STEPS;
        of.step = (int)((long long)steps * part / SPLIT);
        of.end = (int)((long long)steps * (part + 1) / SPLIT);
        if (of.step < of.end)
            read_window(of, arg, of.first + (BLOCK_COLS < TILE_K ? of.step * STEP_BLOCKS : of.step / BLOCK_STEPS));
    }
    previous_launch_done();
    float sum[TILES][TILE_N / 2] = {};
    sum_steps(sum, of, arg, sm90::smem_address(own));
    const int j0 = (int)of.j0;
    if constexpr (SPLIT == 1) {
        if (there)
#pragma unroll
            for (int m = 0; m < TILES; m++)
                if (of.row + m * 16 < BLOCK_ROWS)
                    store_tile_sums<TILE_N>(arg, sum[m], top + of.row + m * 16, BLOCK_ROWS - of.row - m * 16, j0);
    } else {
        copies_wait<0>();
        __syncwarp();
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < TILE_N / 8; n++)
                ((float4 *)own)[(m * (TILE_N / 8) + n) * 32 + lane] =
                    make_float4(sum[m][n * 4], sum[m][n * 4 + 1], sum[m][n * 4 + 2], sum[m][n * 4 + 3]);
        __syncthreads();
        if (!there || part >= SHAPE.finishers)
            return;
        float total[TILES][FINISH_COLUMNS / 2];
        add_parts<FINISH_COLUMNS>(total, own - part * WARP_BYTES, part);
#pragma unroll
        for (int m = 0; m < TILES; m++)
            if (of.row + m * 16 < BLOCK_ROWS)
                store_tile_sums<FINISH_COLUMNS>(arg, total[m], top + of.row + m * 16, BLOCK_ROWS - of.row - m * 16,
                                                j0 + part * FINISH_COLUMNS);
    }
}

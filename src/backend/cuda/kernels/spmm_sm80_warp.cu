/* spmm_sm80_warp: D = epilogue(A_bsr B), f16 or bf16 in, f32 sums, or f32 rounded to TF32, or f64, for small blocks and few columns. Each
 * warp goes its own way: cp.async brings a step of A and of B into a ring of its own, mma.sync multiplies it, and no warp waits for another
 * but at the end, where several share a block row. Bound: bytes from L2; where there are few columns, the latency of a row's indices, its
 * operands and its sums.
 * The constants: spmm_sm80_warp.h. */
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/warp_step.cuh"
#include "backend/cuda/kernels/spmm_sm80_warp.h"

constexpr warp_constants CONSTANTS = {WARP_CONSTANTS(SPK_CONSTANT_VALUE)};
constexpr warp_shape SHAPE = warp_shape_of(CONSTANTS);
constexpr int ROWS = SHAPE.rows, PARTS = SHAPE.parts, WARPS = SHAPE.warps, A_BYTES = SHAPE.a_bytes, STAGE_BYTES = SHAPE.stage_bytes,
              WARP_BYTES = SHAPE.warp_bytes, FINISH_COLUMNS = SHAPE.finish_columns;

/* Thread blocks of a multiprocessor that registers must suffice for. */
constexpr bool MORE = CUT_PIECES || USE_C || RESIDUAL != NO_RESIDUAL || KEEP_PREACT || HAS_POSITIONS || BATCHED || __CUDA_ARCH__ >= 1000;
constexpr int SUMS = TILES * TILE_N * (int)sizeof(real) / 4;
constexpr int RESIDENT_WARPS = SUMS <= 64 ? (MORE || !HALVES ? 16 : 20) : MORE || !HALVES ? 8 : 12;
constexpr int RESIDENT = RESIDENT_WARPS / WARPS > 1 ? RESIDENT_WARPS / WARPS : 1;

constexpr int A_LINE = a_line(ROWS, TILE_K), B_LINE = b_line(TILE_N, TILE_K);
constexpr int A_COPIES = A_LINE / (A_PIECE * BYTES), B_COPIES = B_LINE / 16, /* of a line */
    ALL_A_COPIES = A_BYTES / (A_PIECE * BYTES), ALL_B_COPIES = (STAGE_BYTES - A_BYTES) / 16;
constexpr int STEP_BLOCKS = BLOCK_COLS < TILE_K ? TILE_K / BLOCK_COLS : 1, BLOCK_STEPS = BLOCK_COLS < TILE_K ? 1 : BLOCK_COLS / TILE_K;
static_assert(BYTES == BYTES_EACH, "");
static_assert(BLOCK_COLS % TILE_K == 0 || (TILE_K % BLOCK_COLS == 0 && 32 % STEP_BLOCKS == 0), "a step straddles blocks");

/* A warp's part of a block row, and where its lanes have the columns of 32 blocks. */
struct job {
    int row;                        /* first row in the block row */
    int first, last;                /* blocks */
    int step, end;                  /* steps of the block row that are the warp's */
    int window;                     /* the block whose column lane 0 has */
    int column, position;           /* of block window + lane; column negative: there is no such block */
    int next_column, next_position; /* of the 32 blocks behind those, where a step has many */
    long long j0;                   /* first column */
};

/* A window of 32 blocks lasts for a step or two where a step has eight and more: then the next one is asked for early. */
constexpr bool EARLY = STEP_BLOCKS >= 8;

inline void read_blocks(int &column, int &position, const job &of, const spk_cuda_arguments &arg, int at)
{
    column = at < of.last ? __ldg(arg.columns + at) : -1;
#if HAS_POSITIONS
    position = at < of.last ? __ldg(arg.positions + at) : 0;
#endif
}

inline void read_window(job &of, const spk_cuda_arguments &arg, int block, bool first)
{
    const int at = block + threadIdx.x % 32;
    of.window = block;
    if (!EARLY || first) {
        read_blocks(of.column, of.position, of, arg, at);
    } else {
        of.column = of.next_column;
        of.position = of.next_position;
    }
    if (EARLY)
        read_blocks(of.next_column, of.next_position, of, arg, at + 32);
}

/* Steps come in order. */
inline void load_step(job &of, const spk_cuda_arguments &arg, int step, unsigned stage)
{
    const int lane = threadIdx.x % 32, block = of.first + (BLOCK_COLS < TILE_K ? step * STEP_BLOCKS : step / BLOCK_STEPS),
              inside = BLOCK_COLS < TILE_K ? 0 : step % BLOCK_STEPS * TILE_K;
    if (block >= of.window + 32)
        read_window(of, arg, of.window + 32, false);
    const int from = block - of.window;
    [[maybe_unused]] const int only =
        STEP_BLOCKS == 1 ? __shfl_sync(~0u, of.column, from) : 0; /* the column of a step inside of one block */
    [[maybe_unused]] const int place = HAS_POSITIONS && STEP_BLOCKS == 1 ? __shfl_sync(~0u, of.position, from) : 0;
#pragma unroll
    for (int p = lane; p < ALL_A_COPIES; p += 32) {
        const int line = p / A_COPIES, in_line = p % A_COPIES * A_PIECE, k = A_ALONG_K ? in_line : line,
                  row = of.row + (A_ALONG_K ? line : in_line), which = from + k / BLOCK_COLS * (STEP_BLOCKS > 1);
        const int column = STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.column, which) : only,
                  position = !HAS_POSITIONS    ? of.window + which
                             : STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.position, which)
                                               : place;
        copy_a(stage + spot<A_LINE, A_ALONG_K>(line, in_line / PIECE) + in_line % PIECE * BYTES, arg, position, column, row,
               inside + (STEP_BLOCKS > 1 ? k % BLOCK_COLS : k));
    }
#pragma unroll
    for (int p = lane; p < ALL_B_COPIES; p += 32) {
        const int line = p / B_COPIES, chunk = p % B_COPIES, k = B_ALONG_K ? chunk * PIECE : line;
        const int column = STEP_BLOCKS > 1 ? __shfl_sync(~0u, of.column, from + k / BLOCK_COLS) : only;
        copy_b(stage + A_BYTES + spot<B_LINE, B_ALONG_K>(line, chunk), arg, column, inside + (STEP_BLOCKS > 1 ? k % BLOCK_COLS : k),
               of.j0 + (B_ALONG_K ? line : chunk * PIECE));
    }
}

inline void sum_steps(real (&sum)[TILES][TILE_N / 2], job &of, const spk_cuda_arguments &arg, unsigned ring)
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
        multiply_step<TILES, TILE_N, TILE_K>(sum, ring + read, ring + read + A_BYTES);
        written = read;
        read = read + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : read + STAGE_BYTES;
    }
}

/* Of two rows and two neighbouring columns. */
struct alignas(16) four_sums {
    real at[4];
};

/* The sums of a unit's warps, added in their order: those of the columns that this warp finishes. */
template <int COLUMNS> inline void add_parts(real (&total)[TILES][COLUMNS / 2], const char *unit, int part)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            const four_sums *at = (const four_sums *)unit + (m * (TILE_N / 8) + part * (COLUMNS / 8) + n) * 32 + lane;
            four_sums x = *at;
#pragma unroll
            for (int s = 1; s < SPLIT; s++) {
                const four_sums y = *(const four_sums *)((const char *)at + s * WARP_BYTES);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    x.at[e] += y.at[e];
            }
#pragma unroll
            for (int e = 0; e < 4; e++)
                total[m][n * 4 + e] = x.at[e];
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
            read_window(of, arg, of.first + (BLOCK_COLS < TILE_K ? of.step * STEP_BLOCKS : of.step / BLOCK_STEPS), true);
    }
    previous_launch_done();
    real sum[TILES][TILE_N / 2] = {};
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
                ((four_sums *)own)[(m * (TILE_N / 8) + n) * 32 + lane] =
                    four_sums{{sum[m][n * 4], sum[m][n * 4 + 1], sum[m][n * 4 + 2], sum[m][n * 4 + 3]}};
        __syncthreads();
        if (!there || part >= SHAPE.finishers)
            return;
        real total[TILES][FINISH_COLUMNS / 2];
        add_parts<FINISH_COLUMNS>(total, own - part * WARP_BYTES, part);
#pragma unroll
        for (int m = 0; m < TILES; m++)
            if (of.row + m * 16 < BLOCK_ROWS)
                store_tile_sums<FINISH_COLUMNS>(arg, total[m], top + of.row + m * 16, BLOCK_ROWS - of.row - m * 16,
                                                j0 + part * FINISH_COLUMNS);
    }
}

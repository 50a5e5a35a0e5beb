/* spmm_sm80_direct: D = epilogue(A_bsr B), f16 or bf16 in, f32 sums, for small blocks. Nothing passes through shared memory: a lane loads
 * 16 bytes of a row of B, and movmatrix turns them into what mma.sync wants; values come as 8 bytes of a row. Block rows of one thread
 * block that meet at a column find B in the first-level cache. Needs blocks whose rows lie together, a row-major B, whole blocks and whole
 * eights of columns. Bound: bytes from L2 and through the first-level cache.
 *
 * Of a step of 16 along K, lane l loads rows 4q to 4q + 3 of B, q = l / 8, 8 columns from 8 (l % 8) on of each 64: eight neighbours read a
 * whole line of the cache. movmatrix of a register then gives a lane two columns, 32 apart, of a row 4t + j of B, t = l % 4; two of them
 * make two operands: depth 2t, 2t + 1 of the instruction is 4t, 4t + 1 of the step, and 2t + 8, 2t + 9 are 4t + 2, 4t + 3, a lane's four
 * neighbours in a row of A. The sums of the four instructions over 32 columns are then of eight neighbouring columns. The constants:
 * spmm_sm80_direct.h. */
#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma_sync.cuh"
#include "backend/cuda/kernels/spmm_sm80_direct.h"

constexpr direct_shape SHAPE = direct_shape_of({DIRECT_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int ROWS = SHAPE.rows, PARTS = SHAPE.parts, WARPS = SHAPE.warps, LINES = SHAPE.lines, EIGHTS = TILE_N / 32, WIDE = TILE_N / 64;
constexpr bool PAIRED = BLOCK_COLS == 8;                                                  /* a step is two blocks */
constexpr int STEPS = PAIRED ? 1 : BLOCK_COLS / 16, ROW_HALVES = BLOCK_ROWS == 8 ? 1 : 2; /* of a block; of 16 rows, 8 each */
constexpr int AHEAD = 2;                                                                  /* steps in registers */
static_assert(DTYPE_A == DTYPE_B && (DTYPE_A == F16 || DTYPE_A == BF16), "the tensor instruction takes these types only");
static_assert(A_K_CONTIGUOUS && LAYOUT_B == ROW_MAJOR && TILE_N % 64 == 0, "");
static_assert((BLOCK_ROWS == 8 && TILES == 1) || BLOCK_ROWS % 16 == 0, "");
static_assert(PAIRED || BLOCK_COLS % 16 == 0, "");

/* Thread blocks of a multiprocessor that registers must suffice for. */
constexpr bool MORE = USE_C || RESIDUAL != NO_RESIDUAL || KEEP_PREACT || HAS_POSITIONS || SPLIT > 1 || __CUDA_ARCH__ >= 1000;
constexpr int RESIDENT_WARPS = TILES * TILE_N <= 64 ? 16 : MORE ? 8 : 12;
constexpr int RESIDENT = RESIDENT_WARPS / WARPS > 1 ? RESIDENT_WARPS / WARPS : 1;

inline unsigned turned(unsigned pair)
{
    unsigned out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
    return out;
}

/* Values are read once by a thread block. */
inline uint2 load_four(const element_a *from)
{
    uint2 x;
    asm volatile("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from));
    return x;
}

/* A warp's part of a block row, and where its lanes have the columns of 32 blocks. */
struct job {
    int first, last;      /* its blocks */
    int column, position; /* of 32 blocks of them */
    const element_a *a;   /* the lane's place in a block */
    const element_b *b;   /* and in the first rows of B */
    int wide;             /* of its columns of B, 64 apart, that are there */
};

struct operands {
    unsigned a[TILES][4];
    uint4 b[WIDE][4]; /* the lane's four rows */
};

inline void read_window(job &of, const spk_cuda_arguments &arg, int block)
{
    const int at = block + threadIdx.x % 32;
    of.column = at < of.last ? __ldg(arg.columns + at) : 0;
#if HAS_POSITIONS
    of.position = at < of.last ? __ldg(arg.positions + at) : 0;
#endif
}

/* Steps come in order. */
inline void load_step(operands &to, job &of, const spk_cuda_arguments &arg, int step)
{
    const int lane = threadIdx.x % 32, block = PAIRED ? step * 2 : step / STEPS, inside = PAIRED ? 0 : step % STEPS * 16;
    const int block_a = block + (PAIRED ? lane % 4 / 2 : 0), block_b = block + (PAIRED ? lane / 16 : 0);
    if (block % 32 == 0 && inside == 0 && block > 0)
        read_window(of, arg, of.first + block);
    const int column = __shfl_sync(~0u, of.column, block_b % 32),
              position = HAS_POSITIONS ? __shfl_sync(~0u, of.position, block_a % 32) : of.first + block_a;
    const element_a *a = of.a + position * arg.block_stride + inside;
    const bool there_a = !PAIRED || of.first + block_a < of.last, there_b = !PAIRED || of.first + block_b < of.last;
#pragma unroll
    for (int m = 0; m < TILES; m++) {
        uint2 upper = make_uint2(0, 0), lower = make_uint2(0, 0);
        if (there_a) {
            upper = load_four(a + m * (16 * BLOCK_COLS));
            if (ROW_HALVES == 2)
                lower = load_four(a + (m * 16 + 8) * BLOCK_COLS);
        }
        to.a[m][0] = upper.x;
        to.a[m][1] = lower.x;
        to.a[m][2] = upper.y;
        to.a[m][3] = lower.y;
    }
    const element_b *b = of.b + ((long long)column * BLOCK_COLS + inside) * arg.ldb;
#pragma unroll
    for (int n = 0; n < WIDE; n++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            to.b[n][j] = n < of.wide && there_b ? __ldg((const uint4 *)(b + j * arg.ldb + n * 64)) : make_uint4(0, 0, 0, 0);
}

inline unsigned word_of(const uint4 &x, int e)
{
    return e == 0 ? x.x : e == 1 ? x.y : e == 2 ? x.z : x.w;
}

typedef float tile_sums[EIGHTS * 4][4]; /* of 16 rows: [32 columns, pair of the lane's eight][row l / 4: two columns, then l / 4 + 8] */

inline void multiply_step(tile_sums (&sum)[TILES], const operands &from)
{
#pragma unroll
    for (int n = 0; n < WIDE; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            unsigned row[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                row[j] = turned(word_of(from.b[n][j], e));
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const unsigned which = half == 0 ? 0x5410 : 0x7632, b0 = __byte_perm(row[0], row[1], which),
                               b1 = __byte_perm(row[2], row[3], which);
#pragma unroll
                for (int m = 0; m < TILES; m++)
                    mma_sync(sum[m][(n * 2 + half) * 4 + e], from.a[m], b0, b1, element_a());
            }
        }
}

inline void sum_steps(tile_sums (&sum)[TILES], job &of, const spk_cuda_arguments &arg)
{
    const int blocks = of.last - of.first, steps = PAIRED ? (blocks + 1) / 2 : blocks * STEPS;
    operands ring[AHEAD];
#pragma unroll
    for (int s = 0; s < AHEAD; s++)
        if (s < steps)
            load_step(ring[s], of, arg, s);
#pragma unroll 1
    for (int base = 0; base < steps; base += AHEAD)
#pragma unroll
        for (int s = 0; s < AHEAD; s++)
            if (base + s < steps) {
                multiply_step(sum, ring[s]);
                if (base + s + AHEAD < steps)
                    load_step(ring[s], of, arg, base + s + AHEAD);
            }
}

/* Of one tile: i0 is D's row of its first row. */
inline void store_tile_sums(const spk_cuda_arguments &arg, const tile_sums &sum, long long i0, long long j0, int eights)
{
    constexpr bool PLAIN = !USE_C && RESIDUAL == NO_RESIDUAL && !KEEP_PREACT && LAYOUT_D == ROW_MAJOR && sizeof(element_d) == 2;
    const int lane = threadIdx.x % 32;
    [[maybe_unused]] const bool fours = aligned_to(arg.d, 16) && arg.ldd % 8 == 0;
    const bool pairs = LAYOUT_D == ROW_MAJOR && pairs_aligned(arg);
#pragma unroll
    for (int n = 0; n < EIGHTS; n++)
#pragma unroll
        for (int half = 0; half < ROW_HALVES; half++) {
            const long long i = i0 + lane / 4 + half * 8, j = j0 + n * 32 + lane % 4 * 8;
            if (n >= eights || i >= arg.m)
                continue;
            if constexpr (PLAIN)
                if (fours) {
                    pieces<element_d, 8> out;
#pragma unroll
                    for (int e = 0; e < 8; e++)
                        out.at[e] = to<element_d>(finish(arg, i, j + e, sum[n * 4 + e / 2][half * 2 + e % 2]));
                    store_pieces<element_d, 8>((element_d *)arg.d + place(i, j, arg.ldd), out);
                    continue;
                }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float first = sum[n * 4 + e][half * 2], second = sum[n * 4 + e][half * 2 + 1];
                if (pairs) {
                    store_pair(arg, i, j + e * 2, first, second, true);
                } else {
                    store_one(arg, i, j + e * 2, first);
                    store_one(arg, i, j + e * 2 + 1, second);
                }
            }
        }
}

/* Adds what the unit's other warps have left in shared memory, in their order. */
inline void add_parts(tile_sums (&sum)[TILES], const float4 *own)
{
    for (int part = 1; part < SPLIT; part++)
#pragma unroll
        for (int line = 0; line < LINES; line++) {
            const float4 x = own[(part * LINES + line) * 32];
            float *at = sum[line / (EIGHTS * 4)][line % (EIGHTS * 4)];
            at[0] += x.x;
            at[1] += x.y;
            at[2] += x.z;
            at[3] += x.w;
        }
}

/* How many of a lane's eights of columns of the tile, `apart` from each other, D has; `left`: columns from the first on. */
inline int steps_left(long long left, int apart)
{
    return left <= 0 ? 0 : left > TILE_N ? TILE_N / apart : (int)((left + apart - 1) / apart);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    spmm_sm80_direct(const __grid_constant__ spk_cuda_arguments batch, const int *order)
{
    extern __shared__ __align__(128) char shared[];
    item_view arg = item_arguments(batch, block_item(batch));
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, part = warp % SPLIT;
    const unsigned row_blocks = batch.item_blocks / (unsigned)((arg.n + TILE_N - 1) / TILE_N), at = block_of_item(batch);
    const unsigned index = at % row_blocks * UNITS + warp / SPLIT, place_of_row = index / PARTS;
    const bool there = place_of_row < (unsigned)arg.grid_rows;
    const long long j0 = (long long)(at / row_blocks) * TILE_N;
    const int row = (int)(index % PARTS) * ROWS;
    next_launch_may_start();
    job of = {};
    long long top = 0;
    if (there) {
        const int block_row = order != nullptr ? __ldg(order + place_of_row) : (int)place_of_row;
        const int first = __ldg(arg.offsets + block_row), blocks = __ldg(arg.offsets + block_row + 1) - first;
        top = (long long)block_row * BLOCK_ROWS + row;
        of.first = first + (int)((long long)blocks * part / SPLIT);
        of.last = first + (int)((long long)blocks * (part + 1) / SPLIT);
        read_window(of, arg, of.first);
    }
    of.a = (const element_a *)arg.values + (row + lane / 4) * BLOCK_COLS + (PAIRED ? lane % 2 : lane % 4) * 4;
    of.b = (const element_b *)arg.b + (PAIRED ? lane / 8 % 2 : lane / 8) * 4 * arg.ldb + j0 + lane % 8 * 8;
    of.wide = steps_left(arg.n - j0 - lane % 8 * 8, 64);
    previous_launch_done();
    tile_sums sum[TILES] = {};
    sum_steps(sum, of, arg);
    if constexpr (SPLIT > 1) {
        float4 *own = (float4 *)shared + warp * (LINES * 32) + lane;
        if (part > 0)
#pragma unroll
            for (int line = 0; line < LINES; line++) {
                const float *at = sum[line / (EIGHTS * 4)][line % (EIGHTS * 4)];
                own[line * 32] = make_float4(at[0], at[1], at[2], at[3]);
            }
        __syncthreads();
        if (part > 0)
            return;
        add_parts(sum, own);
    }
    if (there)
#pragma unroll
        for (int m = 0; m < TILES; m++)
            if (row + m * 16 < BLOCK_ROWS)
                store_tile_sums(arg, sum[m], top + m * 16, j0, steps_left(arg.n - j0 - lane % 4 * 8, 32));
}

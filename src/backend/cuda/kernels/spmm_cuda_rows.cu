/* spmm_cuda_rows: D = epilogue(A_bsr B) with ordinary multiply-adds for blocks of few rows: f32 (exact), f64, f16 and bf16 with f32 sums.
 * Values and B come straight into registers, a lane has 16 bytes of each row of B, and a thread block's rows find what they share in the
 * first-level cache. Needs a row-major B; values and B at multiples of 16 bytes. Bound: bytes from L2; multiply-adds where blocks have many
 * rows. How lanes share the work, and the constants: spmm_cuda_rows.h. */
#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/kernels/spmm_cuda_rows.h"

constexpr rows_shape SHAPE = rows_shape_of({ROWS_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int TILE = SHAPE.tile_n, PARTS = SHAPE.parts, DEPTH = SHAPE.depth, WARPS = SHAPE.warps, CHUNKS_A_BLOCK = BLOCK_COLS / CHUNK;
constexpr bool FLAT = SHAPE.flat, A_ALONG_K = A_K_CONTIGUOUS && BLOCK_COLS > 1;
constexpr int WINDOW_CHUNKS = 32 * CHUNKS_A_BLOCK; /* of the blocks that the lanes have the columns of */
static_assert(BLOCK_COLS % CHUNK == 0 && LAYOUT_B == ROW_MAJOR, "");
static_assert(FLAT ? ROWS * CHUNK % VALUES == 0 : (A_ALONG_K ? CHUNK : ROWS) % VALUES == 0, "a load of values straddles lines");

/* Of a unit's lane. */
struct job {
    int row;              /* first row in the block row */
    int first, last;      /* blocks */
    int window;           /* the block whose column lane 0 has */
    int column, position; /* of block window + lane */
    int next_column, next_position;
    int group;   /* of the lanes that share its chunks, over all warps of the unit */
    long long j; /* first column */
    bool inside; /* the columns are there */
};

/* Loads stay as they came until they are multiplied: elements of 16 bits would take a register each. */
typedef raw_bytes<VALUES *(int)sizeof(element_a)>::type values_word;
typedef raw_bytes<VECTOR *(int)sizeof(element_b)>::type vector_word;
struct chunk_operands {
    values_word a[ROWS * CHUNK / VALUES]; /* [row][column of the chunk], or [column][row] where these lie together */
    vector_word b[CHUNK];
    int depth; /* columns of the chunk that are inside of A */
};

inline constexpr int place_of(int row, int e)
{
    return A_ALONG_K ? row * CHUNK + e : e * ROWS + row;
}

inline real value_at(const chunk_operands &from, int at)
{
    piece_bits<element_a, VALUES> bits;
    bits.raw = from.a[at / VALUES];
    return as<real>(bits.value.at[at % VALUES]);
}

inline void read_blocks(int &column, int &position, const job &of, const spk_cuda_arguments &arg, int at)
{
    column = at < of.last ? __ldg(arg.columns + at) : 0;
#if HAS_POSITIONS
    position = at < of.last ? __ldg(arg.positions + at) : 0;
#endif
}

inline void read_first_window(job &of, const spk_cuda_arguments &arg)
{
    const int at = of.first + threadIdx.x % 32;
    of.window = of.first;
    read_blocks(of.column, of.position, of, arg, at);
    read_blocks(of.next_column, of.next_position, of, arg, at + 32);
}

inline void read_next_window(job &of, const spk_cuda_arguments &arg)
{
    of.window += 32;
    of.column = of.next_column;
    of.position = of.next_position;
    read_blocks(of.next_column, of.next_position, of, arg, of.window + 32 + threadIdx.x % 32);
}

/* The values of a chunk: `from` is where the block begins, `in` the chunk's first column. Rows beyond the block are 0. */
inline void load_values(chunk_operands &to, const element_a *from, int row, int in)
{
    constexpr int LINES = FLAT ? 1 : A_ALONG_K ? ROWS : CHUNK, LENGTH = ROWS * CHUNK / LINES;
#pragma unroll
    for (int line = 0; line < LINES; line++) {
        const int at = FLAT ? 0 : A_ALONG_K ? (row + line) * BLOCK_COLS + in : (in + line) * BLOCK_ROWS + row;
#pragma unroll
        for (int e = 0; e < LENGTH; e += VALUES)
            if (BLOCK_ROWS % ROWS == 0 || row + (A_ALONG_K ? line : e) < BLOCK_ROWS)
                to.a[(line * LENGTH + e) / VALUES] = __ldg((const values_word *)(from + at + e));
    }
}

/* Chunk `at` of the window; zeros where there is none. By whole warps. */
inline void load_chunk(chunk_operands &to, const job &of, const spk_cuda_arguments &arg, int at)
{
    const int block = at / CHUNKS_A_BLOCK, in = at % CHUNKS_A_BLOCK * CHUNK;
    const int column = __shfl_sync(~0u, of.column, block % 32);
    [[maybe_unused]] const int named = HAS_POSITIONS ? __shfl_sync(~0u, of.position, block % 32) : 0;
    const bool there = at < WINDOW_CHUNKS && of.window + block < of.last;
    const long long k = (long long)column * BLOCK_COLS + in;
    to = {};
    if (!there)
        return;
    load_values(to, (const element_a *)arg.values + (HAS_POSITIONS ? named : of.window + block) * arg.block_stride, of.row, in);
    if (of.inside)
#pragma unroll
        for (int e = 0; e < CHUNK; e++)
            if (!RAGGED_K || k + e < arg.k)
                to.b[e] = __ldg((const vector_word *)((const element_b *)arg.b + (k + e) * arg.ldb + of.j));
    to.depth = RAGGED_K ? (int)min(max(arg.k - k, 0ll), (long long)CHUNK) : CHUNK;
}

inline void add_products(real (&sum)[ROWS][VECTOR], const chunk_operands &from)
{
#pragma unroll
    for (int e = 0; e < CHUNK; e++) {
        piece_bits<element_b, VECTOR> bits;
        bits.raw = from.b[e];
        real b[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
            b[v] = as<real>(bits.value.at[v]);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const real a = RAGGED_K && e >= from.depth ? 0 : value_at(from, place_of(r, e));
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
                sum[r][v] = a * b[v] + sum[r][v];
        }
    }
}

inline void sum_unit(real (&sum)[ROWS][VECTOR], job &of, const spk_cuda_arguments &arg)
{
    for (;;) {
        const int left = of.last - of.window, chunks = (left < 32 ? left : 32) * CHUNKS_A_BLOCK;
#pragma unroll 1
        for (int base = 0; base < chunks; base += AHEAD * DEPTH * SPLIT) {
            chunk_operands next[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                load_chunk(next[u], of, arg, base + u * (DEPTH * SPLIT) + of.group);
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                add_products(sum, next[u]);
        }
        if (left <= 32)
            break;
        read_next_window(of, arg);
    }
}

/* Groups of lanes: all have the sum afterwards. */
inline void add_groups(real (&sum)[ROWS][VECTOR])
{
#pragma unroll
    for (int step = ACROSS; step < 32; step *= 2)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
                sum[r][v] += __shfl_xor_sync(~0u, sum[r][v], step);
}

inline void store_row(const spk_cuda_arguments &arg, long long i, long long j, const real (&sum)[VECTOR], [[maybe_unused]] bool whole)
{
    if constexpr (VECTOR * sizeof(element_d) <= 16 && !KEEP_PREACT && LAYOUT_D == ROW_MAJOR)
        if (whole) {
            pieces<element_d, VECTOR> out;
#pragma unroll
            for (int v = 0; v < VECTOR; v++)
                out.at[v] = to<element_d>(finish(arg, i, j + v, sum[v]));
            store_pieces<element_d, VECTOR>((element_d *)arg.d + place(i, j, arg.ldd), out);
            return;
        }
#pragma unroll
    for (int v = 0; v < VECTOR; v++)
        store_one(arg, i, j + v, sum[v]);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)
    spmm_cuda_rows(const __grid_constant__ spk_cuda_arguments batch, const int *order)
{
    __shared__ real shared[SPLIT > 1 ? WARPS : 1][SPLIT > 1 ? SHAPE.sums : 1];
    item_view arg = item_arguments(batch, block_item(batch));
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, part = warp % SPLIT, group = lane / ACROSS;
    const unsigned row_blocks = batch.item_blocks / (unsigned)((arg.n + TILE - 1) / TILE), at = block_of_item(batch);
    const unsigned index = at % row_blocks * UNITS + warp / SPLIT, place_of_row = index / PARTS;
    const bool there = place_of_row < (unsigned)arg.grid_rows;
    next_launch_may_start();
    job of = {};
    long long top = 0;
    of.j = (long long)(at / row_blocks) * TILE + lane % ACROSS * VECTOR;
    of.inside = of.j < arg.n;
    of.group = part * DEPTH + group;
    if (there) {
        const int block_row = order != nullptr ? __ldg(order + place_of_row) : (int)place_of_row;
        of.row = (int)(index % PARTS) * ROWS;
        of.first = __ldg(arg.offsets + block_row);
        of.last = __ldg(arg.offsets + block_row + 1);
        top = (long long)block_row * BLOCK_ROWS;
        read_first_window(of, arg);
    }
    previous_launch_done();
    real sum[ROWS][VECTOR] = {};
    if (there) {
        sum_unit(sum, of, arg);
        add_groups(sum);
    }
    if constexpr (SPLIT > 1) {
        real *own = shared[warp] + lane % ACROSS * VECTOR;
        if (group == 0)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VECTOR; v++)
                    own[r * TILE + v] = sum[r][v];
        __syncthreads();
    }
    if (!there || !of.inside)
        return;
    const bool whole = aligned_to(arg.d, VECTOR * sizeof(element_d)) && arg.ldd % VECTOR == 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const long long i = top + of.row + r;
        if (r % (DEPTH * SPLIT) != of.group || of.row + r >= BLOCK_ROWS || i >= arg.m)
            continue;
        if constexpr (SPLIT > 1) {
            const real *sums = shared[warp - part] + r * TILE + lane % ACROSS * VECTOR;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) {
                sum[r][v] = sums[v];
#pragma unroll
                for (int s = 1; s < SPLIT; s++)
                    sum[r][v] += sums[s * SHAPE.sums + v];
            }
        }
        store_row(arg, i, of.j, sum[r], whole);
    }
}

/* spmm_cuda_narrow: D = epilogue(A_bsr B) where B has few columns: values flow once from memory into registers, with no shared memory
 * between. Bound: memory.
 * How lanes share the work, and the constants: spmm_cuda_narrow.h. */
#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/kernels/spmm_cuda_narrow.h"

#define CHUNKS_A_BLOCK (BLOCK_COLS / CHUNK)
#define UNITS_A_BLOCK_ROW ((BLOCK_ROWS + UNIT_ROWS - 1) / UNIT_ROWS)
#define COLUMN_TILES ((COLUMNS + 7) / 8)
#define LOADS (TENSOR ? 2 * LANE_ROWS : A_K_CONTIGUOUS ? LANE_ROWS : 1) /* of a chunk's values */
#define CHUNKS_AHEAD (AHEAD / LOADS > 1 ? AHEAD / LOADS : 1)

constexpr narrow_constants CONSTANTS = {NARROW_CONSTANTS(SPK_CONSTANT_VALUE)};
constexpr int WARPS = narrow_warps(CONSTANTS), UNIT_ROWS = narrow_unit_rows(CONSTANTS);
#define ROW_LANES narrow_row_lanes(CONSTANTS)

static_assert(BLOCK_COLS % CHUNK == 0, "a chunk straddles blocks");
static_assert(!TENSOR || (CHUNK == 8 && DEPTH_LANES == 4), "lanes do not fill the unit");

struct unit {
    int row, first, chunks; /* first row in the block row; first block */
    long long top;          /* row of D where the block row begins */
    int split;
};

/* W elements, zeros where `valid` ends. FAST: they are aligned, and all there or none. */
template <int W, bool FAST, class T> inline pieces<T, W> load_some(const T *from, int valid)
{
    if constexpr (FAST) {
        piece_bits<T, W> bits;
        bits.raw = {};
        if (valid > 0)
            bits.raw = __ldg((const typename raw_bytes<sizeof(T) * W>::type *)from);
        return bits.value;
    } else {
        pieces<T, W> out;
#pragma unroll
        for (int e = 0; e < W; e++)
            out.at[e] = e < valid ? from[e] : T();
        return out;
    }
}

/* How many columns of a chunk exist: all, but at the end of K. */
inline int columns_left(const spk_cuda_arguments &arg, int block, int inside)
{
#if RAGGED_K
    const long long left = arg.k - ((long long)__ldg(arg.columns + block) * BLOCK_COLS + inside);
    return left < 0 ? 0 : left > CHUNK ? CHUNK : (int)left;
#else
    return CHUNK;
#endif
}

/* CHUNK elements of column j of B from row k on. */
template <bool FAST> inline pieces<element_b, CHUNK> load_b(const spk_cuda_arguments &arg, long long k, int j, int valid)
{
    const element_b *b = (const element_b *)arg.b;
#if B_ALONG_K
    return load_some<CHUNK, (FAST && VECTOR_B == CHUNK)>(b + j * arg.ldb + k, valid);
#else
    pieces<element_b, CHUNK> out;
#pragma unroll
    for (int e = 0; e < CHUNK; e++)
        out.at[e] = e < valid ? b[(k + e) * arg.ldb + j] : element_b();
    return out;
#endif
}

#if !TENSOR

inline int row_of(int lane, int i)
{
    return A_K_CONTIGUOUS ? i * ROW_LANES + lane / DEPTH_LANES : lane % ROW_LANES * LANE_ROWS + i;
}
inline int depth_lane(int lane)
{
    return A_K_CONTIGUOUS ? lane % DEPTH_LANES : lane / ROW_LANES;
}

struct values_chunk {
    element_a at[LANE_ROWS][CHUNK];
};

template <bool FAST> inline void load_values(values_chunk &out, const spk_cuda_arguments &arg, const unit &job, int chunk, int lane)
{
    const int block = job.first + chunk / CHUNKS_A_BLOCK, inside = chunk % CHUNKS_A_BLOCK * CHUNK;
    const bool there = chunk < job.chunks;
    const element_a *values = (const element_a *)arg.values;
    int valid = 0;
    if (there) {
        values = block_values(arg, block);
        valid = columns_left(arg, block, inside);
    }
#if A_K_CONTIGUOUS
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i++) {
        const int r = job.row + row_of(lane, i);
        const pieces<element_a, CHUNK> line = load_some<CHUNK, FAST>(values + r * BLOCK_COLS + inside, r < BLOCK_ROWS ? valid : 0);
#pragma unroll
        for (int e = 0; e < CHUNK; e++)
            out.at[i][e] = line.at[e];
    }
#else
    const int r = job.row + row_of(lane, 0), rows = valid == 0 || r >= BLOCK_ROWS ? 0 : BLOCK_ROWS - r;
    const pieces<element_a, LANE_ROWS> line = load_some<LANE_ROWS, FAST>(values + inside * BLOCK_ROWS + r, rows);
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i++)
        out.at[i][0] = line.at[i];
#endif
}

template <bool FAST>
inline void add_products(real (&sum)[LANE_ROWS][COLUMNS], const values_chunk &a, const spk_cuda_arguments &arg, const unit &job, int chunk)
{
    if (chunk >= job.chunks)
        return;
    const int block = job.first + chunk / CHUNKS_A_BLOCK, inside = chunk % CHUNKS_A_BLOCK * CHUNK;
    const long long k = (long long)__ldg(arg.columns + block) * BLOCK_COLS + inside;
    const int valid = columns_left(arg, block, inside);
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        const pieces<element_b, CHUNK> b = load_b<FAST>(arg, k, j, valid);
#pragma unroll
        for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
            for (int e = 0; e < CHUNK; e++)
                sum[i][j] = as<real>(a.at[i][e]) * as<real>(b.at[e]) + sum[i][j];
    }
}

/* The sums of a warp, in `sums` [UNIT_ROWS][COLUMNS] of shared memory. */
template <bool FAST> inline void sum_unit(real *sums, const spk_cuda_arguments &arg, const unit &job, int lane)
{
    real sum[LANE_ROWS][COLUMNS] = {};
#pragma unroll 1
    for (int base = job.split * DEPTH_LANES; base < job.chunks; base += CHUNKS_AHEAD * SPLIT * DEPTH_LANES) {
        const int chunk = base + depth_lane(lane);
        values_chunk a[CHUNKS_AHEAD];
#pragma unroll
        for (int u = 0; u < CHUNKS_AHEAD; u++)
            load_values<FAST>(a[u], arg, job, chunk + u * SPLIT * DEPTH_LANES, lane);
#pragma unroll
        for (int u = 0; u < CHUNKS_AHEAD; u++)
            add_products<FAST>(sum, a[u], arg, job, chunk + u * SPLIT * DEPTH_LANES);
    }
    constexpr int NEAR = A_K_CONTIGUOUS ? 1 : ROW_LANES; /* distance of lanes that share a row */
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
#pragma unroll
            for (int step = DEPTH_LANES / 2; step > 0; step /= 2)
                sum[i][j] += __shfl_xor_sync(0xffffffffu, sum[i][j], step * NEAR);
            if (depth_lane(lane) == 0)
                sums[row_of(lane, i) * COLUMNS + j] = sum[i][j];
        }
}

#else

inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#if DTYPE_A == F16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#endif
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Eight elements as the four registers that hold them. */
template <bool FAST, class T> inline uint4 load_eight(const T *from, int valid)
{
    if constexpr (FAST)
        return valid > 0 ? __ldg((const uint4 *)from) : make_uint4(0, 0, 0, 0);
    const pieces<T, 8> p = load_some<8, false>(from, valid);
    return make_uint4(pack_pair(p.at[0], p.at[1]), pack_pair(p.at[2], p.at[3]), pack_pair(p.at[4], p.at[5]), pack_pair(p.at[6], p.at[7]));
}

struct values_chunk {
    uint4 at[LANE_ROWS][2]; /* rows l / 4 and l / 4 + 8 of each tile of 16 */
};

template <bool FAST> inline void load_values(values_chunk &out, const spk_cuda_arguments &arg, const unit &job, int chunk, int lane)
{
    const int block = job.first + chunk / CHUNKS_A_BLOCK, inside = chunk % CHUNKS_A_BLOCK * 8;
    const element_a *values = (const element_a *)arg.values;
    int valid = 0;
    if (chunk < job.chunks) {
        values = block_values(arg, block);
        valid = columns_left(arg, block, inside);
    }
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = job.row + i * 16 + half * 8 + lane / 4;
            out.at[i][half] = load_eight<FAST>(values + r * BLOCK_COLS + inside, r < BLOCK_ROWS ? valid : 0);
        }
}

template <bool FAST>
inline void add_products(float (&sum)[LANE_ROWS][COLUMN_TILES][4], const values_chunk &a, const spk_cuda_arguments &arg, const unit &job,
                         int chunk, int lane)
{
    const int block = job.first + chunk / CHUNKS_A_BLOCK, inside = chunk % CHUNKS_A_BLOCK * 8;
    const bool there = chunk < job.chunks;
    const int valid = there ? columns_left(arg, block, inside) : 0;
    const element_b *b = (const element_b *)arg.b + (there ? (long long)__ldg(arg.columns + block) * BLOCK_COLS + inside : 0);
#pragma unroll
    for (int j = 0; j < COLUMN_TILES; j++) {
        const int column = j * 8 + lane / 4;
        const uint4 eight = load_eight<(FAST && VECTOR_B == 8)>(b + column * arg.ldb, column < COLUMNS ? valid : 0);
#pragma unroll
        for (int i = 0; i < LANE_ROWS; i++) {
            const unsigned low[4] = {a.at[i][0].x, a.at[i][1].x, a.at[i][0].y, a.at[i][1].y},
                           high[4] = {a.at[i][0].z, a.at[i][1].z, a.at[i][0].w, a.at[i][1].w};
            multiply_add(sum[i][j], low, eight.x, eight.y);
            multiply_add(sum[i][j], high, eight.z, eight.w);
        }
    }
}

template <bool FAST> inline void sum_unit(real *sums, const spk_cuda_arguments &arg, const unit &job, int lane)
{
    constexpr int GROUPS = CHUNKS_AHEAD; /* of four chunks, in flight */
    float sum[LANE_ROWS][COLUMN_TILES][4] = {};
#pragma unroll 1
    for (int base = job.split * 4; base < job.chunks; base += GROUPS * SPLIT * 4) {
        const int chunk = base + lane % 4;
        values_chunk a[GROUPS];
#pragma unroll
        for (int u = 0; u < GROUPS; u++)
            load_values<FAST>(a[u], arg, job, chunk + u * SPLIT * 4, lane);
#pragma unroll
        for (int u = 0; u < GROUPS; u++)
            add_products<FAST>(sum, a[u], arg, job, chunk + u * SPLIT * 4, lane);
    }
    /* Lane l holds (l / 4, 2 (l % 4)) of an instruction's sums and its right neighbour, then the same 8 rows down. */
#pragma unroll
    for (int i = 0; i < LANE_ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = i * 16 + lane / 4 + e / 2 * 8, column = j * 8 + lane % 4 * 2 + e % 2;
                if (column < COLUMNS)
                    sums[row * COLUMNS + column] = sum[i][j][e];
            }
}

#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    spmm_cuda_narrow(const __grid_constant__ spk_cuda_arguments batch, const int *order)
{
    item_view arg = item_arguments(batch, block_item(batch));
    __shared__ real shared[WARPS][narrow_sums(CONSTANTS)];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const unsigned index = block_of_item(batch) * UNITS + warp / SPLIT, place_of_row = index / UNITS_A_BLOCK_ROW;
    const bool there = place_of_row < (unsigned)arg.grid_rows;
    next_launch_may_start();
    unit job = {0, 0, 0, 0, warp % SPLIT};
    if (there) {
        const int block_row = order != nullptr ? __ldg(order + place_of_row) : (int)place_of_row;
        job.row = (int)(index % UNITS_A_BLOCK_ROW) * UNIT_ROWS;
        job.top = (long long)block_row * BLOCK_ROWS;
        job.first = __ldg(arg.offsets + block_row);
        const int last = __ldg(arg.offsets + block_row + 1), at = job.first + lane;
        job.chunks = (last - job.first) * CHUNKS_A_BLOCK;
        if (at < last) {
            prefetch_l2(arg.columns + at);
#if HAS_POSITIONS
            prefetch_l2(arg.positions + at);
#endif
        }
    }
    previous_launch_done();
    if (there) {
        constexpr int LOAD = (A_K_CONTIGUOUS ? CHUNK : LANE_ROWS) * (int)sizeof(element_a);
        if (!CUT_CHUNKS && aligned_to(arg.values, LOAD) && (VECTOR_B == 1 || aligned_to(arg.b, CHUNK * sizeof(element_b))))
            sum_unit<true>(shared[warp], arg, job, lane);
        else
            sum_unit<false>(shared[warp], arg, job, lane);
    }
    __syncthreads();
    if (!there)
        return;
    const real *sums = shared[warp - job.split];
    for (int e = job.split * 32 + lane; e < UNIT_ROWS * COLUMNS; e += SPLIT * 32) {
        const int row = LAYOUT_D == ROW_MAJOR ? e / COLUMNS : e % UNIT_ROWS, column = LAYOUT_D == ROW_MAJOR ? e % COLUMNS : e / UNIT_ROWS;
        const long long i = job.top + job.row + row;
        if (job.row + row < BLOCK_ROWS && i < arg.m) {
            real total = sums[row * COLUMNS + column];
#pragma unroll
            for (int s = 1; s < SPLIT; s++)
                total += sums[s * UNIT_ROWS * COLUMNS + row * COLUMNS + column];
            store_one(arg, i, column, total);
        }
    }
}

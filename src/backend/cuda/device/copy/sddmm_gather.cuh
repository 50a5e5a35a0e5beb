/* Tiles of X and Y gathered for SDDMM by a team of threads (team.cuh), and its sums to the stored blocks of D.
 *
 * The stored blocks of a block row stand one beside the other: "virtual column" v = 0, 1, .. counts their columns, v / BLOCK_COLS is the
 * block and v % BLOCK_COLS the column in it. A team's tile is TILE_M rows of one block row by TILE_N virtual columns, whatever the block's
 * width; what lies beyond M, N or K is zero in its tile and never read. The constants: sddmm_gather.h, team.h. */
#ifndef SPK_CUDA_SDDMM_GATHER_CUH
#define SPK_CUDA_SDDMM_GATHER_CUH

#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/copy/sddmm_gather.h"
#include "backend/cuda/device/epilogue/sddmm_reduce.cuh"
#include "backend/cuda/device/copy/dense_tiles.cuh"

struct task {
    int item, part, first_step, steps;
    int first, columns;    /* first block of the row; virtual columns from `column` on that exist */
    int column, row, rows; /* of the tile: first virtual column, first row in the block, rows inside M */
    long long i0;          /* first row of X */
    const element_a *x;    /* of the item */
    const element_b *y;
};

/* The task of this team; false: none. */
inline bool find_task(const spk_cuda_arguments &arg, const sddmm_work &work, int team, task &job)
{
    const long long unit = (long long)blockIdx.x * TEAMS + team;
    const int rest = (int)(unit / work.tiles_count);
    if (rest >= work.parts * arg.items)
        return false;
    const int2 tile = __ldg((const int2 *)work.tiles + unit % work.tiles_count); /* an sddmm_tile */
    const int block_row = tile.x / SPLITS;
    job.part = rest % work.parts;
    job.item = rest / work.parts;
    job.first_step = (int)((long long)work.steps * job.part / work.parts);
    job.steps = (int)((long long)work.steps * (job.part + 1) / work.parts) - job.first_step;
    job.first = __ldg(arg.offsets + block_row);
    job.column = tile.y;
    job.columns = (__ldg(arg.offsets + block_row + 1) - job.first) * BLOCK_COLS - job.column;
    job.row = tile.x % SPLITS * TILE_M;
    job.i0 = (long long)block_row * BLOCK_ROWS + job.row;
    job.rows = clip(arg.m - job.i0 < BLOCK_ROWS - job.row ? arg.m - job.i0 : BLOCK_ROWS - job.row, TILE_M);
    job.x = (const element_a *)arg.values + job.item * arg.stride_a;
    job.y = (const element_b *)arg.b + job.item * arg.stride_b;
    return true;
}

/* D's column of a virtual column of the tile. */
inline long long grid_column(const spk_cuda_arguments &arg, const task &job, int v)
{
    const int at = job.column + v;
    return (long long)__ldg(arg.columns + job.first + at / BLOCK_COLS) * BLOCK_COLS + at % BLOCK_COLS;
}

template <int WA> inline void gather_x(element_a *tile, const spk_cuda_arguments &arg, const task &job, long long k, int thread)
{
    gather_dense_a<WA>(tile, job.x + (A_K_CONTIGUOUS ? job.i0 * arg.lda + k : k * arg.lda + job.i0), arg.lda, job.rows, arg.k - k, thread);
}

template <int WB> inline void gather_y(element_b *tile, const spk_cuda_arguments &arg, const task &job, long long k, int thread)
{
    copy_chunks<WB, B_LINES, B_LINE, PITCH_B>(tile, thread, [&](int line, int in, int *valid) {
        const int v = B_K_CONTIGUOUS ? line : in;
        const long long along = k + (B_K_CONTIGUOUS ? in : line);
        if (v >= job.columns || along >= arg.k)
            return job.y;
        const long long j = grid_column(arg, job, v);
        *valid = B_K_CONTIGUOUS ? (j < arg.n ? clip(arg.k - along, WB) : 0) : clip(arg.n - j, WB);
        return job.y + (B_K_CONTIGUOUS ? j * arg.ldb + along : along * arg.ldb + j);
    });
}

template <int WA, int WB, class M> inline void walk_k(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    walk_steps(
        memory, job.steps,
        [&](char *stage, int step) {
            const long long k = (long long)(job.first_step + step) * TILE_K;
            gather_x<WA>((element_a *)stage, arg, job, k, thread);
            gather_y<WB>((element_b *)(stage + A_TILE_BYTES), arg, job, k, thread);
        },
        multiply);
}

/* multiply(a, b) for every step of the task: copies of whole vectors where the operands allow it, else of single elements. */
template <class M> inline void walk(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    const bool a = VECTOR_A == 1 || aligned_to(job.x, VECTOR_A * sizeof(element_a)),
               b = VECTOR_B == 1 || aligned_to(job.y, VECTOR_B * sizeof(element_b));
    if (a && b)
        walk_k<VECTOR_A, VECTOR_B>(memory, arg, job, thread, multiply);
    else
        walk_k<1, 1>(memory, arg, job, thread, multiply);
}

inline int sum_place(int row, int column)
{
    return LAYOUT_D == ROW_MAJOR ? row * PITCH_D + column : column * PITCH_D + row;
}

/* A team's tile of sums to the blocks that it lies in. */
inline void store_tile(const real *sums, const spk_cuda_arguments &arg, const sddmm_work &work, const task &job, int thread)
{
    constexpr int LENGTH = LAYOUT_D == ROW_MAJOR ? TILE_N : TILE_M, LINES = LAYOUT_D == ROW_MAJOR ? TILE_M : TILE_N,
                  MOST = 16 / (int)sizeof(element_d);
    constexpr int W = BLOCK_LINE % MOST == 0 && LENGTH % MOST == 0 ? MOST : 1, CHUNKS = LENGTH / W;
    const int rows = BLOCK_ROWS - job.row < TILE_M ? BLOCK_ROWS - job.row : TILE_M,
              columns = job.columns < TILE_N ? job.columns : TILE_N; /* that are stored */
    block_target out = {(element_d *)arg.d + job.item * arg.stride_d, nullptr, nullptr};
    if (USE_C && arg.beta != 0)
        out.c = (const element_d *)arg.c + job.item * arg.stride_c;
    if (work.parts > 1)
        out.sums = (real *)arg.workspace + ((long long)job.item * work.parts + job.part) * work.elements;
    const bool whole = aligned_to(out.d, W * sizeof(element_d)) && aligned_to(out.c, W * sizeof(element_d));
    for (int chunk = thread; chunk < LINES * CHUNKS; chunk += TEAM_THREADS) {
        const int line = chunk / CHUNKS, in = chunk % CHUNKS * W, r = LAYOUT_D == ROW_MAJOR ? line : in,
                  v = LAYOUT_D == ROW_MAJOR ? in : line;
        if (r >= rows || v >= columns)
            continue;
        const int at = job.column + v, c = at % BLOCK_COLS;
        const long long origin = (job.first + at / BLOCK_COLS) * BLOCK_ELEMENTS;
        real sum[W];
#pragma unroll
        for (int e = 0; e < W; e++)
            sum[e] = sums[line * PITCH_D + in + e];
        const int inside = RAGGED ? elements_inside<W>(arg, job.i0 + r, grid_column(arg, job, v)) : W;
        store_elements<W>(arg, out, origin + (LAYOUT_D == ROW_MAJOR ? (job.row + r) * BLOCK_COLS + c : c * BLOCK_ROWS + job.row + r), sum,
                          inside, whole);
    }
}

#endif

/* Tiles of op(A) and of B gathered into shared memory for a team of threads, step by step along the stored blocks of one block row.
 *
 * The blocks of a block row stand one behind the other: "depth" v = 0, 1, .. counts their columns, v / BLOCK_COLS is the block and v %
 * BLOCK_COLS the column in it. A step takes TILE_K of them, whatever the block's width: nothing is padded but the last step, where both
 * tiles hold zeros. What lies beyond K is zero in both tiles too, so that neither the overhang of values nor memory beyond B is ever read.
 *
 * A team (team.cuh) works on one tile of D, TILE_M rows of one block row (SPLITS tiles down a block row) by TILE_N columns. The
 * constants: gather.h, team.h. */
#ifndef SPK_CUDA_GATHER_CUH
#define SPK_CUDA_GATHER_CUH

#include "backend/cuda/device/copy/gather.h"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/epilogue/tile_store.cuh"

#define ONE_BLOCK_A_STEP (BLOCK_COLS % TILE_K == 0) /* every step lies inside one block */

/* What a team computes, and where its operands begin. */
struct task {
    int item;                 /* of the batch */
    int block_row, row, rows; /* rows [row, row + rows) of the block row, of which those inside D are stored */
    long long column;         /* first column of D */
    int first, depth, steps;  /* first block; columns of all blocks; steps of TILE_K */
    long long partial;        /* PIECES: the place of its sums in the workspace, in tiles; negative: they are D's */
};

/* The block column and the values of the step after the one being copied, fetched ahead. Only where steps lie inside one block. */
struct ahead {
    int column;
    const element_a *values;
};
inline void look_ahead(const spk_cuda_arguments &arg, const task &job, int step, ahead &next)
{
    if (ONE_BLOCK_A_STEP && step < job.steps) {
        const int block = job.first + step * TILE_K / BLOCK_COLS;
        next.column = __ldg(arg.columns + block);
        next.values = block_values(arg, block);
    }
}

template <int WA>
inline void gather_a_in_block(element_a *tile, const spk_cuda_arguments &arg, const task &job, int step, const ahead &next, int thread)
{
    const int inside = step * TILE_K % BLOCK_COLS;
    const long long left = arg.k - ((long long)next.column * BLOCK_COLS + inside); /* of K */
#if A_K_CONTIGUOUS
    copy_lines<WA, TILE_M, TILE_K, PITCH_A, BLOCK_ROWS % TILE_M == 0>(tile, next.values + job.row * BLOCK_COLS + inside, BLOCK_COLS,
                                                                      BLOCK_ROWS - job.row, thread,
                                                                      [&](int in) { return RAGGED_K ? clip(left - in, WA) : WA; });
#else
    copy_lines<WA, TILE_K, TILE_M, PITCH_A, !RAGGED_K>(
        tile, next.values + inside * BLOCK_ROWS + job.row, BLOCK_ROWS, left, thread,
        [&](int in) { return BLOCK_ROWS % TILE_M == 0 ? WA : clip(BLOCK_ROWS - job.row - in, WA); });
#endif
}

template <int WB>
inline void gather_b_in_block(element_b *tile, const spk_cuda_arguments &arg, const task &job, int step, const ahead &next, int thread)
{
    const long long begin = (long long)next.column * BLOCK_COLS + step * TILE_K % BLOCK_COLS, left = arg.k - begin;
    const element_b *b = (const element_b *)arg.b;
#if B_K_CONTIGUOUS
    copy_lines<WB, TILE_N, TILE_K, PITCH_B, false>(tile, b + job.column * arg.ldb + begin, arg.ldb, arg.n - job.column, thread,
                                                   [&](int in) { return RAGGED_K ? clip(left - in, WB) : WB; });
#else
    copy_lines<WB, TILE_K, TILE_N, PITCH_B, !RAGGED_K>(tile, b + begin * arg.ldb + job.column, arg.ldb, left, thread,
                                                       [&](int in) { return clip(arg.n - job.column - in, WB); });
#endif
}

template <int WA> inline void gather_a_anywhere(element_a *tile, const spk_cuda_arguments &arg, const task &job, int step, int thread)
{
    copy_chunks<WA, A_LINES, A_LINE, PITCH_A>(tile, thread, [&](int line, int in, int *valid) {
        const int r = job.row + (A_K_CONTIGUOUS ? line : in), v = step * TILE_K + (A_K_CONTIGUOUS ? in : line);
        if (v >= job.depth || r >= BLOCK_ROWS)
            return (const element_a *)arg.values;
        const int block = job.first + v / BLOCK_COLS, c = v % BLOCK_COLS;
        const long long left = RAGGED_K ? arg.k - ((long long)__ldg(arg.columns + block) * BLOCK_COLS + c) : TILE_K;
        *valid = A_K_CONTIGUOUS ? clip(left, WA) : left > 0 ? clip(BLOCK_ROWS - r, WA) : 0;
        return block_values(arg, block) + (A_K_CONTIGUOUS ? r * BLOCK_COLS + c : c * BLOCK_ROWS + r);
    });
}

template <int WB> inline void gather_b_anywhere(element_b *tile, const spk_cuda_arguments &arg, const task &job, int step, int thread)
{
    copy_chunks<WB, B_LINES, B_LINE, PITCH_B>(tile, thread, [&](int line, int in, int *valid) {
        const element_b *b = (const element_b *)arg.b;
        const int v = step * TILE_K + (B_K_CONTIGUOUS ? in : line);
        const long long j = job.column + (B_K_CONTIGUOUS ? line : in);
        if (v >= job.depth || j >= arg.n)
            return b;
        const long long k = (long long)__ldg(arg.columns + job.first + v / BLOCK_COLS) * BLOCK_COLS + v % BLOCK_COLS;
        *valid = B_K_CONTIGUOUS ? (RAGGED_K ? clip(arg.k - k, WB) : WB) : !RAGGED_K || k < arg.k ? clip(arg.n - j, WB) : 0;
        return b + (B_K_CONTIGUOUS ? j * arg.ldb + k : k * arg.ldb + j);
    });
}

/* Starts the copies of a step into a stage. */
template <int WA, int WB>
inline void gather(char *stage, const spk_cuda_arguments &arg, const task &job, int step, const ahead &next, int thread)
{
    element_a *a = (element_a *)stage;
    element_b *b = (element_b *)(stage + A_TILE_BYTES);
    if constexpr (ONE_BLOCK_A_STEP) {
        gather_a_in_block<WA>(a, arg, job, step, next, thread);
        gather_b_in_block<WB>(b, arg, job, step, next, thread);
    } else {
        gather_a_anywhere<WA>(a, arg, job, step, thread);
        gather_b_anywhere<WB>(b, arg, job, step, thread);
    }
}

/* multiply(a, b) for every step, tiles in order; afterwards the shared memory is free. */
template <int WA, int WB, class M>
inline void walk_depth(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    ahead next = {0, nullptr};
    look_ahead(arg, job, 0, next);
    walk_steps(
        memory, job.steps,
        [&](char *stage, int step) {
            gather<WA, WB>(stage, arg, job, step, next, thread);
            look_ahead(arg, job, step + 1, next);
        },
        multiply);
}

/* Copies of whole vectors where the operands allow it, else of single elements. The choice is the same for all threads. */
template <class M> inline void walk(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    const bool a = VECTOR_A == 1 || aligned_to(arg.values, VECTOR_A * sizeof(element_a)),
               b = VECTOR_B == 1 || aligned_to(arg.b, VECTOR_B * sizeof(element_b));
    if (a && b)
        walk_depth<VECTOR_A, VECTOR_B>(memory, arg, job, thread, multiply);
    else
        walk_depth<1, 1>(memory, arg, job, thread, multiply);
}

/* The place in a list of `rows` rows (or pieces of them) of the one that this team works on, and which part of it; negative: none. Tiles of
 * one block row are neighbours, then rows as listed, then columns. */
inline int find_place(unsigned rows, int team, int &part, unsigned &column_tile)
{
    const unsigned tiles = rows * SPLITS, groups = (tiles + TEAMS - 1) / TEAMS, tile = blockIdx.x % groups * TEAMS + team;
    part = (int)(tile % SPLITS);
    column_tile = blockIdx.x / groups;
    return tile < tiles ? (int)(tile / SPLITS) : -1;
}

/* Tiles of an item across. */
inline unsigned item_columns(const spk_cuda_arguments &arg)
{
    return (unsigned)((arg.n + TILE_N - 1) / TILE_N);
}

/* The tile of D: TILE_M rows of a block row from part * TILE_M on; the columns of a batch's items are counted on. */
inline void set_tile(const spk_cuda_arguments &arg, task &job, int block_row, int part, unsigned column_tile)
{
    job.block_row = block_row;
    job.row = part * TILE_M;
    const long long inside = arg.m - (long long)block_row * BLOCK_ROWS;
    job.rows = clip((inside < BLOCK_ROWS ? inside : BLOCK_ROWS) - job.row, TILE_M);
    job.item = BATCHED ? (int)(column_tile / item_columns(arg)) : 0;
    job.column = (long long)(BATCHED ? column_tile % item_columns(arg) : column_tile) * TILE_N;
}

#if PIECES
/* Entries of the host's list (gather.h), after the first. */
inline int4 listed(const int *list, int at)
{
    return __ldg((const int4 *)list + 1 + at);
}

inline long long partial_tile(const spk_cuda_arguments &arg, int piece, int part, unsigned column_tile)
{
    return ((long long)piece * SPLITS + part) * ((long long)item_columns(arg) * (BATCHED ? arg.items : 1)) + column_tile;
}
#endif

/* The task of this team; false: none. order: block rows, longest first (null: as they come); PIECES: the list. */
inline bool find_task(const spk_cuda_arguments &arg, const int *order, int team, task &job)
{
    int part;
    unsigned column_tile;
#if PIECES
    const int place = find_place(__ldg(order), team, part, column_tile);
    if (place < 0)
        return false;
    const int4 piece = listed(order, place);
    set_tile(arg, job, piece.x, part, column_tile);
    job.first = piece.y;
    job.depth = (piece.z - piece.y) * BLOCK_COLS;
    job.partial = piece.w < 0 ? -1 : partial_tile(arg, piece.w, part, column_tile);
#else
    const int place = find_place(arg.grid_rows, team, part, column_tile);
    if (place < 0)
        return false;
    set_tile(arg, job, order != nullptr ? __ldg(order + place) : place, part, column_tile);
    job.first = __ldg(arg.offsets + job.block_row);
    job.depth = (__ldg(arg.offsets + job.block_row + 1) - job.first) * BLOCK_COLS;
    job.partial = -1;
#endif
    job.steps = (job.depth + TILE_K - 1) / TILE_K;
    return true;
}

/* ---- sums on their way to D */

inline tile_place place_of(const spk_cuda_arguments &arg, const task &job)
{
    return tile_place{(long long)job.block_row * BLOCK_ROWS + job.row, job.column, job.rows, clip(arg.n - job.column, TILE_N)};
}

#if PIECES
/* The whole of the second launch: adds the pieces of each cut row in their order, a thread for each line of sums. */
inline void add_tiles(const spk_cuda_arguments &arg, const int *list)
{
    const unsigned column_tiles = item_columns(arg) * (BATCHED ? arg.items : 1), rows = (unsigned)__ldg(list + 1);
    const long long number = (long long)blockIdx.x * (TEAM_THREADS * TEAMS) + threadIdx.x, tile = number / LINES_A_TILE;
    const int line = (int)(number % LINES_A_TILE), part = (int)(tile % SPLITS);
    const unsigned column_tile = (unsigned)(tile / SPLITS % column_tiles);
    const long long place = tile / SPLITS / column_tiles;
    if (place >= rows)
        return;
    const int4 row = listed(list, __ldg(list) + (int)place);
    task job;
    set_tile(arg, job, row.x, part, column_tile);
    item_view one = item_arguments(arg, job.item);
    add_line(one, place_of(one, job), (const real *)arg.workspace + partial_tile(arg, row.y, part, column_tile) * TILE_SUMS,
             (long long)SPLITS * column_tiles * TILE_SUMS, row.z, line);
}
#endif

/* A team's tile of sums to where they belong. */
inline void leave_tile(const real *sums, const spk_cuda_arguments &arg, const task &job, int thread)
{
#if PIECES
    if (job.partial >= 0) {
        keep_tile(sums, (real *)arg.workspace + job.partial * TILE_SUMS, thread);
        return;
    }
#endif
    store_tile(sums, arg, place_of(arg, job), thread);
}

/* The second launch of a kernel whose long rows come in pieces. */
#if PIECES
#define ADDING_ENTRY(name)                                                    \
    extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)      \
        name(const __grid_constant__ spk_cuda_arguments arg, const int *list) \
    {                                                                         \
        next_launch_may_start();                                              \
        previous_launch_done();                                               \
        add_tiles(arg, list);                                                 \
    }
#else
#define ADDING_ENTRY(name)
#endif

#endif

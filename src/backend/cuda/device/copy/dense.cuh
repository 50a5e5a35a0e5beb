/* Tiles of a dense A and B for a team of threads (team.cuh), step by step along K, and its sums to D. What lies beyond M, N or K is zero in
 * the tiles and never read. The constants: dense.h, team.h. */
#ifndef SPK_CUDA_DENSE_CUH
#define SPK_CUDA_DENSE_CUH

#include "backend/cuda/device/copy/dense.h"
#include "backend/cuda/device/copy/dense_tiles.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/epilogue/tile_store.cuh"

/* What a team computes. */
struct task {
    int item; /* of the batch */
    int first_step, steps;
    long long partial; /* PIECES: the place of its sums in the workspace, in tiles */
    tile_place at;
};

/* Tile number `tile` of an item with tiles_m of them down: groups of DENSE_GROUP rows of tiles, down in each and then to the right. */
inline tile_place dense_tile(const spk_cuda_arguments &arg, unsigned tiles_m, unsigned tiles_n, unsigned tile)
{
    const unsigned group = DENSE_GROUP * tiles_n, first = tile / group * DENSE_GROUP, in = tile % group;
    const unsigned height = tiles_m - first < DENSE_GROUP ? tiles_m - first : DENSE_GROUP;
    const long long i0 = (long long)(first + in % height) * TILE_M, j0 = (long long)(in / height) * TILE_N;
    return tile_place{i0, j0, clip(arg.m - i0, TILE_M), clip(arg.n - j0, TILE_N)};
}

/* Tiles of an item: how many there are down and across. */
struct item_tiles {
    unsigned down, across;
};
inline item_tiles tiles_of(const spk_cuda_arguments &batch, const dense_work &work, int item)
{
    item_tiles tiles = {(unsigned)work.tiles_m, (unsigned)work.tiles_n};
    if (GROUP_AXIS == ROW_GROUPS || GROUP_AXIS == COLUMN_GROUPS) {
        const group_range range = group_at(batch, item);
        const int size = range.end - range.begin;
        if (GROUP_AXIS == ROW_GROUPS)
            tiles.down = (size + TILE_M - 1) / TILE_M;
        else
            tiles.across = (size + TILE_N - 1) / TILE_N;
    }
    return tiles;
}

/* Of tile number `tile` of all items: the item, and `tile` becomes its number there; false: there are fewer tiles. Items have the same
 * number of tiles, but for groups that cut D, whose sizes only the device knows. */
inline bool find_item(const spk_cuda_arguments &batch, const dense_work &work, unsigned &tile, int &item, item_tiles &tiles)
{
    if (GROUP_AXIS == ROW_GROUPS || GROUP_AXIS == COLUMN_GROUPS) {
        for (item = 0; item < batch.items; item++) {
            tiles = tiles_of(batch, work, item);
            const unsigned count = tiles.down * tiles.across;
            if (tile < count)
                return true;
            tile -= count;
        }
        return false;
    }
    tiles = tiles_of(batch, work, 0);
    const unsigned count = tiles.down * tiles.across;
    item = (int)(tile / count);
    tile -= item * count;
    return item < (BATCHED ? batch.items : 1);
}

/* The task of this team; false: none. Parts of K of a tile one after the other. */
inline bool find_task(const spk_cuda_arguments &arg, const dense_work &work, int team, task &job)
{
    const unsigned parts = PIECES ? work.parts : 1, unit = blockIdx.x * TEAMS + team, number = unit % work.tiles, part = unit / work.tiles;
    unsigned tile = number;
    item_tiles tiles;
    if (part >= parts || !find_item(arg, work, tile, job.item, tiles))
        return false;
    item_view one = item_arguments(arg, job.item);
    const long long steps = GROUP_AXIS == DEPTH_GROUPS ? (one.k + TILE_K - 1) / TILE_K : work.steps;
    job.first_step = (int)(steps * part / parts);
    job.steps = (int)(steps * (part + 1) / parts) - job.first_step;
    job.partial = (long long)number * parts + part;
    job.at = dense_tile(one, tiles.down, tiles.across, tile);
    return true;
}

template <int WA, int WB, class M> inline void walk_k(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    const long long i0 = job.at.i0, j0 = job.at.j0;
    walk_steps(
        memory, job.steps,
        [&](char *stage, int step) {
            const long long k = (long long)(job.first_step + step) * TILE_K;
            const element_a *a = (const element_a *)arg.values + (A_K_CONTIGUOUS ? i0 * arg.lda + k : k * arg.lda + i0);
            const element_b *b = (const element_b *)arg.b + (B_K_CONTIGUOUS ? j0 * arg.ldb + k : k * arg.ldb + j0);
            gather_dense_a<WA>((element_a *)stage, a, arg.lda, job.at.rows, arg.k - k, thread);
            gather_dense_b<WB>((element_b *)(stage + A_TILE_BYTES), b, arg.ldb, arg.k - k, job.at.columns, thread);
        },
        multiply);
}

/* multiply(a, b) for every step of the task: copies of whole vectors where the operands allow it, else of single elements. The choice is
 * the same for all threads. */
template <class M> inline void walk(char *memory, const spk_cuda_arguments &arg, const task &job, int thread, M multiply)
{
    const bool a = VECTOR_A == 1 || aligned_to(arg.values, VECTOR_A * sizeof(element_a)),
               b = VECTOR_B == 1 || aligned_to(arg.b, VECTOR_B * sizeof(element_b));
    if (a && b)
        walk_k<VECTOR_A, VECTOR_B>(memory, arg, job, thread, multiply);
    else
        walk_k<1, 1>(memory, arg, job, thread, multiply);
}

/* A team's tile of sums to where they belong. */
inline void leave_tile(const real *sums, const spk_cuda_arguments &arg, const task &job, int thread)
{
#if PIECES
    keep_tile(sums, (real *)arg.workspace + job.partial * TILE_SUMS, thread);
#else
    store_tile(sums, arg, job.at, thread);
#endif
}

/* The second launch of a kernel that cuts K: adds the parts of each tile in their order, a thread for each line of sums. */
#if PIECES
inline void add_tiles(const spk_cuda_arguments &arg, const dense_work &work)
{
    const long long line = (long long)blockIdx.x * (TEAM_THREADS * TEAMS) + threadIdx.x, number = line / LINES_A_TILE;
    unsigned tile = (unsigned)number;
    int item;
    item_tiles tiles;
    if (number >= work.tiles || !find_item(arg, work, tile, item, tiles))
        return;
    item_view one = item_arguments(arg, item);
    add_line(one, dense_tile(one, tiles.down, tiles.across, tile), (const real *)arg.workspace + number * work.parts * TILE_SUMS, TILE_SUMS,
             work.parts, (int)(line % LINES_A_TILE));
}
#define ADDING_ENTRY(name)                                                                            \
    extern "C" __global__ void __launch_bounds__(TEAM_THREADS *TEAMS, 1)                              \
        name(const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ dense_work work) \
    {                                                                                                 \
        next_launch_may_start();                                                                      \
        previous_launch_done();                                                                       \
        add_tiles(arg, work);                                                                         \
    }
#else
#define ADDING_ENTRY(name)
#endif

#endif

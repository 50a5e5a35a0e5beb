/* Tiles of a dense A and B for a team of threads (team.cuh), step by step along K, and its sums to D. What lies beyond M, N or K is zero in
 * the tiles and never read. The constants: dense.h, team.h. */
#ifndef SPK_CUDA_DENSE_CUH
#define SPK_CUDA_DENSE_CUH

#include "backend/cuda/device/dense.h"
#include "backend/cuda/device/dense_tiles.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/tile_store.cuh"

/* What a team computes. */
struct task {
    int item; /* of the batch */
    int first_step, steps;
    long long partial; /* PIECES: the place of its sums in the workspace, in tiles */
    tile_place at;
};

/* Tile number `tile` of an item: groups of DENSE_GROUP rows of tiles, down in each and then to the right. */
inline tile_place dense_tile(const spk_cuda_arguments &arg, const dense_work &work, unsigned tile)
{
    const unsigned group = DENSE_GROUP * work.tiles_n, first = tile / group * DENSE_GROUP, in = tile % group;
    const unsigned height = work.tiles_m - first < DENSE_GROUP ? work.tiles_m - first : DENSE_GROUP;
    const long long i0 = (long long)(first + in % height) * TILE_M, j0 = (long long)(in / height) * TILE_N;
    return tile_place{i0, j0, clip(arg.m - i0, TILE_M), clip(arg.n - j0, TILE_N)};
}

/* The task of this team; false: none. Parts of K one after the other. */
inline bool find_task(const spk_cuda_arguments &arg, const dense_work &work, int team, task &job)
{
    const unsigned tiles = work.tiles_m * work.tiles_n, parts = PIECES ? work.parts : 1, unit = blockIdx.x * TEAMS + team;
    const unsigned tile = unit % tiles, rest = unit / tiles, part = rest % parts;
    if (rest >= parts * (BATCHED ? arg.items : 1))
        return false;
    job.item = (int)(rest / parts);
    job.first_step = (int)((long long)work.steps * part / parts);
    job.steps = (int)((long long)work.steps * (part + 1) / parts) - job.first_step;
    job.partial = ((long long)job.item * tiles + tile) * parts + part;
    job.at = dense_tile(arg, work, tile);
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
    const unsigned tiles = work.tiles_m * work.tiles_n;
    const long long number = (long long)blockIdx.x * (TEAM_THREADS * TEAMS) + threadIdx.x, tile = number / LINES_A_TILE;
    if (tile >= (long long)tiles * (BATCHED ? arg.items : 1))
        return;
    item_view one = item_arguments(arg, tile / tiles);
    add_line(one, dense_tile(one, work, (unsigned)(tile % tiles)), (const real *)arg.workspace + tile * work.parts * TILE_SUMS, TILE_SUMS,
             work.parts, (int)(number % LINES_A_TILE));
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

/* gemm_sm90_wgmma: D = epilogue(A B), f16 or bf16 in, f32 sums. One producer warp brings chunks of K of a tile's rows of A and columns of B
 * through TMA into a ring of stages; warpgroups multiply them with wgmma; the grid is persistent. The constants: gemm_sm90_wgmma.h. Bound:
 * tensor cores; bytes from L2 where a tile is narrow, from memory where M or N is small. */
#include "backend/cuda/device/epilogue/cluster.cuh"
#include "backend/cuda/device/epilogue/finish_staged.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma.cuh"
#include "backend/cuda/device/schedule/pingpong.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/kernels/gemm_sm90_wgmma.h"

using namespace sm90;

constexpr gemm_shape SHAPE = gemm_shape_of({GEMM_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int CHUNK = GEMM_CHUNK, STAGES = SHAPE.stages, BUFFERS = SHAPE.buffers, CONSUMERS = SHAPE.consumers, WG_M = SHAPE.wg_m,
              WG_N = WIDTH;
constexpr int A_BYTES = SHAPE.a_bytes, STAGE_BYTES = SHAPE.stage_bytes, SHARING = SHAPE.sharing, CLUSTER = SHAPE.cluster;
constexpr int B_LINE_BYTES = LAYOUT_B == COL_MAJOR || WIDTH >= 64 ? 128 : WIDTH * 2; /* of a tile of B in shared memory, and its swizzle */
static_assert(SHAPE.b_bytes % 1024 == 0 && (LAYOUT_B == COL_MAJOR || WIDTH % 64 == 0 || WIDTH == 16 || WIDTH == 32), "tiles of B");
static_assert(!PINGPONG || (CONSUMERS == 2 && SPLIT == 1), "two warpgroups take turns");
static_assert(CUT == (GROUP_AXIS == ROW_GROUPS || GROUP_AXIS == COLUMN_GROUPS), "groups along K do not cut D");
static_assert(GROUP_AXIS != DEPTH_GROUPS || (!A_K_CONTIGUOUS && LAYOUT_B == ROW_MAJOR),
              "TMA reads lines along K from multiples of 16 bytes");
static_assert(GROUP_AXIS == NO_GROUPS || CLUSTER == 1, "clusters work on one item");

struct tile_work {
    int i0, j0;    /* its first row and column of D */
    int k0, steps; /* chunks of K, from k0 on */
    int item;
    int end; /* of its group, on the axis that is cut */
};

/* ---- groups that cut D: each has tiles of its own */

struct group_tiles {
#if CUT
    int before[GEMM_MOST_GROUPS + 1]; /* each group's, on the axis that is cut: tiles of the groups before it */
#endif
};

#if CUT
/* By the first warp. */
inline void count_tiles(const spk_cuda_arguments &arg, group_tiles &groups)
{
    constexpr int size = GROUP_AXIS == ROW_GROUPS ? HEIGHT : WIDTH;
    const int lane = threadIdx.x;
    int before = 0;
    if (lane == 0)
        groups.before[0] = 0;
    for (int first = 0; first < arg.items; first += 32) {
        const int group = first + lane;
        const group_range range = group_at(arg, min(group, arg.items - 1));
        int count = group < arg.items ? (range.end - range.begin + size - 1) / size : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int more = __shfl_up_sync(~0u, count, step);
            count += lane >= step ? more : 0;
        }
        if (group < arg.items)
            groups.before[group + 1] = before + count;
        before += __shfl_sync(~0u, count, 31);
    }
}
#endif

/* ---- a block's tiles */

/* Its tile number `turn`; false: there are no more. work.item: that of an earlier tile, or 0. */
inline bool find_tile(const gemm_order &order, const spk_cuda_arguments &arg, const group_tiles &groups, int turn, tile_work &work)
{
    int tile = turn * (int)(gridDim.x / CLUSTER) + (int)(blockIdx.x / CLUSTER), row_tiles = order.row_tiles, col_tiles = order.col_tiles;
#if CUT
    int &cut = GROUP_AXIS == ROW_GROUPS ? row_tiles : col_tiles;
    const int across_cut = GROUP_AXIS == ROW_GROUPS ? col_tiles : row_tiles;
    while (work.item < arg.items && tile >= groups.before[work.item + 1] * across_cut)
        work.item++;
    if (work.item == arg.items)
        return false;
    tile -= groups.before[work.item] * across_cut;
    cut = groups.before[work.item + 1] - groups.before[work.item];
#else
    if (tile >= order.tiles)
        return false;
    work.item = BATCHED ? tile / order.item_tiles : 0;
    tile -= work.item * order.item_tiles;
#endif
    const int length = order.down ? col_tiles : row_tiles, lines = order.down ? row_tiles : col_tiles;
    const int first = tile / (order.group * length) * order.group, in = tile - first * length, width = min(order.group, lines - first);
    const int along = in / width, across = first + in % width;
    int row = order.down ? across : along, col = order.down ? along : across;
    if (CLUSTER_M > 1)
        row = row * CLUSTER_M + cluster_rank();
    if (CLUSTER_N > 1)
        col = col * CLUSTER_N + cluster_rank();
    work.i0 = row * HEIGHT;
    work.j0 = col * WIDTH;
    work.k0 = 0;
    work.steps = order.steps;
#if SPLIT > 1
    const int first_step = (int)((long long)order.steps * cluster_rank() / SPLIT);
    work.k0 = first_step * CHUNK;
    work.steps = (int)((long long)order.steps * (cluster_rank() + 1) / SPLIT) - first_step;
#endif
#if GROUP_AXIS != NO_GROUPS
    const group_range range = group_at(arg, work.item);
    (GROUP_AXIS == ROW_GROUPS ? work.i0 : GROUP_AXIS == COLUMN_GROUPS ? work.j0 : work.k0) += range.begin;
    work.end = range.end;
    if (GROUP_AXIS == DEPTH_GROUPS)
        work.steps = (range.end - range.begin + CHUNK - 1) / CHUNK;
#endif
    return true;
}

/* Chunks of K of the block's tile number `turn`, 0: there is none. near: a tile before it. */
inline int steps_of(const gemm_order &order, const spk_cuda_arguments &arg, const group_tiles &groups, int turn, tile_work near)
{
    if (GROUP_AXIS != DEPTH_GROUPS)
        return order.steps;
    return find_tile(order, arg, groups, turn, near) ? near.steps : 0;
}

/* A box of a map, which has a dimension more where there are items. */
inline void load_box(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int item)
{
#if BATCHED
    tma_load_3d(to, map, barrier, x, y, item);
#else
    tma_load_2d(to, map, barrier, x, y);
#endif
}

inline void load_boxes(unsigned to, const spk_tensor_map *map, unsigned barrier, int y, int z, int item)
{
#if BATCHED
    tma_load_4d(to, map, barrier, 0, y, z, item);
#else
    tma_load_3d(to, map, barrier, 0, y, z);
#endif
}

/* `count` lines of a chunk of K that begins at k: rows of A, or columns of B. line: elements of a row of the tile that lies across K. */
template <bool along_k, bool whole, int count, int line>
inline void load_tile(unsigned to, const spk_tensor_map *map, unsigned barrier, int k, int first, int item)
{
    if (along_k)
        load_box(to, map, barrier, k, first, item);
    else if (whole && line == 64)
        load_boxes(to, map, barrier, k, first / 64, item);
    else
#pragma unroll
        for (int i = 0; i < count; i += line)
            load_box(to + i * (CHUNK * 2), map, barrier, first + i, k, item);
}

/* The same, of which each block of the cluster brings its part for all. */
template <bool along_k, bool whole, int count>
inline void load_shared_tile(unsigned to, const spk_tensor_map *map, unsigned barrier, int k, int first)
{
    constexpr int part = count / SHARING;
    constexpr unsigned short all = (1 << SHARING) - 1;
    to += cluster_rank() * (part * CHUNK * 2);
    first += cluster_rank() * part;
    if (along_k)
        tma_load_2d_multicast(to, map, barrier, k, first, all);
    else if (whole)
        tma_load_3d_multicast(to, map, barrier, 0, k, first / 64, all);
    else
#pragma unroll
        for (int i = 0; i < part; i += 64)
            tma_load_2d_multicast(to + i * (CHUNK * 2), map, barrier, first + i, k, all);
}

/* A's tile of a chunk. */
inline void load_a(unsigned to, const spk_tensor_map *map, unsigned barrier, int k, int i0, int item, [[maybe_unused]] bool once)
{
    if (CLUSTER_N > 1)
        load_shared_tile<A_K_CONTIGUOUS, A_WHOLE, HEIGHT>(to, map, barrier, k, i0);
#if A_K_CONTIGUOUS && !BATCHED
    else if (once)
        tma_load_2d(to, map, barrier, k, i0, read_once());
#endif
    else
        load_tile<A_K_CONTIGUOUS, A_WHOLE, HEIGHT, 64>(to, map, barrier, k, i0, item);
}

/* By one thread. */
inline void produce(const spk_tensor_map *map_a, const spk_tensor_map *map_b, const spk_cuda_arguments &arg, const gemm_order &order,
                    const group_tiles &groups, unsigned tiles, ring<STAGES> at)
{
    tile_work tile = {};
    for (int turn = 0; find_tile(order, arg, groups, turn, tile); turn++) {
        const int item_a = arg.stride_a != 0 ? tile.item : 0, item_b = arg.stride_b != 0 ? tile.item : 0;
        for (int step = 0; step < tile.steps; step++) {
            const unsigned a = tiles + at.stage * STAGE_BYTES, b = a + A_BYTES;
            const int k = tile.k0 + step * CHUNK;
            at.wait_empty();
            barrier_arrive_expect(at.full_barrier(), STAGE_BYTES);
            load_a(a, map_a, at.full_barrier(), k, tile.i0, item_a, order.once);
            if (CLUSTER_M > 1)
                load_shared_tile<LAYOUT_B == COL_MAJOR, B_WHOLE, WIDTH>(b, map_b, at.full_barrier(), k, tile.j0);
            else
                load_tile<LAYOUT_B == COL_MAJOR, B_WHOLE, WIDTH, B_LINE_BYTES / 2>(b, map_b, at.full_barrier(), k, tile.j0, item_b);
            at.advance();
        }
    }
}

/* ---- a group ends within a chunk of K: what lies behind is the next group's */

enum { CLEARED = 7 }; /* a named barrier */

/* Of a tile whose lines lie across K: the lines from `depth` on. */
template <int count, int line_bytes> inline void clear_tile(unsigned tile, int depth, int thread, int threads)
{
    for (int piece = 0; piece < count * 2 / line_bytes; piece++)
        for (int at = depth * line_bytes + thread * 16; at < CHUNK * line_bytes; at += threads * 16)
            shared_clear_16_bytes(tile + piece * (CHUNK * line_bytes) + at);
}

/* By all warpgroups that multiply from the stage, of whose K the first `depth` are the group's. */
inline void clear_behind(unsigned stage, int depth)
{
    constexpr int threads = PINGPONG ? 128 : CONSUMERS * 128;
    const int thread = threadIdx.x % threads;
    clear_tile<HEIGHT, 128>(stage, depth, thread, threads);
    clear_tile<WIDTH, B_LINE_BYTES>(stage + A_BYTES, depth, thread, threads);
    __syncwarp();
    fence_async_shared();
    named_barrier(PINGPONG ? 1 + threadIdx.x / 128 : CLEARED, threads);
}

/* ---- products */

/* a, b: the warpgroup's part of a stage; more: 0 where the sums begin here. */
inline void multiply(float (&sum)[WG_M][WG_N / 2], unsigned a, unsigned b, int more)
{
    mma_fence();
#pragma unroll
    for (int k = 0; k < CHUNK / 16; k++) {
#if LAYOUT_B == COL_MAJOR
        const unsigned long long db = k_major<CHUNK * 2>(b + k * 32);
#else
        const unsigned long long db = mn_major<CHUNK, B_LINE_BYTES>(b + k * (16 * B_LINE_BYTES));
#endif
#pragma unroll
        for (int m = 0; m < WG_M; m++) {
            const unsigned tile = a + m * (64 * CHUNK * 2);
#if A_K_CONTIGUOUS
            const unsigned long long da = k_major<CHUNK * 2>(tile + k * 32);
#else
            const unsigned long long da = mn_major<CHUNK>(tile + k * 2048);
#endif
            mma<WG_N>::run<!A_K_CONTIGUOUS, LAYOUT_B == ROW_MAJOR>(sum[m], da, db, k == 0 ? more : 1);
        }
    }
    mma_commit();
}

/* Gives a stage back, to every block that writes to it. By a warpgroup. */
inline void release(const ring<STAGES> &at, unsigned stage)
{
    const unsigned thread = threadIdx.x % 128;
    if (SHARING > 1 && thread < SHARING)
        cluster_arrive_read(cluster_address(at.empty + stage * 8, thread));
    else if (SHARING == 1 && thread == 0)
        at.release(stage);
}

/* Sums of a tile, from the ring's next stages. before: the stage whose products may not be done yet, -1: none. */
inline void multiply_stages(float (&sum)[WG_M][WG_N / 2], unsigned tiles, ring<STAGES> &at, const tile_work &tile, int &before)
{
    const unsigned own = PINGPONG ? 0 : threadIdx.x / 128 * (WG_M * 64 * CHUNK * 2);
    before = -1;
    for (int step = 0; step < tile.steps; step++) {
        const unsigned stage = tiles + at.stage * STAGE_BYTES;
        at.wait_full();
        if (GROUP_AXIS == DEPTH_GROUPS && tile.end - tile.k0 - step * CHUNK < CHUNK)
            clear_behind(stage, tile.end - tile.k0 - step * CHUNK);
        multiply(sum, stage + own, stage + A_BYTES, step > 0);
        mma_wait<1>();
        if (before >= 0)
            release(at, before);
        before = at.stage;
        at.advance();
    }
}

#if SPLIT > 1
typedef exchange<SPLIT, CONSUMERS, WG_M, WG_N> cluster_sums;

/* Adds the cluster's sums of a tile and stores this block's part. i0, j0: of the warpgroup's first sum in D. */
inline void finish_cluster(const spk_cuda_arguments &arg, cluster_sums &all, const float (&sum)[WG_M][WG_N / 2], int i0, int j0)
{
    const int lane = threadIdx.x % 32, i = i0 + threadIdx.x / 32 % 4 * 16 + lane / 4, j = j0 + lane % 4 * 2;
    const bool whole = LAYOUT_D == ROW_MAJOR && pairs_aligned(arg);
    all.send(sum);
    all.wait();
#pragma unroll 2
    for (int four = all.first(); four < all.end(); four++)
        store_four(arg, all.total(four), i + four / (WG_N / 8) * 64, j + four % (WG_N / 8) * 8, whole);
    all.done(1 + CONSUMERS);
}
#else
struct cluster_sums {};
#endif

/* The arguments of a tile's item. Groups that cut D lie in one array, of which a tile has what its group has. */
#if GROUP_AXIS != NO_GROUPS
inline spk_cuda_arguments tile_arguments(const spk_cuda_arguments &arg, const tile_work &tile)
{
    spk_cuda_arguments item = whole_item_arguments(arg, tile.item);
    if (CUT)
        (GROUP_AXIS == ROW_GROUPS ? item.m : item.n) = tile.end;
    return item;
}
#else
inline item_view tile_arguments(const spk_cuda_arguments &arg, const tile_work &tile)
{
    return item_arguments(arg, tile.item);
}
#endif

/* Whether TMA may write all of a warpgroup's tile: a box that reaches beyond the end of D writes nothing there, but one that reaches beyond
 * the end of a group does; and a box begins at a multiple of 16 bytes of a line. */
inline bool group_takes_boxes(const spk_cuda_arguments &arg, int i, int j0)
{
    constexpr bool rows = GROUP_AXIS == ROW_GROUPS, along_lines = rows == (LAYOUT_D == COL_MAJOR);
    return (rows ? i + 64 <= arg.m : j0 + WG_N <= arg.n) && (!along_lines || (rows ? i : j0) % 8 == 0);
}

/* The epilogue of a warpgroup's sums, and the store. */
inline void finish_tiles(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const gemm_order &order, float (&sum)[WG_M][WG_N / 2],
                         unsigned staging, int &buffer, int i0, int j0, int item)
{
    const int group = threadIdx.x / 128;
#pragma unroll
    for (int m = 0; m < WG_M; m++) {
        const int i = i0 + m * 64, warp_i = i + threadIdx.x / 32 % 4 * 16;
        [[maybe_unused]] const auto piece_row = [i](int) { return i; };
        const bool direct = order.direct || (CUT && !group_takes_boxes(arg, i, j0));
        if (direct || !finish_staged<WG_N, 64, BUFFERS, true>(arg, sum[m], staging, 1 + group, warp_i, j0, piece_row))
            finish_tile<WG_N, !STAGED_EPILOGUE>(arg, sum[m], warp_i, j0);
#if DTYPE_D != F32
        if (!direct)
            store_tma<WG_N, 64, BUFFERS>(map_d, sum[m], staging, buffer, 1 + group, j0, (int)arg.n, piece_row, item);
        else
#endif
            store_direct<WG_N>(arg, sum[m], warp_i, j0);
    }
}

inline void consume(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const gemm_order &order, const group_tiles &groups,
                    unsigned tiles, unsigned staging, ring<STAGES> at, [[maybe_unused]] cluster_sums all)
{
    const int group = threadIdx.x / 128;
    [[maybe_unused]] int buffer = 0;
    float sum[WG_M][WG_N / 2];
    tile_work tile = {};
    if (PINGPONG && group == 1) {
        at.skip(steps_of(order, arg, groups, 0, tile));
        turn_pass<PINGPONG>(0);
    }
    for (int turn = PINGPONG ? group : 0; find_tile(order, arg, groups, turn, tile); turn += PINGPONG ? 2 : 1) {
        int before;
        turn_wait<PINGPONG>(group);
        multiply_stages(sum, tiles, at, tile, before);
        turn_pass<PINGPONG>(group ^ 1);
        mma_wait<0>();
#pragma unroll
        for (int m = 0; m < WG_M; m++)
            mma_settle(sum[m]);
        if (before >= 0)
            release(at, before);
        if (tile.steps == 0) /* K is 0, or the block has no part of it */
#pragma unroll
            for (int m = 0; m < WG_M; m++)
#pragma unroll
                for (int i = 0; i < WG_N / 2; i++)
                    sum[m][i] = 0;
        if (PINGPONG)
            at.skip(steps_of(order, arg, groups, turn + 1, tile));
        const auto &item = tile_arguments(arg, tile);
        const int i0 = tile.i0 + (PINGPONG ? 0 : group * (WG_M * 64));
#if SPLIT > 1
        finish_cluster(item, all, sum, i0, tile.j0);
#else
        finish_tiles(map_d, item, order, sum, staging + group * (BUFFERS * SHAPE.staging_bytes), buffer, i0, tile.j0, CUT ? 0 : tile.item);
#endif
    }
    if (threadIdx.x % 128 == 0)
        tma_store_wait_read<0>();
#if SPLIT > 1
    all.leave();
#endif
}

/* clang-format off: it would take the attributes apart */
extern "C" __global__ void
#if CLUSTER_M * CLUSTER_N * SPLIT > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
    __launch_bounds__(SHAPE.threads, 1)
    /* clang-format on */
    gemm_sm90_wgmma(const __grid_constant__ spk_tensor_map map_a, const __grid_constant__ spk_tensor_map map_b,
                    const __grid_constant__ spk_tensor_map map_d, const __grid_constant__ spk_cuda_arguments arg,
                    const __grid_constant__ gemm_order order)
{
    extern __shared__ unsigned char shared[];
    __shared__ ring_storage<STAGES> storage;
    __shared__ group_tiles groups;
    const unsigned tiles = (smem_address(shared) + 1023) & ~1023u, staging = tiles + STAGES * STAGE_BYTES;
#if SPLIT > 1
    __shared__ exchange_storage exchanged;
    cluster_sums all(staging, exchanged);
    if (threadIdx.x == 0)
        exchange_init<SPLIT>(exchanged);
#else
    cluster_sums all;
#endif
    if (threadIdx.x == 0)
        ring_init(storage, 1, (PINGPONG ? 1 : CONSUMERS) * SHARING);
    if (threadIdx.x == CONSUMERS * 128 && order.steps > 0) { /* K is 0: the maps are not filled */
        tma_prefetch_map(&map_a);
        tma_prefetch_map(&map_b);
    }
    if (threadIdx.x == CONSUMERS * 128 + 1 && !order.direct)
        tma_prefetch_map(&map_d);
    if (CLUSTER > 1) {
        __syncwarp();
        cluster_barrier_started(); /* the other blocks' barriers are there */
    } else {
        __syncthreads();
    }
    if (order.early)
        next_launch_may_start();
    previous_launch_done();
#if CUT
    if (threadIdx.x < 32)
        count_tiles(arg, groups);
    __syncthreads();
#endif
    if (threadIdx.x < CONSUMERS * 128) {
        if (SHAPE.producer_threads == 128)
            registers_more<CONSUMERS == 2 ? 232 : 160>();
        consume(&map_d, arg, order, groups, tiles, staging, ring<STAGES>(storage), all);
    } else {
        if (SHAPE.producer_threads == 128)
            registers_fewer<CONSUMERS == 2 ? 40 : 32>();
        if (threadIdx.x == CONSUMERS * 128)
            produce(&map_a, &map_b, arg, order, groups, tiles, ring<STAGES>(storage));
    }
    if (SHARING > 1) { /* the other block still arrives at this one's barriers */
        __syncwarp();
        cluster_barrier_started();
    }
}

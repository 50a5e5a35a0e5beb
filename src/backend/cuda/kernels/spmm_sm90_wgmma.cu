/* spmm_sm90_wgmma: D = epilogue(op(A) B), f16 or bf16 in, f32 sums; blocks whose rows are a multiple of 64 and columns of 16.
 * One producer warp brings tiles of A and B through TMA into a ring of stages; one or two warpgroups multiply them with wgmma; the grid is
 * persistent. A stage is TILE_M rows of one block times CHUNK of its columns, and CHUNK rows of B times BN columns. The constants:
 * spmm_sm90_wgmma.h. Bound: bytes from L2 at 64 rows, tensor cores at 128. */
#include "backend/cuda/device/epilogue/cluster.cuh"
#include "backend/cuda/device/epilogue/finish_staged.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma.cuh"
#include "backend/cuda/device/schedule/pingpong.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/schedule/scheduler.cuh"
#include "backend/cuda/kernels/spmm_sm90_wgmma.h"

using namespace sm90;

constexpr wgmma_shape SHAPE = wgmma_shape_of({WGMMA_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int TILE_M = SHAPE.tile_m, PARTS = SHAPE.parts, CHUNK = SHAPE.chunk, CHUNKS = SHAPE.chunks, STAGES = SHAPE.stages;
constexpr int DOWN = SHAPE.down, WG_M = SHAPE.wg_m, WG_N = SHAPE.wg_n, BUFFERS = SHAPE.buffers;
constexpr int A_BYTES = SHAPE.a_bytes, B_BYTES = SHAPE.b_bytes, STAGE_BYTES = SHAPE.stage_bytes;
constexpr int B_ROW_BYTES = LAYOUT_B == COL_MAJOR ? CHUNK * 2
                            : BN < 64             ? BN * 2
                                                  : 128; /* of a tile of B in shared memory, and its swizzle */
constexpr int EDGE_CHUNKS = (EDGE_K + CHUNK - 1) / CHUNK,
              EDGE_LEFT = EDGE_K % CHUNK;            /* of the edge block; columns of its last chunk, 0: all */
constexpr bool MAY_TURN = EDGE_K == 0 && SPLIT == 1; /* a row may begin with another block than its first (row_period.h) */
/* Tiles of 128 x 256, which the tensor cores bound: a stage goes back before the next one is waited for, and a tile's first products
 * overwrite its sums. Of smaller tiles ptxas serialises the products then (C7520), or registers run out. */
constexpr bool WIDE = SPLIT == 1 && DOWN == 2 && WG_N == 256;
/* A warpgroup's own half of A in a tile's last stage is a staging tile more, and the stage goes back once its store has read it. */
constexpr bool SPARE = WIDE && CHUNK == 64 && BUFFERS == 2 && DTYPE_D != F32;
constexpr bool OVERWRITES = WIDE || PINGPONG; /* a tile's first products overwrite its sums */
static_assert(!PINGPONG || (CONSUMERS == 2 && CTAS == 1 && SPLIT == 1), "two warpgroups take turns");
static_assert(WG_M * WG_N <= 256 && (WG_N % 64 == 0 || (WG_N == BN && (BN == 16 || BN == 32))), "accumulators of a warpgroup");

/* The stages of a block row: its blocks' chunks, less those of the edge block that lie beyond K. The edge block is the row's last. */
struct row_stages {
    int first, last; /* blocks */
    int begin, end;  /* CUT: the first chunk of the first block, and the one after the last of the last */
    int count;
    bool edge;
};

inline row_stages stages_of(const spk_cuda_arguments &arg, int block_row)
{
    row_stages row;
    row.first = __ldg(arg.offsets + block_row);
    row.last = __ldg(arg.offsets + block_row + 1);
    row.count = (row.last - row.first) * CHUNKS;
    row.edge = EDGE_K != 0 && row.last > row.first && __ldg(arg.columns + row.last - 1) == arg.grid_cols - 1;
    if (row.edge)
        row.count -= CHUNKS - EDGE_CHUNKS;
    return row;
}

/* A tile, or the cluster's share of one, and the stages that a block works through for it. */
struct tile_work {
    int row, col, item; /* col: of the item of the batch */
    bool split;         /* the cluster adds its sums */
    row_stages stages;
};

/* The item that a column tile is of, and its place there. */
inline void find_item(const spk_tile_order &order, tile_work &work)
{
    work.item = BATCHED ? work.col / order.item_columns : 0;
    work.col = BATCHED ? work.col % order.item_columns : work.col;
}

#if SPLIT > 1
/* The block's tile number `turn`; false: there are no more. */
inline bool find_tile(const spk_cuda_arguments &arg, const spk_tile_order &order, int turn, tile_work &work)
{
    const int4 *pieces = (const int4 *)(order.order + pieces_begin(gridDim.x));
    int at = blockIdx.x;
    if (!CUT || turn > 0) {
        at = __ldg(order.order + blockIdx.x) + turn - (CUT ? 1 : 0);
        if (at >= __ldg(order.order + blockIdx.x + 1))
            return false;
        at += CUT ? gridDim.x : 0;
    }
    const int4 piece = __ldg(pieces + at);
    if (CUT && piece.x < 0)
        return false;
    work.row = piece.x;
    work.split = piece.y < 0;
    work.col = work.split ? ~piece.y : piece.y;
    find_item(order, work);
    row_stages &stages = work.stages;
    stages.first = CUT ? piece.z / CHUNKS : piece.z;
    stages.last = CUT ? (piece.w + CHUNKS - 1) / CHUNKS : piece.w;
    stages.begin = piece.z % CHUNKS;
    stages.end = piece.w - (stages.last - 1) * CHUNKS;
    stages.count = CUT ? piece.w - piece.z : (stages.last - stages.first) * CHUNKS;
    stages.edge = EDGE_K != 0 && stages.last > stages.first && __ldg(arg.columns + stages.last - 1) == arg.grid_cols - 1;
    if (stages.edge) {
        stages.end -= CHUNKS - EDGE_CHUNKS;
        stages.count -= CHUNKS - EDGE_CHUNKS;
    }
    return true;
}
#else
inline bool find_tile(const spk_cuda_arguments &arg, const spk_tile_order &order, int turn, tile_work &work)
{
    const int tile = tile_of_turn(order, turn);
    if (tile < 0)
        return false;
    tile_place(order, tile, work.row, work.col);
    find_item(order, work);
    work.split = false;
    work.stages = stages_of(arg, work.row / PARTS);
    return true;
}
#endif

/* Stages of the block's tile number `turn`, 0: there is none. */
inline int stages_of_turn(const spk_cuda_arguments &arg, const spk_tile_order &order, int turn)
{
    tile_work work;
    return find_tile(arg, order, turn, work) ? work.stages.count : 0;
}

/* What the first tile needs of the plan's indices is fetched while the launch before this one still runs. By a whole warp. */
inline void fetch_ahead(const spk_cuda_arguments &arg, const spk_tile_order &order)
{
    tile_work work;
    if (!find_tile(arg, order, 0, work))
        return;
    const int at = work.stages.first + threadIdx.x % 32;
    if (at < work.stages.last) {
        prefetch_l2(arg.columns + at);
#if HAS_POSITIONS
        prefetch_l2(arg.positions + at);
#endif
    }
}

#if BATCHED /* the maps have a dimension more: the item */
inline void load_2d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int item)
{
    tma_load_3d(to, map, barrier, x, y, item);
}
inline void load_3d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int z, int item)
{
    tma_load_4d(to, map, barrier, x, y, z, item);
}
#else
inline void load_2d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int)
{
    tma_load_2d(to, map, barrier, x, y);
}
inline void load_3d(unsigned to, const spk_tensor_map *map, unsigned barrier, int x, int y, int z, int)
{
    tma_load_3d(to, map, barrier, x, y, z);
}
#endif

inline void load_b(unsigned to, const spk_tensor_map *map, unsigned barrier, int k, int j0, int boxes, int item)
{
#if LAYOUT_B == COL_MAJOR
    load_2d(to, map, barrier, k, j0, item);
#elif BN < 64
    load_2d(to, map, barrier, j0, k, item);
#elif B_WHOLE
    load_3d(to, map, barrier, 0, k, j0 / 64, item);
#else
    for (int box = 0; box < boxes; box++)
        load_2d(to + box * (CHUNK * 128), map, barrier, j0 + box * 64, k, item);
#endif
}

/* By one thread. */
inline void produce(const spk_tensor_map *map_a, const spk_tensor_map *map_b, const spk_cuda_arguments &arg, const spk_tile_order &order,
                    unsigned tiles, ring<STAGES> at)
{
    tile_work tile;
    for (int turn = 0; find_tile(arg, order, turn, tile); turn++) {
        const row_stages &work = tile.stages;
        const int part = tile.row % PARTS, j0 = tile.col * BN, item_a = arg.stride_a != 0 ? tile.item : 0,
                  item_b = arg.stride_b != 0 ? tile.item : 0;
        const int boxes = LAYOUT_B == ROW_MAJOR && !B_WHOLE && BN >= 64 ? min(BN / 64, (int)((arg.n - j0 + 63) / 64)) : BN / 64;
        const unsigned bytes = A_BYTES + (BN < 64 ? B_BYTES : boxes * (CHUNK * 128));
        int p = work.first, next = work.first < work.last ? __ldg(arg.columns + work.first) : 0;
        if (MAY_TURN && order.period > 0) {
            const int start = turn_start(next, order.period);
            if (start > 0 && start < work.last - work.first) {
                p += start;
                next = __ldg(arg.columns + p);
            }
        }
        for (int left = work.last - work.first; MAY_TURN ? left > 0 : p < work.last; left--) {
            const int column = next, after = MAY_TURN && p + 1 == work.last ? work.first : p + 1;
            next = __ldg(arg.columns + (MAY_TURN ? after : min(after, work.last - 1))); /* fetched ahead of the waits below */
#if HAS_POSITIONS
            const int block = __ldg(arg.positions + p);
#else
            const int block = p;
#endif
            const int chunks = CUT && p == work.last - 1 ? work.end : work.edge && p == work.last - 1 ? EDGE_CHUNKS : CHUNKS;
            for (int chunk = CUT && p == work.first ? work.begin : 0; chunk < chunks; chunk++) {
                const unsigned a = tiles + at.stage * STAGE_BYTES;
                at.wait_empty();
                barrier_arrive_expect(at.full_barrier(), bytes);
#if A_K_CONTIGUOUS
                load_2d(a, map_a, at.full_barrier(), chunk * CHUNK, block * BLOCK_ROWS + part * TILE_M, item_a);
#else
                load_3d(a, map_a, at.full_barrier(), 0, block * BLOCK_COLS + chunk * CHUNK, part * (TILE_M / 64), item_a);
#endif
                load_b(a + A_BYTES, map_b, at.full_barrier(), column * BLOCK_COLS + chunk * CHUNK, j0, boxes, item_b);
                at.advance();
            }
            p = after;
        }
    }
}

/* Zeroes the columns of a warpgroup's rows of A from EDGE_LEFT on: whatever stands beyond K in the values must not meet the zeros of B. */
inline void clear_overhang(unsigned a, int barrier)
{
#if EDGE_K
    constexpr int beyond = CHUNK - EDGE_LEFT;
    for (int i = threadIdx.x % 128; i < WG_M * 64 * beyond; i += 128) {
#if A_K_CONTIGUOUS
        const unsigned at = i / beyond * (CHUNK * 2) + (EDGE_LEFT + i % beyond) * 2;
        shared_store_16(a + (at ^ (at >> 7 & (CHUNK / 8 - 1)) << 4), 0);
#else
        const unsigned tile = i / (64 * beyond), k = EDGE_LEFT + i / 64 % beyond; /* whole rows of 64: the swizzle does not matter */
        shared_store_16(a + tile * (CHUNK * 128) + k * 128 + i % 64 * 2, 0);
#endif
    }
    fence_async_shared();
    named_barrier(barrier, 128);
#endif
}

/* a, b: the warpgroup's part of a stage; more: 0 where the sums begin here. */
inline void multiply(float (&sum)[WG_M][WG_N / 2], unsigned a, unsigned b, int more)
{
    mma_fence();
#pragma unroll
    for (int k = 0; k < CHUNK / 16; k++) {
#if LAYOUT_B == COL_MAJOR
        const unsigned long long db = k_major<B_ROW_BYTES>(b + k * 32);
#else
        const unsigned long long db = mn_major<CHUNK, B_ROW_BYTES>(b + k * (16 * B_ROW_BYTES));
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

inline void clear(float (&sum)[WG_M][WG_N / 2])
{
#pragma unroll
    for (int m = 0; m < WG_M; m++)
#pragma unroll
        for (int i = 0; i < WG_N / 2; i++)
            sum[m][i] = 0;
}

#if CUT
typedef handover<CONSUMERS, WG_M, WG_N> cluster_sums;
#elif SPLIT > 1
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

/* ---- the multiplying warpgroups. Warpgroup `group` has the part of a tile that is `down` parts below the first and `across` beside it;
 * its `leader` waits for stores and gives stages back. Steps take what they need one by one: gathered in a struct, the same statements
 * become other machine code. */

/* SPARE: the stage that D of the tile before was staged in goes back, behind this tile's first products. */
SPK_INLINE void release_held(const ring<STAGES> &at, bool leader, int &held)
{
    if (SPARE && held >= 0) {
        if (leader) {
            tma_store_wait_read<1>();
            at.release(held);
        }
        held = -1;
    }
}

/* Adds the products of a tile's stages to its sums. A stage goes back when the products of the next one are under way. Returned is the
 * last stage, which has not gone back; -1: there is none. */
SPK_INLINE int multiply_stages(float (&sum)[WG_M][WG_N / 2], const row_stages &work, ring<STAGES> &at, unsigned tiles, int group, int down,
                               int across, bool leader, int &held)
{
    int before = -1;
    for (int step = 0; step < work.count; step++) {
        const unsigned stage = tiles + at.stage * STAGE_BYTES;
        const unsigned a = stage + down * (WG_M * 64 * CHUNK * 2), b = stage + A_BYTES + across * (WG_N * CHUNK * 2);
        at.wait_full();
        if (EDGE_LEFT != 0 && work.edge && step == work.count - 1)
            clear_overhang(a, 1 + group);
        multiply(sum, a, b, !OVERWRITES || step > 0);
        release_held(at, leader, held);
        mma_wait<1>();
        if (before >= 0 && leader)
            at.release(before);
        before = at.stage;
        at.advance();
    }
    turn_pass<PINGPONG>(group ^ 1);
    mma_wait<0>();
#pragma unroll
    for (int m = 0; m < WG_M; m++)
        mma_settle(sum[m]);
    return before;
}

/* SPARE: of a tile's last stage A is held while D is staged there. */
SPK_INLINE void leave_last_stage(const ring<STAGES> &at, const spk_tile_order &order, int last, bool leader, int &held)
{
    if (SPARE && !order.direct && last >= 0)
        held = last;
    else if (last >= 0 && leader)
        at.release(last);
}

/* Adds the sums of the cluster's blocks, where they share the tile. false: nothing is left for this block to store. i0, j0: of the
 * warpgroup's first sum in D; first: CUT: whether the block is the cluster's first, which stores. */
SPK_INLINE bool add_cluster([[maybe_unused]] const spk_cuda_arguments &item, [[maybe_unused]] cluster_sums &all,
                            [[maybe_unused]] float (&sum)[WG_M][WG_N / 2], [[maybe_unused]] bool split, [[maybe_unused]] bool first,
                            [[maybe_unused]] int i0, [[maybe_unused]] int j0)
{
#if CUT
    if (split && !first) {
        all.send(sum);
        return false;
    }
    if (split)
        all.add(sum, 1 + CONSUMERS);
#elif SPLIT > 1
    if (split) {
        finish_cluster(item, all, sum, i0, j0);
        return false;
    }
#endif
    return true;
}

/* The epilogue of a warpgroup's sums of a tile, and their way to D. */
SPK_INLINE void store_sums(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const spk_tile_order &order,
                           const spk_cuda_arguments &item, const tile_work &tile, float (&sum)[WG_M][WG_N / 2], int i0, int j0,
                           [[maybe_unused]] unsigned tiles, unsigned staging, int group, [[maybe_unused]] int down,
                           [[maybe_unused]] int held, [[maybe_unused]] int &buffer)
{
#pragma unroll
    for (int m = 0; m < WG_M; m++) {
        const int i = i0 + m * 64, warp_i = i + threadIdx.x / 32 % 4 * 16;
        [[maybe_unused]] const auto piece_row = [i](int) { return i; };
        [[maybe_unused]] const unsigned staged = staging + group * (BUFFERS * SHAPE.staging_columns * 128);
        /* With two blocks on a multiprocessor registers would run out. */
        if (CTAS > 1 || order.direct || !finish_staged<WG_N, 64, BUFFERS, true>(item, sum[m], staged, 1 + group, warp_i, j0, piece_row))
            finish_tile<WG_N, CTAS != 1 || !STAGED_EPILOGUE>(item, sum[m], warp_i, j0);
#if DTYPE_D != F32
        if (!order.direct)
            store_tma<WG_N, 64, BUFFERS>(map_d, sum[m], staged, buffer, 1 + group, j0, (int)arg.n, piece_row, tile.item,
                                         SPARE && tile.stages.count > 0 ? tiles + held * STAGE_BYTES + down * (WG_M * 64 * CHUNK * 2) : 0);
        else
#endif
            store_direct<WG_N>(item, sum[m], warp_i, j0);
    }
}

inline void consume(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const spk_tile_order &order, unsigned tiles,
                    unsigned staging, ring<STAGES> at, [[maybe_unused]] cluster_sums all)
{
    const int group = threadIdx.x / 128, down = PINGPONG ? 0 : group % DOWN, across = PINGPONG ? 0 : group / DOWN;
    const bool leader = threadIdx.x % 128 == 0;
    [[maybe_unused]] int buffer = 0;
    float sum[WG_M][WG_N / 2];
    tile_work tile;
    [[maybe_unused]] int held = -1; /* the stage whose A is still staged for D */
#if CUT
    tile_work ahead; /* the next one is looked up while this one's stages come */
    bool more = find_tile(arg, order, 0, tile);
    for (int turn = 1; more; tile = ahead, turn++) {
        more = find_tile(arg, order, turn, ahead);
#else
    if (PINGPONG && group == 1) {
        at.skip(stages_of_turn(arg, order, 0));
        turn_pass<PINGPONG>(0);
    }
    for (int turn = PINGPONG ? group : 0; find_tile(arg, order, turn, tile); turn += PINGPONG ? 2 : 1) {
        const int others = PINGPONG ? stages_of_turn(arg, order, turn + 1) : 0; /* looked up while this one's stages come */
#endif
        if (!OVERWRITES)
            clear(sum);
        turn_wait<PINGPONG>(group);
#if CUT
        const bool first = cluster_rank() == 0;
        if (tile.split && first && leader) {
            tma_store_wait_read<0>();
            all.open();
        }
#else
        const bool first = true;
#endif
        const int last = multiply_stages(sum, tile.stages, at, tiles, group, down, across, leader, held);
        leave_last_stage(at, order, last, leader, held);
        if (OVERWRITES && tile.stages.count == 0)
            clear(sum);
#if !CUT
        if (PINGPONG)
            at.skip(others);
#endif
        item_view item = item_arguments(arg, tile.item);
        const int i0 = tile.row / PARTS * BLOCK_ROWS + tile.row % PARTS * TILE_M + down * (WG_M * 64), j0 = tile.col * BN + across * WG_N;
        if (!add_cluster(item, all, sum, tile.split, first, i0, j0))
            continue;
        store_sums(map_d, arg, order, item, tile, sum, i0, j0, tiles, staging, group, down, held, buffer);
    }
    if (leader)
        tma_store_wait_read<0>();
#if SPLIT > 1 && !CUT
    all.leave();
#endif
}

#if SPLIT > 1
extern "C" __global__ void __cluster_dims__(SPLIT, 1, 1) __launch_bounds__(SHAPE.threads, CTAS)
#else
extern "C" __global__ void __launch_bounds__(SHAPE.threads, CTAS)
#endif
    spmm_sm90_wgmma(const __grid_constant__ spk_tensor_map map_a, const __grid_constant__ spk_tensor_map map_b,
                    const __grid_constant__ spk_tensor_map map_d, const __grid_constant__ spk_cuda_arguments arg,
                    const __grid_constant__ spk_tile_order order)
{
    extern __shared__ unsigned char shared[];
    __shared__ ring_storage<STAGES> storage;
    const unsigned tiles = (smem_address(shared) + 1023) & ~1023u, staging = tiles + STAGES * STAGE_BYTES;
#if CUT
    __shared__ handover_storage handed;
    cluster_sums all(staging, handed);
    if (threadIdx.x == 0)
        all.init();
#elif SPLIT > 1
    __shared__ exchange_storage exchanged;
    cluster_sums all(staging + CONSUMERS * BUFFERS * SHAPE.staging_columns * 128, exchanged);
    if (threadIdx.x == 0)
        exchange_init<SPLIT>(exchanged);
#else
    cluster_sums all;
#endif
    if (threadIdx.x == 0)
        ring_init(storage, 1, PINGPONG ? 1 : CONSUMERS);
    if (threadIdx.x == CONSUMERS * 128 && arg.nnzb > 0) { /* no blocks: the maps are not filled */
        tma_prefetch_map(&map_a);
        tma_prefetch_map(&map_b);
    }
    if (threadIdx.x == CONSUMERS * 128 + 1 && !order.direct)
        tma_prefetch_map(&map_d);
#if SPLIT > 1
    __syncwarp();
    cluster_barrier_started(); /* the other blocks' barriers are there */
#else
    __syncthreads();
#endif
    next_launch_may_start();
    if (threadIdx.x / 32 == CONSUMERS * 4)
        fetch_ahead(arg, order);
    previous_launch_done();
    if (threadIdx.x < CONSUMERS * 128) {
        if (SHAPE.producer_threads == 128)
            registers_more<232>();
        consume(&map_d, arg, order, tiles, staging, ring<STAGES>(storage), all);
    } else {
        if (SHAPE.producer_threads == 128)
            registers_fewer<40>();
        if (threadIdx.x == CONSUMERS * 128)
            produce(&map_a, &map_b, arg, order, tiles, ring<STAGES>(storage));
    }
}

/* spmm_sm90_groups: D = epilogue(op(A) B), f16 or bf16 in, f32 sums; blocks of 16, 32 or 64 rows. Block rows with similar columns form
 * groups (the host orders them once a plan); a block of threads owns a group and walks the union of its columns, so that each tile of B is
 * loaded once for all. The constants: spmm_sm90_groups.h.
 * A warpgroup has HEIGHT / 128 tiles of 64 rows. Where a tile has no block in any slot of a stage it is left out; where some rows of it
 * have none, zeros stand in their place, which needs a finite B. At 64 rows with one slot that does not happen.
 * Bound: bytes from L2, and issuing them. */
#include "backend/cuda/device/epilogue/finish_staged.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/schedule/scheduler.cuh"
#include "backend/cuda/kernels/spmm_sm90_groups.h"

using namespace sm90;

/* To a schedule, a cluster is one block and its tiles, neighbouring column tiles of one group, are one tile. */
inline int group_tile(const spk_tile_order &order, int turn)
{
    return tile_of_turn(order, turn, blockIdx.x / CLUSTER, gridDim.x / CLUSTER);
}

inline void group_place(const spk_tile_order &order, int tile, int &group, int &col)
{
    tile_place(order, tile, group, col);
    col = col * CLUSTER + blockIdx.x % CLUSTER;
}

constexpr groups_shape SHAPE = groups_shape_of({GROUPS_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int CHUNK = SHAPE.chunk, CHUNKS = SHAPE.chunks, STAGES = SHAPE.stages, BUFFERS = SHAPE.buffers;
constexpr int WG_M = SHAPE.wg_m, TILE_ROWS = SHAPE.tile_rows, ROWS = SHAPE.rows;
constexpr int WORDS = group_words(SLOTS, ROWS), LANE_WORDS = (WORDS + 31) / 32;
constexpr int PIECE_BYTES = SHAPE.piece_bytes, A_TILE = SHAPE.a_tile, B_TILE = SHAPE.b_tile, A_BYTES = SHAPE.a_bytes,
              STAGE_BYTES = SHAPE.stage_bytes;
constexpr int EDGE_CHUNKS = (EDGE_K + CHUNK - 1) / CHUNK, EDGE_LEFT = EDGE_K % CHUNK;
static_assert(WG_M * BN <= 256 && (CHUNKS == 1 || SLOTS == 1) && (BLOCK_ROWS < 64 || SLOTS == 1), "");

/* The tiles that take part in a stage's chunk. */
inline int tiles_of(int present, int chunk)
{
    return EDGE_K != 0 && present >> GROUP_EDGE != 0 && chunk >= EDGE_CHUNKS ? 0 : present & 0xff; /* beyond K */
}

inline void load_a(unsigned to, const spk_tensor_map *map, unsigned barrier, int block, int chunk)
{
    const int x = A_K_CONTIGUOUS ? chunk * CHUNK : 0, y = A_K_CONTIGUOUS ? block * BLOCK_ROWS : block * BLOCK_COLS + chunk * CHUNK;
#if CLUSTER > 1
    tma_load_2d_multicast(to, map, barrier, x, y, (1 << CLUSTER) - 1);
#else
    tma_load_2d(to, map, barrier, x, y);
#endif
}

inline void load_b(unsigned to, const spk_tensor_map *map, unsigned barrier, int k, int j0, int boxes)
{
#if LAYOUT_B == COL_MAJOR
    tma_load_2d(to, map, barrier, k, j0);
#elif B_WHOLE
    tma_load_3d(to, map, barrier, 0, k, j0 / 64);
#else
    for (int box = 0; box < boxes; box++)
        tma_load_2d(to + box * (CHUNK * 128), map, barrier, j0 + box * 64, k);
#endif
}

/* A lane's words of a stage, and its mask. */
struct stage_words {
    int word[LANE_WORDS], present;
};

inline void read_words(stage_words &to, const group_lists &lists, int stage)
{
    const int lane = threadIdx.x % 32;
    to.present = __ldg(lists.present + stage);
#pragma unroll
    for (int i = 0; i < LANE_WORDS; i++)
        if (lane + i * 32 < WORDS)
            to.word[i] = __ldg(lists.words + (long long)stage * WORDS + lane + i * 32);
}

/* By a whole warp: each lane issues the boxes of its words, all write the zeros of blocks that a tile lacks (sooner than TMA would:
 * docs/log/hopper-spmm.md), and lane 0 announces the bytes, of which some may be in already. */
inline void fill_stage(const stage_words &words, const spk_tensor_map *map_a, const spk_tensor_map *map_b, const spk_cuda_arguments &arg,
                       unsigned stage, const ring<STAGES> &at, int chunk, int j0, int boxes)
{
    const int lane = threadIdx.x % 32, tiles = tiles_of(words.present, chunk);
    int bytes = SLOTS * boxes * (CHUNK * 128);
    at.wait_empty();
#pragma unroll
    for (int i = 0; i < LANE_WORDS; i++) {
        const int at_word = lane + i * 32, slot = at_word / (1 + ROWS), row = at_word % (1 + ROWS) - 1, tile = row / TILE_ROWS,
                  word = words.word[i];
        const unsigned to = stage + (tile * SLOTS + slot) * A_TILE + row % TILE_ROWS * PIECE_BYTES;
        const bool wanted = at_word < WORDS && row >= 0 && (tiles >> tile & 1);
        if (at_word < WORDS && row < 0)
            load_b(stage + A_BYTES + slot * B_TILE, map_b, at.full_barrier(),
                   (word < 0 ? arg.grid_cols : word) * BLOCK_COLS + chunk * CHUNK, j0, boxes);
        if (wanted && word >= 0 && (CLUSTER == 1 || row % CLUSTER == blockIdx.x % CLUSTER))
            load_a(to, map_a, at.full_barrier(), word, chunk);
        bytes += __popc(__ballot_sync(~0u, wanted && word >= 0)) * PIECE_BYTES;
#if BLOCK_ROWS < 64
        for (unsigned absent = __ballot_sync(~0u, wanted && word < 0); absent != 0; absent &= absent - 1) {
            const unsigned piece = __shfl_sync(~0u, to, __ffs(absent) - 1);
            for (int part = lane * 16; part < PIECE_BYTES; part += 512)
                shared_clear_16_bytes(piece + part);
        }
#endif
    }
#if BLOCK_ROWS < 64
    fence_async_shared();
#endif
    __syncwarp();
    if (lane == 0)
        barrier_arrive_expect(at.full_barrier(), bytes);
}

/* What the first tile needs of the lists is fetched while the launch before this one still runs. By a whole warp. */
inline void fetch_ahead(const spk_tile_order &order, const group_lists &lists)
{
    const int tile = group_tile(order, 0), line = threadIdx.x % 32 * 32;
    if (tile < 0)
        return;
    int group, col;
    group_place(order, tile, group, col);
    const int first = __ldg(lists.offsets + group), stages = __ldg(lists.offsets + group + 1) - first;
    if (line < stages)
        prefetch_l2(lists.present + first + line);
    if (line < stages * WORDS)
        prefetch_l2(lists.words + (long long)first * WORDS + line);
}

/* Each producer warp takes every PRODUCERS-th stage. */
inline void produce(const spk_tensor_map *map_a, const spk_tensor_map *map_b, const spk_cuda_arguments &arg, const spk_tile_order &order,
                    const group_lists &lists, unsigned ring_memory, ring<STAGES> at)
{
    const int warp = threadIdx.x / 32 - 8;
    int turn = 0; /* whose the next stage is */
    for (int i = 0, tile; (tile = group_tile(order, i)) >= 0; i++) {
        int group, col;
        group_place(order, tile, group, col);
        const int first = __ldg(lists.offsets + group) * CHUNKS, last = __ldg(lists.offsets + group + 1) * CHUNKS, j0 = col * BN;
        const int boxes = LAYOUT_B == ROW_MAJOR && !B_WHOLE ? max(0, min(BN / 64, (int)((arg.n - j0 + 63) / 64))) : BN / 64;
        stage_words next = {};
        const int mine = first + (warp + PRODUCERS - turn) % PRODUCERS;
        if (mine < last)
            read_words(next, lists, mine / CHUNKS);
        for (int q = first; q < last; q++) {
            if (turn == warp) {
                const stage_words now = next;
                if (q + PRODUCERS < last)
                    read_words(next, lists, (q + PRODUCERS) / CHUNKS); /* fetched ahead of the wait */
                fill_stage(now, map_a, map_b, arg, ring_memory + at.stage * STAGE_BYTES, at, q % CHUNKS, j0, boxes);
            }
            turn = turn + 1 == PRODUCERS ? 0 : turn + 1;
            at.advance();
        }
    }
    /* Who has filled the last stage stays until every block of the cluster has given all stages back: they arrive at this one's
     * barriers. */
    if (CLUSTER > 1 && (turn + PRODUCERS - 1) % PRODUCERS == warp)
        for (int stage = 0; stage < STAGES; stage++) {
            at.wait_empty();
            at.advance();
        }
}

/* Zeroes what of a tile of A lies beyond K. */
inline void clear_overhang(unsigned a)
{
#if EDGE_K
    constexpr int beyond = CHUNK - EDGE_LEFT;
    for (int i = threadIdx.x % 128; i < 64 * beyond; i += 128) {
#if A_K_CONTIGUOUS
        const unsigned at = i / beyond * (CHUNK * 2) + (EDGE_LEFT + i % beyond) * 2;
        shared_store_16(a + (at ^ (at >> 7 & (CHUNK / 8 - 1)) << 4), 0);
#else
        const unsigned piece = i / (BLOCK_ROWS * beyond),
                       k = EDGE_LEFT + i / BLOCK_ROWS % beyond; /* whole lines: the swizzle does not matter */
        shared_store_16(a + piece * PIECE_BYTES + k * (BLOCK_ROWS * 2) + i % BLOCK_ROWS * 2, 0);
#endif
    }
#endif
}

/* A tile of 64 rows: sum += A B over a stage's slots; more: 0 where the sum begins here. */
inline void multiply_tile(float (&sum)[BN / 2], unsigned a, unsigned b, int more)
{
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++)
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++) {
#if A_K_CONTIGUOUS
            const unsigned long long da = k_major<CHUNK * 2>(a + slot * A_TILE + k * 32);
#else
            const unsigned long long da =
                tile_descriptor<BLOCK_ROWS * 2>(a + slot * A_TILE + k * (BLOCK_ROWS * 32), PIECE_BYTES, BLOCK_ROWS * 16);
#endif
#if LAYOUT_B == COL_MAJOR
            const unsigned long long db = k_major<CHUNK * 2>(b + slot * B_TILE + k * 32);
#else
            const unsigned long long db = mn_major<CHUNK>(b + slot * B_TILE + k * 2048);
#endif
            mma<BN>::run<!A_K_CONTIGUOUS, LAYOUT_B == ROW_MAJOR>(sum, da, db, slot + k == 0 ? more : 1);
        }
}

inline void multiply(float (&sum)[BN / 2], unsigned a, unsigned b, int more)
{
    mma_fence();
    multiply_tile(sum, a, b, more);
    mma_commit();
}

inline void multiply_both(float (&sum)[WG_M][BN / 2], unsigned a, unsigned b, int more)
{
    mma_fence();
    multiply_tile(sum[0], a, b, more & 1);
    multiply_tile(sum[WG_M - 1], a + SLOTS * A_TILE, b, more >> 1);
    mma_commit();
}

/* A stage is free where each block of the cluster knows it. By one thread, for so many warps. */
inline void release(const ring<STAGES> &at, unsigned of, unsigned warps)
{
#if CLUSTER > 1
#pragma unroll
    for (int block = 0; block < CLUSTER; block++)
        cluster_arrive_read(cluster_address(at.empty + of * 8, block), warps);
#else
    at.release(of, warps);
#endif
}

inline void store_group(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const spk_tile_order &order, const int *rows,
                        float (&sum)[WG_M][BN / 2], unsigned staging, int &buffer, int j0)
{
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int m = 0; m < WG_M; m++) {
        const int *tile_rows = rows + (group * WG_M + m) * TILE_ROWS;
        const int block_row = __ldg(tile_rows + warp * 16 / BLOCK_ROWS),
                  i = block_row < 0 ? -1 : block_row * BLOCK_ROWS + warp * 16 % BLOCK_ROWS;
        [[maybe_unused]] const auto piece_row = [tile_rows](int piece) { return __ldg(tile_rows + piece) * BLOCK_ROWS; };
        [[maybe_unused]] const unsigned tile = staging + group * (BUFFERS * 8192);
        if (order.direct || !finish_staged<BN, BLOCK_ROWS, BUFFERS, WG_M == 1>(arg, sum[m], tile, 1 + group, i, j0, piece_row))
            finish_tile<BN, !STAGED_EPILOGUE>(arg, sum[m], i, j0);
#if DTYPE_D != F32
        if (!order.direct)
            store_tma<BN, BLOCK_ROWS, BUFFERS>(map_d, sum[m], tile, buffer, 1 + group, j0, (int)arg.n, piece_row);
        else
#endif
            store_direct<BN>(arg, sum[m], i, j0);
    }
}

/* ---- the multiplying warpgroups: the first half of a group's tiles is one's, the second the other's (`half`). A warpgroup's `leader`
 * gives stages back. */

/* Of an edge block's stage: zeroes what of the tiles lies beyond K. */
SPK_INLINE void clear_edge(unsigned a, int present, int half)
{
    for (int t = 0; t < WG_M * SLOTS; t++)
        if (present >> (GROUP_EDGE + t % SLOTS) & 1)
            clear_overhang(a + t * A_TILE);
    fence_async_shared();
    named_barrier(1 + half, 128);
}

/* The products of a stage that at least one of the tiles takes part in (bits of `mine`), and the end of those of the stage before. */
SPK_INLINE void multiply_present(float (&sum)[WG_M][BN / 2], unsigned a, unsigned b, [[maybe_unused]] int mine, int begun)
{
#if HEIGHT == 128
    multiply(sum[0], a, b, begun);
    mma_wait<1>();
#else /* each way with all that belongs to it: else ptxas serialises them (C7520) */
    if (mine == 1) {
        multiply(sum[0], a, b, begun & 1);
        mma_wait<1>();
    } else if (mine == 2) {
        multiply(sum[1], a + SLOTS * A_TILE, b, begun >> 1);
        mma_wait<1>();
    } else {
        multiply_both(sum, a, b, begun);
        mma_wait<1>();
    }
#endif
}

/* Of a stage that no tile takes part in. What is under way ends first: the producers may need its stage before the next one of ours
 * comes. */
SPK_INLINE void leave_out(const ring<STAGES> &at, int before, bool leader, bool warp_leader)
{
    mma_wait<0>();
    if (leader && before >= 0)
        release(at, before, 4);
    at.wait_full(); /* by each warp for itself: nothing brings them together here, and none may miss a phase, as the next but one has its
                       parity */
    __syncwarp();
    if (warp_leader)
        release(at, at.stage, 1);
}

/* The products of a group's stages [first, last). Returns which tiles' sums hold products: the others hold nothing. */
SPK_INLINE int multiply_stages(float (&sum)[WG_M][BN / 2], const group_lists &lists, int first, int last, unsigned ring_memory,
                               ring<STAGES> &at, int half, bool leader, bool warp_leader)
{
    int begun = 0 /* bit m: tile m's sum holds products */, before = -1, next = first < last ? __ldg(lists.present + first / CHUNKS) : 0;
    for (int q = first; q < last; q++) {
        const int present = next, mine = tiles_of(present, q % CHUNKS) >> (half * WG_M) & ((1 << WG_M) - 1);
        next = __ldg(lists.present + (q + 1 < last ? q + 1 : q) / CHUNKS); /* fetched ahead of the wait */
        if (mine) {
            const unsigned stage = ring_memory + at.stage * STAGE_BYTES, a = stage + half * (WG_M * SLOTS * A_TILE), b = stage + A_BYTES;
            at.wait_full();
            if (EDGE_LEFT != 0 && present >> GROUP_EDGE != 0 && q % CHUNKS == EDGE_CHUNKS - 1)
                clear_edge(a, present, half);
            multiply_present(sum, a, b, mine, begun);
            begun |= mine;
            if (before >= 0 && leader)
                release(at, before, 4); /* the multiplication has brought the four warps together */
            before = at.stage;
        } else {
            leave_out(at, before, leader, warp_leader);
            before = -1;
        }
        at.advance();
    }
    mma_wait<0>();
#pragma unroll
    for (int m = 0; m < WG_M; m++)
        mma_settle(sum[m]);
    if (before >= 0 && leader)
        release(at, before, 4);
    return begun;
}

inline void consume(const spk_tensor_map *map_d, const spk_cuda_arguments &arg, const spk_tile_order &order, const group_lists &lists,
                    unsigned ring_memory, unsigned staging, ring<STAGES> at)
{
    const int half = threadIdx.x / 128; /* which multiplying warpgroup */
    const bool leader = threadIdx.x % 128 == 0, warp_leader = threadIdx.x % 32 == 0;
    [[maybe_unused]] int buffer = 0;
    float sum[WG_M][BN / 2];
    for (int i = 0, tile; (tile = group_tile(order, i)) >= 0; i++) {
        int group, col;
        group_place(order, tile, group, col);
        const int first = __ldg(lists.offsets + group) * CHUNKS, last = __ldg(lists.offsets + group + 1) * CHUNKS;
        const int begun = multiply_stages(sum, lists, first, last, ring_memory, at, half, leader, warp_leader);
        for (int m = 0; m < WG_M; m++)
            if (!(begun >> m & 1))
#pragma unroll
                for (int i = 0; i < BN / 2; i++)
                    sum[m][i] = 0;
        store_group(map_d, arg, order, lists.rows + group * ROWS, sum, staging, buffer, col * BN);
    }
    if (leader)
        tma_store_wait_read<0>();
}

extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
    __launch_bounds__(GROUPS_THREADS, 1)
        spmm_sm90_groups(const __grid_constant__ spk_tensor_map map_a, const __grid_constant__ spk_tensor_map map_b,
                         const __grid_constant__ spk_tensor_map map_d, const __grid_constant__ spk_cuda_arguments arg,
                         const __grid_constant__ spk_tile_order order, const __grid_constant__ group_lists lists)
{
    extern __shared__ unsigned char shared[];
    __shared__ ring_storage<STAGES> storage;
    const unsigned ring_memory = (smem_address(shared) + 1023) & ~1023u, staging = ring_memory + STAGES * STAGE_BYTES;
    if (threadIdx.x == 0)
        ring_init(storage, 1, 8 * CLUSTER);   /* warps that multiply */
    if (threadIdx.x == 256 && arg.nnzb > 0) { /* no blocks: the maps are not filled */
        tma_prefetch_map(&map_a);
        tma_prefetch_map(&map_b);
    }
    if (threadIdx.x == 257 && !order.direct)
        tma_prefetch_map(&map_d);
#if CLUSTER > 1
    __syncwarp();
    cluster_barrier_started(); /* the other blocks' barriers are there */
#else
    __syncthreads();
#endif
    next_launch_may_start();
    if (threadIdx.x / 32 == 8)
        fetch_ahead(order, lists);
    previous_launch_done();
    if (threadIdx.x < 256) {
        registers_more<224>();
        consume(&map_d, arg, order, lists, ring_memory, staging, ring<STAGES>(storage));
    } else {
        registers_fewer<56>();
        if (threadIdx.x < 256 + PRODUCERS * 32)
            produce(&map_a, &map_b, arg, order, lists, ring_memory, ring<STAGES>(storage));
    }
}

/* sddmm_sm90_wgmma: D = alpha (X Y) at the stored blocks + beta C; f16 or bf16 in, f32 sums; blocks whose sides are multiples of 16. The
 * host lays the stored blocks out as cells of up to 64 x 64 and gathers them into tiles: HEIGHT rows of X and up to SLOTS cells' columns of
 * Y, neither of which need be neighbours. Producer warps bring CHUNK of K of both through TMA into a ring of stages; two warpgroups
 * multiply 64 rows by WIDTH columns each and keep what of it is stored. Both may want the same columns: they see windows of the tile's
 * columns that overlap. The grid is persistent. The constants: sddmm_sm90_wgmma.h.
 * Bound: tensor cores at dense tiles, bytes from L2 where a tile has few common columns. */
#include "backend/cuda/device/epilogue/block_store.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma.cuh"
#include "backend/cuda/device/copy/pipeline.cuh"
#include "backend/cuda/device/epilogue/sddmm_reduce.cuh"
#include "backend/cuda/device/epilogue/sddmm_store.cuh"
#include "backend/cuda/device/ptx/tma.cuh"
#include "backend/cuda/kernels/sddmm_sm90_wgmma.h"

using namespace sm90;

constexpr sddmm_shape SHAPE = sddmm_shape_of({SDDMM_CONSTANTS(SPK_CONSTANT_VALUE)}, LAYOUT_D == ROW_MAJOR);
constexpr int CHUNK = SDDMM_CHUNK, STAGES = SHAPE.stages, PRODUCERS = SHAPE.producers;
constexpr int ROWS = SHAPE.rows, TILE_ROWS = SHAPE.tile_rows, TILE_COLS = SHAPE.tile_cols;
constexpr int X_CELL = SHAPE.x_cell, Y_CELL = SHAPE.y_cell, X_BYTES = SHAPE.x_bytes, STAGE_BYTES = SHAPE.stage_bytes;
constexpr int BOXES = ROWS + SLOTS, LANE_BOXES = (BOXES + 31) / 32;
constexpr sddmm_words WORDS = sddmm_words_of(ROWS, SLOTS, TILE_ROWS, TILE_COLS);
constexpr int AT_ROWS = WORDS.at_rows, AT_COLS = WORDS.at_cols, AT_BLOCKS = WORDS.at_blocks, TILE_WORDS = WORDS.count;
constexpr int PASSES = WIDTH / PASS, SUMS = WIDTH / 2, OWN = SHAPE.own; /* of a window; of a thread; that it adds up for the cluster */
static_assert(CLUSTER == 1 || SHARE == 1, "a cluster has one purpose");
static_assert(SHARE == 1 || ROWS % SHARE == 0, "the rows of X do not fall into halves");
static_assert(PRODUCERS <= STAGES, "a producer that waits must not be a whole round of the ring behind");
static_assert(CLUSTER == 1 || (PASSES % CLUSTER == 0 && SHAPE.exchanged_bytes <= STAGES * STAGE_BYTES),
              "the cluster's sums do not fit into the ring");

/* Unit u of the persistent grid: tiles fastest, so that neighbours read the same rows of X at the same time; then parts of K, then items of
 * the batch. A cluster takes a unit together, or SHARE of them. */
struct unit_place {
    const int *words;
    int part, item, first, last; /* steps */
};

inline int first_unit()
{
    return blockIdx.x / CLUSTER;
}
inline int unit_stride()
{
    return gridDim.x / CLUSTER;
}
inline int units_of(const spk_cuda_arguments &arg, const sddmm_work &work)
{
    return work.tiles * work.parts * arg.items; /* a multiple of SHARE, as the tiles are */
}

/* A word of a tile. It stays in L2 while the operands pass: a launch begins with waiting for it. */
inline int plan_word(const int *at)
{
    int word;
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.nc.L2::cache_hint.s32 %0, [%1], %2;" : "=r"(word) : "l"(at), "l"(policy));
    return word;
}

/* The first load waits for this: the tiles of the first part and item, and K in one piece, take no division. */
inline unit_place place_of(const sddmm_work &work, int unit)
{
    unit_place at = {work.words, 0, 0, 0, work.steps};
    int tile = unit;
    if (unit >= work.tiles) {
        const int rest = unit / work.tiles;
        tile = unit % work.tiles;
        at.part = rest % work.parts;
        at.item = rest / work.parts;
    }
    at.words += (long long)tile * TILE_WORDS;
    if (CLUSTER > 1 || work.parts > 1) {
        const int pieces = work.parts * CLUSTER, piece = at.part * CLUSTER + (CLUSTER > 1 ? cluster_rank() : 0);
        at.first = work.steps * piece / pieces; /* fewer than 2^25 steps, at most 16 pieces */
        at.last = work.steps * (piece + 1) / pieces;
    }
    return at;
}

/* A cell of X. */
inline void load_x(unsigned to, const spk_tensor_map *map, unsigned barrier, int cell, int k, int item)
{
    const int x = A_K_CONTIGUOUS ? k : cell * CELL_ROWS, y = A_K_CONTIGUOUS ? cell * CELL_ROWS : k;
    if (SHARE == 1)
        tma_load_3d(to, map, barrier, x, y, item);
    else
        tma_load_3d_multicast(to, map, barrier, x, y, item, (1 << SHARE) - 1);
}

inline void load_y(unsigned to, const spk_tensor_map *map, unsigned barrier, int cell, int k, int item)
{
    if (LAYOUT_B == COL_MAJOR)
        tma_load_3d(to, map, barrier, k, cell * CELL_COLS, item);
    else
        tma_load_3d(to, map, barrier, cell * CELL_COLS, k, item);
}

/* By the warps that load, while the others use the ring for what they exchange: exchange_sums has its ends of these barriers. */
inline void yield_ring()
{
    __syncwarp();
    cluster_barrier();
    cluster_barrier();
    __syncthreads();
}

/* A lane's boxes of every stage of a unit: their cells, negative: none. */
struct unit_boxes {
    int cell[LANE_BOXES];
};

inline unit_boxes boxes_of(const unit_place &place)
{
    unit_boxes boxes;
#pragma unroll
    for (int i = 0; i < LANE_BOXES; i++) {
        const int box = threadIdx.x % 32 + i * 32;
        boxes.cell[i] = box < BOXES ? plan_word(place.words + AT_ROWS + box) : -1;
    }
    return boxes;
}

/* The bytes that come to this block's stage. What another block of the cluster brings is no more among the lane's boxes. */
inline unsigned own_boxes(unit_boxes &boxes)
{
    unsigned bytes = 0;
#pragma unroll
    for (int i = 0; i < LANE_BOXES; i++) {
        const int box = threadIdx.x % 32 + i * 32, cell = boxes.cell[i];
        bytes +=
            __popc(__ballot_sync(~0u, cell >= 0 && box < ROWS)) * X_CELL + __popc(__ballot_sync(~0u, cell >= 0 && box >= ROWS)) * Y_CELL;
        if (SHARE > 1 && box < ROWS && box / (ROWS / SHARE) != cluster_rank())
            boxes.cell[i] = -1;
    }
    return bytes;
}

/* Each producer warp takes every PRODUCERS-th stage. What a tile lacks is not loaded: whatever stands there then meets sums alone that
 * nobody keeps. */
inline void produce(const spk_tensor_map *map_x, const spk_tensor_map *map_y, const spk_cuda_arguments &arg, const sddmm_work &work,
                    unsigned ring_memory, ring<STAGES> at)
{
    const int warp = threadIdx.x / 32 - 8, lane = threadIdx.x % 32, units = units_of(arg, work);
    int turn = 0; /* whose the next stage is */
    unit_place place = place_of(work, first_unit());
    unit_boxes boxes = boxes_of(place);
    previous_launch_done();
    for (int unit = first_unit(); unit < units; unit += unit_stride()) {
        unit_place next_place = place;
        unit_boxes next = boxes;
        if (unit + unit_stride() < units) {
            next_place = place_of(work, unit + unit_stride());
            next = boxes_of(next_place); /* fetched ahead: nothing waits for them before the next unit */
        }
        const unsigned bytes = own_boxes(boxes);
        for (int step = place.first; step < place.last; step++) {
            if (turn == warp) {
                const unsigned stage = ring_memory + at.stage * STAGE_BYTES;
                at.wait_empty();
                if (lane == 0)
                    barrier_arrive_expect(at.full_barrier(), bytes);
                __syncwarp();
#pragma unroll
                for (int i = 0; i < LANE_BOXES; i++) {
                    const int box = lane + i * 32;
                    if (boxes.cell[i] >= 0 && box < ROWS)
                        load_x(stage + box * X_CELL, map_x, at.full_barrier(), boxes.cell[i], step * CHUNK,
                               arg.stride_a != 0 ? place.item : 0);
                    else if (boxes.cell[i] >= 0)
                        load_y(stage + X_BYTES + (box - ROWS) * Y_CELL, map_y, at.full_barrier(), boxes.cell[i], step * CHUNK,
                               arg.stride_b != 0 ? place.item : 0);
                }
            }
            turn = turn + 1 == PRODUCERS ? 0 : turn + 1;
            at.advance();
        }
        if (CLUSTER > 1)
            yield_ring();
        place = next_place;
        boxes = next;
    }
    /* Who has filled the last stage stays until the other block has arrived here for the last time: this one's barriers must be there. */
    if (SHARE > 1 && (turn + PRODUCERS - 1) % PRODUCERS == warp)
        for (int stage = 0; stage < STAGES; stage++) {
            at.wait_empty();
            at.advance();
        }
}

/* x, y: 64 rows and the window's first column of a stage. */
inline void multiply(float (&sum)[SUMS], unsigned x, unsigned y)
{
    mma_fence();
#pragma unroll
    for (int k = 0; k < CHUNK / 16; k++) {
#if A_K_CONTIGUOUS
        const unsigned long long dx = k_major<SDDMM_LINE_BYTES>(x + k * 32);
#else
        const unsigned long long dx = tile_descriptor<CELL_ROWS * 2>(x + k * (CELL_ROWS * 32), X_CELL, CELL_ROWS * 16);
#endif
#if LAYOUT_B == COL_MAJOR
        const unsigned long long dy = k_major<SDDMM_LINE_BYTES>(y + k * 32);
#else
        const unsigned long long dy = tile_descriptor<CELL_COLS * 2>(y + k * (CELL_COLS * 32), Y_CELL, CELL_COLS * 16);
#endif
        mma<WIDTH>::run<!A_K_CONTIGUOUS, LAYOUT_B == ROW_MAJOR>(sum, dx, dy);
    }
    mma_commit();
}

inline window window_of(const int *words)
{
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, tile_row = warp * 16 / CELL_ROWS, pass = threadIdx.x % 32 % PASSES,
              slot = pass * PASS / CELL_COLS;
    const int row = plan_word(words + AT_ROWS + (HEIGHT == 128 ? group * TILE_ROWS : 0) + tile_row),
              shift = group == 0 ? 0 : plan_word(words);
    const int block = plan_word(words + AT_BLOCKS + (group * TILE_ROWS + tile_row) * TILE_COLS + slot);
    return window{row * CELL_ROWS + warp * 16 % CELL_ROWS, row < 0 ? -1 : block,
                  plan_word(words + AT_COLS + shift + slot) * CELL_COLS + pass * PASS % CELL_COLS};
}

/* Element i of part `part` of a thread's sums. */
inline float part_of_sums(const float (&sum)[SUMS], int part, int i)
{
    float value = sum[i];
#pragma unroll
    for (int p = 1; p < CLUSTER; p++)
        value = part == p ? sum[p * OWN + i] : value;
    return value;
}

/* Part r of each thread's sums to block r of the cluster, into its ring, which yield_ring has left to this; own: the sum of what came and
 * its own part. */
inline void exchange_sums(const float (&sum)[SUMS], unsigned ring_memory, const float *ring_pointer, float (&own)[OWN])
{
    const int rank = cluster_rank();
    cluster_barrier();
#pragma unroll
    for (int other = 1; other < CLUSTER; other++) {
        const int to = (rank + other) % CLUSTER;
        const unsigned there = cluster_address(ring_memory + (other - 1) * (OWN * 1024) + threadIdx.x * 16, to);
#pragma unroll
        for (int i = 0; i < OWN; i += 4)
            cluster_store(there + i * 1024, part_of_sums(sum, to, i), part_of_sums(sum, to, i + 1), part_of_sums(sum, to, i + 2),
                          part_of_sums(sum, to, i + 3));
    }
    cluster_barrier();
#pragma unroll
    for (int i = 0; i < OWN; i++)
        own[i] = part_of_sums(sum, rank, i);
#pragma unroll
    for (int other = 1; other < CLUSTER; other++)
#pragma unroll
        for (int i = 0; i < OWN; i += 4) {
            const pieces<float, 4> four = load_pieces<float, 4>(ring_pointer + (other - 1) * (OWN * 256) + i * 256 + threadIdx.x * 4);
#pragma unroll
            for (int f = 0; f < 4; f++)
                own[i + f] += four.at[f];
        }
    fence_async_shared(); /* TMA writes there next */
    __syncthreads();
}

/* By one thread of a warpgroup: nobody of it reads the stage any more. Where X is shared every block of the cluster must know. */
inline void release(const ring<STAGES> &at, unsigned stage)
{
    if (SHARE == 1)
        at.release(stage);
    else
#pragma unroll
        for (int block = 0; block < SHARE; block++)
            cluster_arrive_read(cluster_address(at.empty + stage * 8, block));
}

inline void consume(const spk_cuda_arguments &arg, const sddmm_work &work, unsigned ring_memory, float *ring_pointer, ring<STAGES> at)
{
    const int group = threadIdx.x / 128, units = units_of(arg, work);
    const bool leader = threadIdx.x % 128 == 0;
    float *staging = ring_pointer + STAGES * STAGE_BYTES / 4 + threadIdx.x / 32 * STAGING;
    float sum[SUMS];
    previous_launch_done();
    for (int unit = first_unit(); unit < units; unit += unit_stride()) {
        const unit_place place = place_of(work, unit);
        const window window = window_of(place.words);
        const unsigned x = ring_memory + (HEIGHT == 128 ? group * TILE_ROWS * X_CELL : 0);
        const unsigned y = ring_memory + X_BYTES + (group == 0 ? 0 : plan_word(place.words) * Y_CELL);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sum[i] = 0;
        int before = -1;
        for (int step = place.first; step < place.last; step++) {
            at.wait_full();
            multiply(sum, x + at.stage * STAGE_BYTES, y + at.stage * STAGE_BYTES);
            mma_wait<1>();
            if (before >= 0 && leader)
                release(at, before);
            before = at.stage;
            at.advance();
        }
        mma_wait<0>();
        mma_settle(sum);
        if (before >= 0 && leader)
            release(at, before);
        block_target out = {(element_d *)arg.d + place.item * arg.stride_d, nullptr, nullptr};
        if (USE_C && arg.beta != 0)
            out.c = (const element_d *)arg.c + place.item * arg.stride_c;
        if (work.parts > 1)
            out.sums = (real *)arg.workspace + ((long long)place.item * work.parts + place.part) * work.elements;
#if CLUSTER > 1
        float own[OWN];
        exchange_sums(sum, ring_memory, ring_pointer, own);
        store_sums(arg, out, window, cluster_rank() * (PASSES / CLUSTER), own, staging);
#else
        store_sums(arg, out, window, 0, sum, staging);
#endif
    }
}

#if CLUSTER * SHARE > 1
#define SPK_CLUSTER __cluster_dims__(CLUSTER *SHARE, 1, 1)
#else
#define SPK_CLUSTER
#endif

extern "C" __global__ void SPK_CLUSTER __launch_bounds__(SDDMM_THREADS, 1)
    sddmm_sm90_wgmma(const __grid_constant__ spk_tensor_map map_x, const __grid_constant__ spk_tensor_map map_y,
                     const __grid_constant__ spk_cuda_arguments arg, const __grid_constant__ sddmm_work work)
{
    extern __shared__ unsigned char shared[];
    __shared__ ring_storage<STAGES> storage;
    const unsigned ring_memory = (smem_address(shared) + 1023) & ~1023u;
    float *ring_pointer = (float *)(shared + (ring_memory - smem_address(shared)));
    if (threadIdx.x == 0)
        ring_init(storage, 1, 2 * SHARE);
    if (threadIdx.x == 256 && work.steps > 0) { /* K = 0: the maps are not filled */
        tma_prefetch_map(&map_x);
        tma_prefetch_map(&map_y);
    }
    if (SHARE > 1)
        cluster_barrier_started(); /* the other block's barriers are there */
    else
        __syncthreads();
    next_launch_may_start();
    if (threadIdx.x < 256) {
        registers_more<224>();
        consume(arg, work, ring_memory, ring_pointer, ring<STAGES>(storage));
    } else {
        registers_fewer<56>();
        produce(&map_x, &map_y, arg, work, ring_memory, ring<STAGES>(storage));
    }
}

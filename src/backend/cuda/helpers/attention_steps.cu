/* The work of attention_backward_sm90_two_pass, for a mask whose lists only the device knows: mark_seen_blocks turns the lists into bits,
 * from columns to rows; list_seen_steps writes the steps of each tile, in ascending order, so that sums have the same order in every run;
 * sort_seen_tiles puts the longest tiles first. In which order threads meet decides where a tile's steps lie, and which of two tiles of a
 * length comes first: no sum depends on it. Bound: latency. */
#include "backend/cuda/helpers/attention_steps.h"

constexpr int LENGTHS = ATTENTION_STEPS_LENGTHS;

inline unsigned *seen_column(const attention_steps_task &all, int list, int column)
{
    return all.seen + ((spk_i64)list * all.grid_cols + column) * all.seen_words;
}

/* A warp a row of a list. */
extern "C" __global__ void __launch_bounds__(ATTENTION_STEPS_THREADS) mark_seen_blocks(const __grid_constant__ attention_steps_task all)
{
    const attention_task &task = all.task;
    const int warps = gridDim.x * (blockDim.x / 32), rows = all.lists * task.list_rows;
    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32; row < rows; row += warps) {
        const int list = row / task.list_rows, own = row % task.list_rows;
        for (int at = task.offsets[row] + threadIdx.x % 32; at < task.offsets[row + 1]; at += 32)
            atomicOr(seen_column(all, list, task.columns[at]) + own / 32, 1u << own % 32);
    }
}

/* ---- steps */

/* A warp's steps, one behind the other: each lane may have one. */
struct step_writer {
    int4 *steps;
    int at;
    __device__ void add(bool there, const two_pass_step &step)
    {
        const unsigned lanes = __ballot_sync(~0u, there), before = lanes & ((1u << threadIdx.x % 32) - 1);
        if (there)
            steps[at + __popc(before)] = make_int4(step.tile, step.head, step.none, step.entry);
        at += __popc(lanes);
    }
};

/* The queries of a row of a list have row_tiles tiles; a tile's steps have room for all that its list has. */
inline void list_keys(const attention_steps_task &all, const attention_steps_pass &pass, int item, int head, int tile, step_writer &writer,
                      int &first)
{
    const attention_task &task = all.task;
    const int query = tile * pass.own_rows, list = attention_list(&task, item, head, query), begin = task.offsets[list],
              width = task.block_cols / TWO_PASS_ROWS, count = (task.offsets[list + 1] - begin) * width;
    const attention_rows_seen seen = attention_rows_seen_of(&task, query, query + pass.own_rows);
    first = writer.at = begin * width * pass.row_tiles + tile % pass.row_tiles * count;
    for (int i = threadIdx.x % 32, warp = 0; warp < count; i += 32, warp += 32) {
        const int entry = begin + i / width, key_tile = i < count ? task.columns[entry] * width + i % width : 0,
                  key = key_tile * TWO_PASS_ROWS;
        const bool there = i < count && key < task.keys && attention_rows_see(&task, &seen, key, key + TWO_PASS_ROWS),
                   whole = there && attention_rows_see_all(&task, &seen, key, key + TWO_PASS_ROWS);
        writer.add(there, {key_tile | (whole ? 0 : TWO_PASS_HIDDEN), 0, 0, entry});
    }
}

/* The number of a block in the mask, which has it. */
inline int entry_of(const attention_task &task, int row, int column)
{
    int low = task.offsets[row], high = task.offsets[row + 1] - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (task.columns[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Tiles of queries of 32 block rows of a list, of which `rows` have the keys' column. */
inline void list_queries(const attention_steps_task &all, const attention_steps_pass &pass, int sharer, int list, int first_row,
                         unsigned rows, int key, step_writer &writer)
{
    const attention_task &task = all.task;
    for (int i = threadIdx.x % 32, warp = 0; warp < 32 * pass.row_tiles; i += 32, warp += 32) {
        const int row = first_row + i / pass.row_tiles, query_tile = row * pass.row_tiles + i % pass.row_tiles,
                  query = query_tile * TWO_PASS_ROWS;
        bool there = (rows >> i / pass.row_tiles & 1) != 0 && query < task.queries, whole = false;
        if (there) {
            const attention_rows_seen seen = attention_rows_seen_of(&task, query, query + TWO_PASS_ROWS);
            there = attention_rows_see(&task, &seen, key, key + pass.own_rows);
            whole = attention_rows_see_all(&task, &seen, key, key + pass.own_rows);
        }
        const int entry = there && all.tiled ? entry_of(task, list * task.list_rows + row, key / task.block_cols) : 0;
        writer.add(there, {query_tile | (whole ? 0 : TWO_PASS_HIDDEN), sharer, 0, entry});
    }
}

inline int warp_sum(int own)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        own += __shfl_xor_sync(~0u, own, step);
    return own;
}

/* The tiles of queries of all heads that share the keys. */
inline void list_all_queries(const attention_steps_task &all, const attention_steps_pass &pass, int item, int head, int tile,
                             step_writer &writer, int &first)
{
    const attention_task &task = all.task;
    const int key = tile * pass.own_rows, column = key / task.block_cols, lane = threadIdx.x % 32;
    const int first_list = item * task.item_lists, first_head = head * task.sharing;
    int rows = 0;
    for (int sharer = 0; sharer < task.sharing; sharer++) {
        const unsigned *words = seen_column(all, first_list + (first_head + sharer) / task.list_sharing, column);
        for (int word = lane; word < all.seen_words; word += 32)
            rows += __popc(words[word]);
    }
    rows = warp_sum(rows);
    if (lane == 0)
        first = atomicAdd(all.used, rows * pass.row_tiles);
    first = writer.at = __shfl_sync(~0u, first, 0);
    for (int sharer = 0; sharer < task.sharing; sharer++) {
        const int list = first_list + (first_head + sharer) / task.list_sharing;
        const unsigned *words = seen_column(all, list, column);
        for (int word = 0; word < all.seen_words; word += 32) {
            const unsigned own = word + lane < all.seen_words ? words[word + lane] : 0;
            for (unsigned left = __ballot_sync(~0u, own != 0); left != 0; left &= left - 1) {
                const int from = __ffs((int)left) - 1;
                list_queries(all, pass, sharer, list, (word + from) * 32, __shfl_sync(~0u, own, from), key, writer);
            }
        }
    }
}

/* A warp a tile of a group, of either pass. */
extern "C" __global__ void __launch_bounds__(ATTENTION_STEPS_THREADS) list_seen_steps(const __grid_constant__ attention_steps_task all)
{
    const int warps = gridDim.x * (blockDim.x / 32), count = all.pass[0].group_tiles + all.pass[1].group_tiles;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += warps) {
        const attention_steps_pass &pass = all.pass[i < all.pass[0].group_tiles ? 0 : 1];
        const int at = i < all.pass[0].group_tiles ? i : i - all.pass[0].group_tiles, tile = at % pass.own_tiles,
                  group = at / pass.own_tiles, groups = pass.own_heads / pass.group_heads, head = group % groups * pass.group_heads,
                  item = group / groups;
        step_writer writer = {(int4 *)pass.steps, 0};
        int first = 0;
        if (pass.by_queries)
            list_keys(all, pass, item, head, tile, writer, first);
        else
            list_all_queries(all, pass, item, head, tile, writer, first);
        if (threadIdx.x % 32 == 0)
            ((int2 *)pass.spans)[at] = make_int2(first, writer.at);
    }
}

/* ---- the order of tiles */

inline int group_tile(const attention_steps_pass &pass, int tile)
{
    const int head = tile / pass.own_tiles, item = pass.group_items > 1 ? head / pass.own_heads : 0;
    return (item * (pass.own_heads / pass.group_heads) + head % pass.own_heads / pass.group_heads) * pass.own_tiles + tile % pass.own_tiles;
}

/* The longest are 0. */
inline int shortness(int2 span)
{
    const int length = span.y - span.x + 1, power = 31 - __clz(length);
    return LENGTHS - 1 - (power * 4 + (int)(((spk_i64)length * 4 >> power) & 3));
}

/* Each becomes the sum of those before it; by a warp. */
inline void sum_up(int (&counts)[LENGTHS])
{
    constexpr int EACH = LENGTHS / 32;
    const int lane = threadIdx.x % 32;
    int own = 0, upto;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        own += counts[lane * EACH + i];
    upto = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, upto, step);
        upto += lane >= step ? other : 0;
    }
    int before = upto - own;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int count = counts[lane * EACH + i];
        counts[lane * EACH + i] = before;
        before += count;
    }
}

/* A block of threads a section of either pass. */
extern "C" __global__ void __launch_bounds__(ATTENTION_STEPS_SORT_THREADS) sort_seen_tiles(const __grid_constant__ attention_steps_task all)
{
    __shared__ int places[LENGTHS];
    const int before = (all.pass[0].tiles + all.pass[0].section - 1) / all.pass[0].section, section = blockIdx.x;
    const attention_steps_pass &pass = all.pass[section < before ? 0 : 1];
    const int first = (section < before ? section : section - before) * pass.section, end = min(first + pass.section, pass.tiles);
    for (int i = threadIdx.x; i < LENGTHS; i += blockDim.x)
        places[i] = 0;
    __syncthreads();
    for (int tile = first + threadIdx.x; tile < end; tile += blockDim.x)
        atomicAdd(places + shortness(((const int2 *)pass.spans)[group_tile(pass, tile)]), 1);
    __syncthreads();
    if (threadIdx.x < 32)
        sum_up(places);
    __syncthreads();
    const int head_tiles = (all.task.queries + TWO_PASS_ROWS - 1) / TWO_PASS_ROWS;
    for (int tile = first + threadIdx.x; tile < end; tile += blockDim.x) {
        const int2 span = ((const int2 *)pass.spans)[group_tile(pass, tile)];
        const int own_head = tile / pass.own_tiles, head = own_head % pass.own_heads, item = own_head / pass.own_heads,
                  query_head = item * all.task.heads + (pass.by_queries ? head : head * all.task.sharing);
        int4 *to = (int4 *)pass.sorted + 2 * (first + atomicAdd(places + shortness(span), 1));
        to[0] = make_int4(tile % pass.own_tiles * pass.own_rows, head, item, span.x);
        to[1] = make_int4(span.y, query_head * head_tiles, 0, 0);
    }
}

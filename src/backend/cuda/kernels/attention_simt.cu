/* attention_simt: O = softmax(scale Q K^T) V over the keys that each query sees, with ordinary multiply-adds: f16, bf16 or f32 with sums in
 * f32, any strides and alignment, every device.
 *
 * A block has a tile of queries, a warp some of its rows. A lane has keys of a step while scores are computed, columns of O while these
 * are; between the two exponentials go through shared memory. Bound: instruction issue. */
#include "backend/cuda/kernels/attention_simt.h"

#include "backend/cuda/device/attention/attention_tiles.cuh"
#include "backend/cuda/device/ptx/launch.cuh"

constexpr attention_simt_shape SHAPE = attention_simt_shape_of({ATTENTION_TILES_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int WARP_ROWS = SHAPE.rows, LANE_KEYS = STEP_KEYS / 32, LANE_COLUMNS = SHAPE.columns_v / 32;
constexpr int DEPTH4 = SHAPE.depth4, PITCH = SHAPE.pitch, COLUMNS_V = SHAPE.columns_v;

static_assert(ROWS == WARPS * WARP_ROWS && DEPTH % VECTOR == 0 && DEPTH_V % VECTOR == 0, "warps do not fill the tile");

/* ---- tiles in shared memory */

/* LINES lines of COLUMNS elements, zeros from DEEP on, W at a time; line(l): where it begins, NULL: it is all zeros. */
template <int W, int LINES, int COLUMNS, int DEEP, int PITCHED, class L> inline void copy_tile(float *to, L line)
{
    constexpr int CHUNKS = (COLUMNS + W - 1) / W;
#pragma unroll 4
    for (int chunk = threadIdx.x; chunk < LINES * CHUNKS; chunk += THREADS) {
        const int l = chunk / CHUNKS, column = chunk % CHUNKS * W;
        const element_a *from = line(l);
        pieces<element_a, W> got = {};
        if (from != nullptr && column < DEEP)
            got = load_constant<element_a, W>(from + column);
#pragma unroll
        for (int i = 0; i < W; i++)
            if (COLUMNS % W == 0 || column + i < COLUMNS)
                to[l * PITCHED + column + i] = as_f32(got.at[i]);
    }
}

template <int W> inline void copy_q(float *to, const attention_task &task, const tile_place &place)
{
    copy_tile<W, ROWS, DEPTH4, DEPTH, DEPTH4>(to, [&](int l) -> const element_a * {
        const tile_row row = row_of(place, l);
        return row.valid ? row_at<const element_a>(task.q, task.q_strides, place.item, row.head, row.query) : nullptr;
    });
}

/* keys: of the step. */
template <int W>
inline void copy_step(float *k_tile, float *v_tile, const attention_task &task, const tile_place &place, const step_keys &keys)
{
    const int head = place.head / task.sharing;
    const element_a *k = row_at<const element_a>(task.k, task.k_strides, place.item, head, 0),
                    *v = row_at<const element_a>(task.v, task.v_strides, place.item, head, 0);
    copy_tile<W, STEP_KEYS, DEPTH4, DEPTH, PITCH>(k_tile, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? k + row_of_key(task, place, keys[l]) * task.k_strides.row : nullptr;
    });
    copy_tile<W, STEP_KEYS, COLUMNS_V, DEPTH_V, COLUMNS_V>(v_tile, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? v + row_of_key(task, place, keys[l]) * task.v_strides.row : nullptr;
    });
}

/* ---- a warp's rows */

struct warp_rows {
    float most[WARP_ROWS], sum[WARP_ROWS]; /* the largest score; the lane's part of the exponentials' sum */
    float o[WARP_ROWS][LANE_COLUMNS];
    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) {
            most[r] = LEAST_SCORE;
            sum[r] = 0;
#pragma unroll
            for (int c = 0; c < LANE_COLUMNS; c++)
                o[r][c] = 0;
        }
    }
};

inline float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

inline float warp_most(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}
inline float warp_sum(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

inline float4 four(const float *from)
{
    return *(const float4 *)from;
}

/* Products of the warp's rows of Q with the lane's keys, lane + 32 i. */
inline void multiply_k(float (&s)[WARP_ROWS][LANE_KEYS], const float *q, const float *k_tile)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++)
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++)
            s[r][i] = 0;
#pragma unroll 2
    for (int d = 0; d < DEPTH4; d += 4) {
        float4 k[LANE_KEYS];
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++)
            k[i] = four(k_tile + (lane + 32 * i) * PITCH + d);
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) {
            const float4 x = four(q + r * DEPTH4 + d);
#pragma unroll
            for (int i = 0; i < LANE_KEYS; i++)
                s[r][i] += x.x * k[i].x + x.y * k[i].y + x.z * k[i].z + x.w * k[i].w;
        }
    }
}

/* Products become scores. */
inline void scale_scores(float (&s)[WARP_ROWS][LANE_KEYS], const attention_task &task)
{
    const float scale = (float)task.scale, cap = (float)task.cap;
    const bool capped = CAPPED && task.cap != 0;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++)
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++)
            s[r][i] = capped ? rounded(cap, tanhf(s[r][i] * scale / cap)) : rounded(s[r][i], scale);
}

/* What a query does not see gets a score of minus infinity. */
inline void hide(float (&s)[WARP_ROWS][LANE_KEYS], const attention_task &task, const tile_place &place, const step_keys &keys)
{
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const query_sight sight = seen_by(task, place, row_of(place, threadIdx.x / 32 * WARP_ROWS + r).query);
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++)
            s[r][i] = sees(task, sight, keys[threadIdx.x % 32 + 32 * i], keys.tile(threadIdx.x % 32 + 32 * i))
                          ? s[r][i]
                          : -__int_as_float(0x7f800000);
    }
}

/* Scores become exponentials relative to the row's largest so far, in shared memory; what was summed before is scaled to them. */
inline void soften(float *p, warp_rows &rows, const float (&s)[WARP_ROWS][LANE_KEYS])
{
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        float most = rows.most[r];
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++)
            most = fmaxf(most, s[r][i]);
        most = warp_most(most);
        const float factor = power_of_two((rows.most[r] - most) * LOG2_E);
        rows.most[r] = most;
        rows.sum[r] *= factor;
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++)
            rows.o[r][c] *= factor;
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            const float e = power_of_two((s[r][i] - most) * LOG2_E);
            rows.sum[r] += e;
            p[r * STEP_KEYS + threadIdx.x % 32 + 32 * i] = e;
        }
    }
}

/* o += P V. */
inline void multiply_v(warp_rows &rows, const float *p, const float *v_tile)
{
#pragma unroll 1
    for (int key = 0; key < STEP_KEYS; key += 4) {
        float v[4][LANE_COLUMNS];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < LANE_COLUMNS; c++)
                v[i][c] = v_tile[(key + i) * COLUMNS_V + threadIdx.x % 32 + 32 * c];
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) {
            const float4 e = four(p + r * STEP_KEYS + key);
#pragma unroll
            for (int c = 0; c < LANE_COLUMNS; c++)
                rows.o[r][c] += e.x * v[0][c] + e.y * v[1][c] + e.z * v[2][c] + e.w * v[3][c];
        }
    }
}

/* The same where V holds infinities or NaN that some rows do not see: zero times them would be NaN. */
inline void multiply_seen_v(warp_rows &rows, const float *p, const float *v_tile, const attention_task &task, const tile_place &place,
                            const step_keys &keys)
{
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const query_sight sight = seen_by(task, place, row_of(place, threadIdx.x / 32 * WARP_ROWS + r).query);
#pragma unroll 1
        for (int key = 0; key < STEP_KEYS; key++)
            if (sees(task, sight, keys[key], keys.tile(key))) /* the same for all of a warp */
#pragma unroll
                for (int c = 0; c < LANE_COLUMNS; c++)
                    rows.o[r][c] += p[r * STEP_KEYS + key] * v_tile[key * COLUMNS_V + threadIdx.x % 32 + 32 * c];
    }
}

/* Whether a tile of V has infinities or NaN; by all. */
inline bool any_infinite(const float *v_tile)
{
    bool found = false;
    for (int at = threadIdx.x; at < STEP_KEYS * COLUMNS_V; at += THREADS)
        found |= !(fabsf(v_tile[at]) <= -LEAST_SCORE);
    return __syncthreads_or(found);
}

/* ---- the end of a tile */

/* A sum of nothing: the row saw no key. */
inline void finish(const attention_task &task, const attention_cut &cut, const tile_place &place, const warp_rows &rows)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const float sum = warp_sum(rows.sum[r]), factor = sum == 0 ? 0 : 1 / sum;
        const tile_row row = row_of(place, threadIdx.x / 32 * WARP_ROWS + r);
        if (!row.valid)
            continue;
        element_a *o = row_at<element_a>(task.o, task.o_strides, place.item, row.head, row.query);
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++) {
            const int column = lane + 32 * c;
            if (column < DEPTH_V && SPLIT)
                cut.parts[part_row(task, place, row) * DEPTH_V + column] = rows.o[r][c] * factor;
            else if (column < DEPTH_V)
                o[column] = to<element_a>(rows.o[r][c] * factor);
        }
        if (lane == 0)
            store_lse(task, cut, place, row, rows.most[r], sum);
    }
}

/* ---- a block's work */

template <int W>
inline void multiply_steps(warp_rows &rows, const attention_task &task, const tile_place &place, const key_walk &walk, step_notes &notes,
                           float *memory)
{
    const int first = threadIdx.x / 32 * WARP_ROWS;
    float *q = memory, *k_tile = q + SHAPE.q, *v_tile = k_tile + SHAPE.k, *p = v_tile + SHAPE.v + first * STEP_KEYS;
    copy_q<W>(q, task, place);
    note_keys(notes, walk, 0, look_up(task, walk, 0));
#pragma unroll 1
    for (int step = 0; step < walk.steps; step++) {
        float s[WARP_ROWS][LANE_KEYS];
        const step_keys keys(notes, step);
        __syncthreads(); /* none reads the tiles, and all see the step's keys */
        const looked_up ahead = look_up(task, walk, step + 1);
        copy_step<W>(k_tile, v_tile, task, place, keys);
        note_keys(notes, walk, step + 1, ahead);
        __syncthreads();
        const bool hidden = hides(notes, step);
        multiply_k(s, q + first * DEPTH4, k_tile);
        scale_scores(s, task);
        if (hidden)
            hide(s, task, place, keys);
        soften(p, rows, s);
        __syncwarp();
        if (SCRUB && hidden && any_infinite(v_tile))
            multiply_seen_v(rows, p, v_tile, task, place, keys);
        else
            multiply_v(rows, p, v_tile);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_simt(const __grid_constant__ attention_task task, const __grid_constant__ attention_cut cut)
{
    extern __shared__ __align__(16) float memory[];
    step_notes &notes = *(step_notes *)(memory + SHAPE.tiles);
    previous_launch_done(); /* before the lists, too: they may be of a pattern that the device has made */
    const tile_place place = own_tile(task, cut);
    const key_walk walk = walk_of(task, cut, place);
    warp_rows rows;
    rows.begin();
    if (walk.steps > 0 && (VECTOR == 1 || cut.whole))
        multiply_steps<VECTOR>(rows, task, place, walk, notes, memory);
    else if (walk.steps > 0)
        multiply_steps<1>(rows, task, place, walk, notes, memory);
    finish(task, cut, place, rows);
}

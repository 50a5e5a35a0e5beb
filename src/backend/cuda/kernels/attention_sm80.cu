/* attention_sm80: O = softmax(scale Q K^T) V over the keys that each query sees, f16 or bf16, sums in f32, with mma.sync and cp.async:
 * every device from compute capability 8.0 on.
 *
 * A block has a tile of queries, a warp 16 or 32 of its rows. Two stages of K and V: one is brought while the other is multiplied.
 * Exponentials stay in registers, where the product with V takes them (Dao 2023, arXiv:2307.08691). Bound: the tensor instruction with 32
 * rows of a warp, shared memory with 16. */
#include "backend/cuda/kernels/attention_sm80.h"

#include "backend/cuda/device/attention/attention_store.cuh"
#include "backend/cuda/device/attention/attention_tiles.cuh"
#include "backend/cuda/device/ptx/copy_async.cuh"
#include "backend/cuda/device/ptx/launch.cuh"
#include "backend/cuda/device/mma/mma_sync.cuh"
#include "backend/cuda/device/attention/softmax.cuh"

using namespace sm90; /* softmax.cuh: its sums have this instruction's order, too */

constexpr attention_sm80_shape SHAPE =
    attention_sm80_shape_of({ATTENTION_TILES_CONSTANTS(SPK_CONSTANT_VALUE)}, {ATTENTION_SM80_CONSTANTS(SPK_CONSTANT_VALUE)});
constexpr int PITCH = SHAPE.pitch, PITCH_V = SHAPE.pitch_v, DEPTH16 = SHAPE.depth16;
constexpr int K_STEPS = DEPTH16 / 16, V_STEPS = STEP_KEYS / 16, EIGHTS = DEPTH_V / 8;
constexpr int SUMS = DEPTH_V / 2, SCORES = STEP_KEYS / 2; /* of a thread, of each 16 rows */

static_assert(ROWS == WARPS * SIXTEENS * 16 && DEPTH % 8 == 0 && DEPTH_V % 8 == 0 && 8 % VECTOR == 0, "warps do not fill the tile");

/* ---- tiles in shared memory: addresses */

/* LINES lines of COLUMNS elements, zeros from DEEP on; line(l): where it begins, NULL: it is all zeros. any: an address that exists. */
template <int LINES, int COLUMNS, int DEEP, int PITCHED, class L> inline void copy_tile(unsigned to, const void *any, L line)
{
    constexpr int CHUNKS = COLUMNS / VECTOR;
#pragma unroll 4
    for (int chunk = threadIdx.x; chunk < LINES * CHUNKS; chunk += THREADS) {
        const int l = chunk / CHUNKS, column = chunk % CHUNKS * VECTOR;
        const element_a *from = line(l);
        const bool exist = from != nullptr && column < DEEP;
        copy_async<VECTOR>(to + (l * PITCHED + column) * 2, exist ? from + column : (const element_a *)any, exist);
    }
}

inline void copy_q(unsigned to, const attention_task &task, const tile_place &place)
{
    copy_tile<ROWS, DEPTH16, DEPTH, PITCH>(to, task.q, [&](int l) -> const element_a * {
        const tile_row row = row_of(place, l);
        return row.valid ? row_at<const element_a>(task.q, task.q_strides, place.item, row.head, row.query) : nullptr;
    });
}

/* keys: of the step. V is as long as it is: what is not multiplied is not brought. */
inline void copy_step(unsigned k_tile, unsigned v_tile, const attention_task &task, const tile_place &place, const step_keys &keys)
{
    const int head = place.head / task.sharing;
    const element_a *k = row_at<const element_a>(task.k, task.k_strides, place.item, head, 0),
                    *v = row_at<const element_a>(task.v, task.v_strides, place.item, head, 0);
    copy_tile<STEP_KEYS, DEPTH16, DEPTH, PITCH>(k_tile, task.k, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? k + row_of_key(task, place, keys[l]) * task.k_strides.row : nullptr;
    });
    copy_tile<STEP_KEYS, DEPTH_V, DEPTH_V, PITCH_V>(v_tile, task.v, [&](int l) -> const element_a * {
        return keys[l] != NO_KEY ? v + row_of_key(task, place, keys[l]) * task.v_strides.row : nullptr;
    });
}

/* ---- a warp's rows */

/* The row of the tile that a thread's sums are of. */
inline int thread_row(int sixteen, int half)
{
    return (threadIdx.x / 32 * SIXTEENS + sixteen) * 16 + threadIdx.x % 32 / 4 + half * 8;
}

/* Q of the warp: an address in shared memory, or, with Q_HELD, fragments. */
struct query_rows {
    unsigned address;
    unsigned held[Q_HELD ? SIXTEENS : 1][Q_HELD ? K_STEPS * 4 : 1];

    __device__ __forceinline__ void bring(unsigned (&a)[4], int sixteen, int k) const
    {
        const int row = (threadIdx.x / 32 * SIXTEENS + sixteen) * 16 + threadIdx.x % 16, column = k * 16 + threadIdx.x % 32 / 16 * 8;
        load_four_matrices<false>(a, address + (row * PITCH + column) * 2);
    }
    __device__ __forceinline__ void take(unsigned from)
    {
        address = from;
#if Q_HELD
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
            for (int k = 0; k < K_STEPS; k++) {
                unsigned a[4];
                bring(a, i, k);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    held[i][k * 4 + j] = a[j];
            }
#endif
    }
    __device__ __forceinline__ void give(unsigned (&a)[4], int sixteen, int k) const
    {
#if Q_HELD
#pragma unroll
        for (int j = 0; j < 4; j++)
            a[j] = held[sixteen][k * 4 + j];
#else
        bring(a, sixteen, k);
#endif
    }
};

/* s = Q K^T of a step. */
inline void multiply_k(float (&s)[SIXTEENS][SCORES], const query_rows &q, unsigned k_tile)
{
    const int lane = threadIdx.x % 32, key = lane % 8 + lane / 16 * 8, column = lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
        for (int j = 0; j < SCORES; j++)
            s[i][j] = 0;
#pragma unroll(Q_HELD || K_STEPS <= 8 ? K_STEPS : 4)
    for (int k = 0; k < K_STEPS; k++) {
        unsigned a[SIXTEENS][4], b[4];
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
            q.give(a[i], i, k);
#pragma unroll
        for (int j = 0; j < STEP_KEYS / 16; j++) {
            load_four_matrices<false>(b, k_tile + ((j * 16 + key) * PITCH + k * 16 + column) * 2);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++) {
                mma_sync(s[i] + j * 8, a[i], b[0], b[1], element_a());
                mma_sync(s[i] + j * 8 + 4, a[i], b[2], b[3], element_a());
            }
        }
    }
}

/* o += P V, where s holds P. */
inline void multiply_v(float (&o)[SIXTEENS][SUMS], const float (&s)[SIXTEENS][SCORES], unsigned v_tile)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < V_STEPS; k++) {
        const unsigned line = v_tile + (k * 16 + lane % 16) * PITCH_V * 2;
        unsigned p[SIXTEENS][4], b[4], last[2];
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float low = s[i][k * 8 + j * 2], high = s[i][k * 8 + j * 2 + 1];
                p[i][j] = DTYPE_A == BF16 ? pack_bf16(low, high) : pack_f16(low, high);
            }
#pragma unroll
        for (int j = 0; j + 1 < EIGHTS; j += 2) {
            load_four_matrices<true>(b, line + (j * 8 + lane / 16 * 8) * 2);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++) {
                mma_sync(o[i] + j * 4, p[i], b[0], b[1], element_a());
                mma_sync(o[i] + j * 4 + 4, p[i], b[2], b[3], element_a());
            }
        }
        if (EIGHTS % 2 == 1) {
            load_two_transposed(last, line + (EIGHTS - 1) * 16);
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++)
                mma_sync(o[i] + (EIGHTS - 1) * 4, p[i], last[0], last[1], element_a());
        }
    }
}

/* ---- scores */

/* A score is tanh(inner * dot), or the dot or, with `negative`, its opposite; times outer2 it is in powers of two. */
struct score_scale {
    float inner, outer2;
    bool capped, negative;
};

inline score_scale scale_of(const attention_task &task)
{
    score_scale scale;
    scale.capped = CAPPED && task.cap != 0;
    scale.negative = !scale.capped && task.scale < 0;
    scale.inner = scale.capped ? (float)(task.scale / fabs(task.cap)) : 1;
    scale.outer2 =
        (scale.capped ? (float)fabs(task.cap) : fmaxf((float)fabs(task.scale), 1e-38f)) * LOG2_E; /* not 0: times minus infinity */
    return scale;
}

inline void bend(float (&s)[SCORES], const score_scale &scale)
{
    if (scale.capped) {
#pragma unroll
        for (int i = 0; i < SCORES; i++)
            s[i] = hyperbolic_tangent(s[i] * scale.inner);
    } else if (scale.negative) {
#pragma unroll
        for (int i = 0; i < SCORES; i++)
            s[i] = -s[i];
    }
}

/* What a query does not see gets a score of minus infinity. */
inline void hide(float (&s)[SCORES], const attention_task &task, const tile_place &place, int sixteen, const step_keys &keys)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const query_sight sight = seen_by(task, place, row_of(place, thread_row(sixteen, half)).query);
#pragma unroll
        for (int i = 0; i < SCORES / 2; i++) {
            float &score = s[i / 2 * 4 + half * 2 + i % 2];
            const int at = i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
            score = sees(task, sight, keys[at], keys.tile(at)) ? score : -__int_as_float(0x7f800000);
        }
    }
}

/* ---- infinities and NaN in rows of V that some queries do not see: zero times them would be NaN */

inline bool is_finite(unsigned short bits)
{
    constexpr unsigned short exponent = DTYPE_A == BF16 ? 0x7f80 : 0x7c00;
    return (bits & exponent) != exponent;
}

/* Before a product with V: what is not finite goes to the sums of the rows that see it, and becomes zero in shared memory. By all. */
inline void scrub(float (&o)[SIXTEENS][SUMS], element_a *v_tile, const attention_task &task, const tile_place &place, const step_keys &keys)
{
    bool found = false;
    for (int at = threadIdx.x; at < STEP_KEYS * EIGHTS; at += THREADS) {
        const pieces<element_a, 8> eight = load_pieces<element_a, 8>(v_tile + at / EIGHTS * PITCH_V + at % EIGHTS * 8);
#pragma unroll
        for (int i = 0; i < 8; i++)
            found |= !is_finite(eight.at[i].bits);
    }
    if (!__syncthreads_or(found))
        return;
    for (int key = 0; key < STEP_KEYS; key++) {
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++) {
            bool seen[2];
#pragma unroll
            for (int half = 0; half < 2; half++)
                seen[half] = sees(task, seen_by(task, place, row_of(place, thread_row(i, half)).query), keys[key], keys.tile(key));
#pragma unroll
            for (int j = 0; j < SUMS; j++) {
                const element_a v = v_tile[key * PITCH_V + j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2];
                if (!is_finite(v.bits) && seen[j / 2 % 2])
                    o[i][j] += as_f32(v);
            }
        }
    }
    __syncthreads(); /* all have read */
    for (int at = threadIdx.x; at < STEP_KEYS * DEPTH_V; at += THREADS) {
        element_a &v = v_tile[at / DEPTH_V * PITCH_V + at % DEPTH_V];
        if (!is_finite(v.bits))
            v.bits = 0;
    }
    __syncthreads();
}

/* ---- the end of a tile */

/* A sum of nothing: the row saw no key. */
inline void finish(const attention_task &task, const attention_cut &cut, const score_scale &scale, const tile_place &place, int sixteen,
                   const float (&o)[SUMS], const softmax_rows &rows)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = quad_sum(rows.sum[half]), factor = sum == 0 ? 0 : 1 / sum;
        const tile_row row = row_of(place, thread_row(sixteen, half));
        if (SPLIT) {
            if (row.valid)
                store_part(cut.parts + part_row(task, place, row) * DEPTH_V, o, half, factor);
        } else {
            store_row(row_at<element_a>(task.o, task.o_strides, place.item, row.head, row.query), cut.pieces, row.valid, o, half, factor);
        }
        if (row.valid && threadIdx.x % 4 == 0)
            store_lse(task, cut, place, row, rows.most[half] * (scale.outer2 * LN_2), sum);
    }
}

/* ---- a block's work */

struct stages {
    unsigned q, first; /* addresses */
    element_a *memory;

    __device__ __forceinline__ explicit stages(unsigned char *shared)
        : q((unsigned)__cvta_generic_to_shared(shared)), first(q + SHAPE.q_bytes), memory((element_a *)(shared + SHAPE.q_bytes))
    {
    }
    __device__ __forceinline__ unsigned k(int step) const { return first + step % 2 * (SHAPE.k_bytes + SHAPE.v_bytes); }
    __device__ __forceinline__ unsigned v(int step) const { return k(step) + SHAPE.k_bytes; }
    __device__ __forceinline__ element_a *v_memory(int step) const { return memory + (v(step) - first) / 2; }
};

/* Scores of a step become exponentials, and what was summed before is scaled to them. */
inline void exponentials(float (&s)[SIXTEENS][SCORES], float (&o)[SIXTEENS][SUMS], softmax_rows (&rows)[SIXTEENS],
                         const attention_task &task, const score_scale &scale, const tile_place &place, const step_keys &keys, bool hidden)
{
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++) {
        float factor[2];
        bend(s[i], scale);
        if (hidden)
            hide(s[i], task, place, i, keys);
        if (soften(s[i], rows[i], factor, scale.outer2)) {
#pragma unroll
            for (int j = 0; j < SUMS; j++)
                o[i][j] *= factor[j / 2 % 2];
        }
    }
}

inline void multiply_steps(float (&o)[SIXTEENS][SUMS], softmax_rows (&rows)[SIXTEENS], const attention_task &task, const score_scale &scale,
                           const tile_place &place, const key_walk &walk, step_notes &notes, const stages &at)
{
    query_rows q;
    note_keys(notes, walk, 0, look_up(task, walk, 0));
    note_keys(notes, walk, 1, look_up(task, walk, 1));
    __syncthreads();
    copy_q(at.q, task, place);
    copy_step(at.k(0), at.v(0), task, place, step_keys(notes, 0));
    copies_commit();
    copies_wait<0>();
    __syncthreads();
    q.take(at.q);
#pragma unroll 1
    for (int step = 0; step < walk.steps; step++) {
        float s[SIXTEENS][SCORES];
        const step_keys keys(notes, step);
        copies_wait<0>();
        __syncthreads(); /* all see this step's tiles, and none reads the other stage */
        if (step + 1 < walk.steps)
            copy_step(at.k(step + 1), at.v(step + 1), task, place, step_keys(notes, step + 1));
        copies_commit();
        const looked_up ahead = look_up(task, walk, step + 2);
        const bool hidden = hides(notes, step);
        multiply_k(s, q, at.k(step));
        exponentials(s, o, rows, task, scale, place, keys, hidden);
        if (SCRUB && hidden)
            scrub(o, at.v_memory(step), task, place, keys);
        multiply_v(o, s, at.v(step));
        note_keys(notes, walk, step + 2, ahead);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_sm80(const __grid_constant__ attention_task task, const __grid_constant__ attention_cut cut)
{
    extern __shared__ __align__(128) unsigned char memory[];
    step_notes &notes = *(step_notes *)(memory + SHAPE.tiles_bytes);
    previous_launch_done(); /* before the lists, too: they may be of a pattern that the device has made */
    const tile_place place = own_tile(task, cut);
    const key_walk walk = walk_of(task, cut, place);
    const score_scale scale = scale_of(task);
    float o[SIXTEENS][SUMS];
    softmax_rows rows[SIXTEENS];
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++) {
        rows[i].begin();
#pragma unroll
        for (int j = 0; j < SUMS; j++)
            o[i][j] = 0;
    }
    if (walk.steps > 0)
        multiply_steps(o, rows, task, scale, place, walk, notes, stages(memory));
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
        finish(task, cut, scale, place, i, o[i], rows[i]);
}

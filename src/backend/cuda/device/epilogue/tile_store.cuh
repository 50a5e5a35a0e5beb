/* A team's tile of sums on its way to D: through shared memory, so that D is written in whole lines. Where several teams sum a tile
 * (PIECES), each leaves its sums in the workspace, and a second launch adds them. */
#ifndef SPK_CUDA_TILE_STORE_CUH
#define SPK_CUDA_TILE_STORE_CUH

#include "backend/cuda/device/epilogue/epilogue.cuh"
#include "backend/cuda/device/copy/team.cuh"

/* Where a tile lies in D, and how much of it D has. */
struct tile_place {
    long long i0, j0;
    int rows, columns;
};

inline int sum_place(int row, int column)
{
    return LAYOUT_D == ROW_MAJOR ? row * PITCH_D + column : column * PITCH_D + row;
}

/* Writes a tile of sums. */
inline void store_tile(const real *sums, const spk_cuda_arguments &arg, const tile_place &at, int thread)
{
    constexpr int LINE = LAYOUT_D == ROW_MAJOR ? TILE_N : TILE_M, LINES = LAYOUT_D == ROW_MAJOR ? TILE_M : TILE_N;
    constexpr bool PLAIN = !USE_C && RESIDUAL == NO_RESIDUAL && !KEEP_PREACT;
    constexpr int MOST = PLAIN ? 16 / (int)sizeof(element_d) : 2, W = LINE % MOST == 0 ? MOST : 1, CHUNKS = LINE / W;
    const int line_count = LAYOUT_D == ROW_MAJOR ? at.rows : at.columns, line_length = LAYOUT_D == ROW_MAJOR ? at.columns : at.rows;
    const bool vectors =
        W > 1 && (LAYOUT_D == ROW_MAJOR || at.i0 % W == 0) && (PLAIN ? aligned_to(arg.d, 16) && arg.ldd % W == 0 : pairs_aligned(arg));
    for (int chunk = thread; chunk < LINES * CHUNKS; chunk += TEAM_THREADS) {
        const int line = chunk / CHUNKS, in = chunk % CHUNKS * W;
        if (line >= line_count || in >= line_length)
            continue;
        const long long i = at.i0 + (LAYOUT_D == ROW_MAJOR ? line : in), j = at.j0 + (LAYOUT_D == ROW_MAJOR ? in : line);
        const real *from = sums + line * PITCH_D + in;
        if (vectors && in + W <= line_length) {
            if constexpr (!PLAIN && W == 2) {
                store_pair(arg, i, j, from[0], from[1], true);
            } else {
                pieces<element_d, W> out;
#pragma unroll
                for (int e = 0; e < W; e++)
                    out.at[e] = to<element_d>(finish(arg, LAYOUT_D == ROW_MAJOR ? i : i + e, LAYOUT_D == ROW_MAJOR ? j + e : j, from[e]));
                store_pieces<element_d, W>((element_d *)arg.d + place(i, j, arg.ldd), out);
            }
        } else {
            for (int e = 0; e < W && in + e < line_length; e++)
                store_one(arg, LAYOUT_D == ROW_MAJOR ? i : i + e, LAYOUT_D == ROW_MAJOR ? j + e : j, from[e]);
        }
    }
}

/* ---- sums of pieces */

#if PIECES
constexpr int TILE_SUMS = team_sums(TEAM, LAYOUT_D == ROW_MAJOR);

typedef pieces<real, 16 / (int)sizeof(real)> line_of_sums;
constexpr int LINE_SUMS = 16 / (int)sizeof(real), LINES_A_TILE = TILE_SUMS / LINE_SUMS;
static_assert(TILE_SUMS % LINE_SUMS == 0, "a tile of sums is copied in 16 bytes");

/* Past the first-level cache, which does not see what other multiprocessors write. */
inline line_of_sums load_sums(const real *from)
{
    piece_bits<real, LINE_SUMS> bits;
    bits.raw = __ldcg((const uint4 *)from);
    return bits.value;
}

inline void keep_tile(const real *sums, real *to, int thread)
{
    for (int at = thread * LINE_SUMS; at < TILE_SUMS; at += TEAM_THREADS * LINE_SUMS)
        store_pieces<real, LINE_SUMS>(to + at, load_pieces<real, LINE_SUMS>(sums + at));
}

/* Line number `number` of `count` tiles that stand `next` sums apart: adds them in their order, and finishes. */
inline void add_line(const spk_cuda_arguments &arg, const tile_place &at, const real *tiles, long long next, int count, int number)
{
    constexpr int LINE = LAYOUT_D == ROW_MAJOR ? TILE_N : TILE_M;
    const int first = number * LINE_SUMS, line = first / PITCH_D, in = first % PITCH_D;
    const real *from = tiles + first;
    if (in >= LINE) /* lines end with what only keeps them apart */
        return;
    line_of_sums sum = load_sums(from);
#pragma unroll 4
    for (int piece = 1; piece < count; piece++) {
        const line_of_sums more = load_sums(from + piece * next);
#pragma unroll
        for (int e = 0; e < LINE_SUMS; e++)
            sum.at[e] += more.at[e];
    }
#pragma unroll
    for (int e = 0; e < LINE_SUMS; e++) {
        const int i = LAYOUT_D == ROW_MAJOR ? line : in + e, j = LAYOUT_D == ROW_MAJOR ? in + e : line;
        if (i < at.rows && j < at.columns)
            store_one(arg, at.i0 + i, at.j0 + j, sum.at[e]);
    }
}
#endif

#endif

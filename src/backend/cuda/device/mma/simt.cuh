/* The products of a team's tile with ordinary multiply-adds: THREAD_M x THREAD_N sums a thread.
 * The constants: simt.h, team.h. */
#ifndef SPK_CUDA_SIMT_CUH
#define SPK_CUDA_SIMT_CUH

#include "backend/cuda/device/mma/simt.h"
#include "backend/cuda/device/copy/team.cuh"

#define TEAM_COLUMNS (TILE_N / THREAD_N)
#define QUAD (sizeof(element_a) == 8 || sizeof(element_b) == 8 ? 2 : 4) /* steps of K taken together */
#define LANE (16 / (int)sizeof(element_b) < THREAD_N ? 16 / (int)sizeof(element_b) : THREAD_N)

static_assert(TILE_K % QUAD == 0 && TILE_M % THREAD_M == 0 && TILE_N % THREAD_N == 0, "threads do not fill the tile");
static_assert(simt_threads(TILE_M / THREAD_M, TILE_N, THREAD_N) == TEAM_THREADS, "threads do not fill the team");

/* The column of the tile that sum j of a thread belongs to: neighbours in vectors of B where those run along N, else threads side by
 * side. */
inline int column_of(int thread_column, int j)
{
    return B_K_CONTIGUOUS ? j * TEAM_COLUMNS + thread_column : j / LANE * (TEAM_COLUMNS * LANE) + thread_column * LANE + j % LANE;
}

inline void simt_load_a(real (&a)[THREAD_M][QUAD], const element_a *tile, int row, int k)
{
#pragma unroll
    for (int i = 0; i < THREAD_M; i++) {
#if A_K_CONTIGUOUS
        const pieces<element_a, QUAD> line = load_pieces<element_a, QUAD>(tile + (row + i) * PITCH_A + k);
#pragma unroll
        for (int q = 0; q < QUAD; q++)
            a[i][q] = as<real>(line.at[q]);
#else
#pragma unroll
        for (int q = 0; q < QUAD; q++)
            a[i][q] = as<real>(tile[(k + q) * PITCH_A + row + i]);
#endif
    }
}

inline void simt_load_b(real (&b)[QUAD][THREAD_N], const element_b *tile, int thread_column, int k)
{
#if LAYOUT_B == COL_MAJOR
#pragma unroll
    for (int j = 0; j < THREAD_N; j++) {
        const pieces<element_b, QUAD> line = load_pieces<element_b, QUAD>(tile + column_of(thread_column, j) * PITCH_B + k);
#pragma unroll
        for (int q = 0; q < QUAD; q++)
            b[q][j] = as<real>(line.at[q]);
    }
#else
#pragma unroll
    for (int q = 0; q < QUAD; q++)
#pragma unroll
        for (int j = 0; j < THREAD_N; j += LANE) {
            const pieces<element_b, LANE> line = load_pieces<element_b, LANE>(tile + (k + q) * PITCH_B + column_of(thread_column, j));
#pragma unroll
            for (int e = 0; e < LANE; e++)
                b[q][j + e] = as<real>(line.at[e]);
        }
#endif
}

/* Where a thread's sums are in the tile. */
struct simt_place {
    int column, row; /* of the team's threads; the tile's first row */
};
inline simt_place simt_place_of(int thread)
{
    return simt_place{thread % TEAM_COLUMNS, thread / TEAM_COLUMNS * THREAD_M};
}

/* A step: sum += A B. */
inline void simt_multiply(real (&sum)[THREAD_M][THREAD_N], const element_a *tile_a, const element_b *tile_b, const simt_place &at)
{
#pragma unroll(THREAD_M *THREAD_N > 32 ? 1 : 2)
    for (int k = 0; k < TILE_K; k += QUAD) {
        real a[THREAD_M][QUAD], b[QUAD][THREAD_N];
        simt_load_a(a, tile_a, at.row, k);
        simt_load_b(b, tile_b, at.column, k);
#pragma unroll
        for (int q = 0; q < QUAD; q++)
#pragma unroll
            for (int i = 0; i < THREAD_M; i++)
#pragma unroll
                for (int j = 0; j < THREAD_N; j++)
                    sum[i][j] = a[i][q] * b[q][j] + sum[i][j];
    }
}

#endif

/* Tiles of dense operands, brought into shared memory by a team of threads (team.cuh). */
#ifndef SPK_CUDA_DENSE_TILES_CUH
#define SPK_CUDA_DENSE_TILES_CUH

#include "backend/cuda/device/copy/team.cuh"

/* TILE_M rows by TILE_K columns of A from `a` on, of which `rows` and `depth` exist: the rest are zeros. */
template <int WA> inline void gather_dense_a(element_a *tile, const element_a *a, long long ld, int rows, long long depth, int thread)
{
#if A_K_CONTIGUOUS
    copy_lines<WA, TILE_M, TILE_K, PITCH_A, false>(tile, a, ld, rows, thread, [&](int in) { return clip(depth - in, WA); });
#else
    copy_lines<WA, TILE_K, TILE_M, PITCH_A, false>(tile, a, ld, depth, thread, [&](int in) { return clip(rows - in, WA); });
#endif
}

/* TILE_K rows by TILE_N columns of B from `b` on. */
template <int WB> inline void gather_dense_b(element_b *tile, const element_b *b, long long ld, long long depth, int columns, int thread)
{
#if B_K_CONTIGUOUS
    copy_lines<WB, TILE_N, TILE_K, PITCH_B, false>(tile, b, ld, columns, thread, [&](int in) { return clip(depth - in, WB); });
#else
    copy_lines<WB, TILE_K, TILE_N, PITCH_B, false>(tile, b, ld, depth, thread, [&](int in) { return clip(columns - in, WB); });
#endif
}

#endif

/* A team of threads and the tiles of both operands that it brings into shared memory step by step along K, through cp.async and STAGES
 * stages.
 *
 * The constants: team.h.
 * A line of a tile runs along the dimension that is contiguous in memory: along K where A_K_CONTIGUOUS (LAYOUT_B is COL_MAJOR). */
#ifndef SPK_CUDA_TEAM_CUH
#define SPK_CUDA_TEAM_CUH

#include "backend/cuda/device/common/problem.cuh"
#include "backend/cuda/device/copy/team.h"

#define B_K_CONTIGUOUS (LAYOUT_B == COL_MAJOR)
#define A_LINES (A_K_CONTIGUOUS ? TILE_M : TILE_K)
#define A_LINE (A_K_CONTIGUOUS ? TILE_K : TILE_M)
#define B_LINES (B_K_CONTIGUOUS ? TILE_N : TILE_K)
#define B_LINE (B_K_CONTIGUOUS ? TILE_K : TILE_N)

constexpr team_constants TEAM = {TEAM_CONSTANTS(SPK_CONSTANT_VALUE)};
constexpr int A_TILE_BYTES = team_a_bytes(TEAM, A_K_CONTIGUOUS, sizeof(element_a)),
              B_TILE_BYTES = team_b_bytes(TEAM, B_K_CONTIGUOUS, sizeof(element_b));
constexpr int STAGE_BYTES = A_TILE_BYTES + B_TILE_BYTES, SPLITS = team_splits(BLOCK_ROWS, TILE_M); /* SPLITS: tiles down a block row */

static_assert(A_TILE_BYTES % 16 == 0 && B_TILE_BYTES % 16 == 0 && STAGES * STAGE_BYTES <= TEAM_BYTES, "tiles do not fit");
static_assert(A_LINE % VECTOR_A == 0 && B_LINE % VECTOR_B == 0, "a copy straddles lines");

inline unsigned shared_address(const void *pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

/* Copies the first `valid` of W elements, zeros for the rest; in the background where the hardware can. */
template <int W, class T> inline void copy_chunk(T *to, const T *from, int valid)
{
    constexpr int BYTES = W * (int)sizeof(T);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid * (int)sizeof(T))
                     : "memory");
    else if constexpr (BYTES == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid * (int)sizeof(T))
                     : "memory");
    else if constexpr (BYTES == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid * (int)sizeof(T))
                     : "memory");
    else
        *(unsigned short *)to = valid > 0 ? *(const unsigned short *)from : (unsigned short)0;
}
inline void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> inline void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

inline void team_sync()
{
    if constexpr (TEAM_THREADS == 32)
        __syncwarp();
    else if constexpr (TEAMS == 1)
        __syncthreads();
    else
        asm volatile("bar.sync %0, %1;" ::"r"(1 + (int)threadIdx.x / TEAM_THREADS), "n"(TEAM_THREADS) : "memory");
}

inline int clip(long long elements, int most)
{
    return elements < 0 ? 0 : elements > most ? most : (int)elements;
}

/* A tile of LINES lines whose line `l` begins at from + l * stride: `lines` of them exist. `valid(in)` says how many of the W elements that
 * begin at element `in` of a line exist; it is the same for all lines. */
template <int W, int LINES, int LINE, int PITCH, bool ALL_LINES, class T, class V>
inline void copy_lines(T *tile, const T *from, long long stride, long long lines, int thread, V valid)
{
    constexpr int CHUNKS = LINE / W, TOTAL = LINES * CHUNKS, PASSES = (TOTAL + TEAM_THREADS - 1) / TEAM_THREADS;
    if constexpr (TEAM_THREADS % CHUNKS == 0) {
        constexpr int STEP = TEAM_THREADS / CHUNKS;
        const int line = thread / CHUNKS, in = thread % CHUNKS * W, good = valid(in);
        const T *source = from + line * stride + in;
        T *target = tile + line * PITCH + in;
#pragma unroll(PASSES > 16 ? 4 : PASSES)
        for (int i = 0; i < PASSES; i++) {
            if (LINES % STEP == 0 || line + i * STEP < LINES)
                copy_chunk<W>(target + i * STEP * PITCH, source, ALL_LINES || line + i * STEP < lines ? good : 0);
            source += STEP * stride;
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < PASSES; i++) {
            const int chunk = thread + i * TEAM_THREADS, line = chunk / CHUNKS, in = chunk % CHUNKS * W;
            if (TOTAL % TEAM_THREADS == 0 || chunk < TOTAL)
                copy_chunk<W>(tile + line * PITCH + in, from + line * stride + in, ALL_LINES || line < lines ? valid(in) : 0);
        }
    }
}

/* The same where each chunk finds its own source: place(line, in, &valid). */
template <int W, int LINES, int LINE, int PITCH, class T, class P> inline void copy_chunks(T *tile, int thread, P place)
{
    constexpr int CHUNKS = LINE / W, TOTAL = LINES * CHUNKS, PASSES = (TOTAL + TEAM_THREADS - 1) / TEAM_THREADS;
#pragma unroll 4
    for (int i = 0; i < PASSES; i++) {
        const int chunk = thread + i * TEAM_THREADS, line = chunk / CHUNKS, in = chunk % CHUNKS * W;
        if (TOTAL % TEAM_THREADS == 0 || chunk < TOTAL) {
            int valid = 0;
            const T *from = place(line, in, &valid);
            copy_chunk<W>(tile + line * PITCH + in, from, valid);
        }
    }
}

/* fetch(stage, step) starts the copies of a step, multiply(a, b) takes its tiles, in order; afterwards the shared memory is free. */
template <class F, class M> inline void walk_steps(char *memory, int steps, F fetch, M multiply)
{
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps)
            fetch(memory + s * STAGE_BYTES, s);
        commit_copies();
    }
    int read = 0, write = STAGES - 1;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_copies<STAGES - 2>();
        team_sync(); /* all see this step's tiles, and none reads the stage that is filled next */
        if (step + STAGES - 1 < steps)
            fetch(memory + write * STAGE_BYTES, step + STAGES - 1);
        commit_copies();
        multiply((const element_a *)(memory + read * STAGE_BYTES), (const element_b *)(memory + read * STAGE_BYTES + A_TILE_BYTES));
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    wait_copies<0>();
    team_sync();
}

#endif

/* The warps' tensor instruction 16x8x16 over f16 or bf16 with f32 sums, and what brings 8x8 matrices of its operands (matrices.cuh brings
 * four). Lane l has of the left operand (l / 4, t), (l / 4 + 8, t), then both 8 further along the depth, with t = l % 4 * 2 and its
 * neighbour; of the right one (t, l / 4), then 8 further along the depth; of the sums (l / 4, t), then (l / 4 + 8, t): wgmma's order. */
#ifndef SPK_DEVICE_MMA_SYNC_CUH
#define SPK_DEVICE_MMA_SYNC_CUH

#include "backend/cuda/device/mma/matrices.cuh"
#include "backend/cuda/device/common/number.cuh"

/* c: four sums of a longer array. */
inline void mma_sync(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1, f16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void mma_sync(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1, bf16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two matrices, transposed; lanes 16 .. 31 name lines that nobody wants, but that are there. */
inline void load_two_transposed(unsigned (&r)[2], unsigned line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(line) : "memory");
}

#endif

/* The warps' tensor instruction 16x8x8 over f32 rounded to TF32, and over f64 (before compute capability 9.0 as four of 8x8x4). Lane l has
 * of the left operand (l / 4, t), (l / 4 + 8, t), then both 4 further along the depth, with t = l % 4; of the right one (t, l / 4), then 4
 * further along the depth; of the sums (l / 4, 2t) and its right neighbour, then the same 8 rows down. */
#ifndef SPK_DEVICE_MMA_SYNC_WIDE_CUH
#define SPK_DEVICE_MMA_SYNC_WIDE_CUH

/* c: four sums of a longer array. */
inline void mma_sync(float *c, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void mma_sync(double *c, const double (&a)[4], double b0, double b1)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                : "d"(a[half + 2 * k]), "d"(k == 0 ? b0 : b1));
#endif
}

#endif

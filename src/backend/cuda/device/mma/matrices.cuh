/* Four matrices of 8x8 elements of 16 bits from shared memory into a warp's registers. Lane l names line l % 8 of matrix l / 8; afterwards
 * it holds elements (l / 4, 2 (l % 4)) and its right neighbour of each matrix, or of its transpose. From sm_75 on. */
#ifndef SPK_DEVICE_MATRICES_CUH
#define SPK_DEVICE_MATRICES_CUH

template <bool TRANSPOSED> inline void load_four_matrices(unsigned (&r)[4], unsigned line)
{
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(line)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(line)
                     : "memory");
}

#endif

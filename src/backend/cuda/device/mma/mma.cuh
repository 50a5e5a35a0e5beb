/* wgmma: a warpgroup multiplies 64 x 16 by 16 x N tiles in shared memory into f32 registers.
 *
 * Tiles lie as TMA with a swizzle of S bytes (128, 64, 32) writes them, each at a multiple of 1024 bytes; "major" is the contiguous
 * direction.
 *   K-major:  rows of S bytes along K, one below the other. Stride 8 S between groups of 8 rows; 32 bytes on for the next 16 of K.
 *   MN-major: rows of 64 elements (128 bytes, swizzle 128) along M or N, one for each k; the next 64 of M or N after all k of the tile.
 *     Stride 1024 between groups of 8 k, 128 k-count between groups of 64; 2048 bytes on for the next 16 of K. A tile of 32 or 16 in all of
 *     M or N: rows of 64 or 32 bytes, swizzled so; stride 8 rows; 16 rows on for the next 16 of K.
 * Accumulators: element (row, column) of a 64 x N tile is in warp row / 16, lane 4 * (row % 8) + column % 8 / 2, register column / 8 * 4 +
 * row / 8 % 2 * 2 + column % 2. */
#ifndef SPK_DEVICE_MMA_CUH
#define SPK_DEVICE_MMA_CUH

#include "backend/cuda/device/common/problem.cuh"
#include "backend/cuda/device/ptx/ptx.cuh"

namespace sm90 {

/* The descriptor of a tile. leading and stride in bytes; swizzle_bytes 32, 64 or 128. */
template <int swizzle_bytes> SPK_INLINE unsigned long long tile_descriptor(unsigned address, unsigned leading, unsigned stride)
{
    constexpr unsigned long long mode = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : 3;
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)((leading & 0x3FFFF) >> 4) << 16 |
           (unsigned long long)((stride & 0x3FFFF) >> 4) << 32 | mode << 62;
}

template <int swizzle_bytes> SPK_INLINE unsigned long long k_major(unsigned address)
{
    return tile_descriptor<swizzle_bytes>(address, 16, 8 * swizzle_bytes); /* leading is not used */
}

template <int k_count, int row_bytes = 128> SPK_INLINE unsigned long long mn_major(unsigned address)
{
    return tile_descriptor<row_bytes>(address, row_bytes * k_count, 8 * row_bytes);
}

SPK_INLINE void mma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

SPK_INLINE void mma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until all but the last `left` groups are done. */
template <int left> SPK_INLINE void mma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/* After mma_wait: keeps the compiler from reading the accumulators before it. */
template <int count> SPK_INLINE void mma_settle(float (&d)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

#if DTYPE_A == BF16
#define SPK_MMA_TYPES "f32.bf16.bf16"
#else
#define SPK_MMA_TYPES "f32.f16.f16"
#endif

/* Names of registers in the asm text and their operands, by eights and on. */
#define SPK_R0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define SPK_R1 SPK_R0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define SPK_R2 SPK_R1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define SPK_R3 SPK_R2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define SPK_R4 SPK_R3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define SPK_R5 SPK_R4 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define SPK_R6 SPK_R5 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define SPK_R7 SPK_R6 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define SPK_R8 SPK_R7 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define SPK_R9 SPK_R8 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define SPK_R10 SPK_R9 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define SPK_R11 SPK_R10 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define SPK_R12 SPK_R11 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define SPK_R13 SPK_R12 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define SPK_R14 SPK_R13 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define SPK_R15 SPK_R14 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define SPK_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SPK_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SPK_D16(i) SPK_D8(i), SPK_D8(i + 8)
#define SPK_D32(i) SPK_D16(i), SPK_D16(i + 16)
#define SPK_D64(i) SPK_D32(i), SPK_D32(i + 32)

/* a, b, step are the names of the operands after the accumulators. */
#define SPK_MMA(N, registers, a, b, one, ta, tb, ...)                                                                               \
    template <> struct mma<N> {                                                                                                     \
        template <int a_mn_major, int b_mn_major>                                                                                   \
        SPK_MEMBER void run(float (&d)[N / 2], unsigned long long da, unsigned long long db, int more = 1)                          \
        {                                                                                                                           \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " one ", 0;\n\t"                                                     \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16." SPK_MMA_TYPES " {" registers "}, " a ", " b ", p, 1, 1, " ta \
                         ", " tb ";\n\t}"                                                                                           \
                         : __VA_ARGS__                                                                                              \
                         : "l"(da), "l"(db), "r"(more), "n"(a_mn_major), "n"(b_mn_major));                                          \
        }                                                                                                                           \
    };
#define SPK_MEMBER static __device__ __forceinline__

/* d += A B, or d = A B where `more` is 0; N columns, 16 of K; needs mma_fence before the first of a group and mma_commit after the last. */
template <int N> struct mma;
SPK_MMA(8, "%0,%1,%2,%3", "%4", "%5", "%6", "%7", "%8", SPK_D4(0))
SPK_MMA(16, SPK_R0, "%8", "%9", "%10", "%11", "%12", SPK_D8(0))
SPK_MMA(32, SPK_R1, "%16", "%17", "%18", "%19", "%20", SPK_D16(0))
SPK_MMA(48, SPK_R2, "%24", "%25", "%26", "%27", "%28", SPK_D16(0), SPK_D8(16))
SPK_MMA(64, SPK_R3, "%32", "%33", "%34", "%35", "%36", SPK_D32(0))
SPK_MMA(80, SPK_R4, "%40", "%41", "%42", "%43", "%44", SPK_D32(0), SPK_D8(32))
SPK_MMA(96, SPK_R5, "%48", "%49", "%50", "%51", "%52", SPK_D32(0), SPK_D16(32))
SPK_MMA(104, SPK_R5 ",%48,%49,%50,%51", "%52", "%53", "%54", "%55", "%56", SPK_D32(0), SPK_D16(32), SPK_D4(48))
SPK_MMA(112, SPK_R6, "%56", "%57", "%58", "%59", "%60", SPK_D32(0), SPK_D16(32), SPK_D8(48))
SPK_MMA(120, SPK_R6 ",%56,%57,%58,%59", "%60", "%61", "%62", "%63", "%64", SPK_D32(0), SPK_D16(32), SPK_D8(48), SPK_D4(56))
SPK_MMA(128, SPK_R7, "%64", "%65", "%66", "%67", "%68", SPK_D64(0))
SPK_MMA(136, SPK_R7 ",%64,%65,%66,%67", "%68", "%69", "%70", "%71", "%72", SPK_D64(0), SPK_D4(64))
SPK_MMA(144, SPK_R8, "%72", "%73", "%74", "%75", "%76", SPK_D64(0), SPK_D8(64))
SPK_MMA(152, SPK_R8 ",%72,%73,%74,%75", "%76", "%77", "%78", "%79", "%80", SPK_D64(0), SPK_D8(64), SPK_D4(72))
SPK_MMA(160, SPK_R9, "%80", "%81", "%82", "%83", "%84", SPK_D64(0), SPK_D16(64))
SPK_MMA(168, SPK_R9 ",%80,%81,%82,%83", "%84", "%85", "%86", "%87", "%88", SPK_D64(0), SPK_D16(64), SPK_D4(80))
SPK_MMA(176, SPK_R10, "%88", "%89", "%90", "%91", "%92", SPK_D64(0), SPK_D16(64), SPK_D8(80))
SPK_MMA(184, SPK_R10 ",%88,%89,%90,%91", "%92", "%93", "%94", "%95", "%96", SPK_D64(0), SPK_D16(64), SPK_D8(80), SPK_D4(88))
SPK_MMA(192, SPK_R11, "%96", "%97", "%98", "%99", "%100", SPK_D64(0), SPK_D32(64))
SPK_MMA(200, SPK_R11 ",%96,%97,%98,%99", "%100", "%101", "%102", "%103", "%104", SPK_D64(0), SPK_D32(64), SPK_D4(96))
SPK_MMA(208, SPK_R12, "%104", "%105", "%106", "%107", "%108", SPK_D64(0), SPK_D32(64), SPK_D8(96))
SPK_MMA(216, SPK_R12 ",%104,%105,%106,%107", "%108", "%109", "%110", "%111", "%112", SPK_D64(0), SPK_D32(64), SPK_D8(96), SPK_D4(104))
SPK_MMA(224, SPK_R13, "%112", "%113", "%114", "%115", "%116", SPK_D64(0), SPK_D32(64), SPK_D16(96))
SPK_MMA(232, SPK_R13 ",%112,%113,%114,%115", "%116", "%117", "%118", "%119", "%120", SPK_D64(0), SPK_D32(64), SPK_D16(96), SPK_D4(112))
SPK_MMA(240, SPK_R14, "%120", "%121", "%122", "%123", "%124", SPK_D64(0), SPK_D32(64), SPK_D16(96), SPK_D8(112))
SPK_MMA(248, SPK_R14 ",%120,%121,%122,%123", "%124", "%125", "%126", "%127", "%128", SPK_D64(0), SPK_D32(64), SPK_D16(96), SPK_D8(112),
        SPK_D4(120))
SPK_MMA(256, SPK_R15, "%128", "%129", "%130", "%131", "%132", SPK_D64(0), SPK_D64(64))

} // namespace sm90

#endif

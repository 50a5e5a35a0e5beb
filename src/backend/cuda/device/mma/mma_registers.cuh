/* wgmma whose left operand, 64 x 16, lies in registers: of a thread four pairs, (row, column .. column + 1) with row = lane / 4 or 8 more,
 * column = lane % 4 * 2 or 8 more: rows first. Sums of the same products in shared memory (mma.cuh) have that order, eight columns after
 * eight. */
#ifndef SPK_DEVICE_MMA_REGISTERS_CUH
#define SPK_DEVICE_MMA_REGISTERS_CUH

#include "backend/cuda/device/mma/mma.cuh"

namespace sm90 {

/* a0 .. a3, b, more, transposed are the names of the operands after the sums. */
#define SPK_MMA_REGISTERS(N, registers, a0, a1, a2, a3, b, one, tb, ...)                                                              \
    template <> struct mma_registers<N> {                                                                                             \
        template <int b_mn_major> SPK_MEMBER void run(float (&d)[N / 2], const unsigned *a, unsigned long long db, int more = 1)      \
        {                                                                                                                             \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " one ", 0;\n\t"                                                       \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16." SPK_MMA_TYPES " {" registers "}, {" a0 ", " a1 ", " a2 ", " a3 \
                         "}, " b ", p, 1, 1, " tb ";\n\t}"                                                                            \
                         : __VA_ARGS__                                                                                                \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db), "r"(more), "n"(b_mn_major));                          \
        }                                                                                                                             \
    };

/* d += A B, or d = A B where `more` is 0; N columns, 16 of K. */
template <int N> struct mma_registers;
SPK_MMA_REGISTERS(16, SPK_R0, "%8", "%9", "%10", "%11", "%12", "%13", "%14", SPK_D8(0))
SPK_MMA_REGISTERS(24, SPK_R0 ",%8,%9,%10,%11", "%12", "%13", "%14", "%15", "%16", "%17", "%18", SPK_D8(0), SPK_D4(8))
SPK_MMA_REGISTERS(32, SPK_R1, "%16", "%17", "%18", "%19", "%20", "%21", "%22", SPK_D16(0))
SPK_MMA_REGISTERS(40, SPK_R1 ",%16,%17,%18,%19", "%20", "%21", "%22", "%23", "%24", "%25", "%26", SPK_D16(0), SPK_D4(16))
SPK_MMA_REGISTERS(48, SPK_R2, "%24", "%25", "%26", "%27", "%28", "%29", "%30", SPK_D16(0), SPK_D8(16))
SPK_MMA_REGISTERS(56, SPK_R2 ",%24,%25,%26,%27", "%28", "%29", "%30", "%31", "%32", "%33", "%34", SPK_D16(0), SPK_D8(16), SPK_D4(24))
SPK_MMA_REGISTERS(64, SPK_R3, "%32", "%33", "%34", "%35", "%36", "%37", "%38", SPK_D32(0))
SPK_MMA_REGISTERS(72, SPK_R3 ",%32,%33,%34,%35", "%36", "%37", "%38", "%39", "%40", "%41", "%42", SPK_D32(0), SPK_D4(32))
SPK_MMA_REGISTERS(80, SPK_R4, "%40", "%41", "%42", "%43", "%44", "%45", "%46", SPK_D32(0), SPK_D8(32))
SPK_MMA_REGISTERS(88, SPK_R4 ",%40,%41,%42,%43", "%44", "%45", "%46", "%47", "%48", "%49", "%50", SPK_D32(0), SPK_D8(32), SPK_D4(40))
SPK_MMA_REGISTERS(96, SPK_R5, "%48", "%49", "%50", "%51", "%52", "%53", "%54", SPK_D32(0), SPK_D16(32))
SPK_MMA_REGISTERS(104, SPK_R5 ",%48,%49,%50,%51", "%52", "%53", "%54", "%55", "%56", "%57", "%58", SPK_D32(0), SPK_D16(32), SPK_D4(48))
SPK_MMA_REGISTERS(112, SPK_R6, "%56", "%57", "%58", "%59", "%60", "%61", "%62", SPK_D32(0), SPK_D16(32), SPK_D8(48))
SPK_MMA_REGISTERS(120, SPK_R6 ",%56,%57,%58,%59", "%60", "%61", "%62", "%63", "%64", "%65", "%66", SPK_D32(0), SPK_D16(32), SPK_D8(48),
                  SPK_D4(56))
SPK_MMA_REGISTERS(128, SPK_R7, "%64", "%65", "%66", "%67", "%68", "%69", "%70", SPK_D64(0))
SPK_MMA_REGISTERS(136, SPK_R7 ",%64,%65,%66,%67", "%68", "%69", "%70", "%71", "%72", "%73", "%74", SPK_D64(0), SPK_D4(64))
SPK_MMA_REGISTERS(144, SPK_R8, "%72", "%73", "%74", "%75", "%76", "%77", "%78", SPK_D64(0), SPK_D8(64))
SPK_MMA_REGISTERS(152, SPK_R8 ",%72,%73,%74,%75", "%76", "%77", "%78", "%79", "%80", "%81", "%82", SPK_D64(0), SPK_D8(64), SPK_D4(72))
SPK_MMA_REGISTERS(160, SPK_R9, "%80", "%81", "%82", "%83", "%84", "%85", "%86", SPK_D64(0), SPK_D16(64))
SPK_MMA_REGISTERS(168, SPK_R9 ",%80,%81,%82,%83", "%84", "%85", "%86", "%87", "%88", "%89", "%90", SPK_D64(0), SPK_D16(64), SPK_D4(80))
SPK_MMA_REGISTERS(176, SPK_R10, "%88", "%89", "%90", "%91", "%92", "%93", "%94", SPK_D64(0), SPK_D16(64), SPK_D8(80))
SPK_MMA_REGISTERS(184, SPK_R10 ",%88,%89,%90,%91", "%92", "%93", "%94", "%95", "%96", "%97", "%98", SPK_D64(0), SPK_D16(64), SPK_D8(80),
                  SPK_D4(88))
SPK_MMA_REGISTERS(192, SPK_R11, "%96", "%97", "%98", "%99", "%100", "%101", "%102", SPK_D64(0), SPK_D32(64))
SPK_MMA_REGISTERS(200, SPK_R11 ",%96,%97,%98,%99", "%100", "%101", "%102", "%103", "%104", "%105", "%106", SPK_D64(0), SPK_D32(64),
                  SPK_D4(96))
SPK_MMA_REGISTERS(208, SPK_R12, "%104", "%105", "%106", "%107", "%108", "%109", "%110", SPK_D64(0), SPK_D32(64), SPK_D8(96))
SPK_MMA_REGISTERS(216, SPK_R12 ",%104,%105,%106,%107", "%108", "%109", "%110", "%111", "%112", "%113", "%114", SPK_D64(0), SPK_D32(64),
                  SPK_D8(96), SPK_D4(104))
SPK_MMA_REGISTERS(224, SPK_R13, "%112", "%113", "%114", "%115", "%116", "%117", "%118", SPK_D64(0), SPK_D32(64), SPK_D16(96))
SPK_MMA_REGISTERS(232, SPK_R13 ",%112,%113,%114,%115", "%116", "%117", "%118", "%119", "%120", "%121", "%122", SPK_D64(0), SPK_D32(64),
                  SPK_D16(96), SPK_D4(112))
SPK_MMA_REGISTERS(240, SPK_R14, "%120", "%121", "%122", "%123", "%124", "%125", "%126", SPK_D64(0), SPK_D32(64), SPK_D16(96), SPK_D8(112))
SPK_MMA_REGISTERS(248, SPK_R14 ",%120,%121,%122,%123", "%124", "%125", "%126", "%127", "%128", "%129", "%130", SPK_D64(0), SPK_D32(64),
                  SPK_D16(96), SPK_D8(112), SPK_D4(120))
SPK_MMA_REGISTERS(256, SPK_R15, "%128", "%129", "%130", "%131", "%132", "%133", "%134", SPK_D64(0), SPK_D64(64))

} // namespace sm90

#endif

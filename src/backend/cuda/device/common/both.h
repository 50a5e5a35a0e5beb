/* What the host (C11) and device programs (C++17, NVRTC) both derive is written once, in headers that both include: structs of arguments,
 * and functions from the constants that a program is compiled with to what follows from them. Plain types and names only; no designators
 * and no compound literals, which C++ lacks. */
#ifndef SPK_CUDA_BOTH_H
#define SPK_CUDA_BOTH_H

#ifdef __cplusplus
#define SPK_BOTH constexpr
typedef long long spk_i64;
typedef unsigned long long spk_u64;
#else
#include <stdint.h>
#define SPK_BOTH static inline
typedef int64_t spk_i64;
typedef uint64_t spk_u64;
#endif

/* A kernel's constants are a list in its header, #define NAME_CONSTANTS(C) C(BLOCK_ROWS, block_rows) C(...): the host fills a struct of the
 * members and passes each as -DBLOCK_ROWS=.. (host/frame/build.h), device code makes the same struct of them again. */
#define SPK_CONSTANT_MEMBER(NAME, member) int member;
#define SPK_CONSTANT_VALUE(NAME, member) NAME,

#endif

/* Device programs that came with the library, compiled: programs.db, which bench/programs.py makes. Whatever is wrong with it costs time,
 * never correctness: no function here fails. */
#ifndef SPK_BACKEND_CUDA_SHIPPED_H
#define SPK_BACKEND_CUDA_SHIPPED_H

#include <stdbool.h>

#include "base/mem.h"

/* key: all that a program depends on but the compiler's version. False: it is not there. Thread safe. */
bool spk_shipped_load(const spk_mem *mem, const char *key, void **cubin, size_t *bytes);
bool spk_shipped_has(const char *key);

/* The driver did not take one of them: none is used any more in this process. */
void spk_shipped_refuse(void);

/* For tests: looks for the file again. */
void spk_shipped_forget(void);

#endif

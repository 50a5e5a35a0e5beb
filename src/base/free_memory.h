/* How much memory there is for the asking. */
#ifndef SPK_BASE_FREE_MEMORY_H
#define SPK_BASE_FREE_MEMORY_H

#include <stdint.h>

/* Bytes that this process can take before the system or its container ends it: free ones, caches that would be given back and swap; 0: unknown. Reads the
 * system each time (some 100 us). Thread-safe. */
int64_t spk_free_memory(void);

#endif

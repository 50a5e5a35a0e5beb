/* How much memory there is for the asking, and large pieces of it: the system promises more than it has, and ends the process that then
 * uses it. */
#ifndef SPK_BASE_FREE_MEMORY_H
#define SPK_BASE_FREE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that this process can take before the system, its container or its own limits stop it: free ones, caches that would be given back
 * and swap; 0: unknown. Reads the system each time (some 100 us). Thread-safe. */
int64_t spk_free_memory(void);

/* Likewise, without the process's own limits, of a system whose /proc and /sys are in the folder `root`, "" for the one that runs. */
int64_t spk_free_memory_of(const char *root);

/* Bytes of memory, used or not, that the process's own limits (ulimit -v, ulimit -d) let it ask for; INT64_MAX: all there is. */
int64_t spk_address_space_left(void);

/* Whether a piece of so many bytes may be asked for; *room: what is free, where it may not. Small ones (below 256 MiB) may without a
 * look. */
bool spk_memory_suffices(size_t bytes, int64_t *room);

/* Uses a large piece's pages at once, so that the next question sees that they are taken. */
void spk_memory_use(void *memory, size_t bytes);

#endif

/* The cache of compiled device programs on disk: CACHE/cubin, private to the user. Whatever is wrong with it costs time, never correctness: no
 * function here fails. */
#ifndef SPK_BACKEND_CUDA_CUBINS_H
#define SPK_BACKEND_CUDA_CUBINS_H

#include <stdbool.h>

#include "base/mem.h"

#define SPK_CUBINS_BYTES ((int64_t)256 << 20) /* of all files: beyond it those that were not used longest go */

/* key is text that says all that the cubin depends on. False: it is not there. A file that is damaged, or another's, is removed. */
bool spk_cubins_load(const spk_mem *mem, const char *key, void **cubin, size_t *bytes);
void spk_cubins_save(const spk_mem *mem, const char *key, const void *cubin, size_t bytes);

/* So that two processes, or threads, do not compile the same: waits until nobody else holds the key, limit_s at most. A token for unlock; -1: not
 * held (the limit has passed, or there is no folder), go on all the same. */
int spk_cubins_lock(const spk_mem *mem, const char *key, double limit_s);
void spk_cubins_unlock(int token, const char *key);

/* Removes the files used least recently until `limit` bytes are left, and what crashed writers left. For spk_cubins_save, and tests. */
void spk_cubins_trim(const char *folder, int64_t limit);

#endif

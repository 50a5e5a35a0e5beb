/* The cache of compiled device programs on disk: CACHE/cubin, private to the user. Whatever is wrong with it costs time, never correctness:
 * no function here fails. */
#ifndef SPK_BACKEND_CUDA_CUBINS_H
#define SPK_BACKEND_CUDA_CUBINS_H

#include <stdbool.h>

#include "base/mem.h"

#define SPK_CUBINS_BYTES ((int64_t)256 << 20) /* of all files: beyond it those that were not used longest go */

#define SPK_CUBINS_KEPT_BYTES ((size_t)64 << 20) /* in memory */

/* key is text that says all that the cubin depends on. False: it is not there. A file that is damaged, or another's, is removed. What
 * cannot be written to the folder is kept in memory. */
bool spk_cubins_load(const spk_mem *mem, const char *key, void **cubin, size_t *bytes);
bool spk_cubins_has(const spk_mem *mem, const char *key); /* likewise, by its name alone */
void spk_cubins_save(const spk_mem *mem, const char *key, const void *cubin, size_t bytes);

/* So that two processes, or threads, do not compile the same: waits until nobody else holds the key, limit_s at most. A token for unlock;
 * -1: not held (the limit has passed, or there is no folder), go on all the same. */
int spk_cubins_lock(const spk_mem *mem, const char *key, double limit_s);
void spk_cubins_unlock(int token, const char *key);

/* cubins_kept.c: in memory, for this process. forget is for tests. */
bool spk_cubins_kept(const char *key);
void spk_cubins_keep(const char *key, const void *content, size_t bytes);
bool spk_cubins_recall(const spk_mem *mem, const char *key, void **content, size_t *bytes);
void spk_cubins_forget(void);

/* Removes the files used least recently until `limit` bytes are left, and what crashed writers left. For spk_cubins_save, and tests. */
void spk_cubins_trim(const char *folder, int64_t limit);

#endif

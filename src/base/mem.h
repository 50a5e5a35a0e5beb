/* The only place that allocates. Every object keeps a copy of the spk_mem it came from. */
#ifndef SPK_BASE_MEM_H
#define SPK_BASE_MEM_H

#include "base/status.h"

typedef struct spk_mem {
    spk_allocate allocate; /* NULL: the system's */
    spk_release release;
    void *user;
} spk_mem;

/* The system's allocator: used where a caller gave none, and for the context itself. */
extern const spk_mem spk_mem_system;

/* SPK_ERR_OUT_OF_MEMORY where so many bytes, in several pieces, are more than is free: asked before the first piece is taken. A caller's
 * own allocator is not asked. */
spk_status spk_mem_expect(const spk_mem *mem, size_t bytes);

/* 64-byte aligned, uninitialised (calloc: zeroed). The size is remembered in a header, so that release needs only the pointer.
 * count * size is checked for overflow. count * size = 0 gives a valid pointer. On failure *out is untouched. */
spk_status spk_alloc(const spk_mem *mem, size_t count, size_t size, void *out_pointer);
spk_status spk_calloc(const spk_mem *mem, size_t count, size_t size, void *out_pointer);

/* Grows (or makes, where *pointer is NULL) an array to new_count elements; the old content is kept. */
spk_status spk_realloc(const spk_mem *mem, void *pointer_to_pointer, size_t new_count, size_t size);

/* Accepts NULL. */
void spk_free(const spk_mem *mem, void *pointer);

/* A copy of a string. */
spk_status spk_strdup(const spk_mem *mem, const char *text, char **out);

/* Test hook: the count-th allocation from now fails (and every later one); negative: none fails. Returns how many allocations
 * were made since the last call. Process-wide. */
int64_t spk_mem_fail_after(int64_t count);

#endif

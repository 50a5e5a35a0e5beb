/* The one malloc site. Each piece of memory is preceded by a 64-byte header that remembers its size for the caller's release. */
#include "base/mem.h"

#include "base/free_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

typedef struct header {
    size_t bytes; /* with the header */
} header;

_Static_assert(sizeof(header) <= ALIGNMENT, "the header fits before the first aligned byte");

const spk_mem spk_mem_system = {0};

static atomic_int_fast64_t allocations_made;
static atomic_int_fast64_t allocations_left = -1;

int64_t spk_mem_fail_after(int64_t count)
{
    atomic_store(&allocations_left, count);
    return atomic_exchange(&allocations_made, 0);
}

static int injected_failure(void)
{
    atomic_fetch_add_explicit(&allocations_made, 1, memory_order_relaxed);
    int_fast64_t left = atomic_load_explicit(&allocations_left, memory_order_relaxed);
    if (left < 0)
        return 0;
    if (left == 0)
        return 1;
    atomic_store_explicit(&allocations_left, left - 1, memory_order_relaxed);
    return 0;
}

spk_status spk_mem_expect(const spk_mem *mem, size_t bytes)
{
    int64_t room;
    if (mem->allocate == NULL && !spk_memory_suffices(bytes, &room))
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes are asked for; %lld are free", bytes, (long long)room);
    return SPK_OK;
}

spk_status spk_alloc(const spk_mem *mem, size_t count, size_t size, void *out_pointer)
{
    if (size != 0 && count > (SIZE_MAX - 2 * ALIGNMENT) / size)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %zu elements of %zu bytes exceed the address space", count, size);
    size_t bytes = (count * size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = NULL;
    SPK_TRY(spk_mem_expect(mem, bytes));
    if (!injected_failure())
        memory = mem->allocate != NULL ? mem->allocate(mem->user, bytes, ALIGNMENT) : aligned_alloc(ALIGNMENT, bytes);
    if (memory == NULL)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes were refused", bytes);
    if (mem->allocate == NULL)
        spk_memory_use(memory, bytes);
    ((header *)memory)->bytes = bytes;
    void *pointer = (char *)memory + ALIGNMENT;
    memcpy(out_pointer, &pointer, sizeof pointer);
    return SPK_OK;
}

spk_status spk_calloc(const spk_mem *mem, size_t count, size_t size, void *out_pointer)
{
    void *pointer = NULL;
    SPK_TRY(spk_alloc(mem, count, size, &pointer));
    memset(pointer, 0, count * size);
    memcpy(out_pointer, &pointer, sizeof pointer);
    return SPK_OK;
}

static header *header_of(void *pointer)
{
    return (header *)((char *)pointer - ALIGNMENT);
}

spk_status spk_realloc(const spk_mem *mem, void *pointer_to_pointer, size_t new_count, size_t size)
{
    void *old = NULL, *grown = NULL;
    memcpy(&old, pointer_to_pointer, sizeof old);
    SPK_TRY(spk_alloc(mem, new_count, size, &grown));
    if (old != NULL) {
        size_t had = header_of(old)->bytes - ALIGNMENT, want = new_count * size;
        memcpy(grown, old, had < want ? had : want);
        spk_free(mem, old);
    }
    memcpy(pointer_to_pointer, &grown, sizeof grown);
    return SPK_OK;
}

void spk_free(const spk_mem *mem, void *pointer)
{
    if (pointer == NULL)
        return;
    header *memory = header_of(pointer);
    if (mem->release != NULL)
        mem->release(mem->user, memory, memory->bytes);
    else
        free(memory);
}

spk_status spk_strdup(const spk_mem *mem, const char *text, char **out)
{
    size_t bytes = strlen(text) + 1;
    char *copy = NULL;
    SPK_TRY(spk_alloc(mem, bytes, 1, &copy));
    memcpy(copy, text, bytes);
    *out = copy;
    return SPK_OK;
}

/* Memory of the program. */
#include "cli/base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/free_memory.h"
#include "cli/base/cli.h"

void *cli_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    int64_t room;
    const bool fits = !__builtin_mul_overflow(count, size, &bytes);
    if (fits && !spk_memory_suffices(bytes, &room)) {
        fprintf(stderr, "sparsek: out of memory: %zu bytes are asked for; %lld are free\n", bytes, (long long)room);
        exit(EXIT_RESOURCES);
    }
    void *memory = fits ? calloc(count ? count : 1, size ? size : 1) : NULL;
    if (!memory) {
        fprintf(stderr, "sparsek: out of memory: %zu x %zu bytes\n", count, size);
        exit(EXIT_RESOURCES);
    }
    spk_memory_use(memory, bytes);
    return memory;
}

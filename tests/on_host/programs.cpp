/* Device programs that tests run on the host. */
#include "on_host/device.hpp"

#define INDEX int
#include "backend/cuda/helpers/attention_steps.cu"
#include "backend/cuda/helpers/check_indices.cu"

#include "on_host/programs.h"

#define RUN(name)                                         \
    if (strcmp(entry, #name) == 0) {                      \
        on_host::launch(name, parameters, grid, threads); \
        return;                                           \
    }

void run_on_host(const char *entry, void **parameters, unsigned grid, unsigned threads)
{
    RUN(check_indices)
    RUN(settle_indices)
    RUN(mark_seen_blocks)
    RUN(list_seen_steps)
    RUN(sort_seen_tiles)
}

/* The problems of `regret`. */
#ifndef SPARSEK_CLI_REGRET_DRAW_H
#define SPARSEK_CLI_REGRET_DRAW_H

#include "cli/problem/flags.h"

typedef struct regret_wish {
    bool gpu;
    int op; /* index of operation_at */
    int64_t batch;
} regret_wish;

/* Problem `number` of a series; a GPU's are larger and of more types. Changing anything here changes what committed results mean. */
problem_flags regret_draw(uint64_t seed, int64_t number, const regret_wish *wish);

#endif

/* Seeded random numbers for drawing problems (splitmix64): the same on every machine. */
#ifndef SPARSEK_CLI_BASE_RANDOM_H
#define SPARSEK_CLI_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct random_state {
    uint64_t state;
} random_state;

/* A generator for one item of a seeded series; `salt` (may be NULL) sets apart several of one item. */
random_state random_for(uint64_t seed, uint64_t item, const char *salt);
uint64_t random_next(random_state *r);
int64_t random_between(random_state *r, int64_t low, int64_t high); /* both ends included */
double random_unit(random_state *r);                                /* [0, 1) */
bool random_chance(random_state *r, double share);
double random_log(random_state *r, double low, double high); /* log-uniform in [low, high] */
double random_normal(random_state *r);                       /* about standard normal */

/* A seed from the system, small enough to be typed. */
uint64_t random_seed(void);

#endif

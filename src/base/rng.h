/* Seeded random numbers, the same bits on every machine: xoshiro256** seeded through splitmix64 (Blackman and Vigna, 2018). */
#ifndef SPK_BASE_RNG_H
#define SPK_BASE_RNG_H

#include <stdint.h>

typedef struct spk_rng {
    uint64_t s[4];
} spk_rng;

void spk_rng_seed(spk_rng *rng, uint64_t seed);
uint64_t spk_rng_next(spk_rng *rng);

/* Uniform in [0, bound), without bias (bound > 0). */
uint64_t spk_rng_below(spk_rng *rng, uint64_t bound);

/* Uniform in [0, 1) with 53 bits. */
double spk_rng_uniform(spk_rng *rng);

/* Approximately standard normal: the sum of twelve uniforms less six, with all bits of a double in use. The same on every machine:
 * integers, powers of two and one rounded addition. */
double spk_rng_normal(spk_rng *rng);

#endif

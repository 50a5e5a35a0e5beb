/* xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018), seeded through splitmix64. */
#include "base/rng.h"

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void spk_rng_seed(spk_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        rng->s[i] = z ^ (z >> 31);
    }
}

uint64_t spk_rng_next(spk_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t spk_rng_below(spk_rng *rng, uint64_t bound)
{
    /* Values above the last whole multiple of bound are drawn again. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t x = spk_rng_next(rng);
    while (x >= limit)
        x = spk_rng_next(rng);
    return x % bound;
}

double spk_rng_uniform(spk_rng *rng)
{
    return (double)(spk_rng_next(rng) >> 11) * 0x1p-53;
}

double spk_rng_normal(spk_rng *rng)
{
    /* Twelve 16-bit uniforms out of three draws: the sum has variance 12 * (2^32 - 1) / 12 / 2^32, one but for 2^-32. */
    int64_t sum = 0;
    for (int draw = 0; draw < 3; draw++) {
        uint64_t x = spk_rng_next(rng);
        sum += (int64_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
    }
    /* The mean of the sum is 12 * 65535 / 2; doubled, it is an integer. One more uniform fills the bits below its step of 2^-16: sums
     * of products must round, as they do with real data. */
    return (double)(2 * sum - 12 * 65535) * 0x1p-17 + (spk_rng_uniform(rng) - 0.5) * 0x1p-16;
}

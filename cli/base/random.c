/* Seeded random numbers for drawing problems: splitmix64 (Steele, Lea and Flood, 2014). */
#include "cli/base/random.h"

#include <math.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

uint64_t random_next(random_state *r)
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

random_state random_for(uint64_t seed, uint64_t item, const char *salt)
{
    random_state r = {seed};
    r.state = random_next(&r) ^ item;
    r.state = random_next(&r);
    for (; salt && *salt; salt++) {
        r.state ^= (unsigned char)*salt;
        r.state = random_next(&r);
    }
    return r;
}

double random_unit(random_state *r)
{
    return (double)(random_next(r) >> 11) * 0x1p-53;
}

int64_t random_between(random_state *r, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int64_t)(random_next(r) % span); /* the bias is far below what drawing problems could notice */
}

bool random_chance(random_state *r, double share)
{
    return random_unit(r) < share;
}

double random_log(random_state *r, double low, double high)
{
    return low * exp(random_unit(r) * log(high / low));
}

double random_normal(random_state *r)
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += random_unit(r);
    return (sum - 3) * 1.4142135623730951;
}

uint64_t random_seed(void)
{
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)time(NULL);
    return seed;
}

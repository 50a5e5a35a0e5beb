/* Random numbers, and those among them that are chosen with malice. */
#include "hostile.h"

draw draw_begin(uint64_t seed, int64_t number)
{
    draw d = {seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number * UINT64_C(0xd1342543de82ef95) + 1};
    for (int i = 0; i < 4; i++)
        (void)draw_next(&d);
    return d;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t draw_next(draw *d)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t draw_below(draw *d, int64_t count)
{
    return (int64_t)(draw_next(d) % (uint64_t)count);
}

bool draw_chance(draw *d, int percent)
{
    return draw_below(d, 100) < percent;
}

int64_t draw_size(draw *d)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 80};
    const int64_t count = sizeof sizes / sizeof sizes[0];
    return draw_chance(d, 3) ? 0 : sizes[1 + draw_below(d, count - 1)];
}

int64_t draw_wrong(draw *d)
{
    static const int64_t edges[] = {0, 8, 16, 20, 24, 31, 32, 40, 48, 61, 62};
    const int64_t count = sizeof edges / sizeof edges[0];
    if (draw_chance(d, 15))
        return draw_chance(d, 50) ? INT64_MAX - draw_below(d, 3) : INT64_MIN + draw_below(d, 3);
    const int64_t near = (INT64_C(1) << edges[draw_below(d, count)]) + draw_below(d, 5) - 2;
    return draw_chance(d, 40) ? -near : near;
}

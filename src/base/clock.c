#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static double (*_Atomic other)(void);

void spk_clock_use(double (*now_us)(void))
{
    atomic_store(&other, now_us);
}

double spk_now_us(void)
{
    double (*const now_us)(void) = atomic_load_explicit(&other, memory_order_relaxed);
    struct timespec t;
    if (now_us != NULL)
        return now_us();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int64_t spk_unix_time_s(void)
{
    return (int64_t)time(NULL);
}

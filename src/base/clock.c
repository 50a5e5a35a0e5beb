#include "base/clock.h"

#include <time.h>

double spk_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int64_t spk_unix_time_s(void)
{
    return (int64_t)time(NULL);
}

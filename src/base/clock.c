#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static double (*_Atomic other)(void);

void spk_clock_use(double (*now_us)(void))
{
    atomic_store(&other, now_us);
}

static double of_clock_us(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

double spk_now_us(void)
{
    double (*const now_us)(void) = atomic_load_explicit(&other, memory_order_relaxed);
    return now_us != NULL ? now_us() : of_clock_us(CLOCK_MONOTONIC);
}

bool spk_clock_is_real(void)
{
    return atomic_load_explicit(&other, memory_order_relaxed) == NULL;
}

double spk_thread_cpu_us(void)
{
    return of_clock_us(CLOCK_THREAD_CPUTIME_ID);
}

double spk_process_cpu_us(void)
{
    return of_clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t spk_unix_time_s(void)
{
    return (int64_t)time(NULL);
}

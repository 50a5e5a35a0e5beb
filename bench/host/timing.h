/* What the programs here time with: microseconds of a clock that only goes forward, and the median of samples. */
#ifndef SPARSEK_BENCH_TIMING_H
#define SPARSEK_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    return samples[count / 2];
}

#endif

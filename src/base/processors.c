#include "base/processors.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/environment.h"

enum { MOST_THREADS = 1024 };

/* A container's share of processors, rounded up; MOST_THREADS where there is no limit. */
static int quota_threads(void)
{
    long long quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (file == NULL)
        return MOST_THREADS;
    int fields = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    if (fields != 2 || quota <= 0 || period <= 0)
        return MOST_THREADS;
    long long threads = (quota + period - 1) / period;
    return threads < MOST_THREADS ? (int)threads : MOST_THREADS;
}

int spk_probe_processors(void)
{
    cpu_set_t set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : online > 0 ? (int)online : 1;
}

int spk_probe_threads(void)
{
    const char *wanted = spk_environment_value("OMP_NUM_THREADS");
    const long asked = wanted != NULL && wanted[0] >= '0' && wanted[0] <= '9' ? strtol(wanted, NULL, 10) : 0;
    if (asked > 0)
        return asked < MOST_THREADS ? (int)asked : MOST_THREADS;
    const int threads = spk_probe_processors(), quota = quota_threads();
    return threads < quota ? threads : quota;
}

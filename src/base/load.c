/* The load of the processors from /proc/stat. */
#include "base/load.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

static const double least_s = 0.2; /* the system counts in hundredths */
static const double slack = 0.25;  /* processors: what a quiet machine does beside us */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Adds a line "cpu3 user nice system idle iowait irq softirq steal ..." where that processor is ours. */
static void add_line(spk_load *load, const char *line, const cpu_set_t *ours, double tick_s)
{
    int cpu = -1;
    unsigned long long t[8] = {0};
    if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 9)
        return;
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, ours))
        return;
    load->cpus++;
    load->busy_s += tick_s * (double)(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
}

spk_load spk_load_now(void)
{
    spk_load load = {.at_s = 1e-6 * spk_now_us()};
    struct rusage usage;
    cpu_set_t ours;
    char line[512];
    long ticks = sysconf(_SC_CLK_TCK);
    FILE *file = ticks > 0 && sched_getaffinity(0, sizeof ours, &ours) == 0 && getrusage(RUSAGE_SELF, &usage) == 0
                     ? fopen("/proc/stat", "re")
                     : NULL;
    if (file == NULL)
        return load;
    while (fgets(line, sizeof line, file) != NULL && strncmp(line, "cpu", 3) == 0)
        add_line(&load, line, &ours, 1.0 / (double)ticks);
    fclose(file);
    load.own_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    return load;
}

/* "tid (name) S ...": the name may hold anything. */
static bool is_running(const char *path)
{
    char line[128] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false; /* it has ended */
    const bool told = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *end = told ? strrchr(line, ')') : NULL;
    return end != NULL && end[1] == ' ' && end[2] == 'R';
}

int spk_load_own(void)
{
    int running = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return 1;
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[32 + sizeof task->d_name];
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        running += task->d_name[0] != '.' && is_running(path);
    }
    closedir(tasks);
    return running > 1 ? running : 1;
}

/* Processors that do not work for others, by what is running. */
static long processors_left(int threads)
{
    int running = 0;
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    FILE *file = fopen("/proc/loadavg", "re");
    if (file == NULL)
        return threads;
    const bool told = fscanf(file, "%*s %*s %*s %d/", &running) == 1;
    fclose(file);
    if (!told || running - 1 + threads <= cpus)
        return threads;
    return cpus - (running - spk_load_own()); /* OpenMP's threads look for work for a while after the last: they are no others */
}

bool spk_load_busy(int threads)
{
    return processors_left(threads) < threads;
}

int spk_load_left(int threads)
{
    const long left = processors_left(threads);
    return left >= threads ? threads : left > 1 ? (int)left : 1;
}

bool spk_load_crowded(const spk_load *from, const spk_load *to, int threads)
{
    double time_s = to->at_s - from->at_s;
    if (from->cpus == 0 || from->cpus != to->cpus || time_s < least_s)
        return false;
    double others = (to->busy_s - from->busy_s - (to->own_s - from->own_s)) / time_s;
    return threads + others > from->cpus + slack;
}

long spk_load_forced_switches(void)
{
    struct rusage usage;
    return spk_clock_is_real() && getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

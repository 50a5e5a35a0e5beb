/* Linux: /proc/meminfo, and the limits of the control groups (version 2) that the process is in, a container's among them. */
#include "base/free_memory.h"

#include <stdio.h>
#include <string.h>

enum {
    LARGE = 1 << 28, /* bytes from which on memory is counted first, */
    MARGIN = 32,     /* of which one part in so many is left to others */
    PAGE = 4096
};

/* The number after `key` in a file of lines "key number"; -1: there is none. NULL: the first number in the file ("max" is none). */
static int64_t number_in(const char *path, const char *key)
{
    char line[256];
    long long found = -1;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    const size_t length = key != NULL ? strlen(key) : 0;
    while (found < 0 && fgets(line, sizeof line, file) != NULL)
        if ((key == NULL || strncmp(line, key, length) == 0) && sscanf(line + length, "%lld", &found) != 1)
            found = -1;
    fclose(file);
    return found;
}

static int64_t not_negative(int64_t value)
{
    return value > 0 ? value : 0;
}

/* What a group may still take; INT64_MAX: it has no limit. What it used for files is given back when it is short. */
static int64_t left_in_group(const char *folder)
{
    char limit_path[640], used_path[640], parts_path[640];
    snprintf(limit_path, sizeof limit_path, "%s/memory.max", folder);
    snprintf(used_path, sizeof used_path, "%s/memory.current", folder);
    snprintf(parts_path, sizeof parts_path, "%s/memory.stat", folder);
    const int64_t limit = number_in(limit_path, NULL);
    if (limit < 0)
        return INT64_MAX;
    const int64_t files = not_negative(number_in(parts_path, "inactive_file ")) + not_negative(number_in(parts_path, "active_file "));
    return not_negative(limit - not_negative(number_in(used_path, NULL) - files));
}

/* The folder of this process's group, "/sys/fs/cgroup" and what /proc/self/cgroup says. */
static void find_group(char *folder, size_t size)
{
    char line[512];
    snprintf(folder, size, "/sys/fs/cgroup");
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(folder, size, "/sys/fs/cgroup%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    fclose(file);
}

int64_t spk_free_memory(void)
{
    char folder[600];
    const int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    if (kib < 0)
        return 0;
    int64_t least = 1024 * (kib + not_negative(number_in("/proc/meminfo", "SwapFree:")));
    find_group(folder, sizeof folder);
    for (char *end; (end = strrchr(folder, '/')) >= folder + strlen("/sys/fs"); *end = '\0') { /* a group, and those that it is in */
        const int64_t left = left_in_group(folder);
        least = left < least ? left : least;
    }
    return least > 0 ? least : 1;
}

bool spk_memory_suffices(size_t bytes, int64_t *room)
{
    *room = bytes < LARGE ? 0 : spk_free_memory();
    return *room <= 0 || bytes <= (uint64_t)(*room - *room / MARGIN);
}

void spk_memory_use(void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes && bytes >= LARGE; at += PAGE)
        ((volatile char *)memory)[at] = 0;
}

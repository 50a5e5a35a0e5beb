/* Linux: /proc/meminfo, the limits of the control groups (version 1 or 2) that the process is in, a container's among them, and its own
 * limits. */
#include "base/free_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* Where a version of the control groups keeps what it says of memory. */
typedef struct group_files {
    const char *folder, *limit, *used, *inactive, *active;
    bool (*mine)(const char *controllers, size_t length); /* of a line in /proc/self/cgroup */
} group_files;

static bool without_controllers(const char *controllers, size_t length)
{
    (void)controllers;
    return length == 0;
}

static bool with_memory(const char *controllers, size_t length)
{
    for (const char *at = controllers, *end = controllers + length; at < end; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == strlen("memory") && strncmp(at, "memory", strlen("memory")) == 0)
            return true;
    return false;
}

static const group_files groups[] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ", "active_file ", without_controllers},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "total_active_file ", with_memory},
};

/* What a group may still take; INT64_MAX: it has no limit. What it used for files is given back when it is short. */
static int64_t left_in_group(const char *folder, const group_files *files)
{
    char limit_path[960], used_path[960], parts_path[960];
    snprintf(limit_path, sizeof limit_path, "%s/%s", folder, files->limit);
    snprintf(used_path, sizeof used_path, "%s/%s", folder, files->used);
    snprintf(parts_path, sizeof parts_path, "%s/memory.stat", folder);
    const int64_t limit = number_in(limit_path, NULL);
    if (limit < 0)
        return INT64_MAX;
    const int64_t given_back = not_negative(number_in(parts_path, files->inactive)) + not_negative(number_in(parts_path, files->active));
    return not_negative(limit - not_negative(number_in(used_path, NULL) - given_back));
}

/* The folder of this process's group, where the system keeps it: below `files->folder`, at what /proc/self/cgroup says of it. */
static void find_group(const char *root, const group_files *files, char *folder, size_t size)
{
    char line[512], list[300];
    snprintf(folder, size, "%s%s", root, files->folder);
    snprintf(list, sizeof list, "%s/proc/self/cgroup", root);
    FILE *file = fopen(list, "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) { /* number:controllers:/path */
        const char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path != NULL && path[1] == '/' && files->mine(controllers + 1, (size_t)(path - controllers - 1)))
            snprintf(folder, size, "%s%s%.*s", root, files->folder, (int)strcspn(path + 1, "\n"), path + 1);
    }
    fclose(file);
}

/* The least that the group and those that it is in may still take. Within a container the path may be the host's: its own limit is at the
 * top. */
static int64_t left_in_groups(const char *root, const group_files *files)
{
    char folder[900];
    int64_t least = INT64_MAX;
    find_group(root, files, folder, sizeof folder);
    const char *top = folder + strlen(root) + strlen("/sys/fs");
    for (char *end; (end = strrchr(folder, '/')) >= top; *end = '\0') {
        const int64_t left = left_in_group(folder, files);
        least = left < least ? left : least;
    }
    return least;
}

int64_t spk_free_memory_of(const char *root)
{
    char path[300];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    const int64_t kib = number_in(path, "MemAvailable:");
    if (kib < 0)
        return 0;
    int64_t least = 1024 * (kib + not_negative(number_in(path, "SwapFree:")));
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const int64_t left = left_in_groups(root, &groups[i]);
        least = left < least ? left : least;
    }
    return least > 0 ? least : 1;
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static int64_t left_below(int resource, int64_t used)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    return not_negative((int64_t)limit.rlim_cur - used);
}

int64_t spk_address_space_left(void)
{
    long long pages[6] = {0}; /* all, resident, shared, code, 0, data and stack */
    if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA))
        return INT64_MAX;
    const int64_t page = (int64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        for (size_t i = 0; i < sizeof pages / sizeof pages[0] && fscanf(file, "%lld", &pages[i]) == 1; i++)
            continue;
        fclose(file);
    }
    const int64_t space = left_below(RLIMIT_AS, pages[0] * page), data = left_below(RLIMIT_DATA, pages[5] * page);
    return space < data ? space : data;
}

int64_t spk_free_memory(void)
{
    const int64_t memory = spk_free_memory_of(""), space = spk_address_space_left();
    return memory < space ? memory : space > 0 ? space : 1;
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

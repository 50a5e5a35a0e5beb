/* Linux: /proc/meminfo, and the limit of the control group (version 2) that a container runs in. */
#include "base/free_memory.h"

#include <stdio.h>
#include <string.h>

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

int64_t spk_free_memory(void)
{
    static const char limit_path[] = "/sys/fs/cgroup/memory.max", used_path[] = "/sys/fs/cgroup/memory.current", parts_path[] = "/sys/fs/cgroup/memory.stat";
    const int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    if (kib < 0)
        return 0;
    const int64_t free_bytes = 1024 * (kib + not_negative(number_in("/proc/meminfo", "SwapFree:"))), limit = number_in(limit_path, NULL);
    if (limit < 0)
        return free_bytes;
    /* What it used for files is given back when it is short. */
    const int64_t files = not_negative(number_in(parts_path, "inactive_file ")) + not_negative(number_in(parts_path, "active_file "));
    const int64_t left = not_negative(limit - not_negative(number_in(used_path, NULL) - files));
    return left < free_bytes ? left : free_bytes;
}

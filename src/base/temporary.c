/* Names of files that are written aside, and the leftovers of writers that were killed. A temporary's name holds its writer's process,
 * and the writer holds a lock on it, which dies with the process on whatever machine that is: a file whose process is gone and whose
 * lock is free belongs to nobody. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/temporary.h"

enum { NAME_TRIES = 100, MOST_ENTRIES = 10000 }; /* entries of a folder that are looked at: leftovers are not worth a long walk */

/* A name that no other writer, thread or process, takes; O_EXCL settles what chance does not. */
static void make_name(char *out, size_t room, const char *target)
{
    static atomic_uint_fast64_t counter;
    const char *slash = strrchr(target, '/');
    uint64_t noise = 0;
    if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) != (ssize_t)sizeof noise)
        noise = (uint64_t)(spk_now_us() * 1e3);
    noise ^= (uint64_t)atomic_fetch_add(&counter, 1) << 48;
    snprintf(out, room, "%.*s.sparsek-%ld-%016llx.tmp", slash ? (int)(slash + 1 - target) : 0, target, (long)getpid(),
             (unsigned long long)noise);
}

/* The process in a temporary's name; 0: it is none. */
static pid_t owner_of(const char *name)
{
    char *end = NULL;
    if (strncmp(name, ".sparsek-", 9) != 0 || name[9] < '1' || name[9] > '9')
        return 0;
    errno = 0;
    long process = strtol(name + 9, &end, 10);
    bool whole = errno == 0 && (pid_t)process == process && *end == '-' && strspn(end + 1, "0123456789abcdef") == 16 &&
                 strcmp(end + 17, ".tmp") == 0;
    return whole ? (pid_t)process : 0;
}

static void remove_leftover(int folder, const char *name)
{
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (file < 0)
        return;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(file);
}

void spk_temporary_sweep(const char *target)
{
    char path[4096];
    const char *slash = strrchr(target, '/');
    int length = slash ? (int)(slash + 1 - target) : 0;
    if ((size_t)length >= sizeof path)
        return;
    snprintf(path, sizeof path, "%.*s", length ? length : 1, length ? target : ".");
    DIR *folder = opendir(path);
    if (!folder)
        return;
    const struct dirent *entry;
    for (int i = 0; i < MOST_ENTRIES && (entry = readdir(folder)); i++) {
        pid_t owner = owner_of(entry->d_name);
        if (owner && kill(owner, 0) != 0 && errno == ESRCH)
            remove_leftover(dirfd(folder), entry->d_name);
    }
    closedir(folder);
}

int spk_temporary_open(char *name, size_t room, const char *target, mode_t mode)
{
    for (int attempt = 0; attempt <= NAME_TRIES; attempt++) {
        make_name(name, room, target);
        int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file >= 0) {
            (void)flock(file, LOCK_EX | LOCK_NB); /* a file system without locks has no leftovers removed either */
            return file;
        }
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    return -1;
}

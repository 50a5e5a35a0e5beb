/* Whom a store is believed: what it names is run. */
#include <stdio.h>
#include <unistd.h>

#include "store/store_internal.h"

/* Root may do anything in any case; a store that an image ships is root's. */
static bool is_ours(const struct stat *about)
{
    return about->st_uid == geteuid() || about->st_uid == 0;
}

bool spk_store_trusts(const spk_store *store, const struct stat *about, char *reason, size_t size)
{
    static const char *const beside[] = {"-journal", "-wal"};
    char path[4096];
    struct stat other;
    if (!is_ours(about) && !(store->by_library && about->st_uid == store->library_user)) {
        snprintf(reason, size, "it belongs to user %lu, who is neither this process's user nor root", (unsigned long)about->st_uid);
        return false;
    }
    if ((about->st_mode & 022) != 0) {
        snprintf(reason, size, "other users may write it (mode %03o): chmod go-w", (unsigned)about->st_mode & 0777);
        return false;
    }
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        int length = snprintf(path, sizeof path, "%s%s", store->path, beside[i]);
        if (length < 0 || (size_t)length >= sizeof path || lstat(path, &other) != 0 || (is_ours(&other) && S_ISREG(other.st_mode)))
            continue;
        snprintf(reason, size, "its %s belongs to user %lu, or is no file", beside[i] + 1, (unsigned long)other.st_uid);
        return false;
    }
    return true;
}

/* Where the store is: the caller's path, else the environment's. The path is made absolute at once, since it is opened later and the
 * program may have changed its folder by then. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/environment.h"
#include "store/store_internal.h"

spk_status spk_store_path_find(const spk_mem *mem, const char *path, char **out, bool *given, const char **why)
{
    *why = NULL;
    if (path == NULL)
        path = spk_environment("SPARSEK_STORE");
    *given = path != NULL;
    if (path != NULL)
        return path[0] == '\0' ? spk_strdup(mem, "", out) : spk_path_absolute(mem, path, out);
    char *folder = NULL;
    SPK_TRY(spk_cache_folder(mem, &folder));
    spk_status status;
    if (folder[0] != '\0') {
        status = spk_path_join(mem, folder, "store.db", out);
    } else {
        *why = "neither SPARSEK_STORE, SPARSEK_CACHE_DIR, XDG_CACHE_HOME nor HOME names a place for it";
        status = spk_strdup(mem, "", out);
    }
    spk_free(mem, folder);
    return status;
}

/* A folder in which this process may make something. /proc and /sys allow it by their modes, and take nothing. */
static bool takes_files(const char *folder)
{
    struct stat about;
    struct statfs system;
    if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode) || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return false;
    return statfs(folder, &system) != 0 || (system.f_type != PROC_SUPER_MAGIC && system.f_type != SYSFS_MAGIC);
}

static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 || errno != ENOENT;
}

bool spk_store_path_usable(const spk_store *store)
{
    struct stat about;
    char folder[PATH_MAX];
    if (stat(store->path, &about) == 0)
        return true; /* its first use looks at it */
    const size_t length = strlen(store->path);
    if (length >= sizeof folder || is_there(store->path)) /* such as a link to a file that is not there */
        return false;
    memcpy(folder, store->path, length + 1);
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        slash[slash == folder] = '\0';
        if (store->given || slash == folder || is_there(folder))
            return takes_files(folder);
    }
    return false;
}

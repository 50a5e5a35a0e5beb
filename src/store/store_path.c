/* Where the store is: the caller's path, else the environment's. The path is made absolute at once, since it is opened later and the
 * program may have changed its folder by then. */
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

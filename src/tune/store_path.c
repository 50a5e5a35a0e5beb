/* Where the store is: the caller's path, else the environment's. The path is made absolute at once, since it is opened later and the
 * program may have changed its folder by then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tune/store_internal.h"

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static spk_status join(const spk_mem *mem, const char *folder, const char *tail, char **out)
{
    size_t size = strlen(folder) + strlen(tail) + 2;
    char *text = NULL;
    SPK_TRY(spk_alloc(mem, size, 1, &text));
    size_t length = strlen(folder);
    snprintf(text, size, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", tail);
    *out = text;
    return SPK_OK;
}

static spk_status absolute(const spk_mem *mem, const char *path, char **out)
{
    if (path[0] == '/')
        return spk_strdup(mem, path, out);
    char *here = getcwd(NULL, 0);
    spk_status status = here != NULL ? join(mem, here, path, out) : spk_strdup(mem, path, out);
    free(here);
    return status;
}

spk_status spk_store_path_find(const spk_mem *mem, const char *path, char **out, bool *given, const char **why)
{
    *why = NULL;
    if (path == NULL)
        path = environment("SPARSEK_STORE");
    *given = path != NULL;
    if (path != NULL)
        return path[0] == '\0' ? spk_strdup(mem, "", out) : absolute(mem, path, out);
    char *joined = NULL;
    const char *cache = environment("SPARSEK_CACHE_DIR"), *xdg = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    if (cache != NULL) {
        SPK_TRY(join(mem, cache, "store.db", &joined));
        spk_status status = absolute(mem, joined, out);
        spk_free(mem, joined);
        return status;
    }
    if (xdg != NULL && xdg[0] == '/') /* a relative one counts as unset, by the XDG specification */
        return join(mem, xdg, "sparsek/store.db", out);
    if (home != NULL && home[0] == '/')
        return join(mem, home, ".cache/sparsek/store.db", out);
    *why = "neither SPARSEK_STORE, SPARSEK_CACHE_DIR, XDG_CACHE_HOME nor HOME names a place for it";
    return spk_strdup(mem, "", out);
}

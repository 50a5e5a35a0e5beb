/* Where things are kept between runs. */
#include "base/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"

spk_status spk_path_join(const spk_mem *mem, const char *folder, const char *tail, char **out)
{
    size_t size = strlen(folder) + strlen(tail) + 2;
    char *text = NULL;
    SPK_TRY(spk_alloc(mem, size, 1, &text));
    size_t length = strlen(folder);
    snprintf(text, size, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", tail);
    *out = text;
    return SPK_OK;
}

spk_status spk_path_absolute(const spk_mem *mem, const char *path, char **out)
{
    if (path[0] == '/')
        return spk_strdup(mem, path, out);
    char *here = getcwd(NULL, 0);
    spk_status status = here != NULL ? spk_path_join(mem, here, path, out) : spk_strdup(mem, path, out);
    free(here);
    return status;
}

spk_status spk_cache_folder(const spk_mem *mem, char **folder)
{
    const char *cache = spk_environment("SPARSEK_CACHE_DIR"), *xdg = spk_environment("XDG_CACHE_HOME"), *home = spk_environment("HOME");
    if (cache != NULL)
        return spk_path_absolute(mem, cache, folder);
    if (xdg != NULL && xdg[0] == '/') /* a relative one counts as unset, by the XDG specification */
        return spk_path_join(mem, xdg, "sparsek", folder);
    if (home != NULL && home[0] == '/')
        return spk_path_join(mem, home, ".cache/sparsek", folder);
    return spk_strdup(mem, "", folder);
}

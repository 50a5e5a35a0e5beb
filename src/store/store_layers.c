/* The files that a store is looked up before: one below it, and the bundle that came with the library. Neither is ever written. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/own_file.h"
#include "store/store_internal.h"

/* bundle.db beside the library (in a wheel), or where it is installed. false: there is none. */
static bool find_bundle(char *path, size_t size, uid_t *library_user)
{
    static const char *const places[] = {"", "/../share/sparsek", "/../../share/sparsek"};
    char real[PATH_MAX];
    struct stat library;
    if (!spk_own_file(real, &library))
        return false;
    *strrchr(real, '/') = '\0';
    *library_user = library.st_uid;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, size, "%s%s/bundle.db", real, places[i]) < (int)size && access(path, R_OK) == 0)
            return true;
    return false;
}

static spk_status open_bundle(spk_store *store)
{
    char path[PATH_MAX];
    uid_t library_user = 0;
    const char *wish = spk_environment_value("SPARSEK_BUNDLE");
    if (wish != NULL && wish[0] == '\0')
        return SPK_OK;
    const bool found = wish == NULL && find_bundle(path, sizeof path, &library_user);
    if (wish == NULL && !found)
        return SPK_OK;
    SPK_TRY(spk_store_open(&store->mem, wish != NULL ? wish : path, store->log, store->log_user, &store->bundle));
    store->bundle->by_library = found;
    store->bundle->library_user = library_user;
    return SPK_OK;
}

spk_status spk_store_open_layers(spk_store *store)
{
    const char *below = spk_environment("SPARSEK_STORE_BELOW");
    if (below != NULL)
        SPK_TRY(spk_store_open(&store->mem, below, store->log, store->log_user, &store->below));
    return open_bundle(store);
}

void spk_store_close_layers(spk_store *store)
{
    spk_store_close(&store->below);
    spk_store_close(&store->bundle);
}

spk_store *spk_store_bundle(spk_store *store)
{
    return store->bundle;
}

const char *spk_store_below(const spk_store *store)
{
    return store->below != NULL ? store->below->path : "";
}

/* The vendor libraries of the CPU: found by looking at the file system, opened once at first use, never closed (their threads and exit
 * handlers would not survive it). One that is missing or broken only makes its rows not applicable. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/search.h"
#include "backend/cpu/vendor/vendor.h"
#include "base/hash.h"

enum { LIBRARIES = 3, LIBXSMM = 2, KEY_PATH_BYTES = 96 };
enum { UNOPENED, OPEN, BROKEN };

static const char *const openblas_files[] = {"libopenblas.so.0", "libopenblas.so", NULL};
static const char *const mkl_files[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so", NULL};
static const char *const no_files[] = {NULL};

static const struct {
    spk_library_names names;
    bool (*prepare)(void *handle, const spk_opened *opened, char *why, size_t size);
    void (*version)(void *handle, char *text, size_t size);
    const char *setting; /* of the environment, while it is opened; NULL: none */
} known[LIBRARIES] = {
    /* OpenBLAS' threads would spin for tens of milliseconds after each call, beside whatever runs next: 2^20 cycles are enough. */
    {{"openblas", "SPARSEK_OPENBLAS", openblas_files}, spk_openblas_prepare, spk_openblas_version, "OPENBLAS_THREAD_TIMEOUT=20"},
    {{"mkl", "SPARSEK_MKL", mkl_files}, spk_mkl_prepare, spk_mkl_version, NULL},
    {{"libxsmm", "", no_files}, NULL, NULL, NULL},
};

typedef struct entry {
    spk_library_file file;
    atomic_int state;
    void *handle;      /* once OPEN */
    char broken[512];  /* once BROKEN */
    char version[192]; /* once asked */
} entry;

struct spk_libraries {
    spk_mem mem;
    entry entries[LIBRARIES];
};

/* Opening is rare: one lock for all. A child of fork() starts with a free one. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static void renew_lock(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    open_lock = fresh;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, renew_lock);
}

spk_status spk_libraries_find(const spk_mem *mem, struct spk_libraries **libraries)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct spk_libraries *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    pthread_once(&once, watch_forks);
    made->mem = *mem;
    for (int i = 0; i < LIBXSMM; i++)
        spk_library_search(&known[i].names, &made->entries[i].file);
    entry *libxsmm = &made->entries[LIBXSMM];
#ifdef SPK_HAVE_LIBXSMM
    libxsmm->file.found = true;
    snprintf(libxsmm->file.path, sizeof libxsmm->file.path, "built in");
    snprintf(libxsmm->version, sizeof libxsmm->version, "%s", spk_libxsmm_version());
#else
    snprintf(libxsmm->file.why, sizeof libxsmm->file.why, "this build was made without it");
#endif
    *libraries = made;
    return SPK_OK;
}

void spk_libraries_release(struct spk_libraries **libraries)
{
    if (*libraries == NULL)
        return;
    spk_mem mem = (*libraries)->mem;
    spk_free(&mem, *libraries);
    *libraries = NULL;
}

int spk_libraries_count(void)
{
    return LIBRARIES;
}

static int index_of(const char *name)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (strcmp(known[i].names.name, name) == 0)
            return i;
    return -1;
}

bool spk_library_found(const spk_device *device, const char *name)
{
    int index = index_of(name);
    if (index < 0 || device->libraries == NULL)
        return false;
    entry *e = &device->libraries->entries[index];
    return e->file.found && atomic_load_explicit(&e->state, memory_order_acquire) != BROKEN;
}

/* dlopen under an environment with one more setting, unless the user has made it. Another thread may read the environment meanwhile, so
 * that the longer list is put in its place by one store and never freed. */
static void *open_with_setting(const char *path, const char *setting)
{
    static char **longer;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    if (longer != NULL || getenv(name) != NULL || spk_alloc(&spk_mem_system, count + 2, sizeof *longer, &longer) != SPK_OK)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    char **before = environ;
    memcpy(&longer[0], &setting, sizeof setting);
    for (size_t i = 0; i < count; i++)
        longer[i + 1] = before[i];
    longer[count + 1] = NULL;
    environ = longer;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    environ = before;
    return handle;
}

/* Under the lock: opens what is not open yet. */
static void open_entry(int index, entry *e)
{
    if (atomic_load_explicit(&e->state, memory_order_relaxed) != UNOPENED)
        return;
    spk_opened opened = {.path = e->file.path, .by_host = dlopen(e->file.path, RTLD_LAZY | RTLD_NOLOAD) != NULL};
    const char *setting = known[index].setting;
    void *handle = setting != NULL && !opened.by_host ? open_with_setting(e->file.path, setting) : dlopen(e->file.path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *error = dlerror();
        snprintf(e->broken, sizeof e->broken, "%s", error != NULL ? error : "dlopen failed");
    }
    bool usable = handle != NULL && known[index].prepare(handle, &opened, e->broken, sizeof e->broken);
    e->handle = usable ? handle : NULL;
    atomic_store_explicit(&e->state, usable ? OPEN : BROKEN, memory_order_release);
}

static spk_status open_at(struct spk_libraries *libraries, int index, void **handle)
{
    entry *e = &libraries->entries[index];
    const char *name = known[index].names.name;
    if (!e->file.found)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s: %s", name, e->file.why);
    if (known[index].prepare == NULL) { /* linked in: nothing to open */
        *handle = NULL;
        return SPK_OK;
    }
    if (atomic_load_explicit(&e->state, memory_order_acquire) == UNOPENED) {
        pthread_mutex_lock(&open_lock);
        open_entry(index, e);
        pthread_mutex_unlock(&open_lock);
    }
    if (atomic_load_explicit(&e->state, memory_order_acquire) != OPEN)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s: %s: %s", name, e->file.path, e->broken);
    *handle = e->handle;
    return SPK_OK;
}

spk_status spk_library_open(const spk_device *device, const char *name, void **handle)
{
    int index = index_of(name);
    if (index < 0 || device->libraries == NULL)
        return spk_fail(SPK_ERR_UNAVAILABLE, "there is no vendor library \"%s\" on this device", name);
    return open_at(device->libraries, index, handle);
}

spk_status spk_libraries_info(struct spk_libraries *libraries, int index, spk_library_info *info)
{
    if (index < 0 || index >= LIBRARIES)
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: there are %d vendor libraries", index, LIBRARIES);
    entry *e = &libraries->entries[index];
    void *handle = NULL;
    bool usable = e->file.found && open_at(libraries, index, &handle) == SPK_OK;
    if (usable && known[index].version != NULL) {
        pthread_mutex_lock(&open_lock);
        if (e->version[0] == '\0')
            known[index].version(handle, e->version, sizeof e->version);
        pthread_mutex_unlock(&open_lock);
    }
    info->name = known[index].names.name;
    info->found = e->file.found;
    info->path = e->file.path;
    info->version = usable ? e->version : "";
    info->why = !e->file.found ? e->file.why : usable ? "" : e->broken;
    return SPK_OK;
}

bool spk_library_function(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* A path that is long or has unusual characters is known by its hash, so that a key stays one short word. */
static void key_path(const char *path, char *text, size_t size)
{
    static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
    const size_t bytes = strlen(path) + 1;
    if (bytes <= size && path[strspn(path, usual)] == '\0')
        memcpy(text, path, bytes);
    else
        snprintf(text, size, "#%016llx", (unsigned long long)spk_hash_text(SPK_HASH_START, path));
}

void spk_libraries_key(const struct spk_libraries *libraries, char *buffer, size_t size)
{
    size_t used = 0;
    if (size > 0)
        buffer[0] = '\0';
    for (int i = 0; i < LIBRARIES && used < size; i++) {
        const entry *e = &libraries->entries[i];
        char path[KEY_PATH_BYTES];
        key_path(e->file.path, path, sizeof path);
        const char *separator = i > 0 ? ";" : "", *name = known[i].names.name;
        int wrote;
        if (!e->file.found)
            wrote = snprintf(buffer + used, size - used, "%s%s:none", separator, name);
        else if (i == LIBXSMM)
            wrote = snprintf(buffer + used, size - used, "%s%s:%s", separator, name, e->version);
        else
            wrote = snprintf(buffer + used, size - used, "%s%s:%s:%lld:%lld", separator, name, path, (long long)e->file.bytes, (long long)e->file.mtime_ns);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

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
#include "base/environment.h"
#include "base/hash.h"

enum { LIBRARIES = 5, LIBXSMM = 4, KEY_PATH_BYTES = 96, KEY_CORE_BYTES = 32, MOST_REFUSALS = 16 };
enum { UNOPENED, OPEN, BROKEN };

/* Builds that share OpenMP's threads with us come first (Debian's, Fedora's): those with threads of their own wait while ours still spin,
 * and the other way round. */
static const char *const openblas_files[] = {
#ifdef SPK_HAVE_OPENMP
    "openblas-openmp/libopenblas.so.0",
    "libopenblaso.so.0",
#endif
    "libopenblas.so.0",
    "libopenblas.so",
    NULL,
};
static const char *const blis_files[] = {
#ifdef SPK_HAVE_OPENMP
    "blis-openmp/libblis.so.4",
#endif
    "libblis-mt.so.5",          "libblis-mt.so", "libblis.so.4", "libblis.so", NULL,
};
static const char *const mkl_files[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so", NULL};
static const char *const onednn_files[] = {"libdnnl.so.3", "libdnnl.so", NULL};
static const char *const no_files[] = {NULL};

static const struct {
    spk_library_names names;
    bool (*prepare)(void *handle, const spk_opened *opened, char *why, size_t size);
    void (*version)(void *handle, char *text, size_t size);
    /* what it takes is there; asked before it is opened. NULL: it takes nothing unasked */
    bool (*fits)(int threads, int had, char *why, size_t size);
    const char *core; /* the variable that tells it which processor to take this one for; NULL: it has none */
    bool deep; /* its functions find each other by names that another library of the program may have, too (sgemm_): its own come first */
} known[LIBRARIES] = {
    {{"openblas", "SPARSEK_OPENBLAS", openblas_files},
     spk_openblas_prepare,
     spk_openblas_version,
     spk_openblas_fits,
     "OPENBLAS_CORETYPE",
     true},
    {{"blis", "SPARSEK_BLIS", blis_files}, spk_blis_prepare, spk_blis_version, spk_blis_fits, "BLIS_ARCH_TYPE", true},
    {{"mkl", "SPARSEK_MKL", mkl_files}, spk_mkl_prepare, spk_mkl_version, spk_mkl_fits, NULL, false},
    {{"onednn", "SPARSEK_ONEDNN", onednn_files}, spk_onednn_prepare, spk_onednn_version, spk_onednn_fits, NULL, false},
#ifdef SPK_HAVE_LIBXSMM
    {{"libxsmm", "", no_files}, spk_libxsmm_prepare, NULL, spk_libxsmm_fits, NULL, false},
#else
    {{"libxsmm", "", no_files}, NULL, NULL, NULL, NULL, false},
#endif
};

typedef struct entry {
    spk_library_file file;
    bool no_room; /* it is there, but this process could not use it */
    atomic_int state;
    void *handle;      /* once OPEN */
    char broken[512];  /* once BROKEN */
    char version[192]; /* once asked */
} entry;

struct spk_libraries {
    spk_mem mem;
    int threads; /* that use them */
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

/* What the library would take is there. One that the program has open has it already. */
static bool fits(int index, int threads, bool by_host, char *why, size_t size)
{
    return by_host || known[index].fits == NULL || known[index].fits(threads, 0, why, size);
}

/* The handle of a library that this process has open; NULL: it has not. It names the library, and is not to be used. */
static void *open_already(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL)
        dlclose(handle);
    return handle;
}

/* A library that this process could not use is none. */
static void find_one(int index, entry *e, int threads)
{
    char why[200];
    spk_library_search(&known[index].names, &e->file);
    if (!e->file.found || fits(index, threads, open_already(e->file.path) != NULL, why, sizeof why))
        return;
    e->file.found = false;
    e->file.path[0] = '\0';
    snprintf(e->file.why, sizeof e->file.why, "%s", why);
    e->no_room = true;
}

/* It is linked in, or not. */
static void find_libxsmm(entry *e, int threads)
{
#ifdef SPK_HAVE_LIBXSMM
    const bool may = spk_code_may_be_made();
    if (!may)
        snprintf(e->file.why, sizeof e->file.why, "%s", spk_no_code);
    e->file.found = may && fits(LIBXSMM, threads, spk_libxsmm_is_ready(), e->file.why, sizeof e->file.why);
    e->no_room = !e->file.found;
    if (e->file.found) {
        snprintf(e->file.path, sizeof e->file.path, "built in");
        snprintf(e->version, sizeof e->version, "%s", spk_libxsmm_version());
    }
#else
    (void)threads;
    snprintf(e->file.why, sizeof e->file.why, "this build was made without it");
#endif
}

spk_status spk_libraries_find(const spk_mem *mem, int threads, struct spk_libraries **libraries)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct spk_libraries *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    pthread_once(&once, watch_forks);
    made->mem = *mem;
    made->threads = threads;
    for (int i = 0; i < LIBXSMM; i++)
        find_one(i, &made->entries[i], threads);
    find_libxsmm(&made->entries[LIBXSMM], threads);
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

const char spk_no_code[] = "the system refuses memory that is writable and executable, which its code needs";

const char spk_no_stack[] = "LIBXSMM makes code on the calling thread's stack, which has less than 192 KiB left";

static int index_of(const char *name)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (strcmp(known[i].names.name, name) == 0)
            return i;
    return -1;
}

/* LIBXSMM makes code when a plan is made, on the stack of the thread that makes it. */
static bool lacks_stack(int index)
{
#ifdef SPK_HAVE_LIBXSMM
    return index == LIBXSMM && !spk_libxsmm_has_stack();
#else
    (void)index;
    return false;
#endif
}

bool spk_libraries_lack_stack(const struct spk_libraries *libraries)
{
    return libraries->entries[LIBXSMM].file.found && lacks_stack(LIBXSMM);
}

bool spk_library_found(const spk_device *device, const char *name)
{
    int index = index_of(name);
    if (index < 0 || device->libraries == NULL)
        return false;
    entry *e = &device->libraries->entries[index];
    return e->file.found && atomic_load_explicit(&e->state, memory_order_acquire) != BROKEN && !lacks_stack(index);
}

const char *spk_library_why(const spk_device *device, const char *name)
{
    const int index = index_of(name);
    const entry *e = index >= 0 && device->libraries != NULL ? &device->libraries->entries[index] : NULL;
    if (e != NULL && !e->file.found && e->no_room)
        return e->file.why;
    if (e != NULL && atomic_load_explicit(&e->state, memory_order_acquire) == BROKEN)
        return e->broken;
    if (e != NULL && e->file.found && lacks_stack(index))
        return spk_no_stack;
    return "its library was not found";
}

/* The sanitizers' dlopen ends the process where it meets RTLD_DEEPBIND. */
static int open_flags(int index)
{
#ifdef RTLD_DEEPBIND
    if (known[index].deep && dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") == NULL)
        return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
    (void)index;
    return RTLD_NOW | RTLD_LOCAL;
}

/* false: why says why not. LIBXSMM is linked in: it has no handle. */
static bool open_file(int index, const char *path, void **handle, char *why, size_t size)
{
    *handle = index == LIBXSMM ? NULL : dlopen(path, open_flags(index));
    if (*handle != NULL || index == LIBXSMM)
        return true;
    const char *error = dlerror();
    snprintf(why, size, "%s", error != NULL ? error : "dlopen failed");
    return false;
}

/* What was opened and refused stays open, as all do. No later context may take it for a library that the program has open: those are
 * checked less. So a refusal holds as long as the process, whichever path leads to the library. Under the lock. */
typedef struct refusal {
    int index;
    void *handle;
    bool by_host;
    char why[512];
} refusal;

static refusal refusals[MOST_REFUSALS];
static int refusal_count;

/* false: it was refused before, or a refusal could not be noted any more; why says so. */
static bool may_open(int index, const char *path, bool *by_host, char *why, size_t size)
{
    const void *handle = open_already(path);
    *by_host = handle != NULL;
    for (int i = 0; handle != NULL && i < refusal_count; i++) {
        if (refusals[i].handle != handle)
            continue;
        *by_host = refusals[i].by_host;
        if (refusals[i].index == index) {
            snprintf(why, size, "%s", refusals[i].why);
            return false;
        }
    }
    if (refusal_count == MOST_REFUSALS)
        snprintf(why, size, "no other library is opened after %d were refused", refusal_count);
    return refusal_count < MOST_REFUSALS;
}

static void note_refusal(int index, void *handle, bool by_host, const char *why)
{
    refusal *noted = &refusals[refusal_count++];
    *noted = (refusal){.index = index, .handle = handle, .by_host = by_host};
    snprintf(noted->why, sizeof noted->why, "%s", why);
}

/* Under the lock. false: why says why not. LIBXSMM has no handle: what it lacked it may have another time. */
static bool make_ready(int index, const char *path, int threads, void **handle, char *why, size_t size)
{
    spk_opened opened = {.path = path};
#ifdef SPK_HAVE_LIBXSMM
    if (index == LIBXSMM)
        opened.by_host = spk_libxsmm_is_ready();
#endif
    if (index != LIBXSMM && !may_open(index, path, &opened.by_host, why, size))
        return false;
    if (!fits(index, threads, opened.by_host, why, size) || !open_file(index, path, handle, why, size))
        return false;
    if (known[index].prepare(*handle, &opened, why, size))
        return true;
    if (index != LIBXSMM)
        note_refusal(index, *handle, opened.by_host, why);
    return false;
}

/* Under the lock: opens what is not open yet. */
static void open_entry(int index, entry *e, int threads)
{
    if (atomic_load_explicit(&e->state, memory_order_relaxed) != UNOPENED)
        return;
    void *handle = NULL;
    const bool usable = make_ready(index, e->file.path, threads, &handle, e->broken, sizeof e->broken);
    e->handle = usable ? handle : NULL;
    atomic_store_explicit(&e->state, usable ? OPEN : BROKEN, memory_order_release);
}

static spk_status open_at(struct spk_libraries *libraries, int index, void **handle)
{
    entry *e = &libraries->entries[index];
    const char *name = known[index].names.name;
    if (!e->file.found)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s: %s", name, e->file.why);
    if (atomic_load_explicit(&e->state, memory_order_acquire) == UNOPENED) {
        pthread_mutex_lock(&open_lock);
        open_entry(index, e, libraries->threads);
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
    /* LIBXSMM's version is known: it is told without the memory that its tables take */
    const bool asked = index != LIBXSMM || atomic_load_explicit(&e->state, memory_order_acquire) == BROKEN;
    bool usable = e->file.found && (!asked || open_at(libraries, index, &handle) == SPK_OK);
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

/* A path (or a processor's name) that is long or has unusual characters is known by its hash, so that a key stays one short word. */
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
        char path[KEY_PATH_BYTES], core[KEY_CORE_BYTES];
        const char *wish = known[i].core != NULL ? spk_environment(known[i].core) : NULL;
        key_path(e->file.path, path, sizeof path);
        key_path(wish != NULL ? wish : "", core, sizeof core);
        const char *separator = i > 0 ? ";" : "", *name = known[i].names.name;
        int wrote;
        if (!e->file.found)
            wrote = snprintf(buffer + used, size - used, "%s%s:none", separator, name);
        else if (i == LIBXSMM)
            wrote = snprintf(buffer + used, size - used, "%s%s:%s", separator, name, e->version);
        else
            wrote = snprintf(buffer + used, size - used, "%s%s:%s:%lld:%lld%s%s", separator, name, path, (long long)e->file.bytes,
                             (long long)e->file.mtime_ns, core[0] != '\0' ? ":" : "", core);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* The vendor libraries of the GPU: found by looking at the file system, opened once at first use, never closed. One that is missing or
 * broken only makes its rows not applicable. */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/runtime/nvrtc.h"
#include "backend/cuda/vendor/vendor.h"
#include "backend/search.h"
#include "base/hash.h"

enum { LIBRARIES = 5 };
enum { UNOPENED, OPEN, BROKEN };

static const char *const cublaslt_files[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", NULL};
static const char *const cublas_files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
static const char *const cusparse_files[] = {"libcusparse.so.12", "libcusparse.so", NULL};
static const char *const cudnn_files[] = {"libcudnn.so.9", NULL};
static const char *const nvml_files[] = {"libnvidia-ml.so.1", NULL};

static const struct {
    spk_library_names names;
    const char *version_function; /* size_t (*)(void), or NULL */
} known[LIBRARIES] = {
    {{"cublaslt", "SPARSEK_CUBLASLT", cublaslt_files}, "cublasLtGetVersion"},
    {{"cublas", "SPARSEK_CUBLAS", cublas_files}, NULL},
    {{"cusparse", "SPARSEK_CUSPARSE", cusparse_files}, NULL},
    {{"cudnn", "SPARSEK_CUDNN", cudnn_files}, "cudnnGetVersion"},
    {{"nvml", "SPARSEK_NVML", nvml_files}, NULL},
};

typedef struct entry {
    spk_library_file file;
    atomic_int state;
    void *handle;     /* once OPEN */
    char broken[256]; /* once BROKEN */
    char version[64];
} entry;

struct spk_cuda_libraries {
    spk_mem mem;
    entry entries[LIBRARIES];
    entry nvrtc; /* for its facts alone: ../nvrtc.c opens it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* As NVRTC is found (nvrtc.c): loaded already, the loader, beside PyTorch or the CUDA runtime of this process, the Python environment, a
 * toolkit. */
static void search(int index, spk_library_file *file)
{
    static const char *const folders[] = {"$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cu13/lib",
                                          "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cublas/lib",
                                          "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cusparse/lib",
                                          "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cudnn/lib",
                                          "/usr/local/cuda*/lib64",
                                          "/usr/local/nvidia/lib64",
                                          NULL};
    static const char *const neighbours[] = {"libtorch", "libcudart", NULL};
    static const char *const beside[] = {".",
                                         "../../nvidia/cu13/lib",
                                         "../../nvidia/cublas/lib",
                                         "../../nvidia/cusparse/lib",
                                         "../../nvidia/cudnn/lib",
                                         "../../cublas/lib",
                                         "../../cusparse/lib",
                                         "../../cudnn/lib",
                                         NULL};
    spk_library_search_places(&known[index].names, &(spk_library_places){true, folders, neighbours, beside}, file);
}

spk_status spk_cuda_libraries_find(const spk_mem *mem, struct spk_cuda_libraries **libraries)
{
    struct spk_cuda_libraries *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    for (int i = 0; i < LIBRARIES; i++)
        search(i, &made->entries[i].file);
    spk_cuda_nvrtc_find(&made->nvrtc.file);
    *libraries = made;
    return SPK_OK;
}

void spk_cuda_libraries_release(struct spk_cuda_libraries **libraries)
{
    struct spk_cuda_libraries *old = *libraries;
    *libraries = NULL;
    if (old == NULL)
        return;
    spk_mem mem = old->mem;
    spk_free(&mem, old);
}

int spk_cuda_libraries_count(void)
{
    return LIBRARIES + 1; /* and NVRTC */
}

static entry *entry_of(struct spk_cuda_libraries *libraries, const char *name, int *index)
{
    for (int i = 0; libraries != NULL && i < LIBRARIES; i++)
        if (strcmp(known[i].names.name, name) == 0) {
            *index = i;
            return &libraries->entries[i];
        }
    return NULL;
}

bool spk_cuda_library_found(const spk_device *device, const char *name)
{
    int index = 0;
    entry *e = entry_of(spk_cuda_of(device)->libraries, name, &index);
    return e != NULL && e->file.found && atomic_load_explicit(&e->state, memory_order_acquire) != BROKEN;
}

static void open_entry(entry *e, int index)
{
    e->handle = dlopen(e->file.path, RTLD_NOW | RTLD_LOCAL);
    if (e->handle == NULL) {
        const char *why = dlerror();
        snprintf(e->broken, sizeof e->broken, "%.255s", why != NULL ? why : "dlopen failed");
    } else if (known[index].version_function != NULL) {
        void *found = dlsym(e->handle, known[index].version_function);
        size_t (*version)(void) = NULL;
        memcpy(&version, &found, sizeof version);
        if (version != NULL) { /* 130002: 13.0.2; cuDNN's 91002: 9.10.2 */
            size_t number = version();
            size_t major = number >= 90000 ? number / 10000 : number / 1000, rest = number >= 90000 ? number % 10000 : number % 1000;
            snprintf(e->version, sizeof e->version, "%zu.%zu.%zu", major, rest / 100, rest % 100);
        }
    }
    atomic_store_explicit(&e->state, e->handle != NULL ? OPEN : BROKEN, memory_order_release);
}

static spk_status open_one(struct spk_cuda_libraries *libraries, const char *name, void **handle)
{
    int index = 0;
    entry *e = entry_of(libraries, name, &index);
    if (e == NULL)
        return spk_fail(SPK_ERR_INTERNAL, "there is no library \"%s\"", name);
    if (!e->file.found)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s was not found: %s", name, e->file.why);
    pthread_mutex_lock(&lock);
    if (atomic_load_explicit(&e->state, memory_order_acquire) == UNOPENED)
        open_entry(e, index);
    pthread_mutex_unlock(&lock);
    if (atomic_load_explicit(&e->state, memory_order_acquire) == BROKEN)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s does not open: %s", e->file.path, e->broken);
    *handle = e->handle;
    return SPK_OK;
}

spk_status spk_cuda_library_open(const spk_device *device, const char *name, void **handle)
{
    return open_one(spk_cuda_of(device)->libraries, name, handle);
}

static void nvrtc_info(entry *e, spk_library_info *info)
{
    pthread_mutex_lock(&lock);
    if (e->file.found && spk_cuda_nvrtc_open(e->version, sizeof e->version) != SPK_OK)
        snprintf(e->broken, sizeof e->broken, "%.255s", spk_error_last());
    pthread_mutex_unlock(&lock);
    info->name = "nvrtc";
    info->found = e->file.found && e->broken[0] == '\0';
    info->path = e->file.path;
    info->version = e->version;
    info->why = info->found ? NULL : e->file.found ? e->broken : e->file.why;
}

spk_status spk_cuda_libraries_info(struct spk_cuda_libraries *libraries, int index, spk_library_info *info)
{
    if (index == LIBRARIES) {
        nvrtc_info(&libraries->nvrtc, info);
        return SPK_OK;
    }
    entry *e = &libraries->entries[index];
    void *handle = NULL;
    info->name = known[index].names.name;
    info->found = e->file.found;
    info->path = e->file.path;
    info->version = "";
    info->why = e->file.found ? NULL : e->file.why;
    if (e->file.found && open_one(libraries, info->name, &handle) != SPK_OK) {
        info->found = 0;
        info->why = e->broken;
    }
    info->version = e->version;
    return SPK_OK;
}

void spk_cuda_libraries_key(const struct spk_cuda_libraries *libraries, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; libraries != NULL && i <= LIBRARIES && used < size; i++) {
        const char *name =
            i < LIBRARIES ? known[i].names.name : "nvrtc"; /* with another compiler kernels are others, without one there are none */
        const spk_library_file *file = i < LIBRARIES ? &libraries->entries[i].file : &libraries->nvrtc.file;
        if (!file->found || strcmp(name, "nvml") == 0) /* nvml changes no result */
            continue;
        int length = snprintf(buffer + used, size - used, "%s%s:%016" PRIx64 ":%" PRId64 ":%" PRId64, used > 0 ? ";" : "", name,
                              spk_hash_text(SPK_HASH_START, file->path), file->bytes, file->mtime_ns);
        used += length > 0 ? (size_t)length : 0;
    }
}

spk_status spk_cuda_library_functions(void *handle, const char *library, const char *const *names, void **functions, int count)
{
    for (int i = 0; i < count; i++) {
        functions[i] = dlsym(handle, names[i]);
        if (functions[i] == NULL)
            return spk_fail(SPK_ERR_UNSUPPORTED, "%s has no function %s: another version is needed", library, names[i]);
    }
    return SPK_OK;
}

/* Finds, opens and calls NVRTC. It is never closed: other parts of the process may use the same copy. */
#include "backend/cuda/runtime/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/runtime/source.h"

typedef int nvrtc_result; /* 0: success */
typedef struct nvrtc_program_of_library *nvrtc_program;
enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_COMPILATION = 6 };

static struct {
    const char *(*error_text)(nvrtc_result);
    nvrtc_result (*version)(int *major, int *minor);
    nvrtc_result (*create)(nvrtc_program *, const char *source, const char *name, int headers, const char *const *texts,
                           const char *const *names);
    nvrtc_result (*destroy)(nvrtc_program *);
    nvrtc_result (*compile)(nvrtc_program, int count, const char *const *options);
    nvrtc_result (*log_size)(nvrtc_program, size_t *);
    nvrtc_result (*log)(nvrtc_program, char *);
    nvrtc_result (*cubin_size)(nvrtc_program, size_t *);
    nvrtc_result (*cubin)(nvrtc_program, char *);
    char version_text[32];
} nvrtc;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool opened;

void spk_cuda_nvrtc_find(spk_library_file *file)
{
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    static const char *const folders[] = {"$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cu13/lib",
                                          "$VIRTUAL_ENV/lib/python*/site-packages/nvidia/cuda_nvrtc/lib", "/usr/local/cuda*/lib64", NULL};
    static const char *const neighbours[] = {"libtorch", "libcudart", NULL};
    static const char *const beside[] = {".", "../../nvidia/cu13/lib", "../../nvidia/cuda_nvrtc/lib", "../../cuda_nvrtc/lib", NULL};
    spk_library_search_places(&(spk_library_names){"nvrtc", "SPARSEK_NVRTC", files},
                              &(spk_library_places){true, folders, neighbours, beside}, file);
}

/* NVRTC opens its builtins by name alone, which fails where their folder is not the loader's: having them open already is enough. */
static void open_builtins(const char *path, int major, int minor)
{
    char builtins[PATH_MAX + 64];
    const char *slash = strrchr(path, '/');
    snprintf(builtins, sizeof builtins, "%.*s/libnvrtc-builtins.so.%d.%d", slash != NULL ? (int)(slash - path) : 0, path, major, minor);
    dlopen(builtins, RTLD_NOW | RTLD_GLOBAL);
}

static spk_status open_library(void)
{
    spk_library_file file;
    spk_cuda_nvrtc_find(&file);
    if (!file.found)
        return spk_fail(SPK_ERR_UNAVAILABLE, "NVRTC, which compiles device programs, was not found: %s", file.why);
    void *handle = dlopen(file.path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return spk_fail(SPK_ERR_UNAVAILABLE, "NVRTC does not open: %s", dlerror());
    const struct {
        const char *name;
        void *entry;
    } entries[] = {
        {"nvrtcGetErrorString", &nvrtc.error_text}, {"nvrtcVersion", &nvrtc.version},         {"nvrtcCreateProgram", &nvrtc.create},
        {"nvrtcDestroyProgram", &nvrtc.destroy},    {"nvrtcCompileProgram", &nvrtc.compile},  {"nvrtcGetProgramLogSize", &nvrtc.log_size},
        {"nvrtcGetProgramLog", &nvrtc.log},         {"nvrtcGetCUBINSize", &nvrtc.cubin_size}, {"nvrtcGetCUBIN", &nvrtc.cubin}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(handle, entries[i].name);
        if (symbol == NULL)
            return spk_fail(SPK_ERR_UNAVAILABLE, "%s has no %s: is it NVRTC 11.1 or newer?", file.path, entries[i].name);
        memcpy(entries[i].entry, &symbol, sizeof symbol);
    }
    int major = 0, minor = 0;
    if (nvrtc.version(&major, &minor) != 0)
        return spk_fail(SPK_ERR_UNAVAILABLE, "%s does not tell its version", file.path);
    snprintf(nvrtc.version_text, sizeof nvrtc.version_text, "%d.%d", major, minor);
    open_builtins(file.path, major, minor);
    atomic_store(&opened, true);
    return SPK_OK;
}

spk_status spk_cuda_nvrtc_open(char *version, size_t size)
{
    spk_status status = SPK_OK;
    if (!atomic_load(&opened)) {
        pthread_mutex_lock(&open_lock);
        if (!atomic_load(&opened))
            status = open_library();
        pthread_mutex_unlock(&open_lock);
    }
    if (status == SPK_OK && version != NULL)
        snprintf(version, size, "%s", nvrtc.version_text);
    return status;
}

static spk_status failed(nvrtc_result result, const char *file, const char *call)
{
    return spk_fail(result == NVRTC_OUT_OF_MEMORY ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_INTERNAL, "%s: %s: %s", file, call,
                    nvrtc.error_text(result));
}

static spk_status fetch_log(const spk_mem *mem, nvrtc_program program, char **log)
{
    size_t size = 0;
    char *text = NULL;
    if (nvrtc.log_size(program, &size) != 0 || size == 0)
        size = 1;
    SPK_TRY(spk_calloc(mem, size, 1, &text));
    if (size > 1 && nvrtc.log(program, text) != 0)
        text[0] = '\0';
    *log = text;
    return SPK_OK;
}

static spk_status fetch_cubin(const spk_mem *mem, nvrtc_program program, const char *file, void **cubin, size_t *bytes)
{
    size_t size = 0;
    void *made = NULL;
    nvrtc_result result = nvrtc.cubin_size(program, &size);
    if (result != 0 || size == 0)
        return failed(result, file, "nvrtcGetCUBINSize");
    SPK_TRY(spk_alloc(mem, size, 1, &made));
    result = nvrtc.cubin(program, made);
    if (result != 0) {
        spk_free(mem, made);
        return failed(result, file, "nvrtcGetCUBIN");
    }
    *cubin = made;
    *bytes = size;
    return SPK_OK;
}

/* The first line of the compiler's messages that is an error, for the caller's message. */
static spk_status refused(const spk_mem *mem, nvrtc_program program, const char *file, nvrtc_result result)
{
    char *log = NULL;
    if (result != NVRTC_COMPILATION || fetch_log(mem, program, &log) != SPK_OK)
        return failed(result, file, "nvrtcCompileProgram");
    const char *error = strstr(log, "error");
    while (error != NULL && error > log && error[-1] != '\n')
        error--;
    spk_status status = spk_fail(SPK_ERR_INTERNAL, "%s does not compile: %.300s", file, error != NULL ? error : log);
    spk_free(mem, log);
    return status;
}

spk_status spk_cuda_nvrtc_compile(const spk_mem *mem, const char *file, const char *const *options, int option_count, void **cubin,
                                  size_t *bytes, char **log)
{
    SPK_TRY(spk_cuda_nvrtc_open(NULL, 0));
    const spk_cuda_source *source = spk_cuda_source_find(file);
    if (source == NULL)
        return spk_fail(SPK_ERR_INTERNAL, "no device program is named \"%s\"", file);
    const char *names[SPK_CUDA_MOST_HEADERS], *texts[SPK_CUDA_MOST_HEADERS];
    int headers = spk_cuda_source_headers(names, texts);
    nvrtc_program program = NULL;
    nvrtc_result result = nvrtc.create(&program, (const char *)source->text, file, headers, texts, names);
    if (result != 0)
        return failed(result, file, "nvrtcCreateProgram");
    spk_status status = SPK_OK;
    result = nvrtc.compile(program, option_count, options);
    char *messages = NULL;
    if (log != NULL)
        SPK_GOTO(fetch_log(mem, program, &messages));
    status = result != 0 ? refused(mem, program, file, result) : fetch_cubin(mem, program, file, cubin, bytes);
    if (log != NULL)
        *log = messages;
done:
    nvrtc.destroy(&program);
    return status;
}

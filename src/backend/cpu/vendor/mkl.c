/* MKL: its rows are those of a library with CBLAS (and mkl_bsr.c). Threads are set for the calling thread only. It is made to share our
 * OpenMP's threads (its GNU layer), unless the program had chosen its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/vendor/vendor.h"
#include "base/c_locale.h"
#include "base/environment.h"

enum { INTERFACE_LP64 = 0, INTERFACE_ILP64_BIT = 1, THREADING_SEQUENTIAL = 1, THREADING_GNU = 3 };

/* ------------------------------------------------------------------------------------------------ the library */

/* MKL ends the process where a part of it is missing, so the parts are looked for before anything is called. */
static bool parts_present(const char *path, int threading, char *why, size_t size)
{
    const char *const parts[] = {"core", "intel_lp64", threading == THREADING_GNU ? "gnu_thread" : "sequential", "def", "avx2"};
    const char *slash = strrchr(path, '/'), *suffix = slash != NULL ? strstr(slash, ".so") : NULL;
    if (suffix == NULL) {
        snprintf(why, size, "%s is not named like a shared library", path);
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char part[4096];
        snprintf(part, sizeof part, "%.*s/libmkl_%s%s", (int)(slash - path), path, parts[i], suffix);
        if (access(part, R_OK) != 0) {
            snprintf(why, size, "a part of it is not there: %.300s", part);
            return false;
        }
    }
    return true;
}

/* Its GNU layer takes OpenMP's functions from the process: ours are made visible to it, so that there is one pool of threads. */
static bool share_openmp(void)
{
#ifdef SPK_HAVE_OPENMP
    Dl_info where;
    void *function = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (function != NULL && dladdr(function, &where) != 0 && dlopen(where.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != NULL)
        return true;
#endif
    return dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL;
}

bool spk_mkl_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    int (*set_interface)(int) = NULL, (*set_threading)(int) = NULL, (*set_threads)(int) = NULL;
    spk_cblas cblas;
    const char *interface = spk_environment_value("MKL_INTERFACE_LAYER"), *threading = spk_environment_value("MKL_THREADING_LAYER");
    if (!spk_library_function(handle, "MKL_Set_Interface_Layer", &set_interface) ||
        !spk_library_function(handle, "MKL_Set_Threading_Layer", &set_threading) ||
        !spk_library_function(handle, "MKL_Set_Num_Threads_Local", &set_threads) || !spk_cblas_find(handle, &cblas)) {
        snprintf(why, size, "it lacks functions of libmkl_rt");
        return false;
    }
    if (interface != NULL && spk_holds_letters(interface, "ILP64")) {
        snprintf(why, size, "MKL_INTERFACE_LAYER = \"%s\": 32-bit integers (LP64) are needed", interface);
        return false;
    }
    if (!opened->by_host && (threading == NULL || *threading == '\0')) {
        int layer = share_openmp() ? THREADING_GNU : THREADING_SEQUENTIAL;
        if (!parts_present(opened->path, layer, why, size))
            return false;
        set_threading(layer);
    }
    if (set_interface(INTERFACE_LP64) & INTERFACE_ILP64_BIT) {
        snprintf(why, size, "the program uses it with 64-bit integers");
        return false;
    }
    return true;
}

void spk_mkl_version(void *handle, char *text, size_t size)
{
    void (*get)(char *, int) = NULL;
    if (spk_library_function(handle, "MKL_Get_Version_String", &get))
        get(text, (int)size);
    text[size - 1] = '\0';
    for (size_t length = strlen(text); length > 0 && text[length - 1] == ' '; length--)
        text[length - 1] = '\0';
}

spk_status spk_mkl_open(const spk_device *device, void **handle, spk_mkl *mkl)
{
    SPK_TRY(spk_library_open(device, "mkl", handle));
    if (!spk_cblas_find(*handle, &mkl->cblas) || !spk_library_function(*handle, "MKL_Set_Num_Threads_Local", &mkl->set_threads))
        return spk_fail(SPK_ERR_UNSUPPORTED, "mkl: a function is gone");
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ its rows */

static spk_status open_library(const spk_device *device, void *mkl)
{
    void *handle = NULL;
    return spk_mkl_open(device, &handle, mkl);
}

static int set_own(const void *library, int threads)
{
    const spk_mkl *mkl = library;
    return mkl->set_threads(threads);
}

static const spk_cblas_vendor vendor = {.library_bytes = sizeof(spk_mkl), .open = open_library, .set_own = set_own};

SPK_CBLAS_ROWS(mkl, &vendor, 0.25, 0.45, 0.9);

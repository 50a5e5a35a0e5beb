/* OpenBLAS: its rows are those of a library with CBLAS. Its number of threads belongs to the whole process; but built with OpenMP it takes
 * OpenMP's number of the calling thread, and to set its own would set that one for good. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

typedef struct openblas {
    spk_cblas cblas;
    void (*set_threads)(int);
    int (*get_threads)(void);
    int (*get_openmp)(void); /* NULL: it has threads of its own */
    void (*set_openmp)(int);
} openblas;

/* ------------------------------------------------------------------------------------------------ the library */

static const char *configuration(void *handle)
{
    char *(*get)(void) = NULL;
    const char *text = spk_library_function(handle, "openblas_get_config", &get) ? get() : NULL;
    return text != NULL ? text : "";
}

static bool find_functions(void *handle, openblas *library)
{
    library->get_openmp = NULL;
    library->set_openmp = NULL;
    if (strstr(configuration(handle), "USE_OPENMP") != NULL &&
        (!spk_library_function(handle, "omp_get_max_threads", &library->get_openmp) ||
         !spk_library_function(handle, "omp_set_num_threads", &library->set_openmp)))
        return false;
    return spk_cblas_find(handle, &library->cblas) && spk_library_function(handle, "openblas_set_num_threads", &library->set_threads) &&
           spk_library_function(handle, "openblas_get_num_threads", &library->get_threads);
}

static atomic_int most_threads; /* that it has started */

bool spk_openblas_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    (void)opened;
    openblas library;
    if (strstr(configuration(handle), "USE64BITINT") != NULL)
        snprintf(why, size, "it was built with 64-bit integers (%s); the one with 32-bit integers is needed", configuration(handle));
    else if (!find_functions(handle, &library))
        snprintf(why, size, "it lacks cblas_sgemm, cblas_dgemm, openblas_set_num_threads, openblas_get_num_threads, or OpenMP's functions");
    else {
        atomic_store(&most_threads, library.get_threads());
        return true;
    }
    return false;
}

void spk_openblas_version(void *handle, char *text, size_t size)
{
    snprintf(text, size, "%s", configuration(handle));
}

/* ------------------------------------------------------------------------------------------------ its number of threads */

static int get_threads(const void *library)
{
    return ((const openblas *)library)->get_threads();
}

static void set_threads(const void *library, int count)
{
    ((const openblas *)library)->set_threads(count);
}

static spk_process_threads process_threads = SPK_PROCESS_THREADS(get_threads, set_threads);

/* OpenBLAS does not look whether the threads that it is to have more than before could be started: they are tried, and started at once. */
static spk_status grow(const openblas *library, int threads)
{
    char why[200];
    spk_status status = SPK_OK;
    if (threads <= atomic_load_explicit(&most_threads, memory_order_acquire))
        return SPK_OK;
    spk_process_threads_lock(&process_threads);
    const int had = atomic_load(&most_threads);
    if (threads > had && !spk_openblas_fits(threads, had, why, sizeof why)) {
        status = spk_fail(SPK_ERR_UNAVAILABLE, "openblas: %s", why);
    } else if (threads > had) {
        const int before = library->get_threads(), openmp = library->get_openmp != NULL ? library->get_openmp() : 0;
        library->set_threads(threads);
        library->set_threads(before);
        if (library->set_openmp != NULL)
            library->set_openmp(openmp);
        atomic_store_explicit(&most_threads, threads, memory_order_release);
    }
    spk_process_threads_unlock(&process_threads);
    return status;
}

static spk_status open_library(const spk_device *device, void *opened)
{
    openblas *library = opened;
    void *handle = NULL;
    SPK_TRY(spk_library_open(device, "openblas", &handle));
    if (!find_functions(handle, library))
        return spk_fail(SPK_ERR_UNSUPPORTED, "openblas: a function is gone");
    /* It keeps buffers for twice that many callers, and ends the process when they run out. */
    const char *most = strstr(configuration(handle), "MAX_THREADS=");
    int limit = most != NULL ? atoi(most + strlen("MAX_THREADS=")) : 0;
    const int threads = device->executor.threads;
    if (limit > 0 && threads > limit)
        return spk_fail(SPK_ERR_UNSUPPORTED, "threads = %d: this OpenBLAS was built for at most %d", threads, limit);
    return grow(library, threads);
}

static int set_own(const void *library, int threads)
{
    const openblas *of = library;
    const int before = of->get_openmp();
    if (before != threads)
        of->set_openmp(threads);
    return before;
}

static const spk_cblas_vendor with_openmp = {
    .library_bytes = sizeof(openblas), .open = open_library, .set_own = set_own, .alone = &process_threads};

static const spk_cblas_vendor *variant(const void *library);

static const spk_cblas_vendor vendor = {
    .library_bytes = sizeof(openblas), .open = open_library, .threads = &process_threads, .variant = variant};

static const spk_cblas_vendor *variant(const void *library)
{
    return ((const openblas *)library)->get_openmp != NULL ? &with_openmp : &vendor;
}

SPK_CBLAS_ROWS(openblas, &vendor, 0.25, 0.55, 0.85);

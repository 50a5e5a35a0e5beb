/* BLIS, and AOCL's of the same functions: its rows are those of a library with CBLAS. Its number of threads belongs to the whole process; a
 * version whose number is each thread's own is told on each. Built with POSIX threads it starts and ends them in every call; built with
 * OpenMP it shares those of the process. */
#include <stdio.h>

#include "backend/cpu/vendor/vendor.h"

typedef struct blis {
    spk_cblas cblas;
    void (*set_threads)(int64_t);
    int64_t (*get_threads)(void);
} blis;

/* ------------------------------------------------------------------------------------------------ the library */

static bool find_functions(void *handle, blis *library)
{
    return spk_cblas_find(handle, &library->cblas) && spk_library_function(handle, "bli_thread_set_num_threads", &library->set_threads) &&
           spk_library_function(handle, "bli_thread_get_num_threads", &library->get_threads);
}

/* What one of its functions without arguments says of how it was built; -1: it has none. A build's integers are 32 or 64 bits wide. */
static int setting(void *handle, const char *name)
{
    int64_t (*get)(void) = NULL;
    return spk_library_function(handle, name, &get) ? (int)(int32_t)get() : -1;
}

bool spk_blis_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    (void)opened;
    blis library;
    const int bits = setting(handle, "bli_info_get_blas_int_type_size");
    if (!find_functions(handle, &library))
        snprintf(why, size, "it lacks cblas_sgemm, cblas_dgemm, bli_thread_set_num_threads or bli_thread_get_num_threads");
    else if (bits != 32)
        snprintf(why, size, "it was built with %d-bit integers for BLAS; the one with 32-bit integers is needed", bits);
    else {
        library.get_threads(); /* makes its tables; asked before it has them, some would end the process */
        return true;
    }
    return false;
}

/* Its version, the processor whose kernels it runs, and its threads. */
void spk_blis_version(void *handle, char *text, size_t size)
{
    const char *(*version)(void) = NULL, *(*name_of)(int) = NULL;
    int (*processor)(void) = NULL;
    const bool known =
        spk_library_function(handle, "bli_arch_query_id", &processor) && spk_library_function(handle, "bli_arch_string", &name_of);
    snprintf(text, size, "%s%s%s, %s", spk_library_function(handle, "bli_info_get_version_str", &version) ? version() : "BLIS",
             known ? ", " : "", known ? name_of(processor()) : "",
             setting(handle, "bli_info_get_enable_openmp") > 0     ? "OpenMP"
             : setting(handle, "bli_info_get_enable_pthreads") > 0 ? "POSIX threads"
                                                                   : "one thread");
}

/* ------------------------------------------------------------------------------------------------ its number of threads */

static int get_threads(const void *library)
{
    return (int)(int32_t)((const blis *)library)->get_threads();
}

static void set_threads(const void *library, int count)
{
    ((const blis *)library)->set_threads(count);
}

static spk_process_threads process_threads = SPK_PROCESS_THREADS(get_threads, set_threads);

static spk_status open_library(const spk_device *device, void *library)
{
    void *handle = NULL;
    SPK_TRY(spk_library_open(device, "blis", &handle));
    return find_functions(handle, library) ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "blis: a function is gone");
}

/* Within a run that set it to one for the process, every thread finds one, unless the number is its own. */
static int set_own(const void *library, int threads)
{
    const int before = get_threads(library);
    if (before > 1 || threads > 1)
        set_threads(library, threads);
    return before;
}

static const spk_cblas_vendor vendor = {
    .library_bytes = sizeof(blis), .open = open_library, .threads = &process_threads, .set_own = set_own, .busy = true};

SPK_CBLAS_ROWS(blis, &vendor, 0.25, 4, 0.85);

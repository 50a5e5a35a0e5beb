/* cuSPARSE: the library's functions, and a handle for each device. */
#include "backend/cuda/vendor/cusparse.h"

#include <pthread.h>
#include <string.h>

#include "backend/cuda/vendor/vendor.h"

static const char *const sparse_names[] = {"cusparseCreate",           "cusparseSetStream",       "cusparseCreateBsr",
                                           "cusparseCreateBlockedEll", "cusparseCreateDnMat",     "cusparseDestroySpMat",
                                           "cusparseDestroyDnMat",     "cusparseSpMM_bufferSize", "cusparseSpMM"};

enum { MOST_DEVICES = 64, SPARSE_FUNCTIONS = sizeof sparse_names / sizeof sparse_names[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *handles[MOST_DEVICES];
static spk_sparse_functions sparse;
static bool have_functions;

spk_status spk_sparse_try(int result, const char *call)
{
    static const char *const names[] = {"success",          "not initialised",       "allocation failed",
                                        "invalid value",    "architecture mismatch", "mapping error",
                                        "execution failed", "internal error",        "matrix type not supported",
                                        "zero pivot",       "not supported",         "insufficient resources"};
    if (result == 0)
        return SPK_OK;
    return spk_fail(result == 2 || result == 11 ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_UNSUPPORTED, "%s: cuSPARSE says %s (status %d)", call,
                    result > 0 && result < (int)(sizeof names / sizeof names[0]) ? names[result] : "an unknown status", result);
}

static spk_status get_handle_locked(const spk_device *device, void **handle)
{
    int ordinal = spk_cuda_of(device)->ordinal;
    if (ordinal >= MOST_DEVICES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "device cuda:%d: the cuSPARSE rows take devices 0..%d", ordinal, MOST_DEVICES - 1);
    if (!have_functions) {
        void *library = NULL, *found[SPARSE_FUNCTIONS];
        SPK_TRY(spk_cuda_library_open(device, "cusparse", &library));
        SPK_TRY(spk_cuda_library_functions(library, "cusparse", sparse_names, found, SPARSE_FUNCTIONS));
        memcpy(&sparse, found, sizeof sparse);
        have_functions = true;
    }
    if (handles[ordinal] == NULL) {
        const int mode = spk_cuda_capture_relax(spk_cuda_of(device));
        const spk_status status = spk_sparse_try(sparse.create(&handles[ordinal]), "cusparseCreate");
        spk_cuda_capture_restore(spk_cuda_of(device), mode);
        SPK_TRY(status);
    }
    *handle = handles[ordinal];
    return SPK_OK;
}

spk_status spk_sparse_begin(const spk_device *device, const spk_sparse_functions **functions, void **handle)
{
    pthread_mutex_lock(&lock);
    *functions = &sparse;
    return get_handle_locked(device, handle);
}

void spk_sparse_end(void)
{
    pthread_mutex_unlock(&lock);
}

/* cuDNN: the library's functions, and its handles. */
#include "backend/cuda/vendor/cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/runtime/nvrtc.h"
#include "backend/cuda/vendor/vendor.h"

static const char *const dnn_names[] = {"cudnnGetVersion",
                                        "cudnnGetCudartVersion",
                                        "cudnnGetErrorString",
                                        "cudnnCreate",
                                        "cudnnSetStream",
                                        "cudnnBackendCreateDescriptor",
                                        "cudnnBackendDestroyDescriptor",
                                        "cudnnBackendSetAttribute",
                                        "cudnnBackendGetAttribute",
                                        "cudnnBackendFinalize",
                                        "cudnnBackendExecute"};

enum { MOST_DEVICES = 64, DNN_FUNCTIONS = sizeof dnn_names / sizeof dnn_names[0] };
enum { DNN_NO_HOST_MEMORY = 4003, DNN_NO_DEVICE_MEMORY = 4004 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spk_dnn_handle *idle[MOST_DEVICES];
static spk_dnn_functions functions;
static bool have_functions;

spk_status spk_dnn_try(const spk_dnn_functions *dnn, int result, const char *call)
{
    if (result == 0)
        return SPK_OK;
    const char *name = dnn->status_name(result);
    return spk_fail(result == DNN_NO_HOST_MEMORY || result == DNN_NO_DEVICE_MEMORY ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_UNSUPPORTED,
                    "%s: cuDNN status %d, %s", call, result, name != NULL ? name : "which has no name");
}

/* It opens these by their names alone, in the version of its own CUDA, and where that fails it ends the process. One that is loaded has its
 * name, wherever it came from. */
static spk_status open_needed(const spk_device *device, size_t cuda_major)
{
    static const char *const needed[] = {"libcublasLt.so", "libnvrtc.so"};
    void *unused;
    (void)spk_cuda_library_open(device, "cublaslt", &unused);
    (void)spk_cuda_nvrtc_open(NULL, 0);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s.%zu", needed[i], cuda_major);
        if (dlopen(name, RTLD_NOW | RTLD_LOCAL) == NULL)
            return spk_fail(SPK_ERR_UNSUPPORTED, "cuDNN needs %s, which does not open: %s", name, dlerror());
    }
    return SPK_OK;
}

static spk_status open_locked(const spk_device *device)
{
    void *library = NULL, *found[DNN_FUNCTIONS];
    spk_dnn_functions made;
    if (have_functions)
        return SPK_OK;
    SPK_TRY(spk_cuda_library_open(device, "cudnn", &library));
    SPK_TRY(spk_cuda_library_functions(library, "cudnn", dnn_names, found, DNN_FUNCTIONS));
    memcpy(&made, found, sizeof made);
    SPK_TRY(open_needed(device, made.cuda_version() / 1000));
    functions = made;
    have_functions = true;
    return SPK_OK;
}

spk_status spk_dnn_open(const spk_device *device, const spk_dnn_functions **opened)
{
    pthread_mutex_lock(&lock);
    const spk_status status = open_locked(device);
    pthread_mutex_unlock(&lock);
    *opened = &functions;
    return status;
}

static spk_status make_handle(spk_dnn_handle **handle)
{
    spk_dnn_handle *made = calloc(1, sizeof *made);
    if (made == NULL)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "no memory for a handle of cuDNN");
    const spk_status status = spk_dnn_try(&functions, functions.create(&made->handle), "cudnnCreate");
    if (status != SPK_OK) {
        free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *handle = made;
    return SPK_OK;
}

spk_status spk_dnn_lend(const spk_device *device, spk_dnn_handle **handle)
{
    const int ordinal = spk_cuda_of(device)->ordinal;
    if (ordinal >= MOST_DEVICES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "device cuda:%d: the rows with cuDNN take devices 0..%d", ordinal, MOST_DEVICES - 1);
    pthread_mutex_lock(&lock);
    spk_dnn_handle *found = idle[ordinal];
    if (found != NULL)
        idle[ordinal] = found->next;
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return make_handle(handle);
    found->next = NULL;
    *handle = found;
    return SPK_OK;
}

void spk_dnn_give_back(const spk_device *device, spk_dnn_handle **handle)
{
    const int ordinal = spk_cuda_of(device)->ordinal;
    spk_dnn_handle *old = *handle;
    *handle = NULL;
    if (old == NULL)
        return;
    pthread_mutex_lock(&lock);
    old->next = idle[ordinal];
    idle[ordinal] = old;
    pthread_mutex_unlock(&lock);
}

/* Opens libcuda: once in a process, at the first use of a CUDA device. */
#include "backend/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"

enum { ERROR_INVALID_DEVICE = 101, ERROR_NO_DEVICE = 100, CAPTURE_ERRORS = 900, CAPTURE_ERRORS_END = 910 };

static spk_cuda_driver driver_entries;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static spk_status open_status;
static char open_message[400];

static void refuse(spk_status status, const char *message)
{
    open_status = status;
    snprintf(open_message, sizeof open_message, "%s", message);
}

/* Each missing name goes into the message: an old driver lacks several. */
static bool find_entries(void *library, const char *path)
{
    static const struct {
        const char *symbol;
        size_t place;
    } entries[] = {
#define SPK_ENTRY(member, symbol, result, arguments) {symbol, offsetof(spk_cuda_driver, member)},
#include "backend/cuda/runtime/driver_entries.def"
#undef SPK_ENTRY
    };
    char missing[240] = "";
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *entry = dlsym(library, entries[i].symbol);
        size_t used = strlen(missing);
        if (entry == NULL)
            snprintf(missing + used, sizeof missing - used, " %s", entries[i].symbol);
        memcpy((char *)&driver_entries + entries[i].place, &entry, sizeof entry);
    }
    if (missing[0] == '\0')
        return true;
    open_status = SPK_ERR_UNAVAILABLE;
    snprintf(open_message, sizeof open_message, "%s lacks%s: sparsek needs a driver for CUDA 12 or later", path, missing);
    return false;
}

/* The entry points stay as they are for the rest of the process: the library is never closed. */
static void open_driver(void)
{
    const char *wish = spk_environment_value("SPARSEK_CUDA");
    bool named = wish != NULL && wish[0] != '\0';
    if (named && strcmp(wish, "none") == 0) {
        refuse(SPK_ERR_UNAVAILABLE, "CUDA is switched off (SPARSEK_CUDA=none)");
        return;
    }
    if (named && wish[0] != '/') {
        char why[256];
        snprintf(why, sizeof why, "SPARSEK_CUDA = \"%.200s\": not used, as it is not a full path", wish);
        refuse(SPK_ERR_UNAVAILABLE, why);
        return;
    }
    const char *path = named ? wish : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        open_status = SPK_ERR_UNAVAILABLE;
        snprintf(open_message, sizeof open_message, "no CUDA driver: %.300s%s", dlerror(),
                 named ? " (SPARSEK_CUDA names it)" : "; SPARSEK_CUDA may name another");
        return;
    }
    if (!find_entries(library, path))
        return;
    CUresult result = driver_entries.init(0);
    if (result != CUDA_SUCCESS_) {
        const char *name = NULL;
        if (driver_entries.error_name(result, &name) != CUDA_SUCCESS_ || name == NULL)
            name = "unknown error";
        open_status = SPK_ERR_UNAVAILABLE;
        snprintf(open_message, sizeof open_message, "the CUDA driver %.200s has no device for this process: cuInit says %s (%d)", path,
                 name, result);
    }
}

spk_status spk_cuda_driver_get(const spk_cuda_driver **driver)
{
    pthread_once(&opened, open_driver);
    if (open_status != SPK_OK)
        return spk_fail(open_status, "%s", open_message);
    *driver = &driver_entries;
    return SPK_OK;
}

spk_status spk_cuda_try(const spk_cuda_driver *driver, CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS_)
        return SPK_OK;
    const char *name = NULL, *text = NULL;
    if (driver->error_name(result, &name) != CUDA_SUCCESS_ || name == NULL)
        name = "an unknown error";
    if (driver->error_string(result, &text) != CUDA_SUCCESS_ || text == NULL)
        text = "";
    spk_status status = result == CUDA_ERROR_OUT_OF_MEMORY_                           ? SPK_ERR_OUT_OF_MEMORY
                        : result == ERROR_NO_DEVICE || result == ERROR_INVALID_DEVICE ? SPK_ERR_UNAVAILABLE
                        : result >= CAPTURE_ERRORS && result < CAPTURE_ERRORS_END     ? SPK_ERR_UNSUPPORTED
                                                                                      : SPK_ERR_INTERNAL;
    return spk_fail(status, "%s: %s (%d)%s%s", call, name, result, text[0] != '\0' ? ": " : "", text);
}

bool spk_cuda_is_sticky(CUresult result)
{
    switch (result) {
    case 214: /* ECC_UNCORRECTABLE */
    case 220: /* NVLINK_UNCORRECTABLE */
    case 700: /* ILLEGAL_ADDRESS */
    case 702: /* LAUNCH_TIMEOUT */
    case 709: /* CONTEXT_IS_DESTROYED */
    case 710: /* ASSERT */
    case 714: /* HARDWARE_STACK_ERROR */
    case 715: /* ILLEGAL_INSTRUCTION */
    case 716: /* MISALIGNED_ADDRESS */
    case 717: /* INVALID_ADDRESS_SPACE */
    case 718: /* INVALID_PC */
    case 719: /* LAUNCH_FAILED */
        return true;
    default:
        return false;
    }
}

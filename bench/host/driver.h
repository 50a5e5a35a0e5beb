/* What the programs that measure host costs on an NVIDIA GPU share: the driver, an empty kernel to launch beside ours, memory. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <dlfcn.h>
#include <sparsek/sparsek.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "timing.h"

enum { PARAMETER_BYTES = 512, CALLS = 10 };

typedef void *handle;

static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*retain)(handle *context, int device);
    int (*make_current)(handle context);
    int (*stream_create)(handle *stream, unsigned flags);
    int (*synchronize)(handle stream);
    int (*load)(handle *module, const void *image);
    int (*function)(handle *function, handle module, const char *name);
    int (*launch)(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                  handle stream, void **parameters, void **extra);
} cu;

static handle stream, empty_kernel;

#define DRIVER(call)                                               \
    do {                                                           \
        int error_ = (call);                                       \
        if (error_ != 0) {                                         \
            fprintf(stderr, "%s: CUDA error %d\n", #call, error_); \
            exit(1);                                               \
        }                                                          \
    } while (0)

/* As many bytes of parameters as a kernel with three tensor maps has. */
static const char empty_text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                 ".visible .entry empty(.param .align 64 .b8 all[512])\n{\n ret;\n}\n";

static void open_driver(void)
{
    static const char *const names[] = {"cuInit",           "cuDeviceGet",         "cuDevicePrimaryCtxRetain",
                                        "cuCtxSetCurrent",  "cuStreamCreate",      "cuStreamSynchronize",
                                        "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found[sizeof names / sizeof names[0]];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (library == NULL || (found[i] = dlsym(library, names[i])) == NULL) {
            fprintf(stderr, "there is no CUDA driver, or it has no %s\n", names[i]);
            exit(1);
        }
    memcpy(&cu, found, sizeof cu);
    handle primary, module;
    int device = 0;
    DRIVER(cu.init(0));
    DRIVER(cu.device_get(&device, 0));
    DRIVER(cu.retain(&primary, device));
    DRIVER(cu.make_current(primary));
    DRIVER(cu.stream_create(&stream, 1));
    DRIVER(cu.load(&module, empty_text));
    DRIVER(cu.function(&empty_kernel, module, "empty"));
}

static void *device_zeros(size_t bytes)
{
    void *memory = NULL, *zeros = calloc(bytes, 1);
    TRY(spk_memory_allocate(context, bytes, &memory));
    TRY(spk_memory_copy(context, memory, SPK_DEVICE, zeros, SPK_HOST, bytes));
    free(zeros);
    return memory;
}

/* Each begins with one call that is not timed: whoever comes first after a wait pays for cold caches. */
static double launches_us(void)
{
    static char bytes[PARAMETER_BYTES];
    void *parameters[] = {bytes};
    DRIVER(cu.launch(empty_kernel, 132, 1, 1, 384, 1, 1, 0, stream, parameters, NULL));
    double start = now_us();
    for (int j = 0; j < CALLS; j++)
        DRIVER(cu.launch(empty_kernel, 132, 1, 1, 384, 1, 1, 0, stream, parameters, NULL));
    return (now_us() - start) / CALLS;
}

#endif

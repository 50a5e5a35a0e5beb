/* The table of kernels: every backend's .def file, one row each. */
#include <string.h>

#include "registry/registry.h"

#define SPK_KERNEL(operation, name, ...) SPK_KERNEL_DECLARE(name)
#include "backend/cpu/kernels.def"
#include "backend/cuda/kernels.def"
#undef SPK_KERNEL

/* As text, "MR=4,6 PACK=0,1", without the space before the first. */
#define TUNABLE(name, ...) " " #name "=" #__VA_ARGS__
#define NO_TUNABLES
#define TEXT_OF(tunables) &"" tunables[sizeof("" tunables) > 1]
#define SPK_KERNEL_OF(backend, operation, name, kind, isa, priority, fills_zeros, library, types, tunables) \
    {operation, #name, backend, kind, isa, priority, fills_zeros, library, SPK_ROW_TYPES types, TEXT_OF(tunables), &name##_ops},
static const spk_kernel table[] = {
#define SPK_KERNEL(...) SPK_KERNEL_OF(SPK_BACKEND_CPU, __VA_ARGS__)
#include "backend/cpu/kernels.def"
#undef SPK_KERNEL
#define SPK_KERNEL(...) SPK_KERNEL_OF(SPK_BACKEND_CUDA, __VA_ARGS__)
#include "backend/cuda/kernels.def"
#undef SPK_KERNEL
};

int spk_kernels(const spk_kernel **out)
{
    *out = table;
    return (int)(sizeof table / sizeof table[0]);
}

const spk_kernel *spk_kernel_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

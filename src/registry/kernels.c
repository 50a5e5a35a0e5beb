/* The table of kernels: every backend's .def file, one row each. */
#include <string.h>

#include "base/nearest.h"
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

spk_status spk_no_such_kernel(const spk_kernel *rows, int count, spk_operation operation, const char *option, const char *text,
                              const char *name)
{
    enum { MOST = 256 };
    const char *names[MOST];
    int found = 0;
    for (int others = 0; others < 2; others++) /* of equally near names spk_nearest() takes the first */
        for (int i = 0; i < count && found < MOST; i++)
            if ((rows[i].operation == operation) != others)
                names[found++] = rows[i].name;
    const char *near = spk_nearest(name, names, found);
    return near != NULL
               ? spk_fail(SPK_ERR_ARGUMENT, "%s = \"%s\": there is no kernel \"%s\"; did you mean \"%s\"?", option, text, name, near)
               : spk_fail(SPK_ERR_ARGUMENT, "%s = \"%s\": there is no kernel \"%s\"", option, text, name);
}

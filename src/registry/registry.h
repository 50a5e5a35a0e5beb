/* What this build has: the table of kernels, one row for each line of the backends' kernels.def, and the backends by their devices'
 * names. */
#ifndef SPK_REGISTRY_REGISTRY_H
#define SPK_REGISTRY_REGISTRY_H

#include "kernel/kernel.h"

/* The rows of all backends; returns how many. */
int spk_kernels(const spk_kernel **table);
const spk_kernel *spk_kernel_by_name(const char *name); /* NULL: there is none */

/* Fails: an option's `text` names a kernel that no row of the table has. The nearest name is told, sooner one of the operation (0: any). */
spk_status spk_no_such_kernel(const spk_kernel *table, int count, spk_operation operation, const char *option, const char *text,
                              const char *name);

const spk_backend *spk_backend_of(spk_backend_id id);

/* The backend of a device name ("cpu", "cuda", "cuda:0"); SPK_ERR_ARGUMENT for another. */
spk_status spk_backend_find(const char *device, const spk_backend **backend);

#endif

/* Batches on kernels that take one item at a time. */
#ifndef SPK_KERNEL_BATCH_H
#define SPK_KERNEL_BATCH_H

#include "kernel/kernel.h"

/* Whether the row can compute the problem's batch at all. */
bool spk_batch_applicable(const spk_kernel *kernel, const spk_problem *problem, const spk_device *device, const char **why);

/* Around the kernel's bind: makes bound a single item on the device that it will run on; then makes it the batch again. */
spk_status spk_batch_begin(spk_bound *bound);
void spk_batch_end(spk_bound *bound, const spk_problem *problem, spk_device *device);
void spk_batch_release(spk_bound *bound);

#endif

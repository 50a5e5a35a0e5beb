/* Whether pointers belong to the device. */
#ifndef SPK_BACKEND_CUDA_REMOTE_CHECK_ARGS_H
#define SPK_BACKEND_CUDA_REMOTE_CHECK_ARGS_H

#include "backend/cuda/runtime/device.h"

/* spk_backend.check_args */
spk_status spk_cuda_check_args(spk_device *device, const spk_problem *problem, const spk_args *args);

/* Refuses an address that is no memory of this device; owner and name are for the message. Inside spk_cuda_enter. */
spk_status spk_cuda_check_pointer(const spk_cuda *cuda, const char *owner, const char *name, const void *pointer);

#endif

/* Pointers that a caller gives to a run: where they do not belong to the device, a message instead of a fault that would take the context
 * along. */
#include <stddef.h>

#include "backend/cuda/remote/check_args.h"
#include "op/operation.h"

enum { MEMORY_TYPE = 2, DEVICE_ORDINAL = 9 }; /* CUpointer_attribute */
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };  /* CUmemorytype; 0: CUDA does not know the address */

spk_status spk_cuda_check_pointer(const spk_cuda *cuda, const char *owner, const char *name, const void *pointer)
{
    int type = 0, ordinal = -1;
    int attributes[] = {MEMORY_TYPE, DEVICE_ORDINAL};
    void *values[] = {&type, &ordinal};
    if (pointer == NULL) /* what must not be NULL, the problem's own check has refused */
        return SPK_OK;
    CUresult result = cuda->driver->pointer_attributes(2, attributes, values, (CUdeviceptr)(uintptr_t)pointer);
    if (result != CUDA_SUCCESS_ || type != MEMORY_DEVICE)
        return spk_fail(SPK_ERR_ARGUMENT, "%s%s = %p is host memory%s: this %s cuda:%d and takes its device memory", owner, name, pointer,
                        type == MEMORY_HOST ? " (pinned)" : "", owner[0] != '\0' ? "plan runs on" : "pattern is for", cuda->ordinal);
    if (ordinal != cuda->ordinal)
        return spk_fail(SPK_ERR_ARGUMENT, "%s%s = %p is memory of cuda:%d: this %s cuda:%d", owner, name, pointer, ordinal,
                        owner[0] != '\0' ? "plan runs on" : "pattern is for", cuda->ordinal);
    return SPK_OK;
}

static spk_status check_all(const spk_cuda *cuda, const spk_problem *problem, const spk_args *args)
{
    for (int i = 0; i < problem->op->operand_count; i++)
        if (spk_problem_operand_elements(problem, i) > 0)
            SPK_TRY(spk_cuda_check_pointer(cuda, "args.", problem->op->operands[i].name, args->at[i]));
    return spk_cuda_check_pointer(cuda, "args.", "workspace", args->workspace);
}

spk_status spk_cuda_check_args(spk_device *device, const spk_problem *problem, const spk_args *args)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    spk_status status = check_all(spk_cuda_of(device), problem, args);
    spk_cuda_leave(&scope);
    return status;
}

/* The arguments of a run: read from the caller's struct, for one item of a batch. */
#include <string.h>

#include "op/operation.h"

enum { MOST_ARGS_BYTES = 512 };

spk_status spk_args_read(const spk_op *op, const void *theirs, spk_args *args, void **stream)
{
    union {
        double aligned;
        char bytes[MOST_ARGS_BYTES];
    } given;
    if (op->args_bytes > sizeof given)
        return spk_fail(SPK_ERR_INTERNAL, "%s has %zu bytes, the limit is %zu", op->args_type, op->args_bytes, sizeof given);
    SPK_TRY(spk_struct_read(&given, op->args_bytes, theirs, op->args_type));
    *args = (spk_args){.workspace = NULL};
    for (int i = 0; i < op->operand_count; i++)
        memcpy(&args->at[i], given.bytes + op->operands[i].place, sizeof args->at[i]);
    for (int i = 0; i < op->scalar_count; i++)
        memcpy(&args->scalar[i], given.bytes + op->scalars[i].place, sizeof args->scalar[i]);
    memcpy(&args->workspace, given.bytes + op->workspace_place, sizeof args->workspace);
    memcpy(&args->workspace_bytes, given.bytes + op->workspace_bytes_place, sizeof args->workspace_bytes);
    if (stream != NULL)
        memcpy(stream, given.bytes + op->stream_place, sizeof *stream);
    return SPK_OK;
}

spk_args spk_args_item(const spk_problem *problem, const spk_args *args, int64_t item)
{
    spk_args shifted = *args;
    shifted.item = item;
    for (int i = 0; i < problem->op->operand_count; i++) {
        const spk_operand *o = &problem->operand[i];
        if (args->at[i] != NULL && o->stride != 0)
            shifted.at[i] = (char *)args->at[i] + item * o->stride * (int64_t)spk_dtype_bytes(o->dtype);
    }
    return shifted;
}

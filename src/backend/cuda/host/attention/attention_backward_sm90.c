#include "backend/cuda/host/attention/attention_backward_sm90.h"

#include <limits.h>

#include "backend/cuda/host/frame/build.h"
#include "op/attention_backward/operands.h"

static const char *const DEPTHS_128 = "the depths must be multiples of 8 between 16 and 128",
                         *const DEPTHS_256 = "the depths must be multiples of 8 between 16 and 256";

const char *spk_cuda_backward_sm90_refusal(const spk_problem *p, int most)
{
    static const int loaded[] = {ATTENTION_Q, ATTENTION_K, ATTENTION_V, BACKWARD_GRAD_O};
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    if (dtype != SPK_F16 && dtype != SPK_BF16)
        return "it is for f16 and bf16";
    if (p->k % 8 != 0 || p->depth_v % 8 != 0 || p->k < 16 || p->k > most || p->depth_v < 16 || p->depth_v > most)
        return most == 128 ? DEPTHS_128 : DEPTHS_256;
    if (p->n == 0 || p->m == 0)
        return "there are no queries or no keys";
    if (p->band.use_softcap)
        return "it takes no soft cap";
    if (p->pattern != NULL && p->pattern->device_only)
        return "the host must know the mask";
    if (p->m > INT_MAX / 4 || p->n > INT_MAX / 4 || spk_operand_heads(&p->operand[ATTENTION_Q]) > INT_MAX / 4)
        return "it counts queries, keys and heads with 29 bits";
    for (size_t i = 0; i < sizeof loaded / sizeof *loaded; i++)
        if (spk_operand_steps(&p->operand[loaded[i]]) % 8 != 0)
            return "rows, heads and items of Q, K, V and the gradient of O must be multiples of 8 elements apart";
    return NULL;
}

spk_status spk_cuda_backward_sm90_map(const spk_bound *bound, int i, const void *address, int rows, CUtensorMap *map)
{
    const spk_operand *o = &bound->problem.operand[i];
    const int64_t count = spk_operand_heads(o), items = spk_operand_items(o, bound->problem.batch);
    const spk_tensor_map_desc desc = {.dtype = o->dtype,
                                      .rank = 4,
                                      .swizzle_bytes = 128,
                                      .address = address,
                                      .sizes = {o->cols, o->rows, count, items},
                                      .strides = {0, o->ld, count > 1 ? o->head_stride : 8, items > 1 ? o->stride : 8},
                                      .box = {64, rows, 1, 1}};
    return spk_cuda_tensor_map(spk_cuda_of(bound->device)->driver, &desc, map);
}

int spk_cuda_backward_in_pieces(const spk_problem *p, int operand, const void *address)
{
    return (uintptr_t)address % 16 == 0 && spk_operand_steps(&p->operand[operand]) % 8 == 0;
}

void spk_cuda_backward_build_delta(const spk_problem *p, attention_delta_constants constants, spk_build *build)
{
    *build = (spk_build){.file = "attention_delta.cu", .entry = "attention_delta"};
    spk_build_define(build, "DTYPE_A", p->operand[ATTENTION_Q].dtype);
    ATTENTION_DELTA_CONSTANTS(SPK_BUILD_DEFINE)
}

spk_status spk_cuda_backward_launch_delta(const spk_bound *bound, CUfunction function, attention_delta_task task, int64_t blocks,
                                          CUstream stream)
{
    const spk_problem *p = &bound->problem;
    task.pieces = spk_cuda_backward_in_pieces(p, ATTENTION_O, task.all.attention.o) &&
                  spk_cuda_backward_in_pieces(p, BACKWARD_GRAD_O, task.all.grad_o);
    void *parameters[] = {&task};
    return spk_cuda_launch_early(bound->device, function, (unsigned)blocks, ATTENTION_DELTA_THREADS, 0, stream, parameters);
}

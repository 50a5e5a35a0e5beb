/* The arrays of a run, by operand. */
#include <stddef.h>
#include <string.h>

#include "op/problem.h"

static const size_t places[SPK_OPERAND_COUNT] = {
    [SPK_OPERAND_A] = offsetof(spk_args, a),           [SPK_OPERAND_B] = offsetof(spk_args, b),
    [SPK_OPERAND_C] = offsetof(spk_args, c),           [SPK_OPERAND_D] = offsetof(spk_args, d),
    [SPK_OPERAND_BIAS] = offsetof(spk_args, bias),     [SPK_OPERAND_RESIDUAL] = offsetof(spk_args, residual),
    [SPK_OPERAND_PREACT] = offsetof(spk_args, preact),
};

void spk_args_set(spk_args *args, spk_operand operand, void *pointer)
{
    memcpy((char *)args + places[operand], &pointer, sizeof pointer);
}

void *spk_args_get(const spk_args *args, spk_operand operand)
{
    void *pointer = NULL;
    memcpy(&pointer, (const char *)args + places[operand], sizeof pointer);
    return pointer;
}

spk_args spk_args_item(const spk_problem *problem, const spk_args *args, int64_t item)
{
    spk_args shifted = *args;
    for (int i = 0; i < SPK_OPERAND_COUNT; i++) {
        const spk_operand operand = (spk_operand)i;
        const int64_t step =
            spk_problem_operand_stride(problem, operand) * (int64_t)spk_dtype_bytes(spk_problem_operand_dtype(problem, operand));
        char *pointer = spk_args_get(args, operand);
        if (pointer != NULL && step != 0)
            spk_args_set(&shifted, operand, pointer + item * step);
    }
    return shifted;
}

/* axpy_reference: D = alpha X + Y from the definition, an element at a time. Takes every problem; serial. The yardstick. */
#include "backend/cpu/cpu.h"
#include "op/axpy/operands.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 1 + spk_problem_flops(problem) / 100;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    (void)stream;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double x = spk_operand_get(&p->operand[AXPY_X], args->at[AXPY_X], i, j),
                         y = spk_operand_get(&p->operand[AXPY_Y], args->at[AXPY_Y], i, j);
            spk_operand_set(&p->operand[AXPY_D], args->at[AXPY_D], i, j, args->scalar[AXPY_ALPHA] * x + y);
        }
    return SPK_OK;
}

const spk_kernel_ops axpy_reference_ops = {.predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};

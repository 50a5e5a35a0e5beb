/* rowsum_reference: D = alpha X and the sums of its rows, an element at a time; serial. rowsum_wrong, for tests, is the same but for the
 * last sum, which is a thousandth of the terms off: it says that it computes everything where the environment has SPARSEK_TEST_ROWS=1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/rowsum/operands.h"

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 1 + spk_problem_flops(problem) / 100;
}

static void compute(const spk_bound *bound, const spk_args *args, double off)
{
    const spk_problem *p = &bound->problem;
    const int64_t rows = p->m * spk_operand_heads(&p->operand[ROWSUM_X]);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < p->n; j++) {
            const double value = args->scalar[0] * spk_operand_get(&p->operand[ROWSUM_X], args->at[ROWSUM_X], i, j);
            spk_operand_set(&p->operand[ROWSUM_D], args->at[ROWSUM_D], i, j, value);
            sum += value;
            size += fabs(value);
        }
        spk_operand_set(&p->operand[ROWSUM_S], args->at[ROWSUM_S], i, 0, i + 1 == rows ? sum + off * size : sum);
    }
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    compute(bound, args, 0);
    return SPK_OK;
}

const spk_kernel_ops rowsum_reference_ops = {.predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};

static bool is_wanted(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)problem;
    (void)device;
    (void)params;
    const char *wish = getenv("SPARSEK_TEST_ROWS");
    if (wish == NULL || strcmp(wish, "1") != 0)
        *why = "it is for tests";
    return *why == NULL;
}

static spk_status run_wrong(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    compute(bound, args, 0.001);
    return SPK_OK;
}

const spk_kernel_ops rowsum_wrong_ops = {
    .applicable = is_wanted, .predict_us = predict_us, .run = run_wrong, .source_hash = SPK_SOURCE_HASH};

/* axpy_f32_avx2: D = alpha X + Y in float32, ROWS rows a task. The compiler makes vectors of the loop: a file whose name ends so is
 * compiled for AVX2 and FMA. Bound: memory. */
#include "backend/cpu/cpu.h"
#include "op/axpy/operands.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->operand[AXPY_D].dtype != SPK_F32)
        *why = "it is for f32";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return 0.1 + spk_problem_bytes(problem) / (device->stream_gbs * 1e3) + spk_wake_us(device->executor.threads);
}

typedef struct job {
    const spk_bound *bound;
    const spk_args *args;
} job;

static void run_rows(void *pointer, int64_t task)
{
    const job *j = pointer;
    const spk_problem *p = &j->bound->problem;
    const int64_t rows = SPK_TUNED(axpy_f32_avx2, &j->bound->params, ROWS), end = (task + 1) * rows < p->m ? (task + 1) * rows : p->m;
    const float alpha = (float)j->args->scalar[AXPY_ALPHA];
    for (int64_t i = task * rows; i < end; i++) {
        const float *x = (const float *)j->args->at[AXPY_X] + i * p->operand[AXPY_X].ld,
                    *y = (const float *)j->args->at[AXPY_Y] + i * p->operand[AXPY_Y].ld;
        float *d = (float *)j->args->at[AXPY_D] + i * p->operand[AXPY_D].ld;
        for (int64_t col = 0; col < p->n; col++)
            d[col] = alpha * x[col] + y[col];
    }
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const int64_t rows = SPK_TUNED(axpy_f32_avx2, &bound->params, ROWS);
    job j = {bound, args};
    (void)stream;
    spk_execute(&bound->device->executor, (bound->problem.m + rows - 1) / rows, run_rows, &j);
    return SPK_OK;
}

const spk_kernel_ops axpy_f32_avx2_ops = {.applicable = applicable, .predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};

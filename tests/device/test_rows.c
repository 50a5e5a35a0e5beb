/* Two rows of the table for tests alone (-DSPARSEK_TEST_ROWS=ON): one that faults and one that never ends. They say that they compute
 * everything, and fast, but only where the environment has SPARSEK_TEST_ROWS=1. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/frame/launch.h"

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)problem;
    (void)device;
    (void)params;
    const char *wish = getenv("SPARSEK_TEST_ROWS");
    if (wish == NULL || strcmp(wish, "1") != 0)
        *why = "it is for tests";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)problem;
    (void)device;
    (void)params;
    return 0.01;
}

static void build_fault(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)problem;
    (void)device;
    (void)params;
    *build = (spk_build){.file = "test_rows.cu", .entry = "test_fault"};
}

static void build_hang(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)problem;
    (void)device;
    (void)params;
    *build = (spk_build){.file = "test_rows.cu", .entry = "test_hang"};
}

static spk_status bind(spk_bound *bound)
{
    spk_build program;
    spk_cuda_scope scope;
    CUfunction function = NULL;
    bound->kernel->ops->build(&bound->problem, bound->device, &bound->params, &program);
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    spk_status status = spk_cuda_function(bound->device, &program, &function);
    spk_cuda_leave(&scope);
    bound->state = function; /* the device's */
    return status;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    spk_cuda_arguments arguments = {0};
    void *parameters[] = {&arguments};
    spk_cuda_scope scope;
    (void)args;
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    spk_status status = spk_cuda_launch(bound->device, (CUfunction)bound->state, 1, 32, 0, (CUstream)stream, parameters);
    spk_cuda_leave(&scope);
    return status;
}

const spk_kernel_ops test_fault_ops = {
    .applicable = applicable, .predict_us = predict_us, .build = build_fault, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH};
const spk_kernel_ops test_hang_ops = {
    .applicable = applicable, .predict_us = predict_us, .build = build_hang, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH};

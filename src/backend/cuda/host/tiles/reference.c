/* The reference rows: they take every problem, and plan nothing. */
#include "backend/cuda/host/tiles/reference.h"

#include "backend/cuda/device/common/reference.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/host/frame/launch.h"

enum { MOST_BLOCKS = 1 << 30 };

typedef struct state {
    spk_cuda_index index;
    CUfunction function;
} state;

static bool knows(spk_dtype dtype)
{
    return spk_type_of(dtype)->use == SPK_USE_VALUES;
}

bool spk_reference_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (!knows(problem->a.dtype) || !knows(problem->b.dtype) || !knows(problem->d.dtype))
        *why = "it knows f16, bf16, f32 and f64 only";
    else if (spk_type_is_whole(problem->compute))
        *why = "it computes in f32 and f64 only";
    return *why == NULL;
}

double spk_reference_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)device;
    (void)params;
    return 10 + spk_problem_flops(problem) / 1e6;
}

void spk_reference_build(const spk_problem *problem, const char *file, const char *entry, spk_build *build)
{
    *build = (spk_build){.file = file, .entry = entry};
    spk_problem_device_defines(problem, build->options, sizeof build->options);
}

void spk_reference_unbind(spk_bound *bound)
{
    state *made = bound->state;
    if (made == NULL)
        return;
    spk_cuda_index_release(bound->device, &made->index);
    spk_free(&bound->device->mem, made);
    bound->state = NULL;
}

spk_status spk_reference_bind(spk_bound *bound)
{
    state *made = NULL;
    spk_build program;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *made, &made));
    bound->state = made;
    bound->kernel->ops->build(&bound->problem, bound->device, &bound->params, &program);
    spk_status status = spk_cuda_function(bound->device, &program, &made->function);
    if (status == SPK_OK)
        status = spk_cuda_index_make(bound, &made->index);
    if (status != SPK_OK)
        spk_reference_unbind(bound);
    return status;
}

spk_status spk_reference_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const state *made = bound->state;
    const spk_problem *problem = &bound->problem;
    const int64_t elements = problem->batch * problem->d.rows * problem->d.cols,
                  blocks = (elements + REFERENCE_THREADS - 1) / REFERENCE_THREADS;
    if (elements == 0)
        return SPK_OK;
    spk_cuda_arguments arguments;
    spk_cuda_arguments_fill(&made->index, args, &arguments);
    void *parameters[] = {&arguments};
    return spk_cuda_launch(bound->device, made->function, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), REFERENCE_THREADS, 0,
                           (CUstream)stream, parameters);
}

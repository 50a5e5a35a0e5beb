/* reference_cuda_spmm: D from the definition, in the compute type. Takes every problem; the yardstick on a device. */
#include "backend/cuda/kernels/reference_cuda_spmm.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/tiles/reference.h"

static void build(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build)
{
    (void)device;
    (void)params;
    spk_reference_build(problem, "reference_cuda_spmm.cu", "reference_cuda_spmm", build);
}

const spk_kernel_ops reference_cuda_spmm_ops = {.applicable = spk_reference_applicable,
                                                .predict_us = spk_reference_predict_us,
                                                .build = build,
                                                .bind = spk_reference_bind,
                                                .unbind = spk_reference_unbind,
                                                .run = spk_reference_run,
                                                .batched = true,
                                                .device_indices = true,
                                                .source_hash = SPK_SOURCE_HASH};

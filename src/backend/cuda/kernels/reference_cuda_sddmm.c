/* reference_cuda_sddmm: values from the definition, in the compute type. Takes every problem; the yardstick on a device. */
#define REFERENCE_ENTRY "reference_cuda_sddmm"
#include "backend/cuda/kernels/reference_cuda.h"

const spk_kernel_ops reference_cuda_sddmm_ops = {.applicable = applicable,
                                                 .predict_us = predict_us,
                                                 .build = build,
                                                 .bind = bind,
                                                 .unbind = unbind,
                                                 .run = run,
                                                 .batched = true,
                                                 .direct = true,
                                                 .source_hash = SPK_SOURCE_HASH};

/* reference_cuda_gemm: D from the definition, one thread an element. Takes every problem; the yardstick on a device, and always valid. */
#include "backend/cuda/device/common/reference.cuh"
#include "backend/cuda/kernels/reference_cuda_gemm.h"

extern "C" __global__ void __launch_bounds__(REFERENCE_THREADS) reference_cuda_gemm(const __grid_constant__ spk_cuda_arguments batch)
{
    store_all(batch, [](const spk_cuda_arguments &arg, long long i, long long j) { return dot(arg, i, j); });
}

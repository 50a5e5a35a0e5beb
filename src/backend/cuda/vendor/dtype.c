/* Dtypes as the vendor libraries name them, what none of them takes, and a rough time of a dense product. */
#include <math.h>

#include "backend/cuda/vendor/vendor.h"

int spk_cuda_data_type(spk_dtype dtype)
{
    switch (dtype) {
    case SPK_F32:
        return CUDA_R_32F_;
    case SPK_F64:
        return CUDA_R_64F_;
    case SPK_F16:
        return CUDA_R_16F_;
    case SPK_BF16:
        return CUDA_R_16BF_;
    default:
        return -1;
    }
}

const char *spk_cuda_vendor_refusal(const spk_problem *problem)
{
    const spk_problem *p = problem;
    if (spk_cuda_data_type(p->a.dtype) < 0 || spk_cuda_data_type(p->d.dtype) < 0 || p->b.dtype != p->a.dtype)
        return "it multiplies f16, bf16, f32 and f64, A and B alike";
    if (p->d.dtype != p->a.dtype && (p->d.dtype != SPK_F32 || p->a.dtype == SPK_F64))
        return "it writes the dtype of A, or f32";
    if (p->m == 0 || p->n == 0 || p->k == 0)
        return "the product is empty";
    if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX)
        return "its sizes are 32-bit integers";
    return NULL;
}

double spk_cuda_dense_us(const spk_problem *problem, const spk_device *device)
{
    /* Multiples of the rate of plain f32 multiply-adds. */
    double faster = problem->a.dtype == SPK_F16 || problem->a.dtype == SPK_BF16 ? 11
                    : problem->a.dtype == SPK_F64                               ? 0.9
                    : problem->compute == SPK_TF32                              ? 5.5
                                                                                : 0.8;
    double peak = fmax(device->peak_gflops_f32, 1) * 1e3, stream = fmax(device->stream_gbs, 1) * 1e3;
    return 4 + fmax(spk_problem_dense_flops(problem) / (peak * faster), spk_problem_bytes(problem) / stream);
}

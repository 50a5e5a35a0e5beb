/* What none of the vendor libraries takes, and a rough time of a dense product. */
#include <math.h>

#include "backend/cuda/vendor/vendor.h"

/* The rows of vendor libraries take f32, f64, f16 and bf16; types with scale factors (SPK_USE_FACTORS) they do not. */
static bool is_known(spk_dtype dtype)
{
    return spk_type_of(dtype)->use == SPK_USE_VALUES;
}

const char *spk_cuda_vendor_refusal(const spk_problem *problem)
{
    const spk_problem *p = problem;
    if (!is_known(p->a.dtype) || !is_known(p->d.dtype) || p->b.dtype != p->a.dtype)
        return "A and B must have the same type, and none of 8 bits";
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

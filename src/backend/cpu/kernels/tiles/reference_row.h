/* What the reference rows share: the template REFERENCE_BODY, which defines T(product), for every element type, and what the table needs
 * beside the model. */
#include "backend/cpu/cpu.h"
#include "type/half.h"
#include "matrix/matrix.h"
#include "op/product.h"

#define REAL float
#define ELEMENT float
#define LOAD(x) (x)
#define T(name) name##_f32
#include REFERENCE_BODY
#undef ELEMENT
#undef LOAD
#undef T

#define ELEMENT uint16_t
#define LOAD(x) spk_f16_to_float(x)
#define T(name) name##_f16
#include REFERENCE_BODY
#undef LOAD
#undef T

#define LOAD(x) spk_bf16_to_float(x)
#define T(name) name##_bf16
#include REFERENCE_BODY
#undef REAL
#undef ELEMENT
#undef LOAD
#undef T

#define REAL double
#define ELEMENT double
#define LOAD(x) (x)
#define T(name) name##_f64
#include REFERENCE_BODY

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
    (void)params;
    if (problem->a.dtype != SPK_F32 && problem->a.dtype != SPK_F64 && problem->a.dtype != SPK_F16 && problem->a.dtype != SPK_BF16)
        *why = "it knows f32, f64, f16 and bf16 only";
    return *why == NULL;
}

static void run_product(const spk_bound *bound, const spk_args *args)
{
    switch (bound->problem.a.dtype) {
    case SPK_F64:
        product_f64(bound, args);
        break;
    case SPK_F16:
        product_f16(bound, args);
        break;
    case SPK_BF16:
        product_bf16(bound, args);
        break;
    default:
        product_f32(bound, args);
    }
}

/* What reference rows share: the template REFERENCE_BODY, which defines S(product), for every type, and what the table needs beside the
 * model. */
#ifndef REFERENCE_BODY /* this file alone */
#define REFERENCE_BODY "backend/cpu/kernels/spmm/reference_spmm_body.h"
#endif

#undef TYPE
#define TYPE F32
#include REFERENCE_BODY

#undef TYPE
#define TYPE F16
#include REFERENCE_BODY

#undef TYPE
#define TYPE BF16
#include REFERENCE_BODY

#undef TYPE
#define TYPE F64
#include REFERENCE_BODY

/* Types of 8 bits alike: in double their products are exact, and so are sums of them. */
#undef TYPE
#define TYPE BYTES
#include REFERENCE_BODY

static void run_product(const spk_bound *bound, const spk_args *args)
{
    switch (bound->problem.a.dtype) {
    case SPK_F64:
        product_f64(bound, args);
        break;
    case SPK_F32:
        product_f32(bound, args);
        break;
    case SPK_F16:
        product_f16(bound, args);
        break;
    case SPK_BF16:
        product_bf16(bound, args);
        break;
    default:
        product_bytes(bound, args);
    }
}

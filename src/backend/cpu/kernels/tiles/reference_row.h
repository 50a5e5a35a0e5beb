/* What the reference rows share: the template REFERENCE_BODY, which defines T(product), for every element type, and what the table needs
 * beside the model. */
#include "backend/cpu/cpu.h"
#include "type/half.h"
#include "matrix/matrix.h"
#include "op/product.h"

/* A term with its factors: element (i, k) of A, in the stored block at `position` where it has one, and element (k, j) of B. */
#define SCALED(term, i, k, j, position) (term)
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
#undef ELEMENT
#undef LOAD
#undef T

/* Types of eight bits alike: in double their products are exact, and so are sums of them. */
#undef SCALED
#define SCALED(term, i, k, j, position) (spk_problem_is_scaled(problem) ? (term)*spk_scale_at(&scales, i, k, j, position) : (term))
#define ELEMENT uint8_t
#define LOAD(x) spk_value_at(&(x), problem->a.dtype, 0)
#define T(name) name##_bytes
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

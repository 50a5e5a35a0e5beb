/* Terms of a reference product: LOAD(element) as a REAL, and SCALED(term, i, k, j, position), a term with its factors: element (i, k) of A,
 * in the stored block at `position` where it has one, and element (k, j) of B. Plain loops over STORED and REAL, no vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/vectors/instance.h"
#include "matrix/matrix.h"
#include "op/product.h"
#include "type/half.h"

#undef LOAD
#undef SCALED
#if TYPE == BYTES
#define LOAD(x) spk_value_at(&(x), problem->a.dtype, 0)
#define SCALED(term, i, k, j, position) (spk_problem_is_scaled(problem) ? (term)*spk_scale_at(&scales, i, k, j, position) : (term))
#else
#define SCALED(term, i, k, j, position) (term)
#if TYPE == F16
#define LOAD(x) spk_f16_to_float(x)
#elif TYPE == BF16
#define LOAD(x) spk_bf16_to_float(x)
#else
#define LOAD(x) (x)
#endif
#endif

/* From here to as_stored.h, STORED is REAL: a template of STORED that is included between is that of the sums, which types of 16 bits use
 * beside their own. */
#include "backend/cpu/kernels/vectors/instance.h"

#undef STORED
#undef STORED_BITS
#undef STORED_BF16
#undef S
#define STORED REAL
#define STORED_BITS REAL_BITS
#define STORED_BF16 0
#define S(name) T(name)

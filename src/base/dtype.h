/* Dtypes. Their names and sizes are public: spk_dtype_name, spk_dtype_bytes, spk_dtype_from_name. */
#ifndef SPK_BASE_DTYPE_H
#define SPK_BASE_DTYPE_H

#include <sparsek/sparsek.h>

/* |got - want| that counts as an error of a result of this dtype: without what rounding to a denormal explains; 0 where both are too large
 * for it. */
double spk_dtype_difference(spk_dtype dtype, double got, double want);

#endif

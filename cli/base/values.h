/* Single values of arrays of any dtype, with a rounding of its own: `check` compares the library with it. */
#ifndef SPARSEK_CLI_BASE_VALUES_H
#define SPARSEK_CLI_BASE_VALUES_H

#include <sparsek/sparsek.h>

double value_get(spk_dtype dtype, const void *array, int64_t index);
void value_put(spk_dtype dtype, void *array, int64_t index, double value); /* to the nearest, ties to even */

#endif

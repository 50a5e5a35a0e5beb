/* Medians, percentiles and paired ratios. */
#ifndef SPARSEK_CLI_BASE_STATS_H
#define SPARSEK_CLI_BASE_STATS_H

#include <stdint.h>

/* The share-th quantile (0.5: the median) of count numbers, linear between neighbours; 0 for none. */
double stats_quantile(const double *values, int64_t count, double share);

/* over[i] / under[i] of the pairs where both are positive, into room for `count`; how many. */
int64_t stats_ratios(const double *over, const double *under, int64_t count, double *ratios);

/* The median of over[i] / under[i] over the pairs where both are positive; *pairs says how many. 0 for none. */
double stats_ratio(const double *over, const double *under, int64_t count, int64_t *pairs);

#endif

/* Medians, percentiles and paired ratios. */
#include "cli/base/stats.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stats_quantile(const double *values, int64_t count, double share)
{
    if (count <= 0)
        return 0;
    double *sorted = cli_alloc((size_t)count, sizeof(*sorted));
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), ascending);
    double position = share * (double)(count - 1);
    int64_t low = (int64_t)position, high = low + 1 < count ? low + 1 : low;
    double result = sorted[low] + (position - (double)low) * (sorted[high] - sorted[low]);
    free(sorted);
    return result;
}

int64_t stats_ratios(const double *over, const double *under, int64_t count, double *ratios)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (over[i] > 0 && under[i] > 0)
            ratios[kept++] = over[i] / under[i];
    return kept;
}

double stats_ratio(const double *over, const double *under, int64_t count, int64_t *pairs)
{
    double *ratios = cli_alloc(count > 0 ? (size_t)count : 1, sizeof(*ratios));
    const int64_t kept = stats_ratios(over, under, count, ratios);
    double median = stats_quantile(ratios, kept, 0.5);
    free(ratios);
    *pairs = kept;
    return median;
}

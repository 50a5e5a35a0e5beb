/* Names and sizes of the dtypes. */
#include "base/dtype.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {[SPK_F32] = {"f32", 4},       [SPK_F64] = {"f64", 8},       [SPK_F16] = {"f16", 2},   [SPK_BF16] = {"bf16", 2},
              [SPK_F8E4M3] = {"f8e4m3", 1}, [SPK_F8E5M2] = {"f8e5m2", 1}, [SPK_TF32] = {"tf32", 4}, [SPK_INT32] = {"i32", 4}};

static int known(int dtype)
{
    return dtype > 0 && dtype < (int)(sizeof dtypes / sizeof dtypes[0]);
}

const char *spk_dtype_name(spk_dtype dtype)
{
    return known((int)dtype) ? dtypes[dtype].name : NULL;
}

size_t spk_dtype_bytes(spk_dtype dtype)
{
    return known((int)dtype) ? dtypes[dtype].bytes : 0;
}

spk_dtype spk_dtype_from_name(const char *name)
{
    for (int i = 1; name != NULL && known(i); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (spk_dtype)i;
    return SPK_DTYPE_DEFAULT;
}

double spk_dtype_difference(spk_dtype dtype, double got, double want)
{
    if (got == want)
        return 0;
    if (dtype == SPK_F16 && isinf(got) && (got > 0 ? want >= 65504 : want <= -65504)) /* the largest float16; want itself is not exact */
        return 0;
    double difference = fabs(got - want);
    return dtype == SPK_F16 ? fmax(difference - 0x1p-25, 0) : difference;
}

/* check_written: whether every element of `lines` lines, ld apart, is a finite number, and the gaps between the lines are still bits of
 * one, as they were before. BITS: the type of an element's bits; EXPONENT: the bits that all are one in what is not finite. *found becomes
 * 1 where not. */
typedef unsigned short spk_u16;
typedef unsigned spk_u32;
typedef unsigned long long spk_u64;

extern "C" __global__ void check_written(const BITS *array, long long lines, long long length, long long ld, int *found)
{
    const long long total = (lines - 1) * ld + length, step = (long long)gridDim.x * blockDim.x;
    const BITS exponent = (BITS)EXPONENT, ones = (BITS) ~(BITS)0;
    bool bad = false;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += step) {
        const BITS bits = array[at];
        const bool inside = ld == length || at % ld < length;
        bad = bad || (inside ? (bits & exponent) == exponent : bits != ones);
    }
    if (bad)
        *found = 1;
}

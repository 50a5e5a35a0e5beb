/* Scores of any size, and their exponentials. The difference of two scores is exact; the difference of one times a factor and another times
 * it, rounded, is off by that rounding: of scores of 2^30 by more than the exponent of any number. So a score is multiplied and its row's
 * largest, or LSE, taken away in one instruction only where neither is large; the others are subtracted first, behind a branch that all
 * threads of a warp take together. Products that differences are made of are rounded() ones: compilers make one instruction of both. */
#ifndef SPK_DEVICE_LARGE_SCORES_CUH
#define SPK_DEVICE_LARGE_SCORES_CUH

constexpr float LEAST_SCORE = -3.402823466e38f; /* below every score, and finite: differences from it are no NaN */
constexpr float LARGE_SCORE = 2048;             /* in powers of two: the rounding of what is smaller changes exponentials by 2^-14 */
constexpr float HUGE_SCORE = 0x1p28f;           /* in powers of two: its rounding is 8 at most; scores beyond it are 16 apart, or equal */
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
static_assert(LOG2_E * LN_2 == 1, "a scale that is a power of two, made one of powers of two, would not come back");

inline float rounded(float a, float b)
{
    return __fmul_rn(a, b);
}
inline double rounded(double a, double b)
{
    return __dmul_rn(a, b);
}

inline bool is_large(float score2)
{
    return fabsf(score2) > LARGE_SCORE;
}

/* LSE of a sum of exponentials relative to the score `most`; a sum of none: minus infinity. Exact where the sum is 1. */
inline float lse_of(float most, float sum)
{
    return fmaf(log2f(sum), LN_2, most);
}

/* A part of a row: the score that its exponentials are relative to (minus infinity: it saw no key), and their sum. One number for both
 * would lose the sum beside a large score. */
inline void store_part_lse(float *part_lse, long long row, float most, float sum)
{
    part_lse[row * 2] = sum == 0 ? -__int_as_float(0x7f800000) : most;
    part_lse[row * 2 + 1] = sum;
}

/* In place of a large LSE in powers of two: exponents are what differences of scores and LSE were made before. */
constexpr float LSE_IS_LARGE = 0x1p-100f;

/* A weight's logarithm, by a score times `scale` and LSE. No weight is above 1, though LSE is rounded. Where that alone would decide
 * whether a row has a weight, a score as near to LSE as another order of sums may bring it has weight 1. */
inline float log_weight(float score, float scale, float lse)
{
    const float less = rounded(score, scale) - lse, near = fabsf(lse) * 0x1p-21f;
    return less > (near > 64 ? -near : 0) ? 0 : less; /* NaN stays */
}

#endif

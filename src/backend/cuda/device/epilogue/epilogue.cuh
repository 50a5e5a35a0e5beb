/* What happens to a sum on its way to D: D = act(alpha * sum + beta * C + bias) + residual, or times residual, the value before act kept
 * where asked. For one element, and for two neighbours along D's contiguous dimension. Everything that the problem does not use is compiled
 * out. */
#ifndef SPK_CUDA_EPILOGUE_CUH
#define SPK_CUDA_EPILOGUE_CUH

#include "backend/cuda/device/common/problem.cuh"

/* 2^x and 1 / x to some 2^-22, in one instruction each; results too small to be normal are 0. */
inline float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

inline float fast_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* x / (1 + exp(-u)); of minus infinity -0, as where the quotient is too small: so x ends at -200. */
template <bool fast> inline float gated(float x, float u)
{
    if (fast)
        return fmaxf(x, -200) * fast_reciprocal(1 + fast_exp2(-1.44269504088896340736f * u));
    return x == -__int_as_float(0x7f800000) ? -0.0f : x / (1 + expf(-u));
}

/* x (1 + erf(x / sqrt 2)) / 2. Where D is bf16: x / (1 + 2^-v) with v(x) = log2(P / (1 - P)), P the normal distribution, and v = x q(x^2),
 * where q is fitted so that the error stays below 2^-10.6 of the result or of 2^-14, whichever is greater: a third of what rounding costs.
 * f16: max(x, 0) - g, with g = |x| erfc(z) / 2 and z = |x| / sqrt 2. Then erfc(z) = t exp(p(t) - z^2), t = 1 / (1 + z / 2), where p is
 * fitted at Chebyshev points to log(erfc(z) exp(z^2) / t); the relative error stays below 2^-15. The coefficients are of log2(erfc(z)
 * exp(z^2) / t) - 1, and g is 0 from |x| = 30 on. */
template <bool fast> inline float gelu_erf(float x)
{
    if (!fast)
        return 0.5f * x * erfcf(-x * 0.70710678118654752440f);
#if DTYPE_D == BF16
    const float s = x * x;
    float q = 4.6755570e-7f; /* q grows with s, and stays above 0 */
    q = q * s - 7.9702391e-6f;
    q = q * s - 1.1175855e-3f;
    q = q * s + 0.10781186f;
    q = q * s + 2.2997293f;
    return fmaxf(x, -200) * fast_reciprocal(1 + fast_exp2(-x * q)); /* as in gated */
#else
    const float u = fminf(fabsf(x), 30), t = fast_reciprocal(1 + 0.35355339059327376220f * u);
    float p = 0.018958363f;
    p = p * t + 0.26008297f;
    p = p * t - 0.92034686f;
    p = p * t + 0.60833791f;
    p = p * t + 0.39683659f;
    p = p * t + 1.4629586f;
    p = p * t - 2.8268154f;
    const float g = u * t * fast_exp2(p - 0.72134752044448170368f * u * u);
    return (x <= 0 ? -0.0f : x) - g; /* a NaN stays */
#endif
}

/* Accurate to the rounding of float, or with a D of 16 bits to a small part of D's: there the instructions of an epilogue are what a fast
 * product waits for. Of minus infinity -0, not the NaN of -inf * 0. */
inline float activate(float x)
{
    [[maybe_unused]] constexpr bool fast = sizeof(element_d) == 2;
#if ACTIVATION == RELU
    return x <= 0 ? 0 : x; /* a NaN stays */
#elif ACTIVATION == GELU_ERF
    return !fast && x == -__int_as_float(0x7f800000) ? -0.0f : gelu_erf<fast>(x);
#elif ACTIVATION == GELU_TANH
    /* (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), which does not cancel */
    return gated<fast>(x, 1.59576912160573071176f * (x + 0.044715f * x * x * x));
#elif ACTIVATION == SILU
    return gated<fast>(x, x);
#else
    return x;
#endif
}

inline double activate(double x)
{
#if ACTIVATION == RELU
    return x <= 0 ? 0 : x;
#elif ACTIVATION == GELU_ERF
    return x == -__longlong_as_double(0x7ff0000000000000ll) ? -0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
#elif ACTIVATION == GELU_TANH
    double twice = 1.59576912160573071176 * (x + 0.044715 * x * x * x);
    return x == -__longlong_as_double(0x7ff0000000000000ll) ? -0.0 : x / (1 + exp(-twice));
#elif ACTIVATION == SILU
    return x == -__longlong_as_double(0x7ff0000000000000ll) ? -0.0 : x / (1 + exp(-x));
#else
    return x;
#endif
}

template <typename T> inline T with_residual(T value, T residual)
{
    return RESIDUAL == MULTIPLIED ? value * residual : value + residual;
}

/* Where element (i, j) of an array with D's layout lies. */
inline long long place(long long i, long long j, long long ld)
{
#if LAYOUT_D == ROW_MAJOR
    return i * ld + j;
#else
    return j * ld + i;
#endif
}

/* The final value of D's element (i, j), from its sum; reads C, bias and residual, writes preact. */
inline real finish(const spk_cuda_arguments &arg, long long i, long long j, real sum)
{
    real value = (real)arg.alpha * sum;
#if USE_C
    if (arg.beta != 0)
        value += (real)arg.beta * as<real>(((const element_d *)arg.c)[place(i, j, arg.ldc)]);
#endif
#if BIAS == BIAS_PER_ROW
    value += as<real>(((const element_d *)arg.bias)[i]);
#elif BIAS == BIAS_PER_COL
    value += as<real>(((const element_d *)arg.bias)[j]);
#endif
#if KEEP_PREACT
    ((element_d *)arg.preact)[place(i, j, arg.ldp)] = to<element_d>(value);
#endif
    value = activate(value);
#if RESIDUAL != NO_RESIDUAL
    value = with_residual(value, as<real>(((const element_d *)arg.residual)[place(i, j, arg.ldr)]));
#endif
    return value;
}

/* finish, and the store. */
inline void store_one(const spk_cuda_arguments &arg, long long i, long long j, real sum)
{
    ((element_d *)arg.d)[place(i, j, arg.ldd)] = to<element_d>(finish(arg, i, j, sum));
}

/* ---- two neighbours along D's contiguous dimension: (i, j) and (i, j + 1) of a row-major D, (i, j) and (i + 1, j) of a column-major
 * one */

/* Whether pairs that begin at an even index along that dimension may be read and written whole. The same for all threads. */
inline bool pairs_aligned(const spk_cuda_arguments &arg)
{
    const unsigned bytes = 2 * sizeof(element_d);
    bool fits = aligned_to(arg.d, bytes) && arg.ldd % 2 == 0;
#if USE_C
    fits = fits && (arg.beta == 0 || (aligned_to(arg.c, bytes) && arg.ldc % 2 == 0));
#endif
#if RESIDUAL != NO_RESIDUAL
    fits = fits && aligned_to(arg.residual, bytes) && arg.ldr % 2 == 0;
#endif
#if KEEP_PREACT
    fits = fits && aligned_to(arg.preact, bytes) && arg.ldp % 2 == 0;
#endif
    return fits;
}

/* The final values of a pair that lies wholly inside D, where pairs_aligned and the first is at an even index. */
inline void finish_pair(const spk_cuda_arguments &arg, long long i, long long j, real &first, real &second)
{
    first *= (real)arg.alpha;
    second *= (real)arg.alpha;
#if USE_C
    if (arg.beta != 0) {
        pieces<element_d, 2> c = load_pieces<element_d, 2>((const element_d *)arg.c + place(i, j, arg.ldc));
        first += (real)arg.beta * as<real>(c.at[0]);
        second += (real)arg.beta * as<real>(c.at[1]);
    }
#endif
#if BIAS != NO_BIAS
    const element_d *bias = (const element_d *)arg.bias + (BIAS == BIAS_PER_ROW ? i : j);
    const int step = (BIAS == BIAS_PER_COL) == (LAYOUT_D == ROW_MAJOR);
    first += as<real>(bias[0]);
    second += as<real>(bias[step]);
#endif
#if KEEP_PREACT
    store_pieces<element_d, 2>((element_d *)arg.preact + place(i, j, arg.ldp),
                               pieces<element_d, 2>{{to<element_d>(first), to<element_d>(second)}});
#endif
    first = activate(first);
    second = activate(second);
#if RESIDUAL != NO_RESIDUAL
    pieces<element_d, 2> r = load_pieces<element_d, 2>((const element_d *)arg.residual + place(i, j, arg.ldr));
    first = with_residual(first, as<real>(r.at[0]));
    second = with_residual(second, as<real>(r.at[1]));
#endif
}

/* A pair whose first element is at an even index along D's contiguous dimension; clips what lies beyond D. `whole` is pairs_aligned. */
inline void store_pair(const spk_cuda_arguments &arg, long long i, long long j, real first, real second, bool whole)
{
    const long long i1 = LAYOUT_D == ROW_MAJOR ? i : i + 1, j1 = LAYOUT_D == ROW_MAJOR ? j + 1 : j;
    if (i >= arg.m || j >= arg.n)
        return;
    const bool both = i1 < arg.m && j1 < arg.n;
    if (whole && both) {
        finish_pair(arg, i, j, first, second);
        store_pieces<element_d, 2>((element_d *)arg.d + place(i, j, arg.ldd),
                                   pieces<element_d, 2>{{to<element_d>(first), to<element_d>(second)}});
        return;
    }
    store_one(arg, i, j, first);
    if (both)
        store_one(arg, i1, j1, second);
}

#endif

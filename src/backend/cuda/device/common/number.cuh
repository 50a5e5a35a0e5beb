/* Numbers: the element types f16, bf16, f32 and f64 in memory, their conversion, and loads and stores of one to sixteen bytes. Device
 * programs have no vendor header, hence the few lines of PTX. */
#ifndef SPK_CUDA_NUMBER_CUH
#define SPK_CUDA_NUMBER_CUH

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

/* ---- to f32 or f64: exact */

inline float as_f32(f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
inline float as_f32(bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}
inline float as_f32(float x)
{
    return x;
}
inline float as_f32(double x)
{
    return (float)x;
}

/* ---- from f32: to the nearest, ties to even */

inline void convert(float x, f16 *y)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y->bits) : "f"(x));
}
inline void convert(float x, bf16 *y)
{
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y->bits) : "f"(x));
#else
    unsigned bits = __float_as_uint(x);
    y->bits = x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
inline void convert(float x, float *y)
{
    *y = x;
}
inline void convert(float x, double *y)
{
    *y = x;
}
inline void convert(double x, double *y)
{
    *y = x;
}
inline void convert(double x, float *y)
{
    *y = (float)x;
}
inline void convert(double x, f16 *y)
{
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y->bits) : "d"(x));
}
/* Through f32 rounded to odd, so that nothing is rounded twice. */
inline void convert(double x, bf16 *y)
{
    float near = __double2float_rz(x);
    if ((double)near != x && x == x && (__float_as_uint(near) & 0x7fffffffu) < 0x7f800000u)
        near = __uint_as_float(__float_as_uint(near) | 1u);
    convert(near, y);
}

template <class T, class R> inline T to(R x)
{
    T y;
    convert(x, &y);
    return y;
}

/* An element in the type that sums are kept in. */
template <class R, class T> struct widen {
    static inline R of(T x) { return as_f32(x); }
};
template <class R> struct widen<R, double> {
    static inline R of(double x) { return (R)x; }
};
template <class R, class T> inline R as(T x)
{
    return widen<R, T>::of(x);
}

/* Rounded to TF32 (10 bits of fraction), ties away from zero, as the tensor cores want it. */
inline unsigned tf32_bits(float x)
{
    unsigned y;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
#else
    y = __float_as_uint(x);
    y = (y & 0x7f800000u) == 0x7f800000u ? y : (y + 0x1000u) & ~0x1fffu;
#endif
    return y;
}

/* Two halves in a register, the first in the low half: what mma, wgmma and 4-byte stores take. */
inline unsigned pack_pair(f16 low, f16 high)
{
    return low.bits | (unsigned)high.bits << 16;
}
inline unsigned pack_pair(bf16 low, bf16 high)
{
    return low.bits | (unsigned)high.bits << 16;
}
inline unsigned pack_f16(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    unsigned y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
#else
    return pack_pair(to<f16>(low), to<f16>(high));
#endif
}
inline unsigned pack_bf16(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    unsigned y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
#else
    return pack_pair(to<bf16>(low), to<bf16>(high));
#endif
}
inline f16 low_half(unsigned pair, f16)
{
    return f16{(unsigned short)pair};
}
inline f16 high_half(unsigned pair, f16)
{
    return f16{(unsigned short)(pair >> 16)};
}
inline bf16 low_half(unsigned pair, bf16)
{
    return bf16{(unsigned short)pair};
}
inline bf16 high_half(unsigned pair, bf16)
{
    return bf16{(unsigned short)(pair >> 16)};
}

/* ---- elements that lie together: pieces<T, N> is N elements aligned to their whole size (a power of two up to 16 bytes), read and written
 * with one instruction. */

template <class T, int N> struct alignas(sizeof(T) * N) pieces {
    T at[N];
};

template <int BYTES> struct raw_bytes;
template <> struct raw_bytes<2> {
    typedef unsigned short type;
};
template <> struct raw_bytes<4> {
    typedef unsigned type;
};
template <> struct raw_bytes<8> {
    typedef uint2 type;
};
template <> struct raw_bytes<16> {
    typedef uint4 type;
};

template <class T, int N> union piece_bits {
    typename raw_bytes<sizeof(T) * N>::type raw;
    pieces<T, N> value;
    inline piece_bits() {}
};

template <class T, int N> inline pieces<T, N> load_pieces(const T *from)
{
    piece_bits<T, N> bits;
    bits.raw = *(const typename raw_bytes<sizeof(T) * N>::type *)from;
    return bits.value;
}
/* The same through the read-only cache: for what nobody writes during the kernel. */
template <class T, int N> inline pieces<T, N> load_constant(const T *from)
{
    piece_bits<T, N> bits;
    bits.raw = __ldg((const typename raw_bytes<sizeof(T) * N>::type *)from);
    return bits.value;
}
template <class T, int N> inline void store_pieces(T *to, const pieces<T, N> &value)
{
    piece_bits<T, N> bits;
    bits.value = value;
    *(typename raw_bytes<sizeof(T) * N>::type *)to = bits.raw;
}

inline bool aligned_to(const void *pointer, unsigned bytes)
{
    return ((unsigned long long)pointer & (bytes - 1)) == 0;
}

#endif

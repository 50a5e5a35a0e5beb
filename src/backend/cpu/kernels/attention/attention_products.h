/* The products of attention: C = A B, or C += A B, of dense tiles in the first caches. Columns of B and C are whole vectors. PAIRED:
 * elements of A and B are pairs of bfloat16 numbers, neighbours along what is summed, for vdpbf16ps or, with `floats`, for two
 * multiply-adds, which do not take denormal numbers for 0 (tile_pairs.h). */
#include "backend/cpu/kernels/vectors/vector.h"

/* What a row wants, beside its types. */
#ifndef PAIRED /* 1: bfloat16 alone, in pairs */
#define PAIRED 0
#endif
#ifndef TILES /* 1: pairs by AMX */
#define TILES 0
#endif
#ifndef GRADIENTS /* 1: the operation is attention_backward */
#define GRADIENTS 0
#endif

#ifndef ATTENTION_PRODUCTS_H
#define ATTENTION_PRODUCTS_H

enum { T(attention_rows) = 6, T(attention_vectors) = VECTOR_REGISTERS == 32 ? 4 : 2, T(attention_step) = T(attention_vectors) *T(lanes) };

#if PAIRED
SPK_INLINE T(words) T(pair_splat)(const REAL *pair)
{
    uint32_t both;
    __builtin_memcpy(&both, pair, sizeof both);
    return (T(words))_mm512_set1_epi32((int)both);
}

SPK_INLINE T(vec) T(pair_fused)(T(vec) sum, T(words) a, T(words) b, const bool floats)
{
    if (floats)
        return (sum + (T(vec))(a << 16) * (T(vec))(b << 16)) + (T(vec))(a >> 16 << 16) * (T(vec))(b >> 16 << 16);
    /* _mm512_dpbf16_ps: GCC takes it for a call that may read memory, and stores all sums at each step. */
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    return sum;
}
#endif

/* sum + a b. */
SPK_INLINE T(vec) T(attention_fused)(T(vec) sum, const REAL *a, T(vec) b, const bool floats)
{
#if PAIRED
    return T(pair_fused)(sum, T(pair_splat)(a), (T(words))b, floats);
#else
    (void)floats;
    return sum + *a * b;
#endif
}

/* Element (i, k) of A is a[i * down + k * across]: one of the two is 1. */
SPK_INLINE void T(attention_square)(const int rows, const int vectors, const bool add, const bool floats, int64_t depth, const REAL *a,
                                    int64_t down, int64_t across, const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    T(vec) sum[T(attention_rows)][T(attention_vectors)];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add ? T(load)(c + i * ldc + v * T(lanes)) : (T(vec)){0};
    for (int64_t k = 0; k < depth; k++)
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[i][v] = T(attention_fused)(sum[i][v], a + i * down + k * across, T(load)(b + k * ldb + v * T(lanes)), floats);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            T(store)(c + i * ldc + v * T(lanes), sum[i][v]);
}

SPK_INLINE void T(attention_column)(int64_t rows, const int vectors, const bool add, const bool floats, int64_t depth, const REAL *a,
                                    int64_t down, int64_t across, const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + T(attention_rows) <= rows; i += T(attention_rows))
        T(attention_square)(T(attention_rows), vectors, add, floats, depth, a + i * down, down, across, b, ldb, c + i * ldc, ldc);
    for (; i + 2 <= rows; i += 2)
        T(attention_square)(2, vectors, add, floats, depth, a + i * down, down, across, b, ldb, c + i * ldc, ldc);
    if (i < rows)
        T(attention_square)(1, vectors, add, floats, depth, a + i * down, down, across, b, ldb, c + i * ldc, ldc);
}

/* Columns of B by as many as a square takes: `panel` elements from one such panel to the next. */
SPK_INLINE void T(attention_columns)(int64_t rows, int64_t columns, const bool add, const bool floats, int64_t depth, const REAL *a,
                                     int64_t down, int64_t across, const REAL *b, int64_t ldb, int64_t panel, REAL *c, int64_t ldc)
{
    const int64_t step = T(attention_step);
    int64_t j = 0;
    for (; j + step <= columns; j += step, b += panel)
        T(attention_column)(rows, T(attention_vectors), add, floats, depth, a, down, across, b, ldb, c + j, ldc);
    for (; j < columns; j += T(lanes), b += T(lanes))
        T(attention_column)(rows, 1, add, floats, depth, a, down, across, b, ldb, c + j, ldc);
}

#if !TILES
/* C = A B, where B lies in panels of `depth` rows each. */
static void T(attention_multiply)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b, REAL *c,
                                  int64_t ldc)
{
    T(attention_columns)(rows, columns, false, false, depth, a, lda, 1, b, T(attention_step), T(attention_step) *depth, c, ldc);
}

/* C += A B, some rows of B at a time, which stay in the first cache. */
static void T(attention_add)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b, int64_t ldb, REAL *c,
                             int64_t ldc)
{
    const int64_t some = 64;
    for (int64_t k = 0; k < depth; k += some)
        T(attention_columns)(rows, columns, true, false, depth - k < some ? depth - k : some, a + k, lda, 1, b + k * ldb, ldb,
                             T(attention_step), c, ldc);
}

#if GRADIENTS
/* The same of an A that lies turned: element (i, k) is a[k * lda + i]. */
static void T(attention_add_turned)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b, int64_t ldb,
                                    REAL *c, int64_t ldc)
{
    T(attention_columns)(rows, columns, true, false, depth, a, 1, lda, b, ldb, T(attention_step), c, ldc);
}
#endif
#endif

#if PAIRED
/* The same by multiply-adds of floats. */
static void T(attention_multiply_floats)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b, REAL *c,
                                         int64_t ldc)
{
    T(attention_columns)(rows, columns, false, true, depth, a, lda, 1, b, T(attention_step), T(attention_step) *depth, c, ldc);
}

static void T(attention_add_floats)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b, int64_t ldb,
                                    REAL *c, int64_t ldc)
{
    T(attention_columns)(rows, columns, true, true, depth, a, lda, 1, b, ldb, T(attention_step), c, ldc);
}

#if GRADIENTS
static void T(attention_add_turned_floats)(int64_t rows, int64_t columns, int64_t depth, const REAL *a, int64_t lda, const REAL *b,
                                           int64_t ldb, REAL *c, int64_t ldc)
{
    T(attention_columns)(rows, columns, true, true, depth, a, 1, lda, b, ldb, T(attention_step), c, ldc);
}
#endif
#endif

/* exp(x) of x <= 0, within 2 ulp; 0 where the result would not be normal; NaN stays NaN. As T(exp), with less to ask. */
SPK_INLINE T(vec) T(attention_exp)(T(vec) x)
{
#if REAL_BITS == 64
    return T(exp)(x);
#else
    /* The shifter's low bits are the exponent's bias: those of the sum become 2^n. */
    const REAL shifter = 12583039.0f, lowest = -87, log2_high = 0.693145751953125f, log2_low = 1.428606765330187e-6f;
    const T(vec) zero = {0}, shifted = x * 1.44269504f + shifter, n = shifted - shifter, r = (x - n * log2_high) - n * log2_low;
    T(vec) sum = zero + 1.0f / 5040;
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return (T(vec))((T(bits))(sum * (T(vec))((T(bits))shifted << 23)) & ~(x < lowest));
#endif
}

/* The greater, lane by lane; b where one is NaN. Then of all lanes, and the sum of all lanes: by halves. Intrinsics, as a comparison and a
 * choice do not become one instruction. */
#if ISA == AVX512
#if REAL_BITS == 64
#define M512(name) _mm512_##name##_pd
#else
#define M512(name) _mm512_##name##_ps
#endif
SPK_INLINE T(vec) T(attention_greater)(T(vec) a, T(vec) b)
{
    return (T(vec))M512(max)(a, b);
}

SPK_INLINE REAL T(attention_highest)(T(vec) v)
{
    return M512(reduce_max)(v);
}

SPK_INLINE REAL T(attention_total)(T(vec) v)
{
    return M512(reduce_add)(v);
}
#undef M512
#else
SPK_INLINE T(vec) T(attention_greater)(T(vec) a, T(vec) b)
{
#if ISA == AVX2 && REAL_BITS == 64
    return (T(vec))_mm256_max_pd(a, b);
#elif ISA == AVX2
    return (T(vec))_mm256_max_ps(a, b);
#else
    return T(select)(a > b, a, b);
#endif
}

/* Each lane's partner, `by` lanes away. */
#if VECTOR_BYTES * 8 / REAL_BITS == 8
#define PARTNERS(v, by)                                                \
    (by == 4   ? __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3) \
     : by == 2 ? __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5) \
               : __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6))
#elif VECTOR_BYTES * 8 / REAL_BITS == 4
#define PARTNERS(v, by) (by == 2 ? __builtin_shufflevector(v, v, 2, 3, 0, 1) : __builtin_shufflevector(v, v, 1, 0, 3, 2))
#else
#define PARTNERS(v, by) __builtin_shufflevector(v, v, 1, 0)
#endif
SPK_INLINE REAL T(attention_highest)(T(vec) v)
{
#pragma GCC unroll 4
    for (int by = T(lanes) / 2; by > 0; by /= 2)
        v = T(attention_greater)(PARTNERS(v, by), v);
    return v[0];
}

SPK_INLINE REAL T(attention_total)(T(vec) v)
{
#pragma GCC unroll 4
    for (int by = T(lanes) / 2; by > 0; by /= 2)
        v += PARTNERS(v, by);
    return v[0];
}
#undef PARTNERS
#endif

#endif

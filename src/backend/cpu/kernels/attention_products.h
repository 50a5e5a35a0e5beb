/* Template of the products of attention, after vector.h: C = A B, or C += A B, of dense tiles in the first caches. Columns of B and C are
 * whole vectors. */

enum { T(attention_rows) = 6, T(attention_vectors) = VECTOR_BYTES == 64 ? 4 : 2 };

SPK_INLINE void T(attention_square)(const int rows, const int vectors, const bool add, int64_t depth, const REAL *a, int64_t lda,
                                    const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
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
                sum[i][v] += a[i * lda + k] * T(load)(b + k * ldb + v * T(lanes));
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            T(store)(c + i * ldc + v * T(lanes), sum[i][v]);
}

SPK_INLINE void T(attention_column)(int64_t rows, const int vectors, const bool add, int64_t depth, const REAL *a, int64_t lda,
                                    const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + T(attention_rows) <= rows; i += T(attention_rows))
        T(attention_square)(T(attention_rows), vectors, add, depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
    for (; i + 2 <= rows; i += 2)
        T(attention_square)(2, vectors, add, depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
    if (i < rows)
        T(attention_square)(1, vectors, add, depth, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
}

SPK_INLINE void T(attention_columns)(int64_t rows, int64_t columns, const bool add, int64_t depth, const REAL *a, int64_t lda,
                                     const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    const int64_t step = T(attention_vectors) *T(lanes);
    int64_t j = 0;
    for (; j + step <= columns; j += step)
        T(attention_column)(rows, T(attention_vectors), add, depth, a, lda, b + j, ldb, c + j, ldc);
    for (; j < columns; j += T(lanes))
        T(attention_column)(rows, 1, add, depth, a, lda, b + j, ldb, c + j, ldc);
}

static void T(attention_multiply)(int64_t rows, int64_t columns, bool add, int64_t depth, const REAL *a, int64_t lda, const REAL *b,
                                  int64_t ldb, REAL *c, int64_t ldc)
{
    if (add)
        T(attention_columns)(rows, columns, true, depth, a, lda, b, ldb, c, ldc);
    else
        T(attention_columns)(rows, columns, false, depth, a, lda, b, ldb, c, ldc);
}

/* exp(x) of x <= 0, within 2 ulp; 0 where the result would not be normal; NaN stays NaN. As T(exp), with less to ask. */
SPK_INLINE T(vec) T(attention_exp)(T(vec) x)
{
#if REAL_BITS == 64
    return T(exp)(x);
#else
    const REAL shifter = 12582912.0f, lowest = -87, log2_high = 0.693145751953125f, log2_low = 1.428606765330187e-6f;
    const T(vec) zero = {0}, shifted = x * 1.44269504f + shifter, n = shifted - shifter, r = (x - n * log2_high) - n * log2_low;
    T(vec) sum = zero + 1.0f / 5040;
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    const T(vec) power = (T(vec))(((T(bits))shifted - (T(bits))(zero + shifter) + 127) << 23);
    return T(select)(x < lowest, zero, sum * power);
#endif
}

/* Of all lanes, by halves. */
SPK_INLINE T(vec) T(attention_halve)(T(vec) v, int by)
{
#ifdef __clang__ /* which has no shuffle by a vector, and makes one of this */
    T(vec) other;
    for (int lane = 0; lane < T(lanes); lane++)
        other[lane] = v[lane ^ by];
    return other;
#else
    T(bits) from;
    for (int lane = 0; lane < T(lanes); lane++)
        from[lane] = lane ^ by;
    return __builtin_shuffle(v, from);
#endif
}

SPK_INLINE REAL T(attention_highest)(T(vec) v)
{
#pragma GCC unroll 4
    for (int by = T(lanes) / 2; by > 0; by /= 2) {
        const T(vec) other = T(attention_halve)(v, by);
        v = T(select)(other > v, other, v);
    }
    return v[0];
}

SPK_INLINE REAL T(attention_total)(T(vec) v)
{
#pragma GCC unroll 4
    for (int by = T(lanes) / 2; by > 0; by /= 2)
        v += T(attention_halve)(v, by);
    return v[0];
}

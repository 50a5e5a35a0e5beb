/* The epilogue of a tile of accumulators of 64 rows, in registers (mma.cuh says which thread holds what): a warp has 16 rows, and of 8 columns each thread has
 * two neighbours in rows r and r + 8. A fast product waits for the instructions here: a tile inside of D has a path without a question at each element. */
#ifndef SPK_DEVICE_FINISH_CUH
#define SPK_DEVICE_FINISH_CUH

#include "device/epilogue.cuh"
#include "device/ptx.cuh"

#define PLAIN_EPILOGUE (!USE_C && BIAS == NO_BIAS && ACTIVATION == NO_ACTIVATION && RESIDUAL == NO_RESIDUAL && !KEEP_PREACT)

namespace sm90 {

/* A thread's two neighbours of a warp's 8 rows and 8 columns: row lane / 4, columns lane % 4 * 2 and the next. Of an array with D's layout, whose pairs are
 * aligned; the first row and the first column are even. By whole warps.
 *
 * Column-major arrays of 16 bits are read and written by the pairs that lie together there, and turned in registers. */
#define TURNED (LAYOUT_D == COL_MAJOR && (DTYPE_D == F16 || DTYPE_D == BF16))

SPK_INLINE unsigned turn(unsigned pair)
{
    unsigned turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(pair));
    return turned;
}

/* Where the thread's pair lies, as it is read and written. */
SPK_INLINE long long place_of_two(int i0, int j0, long long ld)
{
    const int lane = threadIdx.x % 32;
    return TURNED ? place(i0 + lane % 4 * 2, j0 + lane / 4, ld) : place(i0 + lane / 4, j0 + lane % 4 * 2, ld);
}

/* As it lies in memory. */
SPK_INLINE pieces<element_d, 2> load_two(const void *array, long long ld, int i0, int j0)
{
    const element_d *from = (const element_d *)array + place_of_two(i0, j0, ld);
#if TURNED || LAYOUT_D == ROW_MAJOR
    return load_pieces<element_d, 2>(from);
#else
    return {{from[0], from[ld]}};
#endif
}

SPK_INLINE void unpack_two(const pieces<element_d, 2> &two, float (&x)[2])
{
#if TURNED
    const unsigned pair = turn(pack_pair(two.at[0], two.at[1]));
    x[0] = as<float>(low_half(pair, element_d()));
    x[1] = as<float>(high_half(pair, element_d()));
#else
    x[0] = as<float>(two.at[0]);
    x[1] = as<float>(two.at[1]);
#endif
}

SPK_INLINE void store_two(void *array, long long ld, int i0, int j0, const float (&x)[2])
{
    element_d *at = (element_d *)array + place_of_two(i0, j0, ld);
    const element_d first = to<element_d>(x[0]), second = to<element_d>(x[1]);
#if TURNED
    *(unsigned *)at = turn(pack_pair(first, second));
#elif LAYOUT_D == ROW_MAJOR
    store_pieces<element_d, 2>(at, pieces<element_d, 2>{{first, second}});
#else
    at[0] = first;
    at[ld] = second;
#endif
}

/* What a pair's epilogue reads of the arrays with D's layout. */
struct pair_operands {
    pieces<element_d, 2> c, residual;
};

/* Of pairs that follow one another in a thread's sums, from pair `first` on. */
template <int pairs> SPK_INLINE void load_operands(const spk_cuda_arguments &arg, pair_operands (&to)[pairs], int i0, int j0, int first)
{
#pragma unroll
    for (int u = 0; u < pairs; u++) {
        [[maybe_unused]] const int i = i0 + (first + u) % 2 * 8, j = j0 + (first + u) / 2 * 8;
#if USE_C
        if (arg.beta != 0)
            to[u].c = load_two(arg.c, arg.ldc, i, j);
#endif
#if RESIDUAL != NO_RESIDUAL
        to[u].residual = load_two(arg.residual, arg.ldr, i, j);
#endif
    }
}

/* Where the 8 rows and 8 columns lie inside of D, whose arrays have aligned pairs. row_bias: of the thread's row, where there is one for each. */
SPK_INLINE void finish_inside(const spk_cuda_arguments &arg, [[maybe_unused]] const pair_operands &operands, float (&value)[2], int i0, int j0,
                              [[maybe_unused]] float row_bias)
{
    [[maybe_unused]] float other[2];
    value[0] *= (float)arg.alpha;
    value[1] *= (float)arg.alpha;
#if USE_C
    if (arg.beta != 0) {
        unpack_two(operands.c, other);
        value[0] += (float)arg.beta * other[0];
        value[1] += (float)arg.beta * other[1];
    }
#endif
#if BIAS == BIAS_PER_ROW
    value[0] += row_bias;
    value[1] += row_bias;
#elif BIAS == BIAS_PER_COL
    const element_d *bias = (const element_d *)arg.bias + j0 + threadIdx.x % 4 * 2;
    value[0] += as<float>(bias[0]);
    value[1] += as<float>(bias[1]);
#endif
#if KEEP_PREACT
    store_two(arg.preact, arg.ldp, i0, j0, value);
#endif
    value[0] = activate(value[0]);
    value[1] = activate(value[1]);
#if RESIDUAL != NO_RESIDUAL
    unpack_two(operands.residual, other);
    value[0] = with_residual(value[0], other[0]);
    value[1] = with_residual(value[1], other[1]);
#endif
}

/* At D's edge, or with arrays of any alignment. */
SPK_INLINE void finish_any(const spk_cuda_arguments &arg, float (&value)[2], int i0, int j0)
{
    const int i = i0 + threadIdx.x % 32 / 4, j = j0 + threadIdx.x % 4 * 2;
    if (i < arg.m && j < arg.n)
        value[0] = finish(arg, i, j, value[0]);
    if (i < arg.m && j + 1 < arg.n)
        value[1] = finish(arg, i, j + 1, value[1]);
}

#define READ_ARRAYS (USE_C + (RESIDUAL != NO_RESIDUAL))

/* What lies in so many bytes comes to L2: whole 16 bytes, and no page is touched that has none of them. */
SPK_INLINE void prefetch_bytes(const void *from, int bytes)
{
    const unsigned long long begin = (unsigned long long)from & ~15ull, end = ((unsigned long long)from + bytes) & ~15ull;
    if (end > begin)
        prefetch_l2_bytes(begin, (unsigned)(end - begin));
}

/* Of an array with D's layout, what finish_tile will read where the warps of piece_rows rows have neighbouring rows. By those whole warps. */
template <int columns, int piece_rows> SPK_INLINE void prefetch_array(const spk_cuda_arguments &arg, const void *array, long long ld, int i0, int j0)
{
    const element_d *from = (const element_d *)array;
    const int lane = threadIdx.x % 32, n = min(columns, (int)arg.n - j0);
#if LAYOUT_D == ROW_MAJOR
    if (lane < 16 && i0 + lane < arg.m)
        prefetch_bytes(from + place(i0 + lane, j0, ld), n * (int)sizeof(element_d));
#else
    const int part = threadIdx.x / 32 % (piece_rows / 16), first = i0 - part * 16, rows = min(piece_rows, (int)arg.m - first);
    for (int j = part * 32 + lane; j < n; j += 2 * piece_rows)
        prefetch_bytes(from + place(first, j0 + j, ld), rows * (int)sizeof(element_d));
#endif
}

/* Before the products of a tile: what its epilogue will read comes from memory meanwhile. i0, j0: as of finish_tile. */
template <int columns, int piece_rows> SPK_INLINE void prefetch_operands([[maybe_unused]] const spk_cuda_arguments &arg, [[maybe_unused]] int i0, [[maybe_unused]] int j0)
{
#if READ_ARRAYS
    if (i0 < 0)
        return;
#endif
#if USE_C
    if (arg.beta != 0)
        prefetch_array<columns, piece_rows>(arg, arg.c, arg.ldc, i0, j0);
#endif
#if RESIDUAL != NO_RESIDUAL
    prefetch_array<columns, piece_rows>(arg, arg.residual, arg.ldr, i0, j0);
#endif
}

/* The epilogue in place. i0: D's row of the warp's first row, negative: none; j0: D's column of the tile's first, even. early: registers are there for more of
 * what it reads. */
template <int columns, bool early = true> SPK_INLINE void finish_tile(const spk_cuda_arguments &arg, float (&sum)[columns / 2], int i0, int j0)
{
#if PLAIN_EPILOGUE
    const float alpha = (float)arg.alpha;
    if (alpha == 1)
        return;
#pragma unroll
    for (int at = 0; at < columns / 2; at++)
        sum[at] *= alpha;
#else
    if (i0 < 0)
        return;
    const bool inside = i0 % 2 == 0 && i0 + 16 <= arg.m && j0 + columns <= arg.n && pairs_aligned(arg);
    float row_bias[2] = {0, 0};
#if BIAS == BIAS_PER_ROW
    if (inside) {
        row_bias[0] = as<float>(((const element_d *)arg.bias)[i0 + threadIdx.x % 32 / 4]);
        row_bias[1] = as<float>(((const element_d *)arg.bias)[i0 + threadIdx.x % 32 / 4 + 8]);
    }
#endif
    /* Pairs at a time; early: what the next ones need is on its way meanwhile. */
    constexpr int most = early && READ_ARRAYS > 0 ? 32 / (int)sizeof(element_d) >> (READ_ARRAYS + KEEP_PREACT) : 2, pairs = columns / 4 < most ? columns / 4 : most;
    constexpr int ahead = early ? pairs : 0;
    pair_operands operands[2][pairs];
    if (inside && early)
        load_operands(arg, operands[0], i0, j0, 0);
#pragma unroll
    for (int first = 0; first < columns / 4; first += pairs) {
        if (inside && first + ahead < columns / 4)
            load_operands(arg, operands[(first + ahead) / pairs % 2], i0, j0, first + ahead);
#pragma unroll
        for (int u = 0; u < pairs; u++) {
            const int at = 2 * (first + u), i = i0 + (first + u) % 2 * 8, j = j0 + (first + u) / 2 * 8;
            float value[2] = {sum[at], sum[at + 1]};
            if (inside)
                finish_inside(arg, operands[first / pairs % 2][u], value, i, j, row_bias[(first + u) % 2]);
            else
                finish_any(arg, value, i, j);
            sum[at] = value[0];
            sum[at + 1] = value[1];
        }
        asm volatile("" ::: "memory"); /* else all loads go ahead of all else, and registers run out */
    }
#endif
}

} // namespace sm90

#endif

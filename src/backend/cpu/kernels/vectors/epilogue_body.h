/* The epilogue of a finished piece of the product: D = act(alpha acc + beta C + bias) + residual, or times it, with D and what it is made
 * of in STORED. Promises: each element is read before it is written (D may be C or residual), C is not read where beta = 0, nothing
 * outside the piece is touched. Kernels include epilogue.h. */
#include "backend/cpu/kernels/vectors/stored.h"

/* The operands of a piece as lines of contiguous elements of D: rows where D is row-major, else columns. */
typedef struct S(epilogue_lines) {
    const REAL *acc;
    int64_t acc_ld;
    int64_t lines, length;
    REAL alpha, beta;
    const STORED *c, *residual; /* NULL: absent */
    bool multiplies;            /* the residual */
    STORED *preact;             /* NULL: not kept */
    STORED *d;
    int64_t ldc, ldr, ldp, ldd;
    const STORED *line_bias;  /* one a line; NULL: none */
    const STORED *along_bias; /* along each line; NULL: none */
} S(epilogue_lines);

/* What takes part, beside alpha and the activation: at most a bias a line; a bias along the lines; anything. */
#ifndef EPILOGUE_MODES
#define EPILOGUE_MODES
enum { EPILOGUE_LEAN, EPILOGUE_ALONG, EPILOGUE_FULL };
#endif

SPK_INLINE void S(epilogue_vector)(const S(epilogue_lines) *e, const spk_activation activation, const int mode, int64_t i, int64_t j,
                                   T(vec) bias, int64_t part)
{
#define FETCH(pointer) (part > 0 ? S(load_part)(pointer, part) : S(load)(pointer))
    const REAL *acc = e->acc + i * e->acc_ld + j;
    T(vec) v = e->alpha * (part > 0 ? T(load_part)(acc, part) : T(load)(acc));
    if (mode == EPILOGUE_FULL && e->c != NULL)
        v += e->beta * FETCH(e->c + i * e->ldc + j);
    if (mode == EPILOGUE_ALONG || (mode == EPILOGUE_FULL && e->along_bias != NULL))
        v += FETCH(e->along_bias + j);
    else
        v += bias;
    if (mode == EPILOGUE_FULL && e->preact != NULL) {
        if (part > 0)
            S(store_part)(e->preact + i * e->ldp + j, v, part);
        else
            S(store)(e->preact + i * e->ldp + j, v);
    }
    v = T(activate)(activation, v);
    if (mode == EPILOGUE_FULL && e->residual != NULL)
        v = e->multiplies ? v * FETCH(e->residual + i * e->ldr + j) : v + FETCH(e->residual + i * e->ldr + j);
#undef FETCH
    if (part > 0)
        S(store_part)(e->d + i * e->ldd + j, v, part);
    else
        S(store)(e->d + i * e->ldd + j, v);
}

/* activation and mode are constants where this is inlined. */
SPK_INLINE void S(epilogue_run)(const S(epilogue_lines) *lines, const spk_activation activation, const int mode)
{
    const S(epilogue_lines) e = *lines;
    const int64_t whole = e.length - e.length % T(lanes);
    for (int64_t i = 0; i < e.lines; i++) {
        const T(vec) bias = T(splat)(e.line_bias != NULL ? S(get)(e.line_bias + i) : 0);
        for (int64_t j = 0; j < whole; j += T(lanes))
            S(epilogue_vector)(&e, activation, mode, i, j, bias, 0);
        if (whole < e.length)
            S(epilogue_vector)(&e, activation, mode, i, whole, bias, e.length - whole);
    }
}

typedef void (*S(epilogue_function))(const S(epilogue_lines) *lines);

/* clang-format off */
#define EPILOGUE(name, activation)                                                                                                \
    static void S(epilogue_lean_##name)(const S(epilogue_lines) *lines) { S(epilogue_run)(lines, activation, EPILOGUE_LEAN); }    \
    static void S(epilogue_along_##name)(const S(epilogue_lines) *lines) { S(epilogue_run)(lines, activation, EPILOGUE_ALONG); }  \
    static void S(epilogue_full_##name)(const S(epilogue_lines) *lines) { S(epilogue_run)(lines, activation, EPILOGUE_FULL); }    \
    static const S(epilogue_function) S(epilogue_##name)[] = {S(epilogue_lean_##name), S(epilogue_along_##name), S(epilogue_full_##name)};
EPILOGUE(none, SPK_ACT_NONE)
EPILOGUE(relu, SPK_ACT_RELU)
EPILOGUE(gelu_erf, SPK_ACT_GELU_ERF)
EPILOGUE(gelu_tanh, SPK_ACT_GELU_TANH)
EPILOGUE(silu, SPK_ACT_SILU)
#undef EPILOGUE
/* clang-format on */

static void S(epilogue_dispatch)(const S(epilogue_lines) *lines, spk_activation activation)
{
    static const S(epilogue_function) *const functions[] = {S(epilogue_none), S(epilogue_relu), S(epilogue_gelu_erf), S(epilogue_gelu_tanh),
                                                            S(epilogue_silu)};
    const bool full = lines->c != NULL || lines->residual != NULL || lines->preact != NULL;
    functions[activation][full ? EPILOGUE_FULL : lines->along_bias != NULL ? EPILOGUE_ALONG : EPILOGUE_LEAN](lines);
}

/* Lines `first` to `end` of an array, a piece of each: they are on other pages, where no hardware looks ahead. */
SPK_INLINE void S(fetch_lines)(const STORED *array, int64_t ld, int64_t first, int64_t end, int64_t length)
{
    for (int64_t line = first; line < end; line++)
        for (int64_t at = 0; at < length; at += 64 / (int64_t)sizeof(STORED))
            __builtin_prefetch(array + line * ld + at, 0, 3);
}

/* acc[i * acc_ld + j] is the sum for D[row0 + i][col0 + j], as in cpu.h. */
static void S(epilogue)(const spk_problem *problem, const spk_args *args, const REAL *acc, int64_t acc_ld, int64_t row0, int64_t rows,
                        int64_t col0, int64_t cols)
{
    const spk_epilogue *want = &problem->epilogue;
    const bool tight = problem->d.ld == problem->n && (!want->use_c || problem->c.ld == problem->n) &&
                       (want->residual == SPK_RESIDUAL_NONE || problem->residual.ld == problem->n) &&
                       (!want->keep_preact || problem->preact.ld == problem->n);
    /* A single tight column is contiguous either way: better one long line than many of one element. */
    const bool row_major = problem->d.layout == SPK_ROW_MAJOR && !(problem->n == 1 && tight);
    const int64_t line0 = row_major ? row0 : col0, along0 = row_major ? col0 : row0;
    S(epilogue_lines) e = {.acc = acc,
                           .acc_ld = acc_ld,
                           .lines = row_major ? rows : cols,
                           .length = row_major ? cols : rows,
                           .alpha = (REAL)args->alpha,
                           .beta = (REAL)args->beta,
                           .multiplies = want->residual == SPK_RESIDUAL_MULTIPLY,
                           .ldc = problem->c.ld,
                           .ldr = problem->residual.ld,
                           .ldp = problem->preact.ld,
                           .ldd = problem->d.ld,
                           .d = (STORED *)args->d + line0 * problem->d.ld + along0};
    if (want->use_c && args->beta != 0)
        e.c = (const STORED *)args->c + line0 * e.ldc + along0;
    if (want->residual != SPK_RESIDUAL_NONE)
        e.residual = (const STORED *)args->residual + line0 * e.ldr + along0;
    if (want->keep_preact)
        e.preact = (STORED *)args->preact + line0 * e.ldp + along0;
    if (want->bias != SPK_BIAS_NONE) {
        const STORED *bias = args->bias;
        if ((want->bias == SPK_BIAS_PER_ROW) == row_major)
            e.line_bias = bias + line0;
        else
            e.along_bias = bias + along0;
    }
    if (row_major) {
        if (tight && cols == problem->n && acc_ld == cols && want->bias == SPK_BIAS_NONE) { /* whole rows without a gap: one line */
            e.lines = 1;
            e.length = rows * cols;
        }
        S(epilogue_dispatch)(&e, want->activation);
        return;
    }
    /* Column-major: the sums of a few columns at a time are turned, so that every operand is read and written along its columns. */
    enum { ROWS = 64, COLS = 16 };
    REAL turned[COLS * ROWS];
    for (int64_t i0 = 0; i0 < rows; i0 += ROWS)
        for (int64_t j0 = 0; j0 < cols; j0 += COLS) {
            S(epilogue_lines) part = e;
            part.acc = turned;
            part.acc_ld = ROWS;
            part.lines = cols - j0 < COLS ? cols - j0 : COLS;
            part.length = rows - i0 < ROWS ? rows - i0 : ROWS;
            for (int64_t i = 0; i < part.length; i++)
                for (int64_t j = 0; j < part.lines; j++)
                    turned[j * ROWS + i] = acc[(i0 + i) * acc_ld + j0 + j];
            if (e.residual != NULL)
                S(fetch_lines)(e.residual + i0, e.ldr, j0 + COLS, j0 + 2 * COLS < cols ? j0 + 2 * COLS : cols, part.length);
            if (e.c != NULL)
                S(fetch_lines)(e.c + i0, e.ldc, j0 + COLS, j0 + 2 * COLS < cols ? j0 + 2 * COLS : cols, part.length);
            part.d += j0 * e.ldd + i0;
            part.c = e.c != NULL ? e.c + j0 * e.ldc + i0 : NULL;
            part.residual = e.residual != NULL ? e.residual + j0 * e.ldr + i0 : NULL;
            part.preact = e.preact != NULL ? e.preact + j0 * e.ldp + i0 : NULL;
            part.line_bias = e.line_bias != NULL ? e.line_bias + j0 : NULL;
            part.along_bias = e.along_bias != NULL ? e.along_bias + i0 : NULL;
            S(epilogue_dispatch)(&part, want->activation);
        }
}

/* A test double of libcublasLt for what the rows with it ask: it recommends as many algorithms as the test says, and each computes the
 * product, plainly, where libcuda's double has its memory. */
#include "cublaslt_double.h"

#include <math.h>
#include <stdlib.h>

#include "type/half.h"

cublaslt_double cublaslt_double_state = {.recommended = 4, .knows_epilogues = 1, .workspace = 1024};
#define STATE (&cublaslt_double_state)

typedef struct layout {
    int type;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t items;
} layout;
typedef struct desc {
    int compute, scale, turned[2];
    uint32_t epilogue;
    const void *bias;
} desc;
typedef struct preference {
    uint32_t alignment[4];
} preference;
typedef struct algo {
    uint64_t rank, alignment, rest[6];
} algo;
typedef struct result {
    algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} result;
enum { F32 = 0, F64 = 1, F16 = 2, BF16 = 14, INVALID = 7, NOT_SUPPORTED = 15, DEFAULT = 1, RELU = 2, BIAS = 4, GELU = 32 };

int cublasLtCreate(void **handle)
{
    return *handle = STATE, 0;
}
int cublasLtMatmulDescCreate(desc **d, int compute, int scale)
{
    *d = calloc(1, sizeof **d);
    **d = (desc){.compute = compute, .scale = scale, .epilogue = DEFAULT};
    return STATE->live++, 0;
}
int cublasLtMatmulDescDestroy(desc *d)
{
    return STATE->live--, free(d), 0;
}
int cublasLtMatmulDescSetAttribute(desc *d, int attribute, const void *value, size_t bytes)
{
    if (attribute == 3 || attribute == 4)
        d->turned[attribute - 3] = *(const int32_t *)value;
    else if (attribute == 7)
        d->epilogue = *(const uint32_t *)value;
    else if (attribute == 8)
        d->bias = *(const void *const *)value;
    else
        return INVALID;
    return bytes == (attribute == 8 ? 8 : 4) ? 0 : INVALID;
}
int cublasLtMatrixLayoutCreate(layout **l, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    if (rows == 0 || cols == 0 || ld < (int64_t)rows)
        return INVALID;
    *l = calloc(1, sizeof **l);
    **l = (layout){type, rows, cols, ld, 0, 1};
    return STATE->live++, 0;
}
int cublasLtMatrixLayoutDestroy(layout *l)
{
    return STATE->live--, free(l), 0;
}
int cublasLtMatrixLayoutSetAttribute(layout *l, int attribute, const void *value, size_t bytes)
{
    if (attribute == 5 && bytes == 4)
        l->items = *(const int32_t *)value;
    else if (attribute == 6 && bytes == 8)
        l->stride = *(const int64_t *)value;
    else
        return INVALID;
    return 0;
}
int cublasLtMatmulPreferenceCreate(preference **p)
{
    return *p = calloc(1, sizeof **p), STATE->live++, 0;
}
int cublasLtMatmulPreferenceDestroy(preference *p)
{
    return STATE->live--, free(p), 0;
}
int cublasLtMatmulPreferenceSetAttribute(preference *p, int attribute, const void *value, size_t bytes)
{
    if (attribute >= 5 && attribute <= 8)
        p->alignment[attribute - 5] = *(const uint32_t *)value;
    return 0;
}

static int fits(const desc *d, const layout *a, const layout *b, const layout *c, const layout *out)
{
    const uint64_t m = d->turned[0] ? a->cols : a->rows, k = d->turned[0] ? a->rows : a->cols, n = d->turned[1] ? b->rows : b->cols;
    return k == (d->turned[1] ? b->cols : b->rows) && m == out->rows && n == out->cols && m == c->rows && n == c->cols &&
           a->items == b->items && a->items == c->items && a->items == out->items && c->type == out->type;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, desc *d, layout *a, layout *b, layout *c, layout *out, preference *p, int wanted,
                                   result *results, int *count)
{
    const uint32_t alignment = p->alignment[0];
    *count = 0;
    if (!fits(d, a, b, c, out))
        return INVALID;
    if (d->epilogue != DEFAULT && !STATE->knows_epilogues)
        return NOT_SUPPORTED;
    if ((d->epilogue & BIAS) != 0 && ((uintptr_t)d->bias & -(uintptr_t)d->bias) != alignment)
        return INVALID;
    for (int i = 0; i < wanted && i < STATE->recommended - (alignment < 16); i++)
        results[(*count)++] = (result){.algo = {i, alignment}, .workspace = i + 1 == STATE->recommended ? STATE->workspace : 0};
    return 0;
}

static double get(int type, const void *at, int64_t i)
{
    return type == F32   ? ((const float *)at)[i]
           : type == F64 ? ((const double *)at)[i]
           : type == F16 ? spk_f16_to_float(((const uint16_t *)at)[i])
                         : spk_float_of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
}

static void put(int type, void *at, int64_t i, double x)
{
    if (type == F32)
        ((float *)at)[i] = (float)x;
    else if (type == F64)
        ((double *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = type == F16 ? spk_f16_from_float((float)x) : spk_bf16_from_float((float)x);
}

static double finish(const desc *d, int type, uint64_t row, double x)
{
    if (d->epilogue & BIAS)
        x += get(type, d->bias, (int64_t)row);
    if (d->epilogue & RELU)
        x = x > 0 ? x : 0;
    if (d->epilogue & GELU)
        x = 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    return x;
}

int cublasLtMatmul(void *handle, desc *d, const void *alpha, const void *a, const layout *la, const void *b, const layout *lb,
                   const void *beta, const void *c, const layout *lc, void *out, const layout *ld, const algo *algo, void *workspace,
                   size_t workspace_bytes, void *stream)
{
    const double by = get(d->scale, alpha, 0), of_c = get(d->scale, beta, 0);
    if (!fits(d, la, lb, lc, ld) || (algo->alignment == 16 && (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)out) & 15) != 0))
        return INVALID;
    STATE->products++;
    STATE->rank = (int)algo->rank;
    STATE->was_aligned = algo->alignment == 16;
    STATE->epilogue = d->epilogue;
    STATE->d = out;
    const int64_t depth = (int64_t)(d->turned[0] ? la->rows : la->cols);
    for (int64_t item = 0; item < ld->items; item++)
        for (uint64_t i = 0; i < ld->rows; i++)
            for (uint64_t j = 0; j < ld->cols; j++) {
                double sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += get(la->type, a, item * la->stride + (d->turned[0] ? k + i * la->ld : i + k * la->ld)) *
                           get(lb->type, b, item * lb->stride + (d->turned[1] ? j + k * lb->ld : k + j * lb->ld));
                sum *= by;
                if (of_c != 0)
                    sum += of_c * get(lc->type, c, item * lc->stride + i + j * lc->ld);
                put(ld->type, out, item * ld->stride + i + j * ld->ld, finish(d, ld->type, i, sum));
            }
    return 0;
}

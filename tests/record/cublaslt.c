/* A test double of cuBLASLt that records: which recommendations it is asked for, and which it is to multiply with. */
#include "record.h"

enum { NOT_SUPPORTED = 15 };
enum { MADE_OF = -1 }; /* an attribute of a description or a layout */
enum { SCALE_64F = 1, DESC_EPILOGUE = 7, PREFER_ALIGNMENT_A = 5, WHOLE = 16 };

typedef struct algorithm {
    uint64_t question, rank, rest[6];
} algorithm;

typedef struct recommendation {
    algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} recommendation;

size_t cublasLtGetVersion(void)
{
    return 130200;
}
int cublasLtCreate(record_thing **handle)
{
    return *handle = record_thing_make("cublaslt", 0), 0;
}

int cublasLtMatmulDescCreate(record_thing **desc, int compute, int scale_type)
{
    const int made_of[] = {compute, scale_type};
    *desc = record_thing_make("product", 0);
    return record_thing_set(*desc, MADE_OF, made_of, sizeof made_of);
}
int cublasLtMatmulDescDestroy(record_thing *desc)
{
    return record_thing_destroy(desc);
}
int cublasLtMatmulDescSetAttribute(record_thing *desc, int attribute, const void *value, size_t bytes)
{
    return record_thing_set(desc, attribute, value, bytes);
}

int cublasLtMatrixLayoutCreate(record_thing **layout, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    const uint64_t made_of[] = {(uint64_t)type, rows, cols, (uint64_t)ld};
    *layout = record_thing_make("layout", 0);
    return record_thing_set(*layout, MADE_OF, made_of, sizeof made_of);
}
int cublasLtMatrixLayoutDestroy(record_thing *layout)
{
    return record_thing_destroy(layout);
}
int cublasLtMatrixLayoutSetAttribute(record_thing *layout, int attribute, const void *value, size_t bytes)
{
    return record_thing_set(layout, attribute, value, bytes);
}

int cublasLtMatmulPreferenceCreate(record_thing **preference)
{
    return *preference = record_thing_make("preference", 0), 0;
}
int cublasLtMatmulPreferenceDestroy(record_thing *preference)
{
    return record_thing_destroy(preference);
}
int cublasLtMatmulPreferenceSetAttribute(record_thing *preference, int attribute, const void *value, size_t bytes)
{
    return record_thing_set(preference, attribute, value, bytes);
}

static int is_wide(const record_thing *desc)
{
    return ((const int *)record_thing_get(desc, MADE_OF, NULL))[1] == SCALE_64F;
}

/* As the library may, it recommends less for arrays that begin anywhere, and has no epilogue for sums in double precision. An algorithm is
 * the question that it answers, and its rank. */
int cublasLtMatmulAlgoGetHeuristic(record_thing *handle, record_thing *desc, record_thing *a, record_thing *b, record_thing *c,
                                   record_thing *d, record_thing *preference, int wanted, recommendation *found, int *count)
{
    const uint32_t *alignment = record_thing_get(preference, PREFER_ALIGNMENT_A, NULL);
    record_line("cublasLtMatmulAlgoGetHeuristic %d", wanted);
    record_addresses(7, (const void *const[]){handle, desc, a, b, c, d, preference});
    const uint64_t question = record_line_hash();
    record_end_line();
    if (is_wide(desc) && record_thing_get(desc, DESC_EPILOGUE, NULL) != NULL)
        return NOT_SUPPORTED;
    *count = alignment != NULL && *alignment >= WHOLE ? wanted : wanted * 3 / 4;
    for (int i = 0; i < *count; i++)
        found[i] = (recommendation){.algorithm = {question, (uint64_t)i}, .workspace_bytes = (size_t)(i % 4) << 16};
    return 0;
}

int cublasLtMatmul(record_thing *handle, record_thing *desc, const void *alpha, const void *a, record_thing *layout_a, const void *b,
                   record_thing *layout_b, const void *beta, const void *c, record_thing *layout_c, void *d, record_thing *layout_d,
                   const algorithm *chosen, void *workspace, size_t workspace_bytes, void *stream)
{
    const size_t scalar = is_wide(desc) ? 8 : 4;
    record_line("cublasLtMatmul algorithm %016llx %llu workspace %zu stream %d", (unsigned long long)chosen->question,
                (unsigned long long)chosen->rank, workspace_bytes, stream != NULL);
    record_words(alpha, scalar, NULL);
    record_words(beta, scalar, NULL);
    record_addresses(11, (const void *const[]){handle, desc, a, layout_a, b, layout_b, c, layout_c, d, layout_d, workspace});
    record_end_line();
    return 0;
}

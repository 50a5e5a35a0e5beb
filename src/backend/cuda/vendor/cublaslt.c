/* Dense products through cuBLASLt: the library's functions, one handle a device, and a product made once and run often. */
#include "backend/cuda/vendor/cublaslt.h"

#include <pthread.h>
#include <string.h>

#include "backend/cuda/vendor/vendor.h"

typedef spk_lt_algo lt_algo;
typedef void *lt_object; /* handles, descriptors, layouts and preferences are pointers */

typedef struct lt_heuristic {
    lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_heuristic;

enum { LT_COMPUTE_32F = 68, LT_COMPUTE_64F = 70, LT_COMPUTE_TF32 = 77, LT_STATUS_NOT_SUPPORTED = 15 };
enum { LT_DESC_TRANS_A = 3, LT_DESC_TRANS_B = 4, LT_DESC_EPILOGUE = 7, LT_DESC_BIAS = 8 };
enum { LT_LAYOUT_BATCH = 5, LT_LAYOUT_STRIDE = 6 };
enum { LT_EPILOGUE_NONE = 1, LT_EPILOGUE_RELU = 2, LT_EPILOGUE_BIAS = 4, LT_EPILOGUE_GELU = 32 }; /* with a bias: both bits */
enum {
    LT_PREFER_WORKSPACE = 1,
    LT_PREFER_REDUCTION = 3,
    LT_PREFER_ALIGNMENT_A = 5,
    LT_PREFER_ALIGNMENT_B = 6,
    LT_PREFER_ALIGNMENT_C = 7,
    LT_PREFER_ALIGNMENT_D = 8
};

typedef struct lt_functions {
    int (*create)(lt_object *handle);
    int (*desc_create)(lt_object *desc, int compute, int scale_type);
    int (*desc_destroy)(lt_object desc);
    int (*desc_set)(lt_object desc, int attribute, const void *value, size_t bytes);
    int (*layout_create)(lt_object *layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(lt_object layout);
    int (*layout_set)(lt_object layout, int attribute, const void *value, size_t bytes);
    int (*prefer_create)(lt_object *preference);
    int (*prefer_destroy)(lt_object preference);
    int (*prefer_set)(lt_object preference, int attribute, const void *value, size_t bytes);
    int (*heuristic)(lt_object handle, lt_object desc, lt_object a, lt_object b, lt_object c, lt_object d, lt_object preference, int wanted,
                     lt_heuristic *results, int *count);
    int (*matmul)(lt_object handle, lt_object desc, const void *alpha, const void *a, lt_object layout_a, const void *b, lt_object layout_b,
                  const void *beta, const void *c, lt_object layout_c, void *d, lt_object layout_d, const lt_algo *algo, void *workspace,
                  size_t workspace_bytes, CUstream stream);
} lt_functions;

static const char *const lt_names[] = {"cublasLtCreate",
                                       "cublasLtMatmulDescCreate",
                                       "cublasLtMatmulDescDestroy",
                                       "cublasLtMatmulDescSetAttribute",
                                       "cublasLtMatrixLayoutCreate",
                                       "cublasLtMatrixLayoutDestroy",
                                       "cublasLtMatrixLayoutSetAttribute",
                                       "cublasLtMatmulPreferenceCreate",
                                       "cublasLtMatmulPreferenceDestroy",
                                       "cublasLtMatmulPreferenceSetAttribute",
                                       "cublasLtMatmulAlgoGetHeuristic",
                                       "cublasLtMatmul"};

/* One handle a device, made at first use and kept: it is thread safe, and making one takes milliseconds. */
enum { MOST_DEVICES = 64, LT_FUNCTIONS = sizeof lt_names / sizeof lt_names[0] };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, bias_lock = PTHREAD_MUTEX_INITIALIZER;
static lt_object handles[MOST_DEVICES];
static lt_functions lt;
static bool have_functions;

static spk_status lt_try(int result, const char *call)
{
    return result == 0 ? SPK_OK : spk_fail(result == 3 ? SPK_ERR_OUT_OF_MEMORY : SPK_ERR_UNSUPPORTED, "%s: cuBLAS status %d", call, result);
}

static spk_status get_handle(const spk_device *device, lt_object *handle)
{
    int ordinal = spk_cuda_of(device)->ordinal;
    void *library = NULL;
    SPK_TRY(spk_cuda_library_open(device, "cublaslt", &library));
    if (ordinal >= MOST_DEVICES)
        return spk_fail(SPK_ERR_UNSUPPORTED, "device cuda:%d: the rows with cuBLASLt take devices 0..%d", ordinal, MOST_DEVICES - 1);
    pthread_mutex_lock(&lock);
    void *found[LT_FUNCTIONS];
    spk_status status = have_functions ? SPK_OK : spk_cuda_library_functions(library, "cublaslt", lt_names, found, LT_FUNCTIONS);
    if (status == SPK_OK && !have_functions) {
        memcpy(&lt, found, sizeof lt);
        have_functions = true;
    }
    if (status == SPK_OK && handles[ordinal] == NULL) {
        const int mode = spk_cuda_capture_relax(spk_cuda_of(device));
        status = lt_try(lt.create(&handles[ordinal]), "cublasLtCreate");
        spk_cuda_capture_restore(spk_cuda_of(device), mode);
    }
    *handle = handles[ordinal];
    pthread_mutex_unlock(&lock);
    return status;
}

/* ------------------------------------------------------------------------------------------------ making */

/* The library thinks in columns: a row-major matrix is its transpose to it. */
static spk_status make_layout(lt_object *layout, const spk_operand *o, int64_t items)
{
    const int32_t count = (int32_t)items;
    SPK_TRY(lt_try(
        lt.layout_create(layout, spk_type_of(o->dtype)->cuda, (uint64_t)spk_operand_length(o), (uint64_t)spk_operand_lines(o), o->ld),
        "cublasLtMatrixLayoutCreate"));
    if (items == 1)
        return SPK_OK;
    SPK_TRY(lt_try(lt.layout_set(*layout, LT_LAYOUT_BATCH, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute"));
    return lt_try(lt.layout_set(*layout, LT_LAYOUT_STRIDE, &o->stride, sizeof o->stride), "cublasLtMatrixLayoutSetAttribute");
}

static spk_status set_desc(lt_object desc, int attribute, const void *value, size_t bytes)
{
    return lt_try(lt.desc_set(desc, attribute, value, bytes), "cublasLtMatmulDescSetAttribute");
}

static int compute_type(const spk_lt_spec *spec)
{
    return spec->a.dtype == SPK_F64                                ? LT_COMPUTE_64F
           : spec->a.dtype == SPK_F32 && spec->compute == SPK_TF32 ? LT_COMPUTE_TF32
                                                                   : LT_COMPUTE_32F;
}

static uint32_t epilogue(const spk_lt_spec *spec)
{
    const uint32_t act = spec->activation == SPK_ACT_RELU        ? LT_EPILOGUE_RELU
                         : spec->activation == SPK_ACT_GELU_TANH ? LT_EPILOGUE_GELU
                                                                 : 0,
                   both = act | (spec->bias ? LT_EPILOGUE_BIAS : 0);
    return both != 0 ? both : LT_EPILOGUE_NONE;
}

/* A row-major D is D^T = B^T A^T. */
static spk_status describe(const spk_lt_spec *spec, spk_lt_product *p)
{
    const spk_operand *first = p->swapped ? &spec->b : &spec->a, *second = p->swapped ? &spec->a : &spec->b;
    spk_operand c = spec->d;
    const int yes = 1, compute = compute_type(spec);
    const uint32_t after = epilogue(spec);
    SPK_TRY(lt_try(lt.desc_create(&p->desc, compute, spk_cuda_type_of_sums(spec->a.dtype)), "cublasLtMatmulDescCreate"));
    if (first->layout != spec->d.layout)
        SPK_TRY(set_desc(p->desc, LT_DESC_TRANS_A, &yes, sizeof yes));
    if (second->layout != spec->d.layout)
        SPK_TRY(set_desc(p->desc, LT_DESC_TRANS_B, &yes, sizeof yes));
    if (after != LT_EPILOGUE_NONE)
        SPK_TRY(set_desc(p->desc, LT_DESC_EPILOGUE, &after, sizeof after));
    if (spec->c.dtype != SPK_DTYPE_DEFAULT) {
        c.ld = spec->c.ld;
        c.stride = spec->c.stride;
    }
    SPK_TRY(make_layout(&p->layouts[0], first, spec->items));
    SPK_TRY(make_layout(&p->layouts[1], second, spec->items));
    SPK_TRY(make_layout(&p->layouts[2], &c, spec->items));
    return make_layout(&p->layouts[3], &spec->d, spec->items);
}

/* ------------------------------------------------------------------------------------------------ recommendations */

typedef struct lt_choices {
    lt_heuristic of[SPK_LT_ALGORITHMS];
    int count; /* of good ones, the library's first first */
} lt_choices;

/* What the library recommends for arrays with that alignment. */
static spk_status recommend(const spk_lt_product *p, uint32_t alignment, lt_choices *choices)
{
    enum { WORKSPACE = 32 << 20, SOMEWHERE = 4096 };
    lt_object preference = NULL;
    lt_heuristic results[SPK_LT_ALGORITHMS];
    const size_t workspace = WORKSPACE;
    const uint32_t reduction =
        2; /* parts of a sum are added in the compute type alone: in D's own they would be rounded once for each part */
    const void *bias = (const void *)(uintptr_t)(SOMEWHERE + alignment); /* nobody reads it: its address tells its alignment */
    int count = 0;
    if (p->bias)
        SPK_TRY(set_desc(p->desc, LT_DESC_BIAS, &bias, sizeof bias));
    SPK_TRY(lt_try(lt.prefer_create(&preference), "cublasLtMatmulPreferenceCreate"));
    int result = lt.prefer_set(preference, LT_PREFER_WORKSPACE, &workspace, sizeof workspace);
    if (result == 0)
        result = lt.prefer_set(preference, LT_PREFER_REDUCTION, &reduction, sizeof reduction);
    for (int which = LT_PREFER_ALIGNMENT_A; result == 0 && which <= LT_PREFER_ALIGNMENT_D; which++)
        result = lt.prefer_set(preference, which, &alignment, sizeof alignment);
    if (result == 0)
        result = lt.heuristic(p->handle, p->desc, p->layouts[0], p->layouts[1], p->layouts[2], p->layouts[3], preference, SPK_LT_ALGORITHMS,
                              results, &count);
    lt.prefer_destroy(preference);
    if (result == LT_STATUS_NOT_SUPPORTED) /* as it says it recommends nothing */
        count = result = 0;
    SPK_TRY(lt_try(result, "cublasLtMatmulAlgoGetHeuristic"));
    choices->count = 0;
    for (int i = 0; i < count && i < SPK_LT_ALGORITHMS; i++)
        if (results[i].state == 0)
            choices->of[choices->count++] = results[i];
    return choices->count > 0 ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "cuBLASLt recommends nothing for this product");
}

static void take(spk_lt_product *p, const lt_choices *choices, int rank, lt_algo *algo)
{
    const lt_heuristic *chosen = &choices->of[rank < choices->count ? rank : choices->count - 1];
    *algo = chosen->algo;
    p->workspace_bytes = chosen->workspace_bytes > p->workspace_bytes ? chosen->workspace_bytes : p->workspace_bytes;
}

/* The leading dimensions are in the layouts, where the library looks for itself. For arrays that begin anywhere there may be fewer
 * recommendations: the last, then. */
static spk_status choose(const spk_lt_spec *spec, spk_lt_product *p)
{
    lt_choices choices;
    SPK_TRY(recommend(p, 16, &choices));
    if (spec->rank >= choices.count)
        return spk_fail(SPK_ERR_UNSUPPORTED, "cuBLASLt recommends %d algorithm%s for this product: there is no ALGO=%d", choices.count,
                        choices.count == 1 ? "" : "s", spec->rank);
    take(p, &choices, spec->rank, &p->aligned);
    SPK_TRY(recommend(p, (uint32_t)spk_dtype_bytes(spec->a.dtype), &choices));
    take(p, &choices, spec->rank, &p->unaligned);
    return SPK_OK;
}

spk_status spk_lt_make(const spk_device *device, const spk_lt_spec *spec, spk_lt_product *product)
{
    spk_lt_product made = {.wide = spec->a.dtype == SPK_F64, .swapped = spec->d.layout == SPK_ROW_MAJOR, .bias = spec->bias};
    spk_status status;
    SPK_GOTO(get_handle(device, &made.handle));
    SPK_GOTO(describe(spec, &made));
    SPK_GOTO(choose(spec, &made));
    *product = made;
    return SPK_OK;
done:
    spk_lt_release(&made);
    return status;
}

void spk_lt_release(spk_lt_product *product)
{
    if (product->desc != NULL)
        lt.desc_destroy(product->desc);
    for (int i = 0; i < 4; i++)
        if (product->layouts[i] != NULL)
            lt.layout_destroy(product->layouts[i]);
    memset(product, 0, sizeof *product);
}

/* ------------------------------------------------------------------------------------------------ running */

static bool is_aligned(const spk_lt_product *p, const spk_lt_arrays *at)
{
    const uintptr_t all = (uintptr_t)at->a | (uintptr_t)at->b | (uintptr_t)at->c | (uintptr_t)at->d | (p->bias ? (uintptr_t)at->bias : 0);
    return (all & 15) == 0;
}

spk_status spk_lt_run(const spk_lt_product *product, double alpha64, double beta64, const spk_lt_arrays *arrays, void *workspace,
                      CUstream stream)
{
    const float alpha32 = (float)alpha64, beta32 = (float)beta64;
    const void *alpha = product->wide ? (const void *)&alpha64 : &alpha32, *beta = product->wide ? (const void *)&beta64 : &beta32;
    const void *first = product->swapped ? arrays->b : arrays->a, *second = product->swapped ? arrays->a : arrays->b;
    void *layout_c = product->layouts[arrays->c == arrays->d ? 3 : 2]; /* an array cannot be C in one layout and D in another */
    spk_status status;
    if (product->bias) { /* the description carries its address, so that each run holds the lock while it is queued */
        pthread_mutex_lock(&bias_lock);
        SPK_GOTO(set_desc(product->desc, LT_DESC_BIAS, &arrays->bias, sizeof arrays->bias));
    }
    status =
        lt_try(lt.matmul(product->handle, product->desc, alpha, first, product->layouts[0], second, product->layouts[1], beta, arrays->c,
                         layout_c, arrays->d, product->layouts[3], is_aligned(product, arrays) ? &product->aligned : &product->unaligned,
                         workspace, product->workspace_bytes, stream),
               "cublasLtMatmul");
done:
    if (product->bias)
        pthread_mutex_unlock(&bias_lock);
    return status;
}

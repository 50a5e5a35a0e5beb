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

enum { LT_COMPUTE_32F = 68, LT_COMPUTE_64F = 70, LT_COMPUTE_TF32 = 77 };
enum { LT_DESC_TRANS_A = 3, LT_DESC_TRANS_B = 4 };
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
                                       "cublasLtMatmulPreferenceCreate",
                                       "cublasLtMatmulPreferenceDestroy",
                                       "cublasLtMatmulPreferenceSetAttribute",
                                       "cublasLtMatmulAlgoGetHeuristic",
                                       "cublasLtMatmul"};

/* One handle a device, made at first use and kept: it is thread safe, and making one takes milliseconds. */
enum { MOST_DEVICES = 64, LT_FUNCTIONS = sizeof lt_names / sizeof lt_names[0] };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static spk_status make_layout(lt_object *layout, int type, const spk_lt_operand *operand, int64_t ld)
{
    return lt_try(lt.layout_create(layout, type, operand->rows, operand->cols, ld), "cublasLtMatrixLayoutCreate");
}

static spk_status describe(const spk_lt_spec *spec, spk_lt_product *p)
{
    int yes = 1, scale = spec->compute == LT_COMPUTE_64F ? CUDA_R_64F_ : CUDA_R_32F_;
    SPK_TRY(lt_try(lt.desc_create(&p->desc, spec->compute, scale), "cublasLtMatmulDescCreate"));
    if (spec->first.turned)
        SPK_TRY(lt_try(lt.desc_set(p->desc, LT_DESC_TRANS_A, &yes, sizeof yes), "cublasLtMatmulDescSetAttribute"));
    if (spec->second.turned)
        SPK_TRY(lt_try(lt.desc_set(p->desc, LT_DESC_TRANS_B, &yes, sizeof yes), "cublasLtMatmulDescSetAttribute"));
    SPK_TRY(make_layout(&p->layouts[0], spec->type, &spec->first, spec->first.ld));
    SPK_TRY(make_layout(&p->layouts[1], spec->type, &spec->second, spec->second.ld));
    SPK_TRY(make_layout(&p->layouts[2], spec->out_type, &spec->d, spec->ldc));
    return make_layout(&p->layouts[3], spec->out_type, &spec->d, spec->d.ld);
}

/* The recommendation number `rank` (the last, where there are fewer) for operands with that alignment. */
static spk_status recommend(spk_lt_product *p, int rank, uint32_t alignment, lt_algo *algo)
{
    enum { MOST = 8, WORKSPACE = 32 << 20 };
    lt_object preference = NULL;
    lt_heuristic results[MOST];
    size_t workspace = WORKSPACE;
    const uint32_t reduction =
        2; /* parts of a sum are added in the compute type alone: in D's own they would be rounded once for each part */
    int count = 0;
    SPK_TRY(lt_try(lt.prefer_create(&preference), "cublasLtMatmulPreferenceCreate"));
    int result = lt.prefer_set(preference, LT_PREFER_WORKSPACE, &workspace, sizeof workspace);
    if (result == 0)
        result = lt.prefer_set(preference, LT_PREFER_REDUCTION, &reduction, sizeof reduction);
    for (int which = LT_PREFER_ALIGNMENT_A; result == 0 && which <= LT_PREFER_ALIGNMENT_D; which++)
        result = lt.prefer_set(preference, which, &alignment, sizeof alignment);
    if (result == 0)
        result =
            lt.heuristic(p->handle, p->desc, p->layouts[0], p->layouts[1], p->layouts[2], p->layouts[3], preference, MOST, results, &count);
    lt.prefer_destroy(preference);
    SPK_TRY(lt_try(result, "cublasLtMatmulAlgoGetHeuristic"));
    int good = 0;
    for (int i = 0; i < count; i++)
        if (results[i].state == 0) {
            *algo = results[i].algo;
            p->workspace_bytes = results[i].workspace_bytes > p->workspace_bytes ? results[i].workspace_bytes : p->workspace_bytes;
            if (good++ == rank)
                break;
        }
    return good > 0 ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "cuBLASLt recommends nothing for this product");
}

spk_status spk_lt_make(const spk_device *device, const spk_lt_spec *spec, spk_lt_product *product)
{
    spk_lt_product made = {.wide = spec->compute == LT_COMPUTE_64F};
    spk_status status;
    SPK_GOTO(get_handle(device, &made.handle));
    SPK_GOTO(describe(spec, &made));
    SPK_GOTO(recommend(&made, spec->rank, (uint32_t)spec->element_bytes, &made.unaligned));
    made.aligned = made.unaligned;
    if (spec->may_align)
        SPK_GOTO(recommend(&made, spec->rank, 16, &made.aligned));
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

spk_status spk_lt_run(const spk_lt_product *product, double alpha64, const void *first, const void *second, double beta64, const void *c,
                      void *d, void *workspace, CUstream stream)
{
    float alpha32 = (float)alpha64, beta32 = (float)beta64;
    const void *alpha = product->wide ? (void *)&alpha64 : (void *)&alpha32, *beta = product->wide ? (void *)&beta64 : (void *)&beta32;
    const bool aligned = (((uintptr_t)first | (uintptr_t)second | (uintptr_t)c | (uintptr_t)d) & 15) == 0;
    void *layout_c = product->layouts[c == d ? 3 : 2]; /* an array cannot be C in one layout and D in another */
    return lt_try(lt.matmul(product->handle, product->desc, alpha, first, product->layouts[0], second, product->layouts[1], beta, c,
                            layout_c, d, product->layouts[3], aligned ? &product->aligned : &product->unaligned, workspace,
                            product->workspace_bytes, stream),
                  "cublasLtMatmul");
}

int spk_lt_compute(const spk_problem *problem)
{
    return problem->a.dtype == SPK_F64                                   ? LT_COMPUTE_64F
           : problem->a.dtype == SPK_F32 && problem->compute == SPK_TF32 ? LT_COMPUTE_TF32
                                                                         : LT_COMPUTE_32F;
}

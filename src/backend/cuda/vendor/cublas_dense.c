/* cublas_dense: A made dense by a program of ours, then one cuBLASLt product: the yardstick. It multiplies the zeros it filled in, so it wins only with
 * assume_finite; without static_values, filling in is part of its time. ALGO: the library's first, second ... recommendation. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/vendor/vendor.h"

/* ------------------------------------------------------------------------------------------------ the library */

typedef struct lt_algo {
    uint64_t data[8];
} lt_algo;

typedef struct lt_heuristic {
    lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_heuristic;

typedef void *lt_object; /* handles, descriptors, layouts and preferences are pointers */

enum { LT_COMPUTE_32F = 68, LT_COMPUTE_64F = 70, LT_COMPUTE_TF32 = 77 };
enum { LT_DESC_TRANS_A = 3, LT_DESC_TRANS_B = 4 };
enum { LT_PREFER_WORKSPACE = 1, LT_PREFER_ALIGNMENT_A = 5, LT_PREFER_ALIGNMENT_B = 6, LT_PREFER_ALIGNMENT_C = 7, LT_PREFER_ALIGNMENT_D = 8 };

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
    int (*heuristic)(lt_object handle, lt_object desc, lt_object a, lt_object b, lt_object c, lt_object d, lt_object preference, int wanted, lt_heuristic *results,
                     int *count);
    int (*matmul)(lt_object handle, lt_object desc, const void *alpha, const void *a, lt_object layout_a, const void *b, lt_object layout_b, const void *beta,
                  const void *c, lt_object layout_c, void *d, lt_object layout_d, const lt_algo *algo, void *workspace, size_t workspace_bytes, CUstream stream);
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
        return spk_fail(SPK_ERR_UNSUPPORTED, "device cuda:%d: cublas_dense takes devices 0..%d", ordinal, MOST_DEVICES - 1);
    pthread_mutex_lock(&lock);
    void *found[LT_FUNCTIONS];
    spk_status status = have_functions ? SPK_OK : spk_cuda_library_functions(library, "cublaslt", lt_names, found, LT_FUNCTIONS);
    if (status == SPK_OK && !have_functions) {
        memcpy(&lt, found, sizeof lt);
        have_functions = true;
    }
    if (status == SPK_OK && handles[ordinal] == NULL)
        status = lt_try(lt.create(&handles[ordinal]), "cublasLtCreate");
    *handle = handles[ordinal];
    pthread_mutex_unlock(&lock);
    return status;
}

/* ------------------------------------------------------------------------------------------------ the product */

/* The library thinks in columns. D row-major is D^T = B^T A^T; the dense A lies row by row, which is A^T column by column. */
typedef struct dense_state {
    lt_object handle, desc, layout_first, layout_second, layout_c, layout_d;
    lt_algo aligned, unaligned; /* for operands on 16 bytes, and on their elements */
    bool dense_first;           /* the library's first operand is the dense A */
    int64_t lda;
    spk_around around;
    CUfunction fill;
    size_t dense_bytes, lt_bytes;
    void *values; /* with static_values: the dense A */
    bool ready;
} dense_state;

static size_t dense_size(const spk_problem *p)
{
    size_t line = spk_round_up((size_t)p->k, 8);
    return spk_round_up((size_t)p->m * line * spk_dtype_bytes(p->dtype_a), 256);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = spk_cuda_vendor_refusal(problem);
    if (*why == NULL && (double)dense_size(problem) > (double)device->memory_bytes / 4)
        *why = "the dense matrix would take more than a quarter of the memory";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    double fill = problem->static_values ? 0 : 2 + 1.3 * (double)dense_size(problem) / (device->stream_gbs * 1e3);
    return spk_cuda_dense_us(problem, device) * (1 + 0.02 * params->v[0]) + fill;
}

static void fill_build(const spk_problem *problem, spk_build *build)
{
    *build = (spk_build){.file = "fill_dense.cu", .entry = "fill_dense"};
    spk_cuda_problem_defines(problem, build->options, sizeof build->options);
}

static int compute_of(const spk_problem *p)
{
    return p->dtype_a == SPK_F64 ? LT_COMPUTE_64F : p->dtype_a == SPK_F32 && p->compute == SPK_TF32 ? LT_COMPUTE_TF32 : LT_COMPUTE_32F;
}

static spk_status describe(const spk_problem *p, dense_state *s)
{
    bool rows = p->layout_d == SPK_ROW_MAJOR;
    int type = spk_cuda_data_type(p->dtype_a), out = spk_cuda_data_type(s->around.acc_dtype), yes = 1;
    int64_t ldd = s->around.direct ? p->ldd : s->around.acc_ld;
    s->dense_first = !rows;
    SPK_TRY(lt_try(lt.desc_create(&s->desc, compute_of(p), p->dtype_a == SPK_F64 ? CUDA_R_64F_ : CUDA_R_32F_), "cublasLtMatmulDescCreate"));
    bool b_turned = rows == (p->layout_b == SPK_COL_MAJOR); /* the library sees B^T and wants B, or the other way round */
    if (s->dense_first || b_turned)
        SPK_TRY(lt_try(lt.desc_set(s->desc, LT_DESC_TRANS_A, &yes, sizeof yes), "cublasLtMatmulDescSetAttribute"));
    if (s->dense_first && b_turned)
        SPK_TRY(lt_try(lt.desc_set(s->desc, LT_DESC_TRANS_B, &yes, sizeof yes), "cublasLtMatmulDescSetAttribute"));
    /* B in memory by columns: N x K if row-major, K x N if column-major; the dense A: K x M. */
    uint64_t b_rows = (uint64_t)(p->layout_b == SPK_ROW_MAJOR ? p->n : p->k), b_cols = (uint64_t)(p->layout_b == SPK_ROW_MAJOR ? p->k : p->n);
    lt_object *dense = s->dense_first ? &s->layout_first : &s->layout_second, *b = s->dense_first ? &s->layout_second : &s->layout_first;
    SPK_TRY(lt_try(lt.layout_create(dense, type, (uint64_t)p->k, (uint64_t)p->m, s->lda), "cublasLtMatrixLayoutCreate"));
    SPK_TRY(lt_try(lt.layout_create(b, type, b_rows, b_cols, p->ldb), "cublasLtMatrixLayoutCreate"));
    uint64_t d_rows = (uint64_t)(rows ? p->n : p->m), d_cols = (uint64_t)(rows ? p->m : p->n);
    SPK_TRY(lt_try(lt.layout_create(&s->layout_d, out, d_rows, d_cols, ldd), "cublasLtMatrixLayoutCreate"));
    return lt_try(lt.layout_create(&s->layout_c, out, d_rows, d_cols, s->around.direct && p->epilogue.use_c ? p->ldc : ldd), "cublasLtMatrixLayoutCreate");
}

/* The recommendation number `rank` (the last, where there are fewer) for operands with that alignment. */
static spk_status recommend(dense_state *s, int rank, uint32_t alignment, lt_algo *algo)
{
    enum { MOST = 8, WORKSPACE = 32 << 20 };
    lt_object preference = NULL;
    lt_heuristic results[MOST];
    size_t workspace = WORKSPACE;
    int count = 0;
    SPK_TRY(lt_try(lt.prefer_create(&preference), "cublasLtMatmulPreferenceCreate"));
    int result = lt.prefer_set(preference, LT_PREFER_WORKSPACE, &workspace, sizeof workspace);
    for (int which = LT_PREFER_ALIGNMENT_A; result == 0 && which <= LT_PREFER_ALIGNMENT_D; which++)
        result = lt.prefer_set(preference, which, &alignment, sizeof alignment);
    if (result == 0)
        result = lt.heuristic(s->handle, s->desc, s->layout_first, s->layout_second, s->layout_c, s->layout_d, preference, MOST, results, &count);
    lt.prefer_destroy(preference);
    SPK_TRY(lt_try(result, "cublasLtMatmulAlgoGetHeuristic"));
    int good = 0;
    for (int i = 0; i < count; i++)
        if (results[i].state == 0) {
            *algo = results[i].algo;
            s->lt_bytes = results[i].workspace_bytes > s->lt_bytes ? results[i].workspace_bytes : s->lt_bytes;
            if (good++ == rank)
                break;
        }
    return good > 0 ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "cuBLASLt recommends nothing for this product");
}

static void release(const spk_bound *bound, dense_state *s)
{
    if (s->desc != NULL)
        lt.desc_destroy(s->desc);
    lt_object layouts[] = {s->layout_first, s->layout_second, s->layout_c, s->layout_d};
    for (int i = 0; i < 4; i++)
        if (layouts[i] != NULL)
            lt.layout_destroy(layouts[i]);
    spk_around_release(bound, &s->around);
    if (s->values != NULL)
        bound->device->backend->release(bound->device, s->values);
    spk_free(&bound->device->mem, s);
}

static void unbind(spk_bound *bound)
{
    spk_cuda_scope scope;
    if (bound->state == NULL || spk_cuda_enter(bound->device, &scope) != SPK_OK)
        return;
    release(bound, bound->state);
    bound->state = NULL;
    spk_cuda_leave(&scope);
}

static spk_status bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    spk_cuda_scope scope;
    dense_state *s = NULL;
    spk_build build;
    uint32_t element = (uint32_t)spk_dtype_bytes(p->dtype_a);
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_status status = spk_cuda_enter(bound->device, &scope);
    if (status != SPK_OK) {
        spk_free(&bound->device->mem, s);
        return status;
    }
    s->lda = (int64_t)spk_round_up((size_t)p->k, 8);
    s->dense_bytes = dense_size(p);
    SPK_GOTO(get_handle(bound->device, &s->handle));
    SPK_GOTO(spk_around_make(bound, &s->around));
    fill_build(p, &build);
    SPK_GOTO(spk_cuda_function(bound->device, &build, &s->fill));
    SPK_GOTO(describe(p, s));
    SPK_GOTO(recommend(s, bound->params.v[0], element, &s->unaligned));
    if (p->ldb * element % 16 == 0 && (s->around.direct ? p->ldd * (int64_t)spk_dtype_bytes(p->dtype_d) % 16 == 0 : true))
        SPK_GOTO(recommend(s, bound->params.v[0], 16, &s->aligned));
    else
        s->aligned = s->unaligned;
    if (p->static_values)
        SPK_GOTO(bound->device->backend->allocate(bound->device, s->dense_bytes, &s->values));
    bound->workspace_bytes = s->around.acc_bytes + spk_round_up(s->lt_bytes, 256) + (p->static_values ? 0 : s->dense_bytes);
    bound->state = s;
    spk_cuda_leave(&scope);
    return SPK_OK;
done:
    release(bound, s);
    spk_cuda_leave(&scope);
    return status;
}

/* Zeros, then every stored block at its place. */
static spk_status fill(const spk_bound *bound, const dense_state *s, const spk_args *args, void *out, CUstream stream)
{
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_cuda_arguments arguments;
    spk_cuda_arguments_fill(&s->around.index, args, &arguments);
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->fill_bytes((CUdeviceptr)(uintptr_t)out, 0, s->dense_bytes, stream), "cuMemsetD8Async"));
    if (arguments.nnzb == 0)
        return SPK_OK;
    long long lda = s->lda;
    void *parameters[] = {&arguments, &out, &lda};
    int64_t turns = (arguments.nnzb / arguments.grid_rows + 1) / 2; /* two blocks of the matrix for a thread block */
    turns = turns < 1 ? 1 : turns > 64 ? 64 : turns;
    return spk_cuda_launch(bound->device, s->fill, (unsigned)(arguments.grid_rows * turns), 256, 0, stream, parameters);
}

static spk_status update_values(spk_bound *bound, const void *values)
{
    dense_state *s = bound->state;
    const spk_cuda *cuda = spk_cuda_of(bound->device);
    spk_cuda_scope scope;
    spk_args args = {.a = values};
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    spk_status status = fill(bound, s, &args, s->values, cuda->stream);
    if (status == SPK_OK)
        status = spk_cuda_try(cuda->driver, cuda->driver->stream_synchronize(cuda->stream), "cuStreamSynchronize");
    s->ready = status == SPK_OK;
    spk_cuda_leave(&scope);
    return status;
}

static spk_status multiply(const spk_bound *bound, const dense_state *s, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    char *work = args->workspace;
    void *acc = s->around.direct ? args->d : work, *lt_work = work + s->around.acc_bytes;
    void *dense = s->values != NULL ? s->values : work + s->around.acc_bytes + spk_round_up(s->lt_bytes, 256);
    if (s->values == NULL)
        SPK_TRY(fill(bound, s, args, dense, stream));
    bool with_c = s->around.direct && p->epilogue.use_c && args->beta != 0;
    const void *c = with_c ? args->c : acc;
    double alpha64 = s->around.direct ? args->alpha : 1, beta64 = with_c ? args->beta : 0;
    float alpha32 = (float)alpha64, beta32 = (float)beta64;
    bool wide = p->dtype_a == SPK_F64;
    const void *alpha = wide ? (void *)&alpha64 : (void *)&alpha32, *beta = wide ? (void *)&beta64 : (void *)&beta32;
    bool aligned = (((uintptr_t)args->b | (uintptr_t)acc | (uintptr_t)c) & 15) == 0;
    const void *first = s->dense_first ? dense : args->b, *second = s->dense_first ? args->b : dense;
    SPK_TRY(lt_try(lt.matmul(s->handle, s->desc, alpha, first, s->layout_first, second, s->layout_second, beta, c, s->layout_c, acc, s->layout_d,
                             aligned ? &s->aligned : &s->unaligned, lt_work, s->lt_bytes, stream),
                   "cublasLtMatmul"));
    return spk_around_finish(bound, &s->around, args, acc, stream);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const dense_state *s = bound->state;
    spk_cuda_scope scope;
    if (s->values != NULL && !s->ready)
        return spk_fail(SPK_ERR_ARGUMENT, "a plan with static_values takes its values through spk_plan_update_values before the first run");
    SPK_TRY(spk_cuda_enter(bound->device, &scope));
    spk_status status = multiply(bound, s, args, stream);
    spk_cuda_leave(&scope);
    return status;
}

const spk_kernel_ops cublas_dense_ops = {.applicable = applicable,
                                         .predict_us = predict_us,
                                         .bind = bind,
                                         .unbind = unbind,
                                         .update_values = update_values,
                                         .run = run,
                                         .source_hash = SPK_SOURCE_HASH};

/* cublas_dense_sddmm: one dense cuBLASLt product, then the stored blocks of it: the yardstick of SDDMM. It computes everything, but keeps
 * only what is asked for, so nothing need be finite. ALGO: the library's first, second ... recommendation. */
#include <float.h>

#include "backend/cuda/helpers/gather_dense.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/host/frame/build.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/host/tiles/sddmm.h"
#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/vendor/vendor.h"

enum { MOST_THREAD_BLOCKS = 1 << 16 };

typedef struct state {
    spk_lt_product product;
    spk_cuda_index index;
    CUfunction gather;
    int64_t ld; /* of the dense product, which lies in the workspace row by row */
    size_t acc_bytes;
} state;

/* With C the product stays as sums until C is added; else it is finished by the library. */
static spk_dtype acc_dtype(const spk_problem *p)
{
    return !p->epilogue.use_c ? p->d.dtype : p->a.dtype == SPK_F64 ? SPK_F64 : SPK_F32;
}

static int64_t acc_ld(const spk_problem *p)
{
    return (p->n + 7) / 8 * 8;
}

static size_t acc_size(const spk_problem *p)
{
    return spk_round_up((size_t)p->m * (size_t)acc_ld(p) * spk_dtype_bytes(acc_dtype(p)), 256);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = spk_cuda_vendor_refusal(problem);
    if (*why == NULL && (double)acc_size(problem) > (double)device->memory_bytes / 4)
        *why = "the dense product would take more than a quarter of the memory";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    return spk_cuda_dense_us(problem, device) * (1 + spk_lt_rank_cost * SPK_TUNED(cublas_dense_sddmm, params, ALGO)) + 3 +
           spk_sddmm_elements(problem) * (double)spk_dtype_bytes(problem->d.dtype) * 2 / (device->stream_gbs * 1e3);
}

static spk_lt_spec describe(const spk_problem *p, int rank)
{
    const spk_operand d = {.rows = p->m, .cols = p->n, .ld = acc_ld(p), .dtype = acc_dtype(p), .layout = SPK_ROW_MAJOR};
    return (spk_lt_spec){.a = p->a, .b = p->b, .d = d, .compute = p->compute, .items = 1, .rank = rank};
}

static void release(const spk_bound *bound, state *s)
{
    spk_lt_release(&s->product);
    spk_cuda_index_release(bound->device, &s->index);
    spk_free(&bound->device->mem, s);
}

static void unbind(spk_bound *bound)
{
    if (bound->state == NULL)
        return;
    release(bound, bound->state);
    bound->state = NULL;
}

static void spk_gather_build(const spk_problem *p, spk_build *build)
{
    const gather_dense_constants constants = {.block_rows = p->pattern->block_rows,
                                              .block_cols = p->pattern->block_cols,
                                              .ragged = spk_sddmm_ragged(p),
                                              .acc_is_d = !p->epilogue.use_c};
    spk_build_begin(build, "gather_dense.cu", "gather_dense", p);
    GATHER_DENSE_CONSTANTS(SPK_BUILD_DEFINE)
}

static spk_status bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    const spk_lt_spec spec = describe(p, SPK_TUNED(cublas_dense_sddmm, &bound->params, ALGO));
    spk_build build;
    state *s = NULL;
    spk_status status;
    SPK_GOTO(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_gather_build(p, &build);
    SPK_GOTO(spk_lt_make(bound->device, &spec, &s->product));
    SPK_GOTO(spk_cuda_index_make(bound, &s->index));
    SPK_GOTO(spk_cuda_function(bound->device, &build, &s->gather));
    s->ld = acc_ld(p);
    s->acc_bytes = acc_size(p);
    bound->workspace_bytes = s->acc_bytes + spk_round_up(s->product.workspace_bytes, 256);
    bound->state = s;
    s = NULL;
done:
    if (s != NULL)
        release(bound, s);
    return status;
}

static spk_status multiply(const spk_bound *bound, const state *s, const spk_args *args, CUstream stream)
{
    const bool finished = !bound->problem.epilogue.use_c;
    void *acc = args->workspace;
    spk_cuda_arguments arguments;
    const bool vanishes = spk_vendor_alpha_vanishes(&bound->problem, args);
    const double least = bound->problem.a.dtype == SPK_F64 ? DBL_MIN : (double)FLT_MIN;
    /* The library reads nothing where alpha is 0, and would lose the NaN of 0 * inf: it gets the least number there, and the 0 comes
     * after. */
    const double alpha = !finished ? 1 : vanishes ? least : args->alpha;
    const spk_lt_arrays arrays = {.a = args->a, .b = args->b, .c = acc, .d = acc};
    SPK_TRY(spk_lt_run(&s->product, alpha, 0, &arrays, (char *)acc + s->acc_bytes, stream));
    spk_cuda_arguments_fill(&s->index, args, &arguments);
    if (finished && !vanishes)
        arguments.alpha = 1;
    long long ld = s->ld;
    void *parameters[] = {&arguments, &acc, &ld};
    return spk_cuda_launch(bound->device, s->gather, (unsigned)(arguments.nnzb < MOST_THREAD_BLOCKS ? arguments.nnzb : MOST_THREAD_BLOCKS),
                           GATHER_DENSE_THREADS, 0, stream, parameters);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    if (bound->view.nnzb == 0)
        return SPK_OK;
    return multiply(bound, bound->state, args, (CUstream)stream);
}

const spk_kernel_ops cublas_dense_sddmm_ops = {
    .applicable = applicable, .predict_us = predict_us, .bind = bind, .unbind = unbind, .run = run, .source_hash = SPK_SOURCE_HASH};

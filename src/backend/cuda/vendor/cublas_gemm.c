/* cublas_gemm: one cuBLASLt product, of all items of a batch, with what the library knows of the epilogue: bias along D's lines, and a
 * residual that is added to a product without activation, as its C (where D has 16 bits, one of the two). Its ReLU makes 0 of a NaN, and
 * its GELU a NaN of minus infinity: they take part with assume_finite alone. All else is a program of ours after it. ALGO: the library's
 * first, second ... recommendation. */
#include <math.h>

#include "backend/cuda/vendor/cublaslt.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/vendor/vendor.h"

typedef struct gemm_state {
    spk_lt_product product;
    spk_around around;
} gemm_state;

static bool residual_is_c(const spk_problem *p)
{
    const spk_epilogue *e = &p->epilogue;
    return e->residual == SPK_RESIDUAL_ADD && !e->use_c && e->activation == SPK_ACT_NONE;
}

static bool is_whole(const spk_operand *o)
{
    return o->ld * (int64_t)spk_dtype_bytes(o->dtype) % 16 == 0;
}

/* Some of its algorithms, which it recommends where lines do not begin at 16 bytes, round a sum to D's 16 bits before they add the bias,
 * and once more after it; so they may beside a C. */
static bool knows_bias(const spk_problem *p)
{
    const spk_bias along = p->d.layout == SPK_ROW_MAJOR ? SPK_BIAS_PER_COL : SPK_BIAS_PER_ROW;
    const bool whole = is_whole(&p->a) && is_whole(&p->b) && is_whole(&p->d);
    const bool rounds_twice = spk_dtype_bytes(p->d.dtype) < 4 && (!whole || p->epilogue.use_c || residual_is_c(p));
    return p->epilogue.bias == SPK_BIAS_NONE || (p->epilogue.bias == along && !rounds_twice);
}

/* The library's GELU is the one by tanh, and as exact as 16 bits ask for. */
static bool knows_activation(const spk_problem *p)
{
    const spk_activation act = p->epilogue.activation;
    const bool half = p->d.dtype == SPK_F16 || p->d.dtype == SPK_BF16;
    return act == SPK_ACT_NONE || (p->assume_finite && (act == SPK_ACT_RELU || (act == SPK_ACT_GELU_TANH && half)));
}

static bool knows_all(const spk_problem *p)
{
    return !p->epilogue.keep_preact && (p->epilogue.residual == SPK_RESIDUAL_NONE || residual_is_c(p)) && knows_bias(p) &&
           knows_activation(p);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = spk_cuda_vendor_refusal(problem);
    if (*why == NULL && problem->batch > INT32_MAX)
        *why = "it counts items with 31 bits";
    if (*why == NULL && !knows_all(problem) && (double)spk_around_bytes(problem) > (double)device->memory_bytes / 4)
        *why = "the sums would take more than a quarter of the memory";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const spk_problem *p = problem;
    const double slower = is_whole(&p->a) && is_whole(&p->b) ? 1 : 3; /* lines that do not begin at 16 bytes */
    const double bytes = (double)p->batch * (double)p->m * (double)p->n *
                         (double)(spk_dtype_bytes(p->a.dtype == SPK_F64 ? SPK_F64 : SPK_F32) + spk_dtype_bytes(p->d.dtype));
    const double after = knows_all(p) ? 0 : 3 + bytes / (fmax(device->stream_gbs, 1) * 1e3);
    return slower * spk_cuda_dense_us(p, device) * (1 + spk_lt_rank_cost * SPK_TUNED(cublas_gemm, params, ALGO)) + after;
}

/* ------------------------------------------------------------------------------------------------ binding */

static spk_lt_spec describe(const spk_problem *p, const spk_around *around, int rank)
{
    const bool direct = around->direct;
    return (spk_lt_spec){.a = p->a,
                         .b = p->b,
                         .c = !direct            ? (spk_operand){0}
                              : residual_is_c(p) ? p->residual
                                                 : p->c,
                         .d = around->acc,
                         .compute = p->compute,
                         .items = p->batch,
                         .bias = direct && p->epilogue.bias != SPK_BIAS_NONE,
                         .activation = direct ? p->epilogue.activation : SPK_ACT_NONE,
                         .rank = rank};
}

static void release(const spk_bound *bound, gemm_state *s)
{
    spk_lt_release(&s->product);
    spk_around_release(bound, &s->around);
}

static void unbind(spk_bound *bound)
{
    if (bound->state == NULL)
        return;
    release(bound, bound->state);
    spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static spk_status make(const spk_bound *bound, bool direct, int rank, gemm_state *out)
{
    gemm_state made = {0};
    spk_status status;
    SPK_GOTO(spk_around_make(bound, direct, &made.around));
    const spk_lt_spec spec = describe(&bound->problem, &made.around, rank);
    SPK_GOTO(spk_lt_make(bound->device, &spec, &made.product));
    *out = made;
    return SPK_OK;
done:
    release(bound, &made);
    return status;
}

/* Whether the library has an algorithm for this epilogue at all. */
static bool has_any(const spk_bound *bound)
{
    gemm_state first;
    const spk_status status = make(bound, true, 0, &first);
    if (status == SPK_OK)
        release(bound, &first);
    return status != SPK_ERR_UNSUPPORTED;
}

static spk_status make_either(const spk_bound *bound, gemm_state *s)
{
    const int rank = SPK_TUNED(cublas_gemm, &bound->params, ALGO);
    const bool direct = knows_all(&bound->problem);
    const spk_status status = make(bound, direct, rank, s);
    if (status != SPK_ERR_UNSUPPORTED || !direct || spk_around_is_plain(&bound->problem) || (rank > 0 && has_any(bound)))
        return status;
    return make(bound, false, rank, s);
}

static spk_status bind(spk_bound *bound)
{
    gemm_state *s = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    spk_status status = make_either(bound, s);
    if (status != SPK_OK) {
        spk_free(&bound->device->mem, s);
        return status;
    }
    bound->workspace_bytes = s->around.acc_bytes + s->product.workspace_bytes;
    bound->state = s;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ running */

static bool accepts(const spk_bound *bound, const spk_args *args)
{
    const gemm_state *s = bound->state;
    return spk_around_takes(bound, &s->around, args);
}

static spk_status multiply(const spk_bound *bound, const gemm_state *s, const spk_args *args, CUstream stream)
{
    const spk_problem *p = &bound->problem;
    const bool direct = s->around.direct, residual = direct && residual_is_c(p), with_c = direct && p->epilogue.use_c && args->beta != 0;
    char *work = args->workspace;
    void *acc = direct ? args->d : work;
    const spk_lt_arrays arrays = {.a = args->a,
                                  .b = args->b,
                                  .c = residual ? args->residual
                                       : with_c ? args->c
                                                : acc,
                                  .bias = args->bias,
                                  .d = acc};
    SPK_TRY(spk_lt_run(&s->product, direct ? args->alpha : 1,
                       residual ? 1
                       : with_c ? args->beta
                                : 0,
                       &arrays, work + s->around.acc_bytes, stream));
    return spk_around_finish(bound, &s->around, args, acc, stream);
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    return multiply(bound, bound->state, args, stream);
}

const spk_kernel_ops cublas_gemm_ops = {.applicable = applicable,
                                        .predict_us = predict_us,
                                        .bind = bind,
                                        .unbind = unbind,
                                        .accepts = accepts,
                                        .run = run,
                                        .batched = true,
                                        .source_hash = SPK_SOURCE_HASH};

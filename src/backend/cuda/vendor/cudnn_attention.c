/* cudnn_attention: cuDNN's attention, as one fused kernel that the library makes of a graph; f16 and bf16, causal, windows, grouped heads,
 * LSE. It multiplies zeros: of the keys that a limit hides V is read, and what of NaN it passes on nobody says. */
#include <limits.h>
#include <math.h>

#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/host/frame/rows.h"
#include "backend/cuda/vendor/cudnn.h"
#include "backend/cuda/vendor/vendor.h"
#include "op/attention/attention.h"

enum { MOST_DEPTH = 256, DEPTH_EVERYWHERE = 128 };

typedef struct dnn_state {
    spk_dnn_graph graph;
    spk_dnn_plan plan;
    spk_dnn_handle *handle;
    spk_dnn_band band;
} dnn_state;

static bool want_lse(const spk_problem *p)
{
    return p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT;
}

/* ------------------------------------------------------------------------------------------------ which problems */

static bool sees_some(const spk_problem *p, int64_t query)
{
    const spk_sequence whole = spk_attention_whole(p);
    const spk_seen seen = spk_attention_seen(p, &whole, query);
    return seen.begin < seen.end;
}

static const char *band_refusal(const spk_problem *p)
{
    const bool bottom = p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT && (p->band.left > 0 || p->band.right > 0);
    if (p->pattern != NULL)
        return "it takes no mask of blocks";
    if (p->packing.sequences > 0 || p->packing.key_lengths != 0 || p->packing.page_keys > 0)
        return "it takes no packed sequences, lengths of keys and pages";
    if (p->band.sinks != 0 || p->band.use_softcap != 0)
        return "it has no sinks and no soft cap";
    if (p->m > p->n && (bottom || spk_cuda_attention_limit(p, p->band.left) > 0))
        return "windows, and a diagonal that ends at the last key, want no more queries than keys";
    if (!sees_some(p, 0) || !sees_some(p, p->m - 1)) /* those between see more than one of the two */
        return "of a query that sees no key it makes no zeros";
    return NULL;
}

static const char *array_refusal(const spk_problem *p)
{
    for (int i = ATTENTION_Q; i <= ATTENTION_O; i++) {
        const spk_operand *o = &p->operand[i];
        if (spk_operand_steps(o) % 8 != 0)
            return "rows, heads and items of Q, K, V and O must be multiples of 8 elements apart";
        if (p->batch > 1 && o->stride == 0)
            return "it shares no array between items";
        if (spk_operand_elements(o, p->batch) > INT_MAX)
            return "it counts elements with 31 bits";
    }
    return NULL;
}

static bool is_tight(const spk_operand *lse, int64_t items)
{
    const int64_t heads = spk_operand_heads(lse);
    return (heads == 1 || lse->head_stride == lse->rows) && (items == 1 || lse->stride == heads * lse->rows);
}

static bool applicable(const spk_problem *p, const spk_device *device, const spk_params *params, const char **why)
{
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    (void)device;
    (void)params;
    if (dtype != SPK_F16 && dtype != SPK_BF16)
        *why = "it is for f16 and bf16";
    else if (p->m == 0 || p->n == 0 || p->k == 0 || p->depth_v == 0)
        *why = "there is nothing to compute";
    else if (p->k % 8 != 0 || p->depth_v % 8 != 0 || p->k > MOST_DEPTH || p->depth_v > MOST_DEPTH)
        *why = "the depths must be multiples of 8 up to 256";
    else if (want_lse(p) && !is_tight(&p->operand[ATTENTION_LSE], p->batch))
        *why = "it writes the LSE of all heads and items without gaps";
    else if (p->m > INT_MAX / 4 || p->n > INT_MAX / 4)
        *why = "it counts queries and keys with 29 bits";
    else
        *why = band_refusal(p);
    if (*why == NULL)
        *why = array_refusal(p);
    return *why == NULL;
}

/* What a version is known not to do, or to do wrong; what it merely has no engine for, it says itself. NULL: nothing. */
static const char *version_refusal(const spk_problem *p, const spk_dnn_band *band, size_t version, int compute)
{
    const bool deep = p->k > DEPTH_EVERYWHERE || p->depth_v > DEPTH_EVERYWHERE, causal = band->has_right && band->right == 0;
    if (version == 91000 || version == 91001)
        return "its attention is wrong";
    if (version == 91400 && band->has_left && !causal && p->n > 1024)
        return "its windows of more than 1024 keys are wrong";
    if (version < 91002 && (band->has_left || band->has_right) && !causal)
        return "it has windows only with causal";
    if (version < 90600 && band->bottom)
        return "its diagonal begins at the first key";
    if (version < 91000 && p->m == 1 && band->has_right)
        return "a single query has no limit to its right";
    if (version < 91000 && deep && compute != 90)
        return "it has depths above 128 on Hopper only";
    return NULL;
}

static double predict_us(const spk_problem *p, const spk_device *device, const spk_params *params)
{
    (void)params;
    const bool limited = p->band.left > 0 || p->band.right > 0;
    const double peak = fmax(device->peak_gflops_f32, 1) * 1e3, stream = fmax(device->stream_gbs, 1) * 1e3;
    /* than plain multiply-adds of f32, as cuDNN 9.19 is on an H200 */
    const double faster = (p->k <= 64 ? 6.7 : 9.2) * (p->band.left > 0 ? 0.72 : limited ? 0.87 : 1);
    return 8 + fmax(spk_problem_flops(p) / (peak * faster), spk_problem_bytes(p) / (1.06 * stream));
}

/* ------------------------------------------------------------------------------------------------ binding */

static void release(const spk_device *device, dnn_state *s)
{
    spk_dnn_release(&s->graph);
    spk_dnn_give_back(device, &s->handle);
}

static void unbind(spk_bound *bound)
{
    if (bound->state == NULL)
        return;
    release(bound->device, bound->state);
    spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static spk_status make(const spk_bound *bound, dnn_state *s)
{
    const spk_dnn_functions *dnn = NULL;
    SPK_TRY(spk_dnn_open(bound->device, &dnn));
    const size_t version = dnn->version();
    s->graph.dnn = dnn;
    s->band = spk_dnn_band_of(&bound->problem, version);
    const char *why = version_refusal(&bound->problem, &s->band, version, spk_cuda_of(bound->device)->compute);
    if (why != NULL)
        return spk_fail(SPK_ERR_UNSUPPORTED, "cuDNN %zu.%zu.%zu: %s", version / 10000, version / 100 % 100, version % 100, why);
    SPK_TRY(spk_dnn_lend(bound->device, &s->handle));
    spk_dnn_add_attention(&s->graph, &bound->problem, &s->band);
    return spk_dnn_plan_make(&s->graph, s->handle->handle, &s->plan);
}

static spk_status make_on_device(const spk_bound *bound, dnn_state *s)
{
    const int mode = spk_cuda_capture_relax(spk_cuda_of(bound->device));
    const spk_status status = make(bound, s);
    if (status != SPK_OK)
        release(bound->device, s);
    spk_cuda_capture_restore(spk_cuda_of(bound->device), mode);
    return status;
}

static spk_status bind(spk_bound *bound)
{
    dnn_state *s = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *s, &s));
    const spk_status status = make_on_device(bound, s);
    if (status != SPK_OK) {
        spk_free(&bound->device->mem, s);
        return status;
    }
    bound->workspace_bytes = (size_t)s->plan.workspace_bytes;
    bound->state = s;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ running */

/* Its plan is for arrays at 16 bytes; a row's largest score is taken for that of the largest product. */
static bool accepts(const spk_bound *bound, const spk_args *args)
{
    uintptr_t all = 0;
    for (int i = ATTENTION_Q; i <= (want_lse(&bound->problem) ? ATTENTION_LSE : ATTENTION_O); i++)
        all |= (uintptr_t)args->at[i];
    return (all & 15) == 0 && (float)args->scalar[ATTENTION_SCALE] > 0;
}

/* Where the graph finds what it calls `id`; the library writes through no pointer of an input. */
static void *find(const spk_dnn_band *band, const spk_args *args, const float *scale, int64_t id)
{
    const void *numbers[] = {[DNN_SCALE] = scale,
                             [DNN_NOTHING_RIGHT] = &band->nothing,
                             [DNN_NOTHING_LEFT] = &band->nothing,
                             [DNN_QUERIES] = &band->queries,
                             [DNN_KEYS] = &band->keys,
                             [DNN_RIGHT] = &band->right,
                             [DNN_LEFT] = &band->left};
    return id >= DNN_SCALE ? (void *)(uintptr_t)numbers[id] : args->at[ATTENTION_Q + id - DNN_Q];
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const dnn_state *s = bound->state;
    const float scale = (float)args->scalar[ATTENTION_SCALE];
    void *at[SPK_DNN_ARRAYS];
    for (int i = 0; i < s->graph.array_count; i++)
        at[i] = find(&s->band, args, &scale, s->graph.arrays[i]);
    return spk_dnn_execute(&s->graph, &s->plan, s->handle, at, args->workspace, stream);
}

const spk_kernel_ops cudnn_attention_ops = {.applicable = applicable,
                                            .predict_us = predict_us,
                                            .bind = bind,
                                            .unbind = unbind,
                                            .accepts = accepts,
                                            .run = run,
                                            .batched = true,
                                            .source_hash = SPK_SOURCE_HASH};

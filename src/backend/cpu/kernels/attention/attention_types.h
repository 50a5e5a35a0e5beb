/* A row of the tiled attention, for all types, or with PAIRED for TYPE BF16: who includes this says ROW and ISA. */
#ifndef ROW /* this file alone */
#define ROW attention_portable
#endif

#if PAIRED
#include "backend/cpu/kernels/attention/attention_tiles.h"
#else
#define TEMPLATE "backend/cpu/kernels/attention/attention_tiles.h"
#include "backend/cpu/kernels/vectors/for_each_type.h"
#endif
#if TILES
#include "backend/cpu/probe.h"
#endif

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device;
#if PAIRED
    if (problem->operand[ATTENTION_Q].dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->k == 0) /* pairs along it are counted, and divided by */
        *why = "the depth is 0";
#endif
#if TILES
    else if (problem->k % ATTENTION_TILES != 0 || problem->depth_v % ATTENTION_TILES != 0)
        *why = "the depth is no multiple of 32";
#endif
    return *why == NULL && attention_applicable(problem, ATTENTION_TUNED(ROW, params), why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int lanes = VECTOR_BYTES / (problem->compute == SPK_F64 ? 8 : 4) * (TILES ? 3 : PAIRED ? 2 : 1);
    return attention_cost(problem, device, ATTENTION_TUNED(ROW, params), lanes, VECTOR_BYTES > 16);
}

static spk_status bind(spk_bound *bound)
{
    const attention_tunables tuned = ATTENTION_TUNED(ROW, &bound->params);
#if TILES
    if (!spk_request_tiles())
        return spk_fail(SPK_ERR_UNSUPPORTED, "the system does not let this process use AMX");
#endif
    const size_t element_bytes = bound->problem.compute == SPK_F64 ? sizeof(double) : sizeof(float);
    bound->workspace_bytes =
        (size_t)(attention_workers(&bound->problem, bound->device, tuned) * attention_room_of(&bound->problem, tuned).elements) *
        element_bytes;
    return SPK_OK;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    const attention_tunables tuned = ATTENTION_TUNED(ROW, &bound->params);
    attention_job job = {
        .bound = bound, .args = args, .tuned = tuned, .room = attention_room_of(p, tuned), .cut = attention_cut_of(p, tuned)};
    job.all_tiles = job.cut.tiles * spk_operand_heads(&p->operand[ATTENTION_Q]);
#if PAIRED
    const spk_parallel_body body = attend_some_bf16;
#else
    const spk_parallel_body body = p->operand[ATTENTION_Q].dtype == SPK_F64    ? attend_some_f64
                                   : p->operand[ATTENTION_Q].dtype == SPK_F16  ? attend_some_f16
                                   : p->operand[ATTENTION_Q].dtype == SPK_BF16 ? attend_some_bf16
                                                                               : attend_some_f32;
#endif
    (void)stream;
    atomic_init(&job.next, 0);
    spk_execute(&bound->device->executor, attention_workers(p, bound->device, tuned), body, &job);
    return SPK_OK;
}

#define ATTENTION_OPS                                                                                                \
    {                                                                                                                \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH \
    }

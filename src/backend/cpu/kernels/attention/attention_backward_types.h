/* A row of attention's gradients for all types, or with PAIRED for TYPE BF16: who includes this says ROW and ISA. */
#ifndef ROW /* this file alone */
#define ROW attention_backward_portable
#endif

#if PAIRED
#include "backend/cpu/kernels/attention/attention_backward_tiles.h"
#else
#define TEMPLATE "backend/cpu/kernels/attention/attention_backward_tiles.h"
#include "backend/cpu/kernels/vectors/for_each_type.h"
#endif
#if TILES
#include "backend/cpu/probe.h"
#endif

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
#if PAIRED
    if (problem->operand[ATTENTION_Q].dtype != SPK_BF16)
        *why = "it is for bf16";
    else if (problem->k == 0) /* nothing is multiplied */
        *why = "the depth is 0";
#if TILES
    else if (problem->k % ATTENTION_TILES != 0 || problem->depth_v % ATTENTION_TILES != 0)
        *why = "the depth is no multiple of 32";
#endif
    if (*why != NULL)
        return false;
#endif
    return backward_applicable(problem, device, BACKWARD_TUNED(ROW, params), why);
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const int lanes = VECTOR_BYTES / (problem->compute == SPK_F64 ? 8 : 4) * (TILES ? 3 : PAIRED ? 2 : 1);
    return backward_cost(problem, device, BACKWARD_TUNED(ROW, params), lanes, VECTOR_BYTES > 16);
}

static spk_status bind(spk_bound *bound)
{
#if TILES
    if (!spk_request_tiles())
        return spk_fail(SPK_ERR_UNSUPPORTED, "the system does not let this process use AMX");
#endif
    const spk_problem *p = &bound->problem;
    const backward_tunables tuned = BACKWARD_TUNED(ROW, &bound->params);
    const backward_room room = backward_room_of(p, tuned);
    const size_t element_bytes = p->compute == SPK_F64 ? sizeof(double) : sizeof(float);
    bound->workspace_bytes =
        (size_t)(backward_workers(p, bound->device, tuned) * room.elements + backward_arrays(p, bound->device, tuned) * room.sums) *
        element_bytes;
    return SPK_OK;
}

#if PAIRED
#define OF_DTYPE(name) name##_bf16
#else
#define OF_DTYPE(name) (dtype == SPK_F64 ? name##_f64 : dtype == SPK_F16 ? name##_f16 : dtype == SPK_BF16 ? name##_bf16 : name##_f32)
#endif

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    const spk_problem *p = &bound->problem;
    const backward_tunables tuned = BACKWARD_TUNED(ROW, &bound->params);
#if !PAIRED
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
#endif
    const spk_parallel_body take = OF_DTYPE(take_some), put = OF_DTYPE(put_some);
    backward_job job = {.bound = bound,
                        .args = args,
                        .tuned = tuned,
                        .room = backward_room_of(p, tuned),
                        .cut = attention_cut_of(p, tuned.tile),
                        .workers = backward_workers(p, bound->device, tuned),
                        .tasks = backward_tasks(p, tuned)};
    (void)stream;
    atomic_init(&job.next, 0);
    spk_execute(&bound->device->executor, job.workers, take, &job);
    if (tuned.shares > 1)
        spk_execute(&bound->device->executor, spk_operand_heads(&p->operand[ATTENTION_K]) * ((p->n + BACKWARD_ROWS - 1) / BACKWARD_ROWS),
                    put, &job);
    return SPK_OK;
}

#define ATTENTION_BACKWARD_OPS                                                                                       \
    {                                                                                                                \
        .applicable = applicable, .predict_us = predict_us, .bind = bind, .run = run, .source_hash = SPK_SOURCE_HASH \
    }

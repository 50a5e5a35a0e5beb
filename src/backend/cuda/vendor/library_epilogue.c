/* Around a library's product: where it writes, and the epilogue that it does not know. */
#include <stdio.h>

#include "backend/cuda/helpers/finish.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/vendor/vendor.h"

bool spk_around_is_plain(const spk_problem *p)
{
    const spk_epilogue *e = &p->epilogue;
    return e->residual == SPK_RESIDUAL_NONE && !e->keep_preact && e->bias == SPK_BIAS_NONE && e->activation == SPK_ACT_NONE;
}

static void finish_build(const spk_problem *problem, spk_build *build)
{
    *build = (spk_build){.file = "finish.cu", .entry = "finish_product"};
    spk_problem_device_defines(problem, build->options, sizeof build->options);
}

static spk_dtype sum_dtype(const spk_problem *p)
{
    return p->a.dtype == SPK_F64 ? SPK_F64 : SPK_F32;
}

spk_operand spk_around_operand(const spk_problem *p)
{
    spk_operand acc = p->d;
    acc.dtype = sum_dtype(p);
    acc.ld = (spk_operand_length(&p->d) + 7) / 8 * 8; /* libraries like aligned columns */
    acc.stride = acc.ld * spk_operand_lines(&p->d);
    return acc;
}

size_t spk_around_bytes(const spk_problem *p)
{
    const spk_operand acc = spk_around_operand(p);
    return spk_round_up((size_t)(acc.stride * p->batch) * spk_dtype_bytes(acc.dtype), 256);
}

spk_status spk_around_make(const spk_bound *bound, bool direct, spk_around *around)
{
    const spk_problem *p = &bound->problem;
    spk_around made = {.direct = direct, .acc = p->d};
    if (!made.direct) {
        spk_build build;
        made.acc = spk_around_operand(p);
        made.acc_bytes = spk_around_bytes(p);
        finish_build(p, &build);
        SPK_TRY(spk_cuda_function(bound->device, &build, &made.finish));
    }
    SPK_TRY(spk_cuda_index_make(bound, &made.index));
    *around = made;
    return SPK_OK;
}

spk_status spk_around_make_summing(const spk_bound *bound, bool may_be_direct, spk_around *around)
{
    const spk_problem *p = &bound->problem;
    const bool direct = may_be_direct && spk_around_is_plain(p) && !p->epilogue.use_c && p->d.dtype == sum_dtype(p);
    return spk_around_make(bound, direct, around);
}

void spk_around_release(const spk_bound *bound, spk_around *around)
{
    spk_cuda_index_release(bound->device, &around->index);
}

bool spk_around_takes(const spk_bound *bound, const spk_around *around, const spk_args *args)
{
    return !around->direct || bound->problem.assume_finite || !spk_vendor_alpha_vanishes(&bound->problem, args);
}

spk_status spk_around_finish(const spk_bound *bound, const spk_around *around, const spk_args *args, const void *acc, CUstream stream)
{
    if (around->direct)
        return SPK_OK;
    spk_cuda_arguments arguments;
    spk_cuda_arguments_fill(&around->index, args, &arguments);
    const spk_operand *d = &bound->problem.d;
    long long acc_ld = around->acc.ld;
    void *parameters[] = {&arguments, &acc, &acc_ld};
    const int64_t most = 1 << 20, pairs = (spk_operand_length(d) + 1) / 2 * spk_operand_lines(d) * bound->problem.batch,
                  blocks = (pairs + FINISH_THREADS - 1) / FINISH_THREADS;
    return spk_cuda_launch(bound->device, around->finish, (unsigned)(blocks < most ? blocks : most), FINISH_THREADS, 0, stream, parameters);
}

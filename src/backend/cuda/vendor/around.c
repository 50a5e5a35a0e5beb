/* Around a library's product: where it writes, and the epilogue that it does not know. */
#include <stdio.h>

#include "backend/cuda/helpers/finish.h"
#include "backend/cuda/plan/launch.h"
#include "backend/cuda/vendor/vendor.h"

static bool is_direct(const spk_problem *p)
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

static spk_status make(const spk_bound *bound, bool direct, spk_around *around)
{
    const spk_problem *p = &bound->problem;
    spk_around made = {.direct = direct, .acc_dtype = p->d.dtype};
    if (!made.direct) {
        int64_t length = p->d.layout == SPK_ROW_MAJOR ? p->n : p->m, lines = p->d.layout == SPK_ROW_MAJOR ? p->m : p->n;
        made.acc_dtype = sum_dtype(p);
        made.acc_ld = (length + 7) / 8 * 8; /* libraries like aligned columns */
        made.acc_bytes = spk_round_up((size_t)(made.acc_ld * lines) * spk_dtype_bytes(made.acc_dtype), 256);
        spk_build build;
        finish_build(p, &build);
        SPK_TRY(spk_cuda_function(bound->device, &build, &made.finish));
    }
    SPK_TRY(spk_cuda_index_make(bound, &made.index));
    *around = made;
    return SPK_OK;
}

spk_status spk_around_make(const spk_bound *bound, spk_around *around)
{
    return make(bound, is_direct(&bound->problem), around);
}

spk_status spk_around_make_summing(const spk_bound *bound, bool may_be_direct, spk_around *around)
{
    const spk_problem *p = &bound->problem;
    return make(bound, may_be_direct && is_direct(p) && !p->epilogue.use_c && p->d.dtype == sum_dtype(p), around);
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
    long long acc_ld = around->acc_ld;
    void *parameters[] = {&arguments, &acc, &acc_ld};
    int64_t elements = bound->problem.m * bound->problem.n, blocks = (elements + FINISH_THREADS - 1) / FINISH_THREADS, most = 1 << 20;
    return spk_cuda_launch(bound->device, around->finish, (unsigned)(blocks < most ? blocks : most), FINISH_THREADS, 0, stream, parameters);
}

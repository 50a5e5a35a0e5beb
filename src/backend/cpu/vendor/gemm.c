/* One vendor call for all of D: GEMM, and what dense rows of SpMM do with their matrix once it is dense. */
#include <math.h>

#include "backend/cpu/vendor/vendor.h"
#include "op/groups.h"

size_t spk_whole_acc_bytes(const spk_problem *problem)
{
    return spk_product_is_result(problem, true) ? 0 : (size_t)problem->m * (size_t)problem->n * spk_sum_bytes(problem);
}

void spk_whole_run(const spk_bound *bound, const spk_args *args, const spk_whole *whole)
{
    const spk_problem *p = &bound->problem;
    const bool into_d = spk_product_is_result(p, true);
    spk_product product = {.dtype = p->a.dtype,
                           .dtype_d = p->d.dtype,
                           .m = (int)p->m,
                           .n = (int)p->n,
                           .k = (int)p->k,
                           .layout_a = whole->layout_a,
                           .layout_b = p->b.layout,
                           .layout_d = p->d.layout,
                           .a = whole->a,
                           .b = args->b,
                           .d = args->d,
                           .lda = whole->lda,
                           .ldb = (int)p->b.ld,
                           .ldd = (int)p->d.ld,
                           .alpha = args->alpha,
                           .scratch = whole->scratch};
    if (into_d) {
        product.beta = spk_start_from_c(p, args);
    } else {
        product.d = whole->acc;
        product.dtype_d = p->a.dtype == SPK_F64 ? SPK_F64 : SPK_F32;
        product.layout_d = SPK_ROW_MAJOR;
        product.ldd = product.n;
        product.alpha = 1;
    }
    whole->multiply(whole->user, &product, spk_executor_library_threads(&bound->device->executor));
    if (!into_d)
        spk_finish(bound, args, whole->acc, SPK_ROW_MAJOR, p->n, NULL);
}

/* No group is larger than the whole. */
spk_problem spk_gemm_largest_item(const spk_problem *problem)
{
    spk_problem item = spk_problem_item(problem);
    item.group_axis = SPK_GROUP_NONE;
    return item;
}

size_t spk_gemm_acc_bytes(const spk_problem *problem)
{
    const spk_problem item = spk_gemm_largest_item(problem);
    return spk_whole_acc_bytes(&item);
}

bool spk_gemm_fits(const spk_problem *problem, const spk_device *device, const char **why)
{
    const spk_problem item = spk_gemm_largest_item(problem);
    *why = spk_vendor_refusal_of_sizes(&item);
    if (*why == NULL && (double)spk_whole_acc_bytes(&item) > (double)device->memory_bytes / 4)
        *why = "what comes before the epilogue would take more than a quarter of the memory";
    return *why == NULL;
}

bool spk_gemm_applicable(const spk_problem *problem, const spk_device *device, const char **why)
{
    const spk_problem item = spk_gemm_largest_item(problem);
    *why = spk_vendor_refusal(&item);
    return *why == NULL && spk_gemm_fits(problem, device, why);
}

double spk_gemm_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    const double stream = fmax(device->stream_gbs, 1) * 1e3, calls = (double)problem->batch, groups = calls;
    const spk_group_axis cut = problem->group_axis;
    const double rows = (double)problem->m / (cut == SPK_GROUP_ROWS ? groups : 1),
                 columns = (double)problem->n / (cut == SPK_GROUP_COLS ? groups : 1);
    const double depth = fmax((double)problem->k / (cut == SPK_GROUP_DEPTH ? groups : 1), 1);
    const double share = 0.8 / (1 + 30 / fmax(fmin(rows, columns), 1) + 30 / depth); /* of the peak: small and slim products get less */
    const double multiply = spk_problem_flops(problem) / (spk_peak_gflops(problem, device) * share * 1e3);
    return 10 * calls + fmax(multiply, spk_problem_bytes(problem) / stream) + 2 * (double)spk_gemm_acc_bytes(problem) / stream;
}

void spk_gemm_run(const spk_bound *bound, const spk_args *args, void (*multiply)(const void *, const spk_product *, int), const void *user)
{
    spk_bound one = *bound;
    void *scratch = bound->workspace_bytes > spk_gemm_acc_bytes(&bound->problem)
                        ? (char *)args->workspace + (spk_gemm_acc_bytes(&bound->problem) + 63) / 64 * 64
                        : NULL;
    for (int64_t item = 0; item < bound->problem.batch; item++) {
        spk_args of_one;
        spk_product_take(&bound->problem, args, item, &one.problem, &of_one);
        if (one.problem.m == 0 || one.problem.n == 0)
            continue;
        const spk_whole whole = {.multiply = multiply,
                                 .user = user,
                                 .a = of_one.a,
                                 .layout_a = one.problem.a.layout,
                                 .lda = (int)one.problem.a.ld,
                                 .acc = of_one.workspace,
                                 .scratch = scratch};
        spk_whole_run(&one, &of_one, &whole);
    }
}

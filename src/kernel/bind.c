/* Applicability, eligibility, and binding a problem to a candidate. */
#include <string.h>

#include "kernel/batch.h"
#include "kernel/row.h"
#include "kernel/threads.h"
#include "op/operation.h"

static const char *isa_reason(unsigned missing)
{
    if (missing & SPK_ISA_SM90A)
        return "the device is not of compute capability 9.0";
    if (missing & (SPK_ISA_SM70 | SPK_ISA_SM80))
        return "the device's compute capability is lower than it needs";
    if (missing & SPK_ISA_AVX512F)
        return "AVX-512 (F, BW, DQ, VL) is not there: the processor lacks it, or the system keeps no registers for it";
    if (missing & SPK_ISA_AMX_BF16)
        return "AMX with bfloat16 is not there: the processor lacks it, or the system keeps no registers for it";
    if (missing & SPK_ISA_AVX512_BF16)
        return "the processor has no AVX512-BF16";
    if (missing & SPK_ISA_AVX512_FP16)
        return "the processor has no AVX512-FP16";
    if (missing & (SPK_ISA_AVX2 | SPK_ISA_FMA | SPK_ISA_AVX))
        return "the processor has no AVX2 with FMA";
    if (missing & SPK_ISA_NEON_BF16)
        return "the processor has no BF16 instructions beside NEON";
    if (missing & SPK_ISA_F16C)
        return "the processor has no F16C";
    return "the processor lacks an instruction set it needs";
}

static bool applicable(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device,
                       const char **why)
{
    if (kernel->ops->applicable == NULL)
        return true;
    if (kernel->ops->batched)
        return kernel->ops->applicable(problem, device, params, why);
    const spk_problem item = spk_problem_item(problem);
    return kernel->ops->applicable(&item, device, params, why);
}

/* Whether the row takes the factors of the problem: those of its first operand, or what they are rounded to. */
static bool takes_types(const spk_kernel *kernel, const spk_problem *problem)
{
    const bool reduced = spk_type_of(problem->compute)->use == SPK_USE_PRODUCTS;
    const spk_dtype factors = reduced ? problem->compute : problem->operand[0].dtype;
    return kernel->types.bits == 0 || (kernel->types.bits >> factors & 1) != 0;
}

bool spk_candidate_applicable(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device,
                              const char **why)
{
    *why = NULL;
    if (kernel->operation != problem->op->id)
        *why = "it computes another operation";
    else if (kernel->backend != device->backend->id)
        *why = "it is for another kind of device";
    else if (!takes_types(kernel, problem))
        *why = kernel->types.why;
    else if ((kernel->isa & ~device->isa) != 0)
        *why = isa_reason(kernel->isa & ~device->isa);
    else if (problem->pattern != NULL && problem->pattern->device_only && !kernel->ops->device_indices)
        *why = "it needs the indices on the host";
    else if (problem->group_axis != SPK_GROUP_NONE && !kernel->ops->grouped)
        *why = "it takes no groups";
    else if (kernel->library != NULL && !device->backend->library_found(device, kernel->library))
        *why = device->backend->library_why != NULL ? device->backend->library_why(device, kernel->library) : "its library was not found";
    else if (!spk_batch_applicable(kernel, problem, device, why))
        return false;
    else if (!spk_serial_applicable(kernel, params, problem, device, why))
        return false;
    else if (!applicable(kernel, params, problem, device, why) && *why == NULL)
        *why = "it does not compute this problem";
    return *why == NULL;
}

bool spk_candidate_eligible(const spk_kernel *kernel, const spk_problem *problem, const char **why)
{
    *why = kernel->fills_zeros && !problem->assume_finite ? "needs assume_finite" : NULL;
    return *why == NULL;
}

spk_status spk_bind(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, spk_device *device, spk_bound *bound)
{
    spk_bound made = {.kernel = kernel, .problem = *problem, .params = *params, .device = device};
    if (problem->pattern != NULL)
        SPK_TRY(spk_pattern_view(problem->pattern, problem->trans_a, problem->block_layout, &made.view));
    const bool items = problem->batch > 1 && !kernel->ops->batched;
    if (spk_runs_alone(kernel, params, problem, device)) {
        SPK_TRY(spk_alloc(&device->mem, 1, sizeof *made.serial, &made.serial));
        *made.serial = spk_device_alone(device);
        made.device = device = made.serial;
    }
    spk_status status = items ? spk_batch_begin(&made) : SPK_OK;
    if (status == SPK_OK)
        status = spk_row_bind(&made);
    if (status != SPK_OK) {
        spk_batch_release(&made);
        return status;
    }
    if (items)
        spk_batch_end(&made, problem, device);
    if (problem->pattern != NULL)
        made.problem.pattern = spk_pattern_share(problem->pattern);
    *bound = made;
    return SPK_OK;
}

void spk_unbind(spk_bound *bound)
{
    if (bound->kernel == NULL)
        return;
    spk_row_unbind(bound);
    spk_batch_release(bound);
    spk_pattern_release(&bound->problem.pattern);
    memset(bound, 0, sizeof *bound);
}

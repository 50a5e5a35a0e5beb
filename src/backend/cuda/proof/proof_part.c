/* The problem that candidates are proved with. */
#include <string.h>

#include "backend/cuda/proof/proof.h"
#include "backend/cuda/proof/proof_parts.h"
#include "op/part.h"

static double most_bytes = 1 << 30; /* of all operands: what a caller's own leave free on any GPU */

void spk_cuda_proof_bytes(double bytes)
{
    most_bytes = bytes;
}

static bool is_same_program(const spk_device *device, const spk_prepared *candidate, const spk_problem *whole, const spk_problem *part)
{
    spk_build of_whole = {0}, of_part = {0};
    if (candidate->kernel->ops->build == NULL)
        return true;
    candidate->kernel->ops->build(whole, device, &candidate->params, &of_whole);
    candidate->kernel->ops->build(part, device, &candidate->params, &of_part);
    return strcmp(of_whole.options, of_part.options) == 0 && strcmp(of_whole.entry, of_part.entry) == 0;
}

/* A proof holds for what was run alone: a program that depends on the sizes is proved with all of them. */
static bool serves_all(const spk_proving *p, const spk_problem *part)
{
    const char *why;
    for (int i = 0; i < p->count; i++) {
        const spk_prepared *candidate = &p->list[p->todo[i]];
        if (!spk_candidate_applicable(candidate->kernel, &candidate->params, part, p->device, &why) ||
            !is_same_program(p->device, candidate, p->problem, part))
            return false;
    }
    return true;
}

spk_status spk_proof_part(const spk_proving *p, spk_problem *part, spk_pattern **pattern)
{
    SPK_TRY(spk_problem_part(&p->device->mem, p->problem, most_bytes, part, pattern));
    if (serves_all(p, part))
        return SPK_OK;
    spk_pattern_release(pattern);
    *part = *p->problem;
    return SPK_OK;
}

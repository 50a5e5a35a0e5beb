/* Whether a kernel is wrong, or what it was given: sums of a caller's numbers may overflow, vanish below the least normal number, or change
 * while the oracle reads them (weights that several processes train). By random operands it is the kernel that is judged, as in a tuning.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "tune/trial/trial.h"

static const double most_bytes = 64e6; /* of operands: of a larger problem a part is looked at, as the caller waits */
static const double oracle_us = 5e3;

bool spk_trial_finds_wrong(spk_stage *stage, const spk_kernel *kernel, const spk_params *params, double tolerance, char *why, size_t size)
{
    spk_contender c = {.kernel = kernel, .params = *params, .prepared = true};
    double run_us;
    const bool wrong =
        spk_contender_bind(&c, stage) == SPK_OK && !spk_contender_check(&c, stage, tolerance, &run_us) && c.status == SPK_CANDIDATE_WRONG;
    if (wrong)
        snprintf(why, size, "%s", c.why);
    spk_contender_unbind(&c);
    return wrong;
}

bool spk_trial_confirms(const spk_tuner *tuner, const spk_problem *asked, const spk_contender *suspect, double tolerance, char *why,
                        size_t size)
{
    spk_problem problem = *asked;
    problem.cache = SPK_WARM; /* one set of operands */
    const spk_level level = spk_level_for(tuner, &problem, most_bytes / fmax((double)spk_operands_set_bytes(&problem), 1));
    spk_operand_memory memory = {.limit_us = 0};
    spk_stage *stage = NULL;
    const bool wrong = spk_stage_make(tuner, &problem, level, (uint64_t)spk_now_us(), oracle_us, &memory, &stage) == SPK_OK &&
                       spk_trial_finds_wrong(stage, suspect->kernel, &suspect->params, tolerance, why, size);
    spk_stage_release(&stage);
    spk_operand_memory_release(tuner->device, &memory);
    return wrong;
}

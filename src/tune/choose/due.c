/* When provisional evidence is measured anew: where that may do better, and so rarely that nobody who plans is kept waiting each time. */
#include <math.h>

#include "base/clock.h"
#include "tune/choose/choose.h"

enum { LOAD_PATIENCE_S = 300 };
static const double more_budget = 1.5; /* with less it would end much the same */

static double budget_of(const spk_tuner *tuner, const spk_tune_options *options)
{
    if (options->budget_s > 0)
        return options->budget_s;
    return options->effort == SPK_TUNE_EXHAUSTIVE ? INFINITY : tuner->device->backend->budget_s;
}

bool spk_load_is_recent(int64_t measured_at)
{
    const int64_t age_s = spk_unix_time_s() - measured_at; /* below 0: the clock has jumped */
    return age_s >= 0 && age_s < LOAD_PATIENCE_S;
}

/* Some minutes later at the earliest, once a process, and not while the machine is as busy. */
static bool load_has_passed(const spk_tuner *tuner, const spk_decision *decision, uint64_t hash)
{
    if (spk_load_is_recent(decision->measured_at) ||
        spk_known_find(spk_known_of_process(SPK_KNOWN_MEASURED_ANEW), &hash, sizeof hash, NULL, 0))
        return false;
    return !spk_is_busy(tuner);
}

bool spk_evidence_due(const spk_tuner *tuner, const spk_tune_options *options, const spk_decision *decision, uint64_t hash)
{
    switch (decision->provisional) {
    case SPK_PROVISIONAL_NO:
        return false;
    case SPK_PROVISIONAL_INTERRUPTED:
        return true;
    case SPK_PROVISIONAL_BUDGET:
    case SPK_PROVISIONAL_IN_PLACE:
        return budget_of(tuner, options) >= more_budget * decision->budget_s;
    case SPK_PROVISIONAL_LOAD: /* a trial in place was a fraction of a tuning */
        return load_has_passed(tuner, decision, hash) || (options->tuning != SPK_TUNING_IN_PLACE && decision->budget_s > 0 &&
                                                          budget_of(tuner, options) >= more_budget * decision->budget_s);
    }
    return false;
}

bool spk_evidence_anew(const spk_tuner *tuner, const spk_tune_options *options, const spk_report *stored, uint64_t hash)
{
    const spk_decision decision = {.measured_at = stored->measured_at, .provisional = stored->provisional, .budget_s = stored->budget_s};
    return stored->provisional != SPK_PROVISIONAL_INTERRUPTED && spk_evidence_due(tuner, options, &decision, hash);
}

void spk_evidence_was_measured_anew(uint64_t hash)
{
    spk_known_first(spk_known_of_process(SPK_KNOWN_MEASURED_ANEW), &hash, sizeof hash);
}

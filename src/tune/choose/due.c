/* When provisional evidence is measured anew: where that may do better, and so rarely that nobody who plans is kept waiting each time. */
#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "tune/choose/choose.h"

enum { TRIED = 256, LOAD_PATIENCE_S = 300 };
static const double more_budget = 1.5; /* with less it would end much the same */

/* Classes measured anew by this process, as their evidence was of a busy machine: hashes, where a lost one only costs another tuning. */
static _Atomic uint64_t tried[TRIED];

static double budget_of(const spk_tuner *tuner, const spk_tune_options *options)
{
    if (options->budget_s > 0)
        return options->budget_s;
    return options->effort == SPK_TUNE_EXHAUSTIVE ? INFINITY : tuner->device->backend->budget_s;
}

/* Some minutes later at the earliest, once a process, and not while the machine is as busy. */
static bool load_has_passed(const spk_tuner *tuner, const spk_decision *decision, uint64_t hash)
{
    const int64_t age_s = spk_unix_time_s() - decision->measured_at; /* below 0: the clock has jumped */
    if ((age_s >= 0 && age_s < LOAD_PATIENCE_S) || atomic_load_explicit(&tried[hash % TRIED], memory_order_relaxed) == hash)
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
        return budget_of(tuner, options) >= more_budget * decision->budget_s;
    case SPK_PROVISIONAL_LOAD:
        return load_has_passed(tuner, decision, hash);
    }
    return false;
}

bool spk_evidence_anew(const spk_tuner *tuner, const spk_tune_options *options, const spk_report *stored, uint64_t hash)
{
    const spk_decision decision = {.measured_at = stored->measured_at, .provisional = stored->provisional, .budget_s = stored->budget_s};
    if (stored->provisional == SPK_PROVISIONAL_INTERRUPTED || !spk_evidence_due(tuner, options, &decision, hash))
        return false;
    if (stored->provisional == SPK_PROVISIONAL_LOAD)
        atomic_store_explicit(&tried[hash % TRIED], hash, memory_order_relaxed);
    return true;
}

/* Choices for which nothing is measured: a pinned one, the nearest known class's, the cost model's. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tune/choose/choose.h"

/* ------------------------------------------------------------------------------------------------ pinned */

/* Whether a line about this candidate is due: one a process is enough. */
static bool not_told_yet(const spk_choice *choice)
{
    char hash[17];
    spk_candidate_hash(choice->kernel, &choice->params, hash);
    const uint64_t number = spk_hash_text(SPK_HASH_START, hash);
    return spk_known_first(spk_known_of_process(SPK_KNOWN_TOLD), &number, sizeof number);
}

static void tell_unproved(const spk_tuner *tuner, const spk_tune_options *options, const spk_choice *choice, const char *why)
{
    char text[512];
    if (tuner->log == NULL || !not_told_yet(choice))
        return;
    snprintf(text, sizeof text,
             "choice = \"%.160s\" is pinned, not proved: a fault or a hang of it takes this process's device with it%s%.200s",
             options->choice, why[0] != '\0' ? "; " : "", why);
    tuner->log(tuner->log_user, 1, text);
}

/* Proved like any other where that is possible; otherwise the caller's word counts, unless it did harm when it was proved. */
static spk_status look_at_proof(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice)
{
    char why[200];
    spk_proof proof = SPK_PROOF_GOOD;
    if (!spk_problem_is_empty(problem))
        SPK_TRY(spk_prove(tuner, problem, choice->kernel, &choice->params, false, &proof, why, sizeof why));
    if (proof == SPK_PROOF_REFUTED)
        return spk_fail(SPK_ERR_NO_CANDIDATE,
                        "choice = \"%s\": it never runs in this process, as it did harm in the one that proved it: %s", options->choice,
                        why);
    if (proof == SPK_PROOF_NONE) {
        choice->origin = SPK_ORIGIN_UNPROVED;
        tell_unproved(tuner, options, choice, why);
    }
    return SPK_OK;
}

spk_status spk_choose_pinned(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice)
{
    spk_choice made = {.pinned = true, .origin = SPK_ORIGIN_PINNED};
    const char *why = NULL;
    SPK_TRY(spk_choice_parse(tuner, problem, options->choice, &made.kernel, &made.params));
    if (!spk_candidate_applicable(made.kernel, &made.params, problem, tuner->device, &why) ||
        !spk_candidate_eligible(made.kernel, problem, &why))
        return spk_fail(SPK_ERR_NO_CANDIDATE, "choice = \"%s\": %s", options->choice, why);
    SPK_TRY(look_at_proof(tuner, problem, options, &made));
    *choice = made;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ estimated */

static spk_status from_nearest(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                               spk_choice *choice, bool *found)
{
    spk_decision decision;
    char why[200];
    bool known = false;
    spk_choice made = {.origin = SPK_ORIGIN_MODEL_NEAREST};
    spk_proof proof = SPK_PROOF_NONE;
    bool wrong = false;
    *found = false;
    if (spk_store_nearest(tuner->store, class->plain, &decision, &known) != SPK_OK || !known ||
        decision.provisional == SPK_PROVISIONAL_LOAD || !spk_decision_usable(tuner, problem, options, &decision, &made))
        return SPK_OK;
    if (class->restricted) /* else the nearest is the class itself, where that has evidence */
        SPK_TRY(spk_evidence_is_wrong(tuner, options, class, made.kernel, &made.params, &wrong));
    if (wrong)
        return SPK_OK;
    SPK_TRY(spk_prove(tuner, problem, made.kernel, &made.params, spk_proves_soon(options), &proof, why, sizeof why));
    *found = proof == SPK_PROOF_GOOD;
    if (*found)
        *choice = made;
    return SPK_OK;
}

/* SPK_ERR_NO_CANDIDATE, with what keeps each row out. */
static spk_status none_applicable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                  const spk_class *class)
{
    spk_contender *contenders = NULL;
    int count = 0;
    SPK_TRY(spk_contenders_make(tuner, problem, options, &contenders, &count));
    spk_status status = class != NULL ? spk_evidence_rule_out(tuner, options, class, contenders, count) : SPK_OK;
    if (status == SPK_OK)
        status = spk_no_candidate(contenders, count, options);
    spk_contenders_release(tuner, &contenders, count);
    return status;
}

/* Candidates that could run here, and none of them is proved. */
static spk_status none_proved(const spk_tuner *tuner, const spk_contender *contenders, int first)
{
    const spk_contender *c = &contenders[first];
    return spk_fail(SPK_ERR_NO_CANDIDATE,
                    "no candidate is proved for %s, and none can be proved now (%s: %.160s): install sparsek-prover beside the library or "
                    "set SPARSEK_PROVER to its full path, or pin one "
                    "with options.choice",
                    tuner->device->name, c->kernel->name, c->why);
}

void spk_choose_threads(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                        spk_choice *choice)
{
    spk_params fitting = choice->params;
    bool wrong = false;
    spk_fit_threads(tuner, problem, choice->kernel, &fitting);
    const bool other = memcmp(fitting.v, choice->params.v, sizeof fitting.v) != 0;
    if (other && class != NULL && spk_evidence_is_wrong(tuner, options, class, choice->kernel, &fitting, &wrong) != SPK_OK)
        return;
    if (!wrong)
        choice->params = fitting;
}

spk_status spk_choose_estimated(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                                spk_choice *choice)
{
    bool found = false;
    if (class != NULL)
        SPK_TRY(from_nearest(tuner, problem, options, class, choice, &found));
    if (found)
        return SPK_OK;
    spk_contender *contenders = NULL;
    int count = 0;
    SPK_TRY(spk_contenders_eligible(tuner, problem, options, &contenders, &count));
    spk_status status = class != NULL ? spk_evidence_rule_out(tuner, options, class, contenders, count) : SPK_OK;
    int first = spk_contenders_predicted_best(contenders, count);
    if (first < 0 && spk_contenders_readmit(contenders, count))
        first = spk_contenders_predicted_best(contenders, count);
    int best = first;
    if (status == SPK_OK)
        status = first < 0 ? none_applicable(tuner, problem, options, class) : SPK_OK;
    if (status == SPK_OK && !spk_problem_is_empty(problem))
        status = spk_proved_best(tuner, problem, contenders, count, spk_proves_soon(options), &best);
    if (status == SPK_OK && best < 0 && spk_contenders_readmit(contenders, count))
        status = spk_proved_best(tuner, problem, contenders, count, spk_proves_soon(options), &best);
    if (status == SPK_OK && best < 0)
        status = none_proved(tuner, contenders, first);
    if (status == SPK_OK) {
        *choice = (spk_choice){.kernel = contenders[best].kernel, .params = contenders[best].params, .origin = SPK_ORIGIN_MODEL};
        spk_choose_threads(tuner, problem, options, class, choice);
    }
    spk_contenders_release(tuner, &contenders, count);
    return status;
}

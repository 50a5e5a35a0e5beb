/* Proofs before binding: on a device that keeps them, no candidate runs in this process that is not proved, whoever names it: the store, an
 * import, the estimate, another candidate's place. Only a choice that the caller has pinned may; one that was refuted never. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tune/choose/choose.h"

/* Where finding out that a candidate cannot be proved took longer, nothing at all is tried for a while: a prover that does not answer takes
 * a minute each time. */
static const double patience_us = 20e6;
static const uint64_t any_candidate = 0;

/* ------------------------------------------------------------------------------------------------ what could not be proved */

/* The candidate and what its program is compiled for. */
static uint64_t hash_of(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params)
{
    char text[17];
    spk_candidate_hash(kernel, params, text);
    return spk_hash_text(SPK_HASH_START, text) ^ spk_program_hash(tuner, problem, kernel, params);
}

static bool is_unproved(const uint64_t *candidate)
{
    return spk_known_find(spk_known_of_process(SPK_KNOWN_UNPROVED), candidate, sizeof *candidate, NULL, 0);
}

static bool failed_lately(uint64_t candidate)
{
    return is_unproved(&any_candidate) || is_unproved(&candidate);
}

static void remember_failure(uint64_t candidate, double begun_us)
{
    spk_known *unproved = spk_known_of_process(SPK_KNOWN_UNPROVED);
    spk_known_add(unproved, &candidate, sizeof candidate, NULL, 0, spk_epoch_now(), false);
    if (spk_now_us() - begun_us > patience_us)
        spk_known_add(unproved, &any_candidate, sizeof any_candidate, NULL, 0, spk_epoch_now(), false);
}

void spk_prove_again(void)
{
    spk_known_forget(spk_known_of_process(SPK_KNOWN_UNPROVED));
}

uint64_t spk_program_hash(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params)
{
    spk_build build = {0};
    if (kernel->ops->build == NULL)
        return 0;
    kernel->ops->build(problem, tuner->device, params, &build);
    return spk_hash_text(spk_hash_text(SPK_HASH_START, build.options), build.entry);
}

/* ------------------------------------------------------------------------------------------------ one candidate, or several */

bool spk_proves_soon(const spk_tune_options *options)
{
    return options->tuning == SPK_TUNING_IN_PLACE;
}

spk_proof spk_proof_known(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                          size_t size)
{
    const spk_backend *backend = tuner->device->backend;
    if (size > 0)
        why[0] = '\0';
    return backend->proof != NULL ? backend->proof(tuner->device, problem, kernel, params, why, size) : SPK_PROOF_GOOD;
}

/* Has it proved. An error is an interruption. */
static spk_status prove_now(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params,
                            bool elsewhere, spk_proof *proof, char *why, size_t size)
{
    spk_prepared one = {.kernel = kernel, .params = *params, .elsewhere = elsewhere};
    const double begun = spk_now_us();
    const spk_status status = tuner->device->backend->prepare(tuner->device, problem, &one, 1, &tuner->stop);
    if (status == SPK_ERR_INTERRUPTED || (status == SPK_OK && one.status == SPK_ERR_INTERRUPTED))
        return spk_fail(SPK_ERR_INTERRUPTED, "interrupted while a candidate was proved");
    if (status == SPK_ERR_INTERNAL) /* it was asked wrongly: no word about the candidate */
        return status;
    if (status == SPK_OK && one.status == SPK_OK)
        *proof = SPK_PROOF_GOOD;
    else if (status == SPK_OK && one.status == SPK_ERR_INTERNAL)
        *proof = SPK_PROOF_REFUTED;
    else
        remember_failure(hash_of(tuner, problem, kernel, params), begun);
    if (size > 0)
        snprintf(why, size, "%s", status == SPK_OK ? one.why : spk_error_last());
    return SPK_OK;
}

spk_status spk_prove(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, bool elsewhere,
                     spk_proof *proof, char *why, size_t size)
{
    *proof = spk_proof_known(tuner, problem, kernel, params, why, size);
    if (*proof != SPK_PROOF_NONE || tuner->device->backend->prepare == NULL)
        return SPK_OK;
    if (failed_lately(hash_of(tuner, problem, kernel, params))) {
        if (size > 0 && why[0] == '\0')
            snprintf(why, size, "proving failed within the last minute");
        return SPK_OK;
    }
    return prove_now(tuner, problem, kernel, params, elsewhere, proof, why, size);
}

/* The best prediction among those that may run without a wait, unless it is far behind the best of all; -1: none. A run that is short in
 * any case costs less, until the best is compiled, than a wait for that. */
static int best_ready(const spk_tuner *tuner, const spk_problem *problem, const spk_contender *contenders, int count)
{
    static const double far_behind = 3, short_us = 100;
    const spk_backend *backend = tuner->device->backend;
    const int first = spk_contenders_predicted_best(contenders, count);
    int best = -1;
    for (int i = 0; first >= 0 && i < count; i++) {
        const spk_contender *c = &contenders[i];
        const bool better = best < 0 || c->predicted_us < contenders[best].predicted_us;
        if (c->eligible && better && c->predicted_us <= fmax(far_behind * contenders[first].predicted_us, short_us) &&
            backend->ready(tuner->device, problem, c->kernel, &c->params))
            best = i;
    }
    return best;
}

/* The first of the best rows' best that is proved now. After a try the whole row is out. */
static spk_status best_of_rows(const spk_tuner *tuner, const spk_problem *problem, spk_contender *contenders, int count, bool soon,
                               int *best)
{
    *best = soon && tuner->device->backend->ready != NULL ? best_ready(tuner, problem, contenders, count) : -1;
    if (*best >= 0) {
        spk_contender *c = &contenders[*best];
        spk_proof proof = SPK_PROOF_NONE;
        SPK_TRY(spk_prove(tuner, problem, c->kernel, &c->params, true, &proof, c->why, sizeof c->why));
        if (proof == SPK_PROOF_GOOD)
            return SPK_OK;
    }
    for (int tries = 0; tries < SPK_MOST_PROVED && (*best = spk_contenders_predicted_best(contenders, count)) >= 0; tries++) {
        spk_contender *c = &contenders[*best];
        spk_proof proof = SPK_PROOF_NONE;
        SPK_TRY(spk_prove(tuner, problem, c->kernel, &c->params, soon, &proof, c->why, sizeof c->why));
        if (proof == SPK_PROOF_GOOD)
            return SPK_OK;
        for (int i = 0; i < count; i++)
            contenders[i].eligible = contenders[i].eligible && contenders[i].row != c->row;
    }
    *best = -1;
    return SPK_OK;
}

spk_status spk_proved_best(const spk_tuner *tuner, const spk_problem *problem, spk_contender *contenders, int count, bool soon, int *best)
{
    bool *could = NULL;
    char why[200];
    if (tuner->device->backend->proof == NULL) {
        *best = spk_contenders_predicted_best(contenders, count);
        return SPK_OK;
    }
    SPK_TRY(spk_calloc(tuner->mem, (size_t)count + 1, sizeof *could, &could));
    for (int i = 0; i < count; i++)
        could[i] = contenders[i].eligible;
    spk_status status = best_of_rows(tuner, problem, contenders, count, soon, best);
    for (int i = 0; i < count; i++)
        contenders[i].eligible = could[i];
    spk_free(tuner->mem, could);
    while (status == SPK_OK && *best < 0) { /* then the best of those that are proved already */
        const int next = spk_contenders_predicted_best(contenders, count);
        if (next < 0)
            break;
        spk_contender *c = &contenders[next];
        if (spk_proof_known(tuner, problem, c->kernel, &c->params, why, sizeof why) == SPK_PROOF_GOOD)
            *best = next;
        else if (why[0] != '\0')
            snprintf(c->why, sizeof c->why, "%s", why);
        c->eligible = *best == next;
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------ binding */

static spk_status refuse(const spk_choice *choice, spk_proof proof, const char *why)
{
    char params[SPK_MAX_PARAMS_TEXT];
    const char *name = choice->kernel->name;
    spk_params_text(choice->kernel, &choice->params, params, sizeof params);
    const char *space = params[0] != '\0' ? " " : "";
    if (proof == SPK_PROOF_REFUTED)
        return spk_fail(SPK_ERR_NO_CANDIDATE,
                        "choice = \"%s%s%s\": it never runs in this process, as it did harm in the one that proved it: %s", name, space,
                        params, why);
    if (why[0] == '\0')
        why = "nobody has run it here";
    return spk_fail(SPK_ERR_NO_CANDIDATE, "choice = \"%s%s%s\": it is not proved (%s)", name, space, params, why);
}

void spk_tune_name_proof(const spk_tuner *tuner, const spk_problem *problem, spk_choice *choice)
{
    const spk_backend *backend = tuner->device->backend;
    if (backend->proof_name != NULL)
        backend->proof_name(tuner->device, problem, choice->kernel, &choice->params, choice->proof);
}

bool spk_proof_stands(const spk_tuner *tuner, const spk_choice *choice)
{
    return choice->proof[0] != '\0' && tuner->device->backend->proof_stands(tuner->device, choice->proof);
}

spk_status spk_tune_bind(const spk_tuner *tuner, const spk_problem *problem, const spk_choice *choice, spk_bound *bound)
{
    char why[200];
    if (!spk_problem_is_empty(problem) && !spk_proof_stands(tuner, choice)) { /* of an empty one nothing runs */
        const spk_proof proof = spk_proof_known(tuner, problem, choice->kernel, &choice->params, why, sizeof why);
        if (proof == SPK_PROOF_REFUTED || (proof == SPK_PROOF_NONE && !choice->pinned))
            return refuse(choice, proof, why);
    }
    return spk_bind(choice->kernel, &choice->params, problem, tuner->device, bound);
}

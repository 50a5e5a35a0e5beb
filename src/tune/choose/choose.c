/* The way from a problem to a decision: a pinned choice, the store, the estimate, or tuning under the store's lock. A plan from a warm
 * store reads one row of it. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/callback.h"
#include "base/clock.h"
#include "base/hash.h"
#include "kernel/threads.h"
#include "tune/choose/choose.h"

static const double lock_patience_s = 10; /* beyond the budget */
static const double most_lost = 0.8;      /* of the budget: what other programs take and it does not count */

/* ------------------------------------------------------------------------------------------------ classes already compared */

/* Of all that the table's rows are: the same for every class of a process, so that the build's own table is hashed once. */
static uint64_t hash_table(const spk_kernel *table, int rows)
{
    uint64_t hash = SPK_HASH_START;
    for (int i = 0; i < rows; i++) {
        hash = spk_hash_text(hash, table[i].name);
        hash = spk_hash_text(hash, table[i].tunables);
        hash = spk_hash_text(hash, table[i].ops->source_hash);
    }
    return hash;
}

static uint64_t hash_of_build;

static void hash_build(void)
{
    const spk_kernel *table = NULL;
    const int rows = spk_kernels(&table);
    hash_of_build = hash_table(table, rows);
}

uint64_t spk_class_hash(const spk_tuner *tuner, const char *key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t hash = spk_hash_text(SPK_HASH_START, key), of_table = 0;
    if (tuner->table != NULL) {
        of_table = hash_table(tuner->table, tuner->table_count);
    } else {
        pthread_once(&once, hash_build);
        of_table = hash_of_build;
    }
    hash = spk_hash_text(hash, spk_store_where(tuner->store));
    hash = spk_hash_bytes(hash, &tuner->store, sizeof tuner->store);
    return spk_hash_bytes(hash, &of_table, sizeof of_table);
}

/* Whether a class's evidence knows the whole table is looked up once a class and process. */
static bool was_seen(uint64_t hash)
{
    return spk_known_find(spk_known_of_process(SPK_KNOWN_COMPARED), &hash, sizeof hash, NULL, 0);
}

static void remember(uint64_t hash)
{
    spk_known_add(spk_known_of_process(SPK_KNOWN_COMPARED), &hash, sizeof hash, NULL, 0, spk_epoch_now(), false);
}

/* ------------------------------------------------------------------------------------------------ keys */

/* A restricted tuning is a class of its own: what wins among a few, or within a tolerance of the caller's, decides nothing for the
 * others. */
spk_status spk_class_keys(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_class *class)
{
    SPK_TRY(spk_key_make(problem, tuner->device, class->plain, sizeof class->plain));
    class->restricted = spk_is_restricted(options) || options->tolerance > 0;
    if (!class->restricted) {
        snprintf(class->key, sizeof class->key, "%s", class->plain);
        return SPK_OK;
    }
    uint64_t hash = SPK_HASH_START;
    int rows = 0;
    const char *why = NULL;
    const spk_kernel *table = spk_tuner_table(tuner, &rows);
    for (int i = 0; i < rows; i++)
        if (spk_kernel_allowed(&table[i], options, &why))
            hash = spk_hash_text(hash, table[i].name);
    if (options->tolerance > 0)
        hash = spk_hash_bytes(hash, &options->tolerance, sizeof options->tolerance);
    snprintf(class->key, sizeof class->key, "among=%016llx;%s", (unsigned long long)hash, class->plain);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ without measuring */

bool spk_tries_in_place(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options)
{
    spk_pattern_facts facts;
    const spk_backend *backend = tuner->device->backend;
    const bool remote = problem->pattern != NULL && spk_pattern_is_remote(problem->pattern, &facts);
    return options->tuning == SPK_TUNING_IN_PLACE && options->effort == SPK_TUNE_MEASURE && !options->fresh && !problem->static_values &&
           !remote && (backend->synchronize == NULL || backend->watch_make != NULL);
}

static bool can_tune(const spk_tune_options *options)
{
    return options->effort != SPK_TUNE_ESTIMATE && (options->tuning == SPK_TUNING_NOW || options->tuning == SPK_TUNING_NOW_EACH);
}

/* Whether the nearest size of a layer will do: not where the caller asks for more than the usual search. */
static bool may_be_near(const spk_tune_options *options)
{
    const bool first_of_layer = options->tuning == SPK_TUNING_NOW || options->tuning == SPK_TUNING_IN_PLACE;
    return options->tuning == SPK_TUNING_AHEAD || (options->effort == SPK_TUNE_MEASURE && first_of_layer);
}

/* Whether anything is known of a class: what is old or incomplete then meets its incumbent, and no other class decides. */
static bool is_known(const spk_tuner *tuner, const spk_class *class)
{
    spk_decision decision;
    bool known = false;
    return spk_store_decision(tuner->store, class->key, &decision, &known) != SPK_OK || known;
}

bool spk_decision_usable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_decision *decision,
                         spk_choice *choice)
{
    const char *why = NULL;
    return spk_evidence_current(tuner, decision->name, decision->params, decision->hash, &choice->kernel, &choice->params) &&
           spk_may_win(tuner, problem, options, choice->kernel, &choice->params, &why) &&
           !spk_stands_back(tuner, problem, options, choice->kernel);
}

/* Whether a choice from the store may run here; what nobody knows of is proved. */
static spk_status is_proved(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice,
                            bool *proved)
{
    char why[200];
    spk_proof proof = SPK_PROOF_NONE;
    *proved = spk_proof_stands(tuner, choice);
    if (*proved)
        return SPK_OK;
    SPK_TRY(spk_prove(tuner, problem, choice->kernel, &choice->params, spk_proves_soon(options), &proof, why, sizeof why));
    *proved = proof == SPK_PROOF_GOOD;
    return SPK_OK;
}

spk_status spk_choose_best_proved(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report *report,
                                  spk_choice *choice, int *best)
{
    char why[200];
    for (int tries = 0; (*best = spk_evidence_best(tuner, problem, options, report)) >= 0; tries++) {
        spk_evidence *e = &report->candidates[*best];
        bool proved = false;
        if (spk_evidence_current(tuner, e->name, e->params, e->hash, &choice->kernel, &choice->params)) {
            spk_tune_name_proof(tuner, problem, choice);
            if (tries < SPK_MOST_PROVED)
                SPK_TRY(is_proved(tuner, problem, options, choice, &proved));
            else
                proved = spk_proof_known(tuner, problem, choice->kernel, &choice->params, why, sizeof why) == SPK_PROOF_GOOD;
        }
        if (proved)
            break;
        e->status = SPK_CANDIDATE_FAILED;
    }
    return SPK_OK;
}

/* The best usable entry of stored evidence. *complete: it knows every candidate that may win, and no stricter tolerance than the one it was
 * decided under has put the decision aside. */
static spk_status choose_from_report(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                     spk_report *report, spk_choice *choice, bool *found, bool *complete)
{
    spk_contender *contenders = NULL;
    int count = 0, best = -1;
    SPK_TRY(spk_contenders_eligible(tuner, problem, options, &contenders, &count));
    *complete = spk_evidence_lacks(report, contenders, count) == 0;
    spk_contenders_release(tuner, &contenders, count);
    SPK_TRY(spk_choose_best_proved(tuner, problem, options, report, choice, &best));
    *complete = *complete && (options->tolerance <= 0 || best == report->chosen);
    *found = best >= 0;
    return SPK_OK;
}

/* The store's answer under one key, good enough for these options. A store that fails knows nothing. */
static spk_status look_up(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const char *key, bool whole,
                          spk_choice *choice, bool *found)
{
    spk_decision decision;
    spk_choice made = {.from_store = true, .origin = SPK_ORIGIN_STORE};
    bool known = false, complete = false;
    *found = false;
    if (spk_store_decision(tuner->store, key, &decision, &known) != SPK_OK || !known)
        return SPK_OK;
    uint64_t hash = spk_class_hash(tuner, key);
    if (whole && can_tune(options) && spk_evidence_due(tuner, options, &decision, hash))
        return SPK_OK;
    bool strict = options->tolerance > 0; /* then the error that was measured counts */
    bool usable = !strict && spk_decision_usable(tuner, problem, options, &decision, &made);
    if (usable) {
        spk_tune_name_proof(tuner, problem, &made);
        SPK_TRY(is_proved(tuner, problem, options, &made, &usable));
    }
    if (!usable || (whole && can_tune(options) && !was_seen(hash))) {
        spk_report *report = NULL;
        if (spk_store_load(tuner->store, key, &report) != SPK_OK || report == NULL)
            return SPK_OK;
        spk_status status = choose_from_report(tuner, problem, options, report, &made, &usable, &complete);
        spk_report_release(&report);
        SPK_TRY(status);
        if (complete && whole)
            remember(hash);
        /* what is missing though the class was seen failed here for a limit: it is for other processes to try */
        if (!complete && (strict || (whole && !was_seen(hash))) && can_tune(options))
            return SPK_OK;
    }
    made.class = whole ? hash : 0;
    made.again = whole && decision.provisional == SPK_PROVISIONAL_LOAD && options->tuning == SPK_TUNING_IN_PLACE &&
                 spk_evidence_due(tuner, options, &decision, hash) &&
                 spk_known_first(spk_known_of_process(SPK_KNOWN_MEASURED_ANEW), &hash, sizeof hash);
    if (usable)
        *choice = made;
    *found = usable;
    return SPK_OK;
}

static spk_status from_store(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                             spk_choice *choice, bool *found)
{
    SPK_TRY(look_up(tuner, problem, options, class->key, true, choice, found));
    if (!*found && class->restricted)
        SPK_TRY(look_up(tuner, problem, options, class->plain, false, choice, found));
    return SPK_OK;
}

static bool is_empty(const spk_problem *problem)
{
    return spk_problem_is_empty(problem);
}

static const char *who_knows_not(const spk_tuner *tuner)
{
    return spk_store_is_held(tuner->store)
               ? "another process holds the store's file, so that it is not known whether it has this class of problems"
               : "the store does not know this class of problems";
}

/* Everything but measuring. *found is false where only that is left. */
static spk_status decide(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_class *class,
                         spk_choice *choice, bool *found)
{
    *found = true;
    if (options->choice != NULL && options->choice[0] != '\0')
        return spk_choose_pinned(tuner, problem, options, choice);
    if (is_empty(problem))
        return spk_choose_estimated(tuner, problem, options, NULL, choice);
    SPK_TRY(spk_class_keys(tuner, problem, options, class));
    *found = false;
    if (!options->fresh || options->effort == SPK_TUNE_ESTIMATE)
        SPK_TRY(from_store(tuner, problem, options, class, choice, found));
    if (!*found && !options->fresh && options->tolerance <= 0 && !is_known(tuner, class))
        SPK_TRY(spk_choose_elsewhere(tuner, problem, options, class, may_be_near(options), choice, NULL, found));
    if (*found || can_tune(options))
        return SPK_OK;
    *found = true;
    if (options->effort != SPK_TUNE_ESTIMATE && (options->tuning == SPK_TUNING_AHEAD_EACH || options->tuning == SPK_TUNING_AHEAD))
        return spk_fail(SPK_ERR_UNKNOWN_CLASS, "%s%s, and the option tuning wants what was tuned ahead: %s", who_knows_not(tuner),
                        tuner->device->backend->proof != NULL ? ", or nothing of it that is proved" : "", class->key);
    return spk_choose_estimated(tuner, problem, options, class, choice);
}

/* ------------------------------------------------------------------------------------------------ measuring */

/* What one tuning of a class starts from. */
typedef struct tuning {
    const spk_tuner *tuner;
    const spk_problem *problem;
    const spk_tune_options *options;
    const spk_class *class;
    spk_report *stored; /* NULL: none */
    bool anew;          /* stored evidence is provisional, and everyone runs again */
    spk_search search;
    int incumbent; /* contender, -1 */
} tuning;

static int contender_of(const spk_search *search, const char *name, const char *params_text)
{
    char text[SPK_MAX_PARAMS_TEXT];
    for (int i = 0; i < search->count; i++) {
        const spk_contender *c = &search->contenders[i];
        spk_params_text(c->kernel, &c->params, text, sizeof text);
        if (strcmp(c->kernel->name, name) == 0 && strcmp(text, params_text) == 0)
            return i;
    }
    return -1;
}

/* New and changed candidates meet the incumbent only; without one, or when told so, all run. */
static void choose_field(tuning *t)
{
    spk_search *search = &t->search;
    t->incumbent = -1;
    int best = t->stored != NULL && !t->options->fresh && !t->anew ? spk_evidence_best(t->tuner, t->problem, t->options, t->stored) : -1;
    if (best >= 0)
        t->incumbent = contender_of(search, t->stored->candidates[best].name, t->stored->candidates[best].params);
    if (t->incumbent >= 0 && search->contenders[t->incumbent].held_back) /* nobody is compared with it */
        t->incumbent = -1;
    if (t->incumbent >= 0) {
        spk_evidence_lacks(t->stored, search->contenders, search->count);
        search->contenders[t->incumbent].in_search = search->contenders[t->incumbent].always_in_search = true;
    }
    spk_decision decision;
    bool known = false;
    if (spk_store_nearest(t->tuner->store, t->class->plain, &decision, &known) == SPK_OK && known) {
        int first = contender_of(search, decision.name, decision.params);
        if (first >= 0)
            search->contenders[first].rank = -1;
        if (first >= 0)
            search->contenders[first].always_in_search = true;
    }
}

/* Finished evidence of the incumbent goes before what is provisional: then it stays, with the evidence it had, and newcomers wait for a
 * better moment. */
static void weigh_incumbent(tuning *t, spk_status status)
{
    spk_contender *c = &t->search.contenders[t->incumbent];
    const spk_provisional before = t->stored->provisional;
    const bool refuted = c->status == SPK_CANDIDATE_WRONG || c->status == SPK_CANDIDATE_FAILED;
    if (!refuted && (status == SPK_ERR_INTERRUPTED ||
                     (status == SPK_OK && t->search.provisional != SPK_PROVISIONAL_NO && before == SPK_PROVISIONAL_NO))) {
        c->in_search = c->ran = false;
        t->search.chosen = t->incumbent;
    }
    if (t->search.provisional == SPK_PROVISIONAL_NO && before != SPK_PROVISIONAL_INTERRUPTED)
        t->search.provisional = before; /* the others' evidence is what it was */
}

static spk_status run_search(tuning *t)
{
    bool held = spk_measuring_begin(t->tuner, 1e-6 * fmin(t->search.budget_us, 60e6) + lock_patience_s);
    t->search.start_us = spk_work_us(); /* waiting does not count */
    spk_search_watch(&t->search);
    spk_work_allow(isinf(t->search.budget_us) ? 0 : most_lost * t->search.budget_us);
    spk_status status = spk_search_run(&t->search);
    if (status == SPK_ERR_NO_CANDIDATE && t->incumbent >= 0) { /* not even the incumbent: everyone, then */
        for (int i = 0; i < t->search.count; i++)
            t->search.contenders[i].in_search = t->search.contenders[i].eligible;
        t->incumbent = -1;
        status = spk_search_run(&t->search);
    }
    if ((status == SPK_ERR_NO_CANDIDATE || status == SPK_ERR_OUT_OF_MEMORY) &&
        spk_contenders_readmit(t->search.contenders, t->search.count))
        status = spk_search_run(&t->search);
    t->search.lost_us = spk_work_allow(0);
    spk_search_conclude(&t->search, status);
    spk_measuring_end(held);
    if (t->incumbent >= 0)
        weigh_incumbent(t, status);
    return status;
}

static bool has_wrong(const spk_report *report)
{
    bool any = false;
    for (int i = 0; i < report->count; i++)
        any = any || report->candidates[i].status == SPK_CANDIDATE_WRONG;
    return any;
}

static void tell_wrong(const spk_tuner *tuner, const spk_report *report)
{
    char text[512];
    for (int i = 0; tuner->log != NULL && i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        snprintf(text, sizeof text, "%s %s gives wrong results here and was ruled out: %s", e->name, e->params, e->why);
        if (e->status == SPK_CANDIDATE_WRONG)
            spk_tell_log(tuner->log, tuner->log_user, 1, text);
    }
}

/* Whether a report has a candidate as wrong. */
static bool finds_wrong(const spk_report *report, const spk_evidence *candidate)
{
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        if (e->status == SPK_CANDIDATE_WRONG && strcmp(e->name, candidate->name) == 0 && strcmp(e->params, candidate->params) == 0 &&
            strcmp(e->hash, candidate->hash) == 0)
            return true;
    }
    return false;
}

/* What joins finished evidence leaves its decision as it is; but an interruption joins nothing worth a mark. Evidence whose choice was
 * found wrong meanwhile is worth nothing, however complete it is. */
static bool is_to_be_saved(const tuning *t, const spk_report *made, bool alone)
{
    if (t->stored != NULL && !alone && t->incumbent >= 0 && made->provisional != SPK_PROVISIONAL_INTERRUPTED)
        return true;
    const int best = t->stored != NULL ? spk_evidence_best(t->tuner, t->problem, t->options, t->stored) : -1;
    return spk_evidence_replaces(made, t->stored, best >= 0 && !finds_wrong(made, &t->stored->candidates[best]));
}

static spk_status tune_locked(tuning *t, spk_report **report, spk_choice *choice)
{
    spk_status status = run_search(t);
    if (status != SPK_OK && (status != SPK_ERR_INTERRUPTED || t->search.chosen < 0))
        return status;
    spk_report *made = NULL;
    const bool alone = t->options->fresh || t->anew; /* nothing of the old evidence takes part */
    SPK_TRY(spk_evidence_report(&t->search, t->search.contenders, t->search.count, t->search.chosen, t->class->key,
                                alone ? NULL : t->stored, &made));
    const spk_contender *winner = &t->search.contenders[t->search.chosen];
    *choice = (spk_choice){.kernel = winner->kernel, .params = winner->params, .origin = SPK_ORIGIN_MEASURED};
    made->kept_out = !is_to_be_saved(t, made, alone);
    spk_status told = made->kept_out ? spk_report_summarise(made, made->measured_at) : SPK_OK;
    if (told != SPK_OK) {
        spk_report_release(&made);
        return told;
    }
    if (!made->kept_out)
        spk_store_save(t->tuner->store, made); /* a store that fails has warned; the measurement stands */
    if (has_wrong(made))
        spk_epoch_refuted();
    if (status == SPK_OK)
        tell_wrong(t->tuner, made);
    *report = made;
    return status == SPK_OK ? SPK_OK
                            : spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted; %s",
                                       made->kept_out ? "the store keeps the better evidence that it has" : "what was measured is kept");
}

/* Whether a lack of memory, or a limit, made some fail: evidence without them is not complete (spk_evidence_lacks). */
static bool limits_kept_some_out(const spk_search *search)
{
    for (int i = 0; i < search->count; i++) {
        const spk_contender *c = &search->contenders[i];
        if (c->status == SPK_CANDIDATE_FAILED && (c->failure == SPK_ERR_OUT_OF_MEMORY || c->failure == SPK_ERR_UNAVAILABLE))
            return true;
    }
    return false;
}

/* Tunes a class, or finds that another has done it meanwhile. */
static spk_status tune_class(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                             spk_report **report, spk_choice *choice)
{
    int token = -1;
    bool found = false;
    tuning t = {.tuner = tuner, .problem = problem, .options = options, .class = class};
    double budget_s = options->budget_s > 0 ? options->budget_s : 2;
    spk_status status = spk_store_lock(tuner->store, class->key, budget_s + lock_patience_s, &tuner->stop, &token);
    if (status == SPK_ERR_INTERRUPTED)
        return status;
    if (status != SPK_OK)
        token = -1; /* it cannot be locked: tuning twice is better than not at all */
    status = SPK_OK;
    if (!options->fresh)
        SPK_GOTO(from_store(tuner, problem, options, class, choice, &found));
    if (found)
        goto done;
    if (spk_store_load(tuner->store, class->key, &t.stored) != SPK_OK)
        t.stored = NULL;
    t.anew = t.stored != NULL && spk_evidence_anew(tuner, options, t.stored, spk_class_hash(tuner, class->key));
    SPK_GOTO(spk_search_begin(&t.search, tuner, problem, options));
    choose_field(&t);
    const bool of_load = t.anew && t.stored->provisional == SPK_PROVISIONAL_LOAD;
    status = tune_locked(&t, report, choice);
    if (of_load && status != SPK_ERR_INTERRUPTED)
        spk_evidence_was_measured_anew(spk_class_hash(tuner, class->key));
    if (status == SPK_OK && limits_kept_some_out(&t.search))
        remember(spk_class_hash(tuner, class->key)); /* they are for other processes to try: not again at each plan of this one */
    spk_search_end(&t.search);
done:
    spk_report_release(&t.stored);
    if (token >= 0)
        spk_store_unlock(tuner->store, token);
    return status;
}

/* How many threads run, where nothing is measured, is a matter of the moment; a pinned choice without a proof is told of, and proved where
 * that can be done by now. */
static bool is_stable(const spk_choice *choice)
{
    return choice->from_store || choice->stable || (spk_serial_tunable(choice->kernel) < 0 && choice->origin != SPK_ORIGIN_UNPROVED);
}

spk_status spk_tune_choose(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice)
{
    spk_tune_options asked = *options;
    if (asked.tuning == SPK_TUNING_IN_PLACE && !spk_tries_in_place(tuner, problem, options))
        asked.tuning = SPK_TUNING_NOW;
    options = &asked;
    spk_class class;
    spk_choice made = {.kernel = NULL};
    bool found = false;
    SPK_TRY(decide(tuner, problem, options, &class, &made, &found));
    if (!found) {
        spk_report *report = NULL;
        spk_status status = tune_class(tuner, problem, options, &class, &report, &made);
        spk_report_release(&report);
        SPK_TRY(status);
    }
    spk_tell_last_resort(tuner, problem, options, &made);
    *choice = made;
    choice->stable = found && is_stable(&made);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ with a report */

/* The evidence behind a choice from the store. */
static spk_status stored_report(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                                const spk_choice *choice, spk_report **report)
{
    spk_report *made = NULL;
    if (spk_store_load(tuner->store, class->key, &made) != SPK_OK)
        made = NULL;
    if (made == NULL && class->restricted && spk_store_load(tuner->store, class->plain, &made) != SPK_OK)
        made = NULL;
    if (made == NULL) {
        spk_choice elsewhere;
        bool found = false;
        SPK_TRY(spk_choose_elsewhere(tuner, problem, options, class, choice == NULL, &elsewhere, report, &found));
        if (found)
            return SPK_OK;
    }
    if (made == NULL)
        return spk_fail(SPK_ERR_UNKNOWN_CLASS, "%s: %s", who_knows_not(tuner), class->key);
    spk_status status = spk_report_from_store(tuner, problem, options, choice, made);
    if (status != SPK_OK)
        spk_report_release(&made);
    else
        *report = made;
    return status;
}

spk_status spk_tune_problem(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report)
{
    spk_class class;
    spk_choice choice = {.kernel = NULL};
    spk_report *made = NULL;
    bool found = false;
    spk_tune_options asked = *options;
    asked.tuning = SPK_TUNING_NOW_EACH; /* who asks for a tuning gets one: another size's choice does not do */
    options = &asked;
    SPK_TRY(decide(tuner, problem, options, &class, &choice, &found));
    spk_status status = SPK_OK;
    if (!found)
        status = tune_class(tuner, problem, options, &class, &made, &choice);
    if (status == SPK_OK)
        spk_tell_last_resort(tuner, problem, options, &choice);
    if (status == SPK_OK && made == NULL)
        status = choice.from_store ? stored_report(tuner, problem, options, &class, &choice, &made)
                                   : spk_report_unmeasured(tuner, problem, options, &choice, &made);
    if (made != NULL)
        *report = made;
    return status;
}

/* What a trial in place has found so far. */
static spk_status report_of_trial(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                  const spk_trying *trying, spk_report **report)
{
    const spk_choice fastest = {.kernel = trying->kernel, .params = trying->params};
    spk_report *made = NULL;
    SPK_TRY(spk_report_unmeasured(tuner, problem, options, trying->kernel != NULL ? &fastest : NULL, &made));
    if (made->chosen >= 0)
        made->candidates[made->chosen].median_us = trying->us;
    made->how = SPK_ORIGIN_TRYING;
    snprintf(made->origin, sizeof made->origin, "%s: %d run%s in turn so far", spk_origin_words(made->how), trying->runs,
             trying->runs == 1 ? "" : "s");
    const spk_status status = spk_report_summarise(made, spk_unix_time_s());
    if (status == SPK_OK)
        *report = made;
    else
        spk_report_release(&made);
    return status;
}

spk_status spk_tune_explain(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report)
{
    spk_class class;
    spk_trying trying;
    SPK_TRY(spk_class_keys(tuner, problem, options, &class));
    const spk_status status = stored_report(tuner, problem, options, &class, NULL, report);
    if (status != SPK_ERR_UNKNOWN_CLASS)
        return status;
    const uint64_t hash = spk_class_hash(tuner, class.key);
    if (spk_known_find(spk_known_of_process(SPK_KNOWN_TRIED), &hash, sizeof hash, &trying, sizeof trying))
        return report_of_trial(tuner, problem, options, &trying, report);
    return status;
}

/* The schedule of a trial. Where candidates must be compiled and proved before they may run, that is done ahead, on another thread, and
 * nobody is timed until then. First each of a small field runs twice: the model's favourites, two of a row. Those far behind leave. Then
 * more of the leading row join, as the model knows rows better than their parameters. The few that are left run in rounds, in an order of
 * its own each, until the medians are worth a decision. Some 60 runs in all. Where each size comes once, the first runs of all sizes are
 * one trial (family.h). */
#include "tune/trial/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tune/trial/trial_internal.h"

enum { MOST_OF_A_ROW = 2, FIELD = 10, FINALISTS = 4, LOOKS = 2 };
/* On a GPU runs are short beside the compiling ahead, the times of parameters are close together, and the model's order of them says
 * less: the best is often the eighth to eleventh of its row, or of the row behind. */
enum { MORE_AHEAD = 12, MORE_OF_SECOND = 6 };
static const double close_second = 1.4; /* its row's least, over the leader's */
static const double no_chance = 4;      /* predicted so many times the best: not tried */
static const double far_behind = SPK_TRIAL_FAR_BEHIND;
static const double hopeless = 3;  /* so far behind in both of its first runs: it leaves at once */
static const double behind = 1.08; /* in the rounds */
/* Without a run for so long, while others make theirs, a trial is left: in between it may be compiled for. */
static const double patient_us = 0.2e6, patient_ahead_us = 60e6;
static const double check_share = 0.5, least_check_us = 200, most_check_us = 5000; /* of the predicted run */

/* ------------------------------------------------------------------------------------------------ who takes part */

static bool before(const spk_contender *a, const spk_contender *b)
{
    if (a->predicted_us != b->predicted_us)
        return a->predicted_us < b->predicted_us;
    return a->kernel->priority != b->kernel->priority ? a->kernel->priority > b->kernel->priority : a->order < b->order;
}

/* Adds it by its prediction. */
static void add(spk_trial *t, spk_contender *c)
{
    int at = t->count++;
    for (; at > 0 && before(c, t->list[at - 1]); at--)
        t->list[at] = t->list[at - 1];
    t->list[at] = c;
    c->in_search = true;
    c->why[0] = '\0';
}

static int of_row(const spk_trial *t, const spk_kernel *kernel)
{
    int count = 0;
    for (int i = 0; i < t->count; i++)
        count += t->list[i]->kernel == kernel;
    return count;
}

bool spk_trial_prepares(const spk_trial *t)
{
    return t->tuner.device->backend->prepare != NULL;
}

/* Once the device has seen to it; before that, whoever is eligible is sent there. */
static bool may_run(const spk_trial *t, const spk_contender *c)
{
    return !spk_trial_prepares(t) || t->phase == PHASE_AHEAD || c->prepared;
}

static bool is_own(const spk_contender *c)
{
    return c->kernel->kind == SPK_KIND_OWN;
}

/* As in a tuning, what the model says of a library keeps no own row out. */
static bool has_chance(const spk_trial *t, const spk_contender *c)
{
    double best_us = INFINITY;
    for (int i = 0; i < t->search.count; i++) {
        const spk_contender *other = &t->search.contenders[i];
        if (other->eligible && !other->held_back && (is_own(other) || !is_own(c)))
            best_us = fmin(best_us, other->predicted_us);
    }
    return c->predicted_us <= no_chance * best_us;
}

/* The best prediction among those that may win and take no part yet: of `kernel`, or (NULL) of the rows with room. */
static spk_contender *best_left(const spk_trial *t, const spk_kernel *kernel, bool hopeful)
{
    spk_contender *best = NULL;
    for (int i = 0; i < t->search.count; i++) {
        spk_contender *c = &t->search.contenders[i];
        if (!c->eligible || c->held_back || c->in_search || !may_run(t, c) || (kernel != NULL && c->kernel != kernel))
            continue;
        if (kernel == NULL && of_row(t, c->kernel) >= MOST_OF_A_ROW)
            continue;
        if (best == NULL || before(c, best))
            best = hopeful && !has_chance(t, c) ? best : c;
    }
    return best;
}

/* hopeful: only those that the model sees a chance for. */
void spk_trial_add_best(spk_trial *t, const spk_kernel *kernel, int most, bool hopeful)
{
    for (spk_contender *c; most > 0 && (c = best_left(t, kernel, hopeful)) != NULL; most--)
        add(t, c);
}

bool spk_trial_is_choice(const spk_contender *c, const spk_choice *choice)
{
    return c->kernel == choice->kernel && memcmp(&c->params, &choice->params, sizeof c->params) == 0;
}

static void add_field(spk_trial *t)
{
    for (int i = 0; i < t->search.count; i++) {
        spk_contender *c = &t->search.contenders[i];
        c->in_search = false;
        if (spk_trial_is_choice(c, &t->first) && t->wrong_first == NULL)
            add(t, c);
    }
    spk_trial_add_best(t, NULL, FIELD - t->count, true);
}

void spk_trial_bring_first(spk_trial *t, int at)
{
    spk_contender *c = t->list[at];
    memmove(t->list + 1, t->list, (size_t)at * sizeof *t->list);
    t->list[0] = c;
}

/* The plan's own choice first, whatever the model says of it. */
static void choose_field(spk_trial *t)
{
    t->phase = PHASE_FIELD;
    t->count = t->next = 0;
    add_field(t);
    for (int i = 0; i < t->count; i++)
        if (spk_trial_is_choice(t->list[i], &t->first))
            spk_trial_bring_first(t, i);
    if (!spk_trial_prepares(t)) {
        spk_family_read(t->class.key, &t->family);
        spk_first_runs_go_on(t);
    }
}

/* ------------------------------------------------------------------------------------------------ what is done ahead */

/* The field, and more of the rows that are likely to lead it. */
static spk_status begin_ahead(spk_trial *t)
{
    spk_prepared *list = NULL;
    t->phase = PHASE_AHEAD;
    add_field(t);
    if (t->count == 0)
        return SPK_OK;
    const spk_kernel *leading = t->list[0]->kernel, *next = leading;
    for (int i = 0; i < t->count && next == leading; i++)
        next = t->list[i]->kernel;
    spk_trial_add_best(t, leading, MORE_AHEAD, false);
    if (next != leading)
        spk_trial_add_best(t, next, MORE_OF_SECOND, false);
    SPK_TRY(spk_alloc(t->tuner.mem, (size_t)t->count + 1, sizeof *t->prepared, &t->prepared));
    SPK_TRY(spk_calloc(t->tuner.mem, (size_t)t->count + 1, sizeof *list, &list));
    for (int i = 0; i < t->count; i++) {
        t->prepared[i] = t->list[i];
        list[i] = (spk_prepared){.kernel = t->list[i]->kernel, .params = t->list[i]->params};
    }
    t->prepared_count = t->count;
    const spk_status status = spk_ahead_begin(&t->tuner, &t->problem, t->search.tolerance, list, t->count, &t->ahead);
    spk_free(t->tuner.mem, list);
    return status;
}

static void keep_out(spk_contender *c, spk_candidate_status status, spk_status failure, const char *why)
{
    c->eligible = false;
    c->status = status;
    c->failure = failure;
    c->ran = status != SPK_CANDIDATE_PRUNED;
    snprintf(c->why, sizeof c->why, "%s", why[0] != '\0' ? why : spk_status_name(failure));
}

/* Who may run begins; who may not is out. */
static void end_ahead(spk_trial *t)
{
    const spk_prepared *list = spk_ahead_list(t->ahead);
    for (int i = 0; i < t->prepared_count; i++) {
        spk_contender *c = t->prepared[i];
        const char *wrong = spk_ahead_wrong(t->ahead, i);
        c->prepared = wrong[0] == '\0' && (list[i].status == SPK_OK || spk_trial_is_choice(c, &t->first));
        if (wrong[0] != '\0')
            keep_out(c, SPK_CANDIDATE_WRONG, SPK_OK, wrong);
        else if (!c->prepared)
            keep_out(c, list[i].status == SPK_ERR_UNSUPPORTED ? SPK_CANDIDATE_PRUNED : SPK_CANDIDATE_FAILED, list[i].status, list[i].why);
        if (wrong[0] != '\0' && spk_trial_is_choice(c, &t->first))
            t->wrong_first = c;
    }
    t->watch = spk_ahead_take_watch(t->ahead);
    spk_ahead_end(&t->ahead);
    choose_field(t);
    if (t->count < (t->wrong_first != NULL ? 1 : 2) || t->watch == NULL) { /* nobody to be compared with */
        t->count = 0;
        t->phase = PHASE_DECIDED;
    }
}

bool spk_trial_waits(spk_trial *t)
{
    if (t->phase == PHASE_AHEAD && spk_ahead_done(t->ahead))
        end_ahead(t);
    return t->phase == PHASE_AHEAD;
}

const spk_contender *spk_trial_wrong_first(const spk_trial *t)
{
    return t->wrong_first;
}

struct spk_watch *spk_trial_watch(const spk_trial *t)
{
    return t->watch;
}

/* ------------------------------------------------------------------------------------------------ begin, end */

static spk_status copy_text(const spk_mem *mem, const char *text, char **copy)
{
    if (text == NULL)
        return SPK_OK;
    SPK_TRY(spk_alloc(mem, strlen(text) + 1, 1, copy));
    memcpy(*copy, text, strlen(text) + 1);
    return SPK_OK;
}

/* What is decided must not replace better evidence, and is compared without another look into a file that somebody else may have then. */
static void load_stored(spk_trial *t)
{
    if (spk_store_load(t->tuner.store, t->class.key, &t->stored) != SPK_OK)
        t->stored = NULL;
    if (t->stored != NULL && spk_evidence_best(&t->tuner, &t->problem, &t->options, t->stored) < 0)
        spk_report_release(&t->stored);
}

static spk_status make(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                       spk_trial *t)
{
    t->tuner = *tuner;
    t->tuner.log = NULL; /* nobody asked for a measurement that could be disturbed */
    t->problem = *problem;
    t->options = *options;
    t->options.cancel = t->tuner.stop.call = NULL; /* it was for the call that began the trial */
    SPK_TRY(copy_text(tuner->mem, options->only, &t->only));
    SPK_TRY(copy_text(tuner->mem, options->exclude, &t->exclude));
    t->options.only = t->only;
    t->options.exclude = t->exclude;
    SPK_TRY(spk_search_begin(&t->search, &t->tuner, &t->problem, &t->options));
    SPK_TRY(spk_evidence_rule_out(&t->tuner, &t->options, &t->class, t->search.contenders, t->search.count));
    SPK_TRY(spk_calloc(tuner->mem, (size_t)t->search.count + 1, sizeof *t->list, &t->list));
    t->first = *first;
    t->since = spk_unix_time_s();
    load_stored(t);
    if (spk_trial_prepares(t))
        SPK_TRY(begin_ahead(t));
    else
        choose_field(t);
    spk_search_watch(&t->search);
    return SPK_OK;
}

/* For who asks what is known of the class meanwhile. */
static void tell_how_far(uint64_t hash, spk_trying trying)
{
    trying.at_us = spk_now_us();
    spk_known_add(spk_known_of_process(SPK_KNOWN_TRIED), &hash, sizeof hash, &trying, sizeof trying, spk_epoch_now(), false);
}

/* Whether another trial of the class counts. */
static bool is_tried(const spk_tuner *tuner, uint64_t hash, int *runs)
{
    spk_known *tried = spk_known_of_process(SPK_KNOWN_TRIED);
    spk_trying other = {.runs = -1};
    if (spk_known_find(tried, &hash, sizeof hash, &other, sizeof other)) {
        const double patience_us = tuner->device->backend->prepare != NULL ? patient_ahead_us : patient_us;
        if (other.runs == *runs && spk_now_us() - other.at_us > patience_us)
            spk_known_drop(tried, &hash, sizeof hash);
        *runs = other.runs;
    }
    return !spk_known_first(tried, &hash, sizeof hash);
}

spk_status spk_trial_begin(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                           spk_trial **trial, bool *elsewhere, int *runs)
{
    spk_trial *made = NULL;
    spk_class class;
    *trial = NULL;
    SPK_TRY(spk_class_keys(tuner, problem, options, &class));
    const uint64_t hash = spk_class_hash(tuner, class.key);
    *elsewhere = is_tried(tuner, hash, runs);
    if (*elsewhere && (class.restricted || tuner->device->backend->prepare != NULL))
        return SPK_OK;
    if (!*elsewhere)
        tell_how_far(hash, (spk_trying){.runs = 0});
    spk_status status = spk_calloc(tuner->mem, 1, sizeof *made, &made);
    if (status == SPK_OK) {
        made->tuner.mem = tuner->mem;
        made->class = class;
        made->hash = hash;
        made->guest = *elsewhere;
        status = make(tuner, problem, options, first, made);
    }
    if (status == SPK_OK && made->count > 1)
        *trial = made;
    else if (made != NULL)
        spk_trial_end(&made);
    else if (!*elsewhere)
        spk_known_drop(spk_known_of_process(SPK_KNOWN_TRIED), &hash, sizeof hash);
    return status;
}

void spk_trial_end(spk_trial **trial)
{
    spk_trial *t = *trial;
    *trial = NULL;
    if (t == NULL)
        return;
    const spk_mem *mem = t->tuner.mem;
    if (!t->guest)
        spk_known_drop(spk_known_of_process(SPK_KNOWN_TRIED), &t->hash, sizeof t->hash);
    spk_ahead_end(&t->ahead);
    if (t->watch != NULL)
        t->tuner.device->backend->watch_release(t->tuner.device, &t->watch);
    spk_free(mem, t->prepared);
    spk_report_release(&t->stored);
    if (t->search.tuner != NULL)
        spk_search_end(&t->search);
    spk_free(mem, t->list);
    spk_free(mem, t->only);
    spk_free(mem, t->exclude);
    spk_free(mem, t);
}

/* ------------------------------------------------------------------------------------------------ phases */

bool spk_trial_has_run(const spk_contender *c)
{
    return c->ran;
}

static int runs_wanted(const spk_trial *t)
{
    return t->phase == PHASE_ROUNDS ? SPK_TRIAL_ROUNDS : LOOKS;
}

static double least_of_all(const spk_trial *t)
{
    double least = INFINITY;
    for (int i = 0; i < t->count; i++)
        if (t->list[i]->sample_count > 0)
            least = fmin(least, t->list[i]->least_us);
    return least;
}

/* Who is so far behind leaves, and so do the last of more than `most`. */
static void keep_best(spk_trial *t, double limit, int most)
{
    const double least = least_of_all(t);
    int kept = 0;
    for (int i = 0; i < t->count; i++) {
        spk_contender *c = t->list[i];
        int at = kept;
        if (c->least_us > limit * least)
            continue;
        for (kept++; at > 0 && c->least_us < t->list[at - 1]->least_us; at--)
            t->list[at] = t->list[at - 1];
        t->list[at] = c;
    }
    t->count = kept < most ? kept : most;
}

static void shuffle(spk_trial *t)
{
    for (int i = t->count - 1; i > 0; i--) {
        const int other = (int)spk_rng_below(&t->search.rng, (uint64_t)i + 1);
        spk_contender *c = t->list[i];
        t->list[i] = t->list[other];
        t->list[other] = c;
    }
}

static void summarise(spk_contender *c)
{
    double scratch[SPK_TRIAL_ROUNDS];
    c->median_us = spk_median(c->samples, c->sample_count, scratch);
    c->spread_us = spk_half_quartiles(c->samples, c->sample_count, scratch);
}

static void decide(spk_trial *t)
{
    for (int i = 0; i < t->search.count; i++) {
        spk_contender *c = &t->search.contenders[i];
        if (c->sample_count > 0)
            summarise(c);
        if (c->sample_count > 0 && c->status == SPK_CANDIDATE_PRUNED) {
            c->status = SPK_CANDIDATE_OK;
            c->why[0] = '\0';
        }
    }
    const int best = t->count > 0 ? spk_search_winner(&t->search, t->list, t->count, true) : -1;
    t->winner = best >= 0 ? t->list[best] : NULL;
    t->phase = PHASE_DECIDED;
}

/* All are out: those come that the model saw no chance for, and at last the references. */
static bool call_others(spk_trial *t)
{
    spk_trial_add_best(t, NULL, FIELD, false);
    if (t->count == 0 && spk_contenders_readmit(t->search.contenders, t->search.count))
        for (int i = 0; i < t->search.count; i++) {
            spk_contender *c = &t->search.contenders[i];
            if (c->in_search && c->eligible && !c->ran && may_run(t, c))
                add(t, c);
        }
    t->phase = PHASE_FIELD;
    t->next = 0;
    return t->count > 0;
}

/* More of the leading row; where they are ready, of the next one, too, if it is close. */
static void add_more(spk_trial *t)
{
    const spk_contender *leader = t->list[0], *second = NULL;
    for (int i = 0; i < t->search.count; i++) {
        const spk_contender *c = &t->search.contenders[i];
        if (c->sample_count > 0 && c->eligible && c->kernel != leader->kernel && (second == NULL || c->least_us < second->least_us))
            second = c;
    }
    keep_best(t, far_behind, t->count);
    spk_trial_add_best(t, leader->kernel, spk_trial_prepares(t) ? MORE_AHEAD : SPK_TRIAL_MORE, false);
    if (spk_trial_prepares(t) && second != NULL && second->least_us <= close_second * leader->least_us)
        spk_trial_add_best(t, second->kernel, MORE_OF_SECOND, false);
}

/* All of the list have run as often as this phase wants; or none is left. */
static void end_phase(spk_trial *t)
{
    if (t->phase == PHASE_FIELD && t->count > 0) {
        keep_best(t, INFINITY, t->count); /* in the order of their times */
        add_more(t);
        t->phase = PHASE_MORE;
    } else if (t->phase == PHASE_MORE && t->count > 0) {
        keep_best(t, far_behind, FINALISTS);
        t->phase = PHASE_ROUNDS;
    } else {
        decide(t);
    }
}

static bool has_run(const spk_trial *t, const spk_contender *c)
{
    return c->sample_count >= runs_wanted(t);
}

/* The next of this round that has runs to make; rounds follow one another until none has. */
static spk_contender *next_of_phase(spk_trial *t)
{
    for (int rounds = 0; rounds < 2; rounds++) {
        for (; t->next < t->count; t->next++)
            if (!has_run(t, t->list[t->next]))
                return t->list[t->next];
        if (t->phase == PHASE_ROUNDS)
            keep_best(t, behind, FINALISTS);
        if (t->phase == PHASE_ROUNDS)
            shuffle(t);
        t->next = 0;
        if (t->count == 1 && t->phase == PHASE_ROUNDS && t->list[0]->sample_count > LOOKS)
            break;
    }
    return NULL;
}

spk_contender *spk_trial_next(spk_trial *t)
{
    if (spk_trial_waits(t))
        return NULL;
    while (t->phase != PHASE_DECIDED) {
        if (t->count == 0 && !call_others(t))
            decide(t);
        spk_contender *next = next_of_phase(t);
        if (next != NULL)
            return next;
        t->next = 0;
        end_phase(t);
    }
    return NULL;
}

static void leave(spk_trial *t, const spk_contender *c)
{
    int kept = 0;
    for (int i = 0; i < t->count; i++)
        if (t->list[i] != c)
            t->list[kept++] = t->list[i];
    t->count = kept; /* who comes next stands where it stood */
}

static void count_run(spk_trial *t)
{
    spk_trying trying = {.runs = ++t->runs};
    if (t->guest)
        return;
    const spk_contender *known = spk_trial_known(t);
    if (known != NULL) {
        trying.kernel = known->kernel;
        trying.params = known->params;
        trying.us = known->least_us;
    }
    tell_how_far(t->hash, trying);
}

void spk_trial_ran(spk_trial *t, spk_contender *c, double us)
{
    const double at_first_us = c->least_us; /* before it has samples */
    t->runs_us += us;
    if (!c->ran) { /* the first run says only whether a second one is worth it; and, with those of other sizes, who is the fastest of them
                    */
        c->ran = true;
        c->least_us = us;
        count_run(t);
        if (!spk_trial_prepares(t) && c->predicted_us > 0)
            spk_family_note(t->class.key, c->kernel, &c->params, us / c->predicted_us, &t->family);
        if (spk_first_runs_decide(t))
            decide(t);
        else if (t->guest)
            t->phase = PHASE_DECIDED; /* without a winner */
        return;
    }
    if (c->sample_capacity < SPK_TRIAL_ROUNDS) {
        if (spk_realloc(t->tuner.mem, &c->samples, SPK_TRIAL_ROUNDS, sizeof(double)) != SPK_OK) {
            spk_trial_out(t, c, SPK_CANDIDATE_FAILED, "out of memory");
            return;
        }
        c->sample_capacity = SPK_TRIAL_ROUNDS;
    }
    if (c->sample_count < c->sample_capacity)
        c->samples[c->sample_count++] = us;
    c->least_us = c->sample_count == 1 ? us : fmin(c->least_us, us);
    count_run(t);
    if (c->sample_count == 1 && t->count > 1 && fmin(us, at_first_us) > hopeless * least_of_all(t))
        leave(t, c);
    else
        t->next++;
}

void spk_trial_out(spk_trial *t, spk_contender *c, spk_candidate_status status, const char *why)
{
    c->ran = true;
    c->status = status;
    snprintf(c->why, sizeof c->why, "%s", why);
    leave(t, c);
}

spk_contender *spk_trial_known(spk_trial *t)
{
    spk_contender *known = NULL;
    for (int i = 0; i < t->search.count; i++) {
        spk_contender *c = &t->search.contenders[i];
        const bool out = c->status == SPK_CANDIDATE_FAILED || c->status == SPK_CANDIDATE_WRONG;
        if (c->ran && !out && (known == NULL || c->least_us < known->least_us))
            known = c;
    }
    return known;
}

/* ------------------------------------------------------------------------------------------------ the outcome */

spk_contender *spk_trial_winner(spk_trial *t)
{
    return t->winner;
}

/* The runs of a trial may take a few milliseconds, too short a time for the system's own counts. */
static bool is_busy(const spk_trial *t)
{
    return t->tuner.device->backend->shares_processors && spk_is_busy(&t->tuner);
}

spk_status spk_trial_save(spk_trial *t)
{
    spk_report *report = NULL;
    if (t->winner == NULL)
        return SPK_OK;
    spk_search *search = &t->search;
    search->chosen = (int)(t->winner - search->contenders);
    spk_search_conclude(search, SPK_OK);
    if (search->provisional != SPK_PROVISIONAL_LOAD)
        search->provisional = is_busy(t) ? SPK_PROVISIONAL_LOAD : SPK_PROVISIONAL_IN_PLACE;
    for (int i = 0; i < search->count; i++)
        if (search->contenders[i].status == SPK_CANDIDATE_PRUNED)
            snprintf(search->contenders[i].why, sizeof search->contenders[i].why, "not tried in place");
    search->budget_us = t->runs_us;
    spk_family_forget(t->class.key);
    SPK_TRY(spk_evidence_report(search, search->contenders, search->count, search->chosen, t->class.key, NULL, &report));
    report->tuning_s = 1e-6 * t->runs_us;
    if (spk_evidence_replaces(report, t->stored, t->stored != NULL))
        spk_store_save_behind(t->tuner.store, &report, t->since); /* a store that fails warns */
    spk_report_release(&report);
    return SPK_OK;
}

double spk_trial_check_us(const spk_contender *c)
{
    return fmin(fmax(check_share * c->predicted_us, least_check_us), most_check_us);
}

double spk_trial_tolerance(const spk_trial *t)
{
    return t->search.tolerance;
}

/* Choices for a class that the store does not know, from evidence that is as good as its own: what the bundle has of the class, and what is
 * known of another number of tokens of the same layer. A new number of tokens comes with every request of a server, and the fastest
 * candidate changes little with it, so that nobody waits for a measurement. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/threads.h"
#include "op/operation.h"
#include "tune/choose/choose.h"

/* Octaves between two numbers of tokens that one choice serves. From 1 to 600 that makes three classes at the most, whatever comes first.
 */
static const double farthest = 4;
static const double same_choice = 0.6;    /* octaves: beyond, the cost model may prefer another of the evidence */
static const double clearly_ahead = 0.85; /* of another candidate of the same row */
static const double far_ahead = 0.6;      /* of another row */
static const double same_threads = 1;     /* octaves: beyond, one thread or all is decided anew */

void spk_choice_words(const spk_choice *choice, char *words, size_t size)
{
    snprintf(words, size, "%s%s%s", spk_origin_words(choice->origin),
             choice->of[0] == '\0' ? ""
             : choice->from_store  ? " of "
                                   : ", of ",
             choice->of);
}

/* Near classes whose evidence is of a busy machine: whether there is one, and one that was measured some minutes ago at most. */
struct aside {
    bool any, recent;
};

typedef struct look {
    const spk_tuner *tuner;
    const spk_problem *problem;
    const spk_tune_options *options;
    const spk_class *class;
    spk_report **report; /* NULL: not wanted */
    struct aside *aside;
} look;

/* What an entry's time is at this problem's size: what was measured, as the cost model has it grow. 0: it may not win here, or nothing is
 * known. */
static double grown_us(const look *l, const spk_evidence *e)
{
    const spk_kernel *kernel = NULL;
    spk_params params;
    const char *why = NULL;
    if (e->status != SPK_CANDIDATE_OK || e->median_us <= 0 || e->predicted_us <= 0 ||
        !spk_evidence_current(l->tuner, e->name, e->params, e->hash, &kernel, &params) ||
        !spk_may_win(l->tuner, l->problem, l->options, kernel, &params, &why) || spk_stands_back(l->tuner, l->problem, l->options, kernel))
        return 0;
    return e->median_us * spk_candidate_predict_us(kernel, &params, l->problem, l->tuner->device) / e->predicted_us;
}

/* Another candidate of the choice's own row, such as one with other tiles, may grow slower. It has to be clearly ahead, as the model knows
 * less than the race; of other rows it says less still, so that these have to be far ahead: some libraries have a way of their own for one
 * column, and are many times slower with two. */
static void choose_grown(const look *l, spk_report *report)
{
    const double chosen_us = report->chosen >= 0 ? grown_us(l, &report->candidates[report->chosen]) : 0;
    const char *row = report->chosen >= 0 ? report->candidates[report->chosen].name : "";
    double least_us = chosen_us;
    for (int i = 0; i < report->count && chosen_us > 0; i++) {
        const double us = grown_us(l, &report->candidates[i]),
                     margin = strcmp(report->candidates[i].name, row) == 0 ? clearly_ahead : far_ahead;
        if (us > 0 && us < least_us && us < chosen_us * margin) {
            least_us = us;
            report->chosen = i;
        }
    }
}

/* What a row's fastest candidate took over what the model gave it; 0: nothing current was measured of the row. */
static double slower_than_predicted(const look *l, const spk_report *report, const spk_kernel *kernel)
{
    double least_us = 0, factor = 0;
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        const spk_kernel *of = NULL;
        spk_params params;
        if (e->status != SPK_CANDIDATE_OK || e->median_us <= 0 || e->predicted_us <= 0 || (least_us > 0 && e->median_us >= least_us) ||
            strcmp(e->name, kernel->name) != 0 || !spk_evidence_current(l->tuner, e->name, e->params, e->hash, &of, &params))
            continue;
        least_us = e->median_us;
        factor = e->median_us / e->predicted_us;
    }
    return factor;
}

/* The candidate with the least time by the model, scaled by how far the model was from the measured time of its row; of own rows that were
 * not measured by `unmeasured` (0: they do not count). None that takes most_us or more. */
static spk_status choose_by_model(const look *l, const spk_report *report, double unmeasured, double most_us, spk_choice *choice,
                                  bool *found)
{
    spk_contender *contenders = NULL;
    int count = 0, best = -1;
    spk_status status = spk_contenders_eligible(l->tuner, l->problem, l->options, &contenders, &count);
    double factor = 0;
    for (int i = 0; status == SPK_OK && i < count; i++) {
        if (i == 0 || contenders[i].kernel != contenders[i - 1].kernel) { /* a row's candidates stand together */
            factor = slower_than_predicted(l, report, contenders[i].kernel);
            if (factor == 0 && contenders[i].kernel->kind == SPK_KIND_OWN)
                factor = unmeasured;
        }
        contenders[i].eligible = contenders[i].eligible && factor > 0;
        contenders[i].predicted_us *= factor;
    }
    if (status == SPK_OK)
        status = spk_evidence_rule_out(l->tuner, l->options, l->class, contenders, count);
    const int ahead = status == SPK_OK ? spk_contenders_predicted_best(contenders, count) : -1;
    if (ahead >= 0 && contenders[ahead].predicted_us < most_us)
        status = spk_proved_best(l->tuner, l->problem, contenders, count, spk_proves_soon(l->options), &best);
    *found = status == SPK_OK && best >= 0 && contenders[best].predicted_us < most_us;
    if (*found) {
        choice->kernel = contenders[best].kernel;
        choice->params = contenders[best].params;
    }
    spk_contenders_release(l->tuner, &contenders, count);
    return status;
}

/* Where what a short race chose may not win here, such as tiles wider than these columns: another candidate of the rows that it measured.
 */
static spk_status choose_sibling(const look *l, const spk_report *report, spk_choice *choice, bool *found)
{
    return choose_by_model(l, report, 0, INFINITY, choice, found);
}

/* What the entries took over what the model gave them, on average; 1 where none says. */
static double usual_factor(const look *l, const spk_report *report)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        const spk_kernel *kernel = NULL;
        spk_params params;
        if (e->status == SPK_CANDIDATE_OK && e->median_us > 0 && e->predicted_us > 0 &&
            spk_evidence_current(l->tuner, e->name, e->params, e->hash, &kernel, &params)) {
            sum += log(e->median_us / e->predicted_us);
            count++;
        }
    }
    return count > 0 ? exp(sum / count) : 1;
}

/* On a GPU another number of columns wants other tiles, often of another row: on an H100 the choice for 16 columns took twice as long as
 * tuned tiles at 256, and by the model the best of what is measured for 1024 takes up to three times as long at 64 (docs/log/tuning.md). So
 * the model chooses among all own candidates, unless the choice is about as fast. */
static bool model_chooses(const look *l)
{
    return l->tuner->device->backend->tiles_fit_sizes && l->problem->pattern != NULL && l->problem->op->takes_pattern == SPK_PATTERN_NEEDED;
}

static spk_status choose_modelled(const look *l, const spk_report *report, spk_choice *choice, bool *found)
{
    const double chosen_us = report->chosen >= 0 ? grown_us(l, &report->candidates[report->chosen]) : 0;
    return choose_by_model(l, report, usual_factor(l, report), chosen_us > 0 ? clearly_ahead * chosen_us : INFINITY, choice, found);
}

/* What is measured and may win here: the report's choice, else the next best. */
static spk_status choose_measured(const look *l, spk_report *report, spk_choice *choice, bool *found)
{
    int best = -1;
    bool wrong = false;
    spk_status status = spk_choose_best_proved(l->tuner, l->problem, l->options, report, choice, &best);
    if (status == SPK_OK && best >= 0)
        status = spk_evidence_is_wrong(l->tuner, l->options, l->class, choice->kernel, &choice->params, &wrong);
    *found = status == SPK_OK && best >= 0 && !wrong;
    return status;
}

/* The evidence of one class, so many octaves away, as this problem's. sibling: nothing that any near class measured may win here. */
static spk_status take(const look *l, spk_store *store, const char *key, double octaves, bool sibling, spk_choice *choice, bool *found)
{
    spk_report *report = NULL;
    if (spk_store_load(store, key, &report) != SPK_OK || report == NULL)
        return SPK_OK;
    if (octaves > 0 && report->provisional == SPK_PROVISIONAL_LOAD) {
        l->aside->any = true;
        l->aside->recent = l->aside->recent || spk_load_is_recent(report->measured_at);
        spk_report_release(&report);
        return SPK_OK;
    }
    /* another candidate's proof may take longer than the next best costs */
    const bool sibling_first = octaves > 0 && l->tuner->device->backend->proof == NULL && report->chosen >= 0 &&
                               grown_us(l, &report->candidates[report->chosen]) == 0;
    spk_status status = SPK_OK;
    if (model_chooses(l) && (octaves > same_choice || sibling))
        status = choose_modelled(l, report, choice, found);
    else if (octaves > same_choice)
        choose_grown(l, report);
    if (status == SPK_OK && !*found && (sibling || sibling_first))
        status = choose_sibling(l, report, choice, found);
    if (!sibling && status == SPK_OK && !*found)
        status = choose_measured(l, report, choice, found);
    if (*found && l->report != NULL)
        *l->report = report;
    else
        spk_report_release(&report);
    return status;
}

/* Tells in the report whose evidence it is: of the class that was asked for, or foreign. */
static spk_status tell(const look *l, const spk_choice *choice, bool foreign)
{
    if (l->report == NULL)
        return SPK_OK;
    spk_report *report = *l->report;
    char *key = NULL;
    report->how = choice->origin;
    spk_choice_words(choice, report->origin, sizeof report->origin);
    report->foreign = foreign;
    spk_status status = spk_strdup(&report->mem, l->class->key, &key);
    if (status == SPK_OK) {
        spk_free(&report->mem, report->class_key);
        report->class_key = key;
        status = spk_report_from_store(l->tuner, l->problem, l->options, choice, report);
    }
    if (status != SPK_OK)
        spk_report_release(l->report);
    return status;
}

static spk_status from_bundle(const look *l, spk_store *bundle, const char *key, spk_choice *choice, bool *found)
{
    spk_choice made = {.origin = SPK_ORIGIN_BUNDLE, .from_store = true, .stable = true, .until_write = true};
    SPK_TRY(take(l, bundle, key, 0, false, &made, found));
    if (!*found)
        return SPK_OK;
    snprintf(made.of, sizeof made.of, "%s", l->tuner->device->name);
    *choice = made;
    return tell(l, choice, false);
}

/* The nearest of a store's classes with something that may run here: its choice, else what take() has in its place; else, of the same
 * classes, another candidate of a row that they measured. */
static spk_status from_sizes(const look *l, spk_store *store, const char *key, spk_choice *choice, bool *found)
{
    spk_store_sizes *sizes = NULL;
    SPK_TRY(spk_calloc(l->tuner->mem, 1, sizeof *sizes, &sizes));
    spk_status status = spk_store_near_sizes(store, key, farthest, sizes);
    for (int look_at = 0; status == SPK_OK && look_at < 2 * sizes->count && !*found; look_at++) {
        const bool sibling = look_at >= sizes->count;
        const int i = sibling ? look_at - sizes->count : look_at;
        spk_choice made = {.origin = SPK_ORIGIN_NEAREST, .stable = true, .until_write = true};
        status = take(l, store, sizes->key[i], sizes->distance[i], sibling, &made, found);
        if (status != SPK_OK || !*found)
            continue;
        spk_key_size_words(key, sizes->key[i], made.of, sizeof made.of);
        if (sizes->distance[i] > same_threads && spk_serial_tunable(made.kernel) >= 0) {
            made.stable = false; /* how many threads run is a matter of the moment */
            spk_choose_threads(l->tuner, l->problem, l->options, l->class, &made);
        }
        *choice = made;
        status = tell(l, choice, true);
    }
    spk_free(l->tuner->mem, sizes);
    return status;
}

/* What a busy machine made of another size says little of this one. The cost model decides, so that nobody waits for a measurement that
 * would say as little. Some minutes later a quiet machine measures, where it may. */
static spk_status from_model(const look *l, spk_choice *choice, bool *found)
{
    const bool may_measure = l->options->tuning == SPK_TUNING_NOW && l->report == NULL;
    if (may_measure && !l->aside->recent && !spk_is_busy(l->tuner))
        return SPK_OK;
    SPK_TRY(spk_choose_estimated(l->tuner, l->problem, l->options, l->class, choice));
    choice->until_write = true;
    *found = true;
    if (l->report == NULL)
        return SPK_OK;
    SPK_TRY(spk_report_unmeasured(l->tuner, l->problem, l->options, choice, l->report));
    spk_report *report = *l->report;
    report->how = SPK_ORIGIN_MODEL_BUSY;
    snprintf(report->origin, sizeof report->origin, "%s", spk_origin_words(report->how));
    const spk_status status = spk_report_summarise(report, spk_unix_time_s());
    if (status != SPK_OK)
        spk_report_release(l->report);
    return status;
}

spk_status spk_choose_elsewhere(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                                bool sizes, spk_choice *choice, spk_report **report, bool *found)
{
    struct aside aside = {.any = false};
    const look l = {tuner, problem, options, class, report, &aside};
    spk_store *bundle = spk_store_bundle(tuner->store);
    char key[SPK_MAX_KEY_TEXT];
    *found = false;
    if (bundle != NULL) {
        SPK_TRY(spk_key_of_bundle(class->plain, tuner->device, key, sizeof key));
        SPK_TRY(from_bundle(&l, bundle, key, choice, found));
    }
    if (!*found && sizes)
        SPK_TRY(from_sizes(&l, tuner->store, class->key, choice, found));
    if (!*found && sizes && bundle != NULL)
        SPK_TRY(from_sizes(&l, bundle, key, choice, found));
    return !*found && aside.any ? from_model(&l, choice, found) : SPK_OK;
}

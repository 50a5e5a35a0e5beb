/* Before contenders are tried, the device may have work to do for all of them at once: compiling, proving (backend.h). As that takes long,
 * only the promising ones get so far, and all of them in one call: helper processes start once. Outside of the budget, as it is done once a
 * machine. */
#include <stdio.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "tune/search/search.h"

enum { FEW_PREPARED = 24, MOST_PREPARED = 48, FIRST_OF_ROW = 2, RACERS_OF_ROW = 6 };
static const double far_factor = 8; /* a row predicted this many times the best prediction sends one candidate only */
/* a run expected to take longer than this, and than others, is not proved: the watchdog could take it for one that hangs */
static const double longest_proof_us = 4e6;

/* Not to be tried here; an interruption says nothing about it. One that does not take the problem, which only its library knew, has not
 * failed. */
static void refuse(spk_contender *c, const spk_prepared *answer)
{
    const bool passes = answer->status == SPK_ERR_UNSUPPORTED;
    c->status = passes ? SPK_CANDIDATE_PRUNED : SPK_CANDIDATE_FAILED;
    c->failure = answer->status;
    c->ran = !passes;
    snprintf(c->why, sizeof c->why, "%s", answer->why[0] != '\0' ? answer->why : spk_status_name(answer->status));
}

static void show_progress(const spk_search *search, spk_contender **list, int count)
{
    const spk_tuner *tuner = search->tuner;
    int programs = 0;
    char what[64];
    for (int i = 0; i < count; i++)
        programs += list[i]->kernel->ops->build != NULL;
    if (programs > 0)
        snprintf(what, sizeof what, "compiling and proving %d program%s", programs, programs == 1 ? "" : "s");
    else
        snprintf(what, sizeof what, "proving %d candidate%s", count, count == 1 ? "" : "s");
    spk_tell_progress(tuner->progress, tuner->progress_user, 0, count, what);
}

static spk_status prepare(spk_search *search, spk_contender **list, int count)
{
    const spk_tuner *tuner = search->tuner;
    spk_device *device = tuner->device;
    spk_prepared *answers = NULL;
    double start = spk_work_us();
    SPK_TRY(spk_calloc(tuner->mem, (size_t)count, sizeof *answers, &answers));
    for (int i = 0; i < count; i++)
        answers[i] = (spk_prepared){.kernel = list[i]->kernel, .params = list[i]->params};
    show_progress(search, list, count);
    spk_status status = device->backend->prepare(device, search->problem, answers, count, &tuner->stop);
    for (int i = 0; status == SPK_OK && i < count; i++) {
        list[i]->prepared = answers[i].status != SPK_ERR_INTERRUPTED;
        if (answers[i].status != SPK_OK && list[i]->prepared)
            refuse(list[i], &answers[i]);
    }
    spk_free(tuner->mem, answers);
    double spent = spk_work_us() - start;
    search->start_us += spent;
    search->prepare_us += spent;
    return status == SPK_OK && spk_interrupted(tuner) ? spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted") : status;
}

/* ------------------------------------------------------------------------------------------------ who is worth it */

static bool is_open(const spk_contender *c)
{
    return (c->in_search || c->optional) && !c->prepared && c->status != SPK_CANDIDATE_FAILED && c->status != SPK_CANDIDATE_NOT_APPLICABLE;
}

static int by_prediction(const void *a, const void *b)
{
    const spk_contender *x = *(spk_contender *const *)a, *y = *(spk_contender *const *)b;
    if (x->predicted_us != y->predicted_us)
        return x->predicted_us < y->predicted_us ? -1 : 1;
    return x->order - y->order;
}

/* Of its row in a list by prediction, how many come before entry `at`. */
static int ahead_in_row(spk_contender **list, int at)
{
    int ahead = 0;
    for (int i = 0; i < at; i++)
        ahead += list[i]->row == list[at]->row && !list[i]->optional;
    return ahead;
}

/* Whether it has a place whatever the other rows hold. */
static bool has_place(const spk_search *search, spk_contender **list, int at, double best_us)
{
    const spk_contender *c = list[at];
    if (c->always_in_search || c->optional || search->exhaustive)
        return true;
    int ahead = ahead_in_row(list, at);
    if (search->by_row)
        return ahead < RACERS_OF_ROW;
    return ahead < (c->predicted_us > far_factor * best_us ? 1 : FIRST_OF_ROW);
}

static void leave_out(const spk_search *search, spk_contender *c, int others)
{
    const char *deed = c->kernel->ops->build != NULL ? "compiled" : "tried";
    c->in_search = false;
    if (c->left_out)
        spk_snprintf(c->why, sizeof c->why, "not %s: one run is expected to take %.0f s", deed, 1e-6 * c->predicted_us);
    else
        snprintf(c->why, sizeof c->why, "not %s: %d others%s look more promising", deed, others, search->by_row ? " of this kernel" : "");
}

/* Where there are hundreds, differences that the model cannot tell lie between more of them. */
static int most_prepared(int count)
{
    const int most = FEW_PREPARED + count / 10;
    return most < MOST_PREPARED ? most : MOST_PREPARED;
}

/* Keeps, in list, those worth preparing; list comes by prediction. */
static int keep_promising(spk_search *search, spk_contender **list, int count)
{
    int in = 0, kept = 0; /* in: those that are wanted */
    double best_us = list[0]->predicted_us;
    for (int i = 0; i < count; i++) {
        list[i]->left_out =
            !list[i]->always_in_search && list[i]->predicted_us > longest_proof_us && list[i]->predicted_us > far_factor * best_us;
        list[i]->placed = !list[i]->left_out && has_place(search, list, i, best_us);
        in += list[i]->placed && !list[i]->optional;
    }
    for (int i = 0; i < count && in < most_prepared(count) && !search->by_row; i++)
        if (!list[i]->placed && !list[i]->left_out) {
            list[i]->placed = true;
            in++;
        }
    for (int i = 0; i < count; i++) {
        spk_contender *c = list[i];
        if (c->placed)
            list[kept++] = c; /* kept <= i */
        else
            leave_out(search, c, search->by_row ? RACERS_OF_ROW : in);
    }
    return kept;
}

spk_status spk_search_prepare(spk_search *search)
{
    const spk_tuner *tuner = search->tuner;
    spk_contender **list = NULL;
    int count = 0;
    if (tuner->device->backend->prepare == NULL || search->count == 0)
        return SPK_OK;
    SPK_TRY(spk_alloc(tuner->mem, (size_t)search->count, sizeof *list, &list));
    for (int i = 0; i < search->count; i++)
        if (is_open(&search->contenders[i]))
            list[count++] = &search->contenders[i];
    spk_status status = SPK_OK;
    if (count > 0) {
        qsort(list, (size_t)count, sizeof *list, by_prediction);
        count = keep_promising(search, list, count);
    }
    if (count > 0)
        status = prepare(search, list, count);
    spk_free(tuner->mem, list);
    return status;
}

bool spk_search_ready(const spk_search *search, const spk_contender *c)
{
    return search->tuner->device->backend->prepare == NULL || (c->prepared && c->failure == SPK_OK);
}

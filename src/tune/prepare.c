/* Before contenders are tried, the device may have work to do for all of them at once: compiling, proving (backend.h). A wave at a time, in the order of
 * promise, so that what is ruled out meanwhile costs nothing; outside of the budget, as it is done once a machine. */
#include <stdio.h>

#include "base/clock.h"
#include "tune/search.h"

enum { LEAST_WAVE = 8 };

/* Not to be tried here; an interruption says nothing about it. */
static void refuse(spk_contender *c, const spk_prepared *answer)
{
    c->status = SPK_CANDIDATE_FAILED;
    c->failure = answer->status;
    c->ran = true;
    snprintf(c->why, sizeof c->why, "%s", answer->why[0] != '\0' ? answer->why : spk_status_name(answer->status));
}

static spk_status prepare(spk_search *search, spk_contender **list, int count)
{
    const spk_tuner *tuner = search->tuner;
    spk_device *device = tuner->device;
    spk_prepared *wave = NULL;
    double start = spk_now_us();
    SPK_TRY(spk_calloc(tuner->mem, (size_t)count, sizeof *wave, &wave));
    for (int i = 0; i < count; i++)
        wave[i] = (spk_prepared){.kernel = list[i]->kernel, .params = list[i]->params};
    spk_status status = device->backend->prepare(device, search->problem, wave, count, tuner->interrupted);
    for (int i = 0; status == SPK_OK && i < count; i++) {
        list[i]->prepared = wave[i].status != SPK_ERR_INTERRUPTED;
        if (wave[i].status != SPK_OK && list[i]->prepared)
            refuse(list[i], &wave[i]);
    }
    spk_free(tuner->mem, wave);
    double spent = spk_now_us() - start;
    search->start_us += spent;
    search->prepare_us += spent;
    return status == SPK_OK && spk_interrupted(tuner) ? spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted") : status;
}

static bool is_open(const spk_contender *c)
{
    return !c->prepared && c->status != SPK_CANDIDATE_FAILED && c->status != SPK_CANDIDATE_NOT_APPLICABLE;
}

spk_status spk_search_prepare(spk_search *search, spk_contender **list, int count, bool (*worth)(void *user, spk_contender *contender), void *user)
{
    const spk_tuner *tuner = search->tuner;
    int most = 2 * tuner->device->executor.threads, in = 0;
    spk_contender **wave = NULL;
    if (tuner->device->backend->prepare == NULL || count == 0 || list[0]->prepared)
        return SPK_OK;
    most = most < LEAST_WAVE ? LEAST_WAVE : most;
    SPK_TRY(spk_alloc(tuner->mem, (size_t)most, sizeof(spk_contender *), &wave));
    for (int i = 0; i < count && in < most; i++)
        if (is_open(list[i]) && (i == 0 || worth == NULL || worth(user, list[i])))
            wave[in++] = list[i];
    spk_status status = in > 0 ? prepare(search, wave, in) : SPK_OK;
    spk_free(tuner->mem, wave);
    return status;
}

bool spk_contender_out(const spk_contender *c)
{
    return c->prepared && c->status == SPK_CANDIDATE_FAILED;
}

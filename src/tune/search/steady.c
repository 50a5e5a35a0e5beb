/* Rounds under load. A device that works on and on may draw all the power it has: then its clock falls, and what is fastest in short rounds
 * need not be the fastest for those who make one product after the other. */
#include <math.h>

#include "base/callback.h"
#include "tune/search/search.h"

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 30 };
static const double least_run_us = 20; /* shorter runs wait for memory and leave power to spare */
static const double sample_us = 4000;  /* so long that the device hardly rests between samples */
static const double another = 0.03;    /* pace: relative */
static const double reach = 1.2;       /* a clock falls by about so much: those further behind stay behind */
/* the fastest of another kernel is compared with the winner, unless it takes so many times as long */
static const double compared = 4;
static const double most_us = 700e3; /* of these rounds: five to ten of two dozen contenders, more of the few that stay */

/* What the rounds before have found of a contender. */
typedef struct earlier {
    double *samples, median_us, spread_us;
    int count, capacity;
} earlier;

static void put_aside(spk_contender *c, earlier *kept)
{
    *kept = (earlier){c->samples, c->median_us, c->spread_us, c->sample_count, c->sample_capacity};
    c->samples = NULL;
    c->sample_count = c->sample_capacity = 0;
}

static void take_back(const spk_tuner *tuner, spk_contender *c, const earlier *kept)
{
    spk_free(tuner->mem, c->samples);
    c->samples = kept->samples;
    c->median_us = kept->median_us;
    c->spread_us = kept->spread_us;
    c->sample_count = kept->count;
    c->sample_capacity = kept->capacity;
}

static bool measured(const spk_contender *c)
{
    return c->sample_count > 0 && c->status != SPK_CANDIDATE_FAILED && c->status != SPK_CANDIDATE_WRONG;
}

static bool fastest_of_row(spk_contender **list, int count, const spk_contender *c)
{
    for (int i = 0; i < count; i++)
        if (list[i]->row == c->row && measured(list[i]) && list[i]->median_us < c->median_us)
            return false;
    return true;
}

/* Puts first who meets under load: those close to the winner, and the fastest of other kernels, so that a report compares what was measured
 * alike. */
static int gather(spk_contender **list, int count, const spk_contender *winner, int *close)
{
    int in = 0;
    *close = 0;
    for (int i = 0; i < count; i++) {
        spk_contender *c = list[i];
        bool near = measured(c) && c->median_us <= reach * winner->median_us;
        bool named = measured(c) && c->median_us <= compared * winner->median_us && fastest_of_row(list, count, c);
        *close += near;
        if (!near && !named)
            continue;
        list[i] = list[in];
        list[in++] = c;
    }
    return in;
}

/* Has the winner work alone until the clock has settled. Where it keeps the pace that it had in the short rounds, so does the clock, and
 * others cannot gain on it. */
static spk_status load(spk_search *search, spk_stage *stage, spk_contender *winner, bool *keeps_pace)
{
    const spk_tuner *tuner = search->tuner;
    const double begin_us = spk_work_us();
    double us = winner->median_us, least_us = INFINITY;
    winner->batch = spk_batch_lasting(us, sample_us);
    do {
        spk_search_tell(search, winner);
        if (spk_interrupted(tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        if (!spk_contender_sample(winner, stage, &us))
            return SPK_OK; /* its status says why */
        least_us = fmin(least_us, us);
    } while (spk_work_us() - begin_us < tuner->device->backend->settle_us);
    *keeps_pace = fabs(us / winner->median_us - 1) <= another && us <= (1 + another) * least_us;
    return SPK_OK;
}

/* *met: whether somebody got through; else all is as it was. */
static spk_status race_in_rounds(spk_search *search, spk_stage *stage, spk_contender **list, int count, bool *met)
{
    double end_us = fmin(search->start_us + search->budget_us, spk_work_us() + most_us);
    spk_rounds rounds = {.least = LEAST_ROUNDS,
                         .most = MOST_ROUNDS,
                         .deadline_us = end_us,
                         .rng = &search->rng,
                         .tell = spk_search_tell,
                         .tell_user = search};
    for (int i = 0; i < count; i++)
        list[i]->batch = spk_batch_lasting(list[i]->median_us, sample_us);
    earlier *kept = NULL;
    SPK_TRY(spk_alloc(search->tuner->mem, (size_t)count, sizeof *kept, &kept));
    for (int i = 0; i < count; i++)
        put_aside(list[i], &kept[i]);
    spk_status status = spk_rounds_run(search->tuner, stage, list, count, &rounds);
    *met = status == SPK_OK && spk_rounds_winner(list, count, search->by_row, NULL) >= 0;
    for (int i = 0; i < count; i++)
        if (*met)
            spk_free(search->tuner->mem, kept[i].samples);
        else
            take_back(search->tuner, list[i], &kept[i]);
    spk_free(search->tuner->mem, kept);
    return status;
}

static double round_us(spk_contender **list, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += list[i]->median_us * (spk_batch_lasting(list[i]->median_us, sample_us) + 1);
    return sum;
}

spk_status spk_steady_run(spk_search *search, spk_stage *stage, spk_contender **list, int count, spk_contender **winner)
{
    const double settle_us = search->tuner->device->backend->settle_us;
    bool keeps_pace = false, met = false;
    int close = 0;
    if (settle_us <= 0 || *winner == NULL || (*winner)->median_us < least_run_us)
        return SPK_OK;
    int in = gather(list, count, *winner, &close);
    if (close < 2 || settle_us + LEAST_ROUNDS * round_us(list, in) > spk_search_left_us(search, 0.9))
        return SPK_OK;
    SPK_TRY(load(search, stage, *winner, &keeps_pace));
    if (!keeps_pace)
        SPK_TRY(race_in_rounds(search, stage, list, in, &met));
    int best = spk_rounds_winner(list, met ? in : count, search->by_row, *winner);
    *winner = best >= 0 ? list[best] : NULL;
    for (int i = in; met && i < count; i++)
        list[i]->sample_count = 0; /* of other rounds: they make no pairs with those of the winner */
    return SPK_OK;
}

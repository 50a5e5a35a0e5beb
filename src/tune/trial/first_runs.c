/* Sizes that come once each: the first runs at all of them are one trial (family.h). */
#include <math.h>
#include <string.h>

#include "tune/trial/trial_internal.h"

enum { FIRST_LOOKS = 2, MOST_FIRST_LOOKS = 5, MOST_FIELD = 32 };

/* What first runs at sizes near to this one say of a contender here; *count: how many they are. INFINITY: there are none. */
static double first_us(const spk_trial *t, const spk_contender *c, double samples[SPK_FAMILY_LOOKS], int *count)
{
    double scratch[SPK_FAMILY_LOOKS];
    *count = 0;
    for (int i = 0; i < SPK_FAMILY_MEMBERS && t->family.members[i].kernel != NULL; i++) {
        const spk_family_member *m = &t->family.members[i];
        if (m->kernel != c->kernel || memcmp(&m->params, &c->params, sizeof m->params) != 0)
            continue;
        *count = m->count < SPK_FAMILY_LOOKS ? m->count : SPK_FAMILY_LOOKS;
        for (int k = 0; k < *count; k++)
            samples[k] = m->ratios[k] * c->predicted_us;
    }
    return *count > 0 ? spk_median(samples, *count, scratch) : INFINITY;
}

/* How far the list is: the least number of first runs, and the least of those that are not far behind. */
static int least_looks(const spk_trial *t, int *of_close, double *best_us)
{
    double samples[SPK_FAMILY_LOOKS];
    int least = SPK_FAMILY_LOOKS, count;
    *best_us = INFINITY;
    for (int i = 0; i < t->count; i++) {
        *best_us = fmin(*best_us, first_us(t, t->list[i], samples, &count));
        least = count < least ? count : least;
    }
    *of_close = SPK_FAMILY_LOOKS;
    for (int i = 0; i < t->count; i++)
        if (first_us(t, t->list[i], samples, &count) <= SPK_TRIAL_FAR_BEHIND * *best_us)
            *of_close = count < *of_close ? count : *of_close;
    return least;
}

/* Whose first run tells the most: of those that were looked at once at most, or else of those that are not far behind, who was looked at
 * the least. */
static int least_known(const spk_trial *t)
{
    double samples[SPK_FAMILY_LOOKS], best_us;
    int of_close, count, at = 0, least = SPK_FAMILY_LOOKS + 1;
    const bool all = least_looks(t, &of_close, &best_us) < FIRST_LOOKS;
    for (int i = 0; i < t->count; i++)
        if ((first_us(t, t->list[i], samples, &count) <= SPK_TRIAL_FAR_BEHIND * best_us || all) && count < least) {
            least = count;
            at = i;
        }
    return at;
}

/* Once each of the field has been looked at twice, those far behind are left out and more of the leading row come in, as in a trial of one
 * size. The plan's choice goes first where nobody has been looked at. */
void spk_first_runs_go_on(spk_trial *t)
{
    double samples[SPK_FAMILY_LOOKS], best_us;
    spk_contender *field[MOST_FIELD];
    int of_close, count, kept = 0;
    const int whole = t->count;
    if (t->count < 2 || first_us(t, t->list[0], samples, &count) == INFINITY)
        return;
    if (least_looks(t, &of_close, &best_us) >= FIRST_LOOKS && whole <= MOST_FIELD) {
        const spk_kernel *leading = t->list[0]->kernel;
        memcpy(field, t->list, (size_t)whole * sizeof *field);
        for (int i = 0; i < t->count; i++) {
            const double us = first_us(t, t->list[i], samples, &count);
            leading = us == best_us ? t->list[i]->kernel : leading;
            if (us <= SPK_TRIAL_FAR_BEHIND * best_us || spk_trial_is_choice(t->list[i], &t->first))
                t->list[kept++] = t->list[i];
        }
        t->count = kept;
        spk_trial_add_best(t, leading, SPK_TRIAL_MORE, false);
        if (t->count < 2) { /* nobody to be compared with, and too few first runs for a decision: a trial of this size */
            memcpy(t->list, field, (size_t)whole * sizeof *field);
            t->count = whole;
        }
    }
    spk_trial_bring_first(t, least_known(t));
}

/* Whether the first runs are enough; the samples of the list are theirs then. */
bool spk_first_runs_decide(spk_trial *t)
{
    double samples[SPK_FAMILY_LOOKS], best_us;
    int of_close, count;
    if (spk_trial_prepares(t) || t->count < 2 || t->phase != PHASE_FIELD || least_looks(t, &of_close, &best_us) < FIRST_LOOKS ||
        of_close < MOST_FIRST_LOOKS)
        return false;
    for (int i = 0; i < t->count; i++) {
        spk_contender *c = t->list[i];
        (void)first_us(t, c, samples, &count);
        if (spk_realloc(t->tuner.mem, &c->samples, SPK_TRIAL_ROUNDS, sizeof(double)) != SPK_OK)
            return false;
        c->sample_capacity = SPK_TRIAL_ROUNDS;
        c->sample_count = count < SPK_TRIAL_ROUNDS ? count : SPK_TRIAL_ROUNDS;
        memcpy(c->samples, samples, (size_t)c->sample_count * sizeof *samples);
        c->least_us = c->samples[0];
        for (int k = 1; k < c->sample_count; k++)
            c->least_us = fmin(c->least_us, c->samples[k]);
    }
    return true;
}

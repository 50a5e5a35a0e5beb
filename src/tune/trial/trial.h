/* Trials in place: a class that nobody has measured is measured by the runs of its user. Each run is made by one of a few contenders, in
 * turn, and timed, until the fastest is known. Here is who is next, and when that is decided; who runs them is the plan
 * (api/plan_trial.c). A trial is used by one thread at a time. */
#ifndef SPK_TUNE_TRIAL_TRIAL_H
#define SPK_TUNE_TRIAL_TRIAL_H

#include "tune/choose/choose.h"

typedef struct spk_trial spk_trial;

/* first: what the plan runs otherwise; the first contender. problem's pattern must outlive the trial. *trial is NULL where there is nothing
 * to be tried. *elsewhere: another trial of the class is under way in this process; then this one, if any, is over after its first run,
 * which counts for sizes that come once each, and it may have no winner. *runs: how many the other one had made when it was looked at the
 * last time, -1 for never; then how many it has made. One that has made none since, for a while, is left by its plan, or is of the process
 * that forked this one: it does not count. */
spk_status spk_trial_begin(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                           spk_trial **trial, bool *elsewhere, int *runs);
void spk_trial_end(spk_trial **trial); /* accepts NULL; unbinds all contenders */

/* Whether candidates are still compiled and proved, on another thread: nobody has a turn, and nothing is decided. Waits for nothing. */
bool spk_trial_waits(spk_trial *trial);

/* Who runs next; NULL: it is decided, or it waits. */
spk_contender *spk_trial_next(spk_trial *trial);

/* The first choice, where it was found wrong before anybody had a turn; else NULL. Its why says how. */
const spk_contender *spk_trial_wrong_first(const spk_trial *trial);

/* What runs are timed with where a device runs them later. NULL: a run is over when it returns. */
struct spk_watch *spk_trial_watch(const spk_trial *trial);

/* Whether it has run in this trial. A first run is compared with the oracle, and its time says little: memory is touched. */
bool spk_trial_has_run(const spk_contender *contender);

/* After its run. */
void spk_trial_ran(spk_trial *trial, spk_contender *contender, double us);

/* It could not be bound or run, or computed something wrong: it takes no further part. */
void spk_trial_out(spk_trial *trial, spk_contender *contender, spk_candidate_status status, const char *why);

/* The fastest so far of those that have run and were right; NULL: none. */
spk_contender *spk_trial_known(spk_trial *trial);

/* Once it is decided: the fastest, NULL where all are out; and its evidence goes to the store, as provisional (in place), since only few
 * were tried. */
spk_contender *spk_trial_winner(spk_trial *trial);
spk_status spk_trial_save(spk_trial *trial);

/* Whether a candidate computes something wrong on the operands of a stage that has checks (why says how); one that cannot run does not. */
bool spk_trial_finds_wrong(spk_stage *stage, const spk_kernel *kernel, const spk_params *params, double tolerance, char *why, size_t size);

/* Whether a contender that seemed wrong on the caller's operands is wrong on random ones, too (why says how). Takes some milliseconds, and
 * memory for operands; where there is none nothing is confirmed. */
bool spk_trial_confirms(const spk_tuner *tuner, const spk_problem *problem, const spk_contender *suspect, double tolerance, char *why,
                        size_t size);

/* For how long a contender's first outcome may be compared with the oracle. */
double spk_trial_check_us(const spk_contender *contender);
double spk_trial_tolerance(const spk_trial *trial);

#endif

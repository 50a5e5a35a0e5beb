/* What a trial needs before its contenders may run, done on a thread of the lowest priority while the caller's work goes on: compiling,
 * proving, comparing with the oracle, and a watch for their times. */
#ifndef SPK_TUNE_TRIAL_AHEAD_H
#define SPK_TUNE_TRIAL_AHEAD_H

#include "tune/measure/measure.h"

typedef struct spk_ahead spk_ahead;

/* Copies the list; holds the problem's pattern. The device must live until spk_ahead_wait. tolerance: of the comparison. */
spk_status spk_ahead_begin(const spk_tuner *tuner, const spk_problem *problem, double tolerance, const spk_prepared *list, int count,
                           spk_ahead **ahead);

/* Whether it is done; waits for nothing. */
bool spk_ahead_done(const spk_ahead *ahead);

/* Once it is done: what came of each entry of the list; and the watch, which is the caller's from now on (NULL: there is none). */
const spk_prepared *spk_ahead_list(const spk_ahead *ahead);
const char *spk_ahead_wrong(const spk_ahead *ahead, int entry); /* how its result is wrong; "": it is not, as far as was looked */
struct spk_watch *spk_ahead_take_watch(spk_ahead *ahead);

/* Nobody wants it any more: what is under way stops soon, by itself. Accepts NULL. */
void spk_ahead_end(spk_ahead **ahead);

/* Stops all work ahead on a device and waits until it has, which a program that is being compiled may delay by seconds. Before the device
 * is closed. */
void spk_ahead_wait(const spk_device *device);

#endif

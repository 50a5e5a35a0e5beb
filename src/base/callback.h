/* The caller's callbacks for messages and progress. While one runs, its thread may not call the library, and the clock of measuring stands
 * still. */
#ifndef SPK_BASE_CALLBACK_H
#define SPK_BASE_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "sparsek/sparsek.h"

/* Each does nothing where the function is NULL. */
void spk_tell_log(spk_log log, void *user, int level, const char *message);
void spk_tell_progress(spk_progress progress, void *user, int64_t done, int64_t total, const char *what);

/* Whether this thread is in one of the above. */
bool spk_in_callback(void);

/* spk_now_us without the time that this thread has spent in callbacks, or lost. For differences within one thread. */
double spk_work_us(void);

/* From now on what this thread says is lost to other programs counts as no work, up to so much. Returns what was lost since the call
 * before. */
double spk_work_allow(double us);
void spk_work_lost(double us);

#endif

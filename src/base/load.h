/* What the processors of this process do besides its own work, as the system counts it. Threads that wait for each other lose far more than
 * the time that others take: a measurement of many threads on a busy machine says little. */
#ifndef SPK_BASE_LOAD_H
#define SPK_BASE_LOAD_H

#include <stdbool.h>

typedef struct spk_load {
    double at_s;   /* when */
    int cpus;      /* processors that this process may use; 0: unknown */
    double busy_s; /* they have worked since the machine began, for whomever */
    double own_s;  /* this process has */
} spk_load;

spk_load spk_load_now(void);

/* Whether others worked so much between two moments that `threads` threads did not have a processor each. False where nothing is known, or
 * the time is too short for the system's clock. */
bool spk_load_crowded(const spk_load *from, const spk_load *to, int threads);

/* Threads of this process that work at this moment, or wait for a processor: one at least, the calling one. */
int spk_load_own(void);

/* Whether so many threads would not have a processor each at this moment, by what the system says is running besides this process. False
 * where it does not say. */
bool spk_load_busy(int threads);

/* How many of so many threads would have a processor each at this moment; one at least. */
int spk_load_left(int threads);

/* How often this process has lost a processor to another; 0 under a clock of a test's, which the machine's load is not to move. */
long spk_load_forced_switches(void);

#endif

/* Whether the system lets this process start threads: libraries that start their own end the process where it does not. */
#ifndef SPK_BASE_THREADS_H
#define SPK_BASE_THREADS_H

#include <stdbool.h>

/* Starts so many threads at once, and ends them: some 20 us each. false: a limit (ulimit -u, a control group's pids.max, address space)
 * forbids it. */
bool spk_threads_startable(int count);

#endif

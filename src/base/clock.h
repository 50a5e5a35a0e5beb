#ifndef SPK_BASE_CLOCK_H
#define SPK_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

double spk_now_us(void);       /* monotonic */
int64_t spk_unix_time_s(void); /* seconds since 1970-01-01 UTC */

/* Processor time that the calling thread, or all threads of the process, have had. */
double spk_thread_cpu_us(void);
double spk_process_cpu_us(void);

/* For tests: another clock takes the place of spk_now_us's own; NULL: its own again. */
void spk_clock_use(double (*now_us)(void));
bool spk_clock_is_real(void); /* none has */

#endif

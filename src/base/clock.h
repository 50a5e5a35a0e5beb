#ifndef SPK_BASE_CLOCK_H
#define SPK_BASE_CLOCK_H

#include <stdint.h>

double spk_now_us(void);       /* monotonic */
int64_t spk_unix_time_s(void); /* seconds since 1970-01-01 UTC */

/* For tests: another clock takes the place of spk_now_us's own; NULL: its own again. */
void spk_clock_use(double (*now_us)(void));

#endif

/* A clock that the test moves: what depends on time then depends on nothing else. Each look moves it on a little, so that a loop that waits
 * for it ends. */
#ifndef TESTS_FAKE_CLOCK_H
#define TESTS_FAKE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

enum { FAKE_CLOCK_LOOK_NS = 100 };

static _Atomic int64_t fake_clock_ns;

static inline double fake_clock_now_us(void)
{
    return 1e-3 * (double)(atomic_fetch_add(&fake_clock_ns, FAKE_CLOCK_LOOK_NS) + FAKE_CLOCK_LOOK_NS);
}

static inline void fake_clock_pass(double us)
{
    atomic_fetch_add(&fake_clock_ns, (int64_t)(1e3 * us));
}

/* From now on, and from the time that the system's clock shows. */
static inline void fake_clock_begin(void)
{
    atomic_store(&fake_clock_ns, (int64_t)(1e3 * spk_now_us()));
    spk_clock_use(fake_clock_now_us);
}

static inline void fake_clock_end(void)
{
    spk_clock_use(NULL);
}

#endif

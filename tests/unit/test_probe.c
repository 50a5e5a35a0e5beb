/* What the processor is found to be: a clock that can be true, and the same at every look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cpu/probe.h"
#include "base/clock.h"
#include "base/processors.h"

static void the_clock_is_measured_once(void **state)
{
    (void)state;
    double ghz = spk_probe_ghz(), start = spk_now_us();
    if (ghz < 0.5 || ghz > 8)
        fail_msg("a clock of %g GHz", ghz);
    for (int i = 0; i < 1000; i++)
        assert_true(spk_probe_ghz() == ghz);
    assert_true(spk_now_us() - start < 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_clock_is_measured_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the processor is found to be: a clock that can be true, and the same at every look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "backend/cpu/probe.h"
#include "base/processors.h"

static void the_clock_is_measured_once(void **state)
{
    (void)state;
    const double ghz = spk_probe_ghz();
    const clock_t begun = clock(); /* this process's time, however many others share the machine */
    if (ghz < 0.5 || ghz > 8)
        fail_msg("a clock of %g GHz", ghz);
    for (int i = 0; i < 1000; i++)
        assert_true(spk_probe_ghz() == ghz);
    assert_true(clock() - begun < CLOCKS_PER_SEC / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_clock_is_measured_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

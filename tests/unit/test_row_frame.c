/* The frame around a row's functions (kernel/row.c): the device is current in each of them, once, and no longer; a lost one runs nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "kernel/kernel.h"

static int inside, entered_times, calls;
static bool lost;

static spk_status enter(const spk_device *device, spk_entered *entered)
{
    (void)device;
    if (lost)
        return spk_fail(SPK_ERR_UNAVAILABLE, "the device is lost");
    assert_int_equal(inside, 0);
    entered->pushed = true;
    inside++;
    entered_times++;
    return SPK_OK;
}

static void leave(const spk_device *device, spk_entered *entered)
{
    (void)device;
    assert_true(entered->pushed);
    assert_int_equal(inside, 1);
    inside--;
}

static const spk_backend framed = {.id = SPK_BACKEND_CUDA, .kind = "framed", .enter = enter, .leave = leave};
static const spk_backend plain = {.id = SPK_BACKEND_CUDA, .kind = "plain"};

static spk_status outcome;

static spk_status called(void)
{
    calls++;
    return outcome;
}

static spk_status bind(spk_bound *bound)
{
    assert_int_equal(inside, bound->device->backend == &framed);
    return called();
}

static void unbind(spk_bound *bound)
{
    assert_int_equal(inside, bound->device->backend == &framed && !lost);
    calls++;
}

static spk_status update_values(spk_bound *bound, const void *values)
{
    (void)values;
    assert_int_equal(inside, bound->device->backend == &framed);
    return called();
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)args, (void)stream;
    assert_int_equal(inside, bound->device->backend == &framed);
    return called();
}

static const spk_kernel_ops all = {.bind = bind, .unbind = unbind, .update_values = update_values, .run = run, .batched = true};
static const spk_kernel_ops least = {.run = run, .batched = true};
static const spk_problem problem = {.batch = 1};

static void each_call_is_framed(void **unused)
{
    (void)unused;
    const spk_kernel full = {.name = "full", .ops = &all}, bare = {.name = "bare", .ops = &least};
    const spk_params params = {0};
    for (int i = 0; i < 4; i++) {
        spk_device device = {.backend = i < 2 ? &framed : &plain};
        spk_bound bound;
        const spk_args args = {0};
        const bool has_all = i % 2 == 0;
        calls = entered_times = 0;
        assert_int_equal(spk_bind(has_all ? &full : &bare, &params, &problem, &device, &bound), SPK_OK);
        assert_int_equal(spk_bound_update_values(&bound, &args), SPK_OK);
        assert_int_equal(spk_bound_run(&bound, &args, NULL), SPK_OK);
        spk_unbind(&bound);
        assert_int_equal(calls, has_all ? 4 : 1);
        assert_int_equal(entered_times, i < 2 ? calls : 0);
        assert_int_equal(inside, 0);
    }
}

static void a_failure_leaves(void **unused)
{
    (void)unused;
    const spk_kernel kernel = {.name = "full", .ops = &all};
    const spk_params params = {0};
    spk_device device = {.backend = &framed};
    spk_bound bound;
    const spk_args args = {0};
    outcome = SPK_ERR_UNSUPPORTED;
    assert_int_equal(spk_bind(&kernel, &params, &problem, &device, &bound), SPK_ERR_UNSUPPORTED);
    assert_int_equal(inside, 0);
    outcome = SPK_OK;
    assert_int_equal(spk_bind(&kernel, &params, &problem, &device, &bound), SPK_OK);
    outcome = SPK_ERR_INTERNAL;
    assert_int_equal(spk_bound_update_values(&bound, &args), SPK_ERR_INTERNAL);
    assert_int_equal(spk_bound_run(&bound, &args, NULL), SPK_ERR_INTERNAL);
    assert_int_equal(inside, 0);
    outcome = SPK_OK;
    spk_unbind(&bound);
}

static void a_lost_device_runs_nothing(void **unused)
{
    (void)unused;
    const spk_params params = {0};
    for (int library = 0; library < 2; library++) {
        const spk_kernel kernel = {.name = "full", .library = library ? "some" : NULL, .ops = &all};
        spk_device device = {.backend = &framed};
        spk_bound bound, other;
        const spk_args args = {0};
        assert_int_equal(spk_bind(&kernel, &params, &problem, &device, &bound), SPK_OK);
        calls = 0;
        lost = true;
        assert_int_equal(spk_bind(&kernel, &params, &problem, &device, &other), SPK_ERR_UNAVAILABLE);
        assert_int_equal(spk_bound_update_values(&bound, &args), SPK_ERR_UNAVAILABLE);
        assert_int_equal(spk_bound_run(&bound, &args, NULL), SPK_ERR_UNAVAILABLE);
        assert_int_equal(calls, 0);
        spk_unbind(&bound); /* an own row releases what it has on the host; a library is asked nothing */
        assert_int_equal(calls, library ? 0 : 1);
        assert_int_equal(inside, 0);
        lost = false;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_call_is_framed), cmocka_unit_test(a_failure_leaves),
                                       cmocka_unit_test(a_lost_device_runs_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

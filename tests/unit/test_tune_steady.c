/* Rounds under load: who wins where the clock falls, who needs none, and what stands where they end early. */
#include "test_tune_fake.h"

static const spk_kernel three[] = {
    FAKE_ROW(0, a, SPK_KIND_OWN, 10, false, ""),
    FAKE_ROW(1, a, SPK_KIND_OWN, 30, false, "V=0,1,2,3"),
    FAKE_ROW(2, a, SPK_KIND_VENDOR, 20, false, ""),
};

/* What is fastest for a moment draws more power than what is fastest in the end. */
static void the_last_rounds_are_under_load(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    const spk_backend falls = fake_backend_that_falls();
    b.options.fresh = 1;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        b.options.seed = seed;
        fakes[0] = (fake){.mode = FAKE_RIGHT, .us = 120, .noise = 0.01, .hot = 0.2};
        fakes[1] = (fake){.mode = FAKE_RIGHT, .us = 122, .noise = 0.01, .hot = 0.05, .param_us = {0, 30, 60, 1}};
        fakes[2] = (fake){.mode = FAKE_RIGHT, .us = 200, .noise = 0.01, .hot = 0.1};
        b.device.backend = &fake_backend;
        spk_report *report = tune(&b);
        assert_string_equal(chosen_name(report), "fake0");
        assert_int_equal(fake_long_samples, 0);
        spk_report_release(&report);
        b.device.backend = &falls;
        report = tune(&b);
        assert_string_equal(chosen_name(report), "fake1");
        assert_string_equal(chosen_params(report), "V=0");
        const spk_evidence *best = &report->candidates[report->chosen], *first = entry_of(report, "fake0", NULL),
                           *other = entry_of(report, "fake2", NULL);
        assert_true(best->median_us > 126 && best->median_us < 131 && best->sample_count >= 5); /* times under load */
        assert_true(first->median_us > 142 && first->sample_count >= 3);
        assert_true(other->median_us > 218 && other->sample_count >= 3); /* far behind, but what the winner is compared with */
        const spk_evidence *behind = entry_of(report, "fake1", "V=2");
        /* samples of other rounds make no pairs */
        assert_true(behind->median_us > 180 && behind->median_us < 190 && behind->sample_count == 0);
        spk_report_release(&report);
        fake_long_samples = 0;
    }
    bench_close(&b);
}

/* Who is ahead in short rounds stays so where load makes no difference that matters. */
static void a_tie_under_load_changes_nothing(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    const spk_backend falls = fake_backend_that_falls();
    b.device.backend = &falls;
    fakes[0] = (fake){.mode = FAKE_RIGHT, .us = 120, .hot = 0.05};
    fakes[1] = (fake){.mode = FAKE_RIGHT, .us = 122.6, .hot = 0.02}; /* of higher priority, and under load 0.8 % faster */
    fakes[2] = (fake){.mode = FAKE_RIGHT, .us = 300};
    spk_report *report = tune(&b);
    assert_string_equal(chosen_name(report), "fake0");
    assert_true(fabs(report->candidates[report->chosen].median_us - 126) < 0.1);
    spk_report_release(&report);
    bench_close(&b);
}

/* A winner that keeps its pace, stands alone or takes a few microseconds needs no rounds under load; nor has a short budget time for
 * them. */
static void load_is_for_those_that_it_slows(void **state)
{
    (void)state;
    static const struct {
        double us[2], hot, budget_s;
        int least, most; /* samples under load */
    } cases[] = {{{100, 105}, 0, 2, 1, INT32_MAX}, {{100, 150}, 0.3, 2, 0, 0}, {{10, 10.5}, 0.3, 2, 0, 0}, {{100, 105}, 0.3, 0.01, 0, 0}};
    bench b;
    bench_open(&b, three, 3, "");
    const spk_backend falls = fake_backend_that_falls();
    b.options.fresh = 1;
    b.device.backend = &falls;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        b.options.budget_s = cases[i].budget_s;
        fakes[0] = (fake){.mode = FAKE_RIGHT, .us = cases[i].us[0], .hot = cases[i].hot};
        fakes[1] = (fake){.mode = FAKE_RIGHT, .us = 9000};
        fakes[2] = (fake){.mode = FAKE_RIGHT, .us = cases[i].us[1]};
        fake_long_samples = 0;
        spk_report *report = tune(&b);
        assert_string_equal(chosen_name(report), "fake0");
        assert_true(report->candidates[report->chosen].median_us < 1.01 * cases[i].us[0]);
        int lasting = fake_long_samples - atomic_load(&fakes[1].runs); /* whose single runs last as long */
        if (lasting < cases[i].least || lasting > cases[i].most)
            fail_msg("case %d took %d samples under load", (int)i, lasting);
        spk_report_release(&report);
        fake_runs();
    }
    bench_close(&b);
}

/* Interrupted or failing under load: what the rounds before have found stands. */
static void failures_under_load(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, three, 3, "");
    const spk_backend falls = fake_backend_that_falls();
    b.options.fresh = 1;
    b.device.backend = &falls;
    int kept = 0;
    for (int runs = 500; runs < 200000; runs += runs / 3) {
        fakes[0] = (fake){.mode = FAKE_RIGHT, .us = 120, .hot = 0.2};
        fakes[1] = (fake){.mode = FAKE_RIGHT, .us = 122, .hot = 0.05};
        fake_interrupt_after = runs;
        atomic_store(&fake_total_runs, 0);
        atomic_store(&fake_interrupted, 0);
        fake_load_us = 0;
        spk_report *report = NULL;
        spk_status status = spk_tune_problem(&b.tuner, &b.problem, &b.options, &report);
        assert_true(status == SPK_OK || status == SPK_ERR_INTERRUPTED);
        assert_non_null(report);
        assert_true(report->candidates[report->chosen].median_us > 0);
        kept += status == SPK_ERR_INTERRUPTED && fake_load_us > 10000;
        spk_report_release(&report);
    }
    assert_true(kept > 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rounds_are_under_load),
        cmocka_unit_test(a_tie_under_load_changes_nothing),
        cmocka_unit_test(load_is_for_those_that_it_slows),
        cmocka_unit_test(failures_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The report: its entries, its memory, and the paragraph that explains a choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "registry/registry.h"
#include "store/report.h"

static const spk_kernel_ops ops = {.source_hash = "0123456789abcdef"};
static const spk_kernel kernel_a = {
    .operation = SPK_SPMM, .name = "spmm_a", .kind = SPK_KIND_OWN, .tunables = "MR=4,6 PACK=0,1", .ops = &ops};
static const spk_kernel kernel_b = {.operation = SPK_SPMM, .name = "vendor_b", .kind = SPK_KIND_VENDOR, .tunables = "", .ops = &ops};
static const spk_kernel kernel_d = {.operation = SPK_SPMM, .name = "some_dense", .kind = SPK_KIND_DENSE, .tunables = "", .ops = &ops};

static spk_report *make(void)
{
    spk_report *report = NULL;
    assert_int_equal(spk_report_make(&spk_mem_system, "key|m=1", "a device", &report), SPK_OK);
    return report;
}

static spk_evidence *add(spk_report *report, const spk_kernel *kernel, int candidate, spk_candidate_status status, double median_us)
{
    spk_params params;
    spk_params_get(kernel, candidate, &params);
    spk_evidence *entry = NULL;
    assert_int_equal(spk_report_add(report, kernel, &params, &entry), SPK_OK);
    entry->status = status;
    entry->median_us = median_us;
    entry->spread_us = median_us / 100;
    return entry;
}

static const char *summary(spk_report *report)
{
    assert_int_equal(spk_report_summarise(report, 1000000), SPK_OK);
    return report->summary;
}

static void says(spk_report *report, const char *text)
{
    if (strstr(summary(report), text) == NULL)
        fail_msg("\"%s\" is missing in \"%s\"", text, report->summary);
}

static void says_not(spk_report *report, const char *text)
{
    if (strstr(summary(report), text) != NULL)
        fail_msg("\"%s\" is in \"%s\"", text, report->summary);
}

static void test_entries(void **state)
{
    (void)state;
    spk_report *report = make();
    assert_int_equal(report->chosen, -1);
    spk_params params;
    spk_params_get(&kernel_a, 3, &params);
    spk_evidence *entry = NULL;
    assert_int_equal(spk_report_add(report, &kernel_a, &params, &entry), SPK_OK);
    assert_string_equal(entry->name, "spmm_a");
    assert_string_equal(entry->params, "MR=6 PACK=1");
    assert_int_equal(strlen(entry->hash), 16);
    assert_int_equal(entry->kind, SPK_KIND_OWN);
    assert_int_equal(entry->status, SPK_CANDIDATE_PRUNED);
    assert_true(entry->error == -1);
    entry->median_us = 7;
    /* Many more make the array grow; the first is as it was. */
    for (int i = 0; i < 100; i++) {
        spk_evidence copy = *entry;
        snprintf(copy.name, sizeof copy.name, "other_%d", i);
        copy.samples_us = NULL;
        assert_int_equal(spk_report_append(report, &copy, NULL), SPK_OK);
        entry = &report->candidates[0];
    }
    assert_true(entry->median_us == 7);
    assert_int_equal(report->count, 101);
    assert_int_equal(spk_alloc(&spk_mem_system, 3, sizeof(double), &entry->samples_us), SPK_OK); /* the report frees it */
    spk_report_release(&report);
    assert_null(report);
    spk_report_release(&report);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A report does not look for an entry that a candidate may have, as no two candidates of the table are named alike. */
static void test_candidates_have_names_of_their_own(void **state)
{
    (void)state;
    enum { LENGTH = 320 };
    const spk_kernel *table = NULL;
    const int rows = spk_kernels(&table);
    int total = 0, count = 0;
    for (int row = 0; row < rows; row++)
        total += spk_params_count(&table[row]);
    char(*texts)[LENGTH] = calloc((size_t)total, sizeof *texts);
    assert_non_null(texts);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < spk_params_count(&table[row]); i++) {
            char text[SPK_MAX_PARAMS_TEXT];
            spk_params params;
            spk_params_get(&table[row], i, &params);
            spk_params_text(&table[row], &params, text, sizeof text);
            assert_true(snprintf(texts[count++], LENGTH, "%s %s", table[row].name, text) < LENGTH);
        }
    qsort(texts, (size_t)total, sizeof *texts, by_text);
    for (int i = 1; i < total; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            fail_msg("twice in the table: %s", texts[i]);
    free(texts);
}

static void test_winner(void **state)
{
    (void)state;
    spk_report *report = make();
    add(report, &kernel_b, 0, SPK_CANDIDATE_OK, 8000);
    add(report, &kernel_a, 1, SPK_CANDIDATE_OK, 4400);
    add(report, &kernel_a, 2, SPK_CANDIDATE_OK, 4000);
    add(report, &kernel_a, 3, SPK_CANDIDATE_PRUNED, 0);
    report->chosen = 2;
    report->tuning_s = 1.5;
    report->measured_at = 1000000 - 2 * 3600 - 5;
    says(report, "spmm_a MR=6 PACK=0 takes 4000 us, spread 40 us.");
    says(report, "Next of the other kernels: vendor_b at 8000 us (2.00x as long)."); /* not its own other parameters */
    says(report, "3 of 4 candidates were measured, in 1.50 s, 2 hours ago.");
    says_not(report, "assume_finite");
    says_not(report, "Dense");
    says_not(report, "\033");
    says_not(report, "\n");
    report->measured_at = 1000000 - 86400;
    says(report, ", 1 day ago.");
    report->measured_at = 1000000 - 3;
    says(report, ", just now.");
    report->measured_at = 1000000 + 86400;
    says(report, "ahead of this clock");
    spk_report_release(&report);
}

static void test_dense_and_assume_finite(void **state)
{
    (void)state;
    spk_report *report = make();
    add(report, &kernel_a, 0, SPK_CANDIDATE_OK, 50);
    spk_evidence *dense = add(report, &kernel_d, 0, SPK_CANDIDATE_NOT_ELIGIBLE, 25);
    snprintf(dense->why, sizeof dense->why, "needs assume_finite");
    report->chosen = 0;
    says(report, "spmm_a MR=4 PACK=0 takes 50 us, spread 0.5 us.");
    says(report, "No other kernel that may win was measured to the end.");
    says(report, "Dense: some_dense at 25 us (2.00x the speed).");
    says(report, "With assume_finite, some_dense would win, 2.00x as fast as the choice.");
    report->candidates[0].spread_us = 15; /* as on a busy machine */
    says(report, "Its samples vary widely");
    report->candidates[0].spread_us = 0;
    says(report, "takes an estimated 50 us");
    report->candidates[1].median_us = 100;
    says(report, "Dense: some_dense at 100 us (2.00x as long).");
    says_not(report, "assume_finite");
    report->candidates[1].median_us = 25;
    snprintf(report->candidates[1].why, sizeof report->candidates[1].why, "excluded");
    says_not(report, "assume_finite");
    /* Dense as the runner-up is told once. */
    report->candidates[1].status = SPK_CANDIDATE_OK;
    says(report, "Next of the other kernels: some_dense");
    says_not(report, "Dense:");
    spk_report_release(&report);
}

static void test_refused(void **state)
{
    (void)state;
    spk_report *report = make();
    add(report, &kernel_b, 0, SPK_CANDIDATE_OK, 10);
    spk_evidence *wrong = add(report, &kernel_a, 0, SPK_CANDIDATE_WRONG, 0);
    wrong->error = 0.5;
    wrong->tolerance = 1e-5;
    snprintf(add(report, &kernel_a, 1, SPK_CANDIDATE_FAILED, 0)->why, 240, "out of memory: 64 bytes were refused");
    add(report, &kernel_a, 2, SPK_CANDIDATE_TIMED_OUT, 0);
    report->chosen = 0;
    says(report, "1 gave wrong results (spmm_a MR=4 PACK=0: error 0.5 over the tolerance 1e-05).");
    says(report, "1 failed (spmm_a MR=4 PACK=1: out of memory: 64 bytes were refused).");
    says(report, "1 timed out (spmm_a MR=6 PACK=0).");
    for (int i = 0; i < 50; i++) {
        spk_evidence more = report->candidates[1];
        memset(more.name, 'x', sizeof more.name - 1);
        memset(more.params, 'y', sizeof more.params - 1);
        memset(more.why, 'z', sizeof more.why - 1);
        more.name[sizeof more.name - 1] = more.params[sizeof more.params - 1] = more.why[sizeof more.why - 1] = '\0';
        assert_int_equal(spk_report_append(report, &more, NULL), SPK_OK);
    }
    says(report, "51 gave wrong results ("); /* three examples, then "..." */
    says(report, "; ...).");
    spk_report_release(&report);
}

static void test_nothing_chosen(void **state)
{
    (void)state;
    spk_report *report = make();
    says(report, "0 of 0 candidates");
    add(report, &kernel_a, 0, SPK_CANDIDATE_PRUNED, 0)->predicted_us = 40;
    add(report, &kernel_a, 1, SPK_CANDIDATE_PRUNED, 0)->predicted_us = 30;
    add(report, &kernel_d, 0, SPK_CANDIDATE_NOT_ELIGIBLE, 0)->predicted_us = 3;
    add(report, &kernel_b, 0, SPK_CANDIDATE_NOT_APPLICABLE, 0);
    says(report, "Nothing was chosen: 3 of 4 candidates can compute this problem here.");
    says(report, "The cost model puts spmm_a MR=4 PACK=1 first, at 30 us.");
    says_not(report, "were measured");
    report->chosen = 1;
    says(report, "spmm_a MR=4 PACK=1 was not measured; the cost model predicts 30 us.");
    spk_report_release(&report);
}

static spk_status build(spk_report **out)
{
    spk_report *report = NULL;
    SPK_TRY(spk_report_make(&spk_mem_system, "key", "device", &report));
    spk_status status = SPK_OK;
    for (int i = 0; i < 40 && status == SPK_OK; i++) {
        spk_evidence e = {.status = SPK_CANDIDATE_OK};
        status = spk_report_append(report, &e, NULL);
    }
    if (status == SPK_OK)
        status = spk_report_summarise(report, 0);
    if (status != SPK_OK)
        spk_report_release(&report);
    else
        *out = report;
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (int64_t i = 0;; i++) {
        assert_true(i < 100);
        spk_report *report = NULL;
        spk_mem_fail_after(i);
        spk_status status = build(&report);
        spk_mem_fail_after(-1);
        if (status == SPK_OK) {
            assert_true(i > 5);
            spk_report_release(&report);
            return;
        }
        assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        assert_null(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),       cmocka_unit_test(test_candidates_have_names_of_their_own),
        cmocka_unit_test(test_winner),        cmocka_unit_test(test_dense_and_assume_finite),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_nothing_chosen),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a context remembers of its decisions: it answers for the same question only, and no longer than the store says the same. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/context.h"
#include "base/clock.h"
#include "tune/choose/choose.h"

enum { CHOICES = 2 };

static char folder[] = "/tmp/spk-decisions-XXXXXX", path[64];
static spk_context *context;
static char choices[CHOICES][160]; /* of different kernels */
static const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = 48, .n = 40, .k = 56, .dtype_a = SPK_F32, .dtype_b = SPK_F32, .dtype_d = SPK_F32};

static void ok(spk_status status)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", spk_status_name(status), spk_error_last());
}

static spk_context *open_store(void)
{
    spk_context *opened = NULL;
    ok(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = path, .threads = 2}, &opened));
    return opened;
}

static void read_question(const spk_tune_options *theirs, spk_problem *problem, spk_tune_options *options)
{
    ok(spk_tune_options_read(theirs, options));
    ok(spk_problem_read(spk_op_get(SPK_GEMM), NULL, &gemm, options, problem));
    spk_problem_fold(problem);
}

/* Evidence that every candidate was measured, and that choice number `chosen` won. */
static void decide(spk_context *by, int chosen)
{
    spk_problem problem;
    spk_tune_options options;
    spk_class class;
    spk_contender *contenders = NULL;
    spk_report *report = NULL;
    int count = 0, kinds = 0;
    const spk_tuner tuner = spk_context_tuner(by);
    read_question(NULL, &problem, &options);
    ok(spk_class_keys(&tuner, &problem, &options, &class));
    ok(spk_contenders_make(&tuner, &problem, &options, &contenders, &count));
    for (int i = 0; i < count; i++)
        if (contenders[i].eligible) {
            contenders[i].status = SPK_CANDIDATE_OK;
            contenders[i].median_us = 10;
            contenders[i].error = 0;
        }
    ok(spk_report_make(tuner.mem, class.key, tuner.device->name, &report));
    ok(spk_evidence_write(report, contenders, count, 1e-3, NULL));
    for (int i = 0; i < count && kinds < CHOICES; i++) {
        const spk_contender *c = &contenders[i];
        char params[SPK_MAX_PARAMS_TEXT];
        if (!c->eligible || (kinds > 0 && strncmp(choices[0], c->kernel->name, strlen(c->kernel->name)) == 0))
            continue;
        spk_params_text(c->kernel, &c->params, params, sizeof params);
        snprintf(choices[kinds], sizeof choices[kinds], "%s%s%s", c->kernel->name, params[0] != '\0' ? " " : "", params);
        if (kinds++ == chosen)
            report->chosen = c->entry;
    }
    assert_int_equal(kinds, CHOICES);
    report->measured_at = spk_unix_time_s();
    ok(spk_store_save(tuner.store, report));
    spk_report_release(&report);
    spk_contenders_release(&tuner, &contenders, count);
}

static bool is_remembered(const spk_tune_options *theirs)
{
    spk_problem problem;
    spk_tune_options options;
    spk_asked asked;
    spk_decided decided;
    read_question(theirs, &problem, &options);
    return spk_asked_make(&problem, &options, &asked) && spk_decisions_find(context->decisions, &asked, &decided);
}

/* Whether a plan made now runs this choice. */
static bool runs(const spk_tune_options *options, const char *choice, const char *why)
{
    spk_plan *plan = NULL;
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    ok(spk_plan_create(context, NULL, &gemm, options, &plan));
    ok(spk_plan_get_info(plan, &info));
    const bool same = strcmp(spk_plan_choice(plan), choice) == 0;
    assert_string_equal(info.why, why);
    assert_int_equal(info.from_store, strcmp(why, "from the store") == 0);
    spk_plan_destroy(&plan);
    return same;
}

static int set_up(void **unused)
{
    (void)unused;
    snprintf(path, sizeof path, "%s/store.db", folder);
    context = open_store();
    decide(context, 0);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    int64_t removed = 0;
    ok(spk_store_clear(context, &removed));
    spk_context_destroy(&context);
    return 0;
}

static void the_same_question(void **unused)
{
    (void)unused;
    const spk_tune_options other_seed = {SPK_SIZED(spk_tune_options), .seed = 7};
    assert_false(is_remembered(NULL));
    assert_true(runs(NULL, choices[0], "from the store"));
    assert_true(is_remembered(NULL));
    assert_true(is_remembered(&other_seed));
    assert_true(runs(NULL, choices[0], "from the store"));
}

static void other_questions(void **unused)
{
    (void)unused;
    char kernel[64] = "", long_text[256] = "";
    memcpy(kernel, choices[0], strcspn(choices[0], " "));
    for (size_t used = 0; used + strlen(kernel) + 1 < sizeof long_text; used = strlen(long_text))
        snprintf(long_text + used, sizeof long_text - used, "%s,", kernel);
    const spk_tune_options without = {SPK_SIZED(spk_tune_options), .exclude = kernel, .tuning = SPK_TUNING_NEVER},
                           pinned = {SPK_SIZED(spk_tune_options), .choice = choices[1]},
                           strict = {SPK_SIZED(spk_tune_options), .tolerance = 1e-3, .tuning = SPK_TUNING_NEVER},
                           long_one = {SPK_SIZED(spk_tune_options), .exclude = long_text, .tuning = SPK_TUNING_NEVER};
    assert_true(runs(NULL, choices[0], "from the store"));
    const spk_tune_options *all[] = {&without, &pinned, &strict, &long_one};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            spk_plan *plan = NULL;
            if (round == 0)
                assert_false(is_remembered(all[i]));
            ok(spk_plan_create(context, NULL, &gemm, all[i], &plan));
            if (all[i]->exclude != NULL)
                assert_true(strncmp(spk_plan_choice(plan), kernel, strlen(kernel)) != 0);
            spk_plan_destroy(&plan);
        }
        assert_true(runs(&pinned, choices[1], "pinned"));
    }
    assert_false(is_remembered(&long_one)); /* what is remembered has an end */
}

static void a_write_of_this_process(void **unused)
{
    (void)unused;
    const spk_tune_options known_only = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_AHEAD_EACH};
    spk_context *other = open_store();
    spk_plan *plan = NULL;
    int64_t removed = 0;
    assert_true(runs(&known_only, choices[0], "from the store"));
    decide(other, 1);
    assert_false(is_remembered(&known_only));
    assert_true(runs(&known_only, choices[1], "from the store"));
    decide(context, 0);
    assert_true(runs(&known_only, choices[0], "from the store"));
    ok(spk_store_clear(other, &removed));
    assert_true(removed > 0);
    assert_int_equal(spk_plan_create(context, NULL, &gemm, &known_only, &plan), SPK_ERR_UNKNOWN_CLASS);
    spk_context_destroy(&other);
}

static void a_write_of_another_process(void **unused)
{
    (void)unused;
    int status = -1;
    assert_true(runs(NULL, choices[0], "from the store"));
    const pid_t child = fork();
    if (child == 0) {
        spk_context *other = open_store();
        decide(other, 1);
        raise(SIGKILL); /* a checker of leaks would find what the parent owns in this copy of its memory */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const double begun = spk_now_us();
    while (!runs(NULL, choices[1], "from the store")) {
        assert_true(spk_now_us() - begun < 300e6);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static void interrupted(void **unused)
{
    (void)unused;
    assert_true(runs(NULL, choices[0], "from the store"));
    spk_plan *plan = NULL;
    spk_context_interrupt(context);
    const spk_status status = spk_plan_create(context, NULL, &gemm, NULL, &plan);
    spk_plan_destroy(&plan);
    assert_true(status == SPK_OK || status == SPK_ERR_INTERRUPTED);
    spk_context_resume(context);
    assert_true(runs(NULL, choices[0], "from the store"));
}

/* The question is the same whatever cancels the call. */
static void cancelled_by_another(void **unused)
{
    (void)unused;
    const volatile int one = 0, other = 0;
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cancel = &one};
    spk_plan *plan = NULL;
    ok(spk_plan_create(context, NULL, &gemm, &options, &plan));
    spk_recent_add(context->recent, NULL, &gemm, &options, plan);
    options.cancel = &other;
    spk_plan *found = spk_recent_find(context->recent, NULL, &gemm, &options);
    assert_ptr_equal(found, plan);
    spk_plan_release(&found);
    options.seed = 3;
    assert_null(spk_recent_find(context->recent, NULL, &gemm, &options));
    spk_plan_destroy(&plan);
}

static void no_memory(void **unused)
{
    (void)unused;
    for (int round = 0; round < 2; round++)
        for (int64_t fail = 0;; fail++) {
            spk_plan *plan = NULL;
            spk_mem_fail_after(fail);
            const spk_status status = spk_plan_create(context, NULL, &gemm, NULL, &plan);
            spk_mem_fail_after(-1);
            assert_true(status == SPK_OK || status == SPK_ERR_OUT_OF_MEMORY);
            assert_int_equal(plan != NULL, status == SPK_OK);
            spk_plan_destroy(&plan);
            if (status == SPK_OK && is_remembered(NULL))
                break;
            assert_true(fail < 100000);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int make_folder(void **unused)
{
    (void)unused;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **unused)
{
    (void)unused;
    char name[96];
    unlink(path);
    snprintf(name, sizeof name, "%s.lock", path);
    unlink(name);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_same_question),
                                       TEST(other_questions),
                                       TEST(a_write_of_this_process),
                                       TEST(a_write_of_another_process),
                                       TEST(interrupted),
                                       TEST(cancelled_by_another),
                                       TEST(no_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

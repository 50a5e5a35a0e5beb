/* Memories: what ends an entry, how many there are, what is held and released, and use by several threads and over a fork. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_clock.h"
#include "known/known.h"
#include "known/origin.h"

static spk_known *made_of(spk_known_kind kind, const spk_known_calls *calls)
{
    spk_known *known = NULL;
    assert_int_equal(spk_known_make(&spk_mem_system, kind, calls, &known), SPK_OK);
    return known;
}

static bool has(spk_known *known, const char *key, int expected)
{
    int value = -1;
    return spk_known_find(known, key, strlen(key), &value, sizeof value) && value == expected;
}

static void add(spk_known *known, const char *key, int value, spk_epoch since, bool until_write)
{
    spk_known_add(known, key, strlen(key), &value, sizeof value, since, until_write);
}

/* Each memory, by its row: time, a write and a refutation end what they should, and nothing else. */
static void ends_by_its_rule(void **unused)
{
    (void)unused;
    static const struct {
        int until;
        double seconds;
    } rules[] = {
#define SPK_KNOWN(NAME, most, until, seconds) {until, seconds},
#include "known/memories.def"
#undef SPK_KNOWN
    };
    fake_clock_begin();
    for (int m = 0; m < SPK_KNOWN_KINDS; m++) {
        spk_known *known = made_of((spk_known_kind)m, NULL);
        const int until = rules[m].until;
        add(known, "kept", 1, spk_epoch_now(), false);
        add(known, "until_write", 2, spk_epoch_now(), true);
        assert_true(has(known, "kept", 1) && has(known, "until_write", 2) && !has(known, "kep", 1) && !has(known, "", 1));
        spk_epoch_refuted();
        assert_int_equal(has(known, "kept", 1), !(until & SPK_UNTIL_REFUTED));
        add(known, "kept", 3, spk_epoch_now(), false);
        add(known, "until_write", 4, spk_epoch_now(), true);
        spk_epoch_written();
        assert_int_equal(has(known, "kept", 3), !(until & SPK_UNTIL_WRITE));
        assert_false(has(known, "until_write", 4));
        add(known, "kept", 5, spk_epoch_now(), false);
        fake_clock_pass(1e6 * (rules[m].seconds > 0 ? rules[m].seconds : 1e6) - 10);
        assert_true(has(known, "kept", 5));
        fake_clock_pass(20);
        assert_int_equal(has(known, "kept", 5), rules[m].seconds == 0);
        spk_known_release(&known);
        assert_null(known);
    }
    fake_clock_end();
}

/* What is written between the question and its answer ends the answer. */
static void an_epoch_that_passed_meanwhile(void **unused)
{
    (void)unused;
    spk_known *known = made_of(SPK_KNOWN_DECISIONS, NULL);
    const spk_epoch before = spk_epoch_now();
    spk_epoch_written();
    add(known, "late", 1, before, false);
    assert_false(has(known, "late", 1));
    spk_known_release(&known);
}

static void replaces_drops_and_forgets(void **unused)
{
    (void)unused;
    spk_known *known = made_of(SPK_KNOWN_PLANS, NULL);
    add(known, "a", 1, spk_epoch_now(), false);
    add(known, "a", 2, spk_epoch_now(), false);
    add(known, "b", 3, spk_epoch_now(), false);
    assert_true(has(known, "a", 2) && has(known, "b", 3));
    int wide[2];
    assert_false(spk_known_find(known, "a", 1, wide, sizeof wide)); /* another kind of value */
    spk_known_drop(known, "a", 1);
    spk_known_drop(known, "a", 1);
    assert_true(!has(known, "a", 2) && has(known, "b", 3));
    spk_known_forget(known);
    assert_false(has(known, "b", 3));
    assert_true(spk_known_first(known, "c", 1) && !spk_known_first(known, "c", 1) && spk_known_find(known, "c", 1, NULL, 0));
    spk_known_release(&known);
}

/* The newest are there, and never more than the row says; each value is released as often as it was held. */
static int held;

static void hold(void *value)
{
    (void)value;
    held++;
}

static void release(void *value)
{
    (void)value;
    held--;
}

static void keeps_the_newest(void **unused)
{
    (void)unused;
    enum { MOST = 512, ALL = 5000 };
    const spk_known_calls calls = {hold, release};
    spk_known *known = made_of(SPK_KNOWN_PLANS, &calls);
    char key[64];
    for (int i = 0; i < ALL; i++) {
        snprintf(key, sizeof key, "%*d", 1 + i % 50, i); /* of all lengths, in words and beyond */
        add(known, key, i, spk_epoch_now(), false);
        assert_true(held <= MOST + 1);
        for (int back = 0; back < MOST / 2 && back <= i; back += 37) {
            snprintf(key, sizeof key, "%*d", 1 + (i - back) % 50, i - back);
            assert_true(has(known, key, i - back));
            held--; /* which the finding held */
        }
    }
    spk_known_release(&known);
    assert_int_equal(held, 0);
}

static bool begins_with(const void *key, const void *what)
{
    return *(const char *)key == *(const char *)what;
}

static void drops_what_matches(void **unused)
{
    (void)unused;
    const spk_known_calls calls = {hold, release};
    spk_known *known = made_of(SPK_KNOWN_QUESTIONS, &calls);
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%c%d", i % 2 == 0 ? 'x' : 'y', i);
        add(known, key, i, spk_epoch_now(), false);
    }
    spk_known_drop_where(known, begins_with, "x");
    assert_int_equal(held, 50);
    assert_false(has(known, "x2", 2));
    assert_true(has(known, "y3", 3));
    held--;
    spk_known_release(&known);
    assert_int_equal(held, 0);
}

/* Without memory nothing is remembered, and nothing lost. */
static void without_memory(void **unused)
{
    (void)unused;
    const spk_known_calls calls = {hold, release};
    spk_known *known = made_of(SPK_KNOWN_PLANS, &calls);
    add(known, "a", 1, spk_epoch_now(), false);
    spk_mem_fail_after(0);
    add(known, "b", 2, spk_epoch_now(), false);
    const bool first = spk_known_first(known, "c", 1);
    spk_mem_fail_after(-1);
    assert_true(first && has(known, "a", 1) && !has(known, "b", 2) && spk_known_first(known, "c", 1));
    held--;
    spk_known_release(&known);
    assert_int_equal(held, 0);
}

/* ------------------------------------------------------------------------------------------------ threads and forks */

enum { THREADS = 4, ROUNDS = 3000 };

static void *use(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint64_t key = state >> 33 & 63;
        uint64_t value = 0;
        if (spk_known_find(spk_known_of_process(SPK_KNOWN_SECOND), &key, sizeof key, &value, sizeof value))
            assert_true(value == key * 3);
        value = key * 3;
        if (state >> 60 == 0)
            spk_known_drop(spk_known_of_process(SPK_KNOWN_SECOND), &key, sizeof key);
        else
            spk_known_add(spk_known_of_process(SPK_KNOWN_SECOND), &key, sizeof key, &value, sizeof value, spk_epoch_now(), false);
        spk_known_first(spk_known_of_process(SPK_KNOWN_TOLD), &key, sizeof key);
    }
    return NULL;
}

static void by_several_threads(void **unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)(i + 1)), 0);
    for (int i = 0; i < 20; i++) { /* a child finds no lock of a thread that it does not have */
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(600);
            uint64_t key = 0, value = 0;
            for (; key < 64; key++) /* allocates nothing: an allocator of a sanitizer is not safe across fork */
                spk_known_find(spk_known_of_process(SPK_KNOWN_SECOND), &key, sizeof key, &value, sizeof value);
            raise(SIGKILL); /* what its parent's threads had in hand is lost to it: no leak */
        }
        int status = -1;
        assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    spk_known_forget(spk_known_of_process(SPK_KNOWN_SECOND));
    spk_known_forget(spk_known_of_process(SPK_KNOWN_TOLD));
}

static void origins_have_words(void **unused)
{
    (void)unused;
    for (int i = 0; i < SPK_ORIGINS; i++)
        assert_non_null(spk_origin_words((spk_origin)i));
    assert_string_equal(spk_origin_words(SPK_ORIGIN_UNPROVED), "pinned, not proved");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_by_its_rule),           cmocka_unit_test(an_epoch_that_passed_meanwhile),
        cmocka_unit_test(replaces_drops_and_forgets), cmocka_unit_test(keeps_the_newest),
        cmocka_unit_test(drops_what_matches),         cmocka_unit_test(without_memory),
        cmocka_unit_test(by_several_threads),         cmocka_unit_test(origins_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The queue of the rows on AMX: whoever takes units, in turn or one thread after another, each unit of each slice is taken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels/tiles/strip_queue.h"
#include "base/rng.h"

enum { MOST_SLICES = 9, MOST_UNITS = 17, MOST_THREADS = 20 };

static int taken[MOST_SLICES][MOST_UNITS];

static void note(const strip_place *place)
{
    taken[place->slice][place->unit]++;
}

/* Threads that take a unit each in random order, `at_once` of them; the others come when these have left. */
static void take_all(strip_queue *queue, int threads, int at_once, spk_rng *rng)
{
    strip_place places[MOST_THREADS];
    bool busy[MOST_THREADS];
    for (int i = 0; i < threads; i++) {
        places[i] = (strip_place){.first = (int64_t)i * queue->slices / threads, .slice = -1};
        busy[i] = true;
    }
    for (int begin = 0; begin < threads; begin += at_once) {
        const int end = begin + at_once < threads ? begin + at_once : threads;
        for (int left = end - begin; left > 0;) {
            const int i = begin + (int)spk_rng_below(rng, (uint64_t)(end - begin));
            if (!busy[i])
                continue;
            busy[i] = strip_take(queue, &places[i]);
            if (busy[i])
                note(&places[i]);
            else
                left--;
        }
    }
}

static void test_each_once(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 20261126);
    for (int trial = 0; trial < 2000; trial++) {
        strip_counter counters[MOST_SLICES];
        strip_queue queue = {.slices = 1 + (int64_t)spk_rng_below(&rng, MOST_SLICES),
                             .units = (int64_t)spk_rng_below(&rng, MOST_UNITS + 1),
                             .counters = counters,
                             .free_to_leave = trial % 2 == 0};
        const int threads = 1 + (int)spk_rng_below(&rng, MOST_THREADS);
        memset(taken, 0, sizeof taken);
        strip_open(&queue);
        take_all(&queue, threads, 1 + (int)spk_rng_below(&rng, (uint64_t)threads), &rng);
        for (int64_t slice = 0; slice < MOST_SLICES; slice++)
            for (int64_t unit = 0; unit < MOST_UNITS; unit++)
                assert_int_equal(taken[slice][unit], slice < queue.slices && unit < queue.units);
    }
}

/* Slices cover all panels, none wider than asked for. */
static void test_slices(void **state)
{
    (void)state;
    for (int64_t panels = 0; panels < 40; panels++)
        for (int64_t columns = 32; columns <= 512; columns *= 2) {
            const int64_t slices = strip_slices(panels, columns);
            int64_t end = 0;
            assert_true(slices >= 1);
            for (int64_t i = 0; i < slices; i++) {
                const strip_range part = strip_part(panels, i, slices);
                assert_int_equal(part.begin, end);
                assert_true(part.end - part.begin <= columns / 32);
                end = part.end;
            }
            assert_int_equal(end, panels);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_slices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

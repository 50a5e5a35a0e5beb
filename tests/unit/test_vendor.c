/* The vendor rows: every row that says it can compute a problem does so, in one thread or many, also in a child of fork(). */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "kernel/threads.h"
#include "registry/registry.h"
#include "unit/vendor_trial.h"

static const char *const rows[] = {"openblas_blocks", "openblas_dense", "blis_blocks",  "blis_dense",    "mkl_bsr",
                                   "mkl_blocks",      "mkl_dense",      "onednn_dense", "libxsmm_blocks"};
enum { ROWS = sizeof rows / sizeof rows[0], CASES = 250, ENOUGH_US = 40000000 };

static void rows_compute_what_they_claim(void **state)
{
    (void)state;
    spk_threads_for_any_work = true; /* the problems are small */
    spk_device *devices[] = {open_device(1), open_device(3)};
    int64_t checked[ROWS] = {0};
    const char *seed_text = getenv("SPARSEK_TEST_SEED");
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 10) : 20261121;
    int cases = seed_text != NULL ? 1 : CASES;
    double start = spk_now_us();
    int (*threads)(void) = NULL; /* of OpenMP, for this thread: as they were after each run */
    void (*set_threads)(int) = NULL;
    *(void **)&threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    const int threads_at_first = threads != NULL ? threads() : 0;
    for (int i = 0; i < cases; i++) {
        if (spk_now_us() - start > ENOUGH_US)
            cases = 1; /* a tool that slows everything: fewer problems */
        trial t;
        trial_make(&t, seed + (uint64_t)i, (seed + (uint64_t)i) % 3 == 0);
        if (set_threads != NULL) /* the program's own wish, which is no library's number */
            set_threads(i % 2 == 0 ? 1 : 5);
        const int threads_before = threads != NULL ? threads() : 0;
        for (int r = 0; r < ROWS; r++) {
            const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
            assert_non_null(kernel);
            int candidate = (int)pick(&t.rng, 0, spk_params_count(kernel) - 1);
            spk_device *device = devices[pick(&t.rng, 0, 1)];
            spk_params params;
            const char *why = NULL;
            spk_params_get(kernel, candidate, &params);
            if (device == devices[0] && spk_is_serial(kernel, &params)) /* one thread: SERIAL=0 is all there is */
                spk_params_get(kernel, 0, &params);
            if (spk_candidate_applicable(kernel, &params, &t.problem, device, &why)) {
                assert_null(why);
                check_candidate(&t, kernel, &params, device);
                assert_int_equal(threads != NULL ? threads() : 0, threads_before);
                checked[r]++;
            } else {
                assert_non_null(why);
            }
        }
        trial_free(&t);
    }
    if (set_threads != NULL)
        set_threads(threads_at_first);
    for (int r = 0; r < ROWS; r++) {
        const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
        if (!spk_library_found(devices[0], kernel->library))
            print_message("%s: no %s here, not run\n", rows[r], kernel->library);
        else if (cases > 1)
            assert_true(checked[r] >= (strcmp(rows[r], "mkl_bsr") == 0 ? CASES / 10 : CASES / 3));
    }
    spk_backend_cpu.close(&devices[0]);
    spk_backend_cpu.close(&devices[1]);
}

static void allocation_failures_are_errors(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    for (int r = 0; r < ROWS; r++) {
        const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
        trial t;
        const char *why = NULL;
        spk_params params;
        spk_params_get(kernel, 0, &params);
        uint64_t seed = 1;
        for (trial_make(&t, seed, false); !spk_candidate_applicable(kernel, &params, &t.problem, device, &why) && seed < 200;
             trial_make(&t, ++seed, false))
            trial_free(&t);
        spk_bound bound;
        spk_status status = SPK_ERR_UNAVAILABLE;
        for (int left = 0; seed < 200 && left < 20; left++) {
            spk_mem_fail_after(left);
            status = spk_bind(kernel, &params, &t.problem, device, &bound);
            spk_mem_fail_after(-1);
            if (status == SPK_OK) {
                assert_true(left > 0);
                spk_unbind(&bound);
                break;
            }
            assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        }
        assert_true(status == SPK_OK || seed == 200);
        trial_free(&t);
    }
    spk_backend_cpu.close(&device);
}

static void static_rows_want_values_first(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    for (int r = 0; r < ROWS; r++) {
        const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
        if (kernel->ops->update_values == NULL)
            continue;
        spk_params params;
        spk_params_get(kernel, 0, &params);
        for (uint64_t seed = 1; seed < 40; seed++) {
            trial t;
            const char *why = NULL;
            spk_bound bound;
            trial_make(&t, seed, true);
            if (t.problem.static_values && spk_candidate_applicable(kernel, &params, &t.problem, device, &why)) {
                assert_int_equal(spk_bind(kernel, &params, &t.problem, device, &bound), SPK_OK);
                spk_args args = {.a = t.values, .b = t.b, .d = t.c, .alpha = 1};
                assert_int_equal(spk_bound_run(&bound, &args, NULL), SPK_ERR_ARGUMENT);
                spk_unbind(&bound);
            }
            trial_free(&t);
        }
    }
    spk_backend_cpu.close(&device);
}

/* Every row bound once and run by four threads at a time, each with its workspace; OpenBLAS' and BLIS' two rows want different numbers of
 * threads. */
enum { CALLERS = 4, RUNS = 6 };

typedef struct caller {
    const trial *t;
    const spk_bound *bounds;
    int count, first;
    bool right;
} caller;

static void *call_rows(void *arg)
{
    caller *call = arg;
    const trial *t = call->t;
    const spk_problem *p = &t->problem;
    call->right = true;
    for (int run = 0; run < RUNS * call->count; run++) {
        const spk_bound *bound = &call->bounds[(run + call->first) % call->count];
        double *d = malloc((size_t)(p->m * p->n) * sizeof *d);
        void *workspace = aligned_alloc(64, (bound->workspace_bytes + 127) / 64 * 64);
        spk_args args = {
            .a = t->values, .b = t->b, .d = d, .alpha = t->alpha, .workspace = workspace, .workspace_bytes = bound->workspace_bytes};
        call->right = call->right && d != NULL && workspace != NULL && spk_bound_run(bound, &args, NULL) == SPK_OK;
        for (int64_t i = 0; call->right && i < p->m * p->n; i++)
            call->right = fabs(d[i] - t->want[i]) <= spk_problem_tolerance(p, SPK_D) * t->magnitude[i];
        free(workspace);
        free(d);
    }
    return NULL;
}

static void rows_run_in_many_threads_at_once(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    trial t;
    trial_make_simple(&t, 11);
    assert_true(t.pattern->nnzb > 3);
    for (int promise = 0; promise < 2; promise++) {
        spk_bound bounds[ROWS];
        int count = 0;
        t.problem.static_values = promise == 1;
        for (int r = 0; r < ROWS; r++) {
            const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
            spk_params params;
            const char *why = NULL;
            spk_params_get(kernel, 0, &params);
            if (!spk_candidate_applicable(kernel, &params, &t.problem, device, &why))
                continue;
            assert_int_equal(spk_bind(kernel, &params, &t.problem, device, &bounds[count]), SPK_OK);
            if (t.problem.static_values && kernel->ops->update_values != NULL)
                assert_int_equal(spk_bound_update_values(&bounds[count], t.values), SPK_OK);
            count++;
        }
        pthread_t threads[CALLERS];
        caller callers[CALLERS];
        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (caller){.t = &t, .bounds = bounds, .count = count, .first = i};
            assert_int_equal(pthread_create(&threads[i], NULL, call_rows, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_true(callers[i].right);
        }
        for (int i = 0; i < count; i++)
            spk_unbind(&bounds[i]);
    }
    trial_free(&t);
    spk_backend_cpu.close(&device);
}

/* A child of fork() finds, opens and multiplies, whatever the parent had running. */
static void a_forked_child_multiplies(void **state)
{
    (void)state;
    spk_device *device = open_device(3);
    for (int r = 0; r < ROWS; r++) {
        const spk_kernel *kernel = spk_kernel_by_name(rows[r]);
        spk_params params;
        const char *why = NULL;
        trial t;
        spk_params_get(kernel, 0, &params);
        uint64_t seed = 1;
        for (trial_make(&t, seed, false); !spk_candidate_applicable(kernel, &params, &t.problem, device, &why) && seed < 200;
             trial_make(&t, ++seed, false))
            trial_free(&t);
        if (seed < 200) {
            check_candidate(&t, kernel, &params, device);
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                alarm(600);
                check_candidate(&t, kernel, &params, device);
                trial_free(&t);
                spk_backend_cpu.close(&device);
                _exit(0);
            }
            int status = -1;
            assert_int_equal(waitpid(child, &status, 0), child);
            if (status != 0)
                fail_msg("%s: the child ended with %d", kernel->name, status);
        }
        trial_free(&t);
    }
    spk_backend_cpu.close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_compute_what_they_claim),  cmocka_unit_test(allocation_failures_are_errors),
        cmocka_unit_test(static_rows_want_values_first), cmocka_unit_test(rows_run_in_many_threads_at_once),
        cmocka_unit_test(a_forked_child_multiplies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

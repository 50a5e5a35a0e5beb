/* Runs tasks on host threads: the caller's parallel-for, OpenMP, or where the build has no OpenMP a pool of POSIX threads. */
#ifdef SPK_HAVE_OPENMP
#include <omp.h>
#endif
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/executor.h"
#include "base/load.h"
#include "base/pool.h"
#include "base/threads.h"

/* Neither libgomp's pool of threads nor base/pool.h's survives fork(): a child whose parent had used it would wait for ever. Such a child
 * runs serially. */
static atomic_int pool_used, in_forked_child;

static void note_fork(void)
{
    if (atomic_load(&pool_used))
        atomic_store(&in_forked_child, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

static void note_pool_use(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!atomic_load_explicit(&pool_used, memory_order_relaxed)) {
        pthread_once(&once, watch_forks);
        atomic_store(&pool_used, 1);
    }
}

static void run_serially(int64_t tasks, spk_parallel_body body, void *arg)
{
    for (int64_t task = 0; task < tasks; task++)
        body(arg, task);
}

/* libgomp gives each thread that calls it a team of its own, as large as its last region, and ends the process where it cannot start one.
 * So a larger team than the calling thread has is tried first, and made at once; after a failure again a second later. */
static _Thread_local int team;
static _Thread_local double refused_us;

/* Where the calling thread wants to know what its regions lost. */
static _Thread_local spk_preempted *noting;

/* A region of `threads` threads on OpenMP's, on the pool's or, through the executor's parallel-for, on the caller's. */
typedef struct region {
    spk_crew crew;
    const char *caller; /* the calling thread, as an address of its own */
    double begin_us, caller_end_us;
} region;

static _Thread_local char this_thread;

static void begin_region(region *r, int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    spk_crew_make(&r->crew, threads, tasks, body, arg, noting);
    r->caller = &this_thread;
    r->begin_us = r->caller_end_us = spk_now_us();
}

static void work_in(void *region_pointer, int thread)
{
    region *r = region_pointer;
    spk_crew_work(&r->crew, thread);
    if (r->caller == &this_thread)
        r->caller_end_us = spk_now_us();
}

static void work_in_task(void *region_pointer, int64_t task)
{
    work_in(region_pointer, (int)task);
}

/* ------------------------------------------------------------------------------------------------ beside other programs */

/* All threads of a region must come to its end. One whose processor another program has comes milliseconds later, whatever is left to do.
 * Where that has happened twice in a short time, and the system says that others run, only so many threads take part as have a processor
 * each, for a while; without OpenMP, which would end threads and start them again. */
static const double late_us = 150, late_share = 0.5; /* later than the caller, and of its own time */
static const double twice_within_us = 50e3, crowded_us = 100e3;

static _Atomic double late_at_us, crowded_until_us;
static atomic_int left_now, steady;
static int (*_Atomic left_of)(int threads);

int spk_executor_left(int threads)
{
    int (*ask)(int) = atomic_load(&left_of);
    return ask != NULL ? ask(threads) : spk_load_left(threads);
}

static int ask_left(int threads)
{
    const int left = spk_executor_left(threads);
    atomic_store(&left_now, left);
    atomic_store(&crowded_until_us, left < threads ? spk_now_us() + crowded_us : 0);
    return left;
}

/* How many threads take part now. */
static int threads_left(int threads)
{
    const double until_us = atomic_load_explicit(&crowded_until_us, memory_order_relaxed);
    if (until_us == 0 || atomic_load_explicit(&steady, memory_order_relaxed) > 0)
        return threads;
    const int left = spk_now_us() < until_us ? atomic_load(&left_now) : ask_left(threads);
    return left < threads ? left : threads;
}

static void end_region(region *r)
{
    spk_crew_end(&r->crew);
    const double now_us = spk_now_us(), late = now_us - r->caller_end_us;
    if (late < late_us || late < late_share * (r->caller_end_us - r->begin_us) || atomic_load_explicit(&steady, memory_order_relaxed) > 0)
        return;
    if (now_us - atomic_exchange(&late_at_us, now_us) < twice_within_us)
        (void)ask_left(r->crew.threads);
}

void spk_executor_steady(bool on)
{
    atomic_fetch_add(&steady, on ? 1 : -1);
}

void spk_executor_ask(int (*left)(int threads))
{
    atomic_store(&left_of, left);
    atomic_store(&crowded_until_us, 0);
    atomic_store(&late_at_us, 0);
}

/* ------------------------------------------------------------------------------------------------ regions */

static void run_lent(const spk_executor *executor, int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    region r;
    begin_region(&r, threads, tasks, body, arg);
    executor->parallel_for(executor->user, threads, work_in_task, &r);
    end_region(&r);
}

static void run_kept(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    region r;
    begin_region(&r, threads, tasks, body, arg);
    spk_pool_run(threads, work_in, &r);
    end_region(&r);
}

#ifdef SPK_HAVE_OPENMP

static void run_region(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    region r;
    begin_region(&r, threads, tasks, body, arg);
#pragma omp parallel num_threads(threads)
    work_in(&r, omp_get_thread_num());
    end_region(&r);
}

#else

static void run_region(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    run_kept(threads, tasks, body, arg);
}

#endif

static void run_in_parallel(const spk_executor *executor, int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    const int left = threads_left(threads);
    if (left <= 1)
        run_serially(tasks, body, arg);
    else if (executor->parallel_for != NULL)
        run_lent(executor, left, tasks, body, arg);
    else if (left < threads)
        run_kept(left, tasks, body, arg);
    else
        run_region(threads, tasks, body, arg);
}

void spk_executor_note(spk_preempted *note)
{
    noting = note;
}

static void no_work(void *arg, int64_t task)
{
    (void)arg, (void)task;
}

static bool has_team(int threads)
{
    static const double patience_us = 1e6;
    if (threads <= team)
        return true;
    if (refused_us > 0 && spk_now_us() - refused_us < patience_us)
        return false;
    if (!spk_threads_startable(threads - 1)) {
        refused_us = spk_now_us();
        return false;
    }
    note_pool_use();
    team = threads;
    run_region(threads, threads, no_work, NULL);
    return true;
}

/* The pool does with fewer threads than it is asked for, and those that it keeps would count against a trial. */
static bool may_have_team(int threads)
{
#ifdef SPK_HAVE_OPENMP
    return has_team(threads);
#else
    (void)threads;
    note_pool_use();
    return true;
#endif
}

void spk_execute(const spk_executor *executor, int64_t tasks, spk_parallel_body body, void *arg)
{
    const int threads = executor->threads < tasks ? executor->threads : (int)tasks;
    if (threads <= 1)
        run_serially(tasks, body, arg);
    else if (executor->parallel_for != NULL)
        run_in_parallel(executor, threads, tasks, body, arg);
    else if (atomic_load_explicit(&in_forked_child, memory_order_relaxed) || !may_have_team(threads))
        run_serially(tasks, body, arg);
    else /* libgomp ends the threads that a smaller region leaves out and starts them again for a larger one: all that there are take
            part */
        run_in_parallel(executor, team > 0 && team < executor->threads ? team : executor->threads, tasks, body, arg);
}

bool spk_executor_usable(const spk_executor *executor)
{
    return executor->parallel_for != NULL || executor->threads <= 1 || executor->threads <= team ||
           spk_threads_startable(executor->threads - 1);
}

int spk_executor_library_threads(const spk_executor *executor)
{
    if (executor->threads <= 1 || atomic_load_explicit(&in_forked_child, memory_order_relaxed) || !has_team(executor->threads))
        return 1;
    return executor->threads;
}

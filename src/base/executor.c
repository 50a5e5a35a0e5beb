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

/* A thread begins with a share of its own, the same in each call, so that what it read and wrote before may still be in its cache; then it
 * takes what others have not begun. */
enum { MOST_SHARES = 256 };

typedef struct share {
    _Alignas(64) atomic_int_fast64_t next;
    int64_t end;
} share;

typedef struct crew {
    share shares[MOST_SHARES];
    int count;
    spk_parallel_body body;
    void *arg;
} crew;

static void share_out(crew *c, int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    c->count = threads < MOST_SHARES ? threads : MOST_SHARES;
    c->body = body;
    c->arg = arg;
    const int64_t size = tasks / c->count, rest = tasks % c->count;
    int64_t begin = 0;
    for (int i = 0; i < c->count; i++) {
        atomic_init(&c->shares[i].next, begin);
        begin += size + (i < rest);
        c->shares[i].end = begin;
    }
}

static void work(crew *c, int thread)
{
    for (int i = 0; i < c->count; i++) {
        share *s = &c->shares[(thread + i) % c->count];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end)
            continue;
        for (int64_t task = atomic_fetch_add(&s->next, 1); task < s->end; task = atomic_fetch_add(&s->next, 1))
            c->body(c->arg, task);
    }
}

static void work_of(void *crew_pointer, int thread)
{
    work(crew_pointer, thread);
}

static void run_kept(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    crew c;
    share_out(&c, threads, tasks, body, arg);
    spk_pool_run(threads, work_of, &c);
}

#ifdef SPK_HAVE_OPENMP

/* ------------------------------------------------------------------------------------------------ beside other programs */

/* All threads of a region must come to its end. One whose processor another program has comes milliseconds later, whatever is left to do.
 * Where that has happened twice in a short time, and the system says that others run, only so many threads take part as have a processor
 * each, for a while; without OpenMP, which would end threads and start them again. */
static const double late_us = 150, late_share = 0.5; /* later than the caller, and of its own time */
static const double twice_within_us = 50e3, crowded_us = 100e3;

static _Atomic double late_at_us, crowded_until_us;
static atomic_int left_now, steady;
static int (*_Atomic left_of)(int threads);

static int ask_left(int threads)
{
    int (*ask)(int) = atomic_load(&left_of);
    const int left = ask != NULL ? ask(threads) : spk_load_left(threads);
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

static void note_end(int threads, double begin_us, double own_end_us)
{
    const double now_us = spk_now_us(), late = now_us - own_end_us;
    if (late < late_us || late < late_share * (own_end_us - begin_us) || atomic_load_explicit(&steady, memory_order_relaxed) > 0)
        return;
    if (now_us - atomic_exchange(&late_at_us, now_us) < twice_within_us)
        (void)ask_left(threads);
}

static void run_region(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    crew c;
    share_out(&c, threads, tasks, body, arg);
    const double begin_us = spk_now_us();
    double own_end_us = begin_us;
#pragma omp parallel num_threads(threads)
    {
        work(&c, omp_get_thread_num());
        if (omp_get_thread_num() == 0)
            own_end_us = spk_now_us();
    }
    note_end(threads, begin_us, own_end_us);
}

static void run_pool(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    const int left = threads_left(threads);
    if (left >= threads)
        run_region(threads, tasks, body, arg);
    else if (left > 1)
        run_kept(left, tasks, body, arg);
    else
        run_serially(tasks, body, arg);
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

#else

static void run_region(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    run_kept(threads, tasks, body, arg);
}

static void run_pool(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    run_region(threads, tasks, body, arg);
}

void spk_executor_steady(bool on)
{
    (void)on;
}

void spk_executor_ask(int (*left)(int threads))
{
    (void)left;
}

#endif

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
        executor->parallel_for(executor->user, tasks, body, arg);
    else if (atomic_load_explicit(&in_forked_child, memory_order_relaxed) || !may_have_team(threads))
        run_serially(tasks, body, arg);
    else /* libgomp ends the threads that a smaller region leaves out and starts them again for a larger one: all that there are take
            part */
        run_pool(team > 0 && team < executor->threads ? team : executor->threads, tasks, body, arg);
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

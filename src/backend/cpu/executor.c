/* Runs tasks on host threads: the caller's parallel-for, OpenMP, or POSIX threads made for the call where the build has no OpenMP. */
#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"

/* libgomp's pool of threads does not survive fork(): a child whose parent had used it would wait for ever. Such a child runs serially. */
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

#ifdef SPK_HAVE_OPENMP

static void run_pool(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++)
        body(arg, task);
}

#else

typedef struct crew {
    atomic_int_fast64_t next;
    int64_t tasks;
    spk_parallel_body body;
    void *arg;
} crew;

static void *work(void *crew_pointer)
{
    crew *c = crew_pointer;
    for (int64_t task = atomic_fetch_add(&c->next, 1); task < c->tasks; task = atomic_fetch_add(&c->next, 1))
        c->body(c->arg, task);
    return NULL;
}

static void run_pool(int threads, int64_t tasks, spk_parallel_body body, void *arg)
{
    enum { MOST = 64 };
    crew c = {.tasks = tasks, .body = body, .arg = arg};
    pthread_t helpers[MOST];
    int started = 0;
    while (started < threads - 1 && started < MOST && pthread_create(&helpers[started], NULL, work, &c) == 0)
        started++;
    work(&c);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
}

#endif

void spk_execute(const spk_executor *executor, int64_t tasks, spk_parallel_body body, void *arg)
{
    int threads = executor->threads < tasks ? executor->threads : (int)tasks;
    if (threads <= 1) {
        run_serially(tasks, body, arg);
    } else if (executor->parallel_for != NULL) {
        executor->parallel_for(executor->user, tasks, body, arg);
    } else if (atomic_load_explicit(&in_forked_child, memory_order_relaxed)) {
        run_serially(tasks, body, arg);
    } else {
        note_pool_use();
        run_pool(threads, tasks, body, arg);
    }
}

int spk_executor_library_threads(const spk_executor *executor)
{
    if (executor->threads <= 1 || atomic_load_explicit(&in_forked_child, memory_order_relaxed))
        return 1;
    note_pool_use();
    return executor->threads;
}

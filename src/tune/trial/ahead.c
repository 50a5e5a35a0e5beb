/* Each job has a thread of its own. All jobs stand in one list of the process: who closes a device waits for those on it, and the end of
 * the process for all, as a compiler must not lose its memory under a running thread. */
#include "tune/trial/ahead.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "tune/search/search.h"
#include "tune/trial/trial.h"

enum { STACK_BYTES = 16 << 20, LEAST_PRIORITY = 19, WRONG_BYTES = 240 };
static const double check_us = 30e3;      /* for the oracle's numbers, of all candidates together */
static const double compared_bytes = 1e9; /* of operands: of a larger problem a part is compared */

struct spk_ahead {
    spk_ahead *next;
    spk_mem mem;
    spk_device *device;
    spk_problem problem;
    spk_pattern *pattern; /* its own reference */
    double tolerance;
    spk_prepared *list;
    char (*wrong)[WRONG_BYTES];
    int count;
    struct spk_watch *watch;
    atomic_int interrupted, done;
    bool wanted; /* somebody waits for the outcome */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, wanted, and the end of a job */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static spk_ahead *running;

/* ------------------------------------------------------------------------------------------------ the process */

static void wait_for_all(void)
{
    spk_ahead_wait(NULL);
}

/* A child of fork() has none of the threads. */
static void forget_all(void)
{
    pthread_cond_init(&ended, NULL);
    running = NULL;
    pthread_mutex_unlock(&lock); /* the forking thread took it before */
}

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

/* When the library is loaded, so before whoever uses it: handlers run in reverse order before a fork, and a user's lock, under which it
 * calls the library, must be taken before the library's own. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(take_lock, give_lock, forget_all);
}

static void watch_exit(void)
{
    atexit(wait_for_all);
}

/* ------------------------------------------------------------------------------------------------ one job */

static void release(spk_ahead *a)
{
    const spk_mem mem = a->mem;
    if (a->watch != NULL)
        a->device->backend->watch_release(a->device, &a->watch);
    spk_pattern_release(&a->pattern);
    spk_free(&mem, a->list);
    spk_free(&mem, a->wrong);
    spk_free(&mem, a);
}

/* Under the lock. */
static void leave_list(const spk_ahead *a)
{
    spk_ahead **link = &running;
    while (*link != NULL && *link != a)
        link = &(*link)->next;
    if (*link != NULL)
        *link = a->next;
}

/* A proof says that a program does no harm, not that its numbers are right. Alone on the device's own stream, as a tuning is: what another
 * thread puts there may be recorded into a graph. Where there is no memory for it nothing is compared. */
static void compare_all(spk_ahead *a)
{
    const spk_tuner tuner = {.mem = &a->mem, .device = a->device, .stop = {.all = &a->interrupted}};
    const bool held = spk_measuring_begin(&tuner, INFINITY);
    if (!held)
        return; /* interrupted */
    spk_problem problem = a->problem;
    spk_operand_memory memory = {.limit_us = 0};
    spk_stage *stage = NULL;
    problem.cache = SPK_WARM; /* one set of operands */
    const spk_level level = spk_level_for(&tuner, &problem, compared_bytes / fmax((double)spk_operands_set_bytes(&problem), 1));
    if (spk_stage_make(&tuner, &problem, level, (uint64_t)spk_now_us(), check_us, &memory, &stage) == SPK_OK)
        for (int i = 0; i < a->count && atomic_load(&a->interrupted) == 0; i++)
            if (a->list[i].status == SPK_OK)
                (void)spk_trial_finds_wrong(stage, a->list[i].kernel, &a->list[i].params, a->tolerance, a->wrong[i], WRONG_BYTES);
    spk_stage_release(&stage);
    spk_operand_memory_release(a->device, &memory);
    spk_measuring_end(held);
}

static void *work(void *job)
{
    spk_ahead *a = job;
    const spk_backend *backend = a->device->backend;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LEAST_PRIORITY); /* of this thread, and of all that it starts */
    if (backend->captures_spare != NULL)
        (void)backend->captures_spare(a->device); /* for as long as the thread lives */
    const spk_status status = backend->prepare(a->device, &a->problem, a->list, a->count, &(spk_stop){.all = &a->interrupted});
    for (int i = 0; status != SPK_OK && i < a->count; i++)
        a->list[i].status = status;
    if (atomic_load(&a->interrupted) == 0)
        compare_all(a);
    if (atomic_load(&a->interrupted) == 0 && backend->watch_make != NULL && backend->watch_make(a->device, &a->watch) != SPK_OK)
        a->watch = NULL;
    pthread_mutex_lock(&lock);
    leave_list(a);
    if (a->wanted)
        atomic_store(&a->done, 1);
    else
        release(a);
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static spk_status start(spk_ahead *a)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&lock);
    const int error = pthread_create(&thread, &attributes, work, a);
    if (error == 0) {
        a->next = running;
        running = a;
    }
    pthread_mutex_unlock(&lock);
    pthread_attr_destroy(&attributes);
    return error == 0 ? SPK_OK : spk_fail(SPK_ERR_UNAVAILABLE, "a thread that compiles could not be started");
}

spk_status spk_ahead_begin(const spk_tuner *tuner, const spk_problem *problem, double tolerance, const spk_prepared *list, int count,
                           spk_ahead **ahead)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    spk_ahead *made = NULL;
    spk_status status;
    pthread_once(&once, watch_exit);
    SPK_TRY(spk_calloc(tuner->mem, 1, sizeof *made, &made));
    made->mem = *tuner->mem;
    made->device = tuner->device;
    made->problem = *problem;
    made->tolerance = tolerance;
    made->count = count;
    made->wanted = true;
    if (problem->pattern != NULL)
        made->pattern = spk_pattern_share(problem->pattern);
    SPK_GOTO(spk_calloc(tuner->mem, (size_t)count + 1, sizeof *made->list, &made->list));
    SPK_GOTO(spk_calloc(tuner->mem, (size_t)count + 1, sizeof *made->wrong, &made->wrong));
    memcpy(made->list, list, (size_t)count * sizeof *list);
    SPK_GOTO(start(made));
    *ahead = made;
    return SPK_OK;
done:
    release(made);
    return status;
}

/* ------------------------------------------------------------------------------------------------ from outside */

bool spk_ahead_done(const spk_ahead *ahead)
{
    return atomic_load(&ahead->done) != 0;
}

const spk_prepared *spk_ahead_list(const spk_ahead *ahead)
{
    return ahead->list;
}

const char *spk_ahead_wrong(const spk_ahead *ahead, int entry)
{
    return ahead->wrong[entry];
}

struct spk_watch *spk_ahead_take_watch(spk_ahead *ahead)
{
    struct spk_watch *watch = ahead->watch;
    ahead->watch = NULL;
    return watch;
}

void spk_ahead_end(spk_ahead **ahead)
{
    spk_ahead *old = *ahead;
    *ahead = NULL;
    if (old == NULL)
        return;
    atomic_store(&old->interrupted, 1);
    pthread_mutex_lock(&lock);
    const bool done = spk_ahead_done(old);
    old->wanted = false;
    pthread_mutex_unlock(&lock);
    if (done)
        release(old);
}

/* Under the lock. */
static bool any_on(const spk_device *device, bool stop)
{
    bool any = false;
    for (spk_ahead *a = running; a != NULL; a = a->next)
        if (device == NULL || a->device == device) {
            if (stop)
                atomic_store(&a->interrupted, 1);
            any = true;
        }
    return any;
}

void spk_ahead_wait(const spk_device *device)
{
    pthread_mutex_lock(&lock);
    for (bool first = true; any_on(device, first); first = false)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

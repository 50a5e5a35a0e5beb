/* Kept threads wait for the number of a piece of work to change; the caller waits until none of those that take part works. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Of a thread that waits for work, and of the caller that waits for the threads: longer than waking takes, or both would fall asleep in
 * each call. */
static const double idle_us = 300, end_us = 2000;

typedef struct pool {
    pthread_mutex_t owner; /* of whoever has the threads work */
    int started;           /* the owner's */

    /* Rises with each piece of work. Its last bits are how many of the threads take part. */
    atomic_uint_fast64_t piece;
    atomic_int working; /* of these, that have not ended */
    void (*work)(void *arg, int thread);
    void *arg;

    pthread_mutex_t lock; /* of sleeping */
    pthread_cond_t begins, ends;
    atomic_bool spins; /* there is a processor for each */
} pool;

static pool kept = {.owner = PTHREAD_MUTEX_INITIALIZER,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .begins = PTHREAD_COND_INITIALIZER,
                    .ends = PTHREAD_COND_INITIALIZER};

enum { PIECE_COUNTS = 1 << 16 };

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : SPK_POOL_MOST; /* more than the set can name */
}

/* Whether it came while this thread waited busily. */
static bool spin_until_piece_after(uint_fast64_t seen)
{
    const double end = spk_now_us() + idle_us;
    do
        for (int i = 0; i < 64; i++, relax())
            if (atomic_load_explicit(&kept.piece, memory_order_acquire) != seen)
                return true;
    while (spk_now_us() < end);
    return false;
}

static uint_fast64_t piece_after(uint_fast64_t seen)
{
    if (!kept.spins || !spin_until_piece_after(seen)) {
        pthread_mutex_lock(&kept.lock);
        while (atomic_load(&kept.piece) == seen)
            pthread_cond_wait(&kept.begins, &kept.lock);
        pthread_mutex_unlock(&kept.lock);
    }
    return atomic_load(&kept.piece);
}

static void *keep(void *number)
{
    const int thread = (int)(intptr_t)number;
    for (uint_fast64_t seen = 0;;) { /* what came before this thread was started had no place for it */
        seen = piece_after(seen);
        if ((int)(seen % PIECE_COUNTS) < thread)
            continue;
        kept.work(kept.arg, thread);
        if (atomic_fetch_sub(&kept.working, 1) == 1) {
            pthread_mutex_lock(&kept.lock);
            pthread_cond_signal(&kept.ends);
            pthread_mutex_unlock(&kept.lock);
        }
    }
    return NULL;
}

static bool start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are not for these threads, but for their own faults */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(thread, NULL, main, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void wait_for_all(void)
{
    const double end = kept.spins ? spk_now_us() + end_us : 0;
    while (kept.spins && atomic_load(&kept.working) > 0 && spk_now_us() < end)
        relax();
    if (atomic_load(&kept.working) == 0)
        return;
    pthread_mutex_lock(&kept.lock);
    while (atomic_load(&kept.working) > 0)
        pthread_cond_wait(&kept.ends, &kept.lock);
    pthread_mutex_unlock(&kept.lock);
}

static void run_kept(int threads, void (*work)(void *arg, int thread), void *arg)
{
    for (pthread_t made; kept.started < threads - 1 && start(&made, keep, (void *)(intptr_t)(kept.started + 1));) {
        pthread_detach(made);
        kept.started++;
    }
    atomic_store(&kept.spins, kept.started < processors()); /* of now */
    const int others = kept.started < threads - 1 ? kept.started : threads - 1;
    kept.work = work;
    kept.arg = arg;
    atomic_store(&kept.working, others);
    pthread_mutex_lock(&kept.lock);
    const uint_fast64_t before = atomic_load(&kept.piece);
    atomic_store(&kept.piece, before - before % PIECE_COUNTS + PIECE_COUNTS + (uint_fast64_t)others);
    pthread_cond_broadcast(&kept.begins);
    pthread_mutex_unlock(&kept.lock);
    work(arg, 0);
    wait_for_all();
}

typedef struct helper {
    void (*work)(void *arg, int thread);
    void *arg;
    int thread;
    pthread_t made;
} helper;

static void *help(void *pointer)
{
    const helper *h = pointer;
    h->work(h->arg, h->thread);
    return NULL;
}

/* With threads of its own, for this once. */
static void run_alone(int threads, void (*work)(void *arg, int thread), void *arg)
{
    helper helpers[SPK_POOL_MOST];
    int started = 0;
    for (; started < threads - 1; started++) {
        helpers[started] = (helper){.work = work, .arg = arg, .thread = started + 1};
        if (!start(&helpers[started].made, help, &helpers[started]))
            break;
    }
    work(arg, 0);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i].made, NULL);
}

void spk_pool_run(int threads, void (*work)(void *arg, int thread), void *arg)
{
    if (threads > SPK_POOL_MOST)
        threads = SPK_POOL_MOST;
    if (pthread_mutex_trylock(&kept.owner) != 0) {
        run_alone(threads, work, arg);
        return;
    }
    run_kept(threads, work, arg);
    pthread_mutex_unlock(&kept.owner);
}

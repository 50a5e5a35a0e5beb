/* Numbered pieces of work, made by several threads and taken in order by one. */
#include "cli/base/ordered.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cli/base/memory.h"

enum { MOST_THREADS = 64, AHEAD = 4, STACK_BYTES = 16 << 20 }; /* pieces ahead of the one to be taken, for each thread; compilers recurse */

typedef struct slot {
    void *piece;
    bool done;
} slot;

typedef struct line {
    const ordered_work *work;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a piece is done, or was taken, or all shall stop */
    int64_t next, taken;    /* the next to be made, to be taken */
    int places, workers;
    atomic_bool stop;
    slot slots[MOST_THREADS * AHEAD];
} line;

static void *run_worker(void *arg)
{
    line *l = arg;
    const ordered_work *work = l->work;
    pthread_mutex_lock(&l->lock);
    const int worker = l->workers++;
    while (!l->stop && l->next < work->end) {
        if (l->next >= l->taken + l->places) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        const int64_t number = l->next++;
        pthread_mutex_unlock(&l->lock);
        void *piece = work->make(work->user, worker, number, &l->stop);
        pthread_mutex_lock(&l->lock);
        l->slots[number % l->places] = (slot){piece, true};
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Takes in order until all is taken or somebody wants no more; the lock is held. */
static void take_all(line *l)
{
    const ordered_work *work = l->work;
    bool more = true;
    while (more && l->taken < work->end && work->wanted(work->user)) {
        slot *first = &l->slots[l->taken % l->places];
        if (!first->done) { /* now and then asks whether it is still wanted */
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 50000000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            pthread_cond_timedwait(&l->changed, &l->lock, &until);
            continue;
        }
        void *piece = first->piece;
        *first = (slot){NULL, false};
        pthread_mutex_unlock(&l->lock);
        more = work->take(work->user, l->taken, piece);
        pthread_mutex_lock(&l->lock);
        l->taken++;
        pthread_cond_broadcast(&l->changed);
    }
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
}

static void run_alone(const ordered_work *work)
{
    const atomic_bool stop = false;
    for (int64_t number = work->begin; number < work->end && work->wanted(work->user); number++)
        if (!work->take(work->user, number, work->make(work->user, 0, number, &stop)))
            return;
}

static int start_threads(line *l, int wanted, pthread_t *ids)
{
    pthread_attr_t attributes;
    int begun = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (begun < wanted && pthread_create(&ids[begun], &attributes, run_worker, l) == 0)
        begun++;
    pthread_attr_destroy(&attributes);
    return begun;
}

void ordered_run(const ordered_work *work)
{
    pthread_t ids[MOST_THREADS];
    const int threads = work->threads < MOST_THREADS ? work->threads : MOST_THREADS;
    if (threads <= 1) {
        run_alone(work);
        return;
    }
    line *l = cli_alloc(1, sizeof(*l));
    l->work = work;
    l->next = l->taken = work->begin;
    l->places = threads * AHEAD;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    const int begun = start_threads(l, threads, ids);
    if (begun > 0) {
        pthread_mutex_lock(&l->lock);
        take_all(l);
        pthread_mutex_unlock(&l->lock);
        for (int i = 0; i < begun; i++)
            pthread_join(ids[i], NULL);
        for (int64_t number = l->taken; number < l->next; number++)
            work->drop(work->user, number, l->slots[number % l->places].piece);
    } else {
        run_alone(work);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

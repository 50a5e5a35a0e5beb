/* Only trying tells: the limits are several, and what other processes of the user hold counts towards them. */
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opens;
    bool open;
} gate;

typedef struct waiter {
    gate *at;
    pthread_t thread;
    pid_t number;
} waiter;

static void *wait_at(void *waiter_pointer)
{
    waiter *w = waiter_pointer;
    w->number = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&w->at->lock);
    while (!w->at->open)
        pthread_cond_wait(&w->at->opens, &w->at->lock);
    pthread_mutex_unlock(&w->at->lock);
    return NULL;
}

/* A joined thread still counts for the limits until the system has buried it: whoever starts threads next shall find room. */
static void wait_until_buried(pid_t number)
{
    enum { TRIES = 1000, PAUSE_NS = 20000 };
    for (int i = 0; i < TRIES && syscall(SYS_tgkill, getpid(), number, 0) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

bool spk_threads_startable(int count)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opens = PTHREAD_COND_INITIALIZER};
    waiter *waiters = NULL;
    sigset_t all, before;
    int started = 0;
    if (count <= 0)
        return true;
    if (spk_calloc(&spk_mem_system, (size_t)count, sizeof *waiters, &waiters) != SPK_OK)
        return false;
    sigfillset(&all); /* the program's signals are not for these threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < count; started++) {
        waiters[started].at = &g;
        if (pthread_create(&waiters[started].thread, NULL, wait_at, &waiters[started]) != 0)
            break;
    }
    pthread_mutex_lock(&g.lock);
    g.open = true;
    pthread_cond_broadcast(&g.opens);
    pthread_mutex_unlock(&g.lock);
    for (int i = 0; i < started; i++)
        pthread_join(waiters[i].thread, NULL);
    for (int i = 0; i < started; i++)
        wait_until_buried(waiters[i].number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    spk_free(&spk_mem_system, waiters);
    return started == count;
}

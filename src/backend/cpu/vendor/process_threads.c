/* A library whose number of threads belongs to the whole process: runs that want different numbers wait for each other. */
#include "backend/cpu/vendor/vendor.h"

static pthread_mutex_t list_guard = PTHREAD_MUTEX_INITIALIZER;
static spk_process_threads *all;

/* A child of fork() has one thread, which holds nothing of this. */
static void renew_guards(void)
{
    const pthread_mutex_t fresh_guard = PTHREAD_MUTEX_INITIALIZER;
    const pthread_cond_t fresh_idle = PTHREAD_COND_INITIALIZER;
    list_guard = fresh_guard;
    for (spk_process_threads *threads = all; threads != NULL; threads = threads->next) {
        threads->guard = fresh_guard;
        threads->idle = fresh_idle;
        threads->single_runs = 0;
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, renew_guards);
}

void spk_process_threads_watch(spk_process_threads *threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&list_guard);
    if (!threads->known) {
        threads->next = all;
        all = threads;
        threads->known = true;
    }
    pthread_mutex_unlock(&list_guard);
}

void spk_process_threads_lock(spk_process_threads *threads)
{
    pthread_mutex_lock(&threads->guard);
    while (threads->single_runs > 0)
        pthread_cond_wait(&threads->idle, &threads->guard);
}

void spk_process_threads_unlock(spk_process_threads *threads)
{
    pthread_mutex_unlock(&threads->guard);
}

void spk_process_threads_enter(spk_process_threads *threads, const void *library)
{
    pthread_mutex_lock(&threads->guard);
    if (threads->single_runs++ == 0) {
        threads->before = threads->get(library);
        threads->set(library, 1);
    }
    pthread_mutex_unlock(&threads->guard);
}

void spk_process_threads_leave(spk_process_threads *threads, const void *library)
{
    pthread_mutex_lock(&threads->guard);
    if (--threads->single_runs == 0) {
        threads->set(library, threads->before);
        pthread_cond_broadcast(&threads->idle);
    }
    pthread_mutex_unlock(&threads->guard);
}

void spk_process_threads_multiply(spk_process_threads *threads, const void *library, const spk_product *product, int count)
{
    spk_process_threads_lock(threads);
    const int before = threads->get(library);
    if (before != count)
        threads->set(library, count);
    spk_cblas_multiply(library, product);
    if (before != count)
        threads->set(library, before);
    spk_process_threads_unlock(threads);
}

#include "base/crew.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"

/* A thread that had a processor throughout loses no more to interrupts, nor is it later to begin, as it may have to wake, or to be heard of
 * at the end. */
static const double most_lost_us = 20, most_late_us = 100;

static _Thread_local char this_thread;

void spk_crew_make(spk_crew *crew, int threads, int64_t tasks, spk_parallel_body body, void *arg, spk_preempted *note)
{
    crew->threads = threads;
    crew->count = threads < SPK_CREW_MOST_SHARES ? threads : SPK_CREW_MOST_SHARES;
    crew->tasks = tasks;
    crew->body = body;
    crew->arg = arg;
    crew->note = threads <= SPK_CREW_MOST_SHARES ? note : NULL;
    const int64_t size = tasks / crew->count, rest = tasks % crew->count;
    int64_t begin = 0;
    for (int i = 0; i < crew->count; i++) {
        atomic_init(&crew->shares[i].next, begin);
        begin += size + (i < rest);
        crew->shares[i].end = begin;
        crew->shares[i].begin_us = crew->shares[i].end_us = crew->shares[i].cpu_us = 0;
    }
    if (crew->note != NULL) {
        crew->begin_us = spk_now_us();
        crew->begin_cpu_us = spk_thread_cpu_us();
    }
}

static void take_tasks(spk_crew *crew, int thread)
{
    for (int i = 0; i < crew->count; i++) {
        spk_share *s = &crew->shares[(thread + i) % crew->count];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end)
            continue;
        for (int64_t task = atomic_fetch_add(&s->next, 1); task < s->end; task = atomic_fetch_add(&s->next, 1))
            crew->body(crew->arg, task);
    }
}

void spk_crew_work(spk_crew *crew, int thread)
{
    if (crew->note == NULL) {
        take_tasks(crew, thread);
        return;
    }
    spk_share *own = &crew->shares[thread];
    own->thread = &this_thread;
    own->begin_us = spk_now_us();
    const double begin_cpu_us = spk_thread_cpu_us();
    take_tasks(crew, thread);
    own->cpu_us = spk_thread_cpu_us() - begin_cpu_us;
    own->end_us = spk_now_us();
}

/* Whether a thread of the system has been here under another number. */
static bool was_counted(const spk_crew *crew, int thread)
{
    for (int i = 0; i < thread; i++)
        if (crew->shares[i].end_us > 0 && crew->shares[i].thread == crew->shares[thread].thread)
            return true;
    return false;
}

/* Tasks are taken to be alike: with a processor each, the threads do them in so many turns. */
static double undisturbed_us(const spk_crew *crew, int threads, double cpu_us)
{
    const int64_t turns = threads > 0 ? (crew->tasks + threads - 1) / threads : 0;
    return crew->tasks > 0 ? cpu_us * (double)turns / (double)crew->tasks : 0;
}

void spk_crew_end(spk_crew *crew)
{
    if (crew->note == NULL)
        return;
    const double end_cpu_us = spk_thread_cpu_us(), end_us = spk_now_us(), took_us = end_us - crew->begin_us;
    double cpu_us = 0, last_us = crew->begin_us;
    bool disturbed = false;
    int threads = 0;
    for (int i = 0; i < crew->count; i++) {
        const spk_share *s = &crew->shares[i];
        if (s->end_us == 0) /* the system gave no such thread */
            continue;
        disturbed |= s->end_us - s->begin_us - s->cpu_us > most_lost_us || s->begin_us - crew->begin_us > most_late_us;
        threads += !was_counted(crew, i);
        last_us = fmax(last_us, s->end_us);
        cpu_us += s->cpu_us;
    }
    disturbed |= end_us - last_us > most_late_us;
    if (disturbed)
        crew->note->lost_us += fmax(took_us - undisturbed_us(crew, threads, cpu_us), 0);
    crew->note->regions_us += took_us;
    crew->note->regions_cpu_us += end_cpu_us - crew->begin_cpu_us;
}

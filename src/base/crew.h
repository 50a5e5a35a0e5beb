/* Threads that share the tasks of one parallel region, and what other programs took from them meanwhile. */
#ifndef SPK_BASE_CREW_H
#define SPK_BASE_CREW_H

#include <stdatomic.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

enum { SPK_CREW_MOST_SHARES = 256 };

/* What a thread's parallel regions lost to other programs: how much sooner they would have ended with a processor for each thread. A sum;
 * `regions_us` and `regions_cpu_us`: how long they took, and the processor time of the calling thread in them. */
typedef struct spk_preempted {
    double lost_us, regions_us, regions_cpu_us;
} spk_preempted;

/* A thread begins with a share of its own, the same in each region, so that what it read and wrote before may still be in its cache; then
 * it takes what others have not begun. */
typedef struct spk_share {
    _Alignas(64) atomic_int_fast64_t next;
    int64_t end;
    double begin_us, end_us, cpu_us; /* of the thread that begins here, where that is noted */
    const char *thread;              /* which one, as an address of its own */
} spk_share;

typedef struct spk_crew {
    spk_share shares[SPK_CREW_MOST_SHARES];
    int count, threads;
    int64_t tasks;
    spk_parallel_body body;
    void *arg;
    spk_preempted *note;
    double begin_us, begin_cpu_us;
} spk_crew;

/* note NULL: nothing is noted, and no clock is read. Of more than SPK_CREW_MOST_SHARES threads nothing is either. */
void spk_crew_make(spk_crew *crew, int threads, int64_t tasks, spk_parallel_body body, void *arg, spk_preempted *note);

/* The work of thread 0 to threads - 1; each at most once, and some after others on one thread of the system where there are fewer. Any
 * number of them does all tasks. */
void spk_crew_work(spk_crew *crew, int thread);

/* After all of them: adds to what is noted. */
void spk_crew_end(spk_crew *crew);

#endif

/* Work on host threads. */
#ifndef SPK_BASE_EXECUTOR_H
#define SPK_BASE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

#include "base/crew.h"

/* Runs tasks on the device's host threads: OpenMP (without it base/pool.h), or the caller's parallel-for. */
typedef struct spk_executor {
    int threads;
    spk_parallel_for parallel_for; /* NULL: OpenMP */
    void *user;
} spk_executor;

/* body(arg, 0 .. tasks-1), any order; serial in a child of fork(), for one task, and where the system lets this process start no
 * threads. Threads that lack a processor for a while, as other programs have it, are left out: waiting for one of them costs more than its
 * work saves. */
void spk_execute(const spk_executor *executor, int64_t tasks, spk_parallel_body body, void *arg);

/* While it is on, spk_execute has every thread take part, whatever other programs do: for measurements, which nest. */
void spk_executor_steady(bool on);

/* From now on what spk_execute does for the calling thread notes there what other programs took from it; NULL: no more. */
void spk_executor_note(spk_preempted *note);

/* How many of so many threads would have a processor each at this moment. */
int spk_executor_left(int threads);

/* For tests: who says how many of so many threads would have a processor each; NULL: the system. */
void spk_executor_ask(int (*left)(int threads));

/* Whether its threads can be had: the caller's always, others are tried. */
bool spk_executor_usable(const spk_executor *executor);

/* The number of threads for a library that brings its own parallel loops: the executor's; 1 where spk_execute would be serial for any
 * number of tasks. */
int spk_executor_library_threads(const spk_executor *executor);

#endif

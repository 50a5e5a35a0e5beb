/* Work on host threads. */
#ifndef SPK_BASE_EXECUTOR_H
#define SPK_BASE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

/* Runs tasks on the device's host threads: OpenMP (without it base/pool.h), or the caller's parallel-for. */
typedef struct spk_executor {
    int threads;
    spk_parallel_for parallel_for; /* NULL: OpenMP */
    void *user;
} spk_executor;

/* body(arg, 0 .. tasks-1), any order; serial in a child of fork(), for one task, and where the system lets this process start no
 * threads. */
void spk_execute(const spk_executor *executor, int64_t tasks, spk_parallel_body body, void *arg);

/* Whether its threads can be had: the caller's always, others are tried. */
bool spk_executor_usable(const spk_executor *executor);

/* The number of threads for a library that brings its own parallel loops: the executor's; 1 where spk_execute would be serial for any
 * number of tasks. */
int spk_executor_library_threads(const spk_executor *executor);

#endif

/* Numbered pieces of work, made by several threads and taken in order by one. */
#ifndef SPARSEK_CLI_BASE_ORDERED_H
#define SPARSEK_CLI_BASE_ORDERED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ordered_work {
    void *user;
    int64_t begin, end;
    int threads; /* 1: the caller's alone, which makes each piece when it is its turn */
    /* Makes piece `number`; worker in [0, threads). Returns early once *stop becomes true. */
    void *(*make)(void *user, int worker, int64_t number, const atomic_bool *stop);
    /* In order, in the caller's thread; takes the piece over. False: no more. */
    bool (*take)(void *user, int64_t number, void *piece);
    /* In the caller's thread: pieces behind the last that was taken, finished or not; takes them over. */
    void (*drop)(void *user, int64_t number, void *piece);
    bool (*wanted)(void *user); /* asked often by the caller's thread; false: no more */
} ordered_work;

void ordered_run(const ordered_work *work);

#endif

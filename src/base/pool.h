/* Threads that are kept from one piece of work to the next, where the build has no OpenMP. */
#ifndef SPK_BASE_POOL_H
#define SPK_BASE_POOL_H

enum { SPK_POOL_MOST = 256 };

/* work(arg, 0), on the calling thread, to work(arg, threads - 1), all at once, each on a thread of its own; returns when all have ended.
 * Fewer take part where the system gives no more threads: work must do with any number of them. The first call starts the threads, which
 * then wait for the next: busily for 0.3 milliseconds, as that costs a few microseconds to end where waking costs tens for each
 * thread. Calls from several threads at once: one has the kept threads, the others start their own. Not in a child of fork(). */
void spk_pool_run(int threads, void (*work)(void *arg, int thread), void *arg);

#endif

/* Many device programs at once, on all host cores: the compiler is a single thread each time. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "backend/cuda/runtime/nvrtc.h"
#include "backend/cuda/runtime/program.h"

enum { MOST_THREADS = 256, STACK_BYTES = 16 << 20 };

typedef struct work {
    const spk_mem *mem;
    const char *arch;
    const spk_build *builds;
    int count;
    spk_status *statuses;
    char (*whys)[200];
    const spk_stop *stop;
    atomic_int next;
} work;

static spk_status compile_one(const work *all, int i)
{
    void *cubin = NULL;
    size_t bytes = 0;
    if (spk_stop_asked(all->stop))
        return spk_fail(SPK_ERR_INTERRUPTED, "interrupted before it was compiled");
    SPK_TRY(spk_cuda_compile(all->mem, &all->builds[i], all->arch, &cubin, &bytes, NULL));
    spk_free(all->mem, cubin);
    return SPK_OK;
}

static void *run_thread(void *arg)
{
    work *all = arg;
    for (int i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
        all->statuses[i] = compile_one(all, i);
        if (all->whys != NULL)
            snprintf(all->whys[i], sizeof all->whys[i], "%s", all->statuses[i] == SPK_OK ? "" : spk_error_last());
    }
    return NULL;
}

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

spk_status spk_cuda_compile_all(const spk_mem *mem, const char *arch, const spk_build *builds, int count, int threads, spk_status *statuses,
                                char (*whys)[200], const spk_stop *stop)
{
    SPK_TRY(spk_cuda_nvrtc_open(NULL, 0)); /* one message rather than one for each */
    work all = {.mem = mem, .arch = arch, .builds = builds, .count = count, .statuses = statuses, .whys = whys, .stop = stop};
    pthread_t ids[MOST_THREADS];
    pthread_attr_t attributes;
    int begun = 0;
    threads = threads > 0 ? threads : processors();
    threads = threads < count ? threads : count;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES); /* compilers recurse; some systems give threads little */
    while (begun < threads - 1 && pthread_create(&ids[begun], &attributes, run_thread, &all) == 0)
        begun++;
    pthread_attr_destroy(&attributes);
    run_thread(&all); /* this thread too: enough where none could be made */
    for (int i = 0; i < begun; i++)
        pthread_join(ids[i], NULL);
    return SPK_OK;
}

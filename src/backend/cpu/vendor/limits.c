/* What a vendor library takes without asking, and what becomes of the process where it is not there: LIBXSMM would jump into code that may
 * not be executed, takes 128 KiB of the stack to make it, and uses its tables without looking whether it got them; OpenBLAS starts its
 * threads when it is opened, raises SIGINT where it cannot, and asks for their buffers again and again; BLIS does not look whether the
 * threads of a call could be started, and ends the process where its buffers find no room, as MKL does where its parts or buffers do. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/cpu/vendor/vendor.h"
#include "base/environment.h"
#include "base/free_memory.h"
#include "base/processors.h"
#include "base/threads.h"

enum {
    MIB = 1 << 20,
    BUFFER_MIB = 128,
    HEAP_MIB = 64,
    USUAL_STACK_MIB = 8,
    OTHERS_MIB = 64,
    MKL_PARTS_MIB = 512,
    ONEDNN_MIB = 256,
    BLIS_MIB = 64,
    BLIS_THREAD_MIB = 32
};
/* LIBXSMM 1.17 takes 10.4 MiB for its tables; the code of one plan and the stack that makes it take less than one. */
enum { LIBXSMM_TABLES_MIB = 11, LIBXSMM_CODE_MIB = 2 };

bool spk_code_may_be_made(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    const bool may = mprotect(memory, (size_t)page, PROT_READ | PROT_EXEC) == 0;
    munmap(memory, (size_t)page);
    return may;
}

/* Planning asks again and again for the same code, which LIBXSMM keeps: what was found executable is remembered, where a lost entry costs
 * another look. */
static _Atomic uintptr_t executable[256];

bool spk_is_executable(uintptr_t code)
{
    _Atomic uintptr_t *known = &executable[code / 64 % 256];
    if (atomic_load_explicit(known, memory_order_relaxed) == code)
        return true;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[256];
    bool found = maps == NULL; /* no /proc: nothing speaks against it */
    while (!found && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uintmax_t begin = 0, end = 0;
        char rights[5] = "";
        found = sscanf(line, "%jx-%jx %4s", &begin, &end, rights) == 3 && rights[2] == 'x' && code >= begin && code < end;
    }
    if (maps != NULL)
        fclose(maps);
    if (found)
        atomic_store_explicit(known, code, memory_order_relaxed);
    return found;
}

/* Where the stack of the calling thread ends: looked up once, as that takes long in the main thread. */
static uintptr_t stack_end(void)
{
    static _Thread_local uintptr_t end;
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (end == 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &lowest, &size) == 0)
            end = (uintptr_t)lowest;
        pthread_attr_destroy(&attributes);
    }
    return end;
}

bool spk_stack_suffices(size_t bytes)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = stack_end();
    return end == 0 || here < end || here - end >= bytes;
}

/* As OpenBLAS counts: the first variable that is a number, at most the processors this process may run on. */
static int threads_at_start(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
    const int processors = spk_probe_processors();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = spk_environment(names[i]);
        const int wanted = text != NULL ? atoi(text) : 0;
        if (wanted > 0)
            return wanted < processors ? wanted : processors;
    }
    return processors;
}

static int64_t stack_mib(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return USUAL_STACK_MIB;
    return (int64_t)limit.rlim_cur / MIB + 1;
}

/* threads: that it takes so much for; 0: their number makes no difference. */
static bool has_room(int64_t needed_mib, int threads, char *why, size_t size)
{
    const int64_t left = spk_address_space_left();
    char with[32] = "";
    if (left == INT64_MAX || left / MIB >= needed_mib)
        return true;
    if (threads > 0)
        snprintf(with, sizeof with, " with %d threads", threads);
    snprintf(why, size, "a limit on address space (ulimit -v) leaves %lld MiB, and it takes up to %lld MiB%s", (long long)(left / MIB),
             (long long)needed_mib, with);
    return false;
}

static bool may_start(int threads, char *why, size_t size)
{
    if (spk_threads_startable(threads))
        return true;
    snprintf(why, size, "it starts %d threads, and a limit (ulimit -u, a control group) lets this process start no more", threads);
    return false;
}

bool spk_libxsmm_fits(int threads, int had, char *why, size_t size)
{
    (void)threads;
    return has_room(LIBXSMM_CODE_MIB + (had > 0 ? 0 : LIBXSMM_TABLES_MIB), 0, why, size);
}

bool spk_mkl_fits(int threads, int had, char *why, size_t size)
{
    return has_room(MKL_PARTS_MIB + (threads - had) * (BUFFER_MIB + stack_mib()), threads, why, size);
}

bool spk_blis_fits(int threads, int had, char *why, size_t size)
{
    (void)had;
    if (!has_room(BLIS_MIB + threads * (BLIS_THREAD_MIB + stack_mib()), threads, why, size))
        return false;
    return may_start(threads - 1, why, size);
}

bool spk_onednn_fits(int threads, int had, char *why, size_t size)
{
    (void)threads, (void)had;
    if (!spk_code_may_be_made()) {
        snprintf(why, size, "%s", spk_no_code);
        return false;
    }
    return has_room(ONEDNN_MIB, 0, why, size);
}

bool spk_openblas_fits(int threads, int had, char *why, size_t size)
{
    const int own = had == 0 ? threads_at_start() : 0, most = threads > own ? threads : own, more = most - (had > 0 ? had : 1);
    /* Its threads and ours, which call it block by block, have a buffer each. */
    if (!has_room(OTHERS_MIB + (more + 1) * (BUFFER_MIB + HEAP_MIB + stack_mib()) + (int64_t)threads * BUFFER_MIB, most, why, size))
        return false;
    return may_start(more, why, size);
}

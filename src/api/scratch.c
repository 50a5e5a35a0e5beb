/* A plan's own workspaces. Host threads share one: who finds it lent allocates for the moment. Where there are streams, work that is put on
 * a stream now runs later, so that each stream has its own: the first one takes what was made with the plan, others get theirs at their
 * first run. What a caller allocates is for one stream, so that none is made with the plan. */
#include "api/scratch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct lane {
    struct lane *next;     /* does not change once the lane is in the list */
    atomic_uintptr_t user; /* the stream's name, NOBODY for none yet */
    atomic_int busy;
    void *memory, *stream; /* stream: that it was allocated for */
} lane;

struct spk_scratch {
    spk_mem mem;
    spk_device *device;
    size_t bytes;
    pthread_mutex_t adding;
    _Atomic(lane *) lanes;
};

static const uintptr_t NOBODY = UINTPTR_MAX;
static const uintptr_t PER_THREAD_STREAM = 2; /* one handle for the default streams of all threads */

static uintptr_t name_of(const void *stream)
{
    static _Thread_local char here;
    return (uintptr_t)stream == PER_THREAD_STREAM ? (uintptr_t)&here : (uintptr_t)stream;
}

static spk_status add_lane(spk_scratch *scratch, uintptr_t user, void *stream, lane **out)
{
    lane *made = NULL;
    SPK_TRY(spk_calloc(&scratch->mem, 1, sizeof *made, &made));
    spk_status status = spk_device_take(scratch->device, scratch->bytes, stream, &made->memory);
    if (status != SPK_OK) {
        spk_free(&scratch->mem, made);
        return status;
    }
    made->stream = stream;
    atomic_store(&made->user, user);
    made->next = atomic_load(&scratch->lanes);
    atomic_store_explicit(&scratch->lanes, made, memory_order_release);
    *out = made;
    return SPK_OK;
}

spk_status spk_scratch_make(const spk_mem *mem, spk_device *device, size_t bytes, spk_scratch **scratch)
{
    spk_scratch *made = NULL;
    lane *first;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    made->device = device;
    made->bytes = bytes;
    pthread_mutex_init(&made->adding, NULL);
    spk_status status = device->device_mem.allocate == NULL ? add_lane(made, NOBODY, NULL, &first) : SPK_OK;
    if (status != SPK_OK) {
        spk_scratch_release(&made);
        return status;
    }
    *scratch = made;
    return SPK_OK;
}

void spk_scratch_release(spk_scratch **scratch)
{
    spk_scratch *old = *scratch;
    *scratch = NULL;
    if (old == NULL)
        return;
    for (lane *l = atomic_load(&old->lanes), *next; l != NULL; l = next) {
        next = l->next;
        spk_device_give(old->device, l->memory, old->bytes, l->stream);
        spk_free(&old->mem, l);
    }
    pthread_mutex_destroy(&old->adding);
    spk_mem mem = old->mem;
    spk_free(&mem, old);
}

/* The user's lane, or the one that nobody has yet; NULL: there is neither. */
static lane *find_lane(spk_scratch *scratch, uintptr_t user)
{
    lane *free_lane = NULL;
    for (lane *l = atomic_load_explicit(&scratch->lanes, memory_order_acquire); l != NULL; l = l->next) {
        uintptr_t has = atomic_load_explicit(&l->user, memory_order_relaxed);
        if (has == user)
            return l;
        if (has == NOBODY)
            free_lane = l;
    }
    uintptr_t nobody = NOBODY;
    if (free_lane == NULL || atomic_compare_exchange_strong(&free_lane->user, &nobody, user) || nobody == user)
        return free_lane;
    return NULL;
}

static spk_status lane_of(spk_scratch *scratch, void *stream, lane **out)
{
    uintptr_t user = name_of(stream);
    *out = find_lane(scratch, user);
    if (*out != NULL)
        return SPK_OK;
    if (scratch->device->backend->capturing(scratch->device, stream))
        return spk_fail(
            SPK_ERR_UNSUPPORTED,
            "args.workspace is NULL, and the plan has none for this stream yet: it cannot allocate %zu bytes while the stream is "
            "captured; run the plan on the stream once before, or give a workspace",
            scratch->bytes);
    pthread_mutex_lock(&scratch->adding);
    *out = find_lane(scratch, user); /* another thread may have added it meanwhile */
    spk_status status = *out != NULL ? SPK_OK : add_lane(scratch, user, stream, out);
    pthread_mutex_unlock(&scratch->adding);
    return status;
}

spk_status spk_scratch_borrow(spk_scratch *scratch, void *stream, spk_loan *loan)
{
    bool streams = scratch->device->backend->capturing != NULL;
    lane *l = atomic_load_explicit(&scratch->lanes, memory_order_acquire);
    if (streams)
        SPK_TRY(lane_of(scratch, stream, &l));
    while (atomic_exchange_explicit(&l->busy, 1, memory_order_acquire) != 0) {
        if (!streams) {
            *loan = (spk_loan){.lane = NULL};
            return scratch->device->backend->allocate(scratch->device, scratch->bytes, &loan->memory);
        }
        sched_yield(); /* another thread puts its run on the same stream: microseconds */
    }
    *loan = (spk_loan){.lane = l, .memory = l->memory};
    return SPK_OK;
}

void spk_scratch_return(spk_scratch *scratch, spk_loan *loan)
{
    lane *l = loan->lane;
    if (l != NULL)
        atomic_store_explicit(&l->busy, 0, memory_order_release);
    else
        scratch->device->backend->release(scratch->device, loan->memory);
}

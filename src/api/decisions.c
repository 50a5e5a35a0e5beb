/* What was decided lately. A mask or a router's lists that are new on the device at every step are one problem to whoever plans: making the
 * class's key, reading the store, looking at proofs and finding a second candidate would cost more than a small product each time. A
 * remembered decision is believed for a second only, for the sake of what other processes write to the store. */
#include <pthread.h>
#include <string.h>

#include "api/context.h"
#include "base/clock.h"

enum { SLOTS = 128 };
static const double believed_us = 1e6;

typedef struct entry {
    spk_asked asked;
    uint64_t writes;
    double until_us;
    spk_decided decided;
} entry;

struct spk_decisions {
    spk_mem mem;
    pthread_rwlock_t lock;
    entry *slots[SLOTS];
};

spk_status spk_decisions_make(const spk_mem *mem, struct spk_decisions **decisions)
{
    struct spk_decisions *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    pthread_rwlock_init(&made->lock, NULL);
    *decisions = made;
    return SPK_OK;
}

void spk_decisions_release(struct spk_decisions **decisions)
{
    struct spk_decisions *old = *decisions;
    *decisions = NULL;
    if (old == NULL)
        return;
    const spk_mem mem = old->mem;
    for (int slot = 0; slot < SLOTS; slot++)
        spk_free(&mem, old->slots[slot]);
    pthread_rwlock_destroy(&old->lock);
    spk_free(&mem, old);
}

/* Appends a text with its end; false: there is no room for it. */
static bool append(spk_asked *asked, size_t *used, const char *text)
{
    const size_t bytes = text != NULL ? strlen(text) + 1 : 1;
    if (bytes > sizeof asked->text - *used)
        return false;
    memcpy(asked->text + *used, text != NULL ? text : "", bytes);
    *used += bytes;
    return true;
}

bool spk_asked_make(const spk_problem *problem, const spk_tune_options *options, spk_asked *asked)
{
    size_t used = 0;
    memset(asked, 0, sizeof *asked);
    if (options->fresh || (problem->pattern != NULL && !spk_pattern_is_remote(problem->pattern, &asked->pattern)))
        return false;
    memcpy(&asked->problem, problem, sizeof *problem);
    asked->problem.pattern = NULL;
    asked->budget_s = options->budget_s;
    asked->tolerance = options->tolerance;
    asked->effort = (int)options->effort;
    asked->unknown = (int)options->unknown;
    return append(asked, &used, options->only) && append(asked, &used, options->exclude) && append(asked, &used, options->choice);
}

/* Problems that differ in their options share a slot. */
static int slot_of(const spk_asked *asked)
{
    const uint64_t pattern = (uint64_t)asked->pattern.nnzb * UINT64_C(0x9e3779b97f4a7c15);
    return (int)((spk_problem_hash(&asked->problem) ^ pattern >> 32) % SLOTS);
}

bool spk_decisions_find(struct spk_decisions *decisions, const spk_asked *asked, spk_decided *decided)
{
    const int slot = slot_of(asked);
    pthread_rwlock_rdlock(&decisions->lock);
    const entry *e = decisions->slots[slot];
    const bool found =
        e != NULL && memcmp(&e->asked, asked, sizeof *asked) == 0 && e->writes == spk_store_writes() && spk_now_us() < e->until_us;
    if (found)
        *decided = e->decided;
    pthread_rwlock_unlock(&decisions->lock);
    return found;
}

void spk_decisions_add(struct spk_decisions *decisions, const spk_asked *asked, uint64_t writes, const spk_decided *decided)
{
    entry *made = NULL;
    if (spk_alloc(&decisions->mem, 1, sizeof *made, &made) != SPK_OK)
        return;
    *made = (entry){.asked = *asked, .writes = writes, .until_us = spk_now_us() + believed_us, .decided = *decided};
    const int slot = slot_of(asked);
    pthread_rwlock_wrlock(&decisions->lock);
    entry *dropped = decisions->slots[slot];
    decisions->slots[slot] = made;
    pthread_rwlock_unlock(&decisions->lock);
    spk_free(&decisions->mem, dropped);
}

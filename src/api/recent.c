/* The questions that spk_compute was asked lately, byte for byte, with the plans that answered them. Checking and normalising a description
 * costs more than a small product; one that is the same to the last byte as one that was checked needs neither. */
#include <pthread.h>
#include <string.h>

#include "api/context.h"

/* A struct's bytes are whole words, as struct_size is a multiple of 8. */
enum { SLOTS = 256, MOST_WORDS = 64 };

typedef struct words {
    size_t count;
    uint64_t at[MOST_WORDS];
} words;

typedef struct entry {
    const spk_pattern *pattern; /* the plan shares it: no other one takes its address meanwhile */
    words asked;                /* the problem, then the options where there are any */
    spk_plan *plan;
} entry;

struct spk_recent {
    spk_mem mem;
    pthread_rwlock_t lock;
    entry *slots[SLOTS];
};

spk_status spk_recent_make(const spk_mem *mem, struct spk_recent **recent)
{
    struct spk_recent *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    pthread_rwlock_init(&made->lock, NULL);
    *recent = made;
    return SPK_OK;
}

static void entry_release(const spk_mem *mem, entry *e)
{
    if (e != NULL)
        spk_plan_release(&e->plan);
    spk_free(mem, e);
}

void spk_recent_release(struct spk_recent **recent)
{
    if (*recent == NULL)
        return;
    const spk_mem mem = (*recent)->mem;
    for (int slot = 0; slot < SLOTS; slot++)
        entry_release(&mem, (*recent)->slots[slot]);
    pthread_rwlock_destroy(&(*recent)->lock);
    spk_free(&mem, *recent);
    *recent = NULL;
}

/* Appends a caller's struct; false: its size is none that is remembered. */
static bool append(words *to, const void *theirs)
{
    size_t bytes = 0;
    memcpy(&bytes, theirs, sizeof bytes);
    const size_t count = bytes / sizeof to->at[0];
    if (count == 0 || bytes % sizeof to->at[0] != 0 || count > MOST_WORDS - to->count)
        return false;
    memcpy(to->at + to->count, theirs, bytes);
    to->count += count;
    return true;
}

/* Options that point to text, or that want a fresh plan, are read each time. */
static bool is_plain(const spk_tune_options *options)
{
    spk_tune_options o = {.struct_size = 0};
    size_t bytes = 0;
    memcpy(&bytes, options, sizeof bytes);
    memcpy(&o, options, bytes < sizeof o ? bytes : sizeof o);
    return o.only == NULL && o.exclude == NULL && o.choice == NULL && !o.fresh;
}

static bool copy_question(const void *problem, const spk_tune_options *options, words *asked)
{
    asked->count = 0;
    return problem != NULL && append(asked, problem) && (options == NULL || (append(asked, options) && is_plain(options)));
}

/* Two chains of multiplications, neither of which waits for the other. */
static int slot_of(const spk_pattern *pattern, const words *asked)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t even = (uint64_t)(uintptr_t)pattern, odd = asked->count;
    for (size_t i = 0; i + 1 < asked->count; i += 2) {
        even = (even ^ asked->at[i]) * factor;
        odd = (odd ^ asked->at[i + 1]) * factor;
    }
    if (asked->count % 2 == 1)
        even = (even ^ asked->at[asked->count - 1]) * factor;
    const uint64_t hash = ((even ^ even >> 32) + odd) * factor;
    return (int)((hash ^ hash >> 32) % SLOTS);
}

spk_plan *spk_recent_find(struct spk_recent *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options)
{
    words asked;
    if (!copy_question(problem, options, &asked))
        return NULL;
    const int slot = slot_of(pattern, &asked);
    spk_plan *found = NULL;
    pthread_rwlock_rdlock(&recent->lock);
    const entry *e = recent->slots[slot];
    if (e != NULL && e->pattern == pattern && e->asked.count == asked.count &&
        memcmp(e->asked.at, asked.at, asked.count * sizeof asked.at[0]) == 0 && !spk_plan_is_over(e->plan)) {
        found = e->plan;
        atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&recent->lock);
    return found;
}

void spk_recent_add(struct spk_recent *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                    spk_plan *plan)
{
    words asked;
    entry *made = NULL;
    if (!copy_question(problem, options, &asked) || spk_calloc(&recent->mem, 1, sizeof *made, &made) != SPK_OK)
        return;
    made->pattern = pattern;
    made->asked.count = asked.count;
    memcpy(made->asked.at, asked.at, asked.count * sizeof asked.at[0]);
    made->plan = plan;
    atomic_fetch_add(&plan->references, 1);
    const int slot = slot_of(pattern, &asked);
    pthread_rwlock_wrlock(&recent->lock);
    entry *dropped = recent->slots[slot];
    recent->slots[slot] = made;
    pthread_rwlock_unlock(&recent->lock);
    entry_release(&recent->mem, dropped);
}

void spk_recent_drop_pattern(struct spk_recent *recent, const spk_pattern *pattern)
{
    entry *dropped[SLOTS];
    int count = 0;
    pthread_rwlock_wrlock(&recent->lock);
    for (int slot = 0; slot < SLOTS; slot++)
        if (recent->slots[slot] != NULL && recent->slots[slot]->pattern == pattern) {
            dropped[count++] = recent->slots[slot];
            recent->slots[slot] = NULL;
        }
    pthread_rwlock_unlock(&recent->lock);
    for (int i = 0; i < count; i++) /* outside of the lock */
        entry_release(&recent->mem, dropped[i]);
}

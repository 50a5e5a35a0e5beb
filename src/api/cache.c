/* The context's plan cache: a small hash table from (pattern, problem, options) to a counted plan, read under a shared lock. */
#include <pthread.h>
#include <string.h>

#include "api/context.h"

enum { SLOTS = 1024, MOST_PLANS = 512 };

typedef struct entry {
    struct entry *next;
    uint64_t hash, age;
    spk_problem problem;
    spk_tune_options options; /* strings owned by the entry */
    spk_plan *plan;
} entry;

struct spk_plan_cache {
    spk_mem mem;
    pthread_rwlock_t lock;
    uint64_t counter;
    int count;
    entry *slots[SLOTS];
};

spk_status spk_plan_cache_make(const spk_mem *mem, struct spk_plan_cache **cache)
{
    struct spk_plan_cache *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    pthread_rwlock_init(&made->lock, NULL);
    *cache = made;
    return SPK_OK;
}

static void entry_release(const spk_mem *mem, entry *e)
{
    spk_plan_release(&e->plan);
    spk_free(mem, (char *)e->options.only);
    spk_free(mem, (char *)e->options.exclude);
    spk_free(mem, (char *)e->options.choice);
    spk_free(mem, e);
}

void spk_plan_cache_release(struct spk_plan_cache **cache)
{
    if (*cache == NULL)
        return;
    spk_mem mem = (*cache)->mem;
    for (int slot = 0; slot < SLOTS; slot++)
        for (entry *e = (*cache)->slots[slot], *next; e != NULL; e = next) {
            next = e->next;
            entry_release(&mem, e);
        }
    pthread_rwlock_destroy(&(*cache)->lock);
    spk_free(&mem, *cache);
    *cache = NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_options(const spk_tune_options *a, const spk_tune_options *b)
{
    return a->effort == b->effort && a->unknown == b->unknown && a->budget_s == b->budget_s && a->tolerance == b->tolerance &&
           same_text(a->only, b->only) && same_text(a->exclude, b->exclude) && same_text(a->choice, b->choice);
}

spk_plan *spk_plan_cache_find(struct spk_plan_cache *cache, const spk_problem *problem, const spk_tune_options *options)
{
    const uint64_t hash = spk_problem_hash(problem);
    spk_plan *found = NULL;
    pthread_rwlock_rdlock(&cache->lock);
    for (entry *e = cache->slots[hash % SLOTS]; e != NULL && found == NULL; e = e->next)
        if (e->hash == hash && spk_problem_equal(&e->problem, problem) && same_options(&e->options, options) &&
            !spk_plan_is_over(e->plan)) {
            found = e->plan;
            atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
        }
    pthread_rwlock_unlock(&cache->lock);
    return found;
}

static spk_status copy_text(const spk_mem *mem, const char **text)
{
    char *copy = NULL;
    if (*text != NULL)
        SPK_TRY(spk_strdup(mem, *text, &copy));
    *text = copy;
    return SPK_OK;
}

static spk_status entry_make(const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options, spk_plan *plan, entry **out)
{
    entry *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    const char *only = options->only, *exclude = options->exclude, *choice = options->choice;
    made->hash = spk_problem_hash(problem);
    memcpy(&made->problem, problem, sizeof *problem);
    made->options = *options;
    made->options.only = made->options.exclude = made->options.choice = NULL;
    spk_status status;
    SPK_GOTO(copy_text(mem, &only));
    made->options.only = only;
    SPK_GOTO(copy_text(mem, &exclude));
    made->options.exclude = exclude;
    SPK_GOTO(copy_text(mem, &choice));
    made->options.choice = choice;
    made->plan = plan;
    atomic_fetch_add(&plan->references, 1);
    *out = made;
    return SPK_OK;
done:
    entry_release(mem, made);
    return status;
}

/* Unlinks every entry that `matches` and returns them as a list: plans are released outside the lock. */
static entry *unlink_entries(struct spk_plan_cache *cache, bool (*matches)(const entry *e, uint64_t value), uint64_t value)
{
    entry *taken = NULL;
    for (int slot = 0; slot < SLOTS; slot++)
        for (entry **link = &cache->slots[slot]; *link != NULL;) {
            entry *e = *link;
            if (!matches(e, value)) {
                link = &e->next;
                continue;
            }
            *link = e->next;
            e->next = taken;
            taken = e;
            cache->count--;
        }
    return taken;
}

static void release_list(const spk_mem *mem, entry *list)
{
    for (entry *next; list != NULL; list = next) {
        next = list->next;
        entry_release(mem, list);
    }
}

static bool is_older(const entry *e, uint64_t age)
{
    return e->age < age;
}

static bool has_pattern(const entry *e, uint64_t id)
{
    return e->problem.pattern != NULL && e->problem.pattern->id == id;
}

void spk_plan_cache_add(struct spk_plan_cache *cache, const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options,
                        spk_plan *plan)
{
    entry *made = NULL, *dropped = NULL;
    if (entry_make(mem, problem, options, plan, &made) != SPK_OK)
        return;
    pthread_rwlock_wrlock(&cache->lock);
    made->age = ++cache->counter;
    entry **slot = &cache->slots[made->hash % SLOTS];
    made->next = *slot;
    *slot = made;
    if (++cache->count > MOST_PLANS)
        dropped = unlink_entries(cache, is_older, cache->counter - MOST_PLANS / 2); /* half at a time, so that the walk is rare */
    pthread_rwlock_unlock(&cache->lock);
    release_list(mem, dropped);
}

void spk_plan_cache_drop_pattern(struct spk_plan_cache *cache, uint64_t pattern_id)
{
    pthread_rwlock_wrlock(&cache->lock);
    entry *dropped = cache->count > 0 ? unlink_entries(cache, has_pattern, pattern_id) : NULL;
    pthread_rwlock_unlock(&cache->lock);
    release_list(&cache->mem, dropped);
}

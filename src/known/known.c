#include "known/known.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"

enum { SLOTS = 512, VALUE_ALIGNMENT = 16 };

typedef struct rule {
    int most, until;
    double seconds;
} rule;

static const rule rules[] = {
#define SPK_KNOWN(NAME, most, until, seconds) {most, until, seconds},
#include "known/memories.def"
#undef SPK_KNOWN
};

typedef struct entry {
    struct entry *next;
    uint64_t hash, age;
    spk_epoch since;
    double until_us; /* 0: no end */
    size_t key_bytes, value_bytes;
    bool until_write;
    _Alignas(VALUE_ALIGNMENT) unsigned char data[]; /* the value, then the key */
} entry;

struct spk_known {
    spk_mem mem;
    const rule *rule;
    spk_known_calls calls;
    pthread_rwlock_t lock;
    uint64_t counter;
    int count;
    spk_known *next; /* of the contexts' */
    entry *slots[SLOTS];
};

static spk_known of_process[SPK_KNOWN_KINDS] = {
#define SPK_KNOWN(NAME, most, until, seconds) {.rule = &rules[SPK_KNOWN_##NAME], .lock = PTHREAD_RWLOCK_INITIALIZER},
#include "known/memories.def"
#undef SPK_KNOWN
};

/* Of who writes to any of them or to the list, or splits the process: a child can give back a mutex, but not a lock to write, which knows
 * its owner by a number that the child's thread does not have. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static spk_known *of_contexts;

/* ------------------------------------------------------------------------------------------------ fork */

/* Nobody writes while the process splits, so the child has whole tables. */
static void before_fork(void)
{
    pthread_mutex_lock(&writing);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&writing);
}

/* Who read in the parent is not there to let go of a lock. */
static void in_child(void)
{
    for (int i = 0; i < SPK_KNOWN_KINDS; i++)
        pthread_rwlock_init(&of_process[i].lock, NULL);
    for (spk_known *known = of_contexts; known != NULL; known = known->next)
        pthread_rwlock_init(&known->lock, NULL);
    pthread_mutex_unlock(&writing);
}

/* When the library is loaded, so before whoever uses it: handlers run in reverse order before a fork, and a user's lock, under which it
 * calls the library, must be taken before the library's own. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void list(spk_known *known)
{
    pthread_mutex_lock(&writing);
    known->next = of_contexts;
    of_contexts = known;
    pthread_mutex_unlock(&writing);
}

static void unlist(const spk_known *known)
{
    pthread_mutex_lock(&writing);
    for (spk_known **place = &of_contexts; *place != NULL; place = &(*place)->next) {
        if (*place == known) {
            *place = known->next;
            break;
        }
    }
    pthread_mutex_unlock(&writing);
}

/* ------------------------------------------------------------------------------------------------ memories of the process */

spk_known *spk_known_of_process(spk_known_kind kind)
{
    return &of_process[kind];
}

static void begin_writing(spk_known *known)
{
    pthread_mutex_lock(&writing);
    pthread_rwlock_wrlock(&known->lock);
}

static void end_writing(spk_known *known)
{
    pthread_rwlock_unlock(&known->lock);
    pthread_mutex_unlock(&writing);
}

/* ------------------------------------------------------------------------------------------------ entries */

static const unsigned char *key_of(const entry *e)
{
    return e->data + (e->value_bytes + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
}

/* Two chains of multiplications over words, neither of which waits for the other. */
static uint64_t hash_of(const void *key, size_t bytes)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    const unsigned char *at = key;
    uint64_t even = bytes, odd = factor, word[2] = {0, 0};
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(word, at, sizeof word);
        even = (even ^ word[0]) * factor;
        odd = (odd ^ word[1]) * factor;
    }
    word[0] = word[1] = 0;
    memcpy(word, at, bytes);
    even = (even ^ word[0]) * factor;
    odd = (odd ^ word[1]) * factor;
    const uint64_t hash = ((even ^ even >> 32) + (odd ^ odd >> 29)) * factor;
    return hash ^ hash >> 32;
}

static bool still_holds(const spk_known *known, const entry *e)
{
    const int until = known->rule->until;
    const spk_epoch now = spk_epoch_now();
    return (e->until_us == 0 || spk_now_us() < e->until_us) &&
           (!(e->until_write || (until & SPK_UNTIL_WRITE)) || e->since.writes == now.writes) &&
           (!(until & SPK_UNTIL_REFUTED) || e->since.refutations == now.refutations);
}

static entry **link_of(spk_known *known, uint64_t hash, const void *key, size_t bytes)
{
    entry **link = &known->slots[hash % SLOTS];
    while (*link != NULL && !((*link)->hash == hash && (*link)->key_bytes == bytes && memcmp(key_of(*link), key, bytes) == 0))
        link = &(*link)->next;
    return link;
}

static entry *unlink_at(spk_known *known, entry **link)
{
    entry *e = *link;
    if (e == NULL)
        return NULL;
    *link = e->next;
    e->next = NULL;
    known->count--;
    return e;
}

static bool is_older(const entry *e, const void *age)
{
    return e->age < *(const uint64_t *)age;
}

/* Takes out all that match, as a list. */
static entry *unlink_where(spk_known *known, bool (*matches)(const entry *e, const void *what), const void *what)
{
    entry *taken = NULL;
    for (int slot = 0; slot < SLOTS; slot++)
        for (entry **link = &known->slots[slot]; *link != NULL;) {
            if (matches != NULL && !matches(*link, what)) {
                link = &(*link)->next;
                continue;
            }
            entry *e = unlink_at(known, link);
            e->next = taken;
            taken = e;
        }
    return taken;
}

/* Outside of the lock: what a value points to may take its time, or ask this memory. */
static void release_list(const spk_known *known, entry *list)
{
    for (entry *next; list != NULL; list = next) {
        next = list->next;
        if (list->value_bytes > 0 && known->calls.release != NULL)
            known->calls.release(list->data);
        spk_free(&known->mem, list);
    }
}

static entry *make_entry(const spk_known *known, const void *key, size_t key_bytes, const void *value, size_t value_bytes)
{
    entry *made = NULL;
    const size_t bytes = sizeof *made + value_bytes + VALUE_ALIGNMENT + key_bytes;
    if (spk_alloc(&known->mem, 1, bytes, &made) != SPK_OK)
        return NULL;
    *made = (entry){.hash = hash_of(key, key_bytes), .key_bytes = key_bytes, .value_bytes = value_bytes};
    if (value_bytes > 0)
        memcpy(made->data, value, value_bytes);
    memcpy((unsigned char *)key_of(made), key, key_bytes);
    return made;
}

/* The entry comes in; what goes for it is given back. */
static entry *put(spk_known *known, entry *made)
{
    entry *dropped = unlink_at(known, link_of(known, made->hash, key_of(made), made->key_bytes));
    made->age = ++known->counter;
    made->next = known->slots[made->hash % SLOTS];
    known->slots[made->hash % SLOTS] = made;
    if (++known->count > known->rule->most) { /* half at a time, so that the walk is rare */
        const uint64_t age = known->counter - (uint64_t)known->rule->most / 2;
        entry *older = unlink_where(known, is_older, &age);
        if (dropped != NULL)
            dropped->next = older;
        else
            dropped = older;
    }
    return dropped;
}

/* ------------------------------------------------------------------------------------------------ memories */

spk_status spk_known_make(const spk_mem *mem, spk_known_kind kind, const spk_known_calls *calls, spk_known **known)
{
    spk_known *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    made->rule = &rules[kind];
    if (calls != NULL)
        made->calls = *calls;
    pthread_rwlock_init(&made->lock, NULL);
    list(made);
    *known = made;
    return SPK_OK;
}

void spk_known_release(spk_known **known)
{
    if (*known == NULL)
        return;
    const spk_mem mem = (*known)->mem;
    spk_known_forget(*known);
    unlist(*known);
    pthread_rwlock_destroy(&(*known)->lock);
    spk_free(&mem, *known);
    *known = NULL;
}

bool spk_known_find(spk_known *known, const void *key, size_t key_bytes, void *value, size_t value_bytes)
{
    const uint64_t hash = hash_of(key, key_bytes);
    pthread_rwlock_rdlock(&known->lock);
    const entry *e = *link_of(known, hash, key, key_bytes);
    const bool found = e != NULL && e->value_bytes == value_bytes && still_holds(known, e);
    if (found && value_bytes > 0) {
        memcpy(value, e->data, value_bytes);
        if (known->calls.hold != NULL)
            known->calls.hold(value);
    }
    pthread_rwlock_unlock(&known->lock);
    return found;
}

void spk_known_add(spk_known *known, const void *key, size_t key_bytes, const void *value, size_t value_bytes, spk_epoch since,
                   bool until_write)
{
    entry *made = make_entry(known, key, key_bytes, value, value_bytes);
    if (made == NULL)
        return;
    if (value_bytes > 0 && known->calls.hold != NULL)
        known->calls.hold(made->data);
    made->since = since;
    made->until_write = until_write;
    made->until_us = known->rule->seconds > 0 ? spk_now_us() + known->rule->seconds * 1e6 : 0;
    begin_writing(known);
    entry *dropped = put(known, made);
    end_writing(known);
    release_list(known, dropped);
}

bool spk_known_first(spk_known *known, const void *key, size_t key_bytes)
{
    entry *made = make_entry(known, key, key_bytes, NULL, 0), *dropped = NULL;
    if (made == NULL)
        return true;
    made->since = spk_epoch_now();
    begin_writing(known);
    const bool first = *link_of(known, made->hash, key, key_bytes) == NULL;
    if (first)
        dropped = put(known, made);
    else
        dropped = made;
    end_writing(known);
    release_list(known, dropped);
    return first;
}

void spk_known_drop(spk_known *known, const void *key, size_t key_bytes)
{
    const uint64_t hash = hash_of(key, key_bytes);
    begin_writing(known);
    entry *dropped = unlink_at(known, link_of(known, hash, key, key_bytes));
    end_writing(known);
    release_list(known, dropped);
}

typedef struct query {
    bool (*matches)(const void *key, const void *what);
    const void *what;
} query;

static bool is_meant(const entry *e, const void *pointer)
{
    const query *q = pointer;
    return q->matches(key_of(e), q->what);
}

void spk_known_drop_where(spk_known *known, bool (*matches)(const void *key, const void *what), const void *what)
{
    const query q = {matches, what};
    begin_writing(known);
    entry *dropped = known->count > 0 ? unlink_where(known, is_meant, &q) : NULL;
    end_writing(known);
    release_list(known, dropped);
}

void spk_known_forget(spk_known *known)
{
    begin_writing(known);
    entry *dropped = known->count > 0 ? unlink_where(known, NULL, NULL) : NULL;
    end_writing(known);
    release_list(known, dropped);
}

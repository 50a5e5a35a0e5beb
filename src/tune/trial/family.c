#include "tune/trial/family.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "store/class_key.h"

enum { FAMILIES = 32 };
static const double farthest = 4; /* octaves from the class that began it, as a choice serves (choose/near.c) */

typedef struct family {
    char key[SPK_MAX_KEY_TEXT + 32]; /* of the class that began it; "": free */
    unsigned long used;
    spk_family known;
} family;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static family families[FAMILIES];
static unsigned long uses;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

/* When the library is loaded, as the other handlers: a user's own lock is taken before the library's. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(take_lock, give_lock, give_lock);
}

/* The nearest. */
static family *find(const char *key)
{
    family *found = NULL;
    double least = farthest;
    for (int i = 0; i < FAMILIES; i++) {
        const double distance = families[i].key[0] != '\0' ? spk_key_size_distance(families[i].key, key) : INFINITY;
        if (distance <= least) {
            found = &families[i];
            least = distance;
        }
    }
    if (found != NULL)
        found->used = ++uses;
    return found;
}

/* In place of the one that was used the longest ago. */
static family *make(const char *key)
{
    family *oldest = &families[0];
    for (int i = 1; i < FAMILIES; i++)
        if (families[i].used < oldest->used)
            oldest = &families[i];
    memset(oldest, 0, sizeof *oldest);
    snprintf(oldest->key, sizeof oldest->key, "%s", key);
    oldest->used = ++uses;
    return oldest;
}

/* NULL where there is no room for another. */
static spk_family_member *member_of(family *f, const spk_kernel *kernel, const spk_params *params)
{
    for (int i = 0; i < SPK_FAMILY_MEMBERS; i++) {
        spk_family_member *m = &f->known.members[i];
        if (m->kernel == NULL || (m->kernel == kernel && memcmp(&m->params, params, sizeof *params) == 0))
            return m;
    }
    return NULL;
}

void spk_family_read(const char *class_key, spk_family *copy)
{
    take_lock();
    const family *f = find(class_key);
    if (f != NULL)
        *copy = f->known;
    else
        memset(copy, 0, sizeof *copy);
    give_lock();
}

void spk_family_note(const char *class_key, const spk_kernel *kernel, const spk_params *params, double ratio, spk_family *copy)
{
    take_lock();
    family *f = find(class_key);
    f = f != NULL ? f : make(class_key);
    spk_family_member *m = member_of(f, kernel, params);
    if (m != NULL) {
        m->kernel = kernel;
        m->params = *params;
        m->ratios[m->count++ % SPK_FAMILY_LOOKS] = ratio;
    }
    *copy = f->known;
    give_lock();
}

void spk_family_forget(const char *class_key)
{
    take_lock();
    family *f = class_key != NULL ? find(class_key) : NULL;
    if (f != NULL)
        memset(f, 0, sizeof *f);
    else if (class_key == NULL)
        memset(families, 0, sizeof families);
    give_lock();
}

/* Where there is no folder that can be written: what was compiled (and proved) stays in memory, for this process. */
#include <pthread.h>
#include <string.h>

#include "backend/cuda/runtime/cubins.h"

typedef struct kept {
    struct kept *next; /* older */
    size_t key_bytes, bytes;
    char data[]; /* the key with its end, the content */
} kept;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kept *newest;
static size_t total;

static void drop(kept **link)
{
    kept *one = *link;
    *link = one->next;
    total -= one->bytes;
    spk_free(&spk_mem_system, one);
}

static kept **find(const char *key)
{
    kept **link = &newest;
    while (*link != NULL && strcmp((*link)->data, key) != 0)
        link = &(*link)->next;
    return link;
}

void spk_cubins_keep(const char *key, const void *content, size_t bytes)
{
    const size_t key_bytes = strlen(key) + 1;
    kept *made = NULL;
    if (bytes > SPK_CUBINS_KEPT_BYTES || spk_alloc(&spk_mem_system, sizeof *made + key_bytes + bytes, 1, &made) != SPK_OK)
        return;
    *made = (kept){.key_bytes = key_bytes, .bytes = bytes};
    memcpy(made->data, key, key_bytes);
    memcpy(made->data + key_bytes, content, bytes);
    pthread_mutex_lock(&lock);
    kept **same = find(key);
    if (*same != NULL)
        drop(same);
    while (total + bytes > SPK_CUBINS_KEPT_BYTES) { /* the oldest goes */
        kept **last = &newest;
        while ((*last)->next != NULL)
            last = &(*last)->next;
        drop(last);
    }
    made->next = newest;
    newest = made;
    total += bytes;
    pthread_mutex_unlock(&lock);
}

bool spk_cubins_recall(const spk_mem *mem, const char *key, void **content, size_t *bytes)
{
    char *copy = NULL;
    pthread_mutex_lock(&lock);
    const kept *one = *find(key);
    if (one != NULL && spk_alloc(mem, one->bytes, 1, &copy) == SPK_OK) {
        memcpy(copy, one->data + one->key_bytes, one->bytes);
        *content = copy;
        *bytes = one->bytes;
    }
    pthread_mutex_unlock(&lock);
    return copy != NULL;
}

bool spk_cubins_kept(const char *key)
{
    pthread_mutex_lock(&lock);
    const bool there = *find(key) != NULL;
    pthread_mutex_unlock(&lock);
    return there;
}

void spk_cubins_forget(void)
{
    pthread_mutex_lock(&lock);
    while (newest != NULL)
        drop(&newest);
    pthread_mutex_unlock(&lock);
}

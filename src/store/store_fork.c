/* Fork: a handler holds every store's lock while the process splits, so that no thread is inside SQLite at that moment and the child
 * gets whole structures. The child then lets go of what is its parent's: the connection to the file (never closed, never used: SQLite
 * forbids both) and the locks on classes being tuned. What is in memory is the child's own copy and stays. */
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "store/store_internal.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static spk_store *stores;
static spk_db *inherited; /* kept reachable: they are abandoned on purpose, not lost */

static void before_fork(void)
{
    pthread_mutex_lock(&list_mutex);
    for (spk_store *store = stores; store != NULL; store = store->next)
        pthread_mutex_lock(&store->mutex);
}

static void in_parent(void)
{
    for (spk_store *store = stores; store != NULL; store = store->next)
        pthread_mutex_unlock(&store->mutex);
    pthread_mutex_unlock(&list_mutex);
}

static void in_child(void)
{
    for (spk_store *store = stores; store != NULL; store = store->next) {
        if (store->disk != NULL) {
            store->disk->next_inherited = inherited;
            inherited = store->disk;
            store->disk = NULL;
        }
        for (int i = 0; i < SPK_STORE_LOCKS; i++) {
            if (store->holds[i].hash != 0 && store->holds[i].file >= 0)
                close(store->holds[i].file); /* the parent's descriptor of the same description keeps the lock */
            store->holds[i] = (spk_store_hold){0, -1};
        }
        store->pending_count = 0;  /* the parent tells them */
        store->has_writer = false; /* what waits is known here, too, and goes to the file at the end */
        pthread_cond_init(&store->writer_ended, NULL);
    }
    in_parent();
}

static int watch_result;

/* When the library is loaded, so before whoever uses it: handlers run in reverse order before a fork, and a user's lock, under which it
 * calls the library, must be taken before the library's own. */
__attribute__((constructor)) static void watch(void)
{
    watch_result = pthread_atfork(before_fork, in_parent, in_child);
}

spk_status spk_store_fork_watch(spk_store *store)
{
    if (watch_result != 0)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: the handlers of fork() were refused (%s)", spk_system_error(watch_result));
    pthread_mutex_lock(&list_mutex);
    store->next = stores;
    stores = store;
    pthread_mutex_unlock(&list_mutex);
    return SPK_OK;
}

void spk_store_fork_forget(spk_store *store)
{
    pthread_mutex_lock(&list_mutex);
    for (spk_store **place = &stores; *place != NULL; place = &(*place)->next) {
        if (*place == store) {
            *place = store->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_mutex);
}

void spk_store_each(void (*visit)(spk_store *store))
{
    pthread_mutex_lock(&list_mutex);
    for (spk_store *store = stores; store != NULL; store = store->next)
        visit(store);
    pthread_mutex_unlock(&list_mutex);
}

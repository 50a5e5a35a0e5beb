/* One tuner a class: a table for the threads of this handle, and a byte of <store>.lock (its place from the hash of the key) for
 * everybody else. The byte is locked through an open file description of its own, so that two handles of one process exclude each
 * other too, and the death of the process releases it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "store/store_internal.h"

/* Byte 0 is for setting a damaged file aside. 30 bits fit the offsets of any network file system; two classes of one hash merely wait
 * for each other. */
static int64_t place_of(uint64_t hash)
{
    return 1 + (int64_t)(hash & 0x3fffffff);
}

static int set_lock(int file, short type, int64_t offset)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

int spk_store_lock_byte(const spk_store *store, int64_t offset, int *file)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s.lock", store->path) >= sizeof path)
        return ENAMETOOLONG;
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (opened < 0 && errno == ENOENT && !store->given && spk_make_folders(path) == SPK_OK) /* a lock comes before the first save */
        opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (opened < 0)
        return errno;
    int error = set_lock(opened, F_WRLCK, offset);
    if (error != 0) {
        close(opened);
        return error == EACCES ? EAGAIN : error;
    }
    *file = opened;
    return 0;
}

void spk_store_unlock_byte(int file, int64_t offset)
{
    set_lock(file, F_UNLCK, offset); /* not only by closing: a child made without our fork handlers may share the description */
    close(file);
}

/* A place in the table, or -1 where a thread of this handle has the class; SPK_STORE_LOCKS where the table is full. */
static int reserve(spk_store *store, uint64_t hash)
{
    int empty = SPK_STORE_LOCKS;
    for (int i = 0; i < SPK_STORE_LOCKS; i++) {
        if (store->holds[i].hash == hash)
            return -1;
        if (store->holds[i].hash == 0 && empty == SPK_STORE_LOCKS)
            empty = i;
    }
    if (empty < SPK_STORE_LOCKS)
        store->holds[empty] = (spk_store_hold){hash, -1};
    return empty;
}

/* One attempt: 0 and a token, or EAGAIN. The table's place is given back if somebody else has the byte, so that a fork or another
 * thread never meets a half-taken lock. */
static int attempt(spk_store *store, uint64_t hash, int *token)
{
    int place = reserve(store, hash);
    if (place < 0)
        return EAGAIN;
    if (place == SPK_STORE_LOCKS) {
        *token = -1;
        return 0;
    }
    int file = -1;
    if (store->path[0] != '\0' && !store->disk_off && spk_store_lock_byte(store, place_of(hash), &file) == EAGAIN) {
        store->holds[place] = (spk_store_hold){0, -1};
        return EAGAIN;
    }
    /* A folder that cannot be written, or a file system without locks: this process alone is kept in order. */
    store->holds[place].file = file;
    *token = place;
    return 0;
}

spk_status spk_store_lock(spk_store *store, const char *class_key, double limit_s, const spk_stop *stop, int *token)
{
    uint64_t hash = spk_hash_text(SPK_HASH_START, class_key);
    hash += hash == 0; /* 0 marks a free place */
    double begun = spk_now_us(), pause_us = 1000;
    for (;;) {
        int got = -1;
        spk_store_enter(store);
        int error = attempt(store, hash, &got);
        spk_store_leave(store);
        double left_us = begun + limit_s * 1e6 - spk_now_us();
        if (error == 0 || left_us <= 0) {
            *token = error == 0 ? got : -1;
            return SPK_OK;
        }
        if (spk_stop_asked(stop))
            return spk_fail(SPK_ERR_INTERRUPTED, "interrupted while another thread or process tuned the class");
        double wait_us = pause_us < left_us ? pause_us : left_us;
        struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)(wait_us * 1e3)};
        nanosleep(&wait, NULL);
        pause_us = pause_us * 1.5 < 50000 ? pause_us * 1.5 : 50000;
    }
}

void spk_store_unlock(spk_store *store, int token)
{
    if (token < 0 || token >= SPK_STORE_LOCKS)
        return;
    spk_store_enter(store);
    spk_store_hold held = store->holds[token];
    store->holds[token] = (spk_store_hold){0, -1};
    if (held.hash != 0 && held.file >= 0)
        spk_store_unlock_byte(held.file, place_of(held.hash));
    spk_store_leave(store);
}

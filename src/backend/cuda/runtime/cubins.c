/* A file of the cache: a header, the key, the cubin. Written aside, fsynced and renamed, so that a reader sees a whole file or none;
 * checked by its hash all the same, as disks and people do what they do. */
#include "backend/cuda/runtime/cubins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"

#define MAGIC "spkcubin"
#define SUFFIX ".cubin"
enum { VERSION = 1, STALE_S = 3600, MOST_FILES = 65536, TRIM_EVERY_BYTES = SPK_CUBINS_BYTES / 16 };

/* bytes that this process saved since it last looked through the folder, which takes long when it is full */
static atomic_llong untrimmed = TRIM_EVERY_BYTES;

typedef struct header {
    char magic[8];
    uint32_t version, key_bytes;
    uint64_t bytes, hash; /* of the cubin; of key and cubin */
} header;

/* CACHE/cubin. Nobody but the user may write there: what it holds is run. */
static bool find_folder(const spk_mem *mem, bool make, char *folder, size_t size)
{
    char *cache = NULL;
    struct stat facts;
    if (spk_cache_folder(mem, &cache) != SPK_OK)
        return false;
    int used = cache[0] != '\0' ? snprintf(folder, size, "%s/cubin/", cache) : 0;
    spk_free(mem, cache);
    if (used <= 0 || (size_t)used + 64 > size || (make && spk_make_folders(folder) != SPK_OK))
        return false;
    return stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 022) == 0;
}

static bool find_path(const spk_mem *mem, const char *key, bool make, char *path, size_t size)
{
    if (!find_folder(mem, make, path, size))
        return false;
    size_t used = strlen(path);
    snprintf(path + used, size - used, "%016llx" SUFFIX, (unsigned long long)spk_hash_text(SPK_HASH_START, key));
    return true;
}

static uint64_t hash_of(const char *key, const void *cubin, size_t bytes)
{
    return spk_hash_bytes(spk_hash_text(SPK_HASH_START, key), cubin, bytes);
}

static bool read_all(int file, void *out, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t got = read(file, (char *)out + done, count - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool write_all(int file, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t put = write(file, (const char *)bytes + done, count - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

/* The cubin of an open file, where every byte of it is as it should be. */
static bool read_cubin(const spk_mem *mem, int file, const char *key, void **cubin, size_t *bytes)
{
    header head;
    struct stat facts;
    const size_t key_bytes = strlen(key);
    char *text = NULL;
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || !read_all(file, &head, sizeof head))
        return false;
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.version != VERSION || head.key_bytes != key_bytes || head.bytes == 0 ||
        (uint64_t)facts.st_size < sizeof head + key_bytes || head.bytes != (uint64_t)facts.st_size - sizeof head - key_bytes)
        return false;
    if (spk_alloc(mem, key_bytes + head.bytes, 1, &text) != SPK_OK)
        return false;
    bool good = read_all(file, text, key_bytes + head.bytes) && memcmp(text, key, key_bytes) == 0 &&
                hash_of(key, text + key_bytes, head.bytes) == head.hash;
    if (good) {
        memmove(text, text + key_bytes, head.bytes);
        *cubin = text;
        *bytes = head.bytes;
    } else {
        spk_free(mem, text);
    }
    return good;
}

static bool load_file(const spk_mem *mem, const char *key, void **cubin, size_t *bytes)
{
    char path[PATH_MAX];
    if (!find_path(mem, key, false, path, sizeof path))
        return false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return false;
    bool good = read_cubin(mem, file, key, cubin, bytes);
    if (good)
        futimens(file, NULL); /* used now: file systems seldom keep the time of access */
    else
        unlink(path);
    close(file);
    return good;
}

bool spk_cubins_load(const spk_mem *mem, const char *key, void **cubin, size_t *bytes)
{
    return load_file(mem, key, cubin, bytes) || spk_cubins_recall(mem, key, cubin, bytes);
}

bool spk_cubins_has(const spk_mem *mem, const char *key)
{
    char path[PATH_MAX];
    struct stat facts;
    if (find_path(mem, key, false, path, sizeof path) && stat(path, &facts) == 0 && S_ISREG(facts.st_mode))
        return true;
    return spk_cubins_kept(key);
}

static bool write_cubin(const char *path, const header *head, const char *key, const void *cubin)
{
    char aside[PATH_MAX + 64];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(aside, sizeof aside, "%s.%ld-%lx-%p.tmp", path, (long)getpid(), (unsigned long)now.tv_nsec, (void *)&now);
    int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return false;
    bool good = write_all(file, head, sizeof *head) && write_all(file, key, head->key_bytes) && write_all(file, cubin, head->bytes) &&
                fsync(file) == 0;
    good = close(file) == 0 && good;
    good = good && rename(aside, path) == 0;
    if (!good)
        unlink(aside);
    return good;
}

void spk_cubins_save(const spk_mem *mem, const char *key, const void *cubin, size_t bytes)
{
    char path[PATH_MAX];
    if (!find_path(mem, key, true, path, sizeof path)) {
        spk_cubins_keep(key, cubin, bytes);
        return;
    }
    header head = {.version = VERSION, .key_bytes = (uint32_t)strlen(key), .bytes = bytes, .hash = hash_of(key, cubin, bytes)};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    if (!write_cubin(path, &head, key, cubin)) {
        spk_cubins_keep(key, cubin, bytes);
        return;
    }
    if (atomic_fetch_add(&untrimmed, (long long)bytes) + (long long)bytes < TRIM_EVERY_BYTES)
        return;
    atomic_store(&untrimmed, 0);
    *(strrchr(path, '/') + 1) = '\0';
    spk_cubins_trim(path, SPK_CUBINS_BYTES - TRIM_EVERY_BYTES);
}

/* ---- no more than so much */

typedef struct entry {
    char name[64];
    int64_t bytes;
    struct timespec used;
} entry;

static int older_first(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), wanted = strlen(tail);
    return length >= wanted && strcmp(text + length - wanted, tail) == 0;
}

/* Files of the cache in an open folder; removes those that a crashed writer left. */
static int list_files(DIR *folder, entry **out)
{
    int count = 0, room = 0;
    entry *entries = NULL;
    for (struct dirent *item; count < MOST_FILES && (item = readdir(folder)) != NULL;) {
        struct stat facts;
        if (fstatat(dirfd(folder), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
            continue;
        if (ends_with(item->d_name, ".tmp") && facts.st_mtim.tv_sec + STALE_S < spk_unix_time_s())
            unlinkat(dirfd(folder), item->d_name, 0);
        if (!ends_with(item->d_name, SUFFIX) || strlen(item->d_name) >= sizeof entries->name)
            continue;
        if (count == room) {
            room = room != 0 ? room * 2 : 256;
            if (spk_realloc(&spk_mem_system, &entries, (size_t)room, sizeof *entries) != SPK_OK)
                break;
        }
        entries[count].bytes = facts.st_size;
        entries[count].used = facts.st_mtim;
        strcpy(entries[count++].name, item->d_name);
    }
    *out = entries;
    return count;
}

void spk_cubins_trim(const char *path, int64_t limit)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    entry *entries = NULL;
    int64_t total = 0;
    int count = list_files(folder, &entries);
    for (int i = 0; i < count; i++)
        total += entries[i].bytes;
    if (total > limit) {
        qsort(entries, (size_t)count, sizeof *entries, older_first);
        for (int i = 0; i < count && total > limit; i++)
            if (unlinkat(dirfd(folder), entries[i].name, 0) == 0)
                total -= entries[i].bytes;
    }
    spk_free(&spk_mem_system, entries);
    closedir(folder);
}

/* ---- one compiles, the others wait: a byte of CACHE/cubin/lock, through a file description of its own so that threads exclude each other
 * too */

static int set_lock(int file, short type, const char *key)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(spk_hash_text(SPK_HASH_START, key) & 0x3fffffff), .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

int spk_cubins_lock(const spk_mem *mem, const char *key, double limit_s)
{
    char path[PATH_MAX];
    if (!find_folder(mem, true, path, sizeof path))
        return -1;
    strcat(path, "lock"); /* find_folder leaves room */
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return -1;
    const double begun = spk_now_us();
    int error;
    while ((error = set_lock(file, F_WRLCK, key)) == EAGAIN || error == EACCES) {
        if (spk_now_us() - begun >= limit_s * 1e6)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (error == 0)
        return file;
    close(file);
    return -1;
}

void spk_cubins_unlock(int token, const char *key)
{
    if (token < 0)
        return;
    set_lock(token, F_UNLCK, key); /* not only by closing: a child may share the description */
    close(token);
}

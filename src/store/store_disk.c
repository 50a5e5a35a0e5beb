/* The file, and everything that may be wrong with it: absent, damaged, not ours, newer, read-only, full, locked, replaced. Each is told
 * once, and none stops a run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "base/file.h"
#include "store/store_internal.h"

#define STAYS "; what is learned stays in this process"

static void switch_off(spk_store *store, const char *reason)
{
    store->disk_off = true;
    snprintf(store->off_reason, sizeof store->off_reason, "%s", reason);
    spk_store_warn(store, SPK_WARN_UNUSABLE, "store %s is not used: %s" STAYS, store->path, reason);
}

/* ------------------------------------------------------------------------------------------------ opening */

/* An empty file of the right mode: SQLite would make one that others may read. Only ever a new one: closing a second descriptor of a
 * database that this process has open would drop SQLite's locks on it. */
static int create(spk_store *store)
{
    const char *reason = NULL;
    if (!store->given && spk_make_folders(store->path) != SPK_OK) {
        reason = "its folder cannot be made";
    } else {
        int file = open(store->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0) {
            close(file);
            return SQLITE_OK;
        }
        if (errno == EEXIST)
            return SQLITE_OK;
        if (errno == ENOSPC || errno == EDQUOT)
            return SQLITE_FULL;
        if (errno == EMFILE || errno == ENFILE || errno == EINTR)
            return SQLITE_CANTOPEN;
        reason = errno == ENOENT ? "its folder does not exist" : spk_system_error(errno);
    }
    store->unmade = true;
    spk_store_warn(store, SPK_WARN_READ_ONLY, "store %s cannot be made: %s" STAYS, store->path, reason);
    return SPK_DB_ABSENT;
}

static bool is_link(const char *path)
{
    struct stat link;
    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
}

static bool was_held(const spk_store *store)
{
    return store->busy_ms < SPK_STORE_BUSY_MS;
}

/* How long a lock of another process is waited for. A plan reads several times. */
static int wait_ms(const spk_store *store, spk_disk_mode mode)
{
    if (mode != SPK_DISK_READ)
        return store->busy_ms;
    return was_held(store) ? store->busy_ms / 10 : store->read_ms;
}

bool spk_store_is_held(spk_store *store)
{
    pthread_mutex_lock(&store->mutex);
    const bool held = was_held(store);
    pthread_mutex_unlock(&store->mutex);
    return held;
}

static int open_disk(spk_store *store, spk_disk_mode mode)
{
    if (store->path[0] == '\0' || store->disk_off)
        return SPK_DB_ABSENT;
    if (store->disk != NULL && mode != SPK_DISK_READ && sqlite3_db_readonly(store->disk->sql, "main") == 1)
        spk_db_close(&store->disk); /* SQLite settled on reading when it opened the file, which may be writable by now */
    if (store->disk != NULL)
        return SQLITE_OK;
    struct stat about;
    if (stat(store->path, &about) != 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        if (!missing)
            switch_off(store, spk_system_error(errno));
        if (!missing || mode != SPK_DISK_WRITE)
            return SPK_DB_ABSENT;
        int code = create(store);
        if (code != SQLITE_OK)
            return code;
        if (stat(store->path, &about) != 0)
            return is_link(store->path) ? (switch_off(store, "it is a link to a file that does not exist"), SPK_DB_ABSENT)
                                        : SQLITE_CANTOPEN;
    }
    store->unmade = false;
    if (!S_ISREG(about.st_mode)) {
        switch_off(store, "it is not a regular file");
        return SPK_DB_ABSENT;
    }
    if (store->given && about.st_size > 0 && about.st_size < 16) { /* too short for its first words; SQLite would take one byte for none */
        switch_off(store, "it is not a database");
        return SPK_DB_ABSENT;
    }
    char reason[160] = "";
    if (!spk_store_trusts(store, &about, reason, sizeof reason)) {
        switch_off(store, reason);
        return SPK_DB_ABSENT;
    }
    store->device = about.st_dev;
    store->inode = about.st_ino;
    int code = spk_db_open(store->path, wait_ms(store, mode), store->interrupted, &store->disk, reason, sizeof reason);
    bool denied = code > 0 && (code & 0xff) == SQLITE_CANTOPEN && access(store->path, R_OK) != 0;
    if (code == SPK_DB_FOREIGN || code == SPK_DB_NEWER || code == SPK_DB_OLDER || denied) {
        switch_off(store, reason);
        return SPK_DB_ABSENT;
    }
    return code;
}

/* ------------------------------------------------------------------------------------------------ setting aside */

static bool is_same_file(const spk_store *store)
{
    struct stat now;
    return stat(store->path, &now) == 0 && now.st_dev == store->device && now.st_ino == store->inode;
}

/* A name nobody has: <path>.bad-<time>, with a number behind it from the second in one second on. */
static bool bad_name(const spk_store *store, char *out, size_t size)
{
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(out, size, "%s.bad-%lld", store->path, (long long)spk_unix_time_s());
        if (length > 0 && (size_t)length < size && i > 0)
            length += snprintf(out + length, size - (size_t)length, "-%d", i);
        if (length < 0 || (size_t)length + sizeof "-journal" > size)
            return false;
        if (access(out, F_OK) != 0 && errno == ENOENT)
            return true;
    }
    return false;
}

static int move_aside(spk_store *store, const char *reason)
{
    char to[4096], journal[4096 + 16], to_journal[4096 + 16];
    if (!bad_name(store, to, sizeof to))
        return ENAMETOOLONG;
    snprintf(journal, sizeof journal, "%s-journal", store->path);
    snprintf(to_journal, sizeof to_journal, "%s-journal", to);
    /* The journal first: left behind, it would be played back into the new file. */
    if (rename(journal, to_journal) != 0 && errno != ENOENT)
        return errno;
    if (rename(store->path, to) != 0)
        return errno;
    store->asides++;
    spk_store_warn(store, SPK_WARN_ASIDE, "store %s is damaged (%s): it was set aside as %s, and a new one is begun", store->path, reason,
                   to);
    return 0;
}

/* Whether the file begins as a database does, damaged or not. Only asked where SQLite refused it: nobody holds a lock on it then. */
static bool begins_like_a_database(const spk_store *store)
{
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic];
    int file = open(store->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool same = file >= 0 && read(file, head, sizeof head) == (ssize_t)sizeof head && memcmp(head, magic, sizeof magic) == 0;
    if (file >= 0)
        close(file);
    return same;
}

/* A second look through a connection of its own: what was a moment's failure of the disk, the network or the memory is gone by then. */
static bool stays_damaged(spk_store *store)
{
    spk_db *again = NULL;
    char reason[160];
    int64_t sound = 0;
    int code = spk_db_open(store->path, store->busy_ms, NULL, &again, reason, sizeof reason);
    if (code == SQLITE_OK)
        code = spk_db_integer(again, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'", &sound);
    if (again != NULL)
        code = spk_db_true_code(again, code);
    spk_db_close(&again);
    return spk_db_is_damage(code) || (code == SQLITE_OK && sound == 0);
}

/* Closes the file; true where another try is worth while: there is no damage after all, or the file has been set aside. That happens under
 * the lock on byte 0, so that of two processes that meet the damage the second does not move the first one's new file. */
static bool deal_with_damage(spk_store *store, int code, spk_disk_mode mode)
{
    char reason[160];
    spk_db_reason(store->disk, code, reason, sizeof reason);
    spk_db_close(&store->disk);
    if (store->given && !begins_like_a_database(store)) { /* a name that was mistyped, maybe: what it holds is the user's */
        switch_off(store, "it is not a database");
        return true;
    }
    if (!is_same_file(store)) /* another has set it aside */
        return true;
    if (mode == SPK_DISK_READ) { /* who only looks changes nothing */
        /* a text that is too long does not make the file unsound: what holds it is replaced like any entry */
        const char *fate = (code & 0xff) == SQLITE_TOOBIG ? "what holds it is not used, and replaced when its class is measured anew"
                                                          : "it is not used, and set aside when something is to be saved";
        spk_store_warn(store, SPK_WARN_DAMAGE, "store %s is damaged (%s): %s", store->path, reason, fate);
        return false;
    }
    int lock = -1;
    for (int i = 0; i < 2000 && spk_store_lock_byte(store, 0, &lock) == EAGAIN; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    int error = is_same_file(store) && stays_damaged(store) ? move_aside(store, reason) : 0;
    if (lock >= 0)
        spk_store_unlock_byte(lock, 0);
    if (error != 0) {
        snprintf(reason, sizeof reason, "it is damaged and cannot be set aside (%s)", spk_system_error(error));
        switch_off(store, reason);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------ jobs */

static void report_failure(spk_store *store, int code, spk_disk_mode mode)
{
    char reason[160];
    if (code <= 0)
        return;
    spk_db_reason(store->disk, code, reason, sizeof reason);
    const char *path = store->path;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        spk_store_warn(store, SPK_WARN_BUSY, "store %s is held by another process: not waited for any longer", path);
        break;
    case SQLITE_FULL:
        spk_store_warn(store, SPK_WARN_FULL, "store %s cannot grow: %s" STAYS, path, reason);
        break;
    case SQLITE_READONLY:
        if (mode == SPK_DISK_READ) {
            switch_off(store, reason); /* a journal that would have to be played back */
            break;
        }
        spk_store_warn(store, SPK_WARN_READ_ONLY, "store %s cannot be written: %s" STAYS, path, reason);
        break;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        spk_store_warn(store, SPK_WARN_IO, "store %s: %s" STAYS, path, reason);
        break;
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        break;
    case SQLITE_CORRUPT: /* told by then */
    case SQLITE_NOTADB:
    case SQLITE_TOOBIG:
        break;
    default: /* such as a table that is gone */
        switch_off(store, reason);
        spk_db_close(&store->disk);
    }
}

/* A lock that was waited for in vain is waited for only shortly until it has been got again. */
static void adapt_wait(spk_store *store, int code)
{
    const bool busy = spk_db_is_busy(code);
    int busy_ms = busy ? SPK_STORE_BUSY_MS / 100 : SPK_STORE_BUSY_MS;
    if (busy_ms == store->busy_ms || (!busy && code != SQLITE_OK))
        return;
    store->busy_ms = busy_ms;
}

int spk_store_on_disk(spk_store *store, spk_disk_mode mode, int (*job)(spk_db *db, void *arg), void *arg)
{
    if (mode != SPK_DISK_READ) {
        spk_store_forget_neighbours(store);
        store->wrote = true;
    }
    for (int attempt = 0;; attempt++) {
        int code = open_disk(store, mode);
        if (code == SQLITE_OK) {
            store->disk->busy_ms = wait_ms(store, mode);
            spk_db_begin(store->disk, mode != SPK_DISK_READ);
            code = mode == SPK_DISK_READ ? job(store->disk, arg) : spk_db_transaction(store->disk, job, arg);
            code = spk_db_true_code(store->disk, code);
        }
        if (attempt < 2 && spk_db_is_damage(code) && deal_with_damage(store, code, mode))
            continue;
        if (attempt < 2 && code == SQLITE_READONLY_DBMOVED) { /* removed or replaced under us: the file at the path counts */
            spk_db_close(&store->disk);
            continue;
        }
        if (store->comes_back && spk_db_is_busy(code))
            return code;
        adapt_wait(store, code);
        report_failure(store, code, mode);
        if (code > 0 && (code & 0xff) == SQLITE_IOERR)
            spk_db_close(&store->disk); /* looked at afresh next time */
        return code;
    }
}

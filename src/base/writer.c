/* Writing aside and renaming. Promises: until commit the path holds what it held, after it the whole new file; a failure, an abort or
 * an interruption leaves nothing, and what a killed writer left is removed by the next one in that folder. What is no regular file (a
 * pipe, /dev/stdout) is written straight to. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/temporary.h"

#define BUFFER_BYTES ((size_t)1 << 18)
#define BEHIND_BYTES ((int64_t)1 << 24)

struct spk_writer {
    spk_mem mem;
    char *path;      /* as the caller gave it, for messages */
    char *target;    /* the path behind symbolic links: what is replaced; NULL: written straight */
    char *temporary; /* in the folder of target; NULL: none exists */
    int fd;
    unsigned char *buffer;
    size_t used;
    int error;                     /* errno of the first write that failed */
    int64_t written, behind;       /* bytes given to the system, and of those, what it has been told to bring to the disk */
    const atomic_int *interrupted; /* NULL: never */
};

static spk_status system_fail(int error, const char *path, const char *what)
{
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG; /* EFBIG: a limit on the size of files, which is no less full */
    return spk_fail(full ? SPK_ERR_NO_SPACE : SPK_ERR_IO, "%s: cannot %s: %s", path, what, spk_system_error(error));
}

/* Closes and removes what was begun; the path is as it was before. */
static void drop_file(spk_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    if (w->temporary)
        unlink(w->temporary);
    spk_free(&w->mem, w->temporary);
    w->temporary = NULL;
}

static void writer_free(spk_writer *w)
{
    spk_mem mem = w->mem;
    drop_file(w);
    spk_free(&mem, w->buffer);
    spk_free(&mem, w->target);
    spk_free(&mem, w->path);
    spk_free(&mem, w);
}

static spk_status open_temporary(spk_writer *w, bool exists, mode_t mode)
{
    size_t room = strlen(w->target) + 64;
    SPK_TRY(spk_alloc(&w->mem, room, 1, &w->temporary));
    spk_temporary_sweep(w->target);
    w->fd = spk_temporary_open(w->temporary, room, w->target, exists ? 0600 : 0666);
    if (w->fd < 0) {
        int error = errno;
        spk_free(&w->mem, w->temporary);
        w->temporary = NULL; /* it is not ours to remove */
        return system_fail(error, w->path, "write");
    }
    if (exists && fchmod(w->fd, mode & 0777) != 0)
        return system_fail(errno, w->path, "keep the mode of the file");
    return SPK_OK;
}

/* What the path leads to. Another writer may make the file between two looks: only a link without a file behind it leads nowhere. */
static spk_status find_file(const spk_writer *w, struct stat *info, bool *exists)
{
    struct stat link;
    *exists = stat(w->path, info) == 0;
    if (!*exists && errno == ENOENT && lstat(w->path, &link) == 0) {
        *exists = stat(w->path, info) == 0;
        if (!*exists && errno == ENOENT && S_ISLNK(link.st_mode))
            return spk_fail(SPK_ERR_IO, "%s: cannot write: a symbolic link that leads nowhere", w->path);
    }
    return *exists || errno == ENOENT ? SPK_OK : system_fail(errno, w->path, "write");
}

/* target = the file behind the path's symbolic links, so that a rename replaces that and not the link. */
static spk_status resolve(spk_writer *w, bool exists)
{
    if (!exists)
        return spk_strdup(&w->mem, w->path, &w->target);
    char *real = realpath(w->path, NULL);
    if (!real)
        return system_fail(errno, w->path, "write");
    spk_status status = spk_strdup(&w->mem, real, &w->target);
    free(real);
    return status;
}

static spk_status open_target(spk_writer *w)
{
    struct stat info = {0};
    int descriptor = spk_named_descriptor(w->path);
    if (descriptor >= 0) {
        w->fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        return w->fd >= 0 ? SPK_OK : system_fail(errno, w->path, "write");
    }
    bool exists = false;
    SPK_TRY(find_file(w, &info, &exists));
    if (exists && S_ISDIR(info.st_mode))
        return spk_fail(SPK_ERR_IO, "%s: cannot write: it is a folder", w->path);
    size_t length = strlen(w->path);
    if (length == 0 || w->path[length - 1] == '/')
        return spk_fail(SPK_ERR_IO, "'%s': cannot write: no file name", w->path);
    if (exists && !S_ISREG(info.st_mode)) {
        do
            w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
        while (w->fd < 0 && errno == EINTR);
        return w->fd >= 0 ? SPK_OK : system_fail(errno, w->path, "write");
    }
    if (exists && faccessat(AT_FDCWD, w->path, W_OK, AT_EACCESS) != 0) /* a rename would pass over a read-only mark */
        return system_fail(errno, w->path, "write");
    SPK_TRY(resolve(w, exists));
    return open_temporary(w, exists, info.st_mode);
}

spk_status spk_writer_open(const spk_mem *mem, const char *path, spk_writer **writer)
{
    spk_writer *w = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *w, &w));
    w->mem = *mem;
    w->fd = -1;
    spk_status status = spk_strdup(mem, path, &w->path);
    if (status == SPK_OK)
        status = spk_alloc(mem, BUFFER_BYTES, 1, &w->buffer);
    if (status == SPK_OK)
        status = open_target(w);
    if (status != SPK_OK) {
        writer_free(w);
        return status;
    }
    *writer = w;
    return SPK_OK;
}

void spk_writer_heed(spk_writer *writer, const atomic_int *interrupted)
{
    writer->interrupted = interrupted;
}

static spk_status check_interrupted(spk_writer *w)
{
    if (!w->interrupted || !atomic_load_explicit(w->interrupted, memory_order_relaxed))
        return SPK_OK;
    w->error = EINTR;
    drop_file(w);
    return spk_fail(SPK_ERR_INTERRUPTED, "%s: writing was interrupted; %s", w->path,
                    w->target ? "the path holds what it held" : "a part of it is written");
}

/* Has the disk keep up with a long write, at most two pieces behind: nothing could interrupt an fsync of all of it. */
static void write_behind(spk_writer *w)
{
    while (w->target && w->written - w->behind >= BEHIND_BYTES) {
        (void)sync_file_range(w->fd, w->behind, BEHIND_BYTES, SYNC_FILE_RANGE_WRITE); /* what fails here, fsync tells */
        if (w->behind > 0)
            (void)sync_file_range(w->fd, w->behind - BEHIND_BYTES, BEHIND_BYTES,
                                  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        w->behind += BEHIND_BYTES;
    }
}

static spk_status write_all(spk_writer *w, const unsigned char *bytes, size_t count)
{
    if (w->error)
        return system_fail(w->error, w->path, "write");
    while (count > 0) {
        SPK_TRY(check_interrupted(w));
        ssize_t put = write(w->fd, bytes, count < (size_t)BEHIND_BYTES ? count : (size_t)BEHIND_BYTES);
        if (put >= 0) {
            bytes += put;
            count -= (size_t)put;
            w->written += put;
            write_behind(w);
        } else if (errno == EAGAIN) {
            struct pollfd ready = {.fd = w->fd, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            w->error = errno;
            drop_file(w);
            return system_fail(w->error, w->path, "write");
        }
    }
    return SPK_OK;
}

static spk_status flush(spk_writer *w)
{
    size_t used = w->used;
    w->used = 0;
    return write_all(w, w->buffer, used);
}

spk_status spk_writer_bytes(spk_writer *writer, const void *bytes, size_t count)
{
    spk_writer *w = writer;
    if (count > BUFFER_BYTES - w->used) {
        SPK_TRY(flush(w));
        if (count >= BUFFER_BYTES)
            return write_all(w, bytes, count);
    }
    if (w->error)
        return system_fail(w->error, w->path, "write");
    if (count > 0)
        memcpy(w->buffer + w->used, bytes, count);
    w->used += count;
    return SPK_OK;
}

spk_status spk_writer_printf(spk_writer *writer, const char *format, ...)
{
    spk_writer *w = writer;
    char small[512];
    char *text = small;
    va_list arguments;
    va_start(arguments, format);
    int length = spk_vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length < 0)
        return spk_fail(SPK_ERR_INTERNAL, "%s: cannot format '%s'", w->path, format);
    if ((size_t)length >= sizeof small) {
        text = NULL;
        SPK_TRY(spk_alloc(&w->mem, (size_t)length + 1, 1, &text));
        va_start(arguments, format);
        spk_vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    spk_status status = spk_writer_bytes(w, text, (size_t)length);
    if (text != small)
        spk_free(&w->mem, text);
    return status;
}

/* The folder of the target, to be synced once the name has changed; -1 in *fd: it cannot be opened (it may allow writing and not
 * reading), and there is nothing to wait for. */
static spk_status open_folder(const spk_writer *w, int *fd)
{
    char *folder = NULL;
    const char *slash = strrchr(w->target, '/');
    SPK_TRY(spk_strdup(&w->mem, slash ? w->target : ".", &folder));
    if (slash)
        folder[slash == w->target ? 1 : slash - w->target] = '\0';
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spk_free(&w->mem, folder);
    return SPK_OK;
}

/* The name of a file is safe only when its folder is. Some file systems cannot do that. */
static spk_status sync_folder(const spk_writer *w, int fd)
{
    bool failed = fd >= 0 && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS && errno != EBADF;
    return failed ? system_fail(errno, w->path, "sync the folder of the file") : SPK_OK;
}

/* Everything that can fail comes before the rename, but the last sync. */
static spk_status finish(spk_writer *w)
{
    SPK_TRY(flush(w));
    if (!w->target) { /* close reports what a network pipe or file did not take */
        int fd = w->fd;
        w->fd = -1;
        return close(fd) == 0 || errno == EINTR ? SPK_OK : system_fail(errno, w->path, "write");
    }
    SPK_TRY(check_interrupted(w));
    if (fsync(w->fd) != 0)
        return system_fail(errno, w->path, "sync");
    SPK_TRY(check_interrupted(w));
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return system_fail(errno, w->path, "write");
    SPK_TRY(open_folder(w, &fd));
    spk_status status = SPK_OK;
    if (rename(w->temporary, w->target) != 0) {
        status = system_fail(errno, w->path, "rename the finished file");
    } else {
        spk_free(&w->mem, w->temporary);
        w->temporary = NULL; /* it is the target now */
        status = sync_folder(w, fd);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

spk_status spk_writer_commit(spk_writer **writer)
{
    spk_writer *w = *writer;
    *writer = NULL;
    spk_status status = finish(w);
    writer_free(w);
    return status;
}

void spk_writer_abort(spk_writer **writer)
{
    if (!writer || !*writer)
        return;
    writer_free(*writer);
    *writer = NULL;
}

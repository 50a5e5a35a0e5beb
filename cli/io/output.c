/* Output files: written aside and renamed; permissions as the file there has them, or as a plain open would give. */
#include "cli/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/temporary.h"
#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/io/files.h"
#include "cli/io/messages.h"
#include "cli/io/signals.h"

typedef struct aside_file {
    char *name, *target; /* what is written, and what it replaces in the end */
} aside_file;

static int refuse(const cli *app, const char *path)
{
    return cli_fail(app, EXIT_RESOURCES, "cannot write %s: %s", path, spk_system_error(errno));
}

/* True for a pipe or a device, which cannot be renamed over. */
static bool written_straight(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* What a rename replaces: the file behind the path's links, so that a link stays one. The caller frees it; NULL with errno. */
static char *target_of(const char *path, bool exists)
{
    struct stat link;
    if (exists)
        return realpath(path, NULL);
    if (lstat(path, &link) != 0)
        return cli_format("%s", path);
    errno = ENOENT; /* a link that leads nowhere */
    return NULL;
}

static void release(aside_file *f)
{
    cli_writes_aside(NULL);
    free(f->name);
    free(f->target);
}

/* A new file beside path, with the permissions of the file that is there, or those of a plain open. -1 with errno. */
static int open_aside(const char *path, aside_file *f)
{
    struct stat status = {0};
    bool exists = stat(path, &status) == 0;
    *f = (aside_file){NULL, NULL};
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) /* a rename would pass over a read-only mark */
        return -1;
    f->target = target_of(path, exists);
    if (!f->target)
        return -1;
    size_t room = strlen(f->target) + 64;
    f->name = cli_alloc(room, 1);
    spk_temporary_sweep(f->target);
    cli_writes_in_folder_of(ASIDE_BY_PROGRAM, f->target); /* between opening and noting the name a signal would leave the file there */
    int file = spk_temporary_open(f->name, room, f->target, exists ? 0600 : 0666), saved = errno;
    if (file >= 0)
        cli_writes_aside(f->name);
    cli_writes_in_folder_of(ASIDE_BY_PROGRAM, NULL);
    if (file >= 0 && exists && fchmod(file, status.st_mode & 0777) != 0) {
        saved = errno;
        unlink(f->name);
        close(file);
        file = -1;
    }
    if (file < 0)
        release(f);
    errno = saved;
    return file;
}

int output_probe(const cli *app, const char *path)
{
    if (written_straight(path))
        return access(path, W_OK) == 0 ? EXIT_DONE : refuse(app, path);
    aside_file aside;
    int file = open_aside(path, &aside);
    if (file < 0)
        return refuse(app, path);
    unlink(aside.name);
    close(file);
    release(&aside);
    return EXIT_DONE;
}

int output_check(const cli *app, const char *option, const char *path)
{
    bool to_stdout = files_is_stdout(path);
    if (to_stdout && strcmp(option, "--resume") == 0)
        return cli_fail(app, EXIT_USAGE, "--resume -: the state is kept in a file");
    int code = files_add(app, FILE_RESULT, option, path);
    return code == EXIT_DONE && !to_stdout ? output_probe(app, path) : code;
}

static bool write_all(int file, const char *bytes, size_t count)
{
    while (count) {
        ssize_t written = write(file, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

int output_write(const cli *app, const char *path, const char *bytes, size_t count)
{
    aside_file aside = {NULL, NULL};
    cli_interrupt_ends(app, false);
    bool to_stdout = files_is_stdout(path), straight = to_stdout || written_straight(path);
    int file = to_stdout  ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
               : straight ? open(path, O_WRONLY | O_CLOEXEC)
                          : open_aside(path, &aside);
    if (file < 0)
        return refuse(app, path);
    bool fine = write_all(file, bytes, count) && (straight || fsync(file) == 0);
    int saved = errno;
    if (close(file) != 0 && fine) {
        saved = errno;
        fine = false;
    }
    if (fine && !straight && rename(aside.name, aside.target) != 0) {
        saved = errno;
        fine = false;
    }
    if (!fine && aside.name)
        unlink(aside.name);
    release(&aside);
    errno = saved;
    return fine || (straight && saved == EPIPE) ? EXIT_DONE : refuse(app, path);
}

/* Whether standard output is a pipe whose reader went away. */
static bool reader_left(void)
{
    struct pollfd end = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

int output_finish(const cli *app, int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int error = errno;                                   /* 0: an earlier write failed, and its bytes are gone */
    if (error == EPIPE || (error == 0 && reader_left())) /* the reader has seen enough */
        return code;
    int failed =
        cli_fail(app, EXIT_RESOURCES, "cannot write to standard output: %s", error ? spk_system_error(error) : "some of it was refused");
    return code ? code : failed;
}

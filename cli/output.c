/* Output files: written aside and renamed; permissions as a plain open would give. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const cli *app, const char *path)
{
    return cli_fail(app, EXIT_RESOURCES, "cannot write %s: %s", path, strerror(errno));
}

/* True for a pipe or a device, which cannot be renamed over. */
static bool written_straight(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* A new file beside path; *name is the caller's to free. -1 with errno. */
static int open_aside(const char *path, char **name)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    *name = cli_format("%s.XXXXXX", path);
    int file = mkstemp(*name);
    if (file < 0) {
        int saved = errno;
        free(*name);
        *name = NULL;
        errno = saved;
    }
    cli_writes_aside(*name);
    return file;
}

int output_check(const cli *app, const char *path)
{
    if (written_straight(path))
        return access(path, W_OK) == 0 ? EXIT_DONE : refuse(app, path);
    char *name = NULL;
    int file = open_aside(path, &name);
    if (file < 0)
        return refuse(app, path);
    close(file);
    unlink(name);
    cli_writes_aside(NULL);
    free(name);
    return EXIT_DONE;
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
    char *name = NULL;
    cli_interrupt_ends(app, false);
    bool straight = written_straight(path);
    int file = straight ? open(path, O_WRONLY | O_CLOEXEC) : open_aside(path, &name);
    if (file < 0)
        return refuse(app, path);
    bool fine = write_all(file, bytes, count);
    if (fine && !straight) {
        mode_t mask = umask(0);
        umask(mask);
        fine = fchmod(file, 0666 & ~mask) == 0 && fsync(file) == 0;
    }
    int saved = errno;
    if (close(file) != 0 && fine) {
        saved = errno;
        fine = false;
    }
    if (fine && !straight && rename(name, path) != 0) {
        saved = errno;
        fine = false;
    }
    if (!fine && name)
        unlink(name);
    cli_writes_aside(NULL);
    free(name);
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
    int error = errno; /* 0: an earlier write failed, and its bytes are gone */
    if (error == EPIPE || (error == 0 && reader_left())) /* the reader has seen enough */
        return code;
    int failed = cli_fail(app, EXIT_RESOURCES, "cannot write to standard output: %s", error ? strerror(error) : "some of it was refused");
    return code ? code : failed;
}

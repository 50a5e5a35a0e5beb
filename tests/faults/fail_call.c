/* Preloaded (LD_PRELOAD) into the command line by tests/faults/run.py: makes chosen calls to the system fail.
 *
 *   FAIL_CALL=KIND:N       the N-th call of this kind fails, counted from the first call of the process
 *   FAIL_CALL=KIND:N:on    the N-th and every later one
 *   FAIL_ERRNO=NUMBER      with this errno (default: the kind's usual one)
 *   QUIT_AT=N              SIGQUIT comes as soon as the N-th file is there that is written aside (.sparsek-...)
 *   COUNT_CALLS=FILE       writes how many calls of each kind there were, when the process ends
 *
 * Kinds: malloc (calloc, realloc, aligned_alloc and posix_memalign, too), open, read, write, fsync, mmap, pthread_create, rename, fcntl. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { MALLOC, OPEN, READ, WRITE, FSYNC, MMAP, THREAD, RENAME, FCNTL, KINDS };

static const struct {
    const char *name;
    int error;
} kinds[KINDS] = {
    [MALLOC] = {"malloc", ENOMEM},         [OPEN] = {"open", EMFILE},  [READ] = {"read", EIO},
    [WRITE] = {"write", ENOSPC},           [FSYNC] = {"fsync", EIO},   [MMAP] = {"mmap", ENOMEM},
    [THREAD] = {"pthread_create", EAGAIN}, [RENAME] = {"rename", EIO}, [FCNTL] = {"fcntl", ENOLCK},
};

static atomic_long calls[KINDS];
static int failing = -1, error_number;
static long first;
static bool from_then_on, ready;
static long quit_at;
static atomic_long written_aside;

static __attribute__((constructor)) void read_wish(void)
{
    const char *wish = getenv("FAIL_CALL"), *number = getenv("FAIL_ERRNO");
    const char *quit = getenv("QUIT_AT");
    quit_at = quit != NULL ? strtol(quit, NULL, 10) : 0;
    const char *colon = wish != NULL ? strchr(wish, ':') : NULL;
    for (int kind = 0; colon != NULL && kind < KINDS; kind++)
        if (strlen(kinds[kind].name) == (size_t)(colon - wish) && strncmp(kinds[kind].name, wish, (size_t)(colon - wish)) == 0)
            failing = kind;
    if (wish != NULL && failing < 0)
        _exit(99); /* a misspelt wish would test nothing */
    if (failing >= 0) {
        char *end = NULL;
        first = strtol(colon + 1, &end, 10);
        from_then_on = strcmp(end, ":on") == 0;
        error_number = number != NULL ? atoi(number) : kinds[failing].error;
    }
    ready = true;
}

static __attribute__((destructor)) void write_counts(void)
{
    const char *path = getenv("COUNT_CALLS");
    char text[512];
    int length = 0;
    if (path == NULL)
        return;
    for (int kind = 0; kind < KINDS; kind++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s %ld\n", kinds[kind].name, atomic_load(&calls[kind]));
    /* By system call: the functions of this name are the ones below. */
    long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        (void)!syscall(SYS_write, file, text, length);
        syscall(SYS_close, file);
    }
}

/* Counts a call; whether it is to fail. */
static bool fails(enum kind kind)
{
    if (!ready)
        return false;
    long number = atomic_fetch_add(&calls[kind], 1) + 1;
    bool chosen = kind == (enum kind)failing && (from_then_on ? number >= first : number == first);
    if (chosen)
        errno = error_number;
    return chosen;
}

/* The function of this name that comes after this library. */
#define NEXT(function)                         \
    static __typeof__(function) *_Atomic next; \
    if (next == NULL)                          \
    next = (__typeof__(function) *)dlsym(RTLD_NEXT, #function)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return fails(MALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (fails(MALLOC))
        return ENOMEM;
    void *made = __libc_memalign(alignment, size);
    if (made == NULL)
        return ENOMEM;
    *out = made;
    return 0;
}

static int mode_of(int flags, va_list rest)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
}

static int opened(const char *path, int flags, int file)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (file >= 0 && (flags & O_CREAT) != 0 && strncmp(name, ".sparsek-", 9) == 0 && atomic_fetch_add(&written_aside, 1) + 1 == quit_at)
        raise(SIGQUIT);
    return file;
}

#define OPEN_FUNCTION(name)                                                     \
    int name(const char *path, int flags, ...)                                  \
    {                                                                           \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        int mode = mode_of(flags, rest);                                        \
        va_end(rest);                                                           \
        NEXT(name);                                                             \
        return fails(OPEN) ? -1 : opened(path, flags, next(path, flags, mode)); \
    }
OPEN_FUNCTION(open)
OPEN_FUNCTION(open64)

ssize_t read(int file, void *buffer, size_t size)
{
    NEXT(read);
    return fails(READ) ? -1 : next(file, buffer, size);
}

ssize_t write(int file, const void *buffer, size_t size)
{
    NEXT(write);
    return fails(WRITE) ? -1 : next(file, buffer, size);
}

#define AT_FUNCTION(name, kind, pointer, offset_type)                       \
    ssize_t name(int file, pointer buffer, size_t size, offset_type offset) \
    {                                                                       \
        NEXT(name);                                                         \
        return fails(kind) ? -1 : next(file, buffer, size, offset);         \
    }
AT_FUNCTION(pread, READ, void *, off_t)
AT_FUNCTION(pread64, READ, void *, off64_t)
AT_FUNCTION(pwrite, WRITE, const void *, off_t)
AT_FUNCTION(pwrite64, WRITE, const void *, off64_t)

int fsync(int file)
{
    NEXT(fsync);
    return fails(FSYNC) ? -1 : next(file);
}

int fdatasync(int file)
{
    NEXT(fdatasync);
    return fails(FSYNC) ? -1 : next(file);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return fails(RENAME) ? -1 : next(from, to);
}

#define MMAP_FUNCTION(name, offset_type)                                                        \
    void *name(void *address, size_t size, int protection, int flags, int file, offset_type at) \
    {                                                                                           \
        NEXT(name);                                                                             \
        return fails(MMAP) ? MAP_FAILED : next(address, size, protection, flags, file, at);     \
    }
MMAP_FUNCTION(mmap, off_t)
MMAP_FUNCTION(mmap64, off64_t)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    NEXT(pthread_create);
    return fails(THREAD) ? error_number : next(thread, attributes, body, argument);
}

#define FCNTL_FUNCTION(name)                                      \
    int name(int file, int command, ...)                          \
    {                                                             \
        va_list rest;                                             \
        va_start(rest, command);                                  \
        void *argument = va_arg(rest, void *);                    \
        va_end(rest);                                             \
        NEXT(name);                                               \
        return fails(FCNTL) ? -1 : next(file, command, argument); \
    }
FCNTL_FUNCTION(fcntl)
FCNTL_FUNCTION(fcntl64)

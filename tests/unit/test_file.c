/* Writing aside: what is left behind when it fails, what takes the place when not, what is written straight; folders. */
#include "unit/io_case.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/rng.h"

static void check_content(const char *path, const char *expected)
{
    size_t count;
    char *text = get_file(path, &count);
    assert_string_equal(text, expected);
    free(text);
}

static void write_text(const char *path, const char *text)
{
    spk_writer *writer = NULL;
    assert_ok(spk_writer_open(&case_mem, path, &writer));
    assert_ok(spk_writer_printf(writer, "%s", text));
    assert_ok(spk_writer_commit(&writer));
    assert_null(writer);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void test_write(void **state)
{
    (void)state;
    spk_writer *writer = NULL;
    const char *path = in_folder("out");
    int before = count_files(case_folder);
    mode_t mask = umask(027);
    write_text(path, "first");
    umask(mask);
    check_content(path, "first");
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_ok(spk_writer_open(&case_mem, path, &writer));
    assert_ok(spk_writer_bytes(writer, "sec", 3));
    check_content(path, "first"); /* until the end */
    assert_ok(spk_writer_printf(writer, "%c%d", 'x', 17));
    assert_int_equal(count_files(case_folder), before + 2);
    assert_ok(spk_writer_commit(&writer));
    check_content(path, "secx17");
    assert_int_equal(mode_of(path), 0604);
    assert_int_equal(count_files(case_folder), before + 1);
    /* abandoned: as if nothing had been */
    assert_ok(spk_writer_open(&case_mem, path, &writer));
    assert_ok(spk_writer_bytes(writer, "third", 5));
    spk_writer_abort(&writer);
    assert_null(writer);
    spk_writer_abort(&writer);
    check_content(path, "secx17");
    assert_int_equal(count_files(case_folder), before + 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(case_live, 0);
}

static void test_write_much(void **state)
{
    (void)state;
    size_t count = 3 * MB + 4321, size;
    unsigned char *bytes = random_bytes(count);
    spk_writer *writer = NULL;
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    assert_ok(spk_writer_open(&case_mem, in_folder("much"), &writer));
    for (size_t at = 0; at < count;) {
        size_t piece = (size_t)spk_rng_below(&rng, spk_rng_below(&rng, 5) ? 3000 : 600000);
        piece = piece < count - at ? piece : count - at;
        assert_ok(spk_writer_bytes(writer, bytes + at, piece));
        at += piece;
    }
    assert_ok(spk_writer_commit(&writer));
    char *again = get_file(in_folder("much"), &size);
    assert_int_equal(size, count);
    assert_memory_equal(again, bytes, count);
    free(again);
    bytes[0] = 1;
    memset(bytes, 'a', 2000);
    bytes[2000] = '\0';
    assert_ok(spk_writer_open(&case_mem, in_folder("much"), &writer));
    assert_ok(spk_writer_printf(writer, "%s", (const char *)bytes)); /* longer than the formatter's own room */
    assert_ok(spk_writer_commit(&writer));
    check_content(in_folder("much"), (const char *)bytes);
    free(bytes);
    unlink(in_folder("much"));
}

static void test_links(void **state)
{
    (void)state;
    struct stat info;
    char message[300];
    spk_writer *writer = NULL;
    write_text(in_folder("target"), "old");
    assert_int_equal(symlink("target", in_folder("link")), 0);
    write_text(in_folder("link"), "new");
    check_content(in_folder("target"), "new");
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(in_folder("target")), 0);
    snprintf(message, sizeof message, "%s/link: cannot write: a symbolic link that leads nowhere", case_folder);
    expect_status(spk_writer_open(&case_mem, in_folder("link"), &writer), SPK_ERR_IO, message);
    assert_int_equal(unlink(in_folder("link")), 0);
    assert_int_equal(case_live, 0);
}

static void test_unwritable(void **state)
{
    (void)state;
    char message[300];
    spk_writer *writer = NULL;
    int before = count_files(case_folder);
    snprintf(message, sizeof message, "%s: cannot write: it is a folder", case_folder);
    expect_status(spk_writer_open(&case_mem, case_folder, &writer), SPK_ERR_IO, message);
    snprintf(message, sizeof message, "%s/no/such: cannot write: No such file or directory", case_folder);
    expect_status(spk_writer_open(&case_mem, in_folder("no/such"), &writer), SPK_ERR_IO, message);
    expect_status(spk_writer_open(&case_mem, "/proc/sparsek", &writer), SPK_ERR_IO,
                  "/proc/sparsek: cannot write: No such file or directory");
    expect_status(spk_writer_open(&case_mem, "", &writer), SPK_ERR_IO, "'': cannot write: no file name");
    snprintf(message, sizeof message, "'%s/new/': cannot write: no file name", case_folder);
    expect_status(spk_writer_open(&case_mem, in_folder("new/"), &writer), SPK_ERR_IO, message);
    if (geteuid() != 0) { /* nothing is closed to the superuser */
        write_text(in_folder("closed"), "x");
        chmod(in_folder("closed"), 0400);
        snprintf(message, sizeof message, "%s/closed: cannot write: Permission denied", case_folder);
        expect_status(spk_writer_open(&case_mem, in_folder("closed"), &writer), SPK_ERR_IO, message);
        unlink(in_folder("closed"));
        chmod(case_folder, 0500);
        snprintf(message, sizeof message, "%s/new: cannot write: Permission denied", case_folder);
        expect_status(spk_writer_open(&case_mem, in_folder("new"), &writer), SPK_ERR_IO, message);
        chmod(case_folder, 0700);
    }
    assert_null(writer);
    assert_int_equal(count_files(case_folder), before);
    assert_int_equal(case_live, 0);
}

/* The same as an ordinary user, in a process of its own: a file that is not his, in a folder that anybody may write to, and the root. */
static void test_unwritable_as_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    write_text(in_folder("roots"), "x");
    chmod(case_folder, 0777);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        spk_writer *writer = NULL;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(0);
        if (spk_writer_open(&spk_mem_system, in_folder("roots"), &writer) != SPK_ERR_IO ||
            !strstr(spk_error_message(0), "Permission denied"))
            _exit(1);
        if (spk_writer_open(&spk_mem_system, "/new", &writer) != SPK_ERR_IO || !strstr(spk_error_message(0), "Permission denied"))
            _exit(2);
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    unlink(in_folder("roots"));
    chmod(case_folder, 0700);
}

typedef struct taking {
    int fd;
    char *bytes;
    size_t count;
} taking;

/* Until nobody can write more into the pipe. */
static void wait_until_full(int fd)
{
    for (struct pollfd end = {.fd = fd, .events = POLLOUT};;) {
        char path[40];
        snprintf(path, sizeof path, "/dev/fd/%d", fd);
        end.fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(end.fd >= 0);
        const bool full = poll(&end, 1, 0) == 0;
        close(end.fd);
        if (full)
            return;
        sched_yield();
    }
}

static void *take(void *argument)
{
    taking *t = argument;
    wait_until_full(t->fd);
    for (size_t at = 0; at < t->count;) {
        ssize_t got = read(t->fd, t->bytes + at, t->count - at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    return NULL;
}

static void test_direct(void **state)
{
    (void)state;
    spk_writer *writer = NULL;
    char path[40], text[16] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    write_text(path, "through");
    assert_int_equal(read(ends[0], text, sizeof text), 7);
    assert_string_equal(text, "through");
    close(ends[0]);
    close(ends[1]);
    /* a pipe that does not block is waited for */
    static char much[1 << 20], taken[1 << 20];
    pthread_t thread;
    taking t = {.bytes = taken, .count = sizeof taken};
    memset(much, 'm', sizeof much);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    t.fd = ends[0];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(pthread_create(&thread, NULL, take, &t), 0);
    assert_ok(spk_writer_open(&case_mem, path, &writer));
    assert_ok(spk_writer_bytes(writer, much, sizeof much));
    assert_ok(spk_writer_commit(&writer));
    pthread_join(thread, NULL);
    assert_memory_equal(taken, much, sizeof much);
    close(ends[0]);
    close(ends[1]);
    /* a descriptor of a regular file keeps its place: what was there stays */
    int fd = open(in_folder("log"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "before ", 7), 7);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    write_text(path, "after");
    check_content(in_folder("log"), "before after");
    close(fd);
    unlink(in_folder("log"));
    write_text("/dev/null", "nothing");
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    expect_status(spk_writer_open(&case_mem, "/dev/fd/999999", &writer), SPK_ERR_IO, "/dev/fd/999999: cannot write: Bad file descriptor");
    expect_status(spk_writer_open(&case_mem, "/dev/fd/99999999999999999999", &writer), SPK_ERR_IO,
                  "/dev/fd/99999999999999999999: cannot write: No such file or directory");
    assert_int_equal(case_live, 0);
}

static void test_full(void **state)
{
    (void)state;
    static const char zeros[1 << 19];
    spk_writer *writer = NULL;
    assert_ok(spk_writer_open(&case_mem, "/dev/full", &writer));
    assert_ok(spk_writer_bytes(writer, "x", 1));
    expect_status(spk_writer_commit(&writer), SPK_ERR_NO_SPACE, "/dev/full: cannot write: No space left on device");
    assert_ok(spk_writer_open(&case_mem, "/dev/full", &writer));
    expect_status(spk_writer_bytes(writer, zeros, sizeof zeros), SPK_ERR_NO_SPACE, "/dev/full: cannot write: No space left on device");
    /* it stays broken */
    expect_status(spk_writer_bytes(writer, "x", 1), SPK_ERR_NO_SPACE, "/dev/full: cannot write: No space left on device");
    spk_writer_abort(&writer);
    /* a limit on the size of files stands for a full disk */
    char message[300];
    const char *path = in_folder("full");
    write_text(path, "old");
    int before = count_files(case_folder);
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    small = limit;
    small.rlim_cur = 300000;
    snprintf(message, sizeof message, "%s: cannot write: File too large", path);
    for (int at_commit = 0; at_commit < 2; at_commit++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        spk_status opened = spk_writer_open(&case_mem, path, &writer);
        spk_status first = spk_writer_bytes(writer, zeros, 250000), second = SPK_OK;
        second = at_commit ? spk_writer_bytes(writer, zeros, 100000) : spk_writer_bytes(writer, zeros, sizeof zeros);
        int left = count_files(case_folder);
        spk_status last = spk_writer_commit(&writer);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(opened, SPK_OK);
        assert_int_equal(first, SPK_OK);
        assert_int_equal(second, at_commit ? SPK_OK : SPK_ERR_NO_SPACE);
        assert_int_equal(left, before + at_commit); /* a write that failed leaves nothing, at once */
        expect_status(last, SPK_ERR_NO_SPACE, message);
        assert_int_equal(count_files(case_folder), before);
        check_content(path, "old");
    }
    signal(SIGXFSZ, SIG_DFL);
    unlink(path);
    assert_int_equal(case_live, 0);
}

static void *write_often(void *argument)
{
    for (int i = 0; i < 4; i++) {
        spk_writer *writer = NULL;
        if (spk_writer_open(&spk_mem_system, argument, &writer) != SPK_OK || /* case_mem counts for one thread only */
            spk_writer_bytes(writer, i % 2 ? "odd" : "even", i % 2 ? 3 : 4) != SPK_OK || spk_writer_commit(&writer) != SPK_OK)
            return argument;
    }
    return NULL;
}

/* Many writers of one path, which is not there at first: each result is whole, none meets another's temporary file. */
static void test_together(void **state)
{
    (void)state;
    pthread_t threads[4];
    char path[200];
    size_t size;
    void *failed;
    snprintf(path, sizeof path, "%s", in_folder("shared"));
    int before = count_files(case_folder);
    for (int round = 0; round < 40; round++) { /* who is second sees the file come into being */
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, write_often, path), 0);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], &failed);
            assert_null(failed);
        }
        char *text = get_file(path, &size);
        assert_true(strcmp(text, "odd") == 0 || strcmp(text, "even") == 0);
        free(text);
        assert_int_equal(count_files(case_folder), before + 1);
        unlink(path);
    }
}

/* Each allocation in turn is refused: an error, nothing left, nothing leaked. */
static void test_no_memory(void **state)
{
    (void)state;
    int before = count_files(case_folder);
    bool done = false;
    for (int64_t i = 0; !done; i++) {
        spk_writer *writer = NULL;
        spk_mem_fail_after(i);
        spk_status status = spk_writer_open(&case_mem, in_folder("memory"), &writer);
        if (status == SPK_OK) {
            status = spk_writer_printf(writer, "%1000d", 1);
            spk_status end = spk_writer_commit(&writer);
            status = status == SPK_OK ? end : status;
        }
        spk_mem_fail_after(-1);
        done = status == SPK_OK;
        if (!done)
            assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        assert_null(writer);
        assert_int_equal(case_live, 0);
        assert_true(i < 20);
        assert_int_equal(count_files(case_folder), before + done);
    }
    unlink(in_folder("memory"));
    done = false;
    for (int64_t i = 0; !done; i++) {
        spk_reader *reader = NULL;
        spk_mem_fail_after(i);
        spk_status status = spk_reader_open(&case_mem, "/dev/null", &reader);
        spk_mem_fail_after(-1);
        done = status == SPK_OK;
        spk_reader_close(&reader);
        assert_int_equal(case_live, 0);
        assert_true(i < 20);
    }
}

static void test_folders(void **state)
{
    (void)state;
    char message[300];
    assert_ok(spk_make_folders(in_folder("a/b//c/file")));
    assert_int_equal(mode_of(in_folder("a/b/c")), 0700);
    assert_ok(spk_make_folders(in_folder("a/b/c/file")));
    assert_ok(spk_make_folders("file"));
    assert_ok(spk_make_folders("/file"));
    assert_int_equal(access(in_folder("a/b/c/file"), F_OK), -1);
    put_file(in_folder("a/f"), "", 0);
    snprintf(message, sizeof message, "%s/a/f: cannot make the folder: a file of that name is in the way", case_folder);
    expect_status(spk_make_folders(in_folder("a/f/g/h")), SPK_ERR_IO, message);
    expect_status(spk_make_folders("/proc/sparsek/file"), SPK_ERR_IO, "/proc/sparsek: cannot make the folder: No such file or directory");
    unlink(in_folder("a/f"));
    rmdir(in_folder("a/b/c"));
    rmdir(in_folder("a/b"));
    rmdir(in_folder("a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),      cmocka_unit_test(test_write_much),         cmocka_unit_test(test_links),
        cmocka_unit_test(test_unwritable), cmocka_unit_test(test_unwritable_as_user), cmocka_unit_test(test_direct),
        cmocka_unit_test(test_full),       cmocka_unit_test(test_together),           cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

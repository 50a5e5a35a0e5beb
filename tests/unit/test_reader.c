/* Reading: windows, pieces and long ways over files, pipes and memory; what cannot be read. */
#include "unit/io_case.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/rng.h"

/* Reads to the end by every means in turn and compares. */
static void check_reader(spk_reader *reader, const unsigned char *expected, size_t count, int64_t size)
{
    spk_rng rng;
    spk_rng_seed(&rng, 11);
    size_t at = 0;
    unsigned char *piece = malloc(3 * MB);
    assert_non_null(piece);
    assert_int_equal(spk_reader_size(reader), size);
    while (at < count) {
        size_t left = count - at, want = (size_t)spk_rng_below(&rng, spk_rng_below(&rng, 4) ? 5000 : MB + 1), have;
        const unsigned char *bytes;
        assert_int_equal(spk_reader_offset(reader), at);
        switch (spk_rng_below(&rng, 4)) {
        case 0:
            assert_ok(spk_reader_window(reader, want, &bytes, &have));
            assert_true(have >= want || have == left);
            assert_memory_equal(bytes, expected + at, have < want ? have : want);
            have = have < want ? have : (size_t)spk_rng_below(&rng, have + 1);
            spk_reader_skip(reader, have);
            at += have;
            break;
        case 1:
            want *= 1 + spk_rng_below(&rng, 3);
            want = want < left ? want : left;
            assert_ok(spk_reader_bytes(reader, piece, want));
            assert_memory_equal(piece, expected + at, want);
            at += want;
            break;
        case 2:
            want *= 1 + spk_rng_below(&rng, 4);
            want = want < left ? want : left;
            assert_ok(spk_reader_pass(reader, (int64_t)want));
            at += want;
            break;
        default:
            assert_int_equal(spk_reader_peek(reader), expected[at]);
            assert_int_equal(spk_reader_byte(reader), expected[at]);
            at++;
        }
    }
    assert_int_equal(spk_reader_byte(reader), -1);
    assert_int_equal(spk_reader_peek(reader), -1);
    assert_ok(spk_reader_status(reader));
    assert_int_equal(spk_reader_bytes(reader, piece, 3), SPK_ERR_FORMAT);
    assert_int_equal(spk_reader_pass(reader, 1), SPK_ERR_FORMAT);
    assert_ok(spk_reader_bytes(reader, piece, 0));
    assert_int_equal(spk_reader_offset(reader), count);
    free(piece);
}

typedef struct feeding {
    int fd;
    const unsigned char *bytes;
    size_t count;
} feeding;

static void *feed(void *argument)
{
    feeding *f = argument;
    size_t step = 1;
    for (size_t at = 0; at < f->count;) {
        size_t piece = step % 70001 < f->count - at ? step % 70001 : f->count - at;
        ssize_t put = write(f->fd, f->bytes + at, piece);
        if (put < 0)
            break;
        at += (size_t)put;
        step = step * 3 + 1;
    }
    close(f->fd);
    return NULL;
}

static void test_read(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 4096, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20, (9 << 20) + 12345};
    size_t cases = sizeof counts / sizeof *counts - (getenv("SPARSEK_TEST_QUICK") != NULL);
    for (size_t i = 0; i < cases; i++) {
        spk_reader *reader = NULL;
        size_t count = counts[i];
        unsigned char *bytes = random_bytes(count);
        put_file(in_folder("bytes"), bytes, count);
        assert_ok(spk_reader_open(&case_mem, in_folder("bytes"), &reader));
        check_reader(reader, bytes, count, (int64_t)count);
        spk_reader_close(&reader);
        assert_null(reader);
        assert_ok(spk_reader_open_memory(&case_mem, bytes, count, "memory", &reader));
        assert_string_equal(spk_reader_name(reader), "memory");
        check_reader(reader, bytes, count, (int64_t)count);
        spk_reader_close(&reader);
        int ends[2];
        char path[40];
        pthread_t thread;
        assert_int_equal(pipe(ends), 0);
        feeding f = {.fd = ends[1], .bytes = bytes, .count = count};
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        assert_ok(spk_reader_open(&case_mem, path, &reader));
        assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
        check_reader(reader, bytes, count, -1);
        pthread_join(thread, NULL);
        spk_reader_close(&reader);
        close(ends[0]);
        free(bytes);
    }
    spk_reader *none = NULL;
    spk_reader_close(&none);
    assert_int_equal(case_live, 0);
}

/* A long way over a regular file is not read: a hole of a terabyte takes no time. */
static void test_pass(void **state)
{
    (void)state;
    spk_reader *reader = NULL;
    const off_t far = (off_t)1 << 40;
    int fd = open(in_folder("hole"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    if (pwrite(fd, "end", 3, far) != 3) { /* the file system holds no such file */
        close(fd);
        unlink(in_folder("hole"));
        return;
    }
    close(fd);
    assert_ok(spk_reader_open(&case_mem, in_folder("hole"), &reader));
    assert_int_equal(spk_reader_byte(reader), 0);
    assert_int_equal(spk_reader_pass(reader, far + 3), SPK_ERR_FORMAT);
    assert_ok(spk_reader_pass(reader, far - 1));
    assert_int_equal(spk_reader_offset(reader), far);
    assert_int_equal(spk_reader_byte(reader), 'e');
    assert_ok(spk_reader_pass(reader, 1));
    assert_int_equal(spk_reader_byte(reader), 'd');
    assert_int_equal(spk_reader_byte(reader), -1);
    spk_reader_close(&reader);
    unlink(in_folder("hole"));
}

static void test_unreadable(void **state)
{
    (void)state;
    char message[300];
    spk_reader *reader = NULL;
    snprintf(message, sizeof message, "%s/missing: cannot open: No such file or directory", case_folder);
    expect_status(spk_reader_open(&case_mem, in_folder("missing"), &reader), SPK_ERR_IO, message);
    snprintf(message, sizeof message, "%s: cannot read: it is a folder", case_folder);
    expect_status(spk_reader_open(&case_mem, case_folder, &reader), SPK_ERR_IO, message);
    assert_null(reader);
    /* a file that opens and does not read */
    const unsigned char *bytes;
    size_t have;
    if (spk_reader_open(&case_mem, "/proc/self/mem", &reader) == SPK_OK) {
        const char *text = "/proc/self/mem: byte 0: cannot read: Input/output error";
        expect_status(spk_reader_window(reader, 1, &bytes, &have), SPK_ERR_IO, text);
        assert_int_equal(spk_reader_byte(reader), -2);
        assert_int_equal(spk_reader_peek(reader), -2);
        expect_status(spk_reader_status(reader), SPK_ERR_IO, text);
        expect_status(spk_reader_bytes(reader, message, 1), SPK_ERR_IO, text);
        spk_reader_close(&reader);
    }
    assert_int_equal(case_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

/* gzip files: members, damage, ends in the wrong place, sources of every kind, what a small file may ask for. */
#include "unit/io_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <zlib.h>

#define HEAD "%%MatrixMarket matrix "

/* One member, appended to what is there. */
static void pack(unsigned char **to, size_t *used, const void *bytes, size_t count, int level)
{
    z_stream z = {.zalloc = Z_NULL};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, count) + 64;
    *to = realloc(*to, *used + room);
    assert_non_null(*to);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)count;
    z.next_out = *to + *used;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *used += z.total_out;
    deflateEnd(&z);
}

/* All that a reader of packed bytes in memory gives, in pieces of one size; *count is how much. */
static spk_status unpack(const unsigned char *packed, size_t size, size_t piece, unsigned char *out, size_t room, size_t *count)
{
    spk_reader *reader = NULL;
    assert_ok(spk_reader_open_memory(&case_mem, packed, size, "f", &reader));
    spk_status status = spk_reader_unpack(reader);
    *count = 0;
    while (status == SPK_OK && *count < room) {
        const unsigned char *bytes;
        size_t have = 0;
        status = spk_reader_window(reader, piece, &bytes, &have);
        if (status != SPK_OK || have == 0)
            break;
        have = have < piece ? have : piece;
        have = have < room - *count ? have : room - *count;
        memcpy(out + *count, bytes, have);
        spk_reader_skip(reader, have);
        *count += have;
    }
    spk_reader_close(&reader);
    assert_int_equal(case_live, 0);
    return status;
}

static void test_members(void **state)
{
    (void)state;
    size_t count = 3 * MB + 17;
    unsigned char *bytes = random_bytes(count), *out = malloc(2 * count);
    assert_non_null(out);
    for (size_t i = 0; i < count / 2; i++)
        bytes[i] = (unsigned char)(i / 1000); /* half of it packs well */
    for (int members = 1; members <= 4; members++) {
        unsigned char *packed = NULL;
        size_t used = 0, at = 0, got;
        for (int i = 0; i < members; i++) {
            size_t next = i == members - 1 ? count : at + count / 5 * (size_t)(i % 2); /* some are empty */
            pack(&packed, &used, bytes + at, next - at, i % 2 ? 9 : 1);
            at = next;
        }
        static const size_t pieces[] = {1000, 1 << 20};
        for (int i = 0; i < 2; i++) {
            assert_ok(unpack(packed, used, pieces[i], out, 2 * count, &got));
            assert_int_equal(got, count);
            assert_memory_equal(out, bytes, count);
        }
        packed = realloc(packed, used + 1000);
        memset(packed + used, 0, 1000); /* a tape's padding */
        assert_ok(unpack(packed, used + 1000, 70000, out, 2 * count, &got));
        assert_int_equal(got, count);
        packed[used + 999] = 'x';
        assert_int_equal(unpack(packed, used + 1000, 70000, out, 2 * count, &got), SPK_ERR_FORMAT);
        assert_non_null(strstr(spk_error_message(0), "something follows the compressed data"));
        free(packed);
    }
    free(out);
    free(bytes);
}

/* No file that was cut or changed passes for a whole one, but for marks that say nothing about the content. */
static void test_damage(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    unsigned char *bytes = random_bytes(COUNT), out[2 * COUNT], *packed = NULL;
    size_t used = 0, got;
    memset(bytes, 'a', COUNT / 2);
    pack(&packed, &used, bytes, COUNT - 100, 9);
    size_t first = used;
    pack(&packed, &used, bytes + COUNT - 100, 100, 9);
    const size_t step = getenv("SPARSEK_TEST_QUICK") != NULL ? 5 : 1;
    for (size_t cut = 2; cut < used; cut += step) {
        spk_status status = unpack(packed, cut, 500, out, sizeof out, &got);
        if (cut == first) { /* a whole member */
            assert_ok(status);
            continue;
        }
        assert_int_equal(status, SPK_ERR_FORMAT);
        assert_non_null(strstr(spk_error_message(0), "f: compressed byte "));
        assert_non_null(strstr(spk_error_message(0), ": ends early"));
    }
    for (size_t at = 2; at < used; at += step)
        for (int bit = 0; bit < 8; bit++) {
            packed[at] ^= (unsigned char)(1 << bit);
            spk_status status = unpack(packed, used, 500, out, sizeof out, &got);
            if (status == SPK_OK)
                assert_true(got == COUNT && memcmp(out, bytes, COUNT) == 0);
            else
                assert_int_equal(status, SPK_ERR_FORMAT);
            packed[at] ^= (unsigned char)(1 << bit);
        }
    packed[first / 2] ^= 0x55;
    assert_int_equal(unpack(packed, used, 500, out, sizeof out, &got), SPK_ERR_FORMAT);
    free(packed);
    free(bytes);
}

/* What is not packed stays as it is. */
static void test_plain(void **state)
{
    (void)state;
    unsigned char out[8];
    size_t got;
    assert_ok(unpack((const unsigned char *)"\x1f", 1, 4, out, sizeof out, &got));
    assert_int_equal(got, 1);
    assert_ok(unpack((const unsigned char *)"abc", 3, 2, out, sizeof out, &got));
    assert_memory_equal(out, "abc", 3);
    assert_ok(unpack((const unsigned char *)"", 0, 2, out, sizeof out, &got));
    assert_int_equal(got, 0);
}

static int64_t told_done, told_total, times_told;

static void on_progress(void *user, int64_t done, int64_t total, const char *what)
{
    (void)user, (void)what;
    assert_true(done >= told_done && done <= total);
    told_done = done;
    told_total = total;
    times_told++;
}

/* Every format, from a file of which the disk knows the size. */
static void test_formats(void **state)
{
    (void)state;
    static const char *const names[] = {"a.mtx", "a.smtx", "a.npy", "a.safetensors"};
    int64_t n = 1600;
    double *values = calloc((size_t)(n * n), sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n * n; i++)
        values[i] = 1;
    spk_matrix *dense = NULL, *csr = NULL;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F64, .rows = n, .cols = n, .values = values};
    assert_ok(spk_convert_create(&case_mem, &desc, &dense));
    assert_ok(spk_convert_to_csr(&case_mem, dense, &csr));
    for (int i = 0; i < 4; i++) {
        char name[40];
        spk_matrix *plain = NULL, *unpacked = NULL;
        size_t size, used = 0;
        unsigned char *packed = NULL;
        assert_ok(spk_write_matrix(&case_mem, i == 1 ? csr : dense, in_folder(names[i]), NULL));
        char *bytes = get_file(in_folder(names[i]), &size);
        pack(&packed, &used, bytes, size, 6);
        snprintf(name, sizeof name, "%s.gz", names[i]);
        put_file(in_folder(name), packed, used);
        assert_ok(spk_read_matrix(&case_mem, in_folder(names[i]), NULL, NULL, NULL, &plain));
        told_done = times_told = 0;
        assert_ok(spk_read_matrix(&case_mem, in_folder(name), NULL, on_progress, NULL, &unpacked));
        assert_same_matrix(plain, unpacked);
        assert_int_equal(told_total, used); /* of the file, not of what it holds */
        assert_int_equal(told_done, used);
        assert_true(times_told > 1);
        spk_matrix_release(&plain);
        spk_matrix_release(&unpacked);
        put_file(in_folder(name), packed, used - 5);
        assert_int_equal(spk_read_matrix(&case_mem, in_folder(name), NULL, NULL, NULL, &unpacked), SPK_ERR_FORMAT);
        free(packed);
        free(bytes);
    }
    spk_matrix_release(&dense);
    spk_matrix_release(&csr);
    free(values);
    assert_int_equal(case_live, 0);
}

static spk_status read_packed(const char *name, const void *bytes, size_t count, int64_t max_bytes)
{
    unsigned char *packed = NULL;
    size_t used = 0;
    spk_matrix *m = NULL;
    pack(&packed, &used, bytes, count, 9);
    put_file(in_folder(name), packed, used);
    free(packed);
    spk_status status = spk_read_matrix(&case_mem, in_folder(name),
                                        &(spk_read_options){SPK_SIZED(spk_read_options), .max_bytes = max_bytes}, NULL, NULL, &m);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
    return status;
}

static int64_t most;

static void *counting_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    most = (int64_t)bytes > most ? (int64_t)bytes : most;
    return aligned_alloc(alignment, bytes);
}

static void counting_release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

/* A kilobyte that would become a gigabyte: the limit holds for what comes out, and no memory is asked for that nothing has filled. */
static void test_bombs(void **state)
{
    (void)state;
    size_t count = 32 * MB;
    char *text = malloc(count);
    assert_non_null(text);
    memset(text, '\n', count);
    int length = snprintf(text, 200, "%sarray real general\n16777216 1\n", HEAD);
    for (size_t i = (size_t)length; i + 2 <= count; i += 2)
        text[i] = '0';
    assert_int_equal(read_packed("bomb.mtx.gz", text, count, 100 * MB), SPK_ERR_FORMAT);
    assert_non_null(strstr(spk_error_message(0), "needs 134217728 bytes of memory, the limit is 104857600"));
    /* honest about nothing: announces much, and holds little */
    const char *lies[] = {HEAD "coordinate pattern general\n9 9 100000000000\n1 1\n", HEAD "array real general\n1000000 1000\n1\n",
                          "99999999, 5, 7\n0 0\n"};
    const spk_mem counting = {counting_allocate, counting_release, NULL};
    for (int i = 0; i < 3; i++) {
        unsigned char *packed = NULL;
        size_t used = 0;
        spk_matrix *m = NULL;
        pack(&packed, &used, lies[i], strlen(lies[i]), 9);
        put_file(in_folder(i == 2 ? "lie.smtx.gz" : "lie.mtx.gz"), packed, used);
        free(packed);
        most = 0;
        assert_int_equal(spk_read_matrix(&counting, in_folder(i == 2 ? "lie.smtx.gz" : "lie.mtx.gz"),
                                         &(spk_read_options){SPK_SIZED(spk_read_options), .max_bytes = INT64_C(1) << 50}, NULL, NULL, &m),
                         SPK_ERR_FORMAT);
        assert_in_range(most, 1, 4 * MB);
    }
    free(text);
}

typedef struct feeding {
    int fd;
    const unsigned char *bytes;
    size_t count;
} feeding;

static void *feed(void *argument)
{
    feeding *f = argument;
    for (size_t at = 0; at < f->count; at++)
        if (write(f->fd, f->bytes + at, 1) != 1)
            break;
    close(f->fd);
    return NULL;
}

/* A pipe that gives one byte at a time, which no window falls together with. */
static void test_pipe(void **state)
{
    (void)state;
    const char *text = HEAD "coordinate real general\n3 3 2\n1 1 1.5\n3 2 -2\n";
    unsigned char *packed = NULL;
    size_t used = 0;
    int ends[2];
    char path[40];
    pthread_t thread;
    spk_matrix *m = NULL;
    pack(&packed, &used, text, strlen(text), 9);
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    feeding f = {.fd = ends[1], .bytes = packed, .count = used};
    assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
    assert_ok(spk_read_matrix(&case_mem, path, NULL, NULL, NULL, &m));
    pthread_join(thread, NULL);
    assert_int_equal(m->nnz, 2);
    spk_matrix_release(&m);
    close(ends[0]);
    free(packed);
    assert_int_equal(case_live, 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    unsigned char *packed = NULL;
    size_t used = 0;
    const char *text = HEAD "coordinate real general\n3 3 1\n1 1 1.5\n";
    pack(&packed, &used, text, strlen(text), 9);
    put_file(in_folder("m.mtx.gz"), packed, used);
    free(packed);
    spk_status status = SPK_ERR_OUT_OF_MEMORY;
    int64_t after = 0;
    for (; status == SPK_ERR_OUT_OF_MEMORY && after < 100; after++) {
        spk_matrix *m = NULL;
        spk_mem_fail_after(after);
        status = spk_read_matrix(&case_mem, in_folder("m.mtx.gz"), NULL, NULL, NULL, &m);
        spk_mem_fail_after(-1);
        spk_matrix_release(&m);
        assert_int_equal(case_live, 0);
    }
    assert_ok(status);
    assert_true(after > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members), cmocka_unit_test(test_damage), cmocka_unit_test(test_plain),     cmocka_unit_test(test_formats),
        cmocka_unit_test(test_bombs),   cmocka_unit_test(test_pipe),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

/* All formats alike: which reader a file gets, what a cut or changed file does, refused memory. */
#include "unit/io_case.h"

#include <fcntl.h>

#define HEAD "%%MatrixMarket matrix "
#define ST_NOTE "{\\\"rows\\\":2,\\\"cols\\\":4,\\\"block_rows\\\":2,\\\"block_cols\\\":2,\\\"block_layout\\\":\\\"row\\\"}"

/* A good file of every kind. */
static const struct {
    const char *name, *bytes;
    size_t size;
} good[] = {
    {"general.mtx", BYTES(HEAD "coordinate real general\n% c\n3 4 3\n1 1 1.5\n2 3 -2e-3\n3 4 17\n")},
    {"symmetric.mtx", BYTES(HEAD "coordinate real symmetric\n3 3 3\n1 1 4\n2 1 -1\n3 2 1e300\n")},
    {"skew.mtx", BYTES(HEAD "coordinate integer skew-symmetric\n3 3 2\n2 1 -7\n3 2 90071\n")},
    {"pattern.mtx", BYTES(HEAD "coordinate pattern general\r\n2 5 3\r\n1 5\r\n2 1\r\n2 2\r\n")},
    {"array.mtx", BYTES("%%MatrixMarket matrix array real general\n2 3\n1\n2.5\n-3\n4e0\ninf\nnan\n")},
    {"array_symmetric.mtx", BYTES(HEAD "array real symmetric\n2 2\n1\n2\n3\n")},
    {"small.smtx", BYTES("3, 5, 6\n0 2 2 6 \n1 4 0 2 3 4 \n")},
    {"f8.npy", BYTES("\x93NUMPY\x01\x00\x37\x00{'descr': '<f8', 'fortran_order': True, 'shape': (1,2)}12345678abcdefgh")},
    {"f4.npy", BYTES("\x93NUMPY\x02\x00\x37\x00\x00\x00{'descr': '>f4', 'fortran_order': True, 'shape': (1,2)}1234abcd")},
    {"dense.safetensors", BYTES("\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}1234abcd")},
    {"bsr.safetensors", BYTES("\x42\1\0\0\0\0\0\0{\"__metadata__\":{\"sparsek.bsr.w\":\"" ST_NOTE
                              "\"},\"w.row_offsets\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                              "\"w.col_indices\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[8,16]},\"w.values\":{\"dtype\":\"F32\","
                              "\"shape\":[2,2,2],\"data_offsets\":[16,"
                              "48]}}"
                              "      \0\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0"
                              "aaaabbbbccccddddeeeeffffgggghhhh")},
};
enum { GOOD_FILES = sizeof good / sizeof *good };

/* The same bytes through a pipe, whose size nobody knows. */
static spk_status read_pipe(read_function read_it, const void *bytes, size_t size, spk_matrix **out)
{
    int ends[2];
    char path[40];
    spk_read_context in = {.mem = &case_mem, .max_bytes = MB};
    assert_true(size < 65536);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, size), size);
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_ok(spk_reader_open(&case_mem, path, &in.reader));
    spk_status status = read_it(&in, out);
    spk_reader_close(&in.reader);
    close(ends[0]);
    return status;
}

static void test_good(void **state)
{
    (void)state;
    for (int i = 0; i < GOOD_FILES; i++) {
        spk_matrix *m = NULL, *piped = NULL, *filed = NULL;
        read_function reader = reader_of(good[i].name);
        assert_ok(read_memory(reader, good[i].bytes, good[i].size, NULL, SPK_DTYPE_DEFAULT, MB, &m));
        assert_valid_matrix(m);
        assert_ok(read_pipe(reader, good[i].bytes, good[i].size, &piped));
        assert_same_matrix(m, piped);
        put_file(in_folder(good[i].name), good[i].bytes, good[i].size);
        assert_ok(spk_read_matrix(&case_mem, in_folder(good[i].name), NULL, NULL, NULL, &filed));
        assert_same_matrix(m, filed);
        unlink(in_folder(good[i].name));
        spk_matrix_release(&filed);
        spk_matrix_release(&piped);
        spk_matrix_release(&m);
        assert_int_equal(case_live, 0);
    }
}

/* Cut anywhere, a file is refused or gives a valid matrix (its last number may be shorter), and a binary one is always refused. */
static void test_truncated(void **state)
{
    (void)state;
    for (int i = 0; i < GOOD_FILES; i++) {
        read_function reader = reader_of(good[i].name);
        bool binary = reader == spk_read_npy || reader == spk_read_safetensors;
        for (size_t size = 0; size < good[i].size; size++) {
            for (int piped = 0; piped < 2; piped++) {
                spk_matrix *m = NULL;
                spk_status status =
                    piped ? read_pipe(reader, good[i].bytes, size, &m) : read_memory(reader, good[i].bytes, size, NULL, 0, MB, &m);
                if (status == SPK_OK) {
                    assert_false(binary);
                    assert_valid_matrix(m);
                    assert_true(size + 8 > good[i].size);
                } else {
                    assert_true(status == SPK_ERR_FORMAT || status == SPK_ERR_UNSUPPORTED);
                    assert_null(m);
                }
                spk_matrix_release(&m);
                assert_int_equal(case_live, 0);
            }
        }
    }
}

/* Every byte changed to some others: refused or valid. */
static void test_changed(void **state)
{
    (void)state;
    static const unsigned char others[] = {0, 1, '\n', '\r', ' ', '-', '0', '9', '"', '{', '}', 0x7f, 0x80, 0xff};
    for (int i = 0; i < GOOD_FILES; i++) {
        read_function reader = reader_of(good[i].name);
        unsigned char *bytes = malloc(good[i].size);
        assert_non_null(bytes);
        memcpy(bytes, good[i].bytes, good[i].size);
        for (size_t at = 0; at < good[i].size; at++) {
            for (size_t j = 0; j < sizeof others; j++) {
                spk_matrix *m = NULL;
                bytes[at] = others[j];
                spk_status status = read_memory(reader, bytes, good[i].size, NULL, 0, MB, &m);
                if (status == SPK_OK)
                    assert_valid_matrix(m);
                else /* another name in the metadata: three tensors and none of them named */
                    assert_true(status == SPK_ERR_FORMAT || status == SPK_ERR_UNSUPPORTED ||
                                (status == SPK_ERR_ARGUMENT && reader == spk_read_safetensors));
                spk_matrix_release(&m);
                assert_int_equal(case_live, 0);
            }
            bytes[at] = (unsigned char)good[i].bytes[at];
        }
        free(bytes);
    }
}

/* Each allocation in turn is refused, in reading and in writing: an error, nothing left, nothing leaked. */
static void test_no_memory(void **state)
{
    (void)state;
    int before = count_files(case_folder);
    for (int i = 0; i < GOOD_FILES; i++) {
        spk_matrix *m = NULL;
        read_function reader = reader_of(good[i].name);
        for (int64_t allowed = 0; !m; allowed++) {
            spk_mem_fail_after(allowed);
            spk_status status = read_memory(reader, good[i].bytes, good[i].size, NULL, 0, MB, &m);
            spk_mem_fail_after(-1);
            assert_int_equal(status, m ? SPK_OK : SPK_ERR_OUT_OF_MEMORY);
            assert_true(allowed < 50);
            if (!m)
                assert_int_equal(case_live, 0);
        }
        int64_t live = case_live;
        bool done = reader == spk_read_safetensors && m->format == SPK_COO;
        for (int64_t allowed = 0; !done; allowed++) {
            spk_mem_fail_after(allowed);
            spk_status status = spk_write_matrix(&case_mem, m, in_folder(good[i].name), NULL);
            spk_mem_fail_after(-1);
            done = status == SPK_OK;
            assert_true(done || status == SPK_ERR_OUT_OF_MEMORY);
            assert_int_equal(case_live, live);
            assert_int_equal(count_files(case_folder), before + done);
            assert_true(allowed < 50);
        }
        unlink(in_folder(good[i].name));
        spk_matrix_release(&m);
    }
}

static void expect_read(const char *name, const void *bytes, size_t size, spk_status status, const char *message)
{
    char wanted[400];
    spk_matrix *m = NULL;
    put_file(in_folder(name), bytes, size);
    spk_status got = spk_read_matrix(&case_mem, in_folder(name), NULL, NULL, NULL, &m);
    if (got != status)
        fail_msg("%s: status %d, not %d: %s", name, (int)got, (int)status, spk_error_message(0));
    snprintf(wanted, sizeof wanted, "%s/%s: %s", case_folder, name, message ? message : "");
    if (message)
        assert_string_equal(spk_error_message(0), wanted);
    unlink(in_folder(name));
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_dispatch(void **state)
{
    (void)state;
    for (int i = 0; i < GOOD_FILES; i++)
        if (reader_of(good[i].name) != spk_read_smtx) {
            expect_read("no_extension", good[i].bytes, good[i].size, SPK_OK, NULL);
            expect_read("wrong.smtx", good[i].bytes, good[i].size, SPK_OK, NULL);
        }
    expect_read("upper.SMTX", BYTES("1 1 1\n0 1\n0\n"), SPK_OK, NULL);
    expect_read("lower.mtx", BYTES("%%matrixmarket MATRIX array real general\n1 1\n1\n"), SPK_OK, NULL);
    expect_read("numbers", BYTES("1 1 1\n0 1\n0\n"), SPK_ERR_FORMAT, "byte 0: is none of .mtx, .smtx, .npy, .safetensors");
    expect_read("nothing", "", 0, SPK_ERR_FORMAT, "byte 0: is none of .mtx, .smtx, .npy, .safetensors");
    expect_read("a.mtx", "", 0, SPK_ERR_FORMAT, "line 1: does not begin with %%MatrixMarket");
    expect_read("a.smtx", "", 0, SPK_ERR_FORMAT, "line 1: ends before the number of rows");
    expect_read("a.npy", "", 0, SPK_ERR_FORMAT, "ends after 0 bytes, 8 more are needed");
    expect_read("a.safetensors", "", 0, SPK_ERR_FORMAT, "ends after 0 bytes, 8 more are needed");
    expect_read("a.mtx.gz", BYTES("\x1f\x8b\x08\x00"), SPK_ERR_FORMAT, "compressed byte 4: ends early");
    expect_read("a.mtx.gz", BYTES("%%MatrixMarket matrix array real general\n1 1\n1\n"), SPK_OK, NULL);
    expect_read("a.SMTX.GZ", BYTES("1 1 1\n0 1\n0\n"), SPK_OK, NULL);
    expect_read("no_mark", BYTES("1, 1, 1\n0 1\n0\n"), SPK_OK, NULL);
    expect_read("a.npz", BYTES("PK\x03\x04"), SPK_ERR_FORMAT,
                "is a zip archive, as NumPy's .npz and SciPy's: save one array with numpy.save, or a sparse matrix with scipy.io.mmwrite");
}

static void test_arguments(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    put_file(in_folder("a.mtx"), good[0].bytes, good[0].size);
    assert_int_equal(
        spk_read_matrix(&case_mem, in_folder("a.mtx"), &(spk_read_options){SPK_SIZED(spk_read_options), .max_bytes = -1}, NULL, NULL, &m),
        SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), "max_bytes = -1 is negative");
    assert_int_equal(spk_read_matrix(&case_mem, in_folder("a.mtx"),
                                     &(spk_read_options){SPK_SIZED(spk_read_options), .dtype = (spk_dtype)99}, NULL, NULL, &m),
                     SPK_ERR_UNSUPPORTED);
    assert_ok(spk_read_matrix(&case_mem, in_folder("a.mtx"),
                              &(spk_read_options){SPK_SIZED(spk_read_options), .dtype = SPK_F32, .max_bytes = 60}, NULL, NULL, &m));
    assert_int_equal(m->dtype, SPK_F32);
    assert_int_equal(spk_write_matrix(&case_mem, m, in_folder("a.txt"), NULL), SPK_ERR_ARGUMENT);
    char message[300];
    snprintf(message, sizeof message, "path = '%s/a.txt' has none of the extensions .mtx, .smtx, .npy, .safetensors", case_folder);
    assert_string_equal(spk_error_message(0), message);
    assert_int_equal(access(in_folder("a.txt"), F_OK), -1);
    assert_int_equal(
        spk_write_matrix(&case_mem, m, in_folder("a.npy"), &(spk_write_options){SPK_SIZED(spk_write_options), .format = ".npy"}),
        SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), "format = '.npy' is none of mtx, smtx, npy, safetensors");
    assert_ok(spk_write_matrix(&case_mem, m, in_folder("a.txt"), &(spk_write_options){SPK_SIZED(spk_write_options), .format = "mtx"}));
    unlink(in_folder("a.txt"));
    spk_matrix_release(&m);
    unlink(in_folder("a.mtx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_truncated), cmocka_unit_test(test_changed),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_dispatch),  cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

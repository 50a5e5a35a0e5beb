/* All formats alike: which reader a file gets, what a cut or changed file does, refused memory, round trips, pipes, progress, real files. */
#include "unit/io_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

#include "base/rng.h"

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
    {"array.mtx", BYTES(HEAD "array real general\n2 3\n1\n2.5\n-3\n4e0\ninf\nnan\n")},
    {"array_symmetric.mtx", BYTES(HEAD "array real symmetric\n2 2\n1\n2\n3\n")},
    {"small.smtx", BYTES("3, 5, 6\n0 2 2 6 \n1 4 0 2 3 4 \n")},
    {"f8.npy", BYTES("\x93NUMPY\x01\x00\x37\x00{'descr': '<f8', 'fortran_order': True, 'shape': (1,2)}12345678abcdefgh")},
    {"f4.npy", BYTES("\x93NUMPY\x02\x00\x37\x00\x00\x00{'descr': '>f4', 'fortran_order': True, 'shape': (1,2)}1234abcd")},
    {"dense.safetensors", BYTES("\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}1234abcd")},
    {"bsr.safetensors",
     BYTES("\x42\1\0\0\0\0\0\0{\"__metadata__\":{\"sparsek.bsr.w\":\"" ST_NOTE "\"},\"w.row_offsets\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]},"
           "\"w.col_indices\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[8,16]},\"w.values\":{\"dtype\":\"F32\",\"shape\":[2,2,2],\"data_offsets\":[16,48]}}"
           "      \0\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0" "aaaabbbbccccddddeeeeffffgggghhhh")},
};
enum { GOOD_FILES = sizeof good / sizeof *good };

static void check_valid(const spk_matrix *m)
{
    int64_t grid_rows = spk_matrix_grid_rows(m), grid_cols = spk_matrix_grid_cols(m);
    assert_non_null(m->values);
    for (int64_t i = 0; m->row_offsets && i < grid_rows; i++)
        assert_true(m->row_offsets[i] <= m->row_offsets[i + 1]);
    if (m->row_offsets)
        assert_true(m->row_offsets[0] == 0 && m->row_offsets[grid_rows] == m->nnz);
    for (int64_t i = 0; i < m->nnz; i++) {
        if (m->row_indices)
            assert_in_range(m->row_indices[i], 0, grid_rows - 1);
        if (m->col_indices)
            assert_in_range(m->col_indices[i], 0, grid_cols - 1);
    }
}

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
        check_valid(m);
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
                spk_status status = piped ? read_pipe(reader, good[i].bytes, size, &m) : read_memory(reader, good[i].bytes, size, NULL, 0, MB, &m);
                if (status == SPK_OK) {
                    assert_false(binary);
                    check_valid(m);
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
                    check_valid(m);
                else /* another name in the metadata: three tensors and none of them named */
                    assert_true(status == SPK_ERR_FORMAT || status == SPK_ERR_UNSUPPORTED || (status == SPK_ERR_ARGUMENT && reader == spk_read_safetensors));
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
    assert_int_equal(spk_read_matrix(&case_mem, in_folder(name), NULL, NULL, NULL, &m), status);
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
    expect_read("a.mtx.gz", BYTES("\x1f\x8b\x08\x00"), SPK_ERR_FORMAT, "is compressed: decompress it first");
    expect_read("a.npz", BYTES("PK\x03\x04"), SPK_ERR_FORMAT, "is compressed: decompress it first");
}

static void test_arguments(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    put_file(in_folder("a.mtx"), good[0].bytes, good[0].size);
    assert_int_equal(spk_read_matrix(&case_mem, in_folder("a.mtx"), &(spk_read_options){SPK_SIZED(spk_read_options), .max_bytes = -1}, NULL, NULL, &m),
                     SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), "max_bytes = -1 is negative");
    assert_int_equal(spk_read_matrix(&case_mem, in_folder("a.mtx"), &(spk_read_options){SPK_SIZED(spk_read_options), .dtype = (spk_dtype)99}, NULL, NULL, &m),
                     SPK_ERR_UNSUPPORTED);
    assert_ok(spk_read_matrix(&case_mem, in_folder("a.mtx"), &(spk_read_options){SPK_SIZED(spk_read_options), .dtype = SPK_F32, .max_bytes = 60}, NULL, NULL, &m));
    assert_int_equal(m->dtype, SPK_F32);
    assert_int_equal(spk_write_matrix(&case_mem, m, in_folder("a.txt"), NULL), SPK_ERR_ARGUMENT);
    char message[300];
    snprintf(message, sizeof message, "path = '%s/a.txt' has none of the extensions .mtx, .smtx, .npy, .safetensors", case_folder);
    assert_string_equal(spk_error_message(0), message);
    assert_int_equal(access(in_folder("a.txt"), F_OK), -1);
    spk_matrix_release(&m);
    unlink(in_folder("a.mtx"));
}

/* ---- round trips of random matrices */

static double random_value(spk_rng *rng, spk_dtype dtype)
{
    uint64_t bits = spk_rng_next(rng);
    double value = ldexp((double)(int64_t)bits, (int)spk_rng_below(rng, 200) - 163);
    float single;
    switch (spk_rng_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
        return dtype == SPK_F32 ? (double)(float)spk_rng_normal(rng) : spk_rng_normal(rng);
    case 2:
        return (double)((int64_t)spk_rng_below(rng, 2000) - 1000) / 8;
    case 3: /* any bits: subnormal, huge, infinite, none */
        if (dtype == SPK_F64) {
            memcpy(&value, &bits, sizeof value);
            return value;
        }
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    default:
        return dtype == SPK_F32 ? (double)(float)value : value;
    }
}

static spk_matrix *random_matrix(spk_rng *rng, spk_format format, spk_dtype dtype, int64_t scale)
{
    spk_matrix *m = NULL;
    int64_t rows = (int64_t)spk_rng_below(rng, (uint64_t)scale), cols = 1 + (int64_t)spk_rng_below(rng, (uint64_t)scale), brows = 1, bcols = 1;
    if (format == SPK_BSR) {
        brows = 1 + (int64_t)spk_rng_below(rng, 5);
        bcols = 1 + (int64_t)spk_rng_below(rng, 5);
    }
    int64_t grid_rows = (rows + brows - 1) / brows, grid_cols = (cols + bcols - 1) / bcols;
    int64_t nnz = grid_rows == 0 ? 0 : (int64_t)spk_rng_below(rng, (uint64_t)(3 * scale));
    assert_ok(spk_matrix_make(&case_mem, format, dtype, rows, cols, brows, bcols, format == SPK_COO || format == SPK_CSR ? SPK_ROW_MAJOR : (spk_layout)spk_rng_below(rng, 2),
                              nnz, &m));
    for (int64_t i = 0; m->col_indices && i < nnz; i++)
        m->col_indices[i] = (int64_t)spk_rng_below(rng, (uint64_t)grid_cols);
    for (int64_t i = 0; m->row_indices && i < nnz; i++)
        m->row_indices[i] = (int64_t)spk_rng_below(rng, (uint64_t)grid_rows);
    for (int64_t i = 0; m->row_offsets && i <= grid_rows; i++)
        m->row_offsets[i] = i == grid_rows ? nnz : nnz * i / grid_rows;
    for (int64_t i = 0; i < spk_matrix_value_count(m); i++)
        spk_value_set(m->values, dtype, i, random_value(rng, dtype));
    return m;
}

static void check_round_trip(const spk_matrix *m, const char *name)
{
    spk_matrix *again = NULL;
    spk_read_options options = {SPK_SIZED(spk_read_options), .dtype = m->dtype};
    assert_ok(spk_write_matrix(&case_mem, m, in_folder(name), NULL));
    assert_ok(spk_read_matrix(&case_mem, in_folder(name), &options, NULL, NULL, &again));
    assert_same_matrix(m, again);
    spk_matrix_release(&again);
    unlink(in_folder(name));
}

static void test_round_trips(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        for (int dtype = SPK_F32; dtype <= SPK_F64; dtype++) {
            spk_rng rng;
            spk_rng_seed(&rng, seed);
            spk_matrix *coo = random_matrix(&rng, SPK_COO, (spk_dtype)dtype, 40), *dense = random_matrix(&rng, SPK_DENSE, (spk_dtype)dtype, 20);
            spk_matrix *bsr = random_matrix(&rng, SPK_BSR, (spk_dtype)dtype, 40), *csr = random_matrix(&rng, SPK_CSR, (spk_dtype)dtype, 40);
            check_round_trip(coo, "a.mtx");
            check_round_trip(dense, "a.mtx");
            check_round_trip(dense, "a.npy");
            check_round_trip(dense, "a.safetensors");
            check_round_trip(bsr, "a.safetensors");
            csr->pattern_only = 1;
            for (int64_t i = 0; i < csr->nnz; i++)
                spk_value_set(csr->values, csr->dtype, i, 1);
            check_round_trip(csr, "a.smtx");
            spk_matrix_release(&coo);
            spk_matrix_release(&dense);
            spk_matrix_release(&bsr);
            spk_matrix_release(&csr);
            assert_int_equal(case_live, 0);
        }
    }
}

/* ---- larger files: growth without a known size, progress */

typedef struct feeding {
    const char *path;
    int fd;
} feeding;

static void *feed(void *argument)
{
    feeding *f = argument;
    char bytes[5000];
    int from = open(f->path, O_RDONLY);
    for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
        if (write(f->fd, bytes, (size_t)got) != got)
            break;
    close(from);
    close(f->fd);
    return NULL;
}

static spk_status read_fed(const char *path, read_function reader, spk_dtype dtype, int64_t max_bytes, spk_matrix **out)
{
    int ends[2];
    char name[40];
    pthread_t thread;
    assert_int_equal(pipe(ends), 0);
    feeding f = {.path = path, .fd = ends[1]};
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    spk_read_context in = {.mem = &case_mem, .dtype = dtype, .max_bytes = max_bytes};
    assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
    assert_ok(spk_reader_open(&case_mem, name, &in.reader));
    spk_status status = reader(&in, out);
    while (status == SPK_OK && spk_reader_byte(in.reader) >= 0) /* nobody may be left writing */
        continue;
    spk_reader_close(&in.reader);
    while (status != SPK_OK && read(ends[0], name, sizeof name) > 0)
        continue;
    close(ends[0]);
    pthread_join(thread, NULL);
    return status;
}

static void check_large(const spk_matrix *m, const char *name)
{
    spk_matrix *filed = NULL, *piped = NULL;
    spk_read_options options = {SPK_SIZED(spk_read_options), .dtype = m->dtype};
    char path[200];
    snprintf(path, sizeof path, "%s", in_folder(name));
    assert_ok(spk_write_matrix(&case_mem, m, path, NULL));
    assert_ok(spk_read_matrix(&case_mem, path, &options, NULL, NULL, &filed));
    assert_same_matrix(m, filed);
    assert_ok(read_fed(path, reader_of(name), m->dtype, 64 * MB, &piped));
    assert_same_matrix(m, piped);
    spk_matrix_release(&piped);
    assert_int_equal(read_fed(path, reader_of(name), m->dtype, MB, &piped), SPK_ERR_FORMAT);
    assert_non_null(strstr(spk_error_message(0), " bytes of memory, the limit is 1048576"));
    spk_matrix_release(&filed);
    unlink(path);
}

static void test_large(void **state)
{
    (void)state;
    bool quick = getenv("SPARSEK_TEST_QUICK") != NULL;
    int64_t scale = quick ? 70000 : 200000, side = quick ? 500 : 1000;
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    spk_matrix *coo = NULL, *csr = NULL, *dense = NULL, *bsr = NULL;
    assert_ok(spk_matrix_make(&case_mem, SPK_COO, SPK_F64, scale, scale, 1, 1, SPK_ROW_MAJOR, scale + 7, &coo));
    assert_ok(spk_matrix_make(&case_mem, SPK_CSR, SPK_F32, scale, scale, 1, 1, SPK_ROW_MAJOR, scale, &csr));
    assert_ok(spk_matrix_make(&case_mem, SPK_DENSE, SPK_F64, side, side, 1, 1, SPK_COL_MAJOR, 0, &dense));
    assert_ok(spk_matrix_make(&case_mem, SPK_BSR, SPK_F32, scale, scale, 1, 4, SPK_ROW_MAJOR, scale, &bsr));
    for (int64_t i = 0; i < coo->nnz; i++) {
        coo->row_indices[i] = (int64_t)spk_rng_below(&rng, (uint64_t)scale);
        coo->col_indices[i] = (int64_t)spk_rng_below(&rng, (uint64_t)scale);
        ((double *)coo->values)[i] = spk_rng_normal(&rng);
    }
    for (int64_t i = 0; i <= scale; i++)
        csr->row_offsets[i] = bsr->row_offsets[i] = i;
    csr->pattern_only = 1;
    for (int64_t i = 0; i < scale; i++) {
        csr->col_indices[i] = (int64_t)spk_rng_below(&rng, (uint64_t)scale);
        bsr->col_indices[i] = csr->col_indices[i] / 4;
        ((float *)csr->values)[i] = 1;
        for (int j = 0; j < 4; j++)
            ((float *)bsr->values)[4 * i + j] = (float)spk_rng_normal(&rng);
    }
    for (int64_t i = 0; i < dense->nnz; i++)
        ((double *)dense->values)[i] = spk_rng_normal(&rng);
    check_large(coo, "a.mtx");
    check_large(csr, "a.smtx");
    check_large(dense, "a.mtx");
    check_large(dense, "a.npy");
    check_large(dense, "a.safetensors");
    check_large(bsr, "a.safetensors");
    spk_matrix_release(&coo);
    spk_matrix_release(&csr);
    spk_matrix_release(&dense);
    spk_matrix_release(&bsr);
    assert_int_equal(case_live, 0);
}

typedef struct tale {
    int64_t done, total, calls;
} tale;

static void note_progress(void *user, int64_t done, int64_t total, const char *what)
{
    tale *t = user;
    assert_true(done >= t->done && done <= total);
    assert_string_equal(what, "reading");
    t->done = done;
    t->total = total;
    t->calls++;
}

static void test_progress(void **state)
{
    (void)state;
    struct stat info;
    static const char *const names[] = {"a.mtx", "a.npy", "a.safetensors"};
    spk_matrix *m = NULL, *again = NULL;
    assert_ok(spk_matrix_make(&case_mem, SPK_DENSE, SPK_F64, 1300, 1300, 1, 1, SPK_ROW_MAJOR, 0, &m));
    for (int64_t i = 0; i < m->nnz; i++)
        ((double *)m->values)[i] = (double)(i % 1000000) + 0.1234;
    for (int i = 0; i < 3; i++) {
        tale t = {0};
        assert_ok(spk_write_matrix(&case_mem, m, in_folder(names[i]), NULL));
        assert_int_equal(stat(in_folder(names[i]), &info), 0);
        assert_ok(spk_read_matrix(&case_mem, in_folder(names[i]), NULL, note_progress, &t, &again));
        assert_true(t.calls >= info.st_size / (10 * MB) + 1);
        assert_int_equal(t.done, info.st_size);
        assert_int_equal(t.total, info.st_size);
        spk_matrix_release(&again);
        unlink(in_folder(names[i]));
    }
    spk_matrix_release(&m);
}

/* ---- real files, against the plainest possible parser */

static void check_coordinate_plainly(const char *path, const spk_matrix *m)
{
    FILE *file = fopen(path, "r");
    char line[1024], format[64], field[64], symmetry[64];
    long long rows, cols, count;
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(sscanf(line, "%%%%MatrixMarket matrix %63s %63s %63s", format, field, symmetry), 3);
    do
        assert_non_null(fgets(line, sizeof line, file));
    while (line[0] == '%');
    assert_int_equal(sscanf(line, "%lld %lld %lld", &rows, &cols, &count), 3);
    assert_int_equal(m->rows, rows);
    assert_int_equal(m->cols, cols);
    int64_t at = 0;
    for (long long i = 0; i < count; i++) {
        long long row, col;
        double value = 1;
        assert_non_null(fgets(line, sizeof line, file));
        assert_true(sscanf(line, "%lld %lld %lf", &row, &col, &value) >= 2);
        for (int mirror = 0; mirror < (strcmp(symmetry, "general") != 0 && row != col ? 2 : 1); mirror++, at++) {
            assert_int_equal(m->row_indices[at], (mirror ? col : row) - 1);
            assert_int_equal(m->col_indices[at], (mirror ? row : col) - 1);
            assert_true(((const double *)m->values)[at] == (mirror && strcmp(symmetry, "skew-symmetric") == 0 ? -value : value));
        }
    }
    assert_int_equal(m->nnz, at);
    fclose(file);
}

static void test_real(void **state)
{
    (void)state;
    const char *folder = getenv("SPARSEK_TEST_DATA");
    DIR *dir = folder && *folder ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[1000];
        spk_matrix *m = NULL;
        if (!dot || (strcmp(dot, ".mtx") != 0 && strcmp(dot, ".smtx") != 0))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_ok(spk_read_matrix(&case_mem, path, NULL, NULL, NULL, &m));
        check_valid(m);
        if (m->format == SPK_COO)
            check_coordinate_plainly(path, m);
        assert_true(m->nnz > 0);
        check_round_trip(m, strcmp(dot, ".mtx") == 0 ? "a.mtx" : "a.smtx");
        spk_matrix_release(&m);
        assert_int_equal(case_live, 0);
    }
    if (dir)
        closedir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_truncated),   cmocka_unit_test(test_changed), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_dispatch),  cmocka_unit_test(test_arguments),   cmocka_unit_test(test_round_trips), cmocka_unit_test(test_large),
        cmocka_unit_test(test_progress),  cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

/* Written and read again: random matrices of every format, larger ones through files and pipes, progress, real files. */
#include "unit/io_case.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/rng.h"

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
    int64_t rows = (int64_t)spk_rng_below(rng, (uint64_t)scale), cols = 1 + (int64_t)spk_rng_below(rng, (uint64_t)scale), brows = 1,
            bcols = 1;
    if (format == SPK_BSR) {
        brows = 1 + (int64_t)spk_rng_below(rng, 5);
        bcols = 1 + (int64_t)spk_rng_below(rng, 5);
    }
    int64_t grid_rows = (rows + brows - 1) / brows, grid_cols = (cols + bcols - 1) / bcols;
    int64_t nnz = grid_rows == 0 ? 0 : (int64_t)spk_rng_below(rng, (uint64_t)(3 * scale));
    assert_ok(spk_matrix_make(&case_mem, format, dtype, rows, cols, brows, bcols,
                              format == SPK_COO || format == SPK_CSR ? SPK_ROW_MAJOR : (spk_layout)spk_rng_below(rng, 2), nnz, &m));
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
        for (int dtype = SPK_F32; spk_type_of((spk_dtype)dtype)->name; dtype++) {
            spk_rng rng;
            if (!spk_type_holds_values((spk_dtype)dtype))
                continue;
            spk_rng_seed(&rng, seed);
            spk_matrix *coo = random_matrix(&rng, SPK_COO, (spk_dtype)dtype, 40),
                       *dense = random_matrix(&rng, SPK_DENSE, (spk_dtype)dtype, 20);
            spk_matrix *bsr = random_matrix(&rng, SPK_BSR, (spk_dtype)dtype, 40), *csr = random_matrix(&rng, SPK_CSR, (spk_dtype)dtype, 40);
            check_round_trip(coo, "a.mtx");
            check_round_trip(dense, "a.mtx");
            if (spk_type_of((spk_dtype)dtype)->npy)
                check_round_trip(dense, "a.npy");
            else
                assert_int_equal(spk_write_matrix(&case_mem, dense, in_folder("a.npy"), NULL), SPK_ERR_UNSUPPORTED);
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
        assert_valid_matrix(m);
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
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

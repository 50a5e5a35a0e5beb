/* What the tests of readers and writers share: files in memory and in a folder of their own, one call to read, messages. */
#ifndef UNIT_IO_CASE_H
#define UNIT_IO_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "matrix/io/io.h"

#define assert_ok(call)                                                                    \
    do {                                                                                   \
        spk_status case_status_ = (call);                                                  \
        if (case_status_ != SPK_OK)                                                        \
            fail_msg("%s: status %d: %s", #call, (int)case_status_, spk_error_message(0)); \
    } while (0)

#define MB (INT64_C(1) << 20)

typedef spk_status (*read_function)(const spk_read_context *in, spk_matrix **out);
typedef spk_status (*write_function)(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);

static const struct {
    const char *extension;
    read_function read;
} readers[] = {{"mtx", spk_read_mtx}, {"smtx", spk_read_smtx}, {"npy", spk_read_npy}, {"safetensors", spk_read_safetensors}};

static inline read_function reader_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof readers / sizeof *readers; i++)
        if (strcmp(dot + 1, readers[i].extension) == 0)
            return readers[i].read;
    fail_msg("no reader for %s", name);
    return NULL;
}

/* Memory that counts what is not given back, so that a test sees a leak. */
static int64_t case_live;

static inline void *case_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    case_live++;
    return aligned_alloc(alignment, bytes);
}

static inline void case_release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    case_live--;
    free(memory);
}

static const spk_mem case_mem = {case_allocate, case_release, NULL};

/* Bytes from a block of exactly their size, so that a sanitizer sees a step too far. */
static inline spk_status read_memory(read_function read, const void *bytes, size_t size, const char *tensor, spk_dtype dtype,
                                     int64_t max_bytes, spk_matrix **out)
{
    spk_read_context in = {.mem = &case_mem, .tensor = tensor, .dtype = dtype, .max_bytes = max_bytes};
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    spk_status status = spk_reader_open_memory(&case_mem, copy, size, "f", &in.reader);
    if (status == SPK_OK)
        status = read(&in, out);
    spk_reader_close(&in.reader);
    free(copy);
    return status;
}

static inline spk_matrix *read_text(read_function read, const char *text)
{
    spk_matrix *m = NULL;
    assert_ok(read_memory(read, text, strlen(text), NULL, SPK_DTYPE_DEFAULT, MB, &m));
    return m;
}

/* A file that must be refused with this status and exactly this message. */
typedef struct bad_file {
    const char *text;
    size_t size; /* 0: strlen(text) */
    spk_status status;
    const char *message;
} bad_file;

#define BYTES(text) (text), sizeof(text) - 1

static inline void check_bad(read_function read, const bad_file *bad, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spk_matrix *m = NULL;
        spk_status status =
            read_memory(read, bad[i].text, bad[i].size ? bad[i].size : strlen(bad[i].text), NULL, SPK_DTYPE_DEFAULT, MB, &m);
        if (status != bad[i].status || strcmp(spk_error_message(0), bad[i].message) != 0)
            fail_msg("bad file %zu: status %d, message \"%s\"; wanted %d, \"%s\"", i, (int)status, spk_error_message(0), (int)bad[i].status,
                     bad[i].message);
        assert_null(m);
    }
    assert_int_equal(case_live, 0);
}

/* A folder of the test's own, removed with what is in it. */
static char case_folder[64];

static inline int make_case_folder(void **state)
{
    (void)state;
    strcpy(case_folder, "/tmp/sparsek-io-XXXXXX");
    return mkdtemp(case_folder) ? 0 : -1;
}

static inline int count_files(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static inline int remove_case_folder(void **state)
{
    char path[400];
    (void)state;
    DIR *dir = opendir(case_folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", case_folder, entry->d_name);
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            remove(path);
    }
    if (dir)
        closedir(dir);
    return rmdir(case_folder);
}

static inline const char *in_folder(const char *name)
{
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", case_folder, name);
    return path;
}

static inline void put_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline char *get_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s does not open", path);
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    bytes[*count] = '\0';
    fclose(file);
    return bytes;
}

/* Indices in range, offsets that span the entries. */
static inline void assert_valid_matrix(const spk_matrix *m)
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

static inline void expect_status(spk_status status, spk_status wanted, const char *message)
{
    assert_int_equal(status, wanted);
    assert_string_equal(spk_error_message(0), message);
}

static inline unsigned char *random_bytes(size_t count)
{
    spk_rng rng;
    unsigned char *bytes = malloc(count ? count : 1);
    assert_non_null(bytes);
    spk_rng_seed(&rng, 7);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)spk_rng_next(&rng);
    return bytes;
}

/* Both hold the same elements, NaN for NaN; dense layouts may differ. */
static inline void assert_same_matrix(const spk_matrix *a, const spk_matrix *b)
{
    assert_int_equal(a->format, b->format);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_int_equal(a->nnz, b->nnz);
    assert_int_equal(a->block_rows, b->block_rows);
    assert_int_equal(a->block_cols, b->block_cols);
    assert_int_equal(a->pattern_only, b->pattern_only);
    if (a->row_offsets)
        assert_memory_equal(a->row_offsets, b->row_offsets, (size_t)(spk_matrix_grid_rows(a) + 1) * 8);
    if (a->row_indices && a->nnz)
        assert_memory_equal(a->row_indices, b->row_indices, (size_t)a->nnz * 8);
    if (a->col_indices && a->nnz)
        assert_memory_equal(a->col_indices, b->col_indices, (size_t)a->nnz * 8);
    for (int64_t i = 0; i < spk_matrix_value_count(a); i++) {
        int64_t at = i, other = i;
        if (a->format == SPK_DENSE && a->layout != b->layout) {
            at = a->layout == SPK_ROW_MAJOR ? i : i / a->cols + i % a->cols * a->rows;
            other = b->layout == SPK_ROW_MAJOR ? i : i / a->cols + i % a->cols * a->rows;
        }
        double x = spk_value_get(a->values, a->dtype, at), y = spk_value_get(b->values, b->dtype, other);
        if (!(isnan(x) && isnan(y)) && !(x == y && signbit(x) == signbit(y)))
            fail_msg("value %lld: %.17g and %.17g", (long long)i, x, y);
    }
}

#endif

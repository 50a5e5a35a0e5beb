/* What the readers' fuzzers share: what a reader accepts must be a valid matrix within the limit, and come back equal when it is written
 * and read again. */
#ifndef FUZZ_IO_H
#define FUZZ_IO_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "matrix/io/io.h"

#define FUZZ_MAX_BYTES (INT64_C(64) << 20)

typedef spk_status (*fuzz_read)(const spk_read_context *in, spk_matrix **out);
typedef spk_status (*fuzz_write)(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s (last message: %s)\n", what, spk_error_message(0));
    abort();
}

static inline spk_status fuzz_read_bytes(fuzz_read read, const void *bytes, size_t size, spk_dtype dtype, const char *tensor,
                                         spk_matrix **out)
{
    spk_read_context in = {.mem = &spk_mem_system, .tensor = tensor, .dtype = dtype, .max_bytes = FUZZ_MAX_BYTES};
    fuzz_require(spk_reader_open_memory(&spk_mem_system, bytes, size, "input", &in.reader) == SPK_OK, "a reader opens on memory");
    spk_status status = spk_reader_unpack(in.reader);
    if (status == SPK_OK)
        status = read(&in, out);
    spk_reader_close(&in.reader);
    return status;
}

static inline void fuzz_check_indices(const spk_matrix *m)
{
    int64_t grid_rows = spk_matrix_grid_rows(m), grid_cols = spk_matrix_grid_cols(m);
    for (int64_t i = 0; m->row_offsets && i < grid_rows; i++)
        fuzz_require(m->row_offsets[i] <= m->row_offsets[i + 1], "row offsets do not fall");
    if (m->row_offsets)
        fuzz_require(m->row_offsets[0] == 0 && m->row_offsets[grid_rows] == m->nnz, "row offsets span the entries");
    for (int64_t i = 0; m->row_indices && i < m->nnz; i++)
        fuzz_require(m->row_indices[i] >= 0 && m->row_indices[i] < grid_rows, "rows are in range");
    for (int64_t i = 0; m->col_indices && i < m->nnz; i++)
        fuzz_require(m->col_indices[i] >= 0 && m->col_indices[i] < grid_cols, "columns are in range");
}

static inline int64_t fuzz_dense_index(const spk_matrix *m, int64_t i)
{
    return m->format != SPK_DENSE || m->layout == SPK_ROW_MAJOR ? i : i / m->cols + i % m->cols * m->rows;
}

static inline void fuzz_check_equal(const spk_matrix *a, const spk_matrix *b)
{
    fuzz_require(a->format == b->format && a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->dtype == b->dtype,
                 "shapes agree");
    fuzz_require(a->block_rows == b->block_rows && a->block_cols == b->block_cols, "blocks agree");
    fuzz_require(!a->row_indices || memcmp(a->row_indices, b->row_indices, (size_t)a->nnz * 8) == 0, "rows agree");
    fuzz_require(!a->col_indices || memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * 8) == 0, "columns agree");
    fuzz_require(!a->row_offsets || memcmp(a->row_offsets, b->row_offsets, (size_t)(spk_matrix_grid_rows(a) + 1) * 8) == 0,
                 "offsets agree");
    int64_t count = spk_matrix_value_count(a);
    for (int64_t i = 0; i < count; i++) {
        double x = spk_value_get(a->values, a->dtype, fuzz_dense_index(a, i)),
               y = spk_value_get(b->values, b->dtype, fuzz_dense_index(b, i));
        fuzz_require((isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y)), "values agree");
    }
}

/* Writes into a file in memory: the writer writes straight to a descriptor named by its path. */
static inline void fuzz_round_trip(const spk_matrix *m, fuzz_read read, fuzz_write write)
{
    char path[64];
    spk_writer *writer = NULL;
    spk_matrix *again = NULL;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_require(fd >= 0, "a file in memory opens");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fuzz_require(spk_writer_open(&spk_mem_system, path, &writer) == SPK_OK, "a writer opens on it");
    fuzz_require(write(m, writer, &(spk_write_options){SPK_SIZED(spk_write_options), .comment = "one\ntwo"}) == SPK_OK,
                 "what was read is written");
    fuzz_require(spk_writer_commit(&writer) == SPK_OK, "the file is complete");
    off_t size = lseek(fd, 0, SEEK_END);
    void *bytes = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    fuzz_require(bytes && bytes != MAP_FAILED, "it is mapped");
    fuzz_require(fuzz_read_bytes(read, bytes, (size_t)size, m->dtype, NULL, &again) == SPK_OK, "what was written is read");
    fuzz_check_equal(m, again);
    spk_matrix_release(&again);
    munmap(bytes, (size_t)size);
    close(fd);
}

static inline int fuzz_one(const uint8_t *data, size_t size, const char *tensor, fuzz_read read, fuzz_write write)
{
    static const spk_dtype dtypes[] = {SPK_DTYPE_DEFAULT, SPK_F32, SPK_F64};
    spk_matrix *m = NULL;
    if (fuzz_read_bytes(read, data, size, dtypes[size % 3], tensor, &m) != SPK_OK) {
        fuzz_require(m == NULL, "a failure leaves the output alone");
        fuzz_require(spk_error_message(0)[0] != '\0', "a failure says why");
        return 0;
    }
    fuzz_check_indices(m);
    if (spk_matrix_value_count(m) <= 1 << 20)
        fuzz_round_trip(m, read, write);
    spk_matrix_release(&m);
    return 0;
}

#endif

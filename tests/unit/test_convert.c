/* Conversions against a dense model: every format to every other, ragged edges, duplicates, disorder; refusals; failing memory. */
#include "unit/models.h"

#include <math.h>

static const spk_format formats[] = {SPK_DENSE, SPK_COO, SPK_CSR, SPK_BSR};

/* ------------------------------------------------------------------ what a well-formed result looks like */

static void check_compressed(const spk_matrix *m)
{
    int64_t grid_rows = spk_matrix_grid_rows(m), grid_cols = spk_matrix_grid_cols(m);
    assert_int_equal(m->row_offsets[0], 0);
    assert_int_equal(m->row_offsets[grid_rows], m->nnz);
    for (int64_t row = 0; row < grid_rows; row++) {
        assert_true(m->row_offsets[row] <= m->row_offsets[row + 1]);
        for (int64_t p = m->row_offsets[row]; p < m->row_offsets[row + 1]; p++) {
            assert_true(m->col_indices[p] >= 0 && m->col_indices[p] < grid_cols);
            assert_true(p == m->row_offsets[row] || m->col_indices[p - 1] < m->col_indices[p]);
        }
    }
}

static void check_overhang(const spk_matrix *bsr)
{
    for (int64_t block_row = 0; block_row < spk_matrix_grid_rows(bsr); block_row++)
        for (int64_t p = bsr->row_offsets[block_row]; p < bsr->row_offsets[block_row + 1]; p++)
            for (int64_t i = 0; i < bsr->block_rows; i++)
                for (int64_t j = 0; j < bsr->block_cols; j++)
                    if (block_row * bsr->block_rows + i >= bsr->rows || bsr->col_indices[p] * bsr->block_cols + j >= bsr->cols) {
                        int64_t inner = bsr->layout == SPK_ROW_MAJOR ? i * bsr->block_cols + j : j * bsr->block_rows + i;
                        assert_true(model_value(bsr, p * bsr->block_rows * bsr->block_cols + inner) == 0);
                    }
}

static void check_canonical(const spk_matrix *m)
{
    if (m->format == SPK_COO)
        for (int64_t p = 1; p < m->nnz; p++)
            assert_true(m->row_indices[p - 1] < m->row_indices[p] ||
                        (m->row_indices[p - 1] == m->row_indices[p] && m->col_indices[p - 1] < m->col_indices[p]));
    if (m->format == SPK_CSR || m->format == SPK_BSR)
        check_compressed(m);
    if (m->format == SPK_BSR)
        check_overhang(m);
}

/* The blocks of a result are those that hold a stored element of the source. */
static void check_blocks(const spk_matrix *bsr, const model *source)
{
    int64_t grid_rows = spk_matrix_grid_rows(bsr), grid_cols = spk_matrix_grid_cols(bsr);
    unsigned char *expected = calloc((size_t)(grid_rows * grid_cols) + 1, 1);
    int64_t count = 0;
    for (int64_t row = 0; row < source->rows; row++)
        for (int64_t col = 0; col < source->cols; col++)
            if (source->stored[row * source->cols + col])
                expected[row / bsr->block_rows * grid_cols + col / bsr->block_cols] = 1;
    for (int64_t i = 0; i < grid_rows * grid_cols; i++)
        count += expected[i];
    assert_int_equal(bsr->nnz, count);
    for (int64_t row = 0; row < grid_rows; row++)
        for (int64_t p = bsr->row_offsets[row]; p < bsr->row_offsets[row + 1]; p++)
            assert_true(expected[row * grid_cols + bsr->col_indices[p]]);
    free(expected);
}

/* The result holds what the source holds; then it is freed. */
static void check_result(spk_matrix *result, const spk_matrix *source, const model *expected, spk_format format)
{
    assert_int_equal(result->format, format);
    assert_int_equal(result->dtype, source->dtype);
    model got = model_of(result);
    assert_true(model_equal(&got, expected));
    if (format == SPK_COO || format == SPK_CSR)
        assert_true(model_same_structure(&got, expected));
    check_canonical(result);
    model_free(&got);
    spk_matrix_release(&result);
}

static void check_transpose(const spk_matrix *in, const model *expected)
{
    spk_matrix *turned = NULL, *back = NULL;
    assert_ok(spk_convert_transpose(&counted, in, &turned));
    assert_int_equal(turned->format, in->format);
    assert_int_equal(turned->layout, in->layout);
    assert_int_equal(turned->rows, in->cols);
    assert_int_equal(turned->block_rows, in->block_cols);
    model got = model_of(turned);
    for (int64_t row = 0; row < expected->rows; row++)
        for (int64_t col = 0; col < expected->cols; col++) {
            assert_true(got.at[col * expected->rows + row] == expected->at[row * expected->cols + col]);
            assert_int_equal(got.stored[col * expected->rows + row], expected->stored[row * expected->cols + col]);
        }
    assert_ok(spk_convert_transpose(&counted, turned, &back));
    model again = model_of(back);
    assert_true(model_equal(&again, expected));
    model_free(&got);
    model_free(&again);
    spk_matrix_release(&turned);
    spk_matrix_release(&back);
}

static void check_cast(const spk_matrix *in, const model *expected)
{
    for (spk_dtype dtype = SPK_F32; spk_type_of(dtype)->name; dtype++) {
        spk_matrix *cast = NULL;
        if (!spk_type_holds_values(dtype))
            continue;
        assert_ok(spk_convert_cast(&counted, in, dtype, &cast));
        assert_int_equal(cast->dtype, dtype);
        assert_int_equal(cast->nnz, in->nnz);
        model got = model_of(cast);
        assert_true(model_equal(&got, expected));
        assert_true(model_same_structure(&got, expected));
        model_free(&got);
        spk_matrix_release(&cast);
    }
}

static void check_all(spk_rng *rng, const spk_matrix *in)
{
    spk_matrix *out = NULL;
    model expected = model_of(in);
    int64_t block_rows = pick(rng, 1, 12), block_cols = pick(rng, 1, 12);
    spk_layout layout = pick(rng, 0, 1) ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
    assert_ok(spk_convert_to_bsr(&counted, in, block_rows, block_cols, layout, &out));
    assert_int_equal(out->block_rows, block_rows);
    assert_int_equal(out->block_cols, block_cols);
    assert_int_equal(out->layout, layout);
    check_blocks(out, &expected);
    check_result(out, in, &expected, SPK_BSR);
    assert_ok(spk_convert_to_csr(&counted, in, &out));
    check_result(out, in, &expected, SPK_CSR);
    assert_ok(spk_convert_to_coo(&counted, in, &out));
    check_result(out, in, &expected, SPK_COO);
    assert_ok(spk_convert_to_dense(&counted, in, layout, &out));
    assert_int_equal(out->layout, layout);
    check_result(out, in, &expected, SPK_DENSE);
    assert_ok(spk_convert_canonicalize(&counted, in, &out));
    assert_int_equal(out->block_rows, in->block_rows);
    assert_int_equal(out->layout, in->layout);
    check_result(out, in, &expected, in->format);
    check_transpose(in, &expected);
    check_cast(in, &expected);
    model_free(&expected);
}

static void test_every_way(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 600; round++) {
        int64_t rows = pick(&rng, 0, 70), cols = pick(&rng, 0, 70);
        spk_matrix *in = random_matrix(&rng, formats[round % 4], rows, cols, pick(&rng, 1, 9), pick(&rng, 1, 9), round % 8 < 2);
        check_all(&rng, in);
        spk_matrix_release(&in);
    }
}

/* Larger than the tiles and buffers inside. */
static void test_larger(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int round = 0; round < 4; round++) {
        spk_matrix *in = random_matrix(&rng, formats[round], 701, 523, 64, 48, 0);
        check_all(&rng, in);
        spk_matrix_release(&in);
    }
}

/* Division by multiplication is exact for every block size, at the edges of each quotient. */
static void test_blocks_of_every_size(void **state)
{
    (void)state;
    for (int64_t block = 1; block <= 256; block++) {
        int64_t cols = 5 * block - block / 2, n = 0, wanted[6], columns[6] = {0, block - 1, block, 2 * block - 1, 4 * block, cols - 1};
        int64_t *offsets = (int64_t[]){0, 6};
        if (block == 1)
            continue; /* its columns would repeat; covered above */
        for (int64_t i = 0; i < 6; i++)
            if (n == 0 || wanted[n - 1] != columns[i] / block)
                wanted[n++] = columns[i] / block;
        spk_matrix_desc desc = {
            SPK_SIZED(spk_matrix_desc),  .format = SPK_CSR,      .dtype = SPK_F32,      .rows = 1, .cols = cols, .nnz = 6,
            .index_type = SPK_INDEX_I64, .row_offsets = offsets, .col_indices = columns};
        spk_matrix *csr = NULL, *bsr = NULL;
        assert_ok(spk_convert_create(&counted, &desc, &csr));
        assert_ok(spk_convert_to_bsr(&counted, csr, 1, block, SPK_ROW_MAJOR, &bsr));
        assert_int_equal(bsr->nnz, n);
        assert_memory_equal(bsr->col_indices, wanted, (size_t)n * sizeof wanted[0]);
        spk_matrix_release(&csr);
        spk_matrix_release(&bsr);
    }
}

/* ------------------------------------------------------------------ particular values */

static void test_special_values(void **state)
{
    (void)state;
    double values[] = {NAN, 0, -0.0, INFINITY, 0, 1e300};
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F64, .rows = 2, .cols = 3, .values = values};
    spk_matrix *dense = NULL, *csr = NULL, *narrow = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &dense));
    assert_ok(spk_convert_to_csr(&counted, dense, &csr));
    assert_int_equal(csr->nnz, 3); /* neither zero is stored; NaN is */
    assert_true(isnan(((double *)csr->values)[0]));
    assert_int_equal(spk_convert_cast(&counted, csr, SPK_F32, &narrow), SPK_ERR_ARGUMENT); /* too large for a float */
    assert_non_null(strstr(spk_error_last(), "row 1, column 2 (from 0) is 1e+300"));
    ((double *)csr->values)[2] = 3e38;
    assert_ok(spk_convert_cast(&counted, csr, SPK_F32, &narrow));
    assert_true(isinf(((float *)narrow->values)[1])); /* what was one stays one */
    spk_matrix_release(&dense);
    spk_matrix_release(&csr);
    spk_matrix_release(&narrow);
}

/* Garbage in the overhang of a caller's blocks never comes out. */
static void test_overhang_is_ignored(void **state)
{
    (void)state;
    float values[2 * 2 * 2];
    for (int i = 0; i < 8; i++)
        values[i] = (float)(i + 1);
    values[2] = values[3] = values[6] = values[7] = values[5] = NAN; /* a 1 x 3 matrix in 2 x 2 blocks: only 1, 2 and 5 are inside */
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),
                            .format = SPK_BSR,
                            .dtype = SPK_F32,
                            .rows = 1,
                            .cols = 3,
                            .block_rows = 2,
                            .block_cols = 2,
                            .nnz = 2,
                            .index_type = SPK_INDEX_I32,
                            .row_offsets = (int32_t[]){0, 2},
                            .col_indices = (int32_t[]){1, 0},
                            .values = values};
    spk_matrix *bsr = NULL, *dense = NULL, *tidy = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &bsr));
    assert_ok(spk_convert_to_dense(&counted, bsr, SPK_ROW_MAJOR, &dense));
    float *got = dense->values;
    assert_true(got[0] == 5 && isnan(got[1]) && got[2] == 1);
    assert_ok(spk_convert_canonicalize(&counted, bsr, &tidy));
    check_canonical(tidy);
    spk_matrix_release(&bsr);
    spk_matrix_release(&dense);
    spk_matrix_release(&tidy);
}

static void test_pattern_only(void **state)
{
    (void)state;
    int64_t rows[] = {1, 0, 1}, cols[] = {0, 1, 0};
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),  .format = SPK_COO,   .dtype = SPK_F32,   .rows = 2, .cols = 2, .nnz = 2,
                            .index_type = SPK_INDEX_I64, .row_indices = rows, .col_indices = cols};
    spk_matrix *coo = NULL, *csr = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &coo));
    assert_true(coo->pattern_only);
    assert_true(((float *)coo->values)[1] == 1);
    assert_ok(spk_convert_to_csr(&counted, coo, &csr));
    assert_true(csr->pattern_only);
    spk_matrix_release(&coo);
    spk_matrix_release(&csr);
    desc.nnz = 3; /* one entry twice: its value is two, which no pattern says */
    assert_ok(spk_convert_create(&counted, &desc, &coo));
    assert_ok(spk_convert_to_csr(&counted, coo, &csr));
    assert_false(csr->pattern_only);
    assert_int_equal(csr->nnz, 2);
    assert_true(((float *)csr->values)[1] == 2);
    spk_matrix_release(&coo);
    spk_matrix_release(&csr);
    desc.values = (float[]){1, 1, 2.5f};
    desc.pattern_only = 1;
    assert_fails(spk_convert_create(&counted, &desc, &coo), SPK_ERR_ARGUMENT, "pattern_only = 1, but values[2] = 2.5 is not 1");
    assert_null(coo);
}

/* ------------------------------------------------------------------ refusals */

static const int32_t offsets3[] = {0, 1, 1, 3}, indices3[] = {0, 2, 1};
static const double values3[12] = {1, 2, 3};

static spk_matrix_desc good(spk_format format)
{
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),
                            .format = format,
                            .dtype = SPK_F64,
                            .rows = 3,
                            .cols = 3,
                            .nnz = format == SPK_DENSE ? 9 : 3,
                            .index_type = SPK_INDEX_I32,
                            .row_offsets = offsets3,
                            .row_indices = indices3,
                            .col_indices = indices3,
                            .values = values3};
    if (format == SPK_BSR)
        desc.block_rows = 1, desc.block_cols = 2, desc.cols = 6;
    return desc;
}

#define REFUSED(from, status, text, ...)                                       \
    do {                                                                       \
        spk_matrix_desc bad = good(from);                                      \
        spk_matrix *none = NULL;                                               \
        __VA_ARGS__;                                                           \
        assert_fails(spk_convert_create(&counted, &bad, &none), status, text); \
        assert_null(none);                                                     \
    } while (0)

static void test_bad_descriptions(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        spk_matrix *fine = NULL;
        spk_matrix_desc desc = good(formats[i]);
        assert_ok(spk_convert_create(&counted, &desc, &fine));
        spk_matrix_release(&fine);
    }
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "format = 9", bad.format = (spk_format)9);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "format = 0", bad.format = (spk_format)0);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "dtype = 0 is no type", bad.dtype = SPK_DTYPE_DEFAULT);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "dtype = 77 is no type", bad.dtype = (spk_dtype)77);
    REFUSED(SPK_CSR, SPK_ERR_UNSUPPORTED, "dtype = 8 (i32)", bad.dtype = SPK_INT32);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "index_type = -1", bad.index_type = (spk_index_type)-1);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "index_type = 8 is neither SPK_INDEX_I32 (0) nor SPK_INDEX_I64 (64)",
            bad.index_type = (spk_index_type)SPK_INT32);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "layout = 2", bad.layout = (spk_layout)2);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "rows = -3 is negative", bad.rows = -3);
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "cols = -1 is negative", bad.cols = -1);
    REFUSED(SPK_COO, SPK_ERR_UNSUPPORTED, "cols = 9223372036854775807 exceeds", bad.cols = INT64_MAX);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "nnz = -2 is negative", bad.nnz = -2);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "overflow 64-bit sizes", bad.nnz = INT64_MAX / 4);
    REFUSED(SPK_BSR, SPK_ERR_ARGUMENT, "overflow 64-bit sizes", bad.nnz = INT64_MAX / 100; bad.block_rows = 100);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "overflows 64-bit sizes", bad.rows = bad.cols = INT64_C(1) << 40);
    REFUSED(SPK_BSR, SPK_ERR_ARGUMENT, "block_rows = 0 is not in 1..256", bad.block_rows = 0);
    REFUSED(SPK_BSR, SPK_ERR_ARGUMENT, "block_cols = 300 is not in 1..256", bad.block_cols = 300);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "only BSR has blocks", bad.block_rows = 4);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "ld = 2 is less than the row length of 3", bad.ld = 2);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "ld = -3 is less than the column length of 4", bad.ld = -3; bad.layout = SPK_COL_MAJOR;
            bad.rows = 4; bad.nnz = 0);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "overflows 64-bit sizes", bad.ld = INT64_MAX / 2);
    REFUSED(SPK_DENSE, SPK_ERR_ARGUMENT, "nnz = 8: a dense matrix of 3 x 3 has 9", bad.nnz = 8);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "is not aligned to its elements of 8 bytes", bad.values = (const char *)values3 + 4);
}

static void test_bad_indices(void **state)
{
    (void)state;
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "row_offsets is NULL: it must hold 4 indices", bad.row_offsets = NULL);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "col_indices is NULL: it must hold 3 indices", bad.col_indices = NULL);
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "row_indices is NULL: it must hold 3 indices", bad.row_indices = NULL);
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "row_offsets[2] = 1 is less than row_offsets[1] = 2", bad.row_offsets = (int32_t[]){0, 2, 1, 3});
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "row_offsets[0] = 1", bad.row_offsets = (int32_t[]){1, 1, 1, 3});
    REFUSED(SPK_BSR, SPK_ERR_ARGUMENT, "row_offsets[3] = 2: the last offset must be nnz = 3", bad.row_offsets = (int32_t[]){0, 1, 1, 2});
    REFUSED(SPK_CSR, SPK_ERR_ARGUMENT, "col_indices[1] = 3: columns are 0..2", bad.col_indices = (int32_t[]){0, 3, 1});
    REFUSED(SPK_BSR, SPK_ERR_ARGUMENT, "col_indices[2] = -1: block columns are 0..2", bad.col_indices = (int32_t[]){0, 2, -1});
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "row_indices[0] = 5: rows are 0..2", bad.row_indices = (int32_t[]){5, 0, 1});
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "row_indices[0] = 0: there are no rows", bad.rows = 0);
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "col_indices[2] = 12884901888: columns are 0..2", bad.index_type = SPK_INDEX_I64;
            bad.row_indices = (int64_t[]){0, 1, 2}; bad.col_indices = (int64_t[]){0, 1, INT64_C(3) << 32});
    REFUSED(SPK_COO, SPK_ERR_ARGUMENT, "is not aligned to its indices of 8 bytes", bad.index_type = SPK_INDEX_I64;
            bad.row_indices = (const char *)values3 + 4);
}

static void test_bad_conversions(void **state)
{
    (void)state;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc), .format = SPK_COO, .dtype = SPK_F64, .rows = INT64_C(1) << 32,
                            .cols = INT64_C(1) << 32};
    spk_matrix *huge = NULL, *out = NULL;
    assert_ok(spk_convert_create(&counted, &desc, &huge));
    assert_fails(spk_convert_to_dense(&counted, huge, SPK_ROW_MAJOR, &out), SPK_ERR_ARGUMENT,
                 "4294967296 x 4294967296 elements of 8 bytes overflows");
    assert_fails(spk_convert_to_bsr(&counted, huge, 0, 4, SPK_ROW_MAJOR, &out), SPK_ERR_ARGUMENT, "block_rows = 0 is not in 1..256");
    assert_fails(spk_convert_to_bsr(&counted, huge, 4, 257, SPK_ROW_MAJOR, &out), SPK_ERR_ARGUMENT, "block_cols = 257 is not in 1..256");
    assert_fails(spk_convert_cast(&counted, huge, SPK_TF32, &out), SPK_ERR_UNSUPPORTED, "dtype = 7 (tf32)");
    assert_null(out);
    spk_matrix_release(&huge);
    desc.rows = desc.cols = 4;
    assert_ok(spk_convert_create(&counted, &desc, &huge));
    assert_fails(spk_convert_to_bsr(&counted, huge, 2, 2, (spk_layout)3, &out), SPK_ERR_ARGUMENT, "layout = 3");
    assert_fails(spk_convert_to_dense(&counted, huge, (spk_layout)3, &out), SPK_ERR_ARGUMENT, "layout = 3");
    assert_null(out);
    spk_matrix_release(&huge);
    spk_matrix_release(&out);
}

/* ------------------------------------------------------------------ failing memory */

static void test_failing_memory(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, test_seed());
    for (int i = 0; i < 4; i++) {
        spk_matrix_desc desc = good(formats[i]);
        spk_matrix *in = NULL, *out = NULL;
        assert_survives_injection(spk_convert_create(&counted, &desc, &in), in);
        spk_matrix_release(&in);
        do { /* entries out of order, so that every branch allocates */
            spk_matrix_release(&in);
            in = random_matrix(&rng, formats[i], 40, 50, 3, 4, 0);
        } while (in->nnz < 20);
        assert_survives_injection(spk_convert_to_bsr(&counted, in, 4, 5, SPK_COL_MAJOR, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_to_csr(&counted, in, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_to_coo(&counted, in, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_to_dense(&counted, in, SPK_COL_MAJOR, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_cast(&counted, in, SPK_F32, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_transpose(&counted, in, &out), out);
        spk_matrix_release(&out);
        assert_survives_injection(spk_convert_canonicalize(&counted, in, &out), out);
        spk_matrix_release(&out);
        spk_matrix_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_way, no_leaks),
        cmocka_unit_test_teardown(test_larger, no_leaks),
        cmocka_unit_test_teardown(test_blocks_of_every_size, no_leaks),
        cmocka_unit_test_teardown(test_special_values, no_leaks),
        cmocka_unit_test_teardown(test_overhang_is_ignored, no_leaks),
        cmocka_unit_test_teardown(test_pattern_only, no_leaks),
        cmocka_unit_test_teardown(test_bad_descriptions, no_leaks),
        cmocka_unit_test_teardown(test_bad_indices, no_leaks),
        cmocka_unit_test_teardown(test_bad_conversions, no_leaks),
        cmocka_unit_test_teardown(test_failing_memory, no_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

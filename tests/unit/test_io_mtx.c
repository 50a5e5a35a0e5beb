/* Matrix Market: what is read from good files, what each bad one is told, limits on memory, what is written. */
#include "unit/io_case.h"

#define HEAD "%%MatrixMarket matrix "
#define REAL HEAD "coordinate real general\n"

static void check_coordinate(const char *text, int64_t rows, int64_t cols, int64_t count, int64_t entries[][2], const double *values)
{
    spk_matrix *m = read_text(spk_read_mtx, text);
    assert_int_equal(m->format, SPK_COO);
    assert_int_equal(m->dtype, SPK_F64);
    assert_int_equal(m->rows, rows);
    assert_int_equal(m->cols, cols);
    assert_int_equal(m->nnz, count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(m->row_indices[i], entries[i][0]);
        assert_int_equal(m->col_indices[i], entries[i][1]);
        assert_true(((const double *)m->values)[i] == values[i]);
    }
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_coordinate(void **state)
{
    (void)state;
    check_coordinate(REAL "% comment\n%\n\n2 3 3\n1 1 1.5\n% in between\n2 3 -2e-3\n\n1 2 .5\n\n% behind", 2, 3, 3,
                     (int64_t[][2]){{0, 0}, {1, 2}, {0, 1}}, (double[]){1.5, -2e-3, .5});
    check_coordinate(REAL "  2\t3  1  \r\n \t2   1\t+7.e0 \r\n", 2, 3, 1, (int64_t[][2]){{1, 0}}, (double[]){7});
    /* twice the same, no last line end */
    check_coordinate(REAL "2 2 2\n1 1 1\n1 1 2", 2, 2, 2, (int64_t[][2]){{0, 0}, {0, 0}}, (double[]){1, 2});
    check_coordinate(REAL "1 1 1\n1 1 INF\n", 1, 1, 1, (int64_t[][2]){{0, 0}}, (double[]){INFINITY});
    check_coordinate(REAL "1 1 1\n1 1 -infinity\n", 1, 1, 1, (int64_t[][2]){{0, 0}}, (double[]){-INFINITY});
    check_coordinate(REAL "1 1 1\n0000000000000000000001 1 1e-999\n", 1, 1, 1, (int64_t[][2]){{0, 0}}, (double[]){0});
    check_coordinate(REAL "0 5 0\n", 0, 5, 0, NULL, NULL);
    check_coordinate(REAL "281474976710656 1 1\n281474976710656 1 3\n", INT64_C(1) << 48, 1, 1, (int64_t[][2]){{(INT64_C(1) << 48) - 1, 0}},
                     (double[]){3});
    check_coordinate("%%matrixMARKET Matrix\tCOORDINATE Double GENERAL \r\n1 1 1\r\n1 1 0.1\r\n", 1, 1, 1, (int64_t[][2]){{0, 0}},
                     (double[]){0.1});
    check_coordinate(REAL "1 4 4\n1 1 1.5D+03\n1 2 1.5d+03\n1 3 -25d-1\n1 4 123456789012345678901D-1\n", 1, 4, 4,
                     (int64_t[][2]){{0, 0}, {0, 1}, {0, 2}, {0, 3}}, (double[]){1500, 1500, -2.5, 12345678901234567890.1});
}

static void test_symmetric(void **state)
{
    (void)state;
    check_coordinate(HEAD "coordinate real symmetric\n3 3 3\n1 1 4\n3 1 -1\n3 2 2\n", 3, 3, 5,
                     (int64_t[][2]){{0, 0}, {2, 0}, {0, 2}, {2, 1}, {1, 2}}, (double[]){4, -1, -1, 2, 2});
    check_coordinate(HEAD "coordinate integer Skew-Symmetric\n3 3 2\n2 1 7\n3 2 -1\n", 3, 3, 4,
                     (int64_t[][2]){{1, 0}, {0, 1}, {2, 1}, {1, 2}}, (double[]){7, -7, -1, 1});
    /* the upper triangle; one position of each triangle; one position in both: each is mirrored */
    check_coordinate(HEAD "coordinate integer symmetric\n%%GraphBLAS bool\n3 3 2\n1 2 1\n2 3 5\n", 3, 3, 4,
                     (int64_t[][2]){{0, 1}, {1, 0}, {1, 2}, {2, 1}}, (double[]){1, 1, 5, 5});
    check_coordinate(HEAD "coordinate real symmetric\n3 3 2\n1 2 1.5e0\n3 1 5\n", 3, 3, 4, (int64_t[][2]){{0, 1}, {1, 0}, {2, 0}, {0, 2}},
                     (double[]){1.5, 1.5, 5, 5});
    check_coordinate(HEAD "coordinate real symmetric\n2 2 2\n1 2 1\n2 1 2", 2, 2, 4, (int64_t[][2]){{0, 1}, {1, 0}, {1, 0}, {0, 1}},
                     (double[]){1, 1, 2, 2});
    check_coordinate(HEAD "coordinate real hermitian\n2 2 2\n1 1 3\n2 1 2\n", 2, 2, 3, (int64_t[][2]){{0, 0}, {1, 0}, {0, 1}},
                     (double[]){3, 2, 2});
    check_coordinate(HEAD "coordinate real skew-symmetric\n2 2 3\n1 1 0\n2 2 -0.0e1\n1 2 4\n", 2, 2, 4,
                     (int64_t[][2]){{0, 0}, {1, 1}, {0, 1}, {1, 0}}, (double[]){0, 0, 4, -4});
    spk_matrix *m = read_text(spk_read_mtx, HEAD "coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
    assert_int_equal(m->pattern_only, 1);
    assert_int_equal(m->nnz, 3);
    for (int i = 0; i < 3; i++)
        assert_true(((const double *)m->values)[i] == 1);
    spk_matrix_release(&m);
}

static void check_array(const char *text, int64_t rows, int64_t cols, const double *by_columns)
{
    spk_matrix *m = read_text(spk_read_mtx, text);
    assert_int_equal(m->format, SPK_DENSE);
    assert_int_equal(m->layout, SPK_COL_MAJOR);
    assert_int_equal(m->rows, rows);
    assert_int_equal(m->cols, cols);
    assert_int_equal(m->nnz, rows * cols);
    for (int64_t i = 0; i < rows * cols; i++)
        assert_true(((const double *)m->values)[i] == by_columns[i]);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_array(void **state)
{
    (void)state;
    check_array(HEAD "array real general\n2 3\n1\n2\n 3 \n\n%\n4\r\n5\n6e0", 2, 3, (double[]){1, 2, 3, 4, 5, 6});
    check_array(HEAD "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3, (double[]){1, 2, 3, 2, 4, 5, 3, 5, 6});
    check_array(HEAD "array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, (double[]){0, 1, 2, -1, 0, 3, -2, -3, 0});
    check_array(HEAD "array real general\n0 3\n", 0, 3, NULL);
    check_array(HEAD "array real skew-symmetric\n1 1\n", 1, 1, (double[]){0});
}

/* What f64 holds exactly, as far as it goes. */
static void test_integers(void **state)
{
    (void)state;
    check_coordinate(
        HEAD "coordinate integer general\n1 4 4\n1 1 -12\n1 2 +9007199254740992\n1 3 -009007199254740994\n1 4 1152921504606846976\n", 1, 4,
        4, (int64_t[][2]){{0, 0}, {0, 1}, {0, 2}, {0, 3}}, (double[]){-12, 0x1p53, -0x1.0000000000001p53, 0x1p60});
    check_coordinate(HEAD "coordinate unsigned-integer general\n1 2 2\n1 1 12\n1 2 18446744073709551616\n", 1, 2, 2,
                     (int64_t[][2]){{0, 0}, {0, 1}}, (double[]){12, 0x1p64});
    check_array(HEAD "array Unsigned-Integer general\n2 1\n7\n0\n", 2, 1, (double[]){7, 0});
    check_coordinate(HEAD "coordinate real general\n1 1 1\n1 1 9007199254740993\n", 1, 1, 1, (int64_t[][2]){{0, 0}}, (double[]){0x1p53});
}

static void test_long_lines(void **state)
{
    (void)state;
    size_t size = 3 * MB + 100;
    char *text = malloc(size), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s%%", REAL);
    memset(at, 'x', MB); /* a comment, and blanks in an entry, longer than any window */
    at += MB;
    at += sprintf(at, "\n1 2 1\n1");
    memset(at, ' ', MB);
    at += MB;
    at += sprintf(at, "2 1");
    memset(at, '0', 4000); /* a long number */
    at += 4000;
    at += sprintf(at, "e-4000\n");
    *at = '\0';
    check_coordinate(text, 1, 2, 1, (int64_t[][2]){{0, 1}}, (double[]){1});
    put_file(in_folder("long.mtx"), text, (size_t)(at - text));
    spk_matrix *m = NULL;
    assert_ok(spk_read_matrix(&case_mem, in_folder("long.mtx"), NULL, NULL, NULL, &m));
    assert_int_equal(m->nnz, 1);
    spk_matrix_release(&m);
    free(text);
}

static const bad_file bad[] = {
    {"x", 0, SPK_ERR_FORMAT, "f: line 1: does not begin with %%MatrixMarket"},
    {"\n" REAL, 0, SPK_ERR_FORMAT, "f: line 1: does not begin with %%MatrixMarket"},
    {"%%MatrixMarket", 0, SPK_ERR_FORMAT, "f: line 1: ends before the object"},
    {"%%MatrixMarket vector", 0, SPK_ERR_FORMAT, "f: line 1: unknown object 'vector'"},
    {HEAD "sparse real general\n", 0, SPK_ERR_FORMAT, "f: line 1: unknown format 'sparse'"},
    {HEAD "array quaternion general\n", 0, SPK_ERR_FORMAT, "f: line 1: unknown field 'quaternion'"},
    {HEAD "coordinate complex general\n", 0, SPK_ERR_UNSUPPORTED, "f: line 1: complex matrices are not supported"},
    {HEAD "coordinate complex hermitian\n", 0, SPK_ERR_UNSUPPORTED, "f: line 1: complex matrices are not supported"},
    {HEAD "coordinate real lopsided\n", 0, SPK_ERR_FORMAT, "f: line 1: unknown symmetry 'lopsided'"},
    {HEAD "coordinate real\n1 1 1\n", 0, SPK_ERR_FORMAT, "f: line 1: ends before the symmetry"},
    {HEAD "coordinate real general x\n", 0, SPK_ERR_FORMAT, "f: line 1: unexpected 'x' after the header"},
    {HEAD "array pattern general\n1 1\n", 0, SPK_ERR_FORMAT, "f: line 1: an array has values, so its field cannot be pattern"},
    {HEAD "coordinate pattern skew-symmetric\n1 1 0\n", 0, SPK_ERR_FORMAT,
     "f: line 1: a pattern has no signs, so it cannot be skew-symmetric"},
    {REAL "%\n\n", 0, SPK_ERR_FORMAT, "f: line 4: ends before the sizes"},
    {REAL "3 3\n", 0, SPK_ERR_FORMAT, "f: line 2: ends before the number of entries"},
    {REAL "3 -3 1\n", 0, SPK_ERR_FORMAT, "f: line 2: number of columns '-3' is not a whole number"},
    {REAL "3 3 1 1\n", 0, SPK_ERR_FORMAT, "f: line 2: unexpected '1' after the sizes"},
    {REAL "3 99999999999999999999 1\n", 0, SPK_ERR_FORMAT,
     "f: line 2: number of columns '99999999999999999999' is above 9223372036854775807"},
    {REAL "281474976710657 3 1\n", 0, SPK_ERR_FORMAT, "f: line 2: number of rows 281474976710657 is above 281474976710656"},
    {HEAD "coordinate real symmetric\n3 4 1\n", 0, SPK_ERR_FORMAT, "f: line 2: a symmetric matrix cannot be 3 x 4"},
    {HEAD "array real general\n281474976710656 281474976710656\n", 0, SPK_ERR_FORMAT,
     "f: line 2: an array of 281474976710656 x 281474976710656 elements overflows 64-bit sizes"},
    {REAL "9 9 999999999\n1 1 1\n", 0, SPK_ERR_FORMAT,
     "f: line 2: announces 999999999 entries, but the 6 bytes that follow hold 1 at most"},
    {HEAD "array real general\n1000 1000\n1\n", 0, SPK_ERR_FORMAT,
     "f: line 2: announces 1000000 entries, but the 2 bytes that follow hold 1 at most"},
    {REAL "50 50 2\n\n1 1 1\n\n7 99 1\n", 0, SPK_ERR_FORMAT, "f: line 6: column index 99 is outside 1..50"},
    {REAL "50 50 1\n0 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: row index 0 is outside 1..50"},
    {REAL "50 50 1\n51 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: row index 51 is outside 1..50"},
    {REAL "50 50 1\n-1 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: row index '-1' is not a whole number"},
    {REAL "50 50 1\n1.0 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: row index '1.0' is not a whole number"},
    {REAL "50 50 1\n9999999999999999999 1 1\n", 0, SPK_ERR_FORMAT,
     "f: line 3: row index '9999999999999999999' is above 9223372036854775807"},
    {REAL "0 50 1\n1 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: row index 1 is outside 1..0"},
    {REAL "5 5 1\n1      \n", 0, SPK_ERR_FORMAT, "f: line 3: ends before the column index"},
    {REAL "5 5 1\n1 1    \n", 0, SPK_ERR_FORMAT, "f: line 3: ends before the value"},
    {REAL "5 5 1\n1 1 one\n", 0, SPK_ERR_FORMAT, "f: line 3: 'one' is not a number"},
    {REAL "5 5 1\n1 1 1,5\n", 0, SPK_ERR_FORMAT, "f: line 3: '1,5' is not a number"},
    {REAL "5 5 1\n1 1 0x1p3\n", 0, SPK_ERR_FORMAT, "f: line 3: '0x1p3' is not a number"},
    {REAL "5 5 1\n1 1 nan(1)\n", 0, SPK_ERR_FORMAT, "f: line 3: 'nan(1)' is not a number"},
    {REAL "5 5 1\n1 1 1e\n", 0, SPK_ERR_FORMAT, "f: line 3: '1e' is not a number"},
    {REAL "5 5 1\n1 1 .\n", 0, SPK_ERR_FORMAT, "f: line 3: '.' is not a number"},
    {REAL "5 5 1\n1 1 --1\n", 0, SPK_ERR_FORMAT, "f: line 3: '--1' is not a number"},
    {REAL "5 5 1\n1 1 1e999\n", 0, SPK_ERR_FORMAT, "f: line 3: the value '1e999' is out of the range of f64"},
    {REAL "5 5 1\n1 1 2 3\n", 0, SPK_ERR_FORMAT, "f: line 3: unexpected '3' after the entry"},
    {REAL "5 5 1\n1 1 2%\n", 0, SPK_ERR_FORMAT, "f: line 3: '2%' is not a number"},
    {REAL "5 5 1\r1 1 2\r", 0, SPK_ERR_FORMAT, "f: line 2: unexpected byte 0x0d"},
    {BYTES(REAL "5 5 1\n1 1 2\0"), SPK_ERR_FORMAT, "f: line 3: unexpected byte 0x00"},
    {BYTES(REAL "5 5 1\n1 \0"
                "1 2\n"),
     SPK_ERR_FORMAT, "f: line 3: unexpected byte 0x00"},
    {BYTES(REAL "%\0\n5 5 1\n1 1 2\n"), SPK_ERR_FORMAT, "f: line 2: unexpected byte 0x00"},
    {REAL "5 5 1\n1 1 \x1b[2J\n", 0, SPK_ERR_FORMAT, "f: line 3: unexpected byte 0x1b"},
    {REAL "5 5 1\n1 1 2\n1 2 2\n", 0, SPK_ERR_FORMAT, "f: line 4: more than the 1 entries of line 2"},
    {REAL "5 5 1\n1 1 2\nend\n", 0, SPK_ERR_FORMAT, "f: line 4: more than the 1 entries of line 2"},
    {REAL "5 5 2\n1 1 2        \n\n", 0, SPK_ERR_FORMAT, "f: line 5: the file ends after 1 of 2 entries"},
    {REAL "5 5 2\n1 1 2        ", 0, SPK_ERR_FORMAT, "f: line 3: the file ends after 1 of 2 entries"},
    {HEAD "coordinate real skew-symmetric\n3 3 1\n2 2 1\n", 0, SPK_ERR_FORMAT,
     "f: line 3: entry 2, 2 is on the diagonal, which is zero in a skew-symmetric matrix"},
    {HEAD "coordinate integer general\n3 3 1\n1 1 1.0\n", 0, SPK_ERR_FORMAT, "f: line 3: '1.0' is not an integer, as the header promises"},
    {HEAD "coordinate integer general\n3 3 1\n1 1 9007199254740993\n", 0, SPK_ERR_FORMAT,
     "f: line 3: the integer '9007199254740993' has no exact value in f64; a header that says real lets it be rounded"},
    {HEAD "array integer general\n1 1\n-123456789012345678901234567890\n", 0, SPK_ERR_FORMAT,
     "f: line 3: the integer '-123456789012345678901234567890' has no exact value in f64; a header that says real lets it be rounded"},
    {HEAD "coordinate unsigned-integer general\n3 3 1\n1 1 -1\n", 0, SPK_ERR_FORMAT,
     "f: line 3: '-1' is not an unsigned integer, as the header promises"},
    {REAL "5 5 1\n1 1 1d\n", 0, SPK_ERR_FORMAT, "f: line 3: '1d' is not a number"},
    {REAL "5 5 1\n1 1 1d2d3\n", 0, SPK_ERR_FORMAT, "f: line 3: '1d2d3' is not a number"},
    {HEAD "coordinate integer general\n3 3 1\n1 1 -\n", 0, SPK_ERR_FORMAT, "f: line 3: '-' is not an integer, as the header promises"},
    {HEAD "coordinate pattern general\n3 3 1\n1 1 1\n", 0, SPK_ERR_FORMAT, "f: line 3: unexpected '1' after the entry"},
    {HEAD "array real general\n2 1\n1\n \n", 0, SPK_ERR_FORMAT, "f: line 5: the file ends after 1 of 2 entries"},
    {HEAD "array real general\n2 1\n1\n2\n3\n", 0, SPK_ERR_FORMAT, "f: line 5: more than the 2 entries of line 2"},
    {HEAD "array real general\n2 1\n1 2\n", 0, SPK_ERR_FORMAT, "f: line 3: unexpected '2' after the value"},
    {HEAD "array real general\n1 1\n1e400\n", 0, SPK_ERR_FORMAT, "f: line 3: the value '1e400' is out of the range of f64"},
};

static void test_bad(void **state)
{
    (void)state;
    check_bad(spk_read_mtx, bad, sizeof bad / sizeof *bad);
}

static void test_limits(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    const char *general = REAL "9 9 3\n1 1 1\n2 2 2\n3 3 3\n", *symmetric = HEAD "coordinate real symmetric\n9 9 3\n2 1 1\n3 1 1\n4 1 1\n";
    const char *array = HEAD "array real symmetric\n2 2\n1\n2\n3\n", *large = REAL "1 1 1\n1 1 1e39\n", *word = REAL "1 1 1\n1 1 ";
    expect_status(read_memory(spk_read_mtx, general, strlen(general), NULL, 0, 71, &m), SPK_ERR_FORMAT,
                  "f: needs 72 bytes of memory, the limit is 71");
    assert_ok(read_memory(spk_read_mtx, general, strlen(general), NULL, 0, 72, &m));
    spk_matrix_release(&m);
    expect_status(read_memory(spk_read_mtx, symmetric, strlen(symmetric), NULL, 0, 143, &m), SPK_ERR_FORMAT,
                  "f: needs 144 bytes of memory, the limit is 143");
    assert_ok(read_memory(spk_read_mtx, symmetric, strlen(symmetric), NULL, 0, 144, &m));
    spk_matrix_release(&m);
    assert_ok(read_memory(spk_read_mtx, symmetric, strlen(symmetric), NULL, SPK_F32, 120, &m));
    assert_int_equal(m->dtype, SPK_F32);
    assert_true(((const float *)m->values)[5] == 1);
    spk_matrix_release(&m);
    expect_status(read_memory(spk_read_mtx, array, strlen(array), NULL, 0, 31, &m), SPK_ERR_FORMAT,
                  "f: needs 32 bytes of memory, the limit is 31");
    expect_status(read_memory(spk_read_mtx, large, strlen(large), NULL, SPK_F32, MB, &m), SPK_ERR_FORMAT,
                  "f: line 3: the value '1e39' is out of the range of f32");
    expect_status(read_memory(spk_read_mtx, general, strlen(general), NULL, SPK_F16, MB, &m), SPK_ERR_UNSUPPORTED,
                  "f: cannot be read as f16: f32 and f64 are");
    char *text = malloc(10000);
    assert_non_null(text);
    memset(text, '1', 10000);
    memcpy(text, word, strlen(word));
    expect_status(read_memory(spk_read_mtx, text, 10000, NULL, 0, MB, &m), SPK_ERR_FORMAT,
                  "f: line 3: a word of more than 4095 characters");
    free(text);
    assert_null(m);
    assert_int_equal(case_live, 0);
}

static char *written(const spk_matrix *m, const spk_write_options *options)
{
    size_t size;
    assert_ok(spk_write_matrix(&case_mem, m, in_folder("out.mtx"), options));
    return get_file(in_folder("out.mtx"), &size);
}

static void check_written(const char *text, const char *expected)
{
    spk_matrix *m = read_text(spk_read_mtx, text);
    char *out = written(m, NULL);
    assert_string_equal(out, expected);
    free(out);
    spk_matrix_release(&m);
}

static void test_written(void **state)
{
    (void)state;
    check_written(REAL "2 2 3\n2 1 0.1\n1 1 -0\n1 2 1e300\n", REAL "2 2 3\n2 1 0.1\n1 1 -0\n1 2 1.0000000000000001e+300\n");
    check_written(HEAD "coordinate pattern symmetric\n2 2 1\n2 1\n", HEAD "coordinate pattern general\n2 2 2\n2 1\n1 2\n");
    check_written(HEAD "array real general\n2 2\n1\n2\nnan\n-inf\n", HEAD "array real general\n2 2\n1\n2\nnan\n-inf\n");
    check_written(HEAD "array real general\n0 281474976710656\n", HEAD "array real general\n0 281474976710656\n"); /* at once */
    /* an edge block: what hangs over is not written; the order is that of the blocks */
    int64_t offsets[] = {0, 1, 2}, columns[] = {1, 0};
    float values[] = {1, 9, 3, 9, 5, 6, 9, 9};
    spk_matrix *bsr = NULL;
    assert_ok(spk_convert_create(&case_mem,
                                 &(spk_matrix_desc){SPK_SIZED(spk_matrix_desc), .format = SPK_BSR, .dtype = SPK_F32, .rows = 3, .cols = 3,
                                                    .block_rows = 2, .block_cols = 2, .nnz = 2, .index_type = SPK_INDEX_I64,
                                                    .row_offsets = offsets, .col_indices = columns, .values = values},
                                 &bsr));
    char *out = written(bsr, &(spk_write_options){SPK_SIZED(spk_write_options), .comment = "two\nlines\r\n"});
    assert_string_equal(out, HEAD "coordinate real general\n% two\n% lines\n3 3 4\n1 3 1\n2 3 3\n3 1 5\n3 2 6\n");
    free(out);
    spk_matrix_release(&bsr);
    assert_int_equal(case_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinate), cmocka_unit_test(test_symmetric), cmocka_unit_test(test_array),  cmocka_unit_test(test_integers),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_bad),       cmocka_unit_test(test_limits), cmocka_unit_test(test_written),
    };
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

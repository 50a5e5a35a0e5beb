/* .smtx: what is read, what each bad file is told, what is written and what cannot be. */
#include "unit/io_case.h"

static void check_small(const char *text)
{
    static const int64_t offsets[] = {0, 2, 2, 6}, columns[] = {1, 4, 0, 2, 3, 4};
    spk_matrix *m = read_text(spk_read_smtx, text);
    assert_int_equal(m->format, SPK_CSR);
    assert_int_equal(m->dtype, SPK_F64);
    assert_int_equal(m->rows, 3);
    assert_int_equal(m->cols, 5);
    assert_int_equal(m->nnz, 6);
    assert_int_equal(m->pattern_only, 1);
    assert_memory_equal(m->row_offsets, offsets, sizeof offsets);
    assert_memory_equal(m->col_indices, columns, sizeof columns);
    for (int i = 0; i < 6; i++)
        assert_true(((const double *)m->values)[i] == 1);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_read(void **state)
{
    (void)state;
    check_small("3, 5, 6\n0 2 2 6\n1 4 0 2 3 4\n");
    check_small("3, 5, 6\r\n0 2 2 6 \r\n1 4 0 2 3 4 \r\n");
    check_small("3,5,6\n0 2 2 6\n1 4 0 2 3 4");
    check_small(" 3 5 6 \n0\n2 2\n\n6 1 4\t0 2 3\n4\n\n \n");
    check_small("3 ,5 , 6\n0 2 2 6\n1 4 0 2 3 4");
    spk_matrix *m = read_text(spk_read_smtx, "0, 0, 0\n0\n\n");
    assert_int_equal(m->nnz, 0);
    assert_int_equal(m->row_offsets[0], 0);
    spk_matrix_release(&m);
    assert_ok(read_memory(spk_read_smtx, "1 2 2\n0 2\n1 0", 13, NULL, SPK_F32, MB, &m)); /* columns need not rise */
    assert_int_equal(m->dtype, SPK_F32);
    assert_true(((const float *)m->values)[1] == 1);
    spk_matrix_release(&m);
}

static const bad_file bad[] = {
    {"\n", 0, SPK_ERR_FORMAT, "f: line 1: ends before the number of rows"},
    {"3, 5\n0 0 0 0\n", 0, SPK_ERR_FORMAT, "f: line 1: ends before the number of entries"},
    {"3,, 5, 6\n", 0, SPK_ERR_FORMAT, "f: line 1: number of columns '' is not a whole number"},
    {",3, 5, 6\n", 0, SPK_ERR_FORMAT, "f: line 1: number of rows '' is not a whole number"},
    {"3, five, 6\n", 0, SPK_ERR_FORMAT, "f: line 1: number of columns 'five' is not a whole number"},
    {"3, 5, 6, 7\n", 0, SPK_ERR_FORMAT, "f: line 1: more than three sizes"},
    {"3 5 6 7\n", 0, SPK_ERR_FORMAT, "f: line 1: more than three sizes"},
    {"3, -5, 6\n", 0, SPK_ERR_FORMAT, "f: line 1: number of columns '-5' is not a whole number"},
    {"3, 281474976710657, 6\n", 0, SPK_ERR_FORMAT, "f: line 1: number of columns 281474976710657 is above 281474976710656"},
    {"9999999, 5, 6\n0 2 2 6\n", 0, SPK_ERR_FORMAT,
     "f: line 1: announces 9999999 rows and 6 entries, but the 8 bytes that follow hold 4 numbers at most"},
    {"3, 5, 999999999999\n0 2 2 6\n", 0, SPK_ERR_FORMAT,
     "f: line 1: announces 3 rows and 999999999999 entries, but the 8 bytes that follow hold 4 numbers at most"},
    {"3, 5, 1\n0    2         ", 0, SPK_ERR_FORMAT, "f: line 2: row offset 2 is outside 0..1"},
    {"3, 5, 2\n0    2         ", 0, SPK_ERR_FORMAT, "f: line 2: the file ends after 2 of 4 row offsets"},
    {"3, 5, 6\n1 2 2 6\n1 4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 2: the first row offset is 1, not 0"},
    {"3, 5, 6\n0 4 2 6\n1 4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 2: row offset 2 falls from 4 to 2"},
    {"3, 5, 6\n0 2 2 5\n1 4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 2: the last row offset is 5, not the 6 entries of line 1"},
    {"3, 5, 6\n0 2 2 7\n1 4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 2: row offset 7 is outside 0..6"},
    {"3, 5, 6\n0 2 x 6\n1 4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 2: row offset 'x' is not a whole number"},
    {"3, 5, 6\n0 2 2 6\n1 5 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 3: column 5 is outside 0..4"},
    {"3, 5, 6\n0 2 2 6\n1 -4 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 3: column '-4' is not a whole number"},
    {"3, 5, 6\n0 2 2 6\n1 4, 0 2 3 4\n", 0, SPK_ERR_FORMAT, "f: line 3: column '4,' is not a whole number"},
    {"3, 5, 6\n0 2 2 6\n1 4 0 2 3.5 4\n", 0, SPK_ERR_FORMAT, "f: line 3: column '3.5' is not a whole number"},
    {"3, 5, 6\n0 2 2 6\n1 4 0 2 3     \n", 0, SPK_ERR_FORMAT, "f: line 4: the file ends after 5 of 6 columns"},
    {"3, 5, 6\n0 2 2 6\n1 4 0 2 3 4\n1\n", 0, SPK_ERR_FORMAT, "f: line 4: more than the 6 columns of line 1"},
    {"1, 0, 1\n0 1\n0\n", 0, SPK_ERR_FORMAT, "f: line 3: column 0 is outside 0..-1"},
    {BYTES("3, 5, 6\n0 2 2 6\n1 4 0 2 3 4\n\0"), SPK_ERR_FORMAT, "f: line 4: unexpected byte 0x00"},
};

static void test_bad(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    check_bad(spk_read_smtx, bad, sizeof bad / sizeof *bad);
    const char *text = "3, 5, 6\n0 2 2 6\n1 4 0 2 3 4\n";
    assert_int_equal(read_memory(spk_read_smtx, text, strlen(text), NULL, 0, 127, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: needs 128 bytes of memory, the limit is 127");
    assert_ok(read_memory(spk_read_smtx, text, strlen(text), NULL, 0, 128, &m));
    spk_matrix_release(&m);
}

static void check_written(const char *text, const char *expected)
{
    size_t size;
    spk_matrix *m = read_text(text[0] == '%' ? spk_read_mtx : spk_read_smtx, text);
    assert_ok(spk_write_matrix(&case_mem, m, in_folder("out.smtx"), NULL));
    char *out = get_file(in_folder("out.smtx"), &size);
    assert_string_equal(out, expected);
    free(out);
    spk_matrix_release(&m);
}

static void check_refused(const char *text, const char *message)
{
    spk_matrix *m = read_text(spk_read_mtx, text);
    int before = count_files(case_folder);
    assert_int_equal(spk_write_matrix(&case_mem, m, in_folder("refused.smtx"), NULL), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), message);
    assert_int_equal(count_files(case_folder), before);
    spk_matrix_release(&m);
}

static void test_written(void **state)
{
    (void)state;
    check_written("3 5 6\n0 2 2 6\n1 4 0 2 3 4", "3, 5, 6\n0 2 2 6\n1 4 0 2 3 4\n");
    check_written("0 0 0\n0\n", "0, 0, 0\n0\n\n");
    check_written("%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1\n1 2 1\n", "2, 2, 2\n0 1 2\n1 0\n");
    check_refused("%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1\n1 2 1.5\n",
                  ".smtx holds no values, but entry 0 of the matrix is 1.5, not 1");
    check_refused("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n2 1\n2 1\n",
                  ".smtx holds no values, but entry 0 of the matrix is 2, not 1");
    check_refused("%%MatrixMarket matrix array real general\n1 1\n1\n",
                  ".smtx holds sparse matrices, and this one is dense: convert it first");
    assert_int_equal(case_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_bad), cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

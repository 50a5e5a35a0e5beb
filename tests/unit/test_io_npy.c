/* NumPy files: byte orders, layouts, versions, what each bad header is told, what is written. */
#include "unit/io_case.h"

enum { FILE_ROOM = 1024 };

/* A file of this version with this header text, padded, and these bytes behind it. */
static size_t build(unsigned char *out, int version, const char *header, const void *data, size_t size)
{
    size_t prefix = version == 1 ? 10 : 12, length = strlen(header);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (unsigned char)(length & 0xff);
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + prefix, header, length);
    if (size)
        memcpy(out + prefix + length, data, size);
    return prefix + length + size;
}

static spk_matrix *read_good(int version, const char *header, const void *data, size_t size, spk_dtype dtype)
{
    unsigned char file[FILE_ROOM];
    spk_matrix *m = NULL;
    assert_ok(read_memory(spk_read_npy, file, build(file, version, header, data, size), NULL, dtype, MB, &m));
    assert_int_equal(m->format, SPK_DENSE);
    return m;
}

static void check_values(spk_matrix *m, int64_t rows, int64_t cols, spk_layout layout, spk_dtype dtype, const double *values)
{
    assert_int_equal(m->rows, rows);
    assert_int_equal(m->cols, cols);
    assert_int_equal(m->nnz, rows * cols);
    assert_int_equal(m->layout, layout);
    assert_int_equal(m->dtype, dtype);
    for (int64_t i = 0; i < rows * cols; i++)
        assert_true(spk_value_get(m->values, m->dtype, i) == values[i]);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void swap(void *bytes, size_t count, size_t size)
{
    unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++, at += size)
        for (size_t j = 0; j < size / 2; j++) {
            unsigned char byte = at[j];
            at[j] = at[size - 1 - j];
            at[size - 1 - j] = byte;
        }
}

static void test_read(void **state)
{
    (void)state;
    const double expected[] = {1, -2.5, 3, 1e30, 5, 6};
    float single[] = {1, -2.5f, 3, 1e30f, 5, 6};
    double twice[] = {1, -2.5, 3, 1e30, 5, 6}, rounded[] = {1, -2.5, 3, (double)1e30f, 5, 6};
    check_values(read_good(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }  \n", twice, 48, 0), 2, 3, SPK_ROW_MAJOR,
                 SPK_F64, expected);
    check_values(read_good(2, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)}", twice, 48, 0), 2, 3, SPK_COL_MAJOR, SPK_F64,
                 expected);
    check_values(read_good(3, "{\"shape\":(6,),\"descr\":\"<f4\",\"fortran_order\":False}", single, 24, 0), 6, 1, SPK_ROW_MAJOR, SPK_F32,
                 rounded);
    check_values(read_good(1, " { 'descr' : '=f8' , 'fortran_order' : False , 'shape' : ( 3 , 2 , ) } \n", twice, 48, 0), 3, 2,
                 SPK_ROW_MAJOR, SPK_F64, expected);
    check_values(read_good(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", single, 24, SPK_F64), 2, 3, SPK_ROW_MAJOR,
                 SPK_F64, rounded);
    check_values(read_good(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", twice, 48, SPK_F32), 2, 3, SPK_ROW_MAJOR,
                 SPK_F32, rounded);
    check_values(read_good(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", NULL, 0, 0), 0, 3, SPK_ROW_MAJOR, SPK_F64,
                 NULL);
    swap(single, 6, 4);
    swap(twice, 6, 8);
    check_values(read_good(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", single, 24, 0), 2, 3, SPK_ROW_MAJOR, SPK_F32,
                 rounded);
    check_values(read_good(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }", twice, 48, 0), 2, 3, SPK_ROW_MAJOR, SPK_F64,
                 expected);
    check_values(read_good(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }", twice, 48, SPK_F32), 2, 3, SPK_ROW_MAJOR,
                 SPK_F32, rounded);
}

static void refused(int version, const char *header, size_t size, spk_dtype dtype, int64_t limit, spk_status status, const char *message)
{
    unsigned char file[FILE_ROOM];
    static const double huge[8] = {1, 1e39, 1, 1, 1, 1, 1, 1};
    spk_matrix *m = NULL;
    spk_status got = read_memory(spk_read_npy, file, build(file, version, header, huge, size), NULL, dtype, limit, &m);
    if (got != status || strcmp(spk_error_message(0), message) != 0)
        fail_msg("%s: status %d, message \"%s\"; wanted %d, \"%s\"", header, (int)got, spk_error_message(0), (int)status, message);
    assert_null(m);
    assert_int_equal(case_live, 0);
}

#define GOOD "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}"

static void test_bad_headers(void **state)
{
    (void)state;
    const spk_status format = SPK_ERR_FORMAT, unsupported = SPK_ERR_UNSUPPORTED;
    refused(4, GOOD, 48, 0, MB, format, "f: byte 6: version 4.0 is unknown: 1.0, 2.0 and 3.0 are known");
    refused(1, "", 0, 0, MB, format, "f: byte 10: '{' is missing in the header");
    refused(1, "{", 0, 0, MB, format, "f: byte 11: a string is missing in the header");
    refused(1, "{'descr", 0, 0, MB, format, "f: byte 11: a string that does not belong here in the header");
    refused(1, "{'descr': '<f8', 'fortran_order': False}", 48, 0, MB, format,
            "f: byte 50: descr, fortran_order or shape is missing in the header");
    refused(1, "{'descr' '<f8'}", 48, 0, MB, format, "f: byte 19: ':' is missing in the header");
    refused(1, "{'descr': '<f8' 'shape': (1,)}", 48, 0, MB, format, "f: byte 26: ',' or '}' is missing in the header");
    refused(1, "{'descr': '<f8', 'descr': '<f8'}", 48, 0, MB, format, "f: byte 41: a key given twice in the header");
    refused(1, "{'descr': '<f8', 'order': False}", 48, 0, MB, format, "f: byte 35: an unknown key in the header");
    refused(1, "{'fortran_order': 1}", 48, 0, MB, format, "f: byte 28: True or False is missing in the header");
    refused(1, "{'shape': [2, 3]}", 48, 0, MB, format, "f: byte 20: '(' of the shape is missing in the header");
    refused(1, "{'shape': (2, -3)}", 48, 0, MB, format, "f: byte 24: a size of the shape is missing in the header");
    refused(1, "{'shape': (2)}", 48, 0, MB, format, "f: byte 22: ',' of the shape is missing in the header");
    refused(1, "{'shape': (2 3)}", 48, 0, MB, format, "f: byte 23: ',' of the shape is missing in the header");
    refused(1, "{'shape': (99999999999999999999,)}", 48, 0, MB, format, "f: byte 39: a size above 2^63 in the header");
    refused(1, "{'shape': (281474976710657,)}", 48, 0, MB, format, "f: byte 36: a size above 2^48 in the header");
    refused(1, GOOD " {}", 48, 0, MB, format, "f: byte 68: something behind the '}' in the header");
    refused(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)}", 24, 0, MB, unsupported,
            "f: elements of type '<i4' are not supported: f2, f4, f8 and i1 are");
    refused(1, "{'descr': '|f8', 'fortran_order': False, 'shape': (2, 3)}", 48, 0, MB, unsupported,
            "f: elements of type '|f8' are not supported: f2, f4, f8 and i1 are");
    refused(1, "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (6,)}", 48, 0, MB, unsupported,
            "f: structured arrays are not supported");
    refused(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, 0, MB, unsupported,
            "f: an array of 0 dimensions: 1 (a column) and 2 are supported");
    refused(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3)}", 48, 0, MB, unsupported,
            "f: an array of 3 dimensions: 1 (a column) and 2 are supported");
}

static void test_bad_data(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    refused(1, GOOD, 47, 0, MB, SPK_ERR_FORMAT, "f: byte 114: ends in the middle of 6 elements of 8 bytes that begin at byte 67");
    refused(1, GOOD, 49, 0, MB, SPK_ERR_FORMAT, "f: byte 115: more bytes than the shape has elements");
    refused(1, GOOD, 48, 0, 47, SPK_ERR_FORMAT, "f: needs 48 bytes of memory, the limit is 47");
    refused(1, GOOD, 48, SPK_F32, MB, SPK_ERR_FORMAT, "f: byte 75: the value 1e+39 is out of the range of f32");
    refused(1, GOOD, 48, SPK_BF16, MB, SPK_ERR_UNSUPPORTED, "f: cannot be read as bf16: f32 and f64 are");
    refused(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (281474976710656, 281474976710656)}", 48, 0, INT64_MAX, SPK_ERR_FORMAT,
            "f: byte 10: an array of 281474976710656 x 281474976710656 elements overflows 64-bit sizes");
    refused(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (281474976710656, 1)}", 48, 0, INT64_MAX, SPK_ERR_FORMAT,
            "f: byte 129: ends in the middle of 281474976710656 elements of 8 bytes that begin at byte 81");
    assert_int_equal(read_memory(spk_read_npy, "\x93NUMPX\1\0\0\0", 10, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 0: does not begin with \\x93NUMPY");
    assert_int_equal(read_memory(spk_read_npy, "\x93NUMPY\2\0\0\0\0\1", 12, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 8: a header of 16777216 bytes, the limit is 65536");
    assert_int_equal(read_memory(spk_read_npy, "\x93NUMPY\1\0\x40\0{'descr", 17, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 17: ends within the header of 64 bytes");
    assert_int_equal(read_memory(spk_read_npy, "\x93NUMPY\1", 7, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: ends after 7 bytes, 1 more are needed");
}

static void test_written(void **state)
{
    (void)state;
    double values[] = {1, 2, NAN, 4, -0.0, INFINITY};
    for (int layout = 0; layout < 2; layout++) {
        spk_matrix *m = NULL, *again = NULL;
        size_t size;
        assert_ok(spk_convert_create(&case_mem,
                                     &(spk_matrix_desc){SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F64, .rows = 2,
                                                        .cols = 3, .layout = (spk_layout)layout, .values = values},
                                     &m));
        assert_ok(spk_write_matrix(&case_mem, m, in_folder("out.npy"), NULL));
        char *bytes = get_file(in_folder("out.npy"), &size);
        assert_int_equal(size, 128 + sizeof values);
        assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': ", 44);
        assert_memory_equal(bytes + 44, layout ? "True, 'shape': (2, 3), } " : "False, 'shape': (2, 3), } ", 25);
        assert_int_equal(bytes[127], '\n');
        assert_memory_equal(bytes + 128, values, sizeof values);
        free(bytes);
        assert_ok(spk_read_matrix(&case_mem, in_folder("out.npy"), NULL, NULL, NULL, &again));
        assert_int_equal(again->layout, layout);
        assert_same_matrix(m, again);
        spk_matrix_release(&again);
        spk_matrix_release(&m);
    }
    spk_matrix *sparse = read_text(spk_read_smtx, "1 1 1\n0 1\n0");
    assert_int_equal(spk_write_matrix(&case_mem, sparse, in_folder("out.npy"), NULL), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), ".npy holds dense matrices, and this one is sparse: convert it first");
    spk_matrix_release(&sparse);
    assert_int_equal(case_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_bad_headers), cmocka_unit_test(test_bad_data),
                                       cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

/* safetensors: BSR and dense tensors, which one is picked, what every broken header or index is told, what is written. */
#include "unit/io_case.h"

#include <errno.h>
#include <jansson.h>

enum { FILE_ROOM = 8192 };

/* Length, header, data. */
static size_t build(unsigned char *out, const char *header, const void *data, size_t size)
{
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(out + 8, header, length);
    if (size)
        memcpy(out + 8 + length, data, size);
    return 8 + length + size;
}

static spk_status read_file(const char *header, const void *data, size_t size, const char *tensor, spk_dtype dtype, int64_t limit,
                            spk_matrix **m)
{
    static unsigned char file[FILE_ROOM];
    assert_true(strlen(header) + size + 8 <= sizeof file);
    return read_memory(spk_read_safetensors, file, build(file, header, data, size), tensor, dtype, limit, m);
}

/* A 5 x 7 matrix in 2 x 3 blocks: offsets 0 1 2 4, columns 0 2 0 1, values 0 .. 23. */
typedef struct bsr_data {
    int64_t offsets[4], columns[4];
    float values[24];
} bsr_data;

static bsr_data good_data(void)
{
    bsr_data data = {.offsets = {0, 1, 2, 4}, .columns = {0, 2, 0, 1}};
    for (int i = 0; i < 24; i++)
        data.values[i] = (float)i;
    return data;
}

#define NOTE_OF(rows, cols, brows, bcols, layout)                                                                                         \
    "{\\\"rows\\\":" rows ",\\\"cols\\\":" cols ",\\\"block_rows\\\":" brows ",\\\"block_cols\\\":" bcols ",\\\"block_layout\\\":" layout \
    "}"
#define NOTE NOTE_OF("5", "7", "2", "3", "\\\"row\\\"")
#define BSR(note, values_shape)                                                                                                            \
    "{\"__metadata__\":{\"sparsek.bsr.w\":\"" note "\"},\"w.row_offsets\":{\"dtype\":\"I64\",\"shape\":[4],\"data_offsets\":[0,32]},"      \
    "\"w.col_indices\":{\"dtype\":\"I64\",\"shape\":[4],\"data_offsets\":[32,64]},\"w.values\":{\"dtype\":\"F32\",\"shape\":" values_shape \
    ","                                                                                                                                    \
    "\"data_offsets\":[64,160]}}  "
#define GOOD BSR(NOTE, "[4,2,3]")

static void check_bsr(spk_matrix *m, spk_layout layout, spk_dtype dtype)
{
    bsr_data data = good_data();
    assert_int_equal(m->format, SPK_BSR);
    assert_int_equal(m->dtype, dtype);
    assert_int_equal(m->layout, layout);
    assert_int_equal(m->rows, 5);
    assert_int_equal(m->cols, 7);
    assert_int_equal(m->block_rows, 2);
    assert_int_equal(m->block_cols, 3);
    assert_int_equal(m->nnz, 4);
    assert_memory_equal(m->row_offsets, data.offsets, sizeof data.offsets);
    assert_memory_equal(m->col_indices, data.columns, sizeof data.columns);
    for (int i = 0; i < 24; i++)
        assert_true(spk_value_get(m->values, dtype, i) == i);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_bsr(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    bsr_data data = good_data();
    assert_ok(read_file(GOOD, &data, sizeof data, NULL, 0, MB, &m));
    check_bsr(m, SPK_ROW_MAJOR, SPK_F32);
    assert_ok(read_file(GOOD, &data, sizeof data, "w", SPK_F64, MB, &m));
    check_bsr(m, SPK_ROW_MAJOR, SPK_F64);
    assert_ok(read_file(BSR(NOTE_OF("5", "7", "2", "3", "\\\"col\\\""), "[4,3,2]"), &data, sizeof data, NULL, 0, MB, &m));
    check_bsr(m, SPK_COL_MAJOR, SPK_F32);
    /* 32-bit indices, another order in the file, a tensor between */
    struct {
        float values[24];
        int32_t columns[4];
        double bias[2];
        int32_t offsets[4];
    } other = {.columns = {0, 2, 0, 1}, .bias = {8, 9}, .offsets = {0, 1, 2, 4}};
    memcpy(other.values, data.values, sizeof other.values);
    const char *header =
        "{\"w.values\":{\"dtype\":\"F32\",\"shape\":[4,2,3],\"data_offsets\":[0,96]},\"w.col_indices\":{\"dtype\":\"I32\",\"shape\":[4],"
        "\"data_offsets\":[96,112]},\"bias\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[112,128]},\"w.row_offsets\":{\"dtype\":"
        "\"I32\","
        "\"shape\":[4],\"data_offsets\":[128,144]},\"__metadata__\":{\"format\":\"pt\",\"sparsek.bsr.w\":\"" NOTE "\"}}";
    assert_ok(read_file(header, &other, sizeof other, NULL, 0, MB, &m));
    check_bsr(m, SPK_ROW_MAJOR, SPK_F32);
    assert_ok(read_file(header, &other, sizeof other, "bias", 0, MB, &m));
    assert_int_equal(m->format, SPK_DENSE);
    assert_int_equal(m->rows, 2);
    assert_int_equal(m->cols, 1);
    assert_true(((const double *)m->values)[1] == 9);
    spk_matrix_release(&m);
}

static void check_pick(const char *header, size_t size, const char *tensor, spk_status status, const char *message)
{
    static const double zeros[64];
    spk_matrix *m = NULL;
    assert_int_equal(read_file(header, zeros, size, tensor, 0, MB, &m), status);
    if (status != SPK_OK)
        assert_string_equal(spk_error_message(0), message);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

#define EMPTY(name) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]}"
#define TYPED(type, bytes) "{\"a\":{\"dtype\":\"" type "\",\"shape\":[2,2],\"data_offsets\":[0," bytes "]}}"

static void test_pick(void **state)
{
    (void)state;
    const char *two = "{" EMPTY("a") "," EMPTY("b\\nc") "}";
    const char *ten = "{" EMPTY("a") "," EMPTY("b") "," EMPTY("c") "," EMPTY("d") "," EMPTY("e") "," EMPTY("f") "," EMPTY("g") "," EMPTY(
        "h") "," EMPTY("i") "," EMPTY("j") "}";
    check_pick("{" EMPTY("a") "}", 0, NULL, SPK_OK, NULL);
    check_pick(two, 0, "a", SPK_OK, NULL);
    check_pick(two, 0, NULL, SPK_ERR_ARGUMENT, "f: name one of its tensors: 'a', 'b?c'");
    check_pick(two, 0, "z", SPK_ERR_ARGUMENT, "f: holds no tensor 'z', but 'a', 'b?c'");
    check_pick("{}", 0, NULL, SPK_ERR_FORMAT, "f: holds no tensor");
    check_pick(TYPED("F32", "16"), 16, "a", SPK_OK, NULL);
    check_pick(TYPED("F64", "32"), 32, NULL, SPK_OK, NULL);
    check_pick(TYPED("I64", "32"), 32, NULL, SPK_ERR_UNSUPPORTED,
               "f: tensor 'a' has the type 'I64', which is not supported here: F32, F64, F16 and BF16 are");
    check_pick(TYPED("I16", "8"), 8, NULL, SPK_ERR_UNSUPPORTED,
               "f: tensor 'a' has the type 'I16', which is not supported here: F32, F64, F16 and BF16 are");
    check_pick(TYPED("F3", "7"), 7, NULL, SPK_ERR_UNSUPPORTED,
               "f: tensor 'a' has the type 'F3', which is not supported here: F32, F64, F16 and BF16 are");
    check_pick("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, NULL, SPK_ERR_UNSUPPORTED,
               "f: tensor 'a' has 0 dimensions: 1 (a column) and 2 are supported");
    check_pick("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1],\"data_offsets\":[0,4]}}", 4, NULL, SPK_ERR_UNSUPPORTED,
               "f: tensor 'a' has 3 dimensions: 1 (a column) and 2 are supported");
    spk_matrix *m = NULL;
    assert_int_equal(read_file(ten, NULL, 0, NULL, 0, MB, &m), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_error_message(0), ": 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'"));
}

/* Names are whole, as they are to be given, and those for which the message has no room are counted. */
static void test_pick_of_many(void **state)
{
    (void)state;
    char header[4000] = "{", last[128] = "";
    for (int i = 0; i < 20; i++)
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 "%s\"a.layer.with.many.parts.and.a.name.of.some.length.%02d\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]}",
                 i > 0 ? "," : "", i);
    strcat(header, "}");
    spk_matrix *m = NULL;
    assert_int_equal(read_file(header, NULL, 0, NULL, 0, MB, &m), SPK_ERR_ARGUMENT);
    const char *message = spk_error_message(0);
    int whole = 0, more = 0;
    for (const char *at = message; (at = strstr(at, ".length.")) != NULL; at++)
        whole += at[10] == '\'';
    assert_non_null(strstr(message, "'a.layer.with.many.parts.and.a.name.of.some.length.00', "));
    assert_non_null(strstr(message, " and "));
    assert_int_equal(sscanf(strrchr(message, '\''), "' and %d %100s", &more, last), 2);
    assert_string_equal(last, "more;");
    assert_int_equal(whole + more, 20);
    assert_int_equal(read_file(header, NULL, 0, "length.1", 0, MB, &m), SPK_ERR_ARGUMENT); /* a part of ten of the names */
    message = spk_error_message(0);
    assert_non_null(
        strstr(message, "holds no tensor 'length.1', but with it in the name 'a.layer.with.many.parts.and.a.name.of.some.length.10', "));
    assert_null(strstr(message, "length.09'"));
    assert_int_equal(sscanf(strrchr(message, '\''), "' and %d", &more), 1);
    whole = 0;
    for (const char *at = message; (at = strstr(at, ".length.1")) != NULL; at++)
        whole += at[10] == '\'';
    assert_int_equal(whole + more, 10);
}

static void check_header(const char *header, size_t size, const char *message)
{
    check_pick(header, size, NULL, SPK_ERR_FORMAT, message);
}

#define ONE(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                                                                \
    "{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":" first "},\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":" second \
    "}}"

static void test_bad_headers(void **state)
{
    (void)state;
    spk_matrix *m = NULL;
    check_header("[]", 0, "f: byte 8: the header does not begin with '{'");
    check_header(ONE("\"F64\"", "[2]", "[0,16]"), 15, "f: byte 8: the header's tensor 'a' reaches beyond the end of the file");
    check_header(ONE("\"F64\"", "[2]", "[0,16]"), 17, "f: byte 79: 1 bytes that belong to no tensor");
    check_header(ONE("\"F64\"", "[2]", "[8,24]"), 24, "f: byte 8: the header's tensor 'a' leaves a gap before it");
    check_header(ONE("\"F64\"", "[2]", "[0,15]"), 15,
                 "f: byte 8: the header's tensor 'a' has data_offsets that do not agree with its shape");
    check_header(ONE("\"F64\"", "[2]", "[16,0]"), 16,
                 "f: byte 8: the header's tensor 'a' has data_offsets that are not two rising integers");
    check_header(ONE("\"F64\"", "[2]", "[-16,0]"), 16,
                 "f: byte 8: the header's tensor 'a' has data_offsets that are not two rising integers");
    check_header(ONE("\"F64\"", "[2]", "[0,16,32]"), 16,
                 "f: byte 8: the header's tensor 'a' has data_offsets that are not two rising integers");
    check_header(ONE("\"F64\"", "[2]", "[0,16.0]"), 16,
                 "f: byte 8: the header's tensor 'a' has data_offsets that are not two rising integers");
    check_header(ONE("\"F64\"", "[-2]", "[0,16]"), 16,
                 "f: byte 8: the header's tensor 'a' has a shape that is not made of integers from 0");
    check_header(ONE("\"F64\"", "[\"2\"]", "[0,16]"), 16,
                 "f: byte 8: the header's tensor 'a' has a shape that is not made of integers from 0");
    check_header(ONE("\"F64\"", "[4611686018427387904,2]", "[0,16]"), 16,
                 "f: byte 8: the header's tensor 'a' has a shape that overflows 64-bit sizes");
    check_header(ONE("\"F64\"", "[562949953421312,0]", "[0,0]"), 0,
                 "f: byte 8: tensor 'a' is 562949953421312 x 0, the limit is 281474976710656");
    check_header(ONE("64", "[2]", "[0,16]"), 16, "f: byte 8: the header's tensor 'a' lacks dtype, shape or data_offsets");
    check_header("{\"a\":7}", 0, "f: byte 8: the header's tensor 'a' lacks dtype, shape or data_offsets");
    check_header("{\"a\":{}}", 0, "f: byte 8: the header's tensor 'a' lacks dtype, shape or data_offsets");
    check_header(TWO("[0,16]", "[8,24]"), 24, "f: byte 8: the header's tensor 'b' overlaps another");
    check_header(TWO("[0,16]", "[24,40]"), 40, "f: byte 8: the header's tensor 'b' leaves a gap before it");
    check_header("{\"__metadata__\":[]}", 0, "f: byte 8: the header's __metadata__ is not an object");
    check_header("{\"__metadata__\":{\"a\":1}}", 0, "f: byte 8: the header's __metadata__ holds something that is not text");
    check_header("{\"a\":{},\"a\":{}}", 0, "f: byte 19: the header is not JSON: duplicate object key near '\"a\"'");
    check_header("{\"a\":", 0, "f: byte 13: the header is not JSON: unexpected token near end of file");
    check_header("{} x", 0, "f: byte 12: the header is not JSON: end of file expected near 'x'");
    assert_int_equal(read_memory(spk_read_safetensors, "\0\0\0\0\0\1\0\0{}", 10, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 0: announces a header of 1099511627776 bytes: 2 to 100000000 are allowed");
    assert_int_equal(read_memory(spk_read_safetensors, "\0\1\0\0\0\0\0\0{}", 10, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 0: announces a header of 256 bytes, but 2 follow");
    assert_int_equal(read_memory(spk_read_safetensors, "\2\0\0", 3, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: ends after 3 bytes, 5 more are needed");
    assert_int_equal(case_live, 0);
}

static void check_bad_bsr(const char *header, const bsr_data *data, spk_dtype dtype, int64_t limit, const char *message)
{
    spk_matrix *m = NULL;
    assert_int_equal(read_file(header, data, sizeof *data, NULL, dtype, limit, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), message);
    assert_null(m);
    assert_int_equal(case_live, 0);
}

static void test_bad_bsr(void **state)
{
    (void)state;
    bsr_data data = good_data();
    char message[120];
    int data_at = 8 + (int)strlen(GOOD);
#define CHECK_NOTE(note, text) check_bad_bsr(BSR(note, "[4,2,3]"), &data, 0, MB, "f: byte 8: " text)
    CHECK_NOTE("{", "the BSR metadata is not JSON: string or '}' expected near end of file");
    CHECK_NOTE(NOTE_OF("-5", "7", "2", "3", "\\\"row\\\""), "the BSR metadata's rows is not an integer in 0..281474976710656");
    CHECK_NOTE(NOTE_OF("5", "1.5", "2", "3", "\\\"row\\\""), "the BSR metadata's cols is not an integer in 0..281474976710656");
    CHECK_NOTE(NOTE_OF("5", "7", "0", "3", "\\\"row\\\""), "the BSR metadata's block_rows is not an integer in 1..256");
    CHECK_NOTE(NOTE_OF("5", "7", "2", "257", "\\\"row\\\""), "the BSR metadata's block_cols is not an integer in 1..256");
    CHECK_NOTE(NOTE_OF("5", "7", "2", "3", "\\\"diagonal\\\""), "the BSR metadata's block_layout is neither row nor col");
    CHECK_NOTE(NOTE_OF("5", "7", "2", "3", "1"), "the BSR metadata's block_layout is neither row nor col");
    CHECK_NOTE(NOTE_OF("7", "7", "2", "3", "\\\"row\\\""), "tensor 'w.row_offsets' has the size 4 in dimension 0, not 5");
    CHECK_NOTE(NOTE_OF("5", "7", "3", "2", "\\\"row\\\""), "tensor 'w.row_offsets' has the size 4 in dimension 0, not 3");
    CHECK_NOTE(NOTE_OF("5", "7", "2", "3", "\\\"col\\\""), "tensor 'w.values' has the size 2 in dimension 1, not 3");
    check_bad_bsr(BSR(NOTE, "[24]"), &data, 0, MB, "f: byte 8: tensor 'w.values' has 1 dimensions, not 3");
    check_bad_bsr(BSR(NOTE, "[2,4,3]"), &data, 0, MB, "f: byte 8: tensor 'w.values' has the size 2 in dimension 0, not 4");
    check_bad_bsr(GOOD, &data, 0, 159, "f: needs 160 bytes of memory, the limit is 159");
    data.columns[1] = 3;
    snprintf(message, sizeof message, "f: byte %d: 'w.col_indices'[1] = 3: there is no such block column", data_at + 40);
    check_bad_bsr(GOOD, &data, 0, MB, message);
    data.columns[1] = -1;
    snprintf(message, sizeof message, "f: byte %d: 'w.col_indices'[1] = -1: there is no such block column", data_at + 40);
    check_bad_bsr(GOOD, &data, 0, MB, message);
    data = good_data();
    data.offsets[2] = 0;
    snprintf(message, sizeof message, "f: byte %d: 'w.row_offsets'[2] = 0: row offsets do not fall", data_at + 16);
    check_bad_bsr(GOOD, &data, 0, MB, message);
    data.offsets[0] = 1;
    snprintf(message, sizeof message, "f: byte %d: 'w.row_offsets'[0] = 1: the first row offset is 0", data_at);
    check_bad_bsr(GOOD, &data, 0, MB, message);
    data = good_data();
    data.offsets[3] = 3;
    snprintf(message, sizeof message, "f: byte %d: 'w.row_offsets'[3] = 3: the last row offset is the number of stored blocks",
             data_at + 24);
    check_bad_bsr(GOOD, &data, 0, MB, message);
    spk_matrix *m = NULL;
    const char *lonely = "{\"__metadata__\":{\"sparsek.bsr.w\":\"" NOTE "\"}}";
    assert_int_equal(read_file(lonely, NULL, 0, NULL, 0, MB, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: byte 8: the BSR matrix 'w' has no tensor for its row_offsets");
}

static void test_written(void **state)
{
    (void)state;
    bsr_data data = good_data();
    spk_read_options options = {SPK_SIZED(spk_read_options), .tensor = "layer \"1\""};
    for (int layout = 0; layout < 2; layout++) {
        spk_matrix *m = NULL, *again = NULL;
        size_t size;
        assert_ok(
            read_file(layout ? BSR(NOTE_OF("5", "7", "2", "3", "\\\"col\\\""), "[4,3,2]") : GOOD, &data, sizeof data, NULL, 0, MB, &m));
        assert_ok(spk_write_matrix(&case_mem, m, in_folder("out.safetensors"),
                                   &(spk_write_options){SPK_SIZED(spk_write_options), .tensor = options.tensor}));
        char *bytes = get_file(in_folder("out.safetensors"), &size);
        uint64_t length = 0;
        for (int i = 0; i < 8; i++)
            length |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
        assert_int_equal(length % 8, 0);
        assert_int_equal(size, 8 + length + sizeof data);
        assert_memory_equal(bytes + 8 + length, &data, sizeof data);
        free(bytes);
        assert_ok(spk_read_matrix(&case_mem, in_folder("out.safetensors"), &options, NULL, NULL, &again));
        assert_int_equal(again->layout, layout);
        assert_same_matrix(m, again);
        spk_matrix_release(&again);
        spk_matrix_release(&m);
    }
    double values[] = {1, 2, NAN, 4, -0.0, INFINITY};
    for (int layout = 0; layout < 2; layout++) {
        spk_matrix *m = NULL, *again = NULL;
        assert_ok(spk_convert_create(&case_mem,
                                     &(spk_matrix_desc){SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F64, .rows = 2,
                                                        .cols = 3, .layout = (spk_layout)layout, .values = values},
                                     &m));
        assert_ok(spk_write_matrix(&case_mem, m, in_folder("out.safetensors"), NULL));
        assert_ok(spk_read_matrix(&case_mem, in_folder("out.safetensors"), NULL, NULL, NULL, &again));
        assert_int_equal(again->layout, SPK_ROW_MAJOR);
        assert_same_matrix(m, again);
        spk_matrix_release(&again);
        spk_matrix_release(&m);
    }
    assert_int_equal(case_live, 0);
}

#define BARE                                                                                                                     \
    "{\"__metadata__\":{\"sparsek.bsr.w\":\"{\\\"rows\\\":5,\\\"cols\\\":7,\\\"block_rows\\\":2,\\\"block_cols\\\":3,\\\"block_" \
    "layout\\\":\\\"row\\\","                                                                                                    \
    "\\\"pattern_only\\\":true}\"},\"w.row_offsets\":{\"dtype\":\"I64\",\"shape\":[4],\"data_offsets\":[0,32]},"                 \
    "\"w.col_indices\":{\"dtype\":\"I64\",\"shape\":[4],\"data_offsets\":[32,64]}}"

/* Blocks without values: they are ones, there is room for them or not, and none are written. */
static void test_pattern_only(void **state)
{
    (void)state;
    static const spk_dtype dtypes[] = {SPK_DTYPE_DEFAULT, SPK_F64};
    bsr_data data = good_data();
    spk_matrix *m = NULL, *again = NULL;
    for (int i = 0; i < 2; i++) {
        size_t size;
        assert_ok(read_file(BARE, &data, 64, NULL, dtypes[i], MB, &m));
        assert_true(m->pattern_only && m->nnz == 4 && m->dtype == (i ? SPK_F64 : SPK_F32));
        for (int64_t v = 0; v < 24; v++)
            assert_true(spk_value_get(m->values, m->dtype, v) == 1);
        assert_memory_equal(m->col_indices, data.columns, sizeof data.columns);
        assert_ok(spk_convert_canonicalize(&case_mem, m, &again));
        assert_true(again->pattern_only);
        spk_matrix_release(&m);
        assert_ok(spk_write_matrix(&case_mem, again, in_folder("out.safetensors"), NULL));
        free(get_file(in_folder("out.safetensors"), &size));
        assert_in_range(size, 64, 500);
        spk_matrix_release(&again);
        assert_ok(spk_read_matrix(&case_mem, in_folder("out.safetensors"), NULL, NULL, NULL, &m));
        assert_true(m->pattern_only && m->nnz == 4 && m->rows == 5 && m->block_cols == 3);
        spk_matrix_release(&m);
    }
    assert_int_equal(read_file(BARE, &data, 64, NULL, SPK_F32, 159, &m), SPK_ERR_FORMAT);
    assert_string_equal(spk_error_message(0), "f: needs 160 bytes of memory, the limit is 159");
    data.columns[1] = 3;
    assert_int_equal(read_file(BARE, &data, 64, NULL, SPK_F32, MB, &m), SPK_ERR_FORMAT);
    assert_int_equal(case_live, 0);
}

static void test_not_written(void **state)
{
    (void)state;
    static const char *const names[] = {"", "__metadata__", "\xff"};
    spk_matrix *csr = read_text(spk_read_smtx, "1 1 1\n0 1\n0"),
               *dense = read_text(spk_read_mtx, "%%MatrixMarket matrix array real general\n1 1\n1\n");
    int before = count_files(case_folder);
    assert_int_equal(spk_write_matrix(&case_mem, csr, in_folder("no.safetensors"), NULL), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_error_message(0), "safetensors holds BSR and dense matrices, and this one is neither: convert it first");
    for (int i = 0; i < 3; i++) {
        char message[100];
        spk_write_options options = {SPK_SIZED(spk_write_options), .tensor = names[i]};
        assert_int_equal(spk_write_matrix(&case_mem, dense, in_folder("no.safetensors"), &options), SPK_ERR_ARGUMENT);
        snprintf(message, sizeof message, "tensor = '%s' is no name: text in UTF-8, not empty, not __metadata__", names[i]);
        assert_string_equal(spk_error_message(0), message);
    }
    assert_int_equal(count_files(case_folder), before);
    spk_matrix_release(&csr);
    spk_matrix_release(&dense);
}

/* A header of many small values would take fifty times its size: max_bytes holds for that too. */
static void test_costly_header(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *bytes = malloc(8 + LENGTH), *at = bytes + 8;
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)LENGTH >> (8 * i));
    memset(at, ' ', LENGTH);
    at += sprintf(at, "{\"w\":{\"dtype\":\"F32\",\"shape\":[");
    while (at < bytes + LENGTH - 100) {
        memcpy(at, "[],", 3);
        at += 3;
    }
    memcpy(at, "0]}}", 4);
    spk_matrix *m = NULL;
    assert_int_equal(read_memory(spk_read_safetensors, bytes, 8 + LENGTH, NULL, SPK_DTYPE_DEFAULT, 32 * MB, &m), SPK_ERR_FORMAT);
    assert_non_null(strstr(spk_error_message(0), " bytes of memory, the limit is 33554432"));
    assert_int_equal(read_memory(spk_read_safetensors, bytes, 8 + LENGTH, NULL, SPK_DTYPE_DEFAULT, 1024 * MB, &m), SPK_ERR_FORMAT);
    assert_non_null(strstr(spk_error_message(0), "lacks dtype, shape or data_offsets"));
    free(bytes);
    assert_null(m);
    assert_int_equal(case_live, 0);
}

static int json_left; /* which of Jansson's allocations from now on is refused, 1: the next; 0: none */

static void *fail_once(size_t bytes)
{
    if (json_left > 0 && --json_left == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return malloc(bytes);
}

/* Each of Jansson's allocations is refused in turn, alone: a whole file is written or none, and no reader calls a good file malformed. */
static void test_no_memory_for_json(void **state)
{
    (void)state;
    int64_t offsets[] = {0, 1, 2}, columns[] = {1, 0};
    float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *path = in_folder("m.safetensors");
    spk_write_options options = {SPK_SIZED(spk_write_options), .tensor = "a name that is longer than the buffers of Jansson are at first"};
    spk_matrix *bsr = NULL;
    size_t wanted_size, size;
    assert_ok(spk_convert_create(&case_mem,
                                 &(spk_matrix_desc){SPK_SIZED(spk_matrix_desc), .format = SPK_BSR, .dtype = SPK_F32, .rows = 4, .cols = 4,
                                                    .block_rows = 2, .block_cols = 2, .nnz = 2, .index_type = SPK_INDEX_I64,
                                                    .row_offsets = offsets, .col_indices = columns, .values = values},
                                 &bsr));
    assert_ok(spk_write_matrix(&case_mem, bsr, path, &options));
    char *wanted = get_file(path, &wanted_size);
    for (int reading = 0; reading < 2; reading++) {
        int refused = 0;
        for (int nth = 1; nth <= 300; nth++) {
            spk_matrix *m = NULL;
            if (!reading)
                unlink(path);
            json_left = nth;
            spk_status status =
                reading ? spk_read_matrix(&case_mem, path, NULL, NULL, NULL, &m) : spk_write_matrix(&case_mem, bsr, path, &options);
            json_left = 0;
            if (status != SPK_OK && status != SPK_ERR_OUT_OF_MEMORY)
                fail_msg("%s, allocation %d: status %d: %s", reading ? "reading" : "writing", nth, (int)status, spk_error_message(0));
            refused += status != SPK_OK;
            assert_true(!reading || (m != NULL) == (status == SPK_OK));
            if (reading && m)
                assert_same_matrix(bsr, m);
            spk_matrix_release(&m);
            assert_int_equal(access(path, F_OK), !reading && status != SPK_OK ? -1 : 0);
            if (status == SPK_OK && !reading) {
                char *bytes = get_file(path, &size);
                assert_int_equal(size, wanted_size);
                assert_memory_equal(bytes, wanted, size);
                free(bytes);
            }
        }
        assert_in_range(refused, 10, 290);
        assert_ok(spk_write_matrix(&case_mem, bsr, path, &options));
    }
    free(wanted);
    spk_matrix_release(&bsr);
    assert_int_equal(case_live, 0);
}

/* ------------------------------------------------------------------------------------------------ bare triples */

/* A matrix of which the file tells neither rows nor columns, under a name among others, drawn at random. */
typedef struct bare_case {
    char header[2048];
    unsigned char data[4096];
    size_t bytes;
    int64_t block_rows, block_cols, grid_rows, grid_cols, nnz, last; /* last: the largest block column that is stored; -1: none is */
    int64_t offsets[16], columns[64];
    bool narrow; /* 32-bit indices */
} bare_case;

static void put_index(bare_case *c, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    memcpy(c->data + c->bytes, c->narrow ? (const void *)&narrow : &value, c->narrow ? 4 : 8);
    c->bytes += c->narrow ? 4 : 8;
}

static void draw_bare(spk_rng *rng, bare_case *c)
{
    *c = (bare_case){.block_rows = 1 + (int64_t)spk_rng_below(rng, 3), .block_cols = 1 + (int64_t)spk_rng_below(rng, 3), .last = -1};
    c->narrow = spk_rng_below(rng, 2);
    c->grid_rows = (int64_t)spk_rng_below(rng, 6);
    c->grid_cols = 1 + (int64_t)spk_rng_below(rng, 7);
    for (int64_t i = 0; i < c->grid_rows; i++) {
        for (int64_t j = 0; j < c->grid_cols; j++)
            if (spk_rng_below(rng, 3) == 0) {
                c->columns[c->nnz++] = j;
                c->last = j > c->last ? j : c->last;
            }
        c->offsets[i + 1] = c->nnz;
    }
    const size_t values = (size_t)(c->nnz * c->block_rows * c->block_cols);
    for (size_t i = 0; i < values; i++, c->bytes += 4)
        memcpy(c->data + c->bytes, &(float){(float)i}, 4);
    const size_t at_columns = c->bytes;
    for (int64_t i = 0; i < c->nnz; i++)
        put_index(c, c->columns[i]);
    const size_t at_offsets = c->bytes;
    for (int64_t i = 0; i <= c->grid_rows; i++)
        put_index(c, c->offsets[i]);
    const char *type = c->narrow ? "I32" : "I64";
    snprintf(c->header, sizeof c->header,
             "{\"__metadata__\":{\"format\":\"pt\"},\"m.0.up.values\":{\"dtype\":\"F32\",\"shape\":[%d,%d,%d],\"data_offsets\":[0,%zu]},"
             "\"m.0.up.col_indices\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
             "\"m.0.up.row_offsets\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
             "\"m.0.up.bias\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[%zu,%zu]}}",
             (int)c->nnz, (int)c->block_rows, (int)c->block_cols, at_columns, type, (int)c->nnz, at_columns, at_offsets, type,
             (int)c->grid_rows + 1, at_offsets, c->bytes, c->bytes, c->bytes);
}

static spk_status read_bare(const bare_case *c, const char *tensor, int64_t cols, char *remark, spk_matrix **m)
{
    static unsigned char file[FILE_ROOM];
    const size_t size = build(file, c->header, c->data, c->bytes);
    spk_read_context in = {.mem = &case_mem, .tensor = tensor, .cols = cols, .max_bytes = MB, .remark = remark};
    assert_ok(spk_reader_open_memory(&case_mem, file, size, "f", &in.reader));
    const spk_status status = spk_read_safetensors(&in, m);
    spk_reader_close(&in.reader);
    return status;
}

static void check_bare(const bare_case *c, int64_t cols, spk_matrix *m)
{
    assert_int_equal(m->format, SPK_BSR);
    assert_int_equal(m->layout, SPK_ROW_MAJOR);
    assert_int_equal(m->rows, c->grid_rows * c->block_rows);
    assert_int_equal(m->cols, cols);
    assert_int_equal(m->block_rows, c->block_rows);
    assert_int_equal(m->block_cols, c->block_cols);
    assert_int_equal(m->nnz, c->nnz);
    assert_memory_equal(m->row_offsets, c->offsets, (size_t)(c->grid_rows + 1) * 8);
    assert_memory_equal(m->col_indices, c->columns, (size_t)c->nnz * 8);
    for (int64_t i = 0; i < c->nnz * c->block_rows * c->block_cols; i++)
        assert_true(spk_value_get(m->values, m->dtype, i) == (double)i);
    spk_matrix_release(&m);
    assert_int_equal(case_live, 0);
}

static void test_bare(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 25);
    for (int round = 0; round < 300; round++) {
        static bare_case c;
        spk_matrix *m = NULL;
        char remark[SPK_REMARK_ROOM] = "";
        draw_bare(&rng, &c);
        const char *name = spk_rng_below(&rng, 2) ? "m.0.up" : NULL; /* beside a plain one it is the only BSR matrix */
        const int64_t most = c.grid_cols * c.block_cols, ragged = most - (int64_t)spk_rng_below(&rng, (uint64_t)c.block_cols);
        assert_ok(read_bare(&c, name, ragged, remark, &m));
        check_bare(&c, ragged, m);
        assert_string_equal(remark, "");
        if (c.last >= 0) {
            m = NULL;
            assert_ok(read_bare(&c, name, 0, remark, &m));
            check_bare(&c, (c.last + 1) * c.block_cols, m);
            assert_non_null(strstr(remark, "nothing says how many columns the BSR matrix 'm.0.up' has"));
        } else {
            m = NULL;
            assert_int_equal(read_bare(&c, name, 0, remark, &m), SPK_ERR_ARGUMENT);
            assert_non_null(strstr(spk_error_message(0), "nothing says how many columns the BSR matrix 'm.0.up' has: give cols (--cols)"));
        }
        if (c.last > 0) {
            m = NULL;
            assert_int_equal(read_bare(&c, name, c.last * c.block_cols, NULL, &m), SPK_ERR_FORMAT);
            assert_non_null(strstr(spk_error_message(0), "there is no such block column"));
        }
        assert_int_equal(read_bare(&c, "m.0", 0, NULL, &m), SPK_ERR_ARGUMENT);
        assert_string_equal(spk_error_message(0), "f: holds no tensor 'm.0', but with it in the name 'm.0.up', 'm.0.up.bias'");
        assert_int_equal(case_live, 0);
    }
}

#define TRIPLE(values, columns, offsets)                                                                             \
    "{\"w.values\":{\"dtype\":\"F32\",\"shape\":" values "},\"w.col_indices\":{\"dtype\":\"I64\",\"shape\":" columns \
    "},\"w.row_offsets\":{\"dtype\":\"I64\",\"shape\":" offsets "}}"

/* What is wrong with one is told, and nothing is read beyond it. */
static void test_bare_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t words[4];
        size_t bytes;
        const char *message;
    } cases[] = {
        {TRIPLE("[0,0,4],\"data_offsets\":[0,0]", "[0],\"data_offsets\":[0,0]", "[1],\"data_offsets\":[0,8]"),
         {0},
         8,
         "blocks of 0 x 4; each size is in"},
        {TRIPLE("[0,4,4097],\"data_offsets\":[0,0]", "[0],\"data_offsets\":[0,0]", "[1],\"data_offsets\":[0,8]"),
         {0},
         8,
         "blocks of 4 x 4097"},
        {TRIPLE("[0,4,4],\"data_offsets\":[0,0]", "[0],\"data_offsets\":[0,0]", "[0],\"data_offsets\":[0,0]"),
         {0},
         0,
         "has no row offsets"},
        {TRIPLE("[1,1,1],\"data_offsets\":[0,4]", "[1],\"data_offsets\":[4,12]", "[2],\"data_offsets\":[12,28]"),
         {INT64_C(-4294967296), INT64_C(4294967295), INT64_C(4294967296), 0},
         28,
         "there is no such block column"},
        {TRIPLE("[2,1,1],\"data_offsets\":[0,8]", "[1],\"data_offsets\":[8,16]", "[2],\"data_offsets\":[16,32]"),
         {0, 0, 0, 1},
         32,
         "has the size 2 in dimension 0, not 1"},
        {TRIPLE("[1,1,2],\"data_offsets\":[0,8]", "[1],\"data_offsets\":[8,16]", "[2],\"data_offsets\":[16,32]"),
         {0, INT64_C(1) << 61, 0, 1},
         32,
         "beyond the columns that a matrix can have"},
        {TRIPLE("[1,1,2],\"data_offsets\":[0,8]", "[1],\"data_offsets\":[8,16]", "[2],\"data_offsets\":[16,32]"),
         {0, 0, 1, 1},
         32,
         "the first row offset is 0"},
        {TRIPLE("[1,1,2],\"data_offsets\":[0,8]", "[1],\"data_offsets\":[8,16]", "[2],\"data_offsets\":[16,32]"),
         {0, 0, 0, 2},
         32,
         "the last row offset is the number of stored blocks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spk_matrix *m = NULL;
        assert_int_equal(read_file(cases[i].header, cases[i].words, cases[i].bytes, "w", 0, MB, &m) == SPK_OK, 0);
        if (!strstr(spk_error_message(0), cases[i].message))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, spk_error_message(0), cases[i].message);
        assert_null(m);
        assert_int_equal(case_live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pattern_only),  cmocka_unit_test(test_bsr),
                                       cmocka_unit_test(test_pick),          cmocka_unit_test(test_pick_of_many),
                                       cmocka_unit_test(test_bad_headers),   cmocka_unit_test(test_bad_bsr),
                                       cmocka_unit_test(test_written),       cmocka_unit_test(test_not_written),
                                       cmocka_unit_test(test_costly_header), cmocka_unit_test(test_no_memory_for_json),
                                       cmocka_unit_test(test_bare),          cmocka_unit_test(test_bare_refused)};
    json_set_alloc_funcs(fail_once, free);
    return cmocka_run_group_tests(tests, make_case_folder, remove_case_folder);
}

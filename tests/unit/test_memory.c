/* Device memory through the public calls (on the CPU: host memory), conversion of values, and products in float16 and bfloat16 end to
 * end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

static spk_context *context;

static int open_context(void **state)
{
    (void)state;
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &context) != SPK_OK;
}

static int close_context(void **state)
{
    (void)state;
    spk_context_destroy(&context);
    return 0;
}

static void copies_go_everywhere(void **state)
{
    (void)state;
    char here[1000], back[1000];
    void *a = NULL, *b = NULL, *none = NULL;
    for (int i = 0; i < 1000; i++)
        here[i] = (char)(i * 7);
    assert_int_equal(spk_memory_allocate(context, sizeof here, &a), SPK_OK);
    assert_int_equal(spk_memory_allocate(context, sizeof here, &b), SPK_OK);
    assert_int_equal(spk_memory_allocate(context, 0, &none), SPK_OK);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal(spk_memory_copy(context, a, SPK_DEVICE, here, SPK_HOST, sizeof here), SPK_OK);
    assert_int_equal(spk_memory_copy(context, b, SPK_DEVICE, a, SPK_DEVICE, sizeof here), SPK_OK);
    assert_int_equal(spk_memory_copy(context, back, SPK_HOST, b, SPK_DEVICE, sizeof here), SPK_OK);
    assert_memory_equal(here, back, sizeof here);
    memset(back, 0, sizeof back);
    assert_int_equal(spk_memory_copy(context, back, SPK_HOST, here, SPK_HOST, sizeof here), SPK_OK);
    assert_memory_equal(here, back, sizeof here);
    assert_int_equal(spk_memory_copy(context, NULL, SPK_DEVICE, NULL, SPK_HOST, 0), SPK_OK);
    assert_int_equal(spk_synchronize(context, NULL), SPK_OK);
    spk_memory_release(context, &a);
    assert_null(a);
    spk_memory_release(context, &a);
    spk_memory_release(context, &b);
    spk_memory_release(context, &none);
}

static void refuse(spk_status got, spk_status want, const char *piece)
{
    assert_int_equal(got, want);
    if (strstr(spk_last_error(context), piece) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", spk_last_error(context), piece);
}

static void wrong_calls(void **state)
{
    (void)state;
    char bytes[16] = {0};
    double x = 1;
    void *memory = bytes;
    assert_int_equal(spk_memory_allocate(NULL, 1, &memory), SPK_ERR_ARGUMENT);
    refuse(spk_memory_allocate(context, 1, NULL), SPK_ERR_ARGUMENT, "memory is NULL");
    refuse(spk_memory_allocate(context, (size_t)1 << 46, &memory), SPK_ERR_OUT_OF_MEMORY, "are free");
    assert_ptr_equal(memory, bytes);
    refuse(spk_memory_copy(context, NULL, SPK_DEVICE, bytes, SPK_HOST, 4), SPK_ERR_ARGUMENT, "to is NULL: 4 bytes are to be copied");
    refuse(spk_memory_copy(context, bytes, (spk_memory)2, bytes, SPK_HOST, 4), SPK_ERR_ARGUMENT, "to_kind = 2");
    refuse(spk_memory_copy(context, bytes, SPK_HOST, bytes, (spk_memory)-1, 4), SPK_ERR_ARGUMENT, "from_kind = -1");
    refuse(spk_cast_values(context, SPK_TF32, bytes, SPK_F64, &x, 1), SPK_ERR_ARGUMENT, "to_dtype = 7");
    refuse(spk_cast_values(context, SPK_F16, bytes, SPK_F64, NULL, 1), SPK_ERR_ARGUMENT, "from is NULL for 1 values");
    refuse(spk_cast_values(context, SPK_F16, bytes + 1, SPK_F64, &x, 1), SPK_ERR_ARGUMENT, "is not aligned");
    refuse(spk_cast_values(context, SPK_F16, bytes, SPK_F64, &x, -1), SPK_ERR_ARGUMENT, "count = -1");
}

enum { SIDE = 40, N = 9 };

/* spk_compute_spmm on the CPU against the oracle, for every pair of dtypes. */
static void halves_multiply(void **state)
{
    (void)state;
    static const spk_dtype pairs[][2] = {{SPK_F16, SPK_F16}, {SPK_F16, SPK_F32}, {SPK_BF16, SPK_BF16}, {SPK_BF16, SPK_F32}};
    for (int i = 0; i < 4; i++) {
        spk_matrix *matrix = NULL;
        spk_pattern *pattern = NULL;
        spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
        spk_generate how = {SPK_SIZED(spk_generate),
                            .generator = SPK_GEN_UNIFORM,
                            .rows = SIDE,
                            .cols = SIDE,
                            .block_rows = 8,
                            .block_cols = 8,
                            .density = 0.5,
                            .seed = 3,
                            .dtype = pairs[i][0]};
        uint16_t b[SIDE * N], bias[2 * SIDE];
        double d[SIDE * N], want[SIDE * N], magnitude[SIDE * N], tolerance = 0;
        char raw[SIDE * N * 4];
        assert_int_equal(spk_matrix_generate(context, &how, &matrix, NULL), SPK_OK);
        assert_int_equal(spk_matrix_view(matrix, &desc), SPK_OK);
        assert_int_equal(spk_pattern_from_matrix(context, matrix, &pattern), SPK_OK);
        assert_int_equal(spk_fill_random(context, pairs[i][0], SIDE * N, 4, b), SPK_OK);
        assert_int_equal(spk_fill_random(context, pairs[i][1], SIDE, 5, bias), SPK_OK);
        spk_spmm problem = {SPK_SIZED(spk_spmm), .n = N, .dtype_a = pairs[i][0], .dtype_d = pairs[i][1], .bias = SPK_BIAS_PER_ROW};
        spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = desc.values, .b = b, .d = raw, .bias = bias, .alpha = 1.5};
        assert_int_equal(spk_compute_spmm(context, pattern, &problem, &args, NULL), SPK_OK);
        assert_int_equal(spk_oracle(context, pattern, &problem, &args, SPK_FIRST_OUTPUT, NULL, 0, want, magnitude), SPK_OK);
        assert_int_equal(spk_default_tolerance(context, pattern, &problem, SPK_FIRST_OUTPUT, &tolerance), SPK_OK);
        assert_true(pairs[i][1] == SPK_F32 ? tolerance < 1e-5 : tolerance > 4e-4 && tolerance < 1e-2);
        assert_int_equal(spk_cast_values(context, SPK_F64, d, pairs[i][1], raw, SIDE * N), SPK_OK);
        double most = 0;
        for (int at = 0; at < SIDE * N; at++) {
            assert_true(fabs(d[at] - want[at]) <= tolerance * magnitude[at]);
            most = fmax(most, fabs(d[at] - want[at]));
        }
        assert_true(most > 0); /* the oracle does not round */
        spk_pattern_destroy(&pattern);
        spk_matrix_destroy(&matrix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_go_everywhere), cmocka_unit_test(wrong_calls),
                                       cmocka_unit_test(halves_multiply)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}

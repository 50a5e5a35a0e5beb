/* Generators: values, edge blocks, the same bits for one seed, names, refusals, failing allocations. */
#include "test_generate.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"

static void test_values(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double *wide = malloc(COUNT * sizeof *wide);
    float *narrow = malloc(COUNT * sizeof *narrow);
    assert_true(wide && narrow);
    assert_int_equal(spk_generate_values(SPK_F64, COUNT, 5, wide), SPK_OK);
    assert_int_equal(spk_generate_values(SPK_F32, COUNT, 5, narrow), SPK_OK);
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(narrow[i] == (float)wide[i]);
        sum += wide[i];
        squares += wide[i] * wide[i];
    }
    assert_true(fabs(sum / COUNT) < 5 / sqrt(COUNT));
    assert_true(fabs(squares / COUNT - 1) < 5 * sqrt(2.0 / COUNT));
    free(wide);
    free(narrow);
    assert_int_equal(spk_generate_values(SPK_F32, 0, 5, NULL), SPK_OK);
}

/* Values differ from the numbers that placed the blocks, and outside the logical matrix they are zero. */
static void test_edge_blocks(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 30);
    for (int round = 0; round < 200; round++) {
        spk_generate options = {
            .generator = (spk_generator)(FIRST_PATTERN + (int)spk_rng_below(&rng, LAST_PATTERN)),
            .rows = 1 + (int64_t)spk_rng_below(&rng, 60),
            .cols = 1 + (int64_t)spk_rng_below(&rng, 60),
            .block_rows = 1 + (int64_t)spk_rng_below(&rng, 9),
            .block_cols = 1 + (int64_t)spk_rng_below(&rng, 9),
            .density = spk_rng_uniform(&rng),
            .seed = spk_rng_next(&rng),
            .dtype = spk_rng_below(&rng, 2) ? SPK_F64 : SPK_DTYPE_DEFAULT,
        };
        spk_matrix *matrix = generate(options, NULL);
        CHECK(matrix->dtype == (options.dtype == SPK_F64 ? SPK_F64 : SPK_F32) && matrix->layout == SPK_ROW_MAJOR && !matrix->pattern_only);
        int64_t zeros_inside = 0, at = 0;
        for (int64_t row = 0; row < spk_matrix_grid_rows(matrix); row++)
            for (int64_t p = matrix->row_offsets[row]; p < matrix->row_offsets[row + 1]; p++)
                for (int64_t i = 0; i < options.block_rows; i++)
                    for (int64_t j = 0; j < options.block_cols; j++, at++) {
                        double value = spk_value_get(matrix->values, matrix->dtype, at);
                        bool inside =
                            row * options.block_rows + i < options.rows && matrix->col_indices[p] * options.block_cols + j < options.cols;
                        CHECK(inside || value == 0);
                        zeros_inside += inside && value == 0;
                    }
        CHECK(zeros_inside < 2);
        spk_matrix_release(&matrix);
    }
}

static uint64_t hash_of(const spk_matrix *matrix)
{
    uint64_t hash = spk_hash_bytes(SPK_HASH_START, matrix->row_offsets, (size_t)(spk_matrix_grid_rows(matrix) + 1) * sizeof(int64_t));
    hash = spk_hash_bytes(hash, matrix->col_indices, (size_t)matrix->nnz * sizeof(int64_t));
    return spk_hash_bytes(hash, matrix->values, (size_t)spk_matrix_value_count(matrix) * (matrix->dtype == SPK_F32 ? 4 : 8));
}

/* These numbers change only when a generator does: then every stored seed means another matrix. */
static void test_golden(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        [SPK_GEN_UNIFORM] = UINT64_C(0xc4100d63fcce6636),   [SPK_GEN_BERNOULLI] = UINT64_C(0x37a0112b74a6478c),
        [SPK_GEN_BANDED] = UINT64_C(0xb6ae080f48538141),    [SPK_GEN_WINDOW] = UINT64_C(0xb4ca08dfaf123c7a),
        [SPK_GEN_CAUSAL] = UINT64_C(0x88053a94076a7f14),    [SPK_GEN_DIAGONAL] = UINT64_C(0xdd362407e8aa64a0),
        [SPK_GEN_POWER_LAW] = UINT64_C(0xc387676e6cb817e3), [SPK_GEN_EMPTY_ROWS] = UINT64_C(0x1dff9169f3841605),
    };
    for (int number = FIRST_PATTERN; number <= (int)LAST_PATTERN; number++) {
        spk_generate options = {
            .generator = (spk_generator)number, .rows = 395, .cols = 550, .block_rows = 4, .block_cols = 6, .density = 0.13, .seed = 42};
        spk_matrix *first = generate(options, NULL), *again = generate(options, NULL);
        options.seed = 43;
        spk_matrix *other = generate(options, NULL);
        CHECK(hash_of(first) == hash_of(again));
        CHECK(hash_of(first) != hash_of(other));
        if (hash_of(first) != expected[number])
            fail_msg("%s: hash 0x%016llx", spk_generator_name((spk_generator)number), (unsigned long long)hash_of(first));
        spk_matrix_release(&first);
        spk_matrix_release(&again);
        spk_matrix_release(&other);
    }
}

/* ------------------------------------------------------------------------------------------------ refusals */

static void test_names(void **state)
{
    (void)state;
    for (int number = SPK_GEN_UNIFORM; number <= (int)SPK_GEN_MASK; number++)
        assert_int_equal(spk_generator_from_name(spk_generator_name((spk_generator)number)), number);
    assert_string_equal(spk_generator_name(SPK_GEN_POWER_LAW), "power-law");
    assert_null(spk_generator_name((spk_generator)0));
    assert_null(spk_generator_name((spk_generator)12));
    assert_int_equal(spk_generator_from_name("unifor"), 0);
    assert_int_equal(spk_generator_from_name("Uniform"), 0);
    assert_int_equal(spk_generator_from_name(""), 0);
    assert_int_equal(spk_generator_from_name(NULL), 0);
}

static const spk_generate good = {
    .generator = SPK_GEN_UNIFORM, .rows = 64, .cols = 64, .block_rows = 4, .block_cols = 4, .density = 0.5, .seed = 1};

static void refuse(spk_generate options, spk_status expected, const char *message)
{
    spk_matrix *matrix = (spk_matrix *)&options; /* any address: it must stay */
    int64_t shortfall = 77;
    spk_status status = spk_generate_matrix(&spk_mem_system, &options, &matrix, &shortfall);
    assert_string_equal(spk_error_message(0), message);
    assert_int_equal(status, expected);
    assert_ptr_equal(matrix, &options);
    assert_int_equal(shortfall, 77);
}

#define REFUSE(status, message, ...)  \
    do {                              \
        spk_generate bad = good;      \
        __VA_ARGS__;                  \
        refuse(bad, status, message); \
    } while (0)

static void test_refusals(void **state)
{
    (void)state;
    REFUSE(SPK_ERR_ARGUMENT, "generator = 0: must be in 1 .. 11", bad.generator = (spk_generator)0);
    REFUSE(SPK_ERR_ARGUMENT, "generator = 12: must be in 1 .. 11", bad.generator = (spk_generator)12);
    REFUSE(SPK_ERR_ARGUMENT, "density = nan: must be in 0 .. 1", bad.density = fabs((double)NAN));
    REFUSE(SPK_ERR_ARGUMENT, "density = 1.5: must be in 0 .. 1", bad.density = 1.5);
    REFUSE(SPK_ERR_ARGUMENT, "density = -0.1: must be in 0 .. 1", bad.density = -0.1);
    REFUSE(SPK_ERR_ARGUMENT, "density = inf: must be in 0 .. 1", bad.density = INFINITY);
    REFUSE(SPK_ERR_ARGUMENT, "block_rows = 0: must be in 1 .. 256", bad.block_rows = 0);
    REFUSE(SPK_ERR_ARGUMENT, "block_rows = 257: must be in 1 .. 256", bad.block_rows = 257);
    REFUSE(SPK_ERR_ARGUMENT, "block_cols = -1: must be in 1 .. 256", bad.block_cols = -1);
    REFUSE(SPK_ERR_ARGUMENT, "rows = -1: must be at least 0", bad.rows = -1);
    REFUSE(SPK_ERR_ARGUMENT, "cols = -9223372036854775808: must be at least 0", bad.cols = INT64_MIN);
    REFUSE(SPK_ERR_ARGUMENT, "rows = 9223372036854775807: gives 2305843009213693952 blocks of 4, limit 1073741824", bad.rows = INT64_MAX);
    REFUSE(SPK_ERR_ARGUMENT, "cols = 4294967297: gives 1073741825 blocks of 4, limit 1073741824", bad.cols = (INT64_C(1) << 32) + 1);
    REFUSE(SPK_ERR_UNSUPPORTED, "dtype = 8: matrices are generated as f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8", bad.dtype = SPK_INT32);
    REFUSE(SPK_ERR_UNSUPPORTED, "dtype = 99: matrices are generated as f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8",
           bad.dtype = (spk_dtype)99);

    double out[2];
    assert_int_equal(spk_generate_values(SPK_TF32, 1, 1, out), SPK_ERR_UNSUPPORTED);
    assert_int_equal(spk_generate_values(SPK_F32, -1, 1, out), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_generate_values(SPK_F32, 1, 1, NULL), SPK_ERR_ARGUMENT);
}

/* More than any machine holds is an ordinary error, and is refused before the work of placing blocks begins. */
static void test_too_large_for_memory(void **state)
{
    (void)state;
    for (int number = FIRST_PATTERN; number <= (int)LAST_PATTERN; number++) {
        spk_generate options = {.generator = (spk_generator)number,
                                .rows = INT64_C(1) << 38,
                                .cols = INT64_C(1) << 38,
                                .block_rows = 256,
                                .block_cols = 256,
                                .density = 1};
        spk_matrix *matrix = NULL;
        assert_int_not_equal(spk_generate_matrix(&spk_mem_system, &options, &matrix, NULL), SPK_OK);
        assert_null(matrix);
    }
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (int number = FIRST_PATTERN; number <= (int)LAST_PATTERN; number++) {
        spk_generate options = good;
        options.generator = (spk_generator)number;
        for (int64_t allowed = 0;; allowed++) {
            assert_true(allowed < 20);
            spk_matrix *matrix = NULL;
            int64_t shortfall = 77;
            spk_mem_fail_after(allowed);
            spk_status status = spk_generate_matrix(&spk_mem_system, &options, &matrix, &shortfall);
            spk_mem_fail_after(-1);
            if (status == SPK_OK) {
                assert_true(allowed >= 4);
                spk_matrix_release(&matrix);
                break;
            }
            assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
            assert_null(matrix);
            assert_int_equal(shortfall, 77);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_edge_blocks),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_too_large_for_memory),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

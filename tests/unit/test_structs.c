/* struct_size of every public struct: sizes that cut a field are refused, shorter ones (older versions) are taken, and nothing is written
 * beyond them. And the structs of arguments that the headers make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

static spk_context *context;
static spk_pattern *pattern;
static spk_matrix *matrix;
static spk_plan *plan;
static spk_report *report;
static const int32_t offsets[] = {0, 1, 2}, columns[] = {0, 1};
static float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, dense[4 * 4], result[4 * 4];
static char folder[] = "/tmp/sparsek-structs-XXXXXX", path[64];

static const spk_bsr_indices good_indices = {
    SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = 2, .block_cols = 2, .nnzb = 2, .row_offsets = offsets,
    .col_indices = columns};
static const spk_spmm good_spmm = {SPK_SIZED(spk_spmm), .n = 4};
static const spk_sddmm good_sddmm = {SPK_SIZED(spk_sddmm), .k = 4};
static const spk_tune_options good_tuning = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .only = "reference_spmm",
                                             .budget_s = 0.01};

static int set_up(void **state)
{
    (void)state;
    const spk_generate made = {
        SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = 4, .cols = 4, .block_rows = 2, .block_cols = 2, .density = 1};
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 1}, &context) != SPK_OK ||
           spk_pattern_create(context, &good_indices, &pattern) != SPK_OK || spk_matrix_generate(context, &made, &matrix, NULL) != SPK_OK ||
           spk_plan_create_spmm(context, pattern, &good_spmm, &good_tuning, &plan) != SPK_OK ||
           spk_list_candidates(context, pattern, &good_spmm, NULL, &report) != SPK_OK ||
           spk_matrix_write(context, matrix, path, NULL) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_report_destroy(&report);
    spk_plan_destroy(&plan);
    spk_matrix_destroy(&matrix);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    remove(path);
    return remove(folder);
}

/* ------------------------------------------------------------------------------------------------ what the library reads */

static spk_status give_context_options(void *options)
{
    spk_context *made = NULL;
    spk_status status = spk_context_create(options, &made);
    spk_context_destroy(&made);
    return status;
}

static spk_status give_indices(void *indices)
{
    spk_pattern *made = NULL;
    spk_status status = spk_pattern_create(context, indices, &made);
    spk_pattern_destroy(&made);
    return status;
}

static spk_status give_spmm(void *problem)
{
    double tolerance;
    return spk_default_tolerance(context, pattern, problem, SPK_FIRST_OUTPUT, &tolerance);
}

static spk_status give_sddmm(void *problem)
{
    double tolerance;
    return spk_default_tolerance(context, pattern, problem, SPK_FIRST_OUTPUT, &tolerance);
}

static spk_status give_spmm_args(void *args)
{
    return spk_compute_spmm(context, pattern, &good_spmm, args, &good_tuning);
}

static spk_status give_sddmm_args(void *args)
{
    return spk_compute_sddmm(context, pattern, &good_sddmm, args,
                             &(spk_tune_options){SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE});
}

static spk_status give_tuning(void *options)
{
    spk_report *made = NULL;
    spk_status status = spk_list_candidates(context, pattern, &good_spmm, options, &made);
    spk_report_destroy(&made);
    return status;
}

static spk_status give_race(void *race)
{
    spk_report *made = NULL;
    spk_status status = spk_race_kernels(context, pattern, &good_spmm, &good_tuning, race, &made);
    spk_report_destroy(&made);
    return status;
}

static spk_status give_desc(void *desc)
{
    spk_matrix *made = NULL;
    spk_status status = spk_matrix_create(context, desc, &made);
    spk_matrix_destroy(&made);
    return status;
}

static spk_status give_read(void *options)
{
    spk_matrix *made = NULL;
    spk_status status = spk_matrix_read(context, path, options, &made);
    spk_matrix_destroy(&made);
    return status;
}

static spk_status give_write(void *options)
{
    return spk_matrix_write(context, matrix, path, options);
}

static spk_status give_generate(void *options)
{
    spk_matrix *made = NULL;
    spk_status status = spk_matrix_generate(context, options, &made, NULL);
    spk_matrix_destroy(&made);
    return status;
}

/* Each with a pointer in its first fields where it has any: half of one would be followed. */
static void inputs(void **state)
{
    (void)state;
    const spk_context_options context_options = {SPK_SIZED(spk_context_options), .device = "cpu", .store_path = "", .threads = 1};
    const spk_spmm_args spmm_args = {SPK_SIZED(spk_spmm_args), .values = values, .b = dense, .d = result, .alpha = 1};
    const spk_sddmm_args sddmm_args = {SPK_SIZED(spk_sddmm_args), .x = dense, .y = dense, .d = result, .alpha = 1};
    const spk_tune_options tuning = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .only = "reference_spmm",
                                     .exclude = "spmm_portable"};
    const spk_race_options race = {SPK_SIZED(spk_race_options), .rounds = 1, .choices = "reference_spmm"};
    const spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc),
                                  .format = SPK_DENSE,
                                  .dtype = SPK_F32,
                                  .rows = 2,
                                  .cols = 2,
                                  .block_rows = 1,
                                  .block_cols = 1,
                                  .nnz = 4,
                                  .values = values};
    const spk_read_options reading = {SPK_SIZED(spk_read_options), .tensor = "matrix"};
    const spk_write_options writing = {SPK_SIZED(spk_write_options), .tensor = "matrix", .comment = "c"};
    const spk_generate generate = {
        SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = 4, .cols = 4, .block_rows = 2, .block_cols = 2, .density = 0.5};
    const struct {
        const char *name;
        const void *good;
        size_t bytes;
        spk_status (*give)(void *);
    } all[] = {
        {"spk_context_options", &context_options, sizeof context_options, give_context_options},
        {"spk_bsr_indices", &good_indices, sizeof good_indices, give_indices},
        {"spk_spmm", &good_spmm, sizeof good_spmm, give_spmm},
        {"spk_sddmm", &good_sddmm, sizeof good_sddmm, give_sddmm},
        {"spk_spmm_args", &spmm_args, sizeof spmm_args, give_spmm_args},
        {"spk_sddmm_args", &sddmm_args, sizeof sddmm_args, give_sddmm_args},
        {"spk_tune_options", &tuning, sizeof tuning, give_tuning},
        {"spk_race_options", &race, sizeof race, give_race},
        {"spk_matrix_desc", &desc, sizeof desc, give_desc},
        {"spk_read_options", &reading, sizeof reading, give_read},
        {"spk_write_options", &writing, sizeof writing, give_write},
        {"spk_generate", &generate, sizeof generate, give_generate},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(all[i].bytes % 8, 0);
        for (size_t bytes = 0; bytes <= all[i].bytes; bytes++) {
            char *given = malloc(all[i].bytes); /* so that a sanitizer sees what is read beyond */
            memcpy(given, all[i].good, all[i].bytes);
            memcpy(given, &bytes, sizeof bytes);
            const spk_status status = all[i].give(given);
            const bool told = strstr(spk_last_error(all[i].give == give_context_options ? NULL : context), "struct_size is ") != NULL;
            const bool valid = bytes > 8 && bytes % 8 == 0;
            if (valid ? bytes == all[i].bytes && status != SPK_OK : status != SPK_ERR_ARGUMENT || !told)
                fail_msg("%s, struct_size %zu of %zu: %s, \"%s\"", all[i].name, bytes, all[i].bytes, spk_status_name(status),
                         spk_last_error(context));
            free(given);
        }
    }
}

/* They go with a GPU, whose streams have work: what is wrong with their size is told before. */
static void sizes_of_deferred_indices(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes <= sizeof(spk_deferred_indices); bytes++) {
        spk_deferred_indices *given = malloc(sizeof *given);
        spk_bsr_indices indices = good_indices;
        *given = (spk_deferred_indices){.struct_size = bytes, .longest_row = 1};
        indices.index_memory = SPK_DEVICE;
        indices.deferred = given;
        assert_int_equal(give_indices(&indices), SPK_ERR_ARGUMENT);
        const bool valid = bytes > 8 && bytes % 8 == 0;
        if (strstr(spk_last_error(context), valid ? "has no streams" : "spk_deferred_indices.struct_size is ") == NULL)
            fail_msg("struct_size %zu: \"%s\"", bytes, spk_last_error(context));
        free(given);
    }
}

static void reserved_fields(void **state)
{
    (void)state;
    spk_report *none = NULL;
    spk_matrix *made = NULL;
    spk_tune_options tuning = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .reserved = 3};
    assert_int_equal(give_tuning(&tuning), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "reserved = 3"));
    const spk_race_options race = {SPK_SIZED(spk_race_options), .rounds = 1, .all = 7};
    assert_int_equal(spk_race_kernels(context, pattern, &good_spmm, &good_tuning, &race, &none), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "all = 7"));
    const spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc), .format = SPK_DENSE, .dtype = SPK_F32, .rows = 2, .cols = 2,
                                  .values = values,           .reserved = -1};
    assert_int_equal(spk_matrix_create(context, &desc, &made), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "reserved = -1"));
    assert_null(none);
    assert_null(made);
}

/* ------------------------------------------------------------------------------------------------ what the library writes */

static spk_status get_device(void *info)
{
    return spk_context_get_device(context, info);
}

static spk_status get_library(void *info)
{
    return spk_context_get_library(context, 0, info);
}

static spk_status get_pattern(void *info)
{
    return spk_pattern_get_info(pattern, info);
}

static spk_status get_plan(void *info)
{
    return spk_plan_get_info(plan, info);
}

static spk_status get_kernel(void *info)
{
    return spk_kernel_get_info(0, info);
}

static spk_status get_report(void *info)
{
    return spk_report_get_info(report, info);
}

static spk_status get_candidate(void *info)
{
    return spk_report_get_candidate(report, 0, info);
}

static spk_status get_view(void *desc)
{
    return spk_matrix_view(matrix, desc);
}

static spk_status get_operation(void *info)
{
    return spk_operation_get_info(0, info);
}

static spk_status get_field(void *info)
{
    return spk_operation_get_field(SPK_SPMM, 0, info);
}

static spk_status get_size(void *info)
{
    return spk_operation_get_size(SPK_SPMM, 0, info);
}

static spk_status get_operand(void *info)
{
    return spk_operation_get_operand(SPK_SPMM, 0, info);
}

static spk_status get_scalar(void *info)
{
    return spk_operation_get_scalar(SPK_SPMM, 0, info);
}

static spk_status get_problem(void *info)
{
    return spk_problem_get_info(context, pattern, &good_spmm, info);
}

static spk_status get_array(void *info)
{
    return spk_problem_get_array(context, pattern, &good_spmm, 0, info);
}

static void outputs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
        spk_status (*get)(void *);
    } all[] = {
        {"spk_device_info", sizeof(spk_device_info), get_device},
        {"spk_library_info", sizeof(spk_library_info), get_library},
        {"spk_pattern_info", sizeof(spk_pattern_info), get_pattern},
        {"spk_plan_info", sizeof(spk_plan_info), get_plan},
        {"spk_kernel_info", sizeof(spk_kernel_info), get_kernel},
        {"spk_report_info", sizeof(spk_report_info), get_report},
        {"spk_candidate_info", sizeof(spk_candidate_info), get_candidate},
        {"spk_matrix_desc", sizeof(spk_matrix_desc), get_view},
        {"spk_operation_info", sizeof(spk_operation_info), get_operation},
        {"spk_field_info", sizeof(spk_field_info), get_field},
        {"spk_size_info", sizeof(spk_size_info), get_size},
        {"spk_operand_info", sizeof(spk_operand_info), get_operand},
        {"spk_scalar_info", sizeof(spk_scalar_info), get_scalar},
        {"spk_problem_info", sizeof(spk_problem_info), get_problem},
        {"spk_array_info", sizeof(spk_array_info), get_array},
    };
    enum { MOST = 1024 };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t bytes = 0; bytes <= all[i].bytes + 16; bytes++) {
            unsigned char *room = malloc(MOST);
            memset(room, 0x5a, MOST);
            memcpy(room, &bytes, sizeof bytes);
            const bool valid = bytes > 8 && bytes % 8 == 0;
            const spk_status status = all[i].get(room);
            if (status != (valid ? SPK_OK : SPK_ERR_ARGUMENT))
                fail_msg("%s, struct_size %zu: %s", all[i].name, bytes, spk_status_name(status));
            for (size_t at = valid ? bytes : 8; at < MOST; at++)
                if (room[at] != 0x5a)
                    fail_msg("%s, struct_size %zu: byte %zu was written", all[i].name, bytes, at);
            free(room);
        }
}

/* ------------------------------------------------------------------------------------------------ advice, random numbers */

/* Entries of a caller with a newer, and with an older header: the size of the first one is their distance. */
static void advice_by_its_size(void **state)
{
    (void)state;
    struct {
        spk_block_advice known;
        int64_t later[2];
    } newer[3];
    spk_block_advice known[3] = {{SPK_SIZED(spk_block_advice)}, {0}, {0}};
    int count = 3, newer_count = 3, older_count = 3;
    memset(newer, 0x5a, sizeof newer);
    newer[0].known.struct_size = sizeof newer[0];
    assert_int_equal(spk_matrix_advise(context, matrix, known, &count), SPK_OK);
    assert_int_equal(count, 3); /* 1, 2 and 3 of a 4 x 4 matrix */
    assert_int_equal(spk_matrix_advise(context, matrix, &newer[0].known, &newer_count), SPK_OK);
    struct {
        size_t struct_size;
        int64_t block_rows;
    } older[4] = {{sizeof older[0], 0}, {0, 0}, {0, 0}, {77, 77}};
    assert_int_equal(spk_matrix_advise(context, matrix, (spk_block_advice *)(void *)older, &older_count), SPK_OK);
    assert_true(newer_count == 3 && older_count == 3);
    for (int i = 0; i < count; i++) {
        assert_int_equal(known[i].struct_size, sizeof known[i]);
        assert_int_equal(newer[i].known.struct_size, sizeof newer[i]);
        assert_memory_equal((const char *)&newer[i].known + 8, (const char *)&known[i] + 8, sizeof known[i] - 8);
        assert_true(newer[i].later[0] == 0 && newer[i].later[1] == 0);
        assert_true(older[i].struct_size == sizeof older[i] && older[i].block_rows == known[i].block_rows);
    }
    assert_true(older[3].struct_size == 77 && older[3].block_rows == 77);
    known[0].struct_size = 0;
    assert_int_equal(spk_matrix_advise(context, matrix, known, &count), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "spk_block_advice.struct_size is 0"));
}

static void random_numbers_aligned(void **state)
{
    (void)state;
    static const struct {
        spk_dtype dtype;
        size_t bytes;
    } all[] = {{SPK_F32, 4}, {SPK_F64, 8}, {SPK_F16, 2}, {SPK_BF16, 2}};
    _Alignas(8) char room[80];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t at = 0; at < 8; at++) {
            const spk_status status = spk_fill_random(context, all[i].dtype, 4, 1, room + at);
            assert_int_equal(status, at % all[i].bytes == 0 ? SPK_OK : SPK_ERR_ARGUMENT);
            if (status != SPK_OK)
                assert_non_null(strstr(spk_last_error(context), "is not aligned to its elements"));
        }
}

/* ------------------------------------------------------------------------------------------------ arguments to begin with */

/* Its size, its operation, the one scalar, and zeros. */
static void check_made(const void *made, size_t bytes, spk_operation operation, size_t scalar_at, double scalar)
{
    char want[512] = {0};
    assert_true(bytes <= sizeof want);
    memcpy(want, &bytes, sizeof bytes);
    memcpy(want + sizeof bytes, &operation, sizeof operation);
    memcpy(want + scalar_at, &scalar, sizeof scalar);
    assert_memory_equal(made, want, bytes);
}

static void arguments_to_begin_with(void **state)
{
    (void)state;
    const spk_spmm_args zero = SPK_ZERO;
    spk_spmm_args spmm = spk_spmm_args_make();
    const spk_sddmm_args sddmm = spk_sddmm_args_make();
    const spk_gemm_args gemm = spk_gemm_args_make();
    const spk_attention_args attention = spk_attention_args_make(0.125);
    const spk_attention_backward_args backward = spk_attention_backward_args_make(-0.5);
    check_made(&spmm, sizeof spmm, SPK_SPMM, offsetof(spk_spmm_args, alpha), 1);
    check_made(&sddmm, sizeof sddmm, SPK_SDDMM, offsetof(spk_sddmm_args, alpha), 1);
    check_made(&gemm, sizeof gemm, SPK_GEMM, offsetof(spk_gemm_args, alpha), 1);
    check_made(&attention, sizeof attention, SPK_ATTENTION, offsetof(spk_attention_args, scale), 0.125);
    check_made(&backward, sizeof backward, SPK_ATTENTION_BACKWARD, offsetof(spk_attention_backward_args, scale), -0.5);
    for (size_t i = 0; i < sizeof zero; i++)
        assert_int_equal(((const char *)&zero)[i], 0);
    /* With arrays they are those of a run: of A's blocks on the diagonal, and B of ones. */
    for (int i = 0; i < 4 * 4; i++)
        dense[i] = 1;
    spmm.values = values;
    spmm.b = dense;
    spmm.d = result;
    assert_int_equal(spk_plan_run_spmm(plan, &spmm, NULL), SPK_OK);
    for (int i = 0; i < 4 * 4; i++)
        assert_true(result[i] == (float)(4 * (i / 4) + 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs),
        cmocka_unit_test(sizes_of_deferred_indices),
        cmocka_unit_test(reserved_fields),
        cmocka_unit_test(outputs),
        cmocka_unit_test(advice_by_its_size),
        cmocka_unit_test(random_numbers_aligned),
        cmocka_unit_test(arguments_to_begin_with),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

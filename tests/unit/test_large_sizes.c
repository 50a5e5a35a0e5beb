/* Descriptions whose numbers are as large as their fields take, of every operation: what cannot be addressed is refused with a message,
 * what is not has arrays of so many elements, and no call takes the time to count to such a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "context_case.h"

enum { ROWS = 32, COLS = 16 };

static uint64_t state;

static uint64_t draw(uint64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % limit;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Any memory of a few megabytes: of larger pieces there are none, as nothing here is worth them. */
static void *give_some(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return bytes > 1 << 26 ? NULL : aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void take_back(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static int set_up_small(void **unused)
{
    (void)unused;
    (void)set_up; /* its context has all the memory that there is */
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .allocate = give_some,
                                         .release = take_back};
    return spk_context_create(&options, &context) != SPK_OK;
}

static int64_t large(void)
{
    static const int64_t all[] = {0, 1, 2, 16, 32, (INT64_C(1) << 30) - 1, INT32_MAX, INT64_C(1) << 24, INT64_C(1) << 40};
    return all[draw(sizeof all / sizeof *all)];
}

/* Whether the field counts something, or says how an array lies. */
static bool is_number(const spk_field_info *field)
{
    return field->kind == SPK_FIELD_SIZE || field->kind == SPK_FIELD_LD || field->kind == SPK_FIELD_STRIDE ||
           field->kind == SPK_FIELD_ITEMS || field->kind == SPK_FIELD_HEADS || field->kind == SPK_FIELD_HEAD_STRIDE ||
           field->kind == SPK_FIELD_GROUPS || field->kind == SPK_FIELD_COUNT;
}

typedef struct description {
    size_t struct_size;
    spk_operation operation;
    char rest[1024];
} description;

static uint64_t words(const char *values)
{
    uint64_t count = 1;
    for (const char *at = values; at != NULL && *at != '\0'; at++)
        count += *at == '|';
    return count;
}

/* A problem that may be, on the pattern of the test. */
static int64_t usual(const spk_operation_info *op, const spk_field_info *field)
{
    for (int i = 0; i < op->size_count && field->kind == SPK_FIELD_SIZE; i++) {
        spk_size_info size = {SPK_SIZED(spk_size_info)};
        ok(spk_operation_get_size(op->operation, i, &size));
        if (strcmp(size.name, field->name) == 0)
            return size.source == SPK_SIZE_LIST_ROWS ? ROWS : size.source == SPK_SIZE_LIST_COLS ? COLS : 8;
    }
    return 0;
}

/* In it some numbers are large, and some of what has words is other than by default. */
static void describe(const spk_operation_info *op, description *made, char *text, size_t size)
{
    memset(made, 0, sizeof *made);
    made->struct_size = op->problem_bytes;
    made->operation = op->operation;
    const uint64_t share = 2 + draw(20);
    int used = snprintf(text, size, "%s", op->name);
    for (int i = 0; i < op->field_count; i++) {
        spk_field_info field = {SPK_SIZED(spk_field_info)};
        ok(spk_operation_get_field(op->operation, i, &field));
        if (is_number(&field)) {
            const bool shared = field.kind == SPK_FIELD_STRIDE && draw(3) == 0;
            const int64_t value = shared ? SPK_STRIDE_SHARED : draw(share) == 0 ? large() : usual(op, &field);
            memcpy((char *)made + field.offset, &value, sizeof value);
            if (value != 0)
                used += snprintf(text + used, size - (size_t)used, ", %s %lld", field.name, (long long)value);
        } else if (field.kind == SPK_FIELD_PART || field.kind == SPK_FIELD_CHOICE) {
            const int value = draw(2) == 0 ? 0 : (int)draw(words(field.values));
            memcpy((char *)made + field.offset, &value, sizeof value);
            used += snprintf(text + used, size - (size_t)used, ", %s %d", field.name, value);
        }
    }
}

static void check_array(const spk_pattern *pattern, const description *d, const char *text, int operand)
{
    spk_array_info a = {SPK_SIZED(spk_array_info)};
    if (spk_problem_get_array(context, pattern, d, operand, &a) != SPK_OK || a.elements == 0)
        return;
    const long double lines = a.layout == SPK_ROW_MAJOR ? a.rows : a.cols, length = a.layout == SPK_ROW_MAJOR ? a.cols : a.rows;
    if (a.elements < 0 || (long double)a.elements < length + (lines - 1) * (long double)a.ld ||
        (long double)a.elements * (long double)spk_dtype_bytes(a.dtype) > 0x1p62L)
        fail_msg("%s: operand %d has %lld elements: %lld x %lld", text, operand, (long long)a.elements, (long long)a.rows,
                 (long long)a.cols);
}

static void check_description(spk_pattern *pattern, const spk_operation_info *op)
{
    static const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .effort = SPK_TUNE_ESTIMATE, .tuning = SPK_TUNING_NEVER};
    description d;
    char text[2048];
    describe(op, &d, text, sizeof text);
    spk_problem_info info = {SPK_SIZED(spk_problem_info)};
    spk_plan *plan = NULL;
    const double start = now();
    const spk_status status = spk_problem_get_info(context, pattern, &d, &info);
    if (status != SPK_OK && spk_last_error(context)[0] == '\0')
        fail_msg("%s: %s without a message", text, spk_status_name(status));
    for (int i = 0; i < op->operand_count && status == SPK_OK; i++)
        check_array(pattern, &d, text, i);
    if (spk_plan_create(context, pattern, &d, &estimate, &plan) == SPK_OK && status != SPK_OK)
        fail_msg("%s: a plan of what was refused", text);
    spk_plan_destroy(&plan);
    if (now() - start > 2)
        fail_msg("%s: %.1f s", text, now() - start);
}

static void no_number_is_too_large(void **unused)
{
    (void)unused;
    const int32_t offsets[] = {0, 1, 2}, columns[] = {0, 0};
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = ROWS, .cols = COLS,           .block_rows = 16,
                                     .block_cols = 16,           .nnzb = 2,    .row_offsets = offsets, .col_indices = columns};
    spk_pattern *pattern = NULL;
    ok(spk_pattern_create(context, &indices, &pattern));
    for (int index = 0; index < spk_operation_count(); index++) {
        spk_operation_info op = {SPK_SIZED(spk_operation_info)};
        ok(spk_operation_get_info(index, &op));
        for (int times = 0; times < 3000; times++) {
            state = (uint64_t)(index * 3000 + times);
            const bool has_pattern = op.takes_pattern == SPK_PATTERN_NEEDED || (op.takes_pattern == SPK_PATTERN_OPTIONAL && draw(2) == 0);
            check_description(has_pattern ? pattern : NULL, &op);
        }
    }
    spk_pattern_destroy(&pattern);
}

static void refuse(spk_pattern *pattern, const void *problem, const char *words)
{
    spk_array_info a = {SPK_SIZED(spk_array_info)};
    spk_problem_info info = {SPK_SIZED(spk_problem_info)};
    spk_plan *plan = NULL;
    assert_int_equal(spk_problem_get_info(context, pattern, problem, &info), SPK_ERR_ARGUMENT);
    if (strstr(spk_last_error(context), words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", spk_last_error(context), words);
    assert_int_equal(spk_problem_get_array(context, pattern, problem, 0, &a), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_plan_create(context, pattern, problem, NULL, &plan), SPK_ERR_ARGUMENT);
}

/* Numbers of which none is too large, but their product is. */
static void products_are_refused(void **unused)
{
    (void)unused;
    const int64_t most = INT64_C(1) << 40;
    refuse(NULL,
           &(spk_attention){SPK_SIZED(spk_attention), .queries = 1, .keys = most, .depth = 8, .batch = 1 << 24, .page_keys = 1, .pages = 1,
                            .stride_q = SPK_STRIDE_SHARED},
           "page_keys = 1: 1099511627776 pages for each of batch = 16777216");
    refuse(NULL,
           &(spk_attention){SPK_SIZED(spk_attention), .queries = 1, .keys = INT32_MAX, .depth = 8, .sequences = INT32_MAX, .page_keys = 1,
                            .pages = 1},
           "for each of sequences = 2147483647");
    refuse(NULL,
           &(spk_attention){SPK_SIZED(spk_attention), .queries = 1, .keys = most, .depth_v = 8, .heads = INT32_MAX, .head_stride_k = 1,
                            .head_stride_v = 1},
           "k (keys x depth): 1099511627776 x 0 numbers for each of 2147483647 heads");
    refuse(NULL, &(spk_attention){SPK_SIZED(spk_attention), .queries = 1, .keys = most, .want_lse = 1}, "keys = 1099511627776");
    refuse(NULL, &(spk_gemm){SPK_SIZED(spk_gemm), .n = most, .groups = INT32_MAX, .group_axis = SPK_GROUP_ROWS, .bias = SPK_BIAS_PER_COL},
           "bias (");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_number_is_too_large), cmocka_unit_test(products_are_refused)};
    return cmocka_run_group_tests(tests, set_up_small, tear_down);
}

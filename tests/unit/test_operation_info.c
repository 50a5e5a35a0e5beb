/* The tables of operations: each describes its structs wholly, and what it says of a problem is so. */
#include "operation_case.h"

enum { MOST_BYTES = 512 };

static int words_of(const char *list)
{
    int count = 1;
    for (; *list; list++)
        count += *list == '|';
    return count;
}

static size_t bytes_of(spk_field_kind kind)
{
    switch (kind) {
    case SPK_FIELD_DTYPE:
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_PART:
    case SPK_FIELD_CHOICE:
    case SPK_FIELD_PROMISE:
        return sizeof(int);
    case SPK_FIELD_SIZE:
    case SPK_FIELD_ITEMS:
    case SPK_FIELD_LD:
    case SPK_FIELD_STRIDE:
    case SPK_FIELD_HEADS:
    case SPK_FIELD_COUNT:
    case SPK_FIELD_HEAD_STRIDE:
    case SPK_FIELD_GROUPS:
        return sizeof(int64_t);
    case SPK_FIELD_REAL:
        return sizeof(double);
    case SPK_FIELD_SCALE:
        return sizeof(spk_scale);
    }
    fail_msg("kind %d", (int)kind);
    return 0;
}

/* The bytes that no field takes are those of size, operation and what is reserved. */
static void check_whole(const spk_operation_info *op)
{
    char taken[MOST_BYTES] = {0};
    assert_true(op->problem_bytes <= MOST_BYTES);
    for (int i = 0; i < op->field_count; i++) {
        spk_field_info f = {SPK_SIZED(spk_field_info)};
        ok(spk_operation_get_field(op->operation, i, &f));
        for (size_t b = f.offset; b < f.offset + bytes_of(f.kind); b++) {
            if (taken[b]++)
                fail_msg("%s.%s lies on another field", op->problem_type, f.name);
            assert_true(b < op->problem_bytes);
        }
    }
    for (size_t b = sizeof(size_t) + 2 * sizeof(int); b < op->problem_bytes; b++) {
        const bool fills_up = b % 8 == 4 && taken[b - 1] && !taken[b + 1] && !taken[b + 2] && !taken[b + 3]; /* `reserved`, beside an int */
        if (fills_up)
            b += 3;
        else if (!taken[b])
            fail_msg("%s: byte %zu is of no field of the table", op->problem_type, b);
    }
}

static bool is_promise(const spk_field_info *f, const char *name)
{
    return f->kind == SPK_FIELD_PROMISE && strcmp(f->name, name) == 0;
}

static void check_field(const spk_operation_info *op, const spk_field_info *f)
{
    assert_true(f->operand >= -1 && f->operand < op->operand_count);
    assert_true(f->low <= f->high);
    if (f->kind == SPK_FIELD_PROMISE) { /* yes or no, and nothing that a command line calls so */
        assert_true(f->operand == -1 && f->option == NULL && f->low == 0 && f->high == 1);
        assert_string_equal(f->values, "no|yes");
        assert_true(is_promise(f, "assume_finite") || is_promise(f, "static_values"));
    }
    if (f->values != NULL && f->kind != SPK_FIELD_DTYPE) {
        assert_int_equal(words_of(f->values), (int)f->high + 1);
        if (f->terms != NULL)
            assert_int_equal(words_of(f->terms), words_of(f->values));
    }
    if (f->option == NULL)
        return;
    if (words_of(f->option) > 1)
        assert_int_equal(words_of(f->option), (int)f->high);
    if (f->kind != SPK_FIELD_SIZE)
        assert_int_equal(words_of(f->help), words_of(f->option));
}

/* What an output may be lies as it does. */
static void check_may_be(const spk_operation_info *op, const spk_operand_info *output)
{
    for (int i = 0; i < 64; i++)
        if (output->may_be >> i & 1) {
            spk_operand_info o = {SPK_SIZED(spk_operand_info)};
            ok(spk_operation_get_operand(op->operation, i, &o));
            assert_int_equal(output->role, SPK_ROLE_OUT);
            assert_string_equal(o.extents, output->extents);
        }
}

static void test_tables(void **state)
{
    (void)state;
    assert_true(spk_operation_count() >= 2);
    for (int at = 0; at < spk_operation_count(); at++) {
        spk_operation_info op = {SPK_SIZED(spk_operation_info)};
        ok(spk_operation_get_info(at, &op));
        assert_non_null(op.formula);
        assert_non_null(op.sentence);
        assert_true(op.field_count > 0 && op.size_count > 0 && op.size_count <= SPK_MOST_SIZES && op.operand_count > 0);
        check_whole(&op);
        bool finite = false, fixed = false, packed = false;
        for (int i = 0; i < op.field_count; i++) {
            spk_field_info f = {SPK_SIZED(spk_field_info)};
            ok(spk_operation_get_field(op.operation, i, &f));
            check_field(&op, &f);
            finite = finite || is_promise(&f, "assume_finite");
            fixed = fixed || is_promise(&f, "static_values");
        }
        assert_true(finite);
        for (int i = 0; i < op.operand_count; i++) {
            spk_operand_info o = {SPK_SIZED(spk_operand_info)};
            ok(spk_operation_get_operand(op.operation, i, &o));
            assert_true(o.name != NULL && o.title != NULL && o.extents != NULL);
            assert_true(o.offset + sizeof(void *) <= op.args_bytes);
            assert_int_equal(o.role == SPK_ROLE_IN_SCALED, o.scalar >= 0);
            assert_true(o.scalar < op.scalar_count);
            assert_true(!o.is_values || op.takes_pattern);
            packed = packed || o.may_be_static;
            check_may_be(&op, &o);
        }
        assert_int_equal(fixed, packed);
        for (int i = 0; i < op.scalar_count; i++) {
            spk_scalar_info s = {SPK_SIZED(spk_scalar_info)};
            ok(spk_operation_get_scalar(op.operation, i, &s));
            assert_true(s.operand < op.operand_count && s.offset + sizeof(double) <= op.args_bytes);
        }
    }
}

static void put(const spk_operation_info *op, void *problem, const char *name, int64_t value)
{
    for (int i = 0; i < op->field_count; i++) {
        spk_field_info f = {SPK_SIZED(spk_field_info)};
        ok(spk_operation_get_field(op->operation, i, &f));
        if (strcmp(f.name, name) != 0)
            continue;
        if (bytes_of(f.kind) == sizeof(int))
            memcpy((char *)problem + f.offset, &(int){(int)value}, sizeof(int));
        else
            memcpy((char *)problem + f.offset, &value, sizeof value);
    }
}

static int64_t size_named(const spk_operation_info *op, const spk_problem_info *info, char name)
{
    for (int i = 0; i < op->size_count; i++) {
        spk_size_info s = {SPK_SIZED(spk_size_info)};
        ok(spk_operation_get_size(op->operation, i, &s));
        if (s.name[0] == name && s.name[1] == 0)
            return info->sizes[i];
    }
    fail_msg("%s has no size %c", op->name, name);
    return -1;
}

/* Operands whose extents are "k x n" have those; the struct is made by names alone. */
static void test_problems(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    blocks b = {.rows = 37, .cols = 20, .block_rows = 5, .block_cols = 4};
    draw_blocks(&rng, &b, 0.5);
    for (int at = 0; at < spk_operation_count(); at++) {
        spk_operation_info op = {SPK_SIZED(spk_operation_info)};
        spk_problem_info info = {SPK_SIZED(spk_problem_info)};
        union {
            double aligned;
            char bytes[MOST_BYTES];
        } problem = {.bytes = {0}};
        ok(spk_operation_get_info(at, &op));
        memcpy(problem.bytes, &op.problem_bytes, sizeof op.problem_bytes);
        memcpy(problem.bytes + sizeof(size_t), &op.operation, sizeof op.operation);
        put(&op, &problem, "n", 9);
        put(&op, &problem, "k", 13);
        put(&op, &problem, "m", 11);
        put(&op, &problem, "queries", 11);
        put(&op, &problem, "keys", 9);
        put(&op, &problem, "depth", 13);
        put(&op, &problem, "use_c", 1);
        put(&op, &problem, "batch", 3);
        const spk_pattern *pattern = op.takes_pattern == SPK_PATTERN_NEEDED ? b.pattern : NULL;
        ok(spk_problem_get_info(context, pattern, &problem, &info));
        assert_int_equal(info.operation, op.operation);
        assert_int_equal(info.items, 3);
        assert_int_equal(info.compute, SPK_F32);
        assert_true(info.flops > 0 && info.flops <= info.dense_flops * 2 && info.bytes > 0);
        for (int i = 0; i < op.operand_count; i++) {
            spk_operand_info o = {SPK_SIZED(spk_operand_info)};
            spk_array_info a = {SPK_SIZED(spk_array_info)};
            ok(spk_operation_get_operand(op.operation, i, &o));
            ok(spk_problem_get_array(context, pattern, &problem, i, &a));
            if (a.rows == 0) {
                assert_int_equal(o.role == SPK_ROLE_OUT && strcmp(o.name, "d") == 0, 0);
                continue;
            }
            assert_true(a.elements >= a.rows * a.cols);
            if (o.is_values) {
                assert_int_equal(a.rows * a.cols, b.nnzb * 20);
            } else if (strlen(o.extents) == 5) {
                assert_int_equal(a.rows, size_named(&op, &info, o.extents[0]));
                assert_int_equal(a.cols, size_named(&op, &info, o.extents[4]));
            }
        }
    }
    free_blocks(&b);
}

static void test_refusals(void **state)
{
    (void)state;
    spk_operation_info op = {SPK_SIZED(spk_operation_info)};
    spk_field_info field = {SPK_SIZED(spk_field_info)};
    spk_size_info size = {SPK_SIZED(spk_size_info)};
    spk_operand_info operand = {SPK_SIZED(spk_operand_info)};
    spk_scalar_info scalar = {SPK_SIZED(spk_scalar_info)};
    assert_int_equal(spk_operation_get_info(-1, &op), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_info(spk_operation_count(), &op), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_info(0, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_field((spk_operation)99, 0, &field), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(NULL), "operation = 99"));
    assert_int_equal(spk_operation_get_field(SPK_SPMM, 999, &field), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(NULL), "index = 999: spmm has"));
    assert_int_equal(spk_operation_get_field(SPK_SPMM, 0, NULL), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_size(SPK_SPMM, -1, &size), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_operand(SPK_SDDMM, 6, &operand), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_operation_get_scalar(SPK_SDDMM, 2, &scalar), SPK_ERR_ARGUMENT);
    spk_array_info lies = {SPK_SIZED(spk_array_info)};
    spk_problem_info info = {SPK_SIZED(spk_problem_info)};
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 4};
    assert_int_equal(spk_problem_get_array(context, NULL, &spmm, 0, &lies), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_problem_get_info(context, NULL, &spmm, &info), SPK_ERR_ARGUMENT);
    spk_rng rng;
    spk_rng_seed(&rng, 4);
    blocks b;
    make_blocks(&rng, &b);
    assert_int_equal(spk_problem_get_array(context, b.pattern, &spmm, 9, &lies), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "operand = 9: spmm has 9 operands"));
    assert_int_equal(spk_problem_get_array(context, b.pattern, &spmm, 0, NULL), SPK_ERR_ARGUMENT);
    free_blocks(&b);
}

/* An enumeration beyond its values is refused by the table, in the words of always. */
static void test_enumerations(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 5);
    blocks b;
    make_blocks(&rng, &b);
    double tolerance;
    const spk_spmm wrong = {SPK_SIZED(spk_spmm), .n = 4, .activation = (spk_activation)9};
    assert_int_equal(spk_default_tolerance(context, b.pattern, &wrong, SPK_FIRST_OUTPUT, &tolerance), SPK_ERR_ARGUMENT);
    assert_string_equal(spk_last_error(context), "activation = 9: the values are 0..4");
    free_blocks(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables), cmocka_unit_test(test_problems), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_enumerations)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

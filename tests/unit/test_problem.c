/* Problems: nothing of a caller's description is lost on the way into one, and two descriptions that differ give problems that differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/operation.h"
#include "base/rng.h"
#include "type/type.h"

typedef union description {
    spk_spmm spmm;
    spk_gemm gemm;
    spk_attention attention;
    spk_attention_backward gradients;
    double aligned;
    char bytes[512];
} description;

static spk_pattern *pattern;
static spk_rng rng;
static uint64_t seed;

static int64_t below(int64_t n)
{
    return (int64_t)spk_rng_below(&rng, (uint64_t)n);
}

static int set_up(void **state)
{
    const int64_t offsets[] = {0, 2, 2, 5}, columns[] = {0, 3, 1, 2, 3};
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = 22,
                                     .cols = 15,
                                     .block_rows = 8,
                                     .block_cols = 4,
                                     .nnzb = 5,
                                     .row_offsets = offsets,
                                     .col_indices = columns,
                                     .index_type = SPK_INDEX_I64};
    (void)state;
    seed = getenv("SEED") != NULL ? strtoull(getenv("SEED"), NULL, 0) : (uint64_t)(uintptr_t)&seed >> 4;
    spk_rng_seed(&rng, seed);
    printf("SEED=%llu\n", (unsigned long long)seed);
    return spk_pattern_make(&spk_mem_system, &indices, &pattern) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_pattern_release(&pattern);
    return 0;
}

static void put(description *to, const spk_field_info *field, int64_t value)
{
    const int narrow = (int)value;
    const double real = (double)value / 7;
    char *at = to->bytes + field->offset;
    const spk_scale tile = {value, value > 0 ? 1 + value : value};
    if (field->kind == SPK_FIELD_REAL)
        memcpy(at, &real, sizeof real);
    else if (field->kind == SPK_FIELD_SCALE)
        memcpy(at, &tile, sizeof tile);
    else if (field->kind == SPK_FIELD_SIZE || field->kind == SPK_FIELD_ITEMS || field->kind == SPK_FIELD_LD ||
             field->kind == SPK_FIELD_STRIDE || field->kind == SPK_FIELD_GROUPS || field->kind == SPK_FIELD_HEADS ||
             field->kind == SPK_FIELD_HEAD_STRIDE || field->kind == SPK_FIELD_COUNT)
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &narrow, sizeof narrow);
}

/* Mostly `first`, as operations want one dtype for most; of sums what goes with it. */
static int64_t draw_dtype(const spk_field_info *field, int64_t first)
{
    const spk_type *type = spk_type_of((spk_dtype)first);
    if (field->operand >= 0)
        return below(6) > 0 ? first : 1 + below(SPK_BF16);
    return type->sums == SPK_F32 && below(2) ? SPK_TF32 : type->sums;
}

/* A value that is not the default, where that is not one of two. */
static int64_t draw_value(const spk_field_info *field, int64_t dtype)
{
    switch (field->kind) {
    case SPK_FIELD_SIZE:
        return 1 + below(40);
    case SPK_FIELD_ITEMS:
    case SPK_FIELD_HEADS:
        return 2 + below(5);
    case SPK_FIELD_DTYPE:
        return draw_dtype(field, dtype);
    case SPK_FIELD_TRANS:
        return field->operand >= 0 ? 0 : below(2); /* an array that is transposed becomes one of the other layout */
    case SPK_FIELD_PART:
        return 1 + below((int64_t)field->high);
    case SPK_FIELD_LD:
        return 50 + below(20);
    case SPK_FIELD_STRIDE:
        return field->low < 0 && field->option == NULL && below(3) == 0 ? SPK_STRIDE_SHARED : 40000 + below(1000);
    case SPK_FIELD_COUNT:
        return 1 + below(20);
    case SPK_FIELD_HEAD_STRIDE:
        return 4000 + below(1000);
    case SPK_FIELD_REAL:
        return 1 + below(1000);
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_CHOICE:
    case SPK_FIELD_PROMISE:
        return below((int64_t)field->high + 1);
    case SPK_FIELD_SCALE:
        return !spk_type_is_scaled((spk_dtype)dtype) ? 0 : below(3) == 0 ? SPK_SCALE_ALL : 1 + below(20);
    case SPK_FIELD_GROUPS:
        break;
    }
    return 0;
}

static void begin(const spk_op *op, description *d)
{
    memset(d, 0, sizeof *d);
    memcpy(d->bytes, &op->problem_bytes, sizeof op->problem_bytes);
    memcpy(d->bytes + sizeof op->problem_bytes, &op->id, sizeof op->id);
}

/* An optional one, too. */
static spk_pattern *pattern_of(const spk_op *op)
{
    return op->takes_pattern != SPK_PATTERN_NONE ? pattern : NULL;
}

/* What the table alone does not draw: sizes are those of the pattern, lists of blocks as many as it has; one item alone has no strides, and
 * sequences have lengths anyhow. */
#define DRAW_LISTS(a, alone)           \
    a->queries = pattern->rows;        \
    a->keys = pattern->cols;           \
    a->mask_heads = 1;                 \
    a->mask_items = 0;                 \
    if (!(alone))                      \
        a->sequences = 0;              \
    else {                             \
        a->batch = 1;                  \
        a->key_lengths = 0;            \
        a->stride_q = a->stride_k = 0; \
        a->stride_v = a->stride_o = 0; \
        a->stride_lse = 0;             \
    }

static void draw_lists(spk_attention *a)
{
    DRAW_LISTS(a, below(2));
    if (below(2) == 0)
        a->page_keys = a->pages = 0;
    else
        a->stride_k = a->stride_v = a->batch > 1 ? SPK_STRIDE_SHARED : 0; /* all items share the pages */
}

static void draw_lists_of_gradients(spk_attention_backward *a)
{
    const bool alone = below(2) == 1;
    DRAW_LISTS(a, alone);
    if (alone)
        a->stride_grad_o = a->stride_grad_lse = a->stride_grad_q = a->stride_grad_k = a->stride_grad_v = 0;
}

static spk_dtype draw_factors(void)
{
    spk_dtype all[16];
    int count = 0;
    for (const spk_type *type = NULL; count < 16 && (type = spk_type_next(type, SPK_USES_OF_VALUES)) != NULL; count++)
        all[count] = type->dtype;
    return all[below(count)];
}

/* A description in which every field counts, by the operation's table: dtypes are drawn until they agree. */
static description draw_any(const spk_op *op)
{
    description d;
    for (int turn = 0; turn < 10000; turn++) {
        spk_problem problem;
        const int64_t dtype = draw_factors();
        begin(op, &d);
        for (int i = 0; i < op->field_count; i++)
            put(&d, &op->fields[i], draw_value(&op->fields[i], dtype));
        if (op->id == SPK_ATTENTION)
            draw_lists(&d.attention);
        if (op->id == SPK_ATTENTION_BACKWARD)
            draw_lists_of_gradients(&d.gradients);
        if (spk_problem_read(op, pattern_of(op), &d, NULL, &problem) == SPK_OK)
            return d;
    }
    fail_msg("%s: no description is one: %s (SEED=%llu)", op->name, spk_error_last(), (unsigned long long)seed);
    return d;
}

static void draw_dtypes(spk_dtype *a, spk_dtype *b, spk_dtype *d, spk_dtype *compute)
{
    *a = *b = draw_factors();
    const spk_type *type = spk_type_of(*a);
    do
        *d = type->results[below(SPK_MOST_RESULTS)];
    while (*d == SPK_DTYPE_DEFAULT);
    *compute = *a == SPK_F32 && below(2) ? SPK_TF32 : type->sums;
}

/* With groups, which the table alone does not draw. */
static spk_gemm draw_gemm(void)
{
    spk_gemm g = {SPK_SIZED(spk_gemm), .m = 1 + below(40), .n = 1 + below(40), .k = 1 + below(40)};
    draw_dtypes(&g.dtype_a, &g.dtype_b, &g.dtype_d, &g.compute);
    g.layout_a = (spk_layout)below(2);
    g.layout_b = (spk_layout)below(2);
    g.layout_d = (spk_layout)below(2);
    g.lda = 50 + below(20);
    g.ldb = 50 + below(20);
    g.ldc = 50 + below(20);
    g.ldd = 50 + below(20);
    g.ldr = 50 + below(20);
    g.ldp = 50 + below(20);
    g.use_c = g.keep_preact = 1;
    g.bias = (spk_bias)(1 + below(2));
    g.activation = (spk_activation)below(5);
    g.residual = (spk_residual)(1 + below(2));
    g.assume_finite = (int)below(2);
    g.batch = 2 + below(5);
    g.stride_a = below(3) == 0 ? SPK_STRIDE_SHARED : 4000 + below(1000);
    g.stride_b = below(3) == 0 ? SPK_STRIDE_SHARED : 4000 + below(1000);
    g.stride_c = below(3) == 0 ? SPK_STRIDE_SHARED : 4000 + below(1000);
    g.stride_d = 4000 + below(1000);
    g.stride_r = below(3) == 0 ? SPK_STRIDE_SHARED : 4000 + below(1000);
    g.stride_p = 4000 + below(1000);
    g.group_axis = (spk_group_axis)below(4);
    if (spk_type_is_scaled(g.dtype_a)) { /* along an axis that groups cut a factor is of one, or of all */
        g.scale_a = (spk_scale){below(2) ? 1 : SPK_SCALE_ALL, below(2) ? 1 : SPK_SCALE_ALL};
        g.scale_b = (spk_scale){below(2) ? 1 : SPK_SCALE_ALL, below(2) ? 1 : SPK_SCALE_ALL};
    }
    if (g.group_axis == SPK_GROUP_NONE)
        return g;
    g.batch = 1;
    g.groups = 2 + below(5);
    if (g.group_axis != SPK_GROUP_DEPTH)
        g.stride_c = g.stride_d = g.stride_r = g.stride_p = 0;
    if (g.group_axis != SPK_GROUP_COLS)
        g.stride_a = 0;
    if (g.group_axis != SPK_GROUP_ROWS)
        g.stride_b = 0;
    return g;
}

static description draw(const spk_op *op)
{
    description d;
    if (op->id != SPK_GEMM)
        return draw_any(op);
    begin(op, &d);
    d.gemm = draw_gemm();
    return d;
}

static void read_into(const spk_op *op, const description *d, spk_problem *problem)
{
    if (spk_problem_read(op, pattern_of(op), d, NULL, problem) != SPK_OK)
        fail_msg("%s: %s (SEED=%llu)", op->name, spk_error_last(), (unsigned long long)seed);
}

/* Fewer where each takes long. */
static int turns(int all)
{
    return getenv("SPARSEK_TEST_QUICK") != NULL ? all / 10 : all;
}

static void nothing_is_lost(void **state)
{
    (void)state;
    for (int i = 0; spk_op_at(i) != NULL; i++)
        for (int turn = 0; turn < turns(2000); turn++) {
            const spk_op *op = spk_op_at(i);
            const description given = draw(op);
            description written = {.bytes = {0}};
            spk_problem problem, again;
            read_into(op, &given, &problem);
            for (int output = 0; output < op->operand_count; output++)
                if (op->operands[output].role == SPK_ROLE_OUT && problem.operand[output].dtype != SPK_DTYPE_DEFAULT)
                    assert_true(spk_problem_tolerance(&problem, output) > 0);
            op->write(&problem, &written);
            for (size_t byte = 0; byte < op->problem_bytes; byte++)
                if (((const char *)&given)[byte] != ((const char *)&written)[byte])
                    fail_msg("%s: byte %zu is lost (SEED=%llu)", op->name, byte, (unsigned long long)seed);
            read_into(op, &written, &again);
            assert_true(spk_problem_equal(&problem, &again));
        }
}

/* One item alone has no strides, and sequences have lengths anyhow. */
static bool takes_part(const spk_op *op, const description *d, size_t at)
{
    if (op->id == SPK_ATTENTION_BACKWARD && d->gradients.batch == 1)
        return (at < offsetof(spk_attention_backward, stride_q) || at >= offsetof(spk_attention_backward, ld_grad_o)) &&
               (at < offsetof(spk_attention_backward, stride_grad_o) || at >= offsetof(spk_attention_backward, sequences)) &&
               at != offsetof(spk_attention_backward, key_lengths);
    if (op->id != SPK_ATTENTION || d->attention.batch > 1)
        return true;
    return (at < offsetof(spk_attention, stride_q) || at >= offsetof(spk_attention, sequences)) &&
           at != offsetof(spk_attention, key_lengths);
}

/* One draw's bytes from `at` on, in another: a field changed, if both are the same kind of thing. */
static void what_differs_differs(void **state)
{
    int64_t changed = 0;
    (void)state;
    for (int i = 0; spk_op_at(i) != NULL; i++)
        for (int turn = 0; turn < turns(20000); turn++) {
            const spk_op *op = spk_op_at(i);
            const description one = draw(op), other = draw(op);
            description mixed = one;
            const size_t words = op->problem_bytes / 4, at = 4 * (2 + (size_t)below((int64_t)words - 2)); /* behind struct_size */
            memcpy((char *)&mixed + at, (const char *)&other + at, 4);
            spk_problem a, b;
            read_into(op, &one, &a);
            if (!takes_part(op, &mixed, at))
                continue;
            if (memcmp(&mixed, &one, op->problem_bytes) == 0 || spk_problem_read(op, pattern_of(op), &mixed, NULL, &b) != SPK_OK)
                continue;
            changed++;
            if (spk_problem_equal(&a, &b))
                fail_msg("%s: a change at byte %zu is not seen (SEED=%llu)", op->name, at, (unsigned long long)seed);
        }
    assert_true(changed > turns(5000));
}

/* The problem with this promise is another one than without it, and nothing but yes and no is a promise. */
static void check_promise(const spk_op *op, const spk_field_info *field)
{
    description without = draw(op), with = without;
    spk_problem plain, promised;
    put(&without, field, 0);
    put(&with, field, 1);
    read_into(op, &without, &plain);
    read_into(op, &with, &promised);
    assert_false(spk_problem_equal(&plain, &promised));
    if (strcmp(field->name, "assume_finite") == 0)
        assert_true(promised.assume_finite && !plain.assume_finite && promised.static_values == plain.static_values);
    else
        assert_true(promised.static_values && !plain.static_values && promised.assume_finite == plain.assume_finite);
    for (int value = -1; value <= 2; value += 3) {
        char message[64];
        snprintf(message, sizeof message, "%s = %d: the values are 0..1", field->name, value);
        put(&with, field, value);
        assert_int_equal(spk_problem_read(op, pattern_of(op), &with, NULL, &promised), SPK_ERR_ARGUMENT);
        assert_string_equal(spk_error_last(), message);
    }
}

static void promises_count(void **state)
{
    (void)state;
    const int owned = SPK_ATTENTION_BACKWARD; /* the last of the library's own operations: others need not have one */
    int finite = 0, promises = 0, operations = 0;
    for (; spk_op_at(operations) != NULL; operations++)
        for (int i = 0; i < spk_op_at(operations)->field_count; i++) {
            const spk_field_info *field = &spk_op_at(operations)->fields[i];
            if (field->kind != SPK_FIELD_PROMISE)
                continue;
            check_promise(spk_op_at(operations), field);
            finite += strcmp(field->name, "assume_finite") == 0;
            promises++;
        }
    assert_true(operations >= owned && finite >= owned);
    assert_int_equal(promises, finite + 1); /* and the values of SpMM */
}

/* How operands lie when candidates are timed is no member of the description, but a problem of its own all the same. */
static void the_cache_counts(void **state)
{
    (void)state;
    const description given = draw(&spk_op_spmm);
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM};
    spk_problem cold, warm;
    read_into(&spk_op_spmm, &given, &cold);
    assert_int_equal(spk_problem_read(&spk_op_spmm, pattern, &given, &options, &warm), SPK_OK);
    assert_false(spk_problem_equal(&cold, &warm));
}

/* What takes no part leaves no trace, so that it makes no other plan and no other class. */
static void what_takes_no_part_does_not_count(void **state)
{
    (void)state;
    for (int turn = 0; turn < 500; turn++) {
        description one = draw(&spk_op_spmm), other = draw(&spk_op_spmm);
        spk_problem a, b;
        one.spmm.use_c = one.spmm.keep_preact = 0;
        one.spmm.residual = SPK_RESIDUAL_NONE;
        description two = one;
        two.spmm.ldc = other.spmm.ldc;
        two.spmm.ldr = other.spmm.ldr;
        two.spmm.ldp = other.spmm.ldp;
        two.spmm.stride_c = other.spmm.stride_c;
        two.spmm.stride_r = other.spmm.stride_r;
        two.spmm.stride_p = other.spmm.stride_p;
        read_into(&spk_op_spmm, &one, &a);
        read_into(&spk_op_spmm, &two, &b);
        assert_true(spk_problem_equal(&a, &b));
        assert_true(spk_operand_is_empty(&a.c) && spk_operand_is_empty(&a.residual) && spk_operand_is_empty(&a.preact));
    }
}

/* Every operation's table says what the library asks of it. */
static void tables_are_whole(void **state)
{
    (void)state;
    for (int i = 0; spk_op_at(i) != NULL; i++) {
        const spk_op *op = spk_op_at(i);
        int outputs = 0;
        assert_true(spk_op_get(op->id) == op);
        assert_true(op->operand_count <= SPK_MAX_OPERANDS && op->scalar_count <= SPK_MAX_SCALARS);
        assert_true(op->read != NULL && op->write != NULL && op->fit != NULL && op->flops != NULL && op->dense_flops != NULL &&
                    op->tolerance != NULL);
        assert_true(op->free_size != NULL && op->oracle != NULL);
        for (int o = 0; o < op->operand_count; o++) {
            const spk_operand_row *row = &op->operands[o];
            assert_non_null(row->name);
            assert_non_null(row->title);
            assert_true(row->place >= sizeof(size_t) && row->place + sizeof(void *) <= op->args_bytes);
            outputs += row->role == SPK_ROLE_OUT;
            for (int other = 0; other < o; other++)
                assert_true(row->place != op->operands[other].place);
        }
        assert_true(outputs > 0);
        for (const spk_key_row *row = op->key; row->name != NULL; row++)
            assert_true((row->exact != NULL) != (row->near != NULL));
    }
    assert_null(spk_op_get((spk_operation)99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),  cmocka_unit_test(what_differs_differs), cmocka_unit_test(promises_count),
        cmocka_unit_test(the_cache_counts), cmocka_unit_test(tables_are_whole),     cmocka_unit_test(what_takes_no_part_does_not_count),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

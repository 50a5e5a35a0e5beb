/* The tuning key: what separates classes, what does not, and the distance between them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/choose/tune.h"
#include "op/product.h"

static const char *device_text = "cpu:Test_9000:threads=2";

static spk_status key_text(spk_device *device, char *buffer, size_t size)
{
    (void)device;
    snprintf(buffer, size, "%s", device_text);
    return SPK_OK;
}

static const spk_backend backend = {.id = SPK_BACKEND_CPU, .kind = "cpu", .key_text = key_text};

typedef struct sample {
    spk_pattern pattern;
    spk_problem problem;
    spk_device device;
} sample;

static void make_sample(sample *s)
{
    memset(s, 0, sizeof *s);
    s->pattern = (spk_pattern){.rows = 2048,
                               .cols = 2048,
                               .block_rows = 64,
                               .block_cols = 64,
                               .nnzb = 102,
                               .density = 0.1,
                               .features = {.row_spread = 0.1, .row_overlap = 0.1}};
    s->problem = (spk_problem){.op = &spk_op_spmm,
                               .pattern = &s->pattern,
                               .m = 2048,
                               .n = 512,
                               .k = 2048,
                               .a.dtype = SPK_F32,
                               .b.dtype = SPK_F32,
                               .d.dtype = SPK_F32,
                               .compute = SPK_F32,
                               .b.ld = 512,
                               .d.ld = 512,
                               .batch = 1};
    s->device.backend = &backend;
}

static void key_of(sample *s, char key[SPK_MAX_KEY_TEXT])
{
    assert_int_equal(spk_key_make(&s->problem, &s->device, key, SPK_MAX_KEY_TEXT), SPK_OK);
    assert_null(strchr(key, ' '));
    assert_non_null(strchr(key, '|'));
}

/* Whether one changed statement changes the exact part, the part behind the bar, or nothing. */
enum { SAME, NEARBY, OTHER };
static int change(sample *changed)
{
    sample base;
    make_sample(&base);
    changed->problem.pattern = &changed->pattern;
    char a[SPK_MAX_KEY_TEXT], b[SPK_MAX_KEY_TEXT];
    key_of(&base, a);
    key_of(changed, b);
    double distance = spk_key_distance(a, b);
    assert_true(distance == spk_key_distance(b, a));
    if (strcmp(a, b) == 0) {
        assert_true(distance == 0);
        return SAME;
    }
    assert_true(distance > 0);
    return isinf(distance) ? OTHER : NEARBY;
}

#define CHANGE(statement, expected)             \
    do {                                        \
        sample s;                               \
        make_sample(&s);                        \
        statement;                              \
        assert_int_equal(change(&s), expected); \
    } while (0)

static void test_what_separates(void **state)
{
    (void)state;
    CHANGE((void)0, SAME);
    CHANGE(s.problem.op = &spk_op_sddmm, OTHER);
    CHANGE(s.problem.a.dtype = SPK_F64, OTHER);
    CHANGE(s.problem.b.dtype = SPK_F64, OTHER);
    CHANGE(s.problem.d.dtype = SPK_F64, OTHER);
    CHANGE(s.problem.compute = SPK_TF32, OTHER);
    CHANGE(s.problem.trans_a = SPK_TRANS, OTHER);
    CHANGE(s.problem.block_layout = SPK_COL_MAJOR, OTHER);
    CHANGE(s.problem.b.layout = SPK_COL_MAJOR, OTHER);
    CHANGE(s.problem.d.layout = SPK_COL_MAJOR, OTHER);
    CHANGE(s.problem.epilogue.activation = SPK_ACT_GELU_ERF, OTHER);
    CHANGE(s.problem.epilogue.bias = SPK_BIAS_PER_COL, OTHER);
    CHANGE(s.problem.epilogue.use_c = true, OTHER);
    CHANGE(s.problem.epilogue.residual = SPK_RESIDUAL_ADD, OTHER);
    CHANGE(s.problem.epilogue.residual = SPK_RESIDUAL_MULTIPLY, OTHER);
    CHANGE(s.problem.epilogue.keep_preact = true, OTHER);
    CHANGE(s.problem.batch = 2, OTHER);
    CHANGE(s.problem.a.ld = 7, SAME); /* SpMM has no X */
    CHANGE(s.problem.assume_finite = true, OTHER);
    CHANGE(s.problem.static_values = true, OTHER);
    CHANGE(s.problem.cache = SPK_WARM, OTHER);
    CHANGE(s.problem.m = 2049, NEARBY);
    CHANGE(s.problem.k = 2049, NEARBY);
    CHANGE(s.pattern.block_rows = 63, NEARBY);
    CHANGE(s.pattern.block_cols = 63, NEARBY);
}

/* Whether a statement on two equal problems changes the key of the second. */
#define CHANGE_FROM(base, statement, expected)                                               \
    do {                                                                                     \
        sample a, s;                                                                         \
        char key_a[SPK_MAX_KEY_TEXT], key_s[SPK_MAX_KEY_TEXT];                               \
        make_sample(&a);                                                                     \
        make_sample(&s);                                                                     \
        base(&a.problem);                                                                    \
        base(&s.problem);                                                                    \
        s.problem.pattern = &s.pattern;                                                      \
        statement;                                                                           \
        key_of(&a, key_a);                                                                   \
        key_of(&s, key_s);                                                                   \
        const double distance = spk_key_distance(key_a, key_s);                              \
        assert_int_equal(distance == 0 ? SAME : isinf(distance) ? OTHER : NEARBY, expected); \
        assert_int_equal(strcmp(key_a, key_s) == 0, expected == SAME);                       \
    } while (0)

static void as_sddmm(spk_problem *p)
{
    p->op = &spk_op_sddmm;
    p->a.ld = 512;
    p->d.ld = 64;
    p->k = 512;
    p->n = 2048;
}

static void as_batch(spk_problem *p)
{
    p->batch = 100;
    p->b.stride = p->d.stride = 1 << 20;
}

static void as_batch_of_values(spk_problem *p)
{
    as_batch(p);
    p->a.stride = 1 << 20;
}

static void test_other_operations(void **state)
{
    (void)state;
    CHANGE_FROM(as_sddmm, (void)0, SAME);
    CHANGE_FROM(as_sddmm, s.problem.a.layout = SPK_COL_MAJOR, OTHER);
    CHANGE_FROM(as_sddmm, s.problem.a.ld = 516, OTHER);
    CHANGE_FROM(as_sddmm, s.problem.k = 500, SAME); /* the free size has classes */
    CHANGE_FROM(as_sddmm, s.problem.k = 700, NEARBY);
    CHANGE_FROM(as_sddmm, s.problem.n = 2049, NEARBY);
    CHANGE_FROM(as_batch, (void)0, SAME);
    CHANGE_FROM(as_batch, s.problem.batch = 101, SAME);
    CHANGE_FROM(as_batch, s.problem.batch = 200, NEARBY);
    CHANGE_FROM(as_batch, s.problem.batch = 1, OTHER);
    CHANGE_FROM(as_batch, s.problem.a.stride = 1 << 20, OTHER);
    CHANGE_FROM(as_batch, s.problem.b.stride = 0, OTHER);
    CHANGE_FROM(as_batch, s.problem.b.stride = (1 << 20) + 4, OTHER);
    CHANGE_FROM(as_batch, s.problem.d.stride = (1 << 20) + 4, OTHER);
    CHANGE_FROM(as_batch_of_values, s.problem.a.stride = (1 << 20) + 4, OTHER);
    CHANGE_FROM(as_batch_of_values, s.problem.a.stride = 1 << 21, SAME);
}

static void test_alignment(void **state)
{
    (void)state;
    CHANGE(s.problem.b.ld = 1024, SAME); /* the leading dimension itself does not count */
    CHANGE(s.problem.b.ld = 528, SAME);
    CHANGE(s.problem.b.ld = 520, OTHER);
    CHANGE(s.problem.b.ld = 513, OTHER);
    CHANGE(s.problem.d.ld = 516, OTHER);
    sample a, b;
    make_sample(&a);
    make_sample(&b);
    a.problem.epilogue.use_c = b.problem.epilogue.use_c = true;
    a.problem.c.ld = 512;
    b.problem.c.ld = 513;
    char key_a[SPK_MAX_KEY_TEXT], key_b[SPK_MAX_KEY_TEXT];
    key_of(&a, key_a);
    key_of(&b, key_b);
    assert_true(isinf(spk_key_distance(key_a, key_b)));
}

static void test_buckets(void **state)
{
    (void)state;
    CHANGE(s.problem.n = 500, SAME);
    CHANGE(s.problem.n = 540, SAME);
    CHANGE(s.problem.n = 600, NEARBY);
    CHANGE(s.pattern.nnzb = 100, SAME);
    CHANGE(s.pattern.nnzb = 140, NEARBY);
    CHANGE(s.pattern.features.row_spread = 0.2, SAME);
    CHANGE(s.pattern.features.row_spread = 0.3, NEARBY);
    CHANGE(s.pattern.features.row_spread = 1e9, NEARBY);
    CHANGE(s.pattern.features.col_spread = 3, SAME); /* op N looks at the rows */
    CHANGE(s.pattern.features.row_overlap = 0.3, SAME);
    CHANGE(s.pattern.features.row_overlap = 0.95, NEARBY);

    /* N: every value up to 8 has its own class; then four an octave, never fewer than the value moves by a fifth. */
    char last[SPK_MAX_KEY_TEXT] = "";
    int classes = 0;
    for (int64_t n = 0; n <= 1024; n++) {
        sample s;
        make_sample(&s);
        s.problem.n = n;
        char key[SPK_MAX_KEY_TEXT];
        key_of(&s, key);
        classes += strcmp(key, last) != 0;
        memcpy(last, key, sizeof key);
    }
    assert_int_equal(classes, 9 + 4 * 7);
    last[0] = '\0';
    classes = 0;
    for (int64_t nnzb = 0; nnzb <= 4096; nnzb++) {
        sample s;
        make_sample(&s);
        s.pattern.nnzb = nnzb;
        char key[SPK_MAX_KEY_TEXT];
        key_of(&s, key);
        classes += strcmp(key, last) != 0;
        memcpy(last, key, sizeof key);
    }
    assert_int_equal(classes, 2 + 2 * 12 - 1); /* 0; 1; every half octave but 2^(1/2), which holds no integer */
}

/* A layer of 64 experts with 16 to 256 tokens each, routed anew a thousand times: with indices on the device M is in buckets. */
static void test_fresh_topologies(void **state)
{
    (void)state;
    enum { MOST = 64 };
    static char keys[2][1000][SPK_MAX_KEY_TEXT];
    int classes[2] = {0, 0};
    uint64_t random = 1;
    for (int step = 0; step < 1000; step++) {
        int64_t rows = 0;
        for (int expert = 0; expert < 64; expert++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            rows += (16 + (int64_t)(random >> 33) % 241 + 127) / 128;
        }
        for (int direct = 0; direct < 2; direct++) {
            sample s;
            make_sample(&s);
            s.pattern.block_rows = s.pattern.block_cols = 128;
            s.pattern.nnzb = rows * 32;
            s.pattern.rows = s.problem.m = rows * 128;
            s.pattern.cols = s.problem.k = 64 * 4096;
            s.pattern.features.row_overlap = 1;
            s.pattern.device_only = direct;
            char *key = keys[direct][classes[direct]];
            key_of(&s, key);
            bool known = false;
            for (int i = 0; i < classes[direct]; i++)
                known |= strcmp(keys[direct][i], key) == 0;
            classes[direct] += !known;
        }
    }
    assert_true(classes[1] <= 4);
    assert_true(classes[0] > classes[1] && classes[0] < MOST); /* M counts exactly: the nearest class answers */
    assert_true(isinf(spk_key_distance(keys[0][0], keys[1][0])));
    assert_true(spk_key_distance(keys[0][0], keys[0][classes[0] - 1]) < 2);
}

static void test_transposed_looks_at_columns(void **state)
{
    (void)state;
    sample a, b;
    make_sample(&a);
    make_sample(&b);
    a.problem.trans_a = b.problem.trans_a = SPK_TRANS;
    b.pattern.features.col_spread = 3;
    b.problem.pattern = &b.pattern;
    a.problem.pattern = &a.pattern;
    char key_a[SPK_MAX_KEY_TEXT], key_b[SPK_MAX_KEY_TEXT];
    key_of(&a, key_a);
    key_of(&b, key_b);
    assert_string_not_equal(key_a, key_b);
}

static void test_distance_orders(void **state)
{
    (void)state;
    sample s;
    char base[SPK_MAX_KEY_TEXT], near_n[SPK_MAX_KEY_TEXT], far_n[SPK_MAX_KEY_TEXT], block[SPK_MAX_KEY_TEXT];
    make_sample(&s);
    key_of(&s, base);
    s.problem.n = 256;
    key_of(&s, near_n);
    s.problem.n = 16;
    key_of(&s, far_n);
    make_sample(&s);
    s.pattern.block_rows = 32;
    key_of(&s, block);
    assert_true(spk_key_distance(base, near_n) < spk_key_distance(base, far_n));
    assert_true(spk_key_distance(base, near_n) < spk_key_distance(base, block));
    s.problem.n = 0;
    s.pattern.nnzb = 0;
    key_of(&s, far_n);
    assert_true(isfinite(spk_key_distance(base, far_n)));
}

static void test_distance_of_bad_text(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "|",
                                      "x|",
                                      "v=1;op=spmm|",
                                      "v=1;op=spmm|m=1",
                                      "v=1;op=spmm|m=1;k=1;br=1;bc=1;nz=1;n=1;rs=0;ov=",
                                      "v=1;op=spmm|m=1;k=1;br=1;bc=1;nz=1;n=1;rs=0;ov=0;z=1",
                                      "v=1;op=spmm|m=-1;k=1;br=1;bc=1;nz=1;n=1;rs=0;ov=0",
                                      "v=1;op=spmm|m=1;k=1;br=1;bc=1;nz=1;n=one;rs=0;ov=0"};
    const char *good = "v=1;op=spmm|m=1;k=1;br=1;bc=1;nz=1;n=1;rs=0;ov=0";
    assert_true(spk_key_distance(good, good) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_true(isinf(spk_key_distance(good, bad[i])));
        assert_true(isinf(spk_key_distance(bad[i], good)));
    }
}

/* Whichever number a problem lacks, its class is a key, which a store keeps, and is near to none that has the number. */
static void test_any_number_may_be_missing(void **state)
{
    (void)state;
    for (int i = 0; spk_op_at(i) != NULL; i++) {
        const spk_op *op = spk_op_at(i);
        for (const spk_key_row *left_out = op->key; left_out->name != NULL; left_out++) {
            char whole[SPK_MAX_KEY_TEXT], part[SPK_MAX_KEY_TEXT];
            if (left_out->near == NULL)
                continue;
            snprintf(whole, sizeof whole, "v=1;op=%s|", op->name);
            snprintf(part, sizeof part, "%s", whole);
            for (const spk_key_row *row = op->key; row->name != NULL; row++) {
                const size_t end = strlen(whole), part_end = strlen(part);
                if (row->near == NULL)
                    continue;
                snprintf(whole + end, sizeof whole - end, "%s=1;", row->name);
                if (row != left_out)
                    snprintf(part + part_end, sizeof part - part_end, "%s=1;", row->name);
            }
            if (spk_key_distance(part, part) != 0)
                fail_msg("%s: a key without %s is none: %s", op->name, left_out->name, part);
            assert_true(spk_key_size_distance(part, part) == 0);
            assert_true(isinf(spk_key_distance(part, whole)) && isinf(spk_key_distance(whole, part)));
            assert_true(isinf(spk_key_size_distance(part, whole)));
        }
    }
}

/* Class of packed attention with so many sequences and heads, keys that a query sees. */
static void packed_key(int sequences, int heads, int seen, char key[SPK_MAX_KEY_TEXT])
{
    size_t at = (size_t)snprintf(key, SPK_MAX_KEY_TEXT, "v=1;op=attention|");
    for (const spk_key_row *row = spk_op_attention.key; row->name != NULL; row++) {
        const int value = strcmp(row->name, "seqs") == 0   ? sequences
                          : strcmp(row->name, "h") == 0    ? heads
                          : strcmp(row->name, "seen") == 0 ? seen
                                                           : 64;
        if (row->near != NULL)
            at += (size_t)snprintf(key + at, SPK_MAX_KEY_TEXT - at, "%s=%d;", row->name, value);
    }
}

/* Each batch of a training has another number of documents: nobody waits for it to be measured. */
static void test_sequences_are_sizes(void **state)
{
    (void)state;
    char five[SPK_MAX_KEY_TEXT], twelve[SPK_MAX_KEY_TEXT], heads[SPK_MAX_KEY_TEXT], few[SPK_MAX_KEY_TEXT];
    packed_key(5, 8, 1024, five);
    packed_key(12, 8, 512, twelve);
    packed_key(5, 16, 1024, heads);
    packed_key(5, 8, 8, few);
    assert_true(spk_key_size_distance(five, twelve) < 4);
    assert_true(isinf(spk_key_size_distance(five, heads)));
    assert_true(isinf(spk_key_size_distance(five, few)));
}

/* The layers of a model have patterns that were made alike, whose rows are a bit more or less even. */
static void test_neighbouring_spread(void **state)
{
    (void)state;
    static const char form[] = "v=1;op=spmm|m=256;k=256;br=32;bc=32;nz=11;n=%d;rs=%d;ov=%d";
    char key[SPK_MAX_KEY_TEXT], step[SPK_MAX_KEY_TEXT], two[SPK_MAX_KEY_TEXT], size[SPK_MAX_KEY_TEXT], overlap[SPK_MAX_KEY_TEXT];
    snprintf(key, sizeof key, form, 64, 1, 0);
    snprintf(step, sizeof step, form, 64, 2, 0);
    snprintf(two, sizeof two, form, 64, 3, 0);
    snprintf(size, sizeof size, form, 128, 0, 0);
    snprintf(overlap, sizeof overlap, form, 64, 1, 1);
    assert_float_equal(spk_key_size_distance(key, step), 0.05, 1e-9);
    assert_float_equal(spk_key_size_distance(step, key), 0.05, 1e-9);
    assert_true(isinf(spk_key_size_distance(key, two)));
    assert_true(spk_key_size_distance(key, size) > 1 && spk_key_size_distance(key, size) < 1.1);
    snprintf(step, sizeof step, form, 64, 4, 0); /* has no upper end */
    assert_true(isinf(spk_key_size_distance(step, two)));
    snprintf(step, sizeof step, form, 32, 2, 0);
    char words[80];
    spk_key_size_words(key, step, words, sizeof words);
    assert_string_equal(words, "n=32, a pattern with less even rows");
    spk_key_size_words(key, size, words, sizeof words);
    assert_string_equal(words, "n=128, a pattern with more even rows");
    assert_true(isinf(spk_key_size_distance(key, overlap)));
}

static void test_device_text(void **state)
{
    (void)state;
    sample s;
    make_sample(&s);
    char plain[SPK_MAX_KEY_TEXT], key[SPK_MAX_KEY_TEXT], other[SPK_MAX_KEY_TEXT], text[3000];
    key_of(&s, plain);
    device_text = "cpu:a b|c\n\xc3\xa9";
    key_of(&s, key);
    assert_non_null(strstr(key, "cpu:a_b_c___"));
    assert_string_not_equal(plain, key);
    /* Long texts are folded, and still told apart by their last letter. */
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    device_text = text;
    key_of(&s, key);
    text[sizeof text - 2] = 'y';
    key_of(&s, other);
    assert_true(isinf(spk_key_distance(key, other)));
    device_text = "cpu:Test_9000:threads=2";
}

static void test_longest_key_fits(void **state)
{
    (void)state;
    sample s;
    make_sample(&s);
    char text[3000], key[SPK_MAX_KEY_TEXT];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    device_text = text;
    s.problem.op = &spk_op_sddmm;
    s.problem.a.dtype = s.problem.b.dtype = s.problem.d.dtype = SPK_F8E4M3;
    s.problem.m = s.problem.k = s.problem.n = s.problem.batch = s.pattern.nnzb = INT64_C(1) << 60;
    s.problem.epilogue = (spk_epilogue){true, true, {false}, SPK_RESIDUAL_ADD, SPK_BIAS_PER_ROW, SPK_ACT_GELU_TANH};
    key_of(&s, key);
    assert_true(spk_key_distance(key, key) == 0);
    device_text = "cpu:Test_9000:threads=2";
    char small[16];
    assert_int_equal(spk_key_make(&s.problem, &s.device, small, sizeof small), SPK_ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_separates),
        cmocka_unit_test(test_other_operations),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_fresh_topologies),
        cmocka_unit_test(test_transposed_looks_at_columns),
        cmocka_unit_test(test_distance_orders),
        cmocka_unit_test(test_distance_of_bad_text),
        cmocka_unit_test(test_any_number_may_be_missing),
        cmocka_unit_test(test_sequences_are_sizes),
        cmocka_unit_test(test_neighbouring_spread),
        cmocka_unit_test(test_device_text),
        cmocka_unit_test(test_longest_key_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

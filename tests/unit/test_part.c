/* Parts of problems, which device programs are proved with: every part is a problem by its own description, as small as was asked, and its
 * mask is the whole's, cut. Problems are drawn at random; SEED replays a draw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "op/attention/attention.h"
#include "op/part.h"

static spk_rng rng;
static uint64_t seed;

static int64_t below(int64_t n)
{
    return (int64_t)spk_rng_below(&rng, (uint64_t)n);
}

static int64_t pick(int count, const int64_t *of)
{
    return of[below(count)];
}
#define PICK(...) pick(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* Some ascending columns in each block row, in places none. */
static spk_pattern *draw_pattern(int64_t rows, int64_t cols, int64_t height, int64_t width)
{
    const int64_t down = (rows + height - 1) / height, across = (cols + width - 1) / width, most = across < 12 ? across : 12;
    int64_t *offsets = calloc((size_t)down + 1, sizeof *offsets), *columns = calloc((size_t)(down * most) + 1, sizeof *columns);
    assert_true(offsets != NULL && columns != NULL);
    for (int64_t i = 0; i < down; i++) {
        const int64_t count = below(8) == 0 ? 0 : below(most + 1);
        offsets[i + 1] = offsets[i] + count;
        for (int64_t j = 0; j < count; j++) /* one in each of `count` stretches */
            columns[offsets[i] + j] = across * j / count + below(across * (j + 1) / count - across * j / count);
    }
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices),   .rows = rows,          .cols = cols,           .block_rows = (int32_t)height,
        .block_cols = (int32_t)width, .nnzb = offsets[down], .row_offsets = offsets, .col_indices = columns,
        .index_type = SPK_INDEX_I64};
    spk_pattern *pattern = NULL;
    if (spk_pattern_make(&spk_mem_system, &indices, &pattern) != SPK_OK)
        fail_msg("%s (SEED=%llu)", spk_error_last(), (unsigned long long)seed);
    free(offsets);
    free(columns);
    return pattern;
}

static int64_t draw_size(void)
{
    return below(3) == 0 ? 1 + below(1500) : below(2) ? 64 * (1 + below(3000)) : 1000 + below(200000);
}

/* Heads side by side in a row of an item, or one after another. */
typedef struct places {
    int64_t ld, head_stride;
} places;

static places draw_places(int64_t rows, int64_t heads, int64_t depth)
{
    const int64_t pad = below(3) == 0 ? 8 * (1 + below(4)) : 0;
    return below(2) ? (places){heads * depth + pad, depth} : (places){depth + pad, rows * (depth + pad) + 8 * below(3)};
}

static void draw_places_of(spk_attention *a)
{
    const int64_t rows = a->page_keys > 0 ? a->pages * a->page_keys : a->keys;
    const places q = draw_places(a->queries, a->heads, a->depth), k = draw_places(rows, a->heads_kv, a->depth),
                 v = draw_places(rows, a->heads_kv, a->depth_v), o = draw_places(a->queries, a->heads, a->depth_v);
    a->ldq = q.ld, a->ldk = k.ld, a->ldv = v.ld, a->ldo = o.ld;
    a->head_stride_q = q.head_stride, a->head_stride_k = k.head_stride, a->head_stride_v = v.head_stride, a->head_stride_o = o.head_stride;
}

static void draw_mask(spk_attention *a, spk_pattern **pattern)
{
    const int64_t height = PICK(1, 16, 32, 40, 64, 128), width = PICK(1, 16, 48, 64, 128), lists_of_head = PICK(1, a->heads_kv, a->heads);
    a->mask_heads = lists_of_head;
    a->mask_items = a->batch > 1 && below(2) ? a->batch : 0;
    const int64_t lists = lists_of_head * (a->mask_items > 0 ? a->batch : 1), padded = (a->queries + height - 1) / height * height;
    if (lists * padded / height > 1 << 15) { /* the pattern of the whole has to be made */
        a->mask_heads = a->mask_items = 0;
        return;
    }
    *pattern = draw_pattern(lists > 1 ? lists * padded : a->queries, a->keys, height, width);
    if (below(4) == 0)
        a->tiles = 1 + below(9);
}

static spk_attention draw_attention(spk_pattern **pattern)
{
    spk_attention a = {SPK_SIZED(spk_attention), .dtype = (spk_dtype)PICK(SPK_F32, SPK_F64, SPK_F16, SPK_BF16), .queries = draw_size()};
    a.keys = below(3) ? a.queries : draw_size();
    a.depth = PICK(8, 40, 64, 96, 128, 192);
    a.depth_v = below(3) ? a.depth : PICK(8, 64, 128);
    a.batch = below(2) ? 1 : 1 + below(40);
    a.heads_kv = PICK(1, 2, 3, 8, 16);
    a.heads = a.heads_kv * PICK(1, 1, 4, 7);
    a.want_lse = (int)below(2);
    a.diagonal = a.queries == a.keys && below(2) ? SPK_DIAGONAL_NONE : SPK_DIAGONAL_TOP_LEFT + (int)below(2);
    a.causal = (int)below(2);
    a.window_left = below(3) == 0 ? 1 + below(a.keys) : 0;
    a.sinks = a.window_left > 0 && below(2) ? below(9) : 0;
    a.use_softcap = below(4) == 0;
    if (below(4) == 0) { /* packed, or with lengths, or in pages */
        a.sequences = a.batch == 1 ? 1 + below(9) : 0;
        a.key_lengths = a.batch > 1;
        if (a.diagonal == SPK_DIAGONAL_NONE)
            a.diagonal = SPK_DIAGONAL_BOTTOM_RIGHT;
        if (below(2)) {
            a.page_keys = PICK(1, 16, 64);
            a.pages = 1 + below(100000);
        }
    }
    if (below(2))
        draw_places_of(&a);
    if (below(2))
        draw_mask(&a, pattern);
    return a;
}

#define SAME(M)                                                                                                                     \
    M(dtype), M(queries), M(keys), M(depth), M(depth_v), M(batch), M(heads), M(heads_kv), M(diagonal), M(causal), M(window_left),   \
        M(sinks), M(use_softcap), M(mask_heads), M(mask_items), M(ldq), M(ldk), M(ldv), M(ldo), M(head_stride_q), M(head_stride_k), \
        M(head_stride_v), M(head_stride_o), M(sequences), M(key_lengths), M(tiles)
static spk_status draw_gradients(spk_pattern **pattern, spk_problem *problem)
{
    const spk_attention a = draw_attention(pattern);
    spk_attention_backward b = {SPK_SIZED(spk_attention_backward), .use_grad_lse = (int)below(2)};
#define TAKE(member) b.member = a.member
    SAME(TAKE);
    return spk_problem_read(&spk_op_attention_backward, *pattern, &b, NULL, problem);
}

static spk_status draw_product(spk_pattern **pattern, spk_problem *problem)
{
    const spk_dtype dtype = (spk_dtype)PICK(SPK_F32, SPK_F64, SPK_F16, SPK_BF16);
    const spk_layout layout = (spk_layout)below(2);
    if (below(3) == 0) {
        const spk_gemm g = {
            SPK_SIZED(spk_gemm), .dtype_a = dtype,    .dtype_b = dtype,      .dtype_d = dtype,   .m = draw_size(),
            .n = draw_size(),    .k = PICK(64, 4096), .batch = 1 + below(9), .layout_a = layout, .layout_d = (spk_layout)below(2)};
        return spk_problem_read(&spk_op_gemm, NULL, &g, NULL, problem);
    }
    *pattern = draw_pattern(1 + below(5000), 1 + below(5000), PICK(1, 3, 16, 64), PICK(1, 3, 16, 64));
    if (below(2)) {
        const spk_sddmm s = {SPK_SIZED(spk_sddmm), .dtype_x = dtype,      .dtype_y = dtype,  .dtype_d = dtype,
                             .k = draw_size(),     .batch = 1 + below(5), .layout_x = layout};
        return spk_problem_read(&spk_op_sddmm, *pattern, &s, NULL, problem);
    }
    const spk_spmm s = {SPK_SIZED(spk_spmm), .dtype_a = dtype,      .dtype_b = dtype,   .dtype_d = dtype,
                        .n = draw_size(),    .batch = 1 + below(5), .layout_b = layout, .layout_d = (spk_layout)below(2)};
    return spk_problem_read(&spk_op_spmm, *pattern, &s, NULL, problem);
}

/* Of a mask: an empty row stays one, others keep columns. */
static void check_mask(const spk_problem *whole, const spk_problem *part)
{
    const spk_index *was = &whole->pattern->index, *is = &part->pattern->index;
    const int64_t items = part->lists.item_step > 0 ? part->batch : 1, rows = spk_attention_list_rows(part);
    assert_int_equal(part->pattern->block_rows, whole->pattern->block_rows);
    assert_int_equal(part->pattern->block_cols, whole->pattern->block_cols);
    for (int64_t list = 0; list < items * part->lists.heads; list++)
        for (int64_t row = 0; row < rows; row++) {
            const int64_t old = list / part->lists.heads * whole->lists.item_step + list % part->lists.heads,
                          from = old * spk_attention_list_rows(whole) + row, to = list * rows + row;
            const int64_t had = was->offsets[from + 1] - was->offsets[from], has = is->offsets[to + 1] - is->offsets[to];
            if (has > had || (has == 0) != (had == 0))
                fail_msg("list %lld, block row %lld: %lld blocks of %lld (SEED=%llu)", (long long)list, (long long)row, (long long)has,
                         (long long)had, (unsigned long long)seed);
        }
}

/* Bytes that no part can do without: of two items, two heads of K, sizes of 1024 and what is left of steps, and everything that is not
 * cut. */
static bool may_be_cut(const spk_problem *p)
{
    return (p->batch > 2 && p->group_axis == SPK_GROUP_NONE) || spk_problem_free_size(p) > 2 * SPK_PART_LEAST ||
           spk_problem_other_size(p) > 2 * SPK_PART_LEAST;
}

static bool check_part(const spk_problem *whole, double most_bytes)
{
    spk_problem part;
    spk_pattern *made = NULL;
    const double bytes = spk_problem_operand_bytes(whole);
    assert_int_equal(spk_problem_part(&spk_mem_system, whole, most_bytes, &part, &made), SPK_OK);
    if (spk_problem_reread(&part) != SPK_OK)
        fail_msg("%s: %s (SEED=%llu)", whole->op->name, spk_error_last(), (unsigned long long)seed);
    const double left = spk_problem_operand_bytes(&part);
    if (bytes <= most_bytes)
        assert_true(spk_problem_equal(whole, &part));
    assert_true(left <= bytes);
    if (bytes > 4 * most_bytes && may_be_cut(whole) && spk_problem_equal(whole, &part))
        fail_msg("%s, m %lld, n %lld, batch %lld: no part of %g bytes, but all %g (SEED=%llu)", whole->op->name, (long long)whole->m,
                 (long long)whole->n, (long long)whole->batch, most_bytes, bytes, (unsigned long long)seed);
    if (spk_problem_is_masked(whole) && !spk_problem_equal(whole, &part))
        check_mask(whole, &part);
    const bool is_cut = !spk_problem_equal(whole, &part);
    spk_pattern_release(&made);
    return is_cut;
}

/* seed + draw replays one draw: SEED=... is the first of them. */
static void every_part_is_a_problem(void **state)
{
    const int draws = getenv("SPARSEK_TEST_QUICK") != NULL ? 60 : 600;
    const uint64_t first = seed;
    int cut = 0, masked = 0, read = 0;
    (void)state;
    for (int draw = 0; draw < draws; draw++) {
        spk_pattern *pattern = NULL;
        spk_problem problem;
        seed = first + (uint64_t)draw;
        spk_rng_seed(&rng, seed);
        spk_status status;
        if (draw % 3 == 0) {
            const spk_attention a = draw_attention(&pattern);
            status = spk_problem_read(&spk_op_attention, pattern, &a, NULL, &problem);
        } else {
            status = draw % 3 == 1 ? draw_gradients(&pattern, &problem) : draw_product(&pattern, &problem);
        }
        if (status == SPK_OK && !spk_problem_is_empty(&problem)) {
            read++;
            const bool is_cut = check_part(&problem, 1e5 * (double)(1 + below(2000)));
            cut += is_cut;
            masked += is_cut && spk_problem_is_masked(&problem);
        }
        spk_pattern_release(&pattern);
    }
    printf("%d problems, %d cut, %d of them with a mask\n", read, cut, masked);
    assert_true(read > draws / 2 && cut > draws / 4 && masked > draws / 20);
}

/* A list for each of 16 heads, S = 40960: more operands than 1 GiB. */
static void lists_of_many_heads_are_cut(void **state)
{
    spk_pattern *pattern = draw_pattern(16 * 40960, 40960, 64, 64);
    const spk_attention_backward b = {
        SPK_SIZED(spk_attention_backward), .dtype = SPK_BF16, .queries = 40960, .keys = 40960, .depth = 128, .heads = 16, .mask_heads = 16};
    spk_problem problem;
    (void)state;
    assert_int_equal(spk_problem_read(&spk_op_attention_backward, pattern, &b, NULL, &problem), SPK_OK);
    assert_true(check_part(&problem, 1 << 30));
    spk_pattern_release(&pattern);
}

static int set_up(void **state)
{
    (void)state;
    seed = getenv("SEED") != NULL ? strtoull(getenv("SEED"), NULL, 0) : (uint64_t)(uintptr_t)&seed >> 4;
    spk_rng_seed(&rng, seed);
    printf("SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_is_a_problem), cmocka_unit_test(lists_of_many_heads_are_cut)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}

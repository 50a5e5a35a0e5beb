/* The work of attention_backward_sm90_two_pass, listed by the device's programs for a mask that only the device knows, is what the host
 * lists where it knows the mask: tiles of both passes, and the steps of each in the same order. The programs run on the host, launched
 * through the test double of libcuda. They are compiled by NVRTC before; where SPARSEK_NVRTC is not set, the test says so and passes. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/context.h"
#include "backend/cuda/host/attention/attention_backward_remote.h"
#include "base/rng.h"
#include "cuda_double.h"
#include "op/attention/attention.h"
#include "on_host/programs.h"

static void good(spk_status status, const char *call)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", call, spk_error_last());
}
#define GOOD(call) good(call, #call)

static int64_t between(spk_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)spk_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A problem with a mask, a list for one head, for each of k or of q, and for one item or all. */
typedef struct drawn {
    spk_attention attention;
    int block_rows, block_cols;
    int64_t lists, rows, nnzb; /* rows: of all lists */
    int *offsets, *columns;
} drawn;

static drawn draw(spk_rng *rng)
{
    static const int sizes[] = {64, 128, 192, 256};
    drawn d = {.block_rows = sizes[between(rng, 0, 3)], .block_cols = sizes[between(rng, 0, 3)]};
    spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .depth = 64, .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT};
    const bool tall = between(rng, 0, 9) == 0; /* many block rows: more than a word of bits has */
    a.queries = between(rng, 1, tall ? 6000 : 900);
    a.keys = between(rng, 1, 900);
    a.heads_kv = between(rng, 1, 3);
    a.heads = a.heads_kv * between(rng, 1, 3);
    a.batch = between(rng, 1, 2);
    a.causal = (int)between(rng, 0, 1);
    a.window_left = between(rng, 0, 1) * between(rng, 1, 300);
    a.sinks = a.window_left > 0 ? between(rng, 0, 1) * between(rng, 1, 80) : 0;
    a.mask_heads = (int64_t[]){1, a.heads_kv, a.heads}[between(rng, 0, 2)];
    a.mask_items = between(rng, 0, 1) ? a.batch : 1;
    if (between(rng, 0, 9) == 0) { /* one block row: of any height */
        a.queries = between(rng, 1, 250);
        d.block_rows = (int)between(rng, a.queries, 256);
    }
    d.attention = a;
    d.lists = a.mask_heads * a.mask_items;
    const int64_t down = (a.queries + d.block_rows - 1) / d.block_rows, across = (a.keys + d.block_cols - 1) / d.block_cols;
    d.offsets = calloc((size_t)(d.lists * down) + 1, sizeof *d.offsets);
    d.columns = calloc((size_t)(d.lists * down * across) + 1, sizeof *d.columns);
    assert_true(d.offsets != NULL && d.columns != NULL);
    d.rows = d.lists * down;
    for (int64_t row = 0; row < d.rows; row++) {
        const double density = spk_rng_uniform(rng);
        for (int64_t column = 0; column < across; column++)
            if (spk_rng_uniform(rng) < density)
                d.columns[d.nnzb++] = (int)column;
        d.offsets[row + 1] = (int)d.nnzb;
    }
    if (between(rng, 0, 2) == 0)
        d.attention.tiles = d.nnzb;
    return d;
}

static spk_bsr_indices indices_of(const drawn *d, const spk_deferred_indices *deferred)
{
    const int64_t down = (d->attention.queries + d->block_rows - 1) / d->block_rows;
    return (spk_bsr_indices){SPK_SIZED(spk_bsr_indices),  .rows = d->lists == 1 ? d->attention.queries : d->lists * down * d->block_rows,
                             .cols = d->attention.keys,   .block_rows = d->block_rows,
                             .block_cols = d->block_cols, .nnzb = d->nnzb,
                             .row_offsets = d->offsets,   .col_indices = d->columns,
                             .index_type = SPK_INDEX_I32, .index_memory = deferred != NULL ? SPK_DEVICE : SPK_HOST,
                             .deferred = deferred};
}

static const void *on_device(spk_context *context, const void *from, int64_t count)
{
    void *there = NULL;
    GOOD(spk_memory_allocate(context, (size_t)count * sizeof(int), &there));
    GOOD(spk_memory_copy(context, there, SPK_DEVICE, from, SPK_HOST, (size_t)count * sizeof(int)));
    return there;
}

static int by_place(const void *a, const void *b)
{
    const two_pass_tile *x = a, *y = b;
    const int places[][2] = {{x->item, y->item}, {x->head, y->head}, {x->row, y->row}};
    for (int i = 0; i < 3; i++)
        if (places[i][0] != places[i][1])
            return places[i][0] < places[i][1] ? -1 : 1;
    return 0;
}

/* Sections have the same tiles, the longest first, as nearly as lengths are told apart. */
static void check_order(const two_pass_lists *lists, int64_t section)
{
    for (int64_t first = 0; first < lists->count; first += section)
        for (int64_t i = first + 1; i < first + section && i < lists->count; i++) {
            const two_pass_tile *tiles = (const two_pass_tile *)lists->tiles;
            const int before = tiles[i - 1].end - tiles[i - 1].begin + 1, length = tiles[i].end - tiles[i].begin + 1;
            assert_true(length <= before + before / 4);
        }
}

static void check_pass(const two_pass_lists *device, const two_pass_lists *host, int64_t section, bool tiled)
{
    assert_int_equal(device->count, host->count);
    check_order(device, section);
    for (int64_t first = 0; first < host->count; first += section) {
        const size_t count = (size_t)(first + section < host->count ? section : host->count - first);
        two_pass_tile *got = (two_pass_tile *)(uintptr_t)device->tiles + first, *want = (two_pass_tile *)(uintptr_t)host->tiles + first;
        qsort(got, count, sizeof *got, by_place);
        qsort(want, count, sizeof *want, by_place);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(by_place(&got[i], &want[i]), 0);
            assert_int_equal(got[i].first, want[i].first);
            assert_int_equal(got[i].end - got[i].begin, want[i].end - want[i].begin);
            const two_pass_step *steps = (const two_pass_step *)device->steps + got[i].begin,
                                *wanted = (const two_pass_step *)host->steps + want[i].begin;
            for (int s = 0; s < want[i].end - want[i].begin; s++) {
                assert_int_equal(steps[s].tile, wanted[s].tile);
                assert_int_equal(steps[s].head, wanted[s].head);
                if (tiled)
                    assert_int_equal(steps[s].entry, wanted[s].entry);
            }
        }
    }
}

static void check_case(spk_context *context, spk_rng *rng)
{
    static const spk_deferred_indices later = {SPK_SIZED(spk_deferred_indices), .stream = (void *)0x100};
    drawn d = draw(rng);
    const spk_bsr_indices here = indices_of(&d, NULL);
    spk_bsr_indices there = indices_of(&d, &later);
    there.row_offsets = on_device(context, here.row_offsets, d.rows + 1);
    there.col_indices = on_device(context, here.col_indices, d.nnzb + 1);
    spk_pattern *remote = NULL, *known = NULL;
    spk_bound bound = {.device = context->device};
    spk_problem problem;
    spk_cuda_index index = {0};
    two_pass_lists made[2] = {{0}}, wanted[2] = {{0}};
    two_pass_remote memory = {0};
    two_pass_cut cuts[2];
    GOOD(spk_pattern_create(context, &there, &remote));
    GOOD(spk_pattern_create(context, &here, &known));
    GOOD(spk_problem_read(&spk_op_attention, remote, &d.attention, NULL, &bound.problem));
    GOOD(spk_problem_read(&spk_op_attention, known, &d.attention, NULL, &problem));
    GOOD(spk_pattern_view(remote, SPK_NO_TRANS, SPK_ROW_MAJOR, &bound.view));
    assert_null(bound.view.offsets);
    for (int pass = 0; pass < 2; pass++)
        cuts[pass] = (two_pass_cut){.by_queries = pass == 1,
                                    .own_rows = (pass == 1 ? d.block_rows : d.block_cols) % 128 == 0 && between(rng, 0, 1) ? 128 : 64,
                                    .workers = (int)between(rng, 1, 264)};
    GOOD(spk_cuda_index_make(&bound, &index));
    assert_null(spk_cuda_attention_backward_remote_refusal(&bound.problem, cuts));
    GOOD(spk_cuda_attention_backward_remote(&bound, &index, cuts, made, &memory));
    for (int pass = 0; pass < 2; pass++) {
        GOOD(spk_cuda_attention_backward_lists(context->device, &problem, &cuts[pass], &wanted[pass]));
        check_pass(&made[pass], &wanted[pass], spk_cuda_attention_backward_section(&problem, &cuts[pass]), problem.lists.tiles > 0);
        context->device->backend->release(context->device, wanted[pass].memory);
    }
    spk_cuda_attention_backward_remote_release(&bound, &memory);
    spk_cuda_index_release(context->device, &index);
    spk_pattern_destroy(&remote);
    spk_pattern_destroy(&known);
    spk_memory_release(context, (void **)(uintptr_t)&there.row_offsets);
    spk_memory_release(context, (void **)(uintptr_t)&there.col_indices);
    free(d.offsets);
    free(d.columns);
}

static void the_device_lists_the_same(void **unused)
{
    (void)unused;
    const char *nvrtc = getenv("SPARSEK_NVRTC"), *seed = getenv("SPARSEK_TEST_SEED");
    if (nvrtc == NULL || strcmp(nvrtc, "none") == 0) {
        printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
        return;
    }
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    cuda_double *state = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    spk_context *context = NULL;
    memset(state, 0, sizeof *state);
    state->run = run_on_host;
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    spk_rng rng;
    spk_rng_seed(&rng, seed != NULL ? strtoull(seed, NULL, 10) : 20261201);
    for (int i = 0; i < 200; i++)
        check_case(context, &rng);
    spk_context_destroy(&context);
    assert_int_equal(state->live_memory, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_device_lists_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

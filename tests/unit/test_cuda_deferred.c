/* Patterns whose indices stay in device memory, and the copies that plans of a pattern share, on the test double of libcuda: what waits,
 * what fails and when, what is given back. Device code is compiled by NVRTC; where SPARSEK_NVRTC is not set, the tests say so and pass.
 * tests/device has the device's side. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/context.h"
#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/helpers/check_indices.h"
#include "backend/cuda/proof/proof_store.h"
#include "base/mem.h"
#include "op/product.h"
#include "cuda_double.h"
#include "prove_all.h"

#define STREAM ((void *)0x100)

static void good(spk_status status, const char *call)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", call, spk_error_last());
}
#define GOOD(call) good(call, #call)

static cuda_double *state;
static spk_context *context;

/* What helpers/check_indices.cu does, for int indices. */
static void run_indices(const char *entry, void **parameters, unsigned grid, unsigned threads)
{
    (void)grid, (void)threads;
    const bool checks = strcmp(entry, "check_indices") == 0;
    if (!checks && strcmp(entry, "settle_indices") != 0)
        return;
    const check_arguments *all = parameters[0];
    const int *offsets = all->offsets, *columns = all->columns;
    verdict *v = all->said;
    if (checks) {
        for (int64_t i = all->grid_rows; i >= 0; i--)
            if (i == 0 ? offsets[0] != 0 : offsets[i] < offsets[i - 1] || (i == all->grid_rows && offsets[i] != all->nnzb))
                v->first = (uint64_t)i;
        for (int64_t row = all->grid_rows - 1; v->first == UINT64_MAX && row >= 0; row--)
            for (int64_t p = offsets[row + 1] - 1; p >= offsets[row]; p--)
                if (columns[p] < 0 || columns[p] >= all->grid_cols || (p > offsets[row] && columns[p - 1] >= columns[p]))
                    v->first = WRONG_COLUMN | (uint64_t)p;
        memcpy(all->to_offsets, offsets, sizeof(int) * (size_t)(all->grid_rows + 1));
        memcpy(all->to_columns, columns, sizeof(int) * (size_t)all->nnzb);
        return;
    }
    v->fault = v->first != UINT64_MAX;
    const int64_t at = (int64_t)(v->first & ~WRONG_COLUMN);
    const int *array = v->first & WRONG_COLUMN ? columns : offsets;
    v->value = v->fault ? array[at] : 0;
    v->before = v->fault && at > 0 ? array[at - 1] : -1;
    v->stamp = v->stamp_again = all->stamp;
}

static int open_context(void **unused)
{
    (void)unused;
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    state = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    memset(state, 0, sizeof *state);
    state->run = run_indices;
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    return 0;
}

static int close_context(void **unused)
{
    (void)unused;
    state->held_stream = NULL;
    spk_context_destroy(&context);
    assert_int_equal(state->live_memory, 0);
    assert_int_equal(state->live_pools, 0);
    return 0;
}

static bool have_nvrtc(void)
{
    const char *nvrtc = getenv("SPARSEK_NVRTC");
    if (nvrtc != NULL && strcmp(nvrtc, "none") != 0)
        return true;
    printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
    return false;
}

/* 3 x 4 blocks of 64 x 64: rows of 2, 0 and 3. */
typedef struct arrays {
    int offsets[4], columns[5];
} arrays;
static const arrays right = {{0, 2, 2, 5}, {0, 3, 1, 2, 3}};
static const spk_deferred_indices later = {SPK_SIZED(spk_deferred_indices), .stream = STREAM, .longest_row = 3};

static spk_bsr_indices on_device(const arrays *from, arrays **there)
{
    GOOD(spk_memory_allocate(context, sizeof **there, (void **)there));
    GOOD(spk_memory_copy(context, *there, SPK_DEVICE, from, SPK_HOST, sizeof *from));
    return (spk_bsr_indices){SPK_SIZED(spk_bsr_indices),
                             .rows = 192,
                             .cols = 256,
                             .block_rows = 64,
                             .block_cols = 64,
                             .nnzb = 5,
                             .row_offsets = (*there)->offsets,
                             .col_indices = (*there)->columns,
                             .index_memory = SPK_DEVICE,
                             .deferred = &later};
}

static const spk_spmm product = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16};
static const spk_tune_options wgmma = {SPK_SIZED(spk_tune_options),
                                       .choice = "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"};

static void nothing_waits(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    char *memory;
    GOOD(spk_memory_allocate(context, 1 << 20, (void **)&memory));
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = memory, .b = memory + (1 << 18), .d = memory + (1 << 19), .alpha = 1};
    const int queries = state->queries;
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NEVER};
    for (int i = 0; i < 2; i++) {
        GOOD(spk_pattern_create(context, &indices, &pattern));
        GOOD(spk_plan_create_spmm(context, pattern, &product, i == 0 ? &wgmma : &estimate, &plan));
        const int launches = state->launches;
        GOOD(spk_plan_run_spmm(plan, &args, STREAM));
        assert_int_equal(state->launches, launches + 1);
        spk_pattern_destroy(&pattern);
        state->released_on = NULL;
        spk_plan_destroy(&plan); /* keeps the pattern */
        assert_ptr_equal(state->released_on, STREAM);
    }
    assert_int_equal(state->queries, queries);
    spk_memory_release(context, (void **)&memory);
    spk_memory_release(context, (void **)&there);
}

/* SDDMM: the list of tiles is made on the device, in memory ordered by the stream. */
static void tiles_are_listed_there(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    char *memory;
    indices.rows = 3 * 128;
    indices.cols = 4 * 128;
    indices.block_rows = indices.block_cols = 128;
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm), .k = 64, .dtype_x = SPK_F16};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options),
                                      .choice = "sddmm_sm90_wgmma HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1"};
    GOOD(spk_memory_allocate(context, 1 << 20, (void **)&memory));
    const spk_sddmm_args args = {SPK_SIZED(spk_sddmm_args), .x = memory, .y = memory + (1 << 18), .d = memory + (1 << 19), .alpha = 1};
    GOOD(spk_pattern_create(context, &indices, &pattern));
    const int live = state->live_memory, queries = state->queries;
    GOOD(spk_plan_create_sddmm(context, pattern, &sddmm, &options, &plan));
    assert_int_equal(state->live_memory, live + 1);
    GOOD(spk_plan_run_sddmm(plan, &args, STREAM));
    assert_string_equal(state->launched, "sddmm_sm90_wgmma");
    state->released_on = NULL;
    spk_plan_destroy(&plan);
    assert_ptr_equal(state->released_on, STREAM);
    assert_int_equal(state->live_memory, live);
    assert_int_equal(state->queries, queries);
    state->allocate = 2;
    assert_int_equal(spk_plan_create_sddmm(context, pattern, &sddmm, &options, &plan), SPK_ERR_OUT_OF_MEMORY);
    state->allocate = 0;
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    GOOD(spk_pattern_get_info(pattern, &info)); /* from now on the host has them, and lists */
    GOOD(spk_plan_create_sddmm(context, pattern, &sddmm, &options, &plan));
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_memory_release(context, (void **)&memory);
    spk_memory_release(context, (void **)&there);
}

static void rows_with_lists_are_left_out(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    int taken = 0;
    spk_spmm finite = product;
    finite.assume_finite = 1;
    GOOD(spk_pattern_create(context, &indices, &pattern));
    GOOD(spk_list_candidates(context, pattern, &finite, NULL, &report));
    GOOD(spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        GOOD(spk_report_get_candidate(report, i, &c));
        /* these cut rows by what they find on the device */
        const bool cuts = strstr(c.name, "narrow") != NULL || strstr(c.name, "sm80_warp") != NULL ||
                          strstr(c.name, "sm80_direct") != NULL || strstr(c.name, "cuda_rows") != NULL;
        const bool lists =
            strstr(c.name, "groups") != NULL || c.kind == SPK_KIND_VENDOR || c.kind == SPK_KIND_DENSE ||
            (!cuts && strstr(c.params, "SPLIT=") != NULL && strstr(c.params, "SPLIT=0") == NULL && strstr(c.params, "SPLIT=1") == NULL);
        if (lists && c.status != SPK_CANDIDATE_NOT_APPLICABLE)
            fail_msg("%s %s takes indices that are not on the host", c.name, c.params);
        taken += c.status != SPK_CANDIDATE_NOT_APPLICABLE;
    }
    assert_true(taken > 10);
    spk_report_destroy(&report);
    spk_pattern_destroy(&pattern);
    spk_memory_release(context, (void **)&there);
}

static void wrong_indices_fail_later(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    static const struct {
        arrays indices;
        const char *message;
    } cases[] = {
        {{{1, 2, 2, 5}, {0, 3, 1, 2, 3}}, "row_offsets[0] = 1: the first offset must be 0"},
        {{{0, 3, 2, 5}, {0, 3, 1, 2, 3}}, "row_offsets[2] = 2 is less than row_offsets[1] = 3"},
        {{{0, 2, 2, 4}, {0, 3, 1, 2, 3}}, "row_offsets[3] = 4: the last offset must be nnzb = 5"},
        {{{0, 2, 2, 5}, {0, 4, 1, 2, 3}}, "col_indices[1] = 4: block columns are 0..3"},
        {{{0, 2, 2, 5}, {0, 3, -1, 2, 3}}, "col_indices[2] = -1: block columns are 0..3"},
        {{{0, 2, 2, 5}, {0, 3, 2, 1, 3}}, "col_indices[3] = 1 does not exceed col_indices[2] = 2"},
    };
    char *memory;
    GOOD(spk_memory_allocate(context, 1 << 20, (void **)&memory));
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = memory, .b = memory + (1 << 18), .d = memory + (1 << 19), .alpha = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arrays *there;
        spk_bsr_indices indices = on_device(&cases[i].indices, &there);
        spk_pattern *pattern = NULL;
        spk_plan *plan = NULL, *other = NULL;
        spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
        state->held_stream = STREAM;
        GOOD(spk_pattern_create(context, &indices, &pattern));
        GOOD(spk_plan_create_spmm(context, pattern, &product, &wgmma, &plan));
        GOOD(spk_plan_run_spmm(plan, &args, STREAM));
        state->held_stream = NULL;
        GOOD(spk_synchronize(context, STREAM));
        assert_int_equal(spk_plan_run_spmm(plan, &args, STREAM), SPK_ERR_ARGUMENT);
        assert_non_null(strstr(spk_last_error(context), cases[i].message));
        assert_int_equal(spk_plan_create_spmm(context, pattern, &product, &wgmma, &other), SPK_ERR_ARGUMENT);
        assert_int_equal(spk_pattern_get_info(pattern, &info), SPK_ERR_ARGUMENT);
        assert_non_null(strstr(spk_last_error(context), cases[i].message));
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
        spk_memory_release(context, (void **)&there);
    }
    spk_memory_release(context, (void **)&memory);
}

static void asking_waits_and_measures(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    spk_deferred_indices spread = later;
    spread.row_spread = 0.25; /* the caller's word is for the class */
    indices.deferred = &spread;
    GOOD(spk_pattern_create(context, &indices, &pattern));
    const int queries = state->queries;
    GOOD(spk_pattern_get_info(pattern, &info));
    assert_true(state->queries > queries);
    assert_true(info.nnzb == 5 && info.empty_rows == 1 && info.longest_row == 3 && fabs(info.row_spread - 0.7483314) < 1e-6);
    const spk_spmm turned = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16, .trans_a = SPK_TRANS};
    GOOD(spk_plan_create_spmm(context, pattern, &turned, &wgmma, &plan));
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_memory_release(context, (void **)&there);
}

static void refusals(void **unused)
{
    (void)unused;
    arrays *there, host = right;
    const spk_bsr_indices valid = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    enum { CASES = 12 };
    struct {
        spk_bsr_indices indices;
        spk_deferred_indices deferred;
        spk_status status;
        const char *message;
    } cases[CASES];
    for (int i = 0; i < CASES; i++) {
        cases[i].indices = valid;
        cases[i].deferred = later;
        cases[i].indices.deferred = &cases[i].deferred;
        cases[i].status = SPK_ERR_ARGUMENT;
    }
    cases[0].deferred.struct_size = 0, cases[0].message = "spk_deferred_indices.struct_size is 0";
    cases[1].deferred.longest_row = -1, cases[1].message = "deferred.longest_row = -1: the limits are 0 and 4, the block columns";
    cases[2].indices.index_memory = SPK_HOST, cases[2].message = "goes with index_memory = SPK_DEVICE";
    cases[3].deferred.longest_row = 5, cases[3].message = "deferred.longest_row = 5: the limits are 0 and 4, the block columns";
    cases[4].deferred.row_spread = NAN, cases[4].message = "deferred.row_spread = ";
    cases[5].deferred.row_overlap = 1.5, cases[5].message = "deferred.row_overlap = 1.5: the limits are 0 and 1";
    cases[6].indices.row_offsets = NULL, cases[6].message = "row_offsets is NULL";
    cases[7].indices.row_offsets = host.offsets, cases[7].message = "row_offsets = ";
    cases[8].indices.col_indices = host.columns, cases[8].message = "this pattern is for cuda:0";
    cases[9].indices.nnzb = 13, cases[9].message = "nnzb = 13 exceeds";
    cases[10].deferred.row_spread = -0.5, cases[10].message = "deferred.row_spread = -0.5 is negative or not finite";
    cases[11].indices.index_type = (spk_index_type)SPK_INT32, cases[11].message = "index_type = 8";
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(spk_pattern_create(context, &cases[i].indices, &pattern), cases[i].status);
        if (strstr(spk_last_error(context), cases[i].message) == NULL)
            fail_msg("case %d: %s", i, spk_last_error(context));
        assert_null(pattern);
    }
    state->capturing = 1;
    assert_int_equal(spk_pattern_create(context, &valid, &pattern), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_last_error(context), "has no device_allocate"));
    state->capturing = 0;
    spk_context *cpu = NULL;
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &cpu));
    assert_int_equal(spk_pattern_create(cpu, &valid, &pattern), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(cpu), "has no streams"));
    spk_context_destroy(&cpu);
    spk_memory_release(context, (void **)&there);
}

static void failures_leave_nothing(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    const spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    GOOD(spk_pattern_create(context, &indices, &pattern)); /* compiled, and the pool is there */
    spk_pattern_destroy(&pattern);
    const int live = state->live_memory;
    state->allocate = 2;
    assert_int_equal(spk_pattern_create(context, &indices, &pattern), SPK_ERR_OUT_OF_MEMORY);
    state->allocate = 0;
    state->launch = 1;
    assert_int_equal(spk_pattern_create(context, &indices, &pattern), SPK_ERR_INTERNAL);
    state->launch = 0;
    assert_int_equal(state->live_memory, live);
    for (int64_t fail = 0;; fail++) {
        spk_mem_fail_after(fail);
        const spk_status status = spk_pattern_create(context, &indices, &pattern);
        spk_mem_fail_after(-1);
        if (status == SPK_OK)
            break;
        assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        assert_int_equal(state->live_memory, live);
    }
    spk_pattern_destroy(&pattern);
    for (int i = 0; i < 1000; i++) { /* more than a page of verdicts, some never come */
        state->held_stream = i % 3 == 0 ? STREAM : NULL;
        GOOD(spk_pattern_create(context, &indices, &pattern));
        spk_pattern_destroy(&pattern);
    }
    state->held_stream = NULL;
    spk_memory_release(context, (void **)&there);
}

static void *take(void *user, size_t bytes, void *stream)
{
    void **last = user, *memory = NULL;
    spk_context *other = last[1];
    *last = stream;
    return spk_memory_allocate(other, bytes, &memory) == SPK_OK ? memory : NULL;
}

static void give(void *user, void *memory, size_t bytes, void *stream)
{
    void **last = user;
    (void)bytes;
    *last = stream;
    spk_memory_release(last[1], &memory);
}

static void the_callers_memory(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    void *user[2] = {NULL, context};
    spk_context *mine = NULL;
    arrays *there;
    const spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = "",
                                                   .device_allocate = take, .device_release = give, .device_user = user},
                            &mine));
    GOOD(spk_pattern_create(mine, &indices, &pattern));
    assert_ptr_equal(user[0], STREAM);
    assert_int_equal(state->live_pools, 0);
    user[0] = NULL;
    spk_pattern_destroy(&pattern);
    assert_ptr_equal(user[0], STREAM);
    spk_context_destroy(&mine);
    spk_memory_release(context, (void **)&there);
}

/* In place of a graph's memory: a piece that was there before the capture. */
typedef struct lent {
    void *memory;
    int taken;
} lent;
enum { LENT_BYTES = 4096 };

enum { RELAXED = 2 }; /* CU_STREAM_CAPTURE_MODE_RELAXED: what an allocator calls may end no capture, of this thread or of another */

static void *take_of_graph(void *user, size_t bytes, void *stream)
{
    lent *from = user;
    assert_int_equal(state->capture_mode, RELAXED);
    assert_ptr_equal(stream, STREAM);
    assert_true(bytes <= LENT_BYTES);
    from->taken++;
    return from->memory;
}

static void give_to_graph(void *user, void *memory, size_t bytes, void *stream)
{
    lent *to = user;
    (void)bytes;
    assert_int_equal(state->capture_mode, RELAXED);
    assert_ptr_equal(memory, to->memory);
    assert_ptr_equal(stream, STREAM);
    to->taken--;
}

/* Pattern, plan and run are captured, without waiting; wrong indices are nobody's failure then. */
static void captured_with_its_run(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    static const arrays wrong = {{0, 2, 2, 5}, {0, 4, 1, 2, 3}};
    lent user = {NULL, 0};
    spk_context *mine = NULL;
    arrays *there;
    char *memory;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    const spk_bsr_indices indices = on_device(&wrong, &there);
    GOOD(spk_memory_allocate(context, LENT_BYTES, &user.memory));
    GOOD(spk_memory_allocate(context, 1 << 20, (void **)&memory));
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = memory, .b = memory + (1 << 18), .d = memory + (1 << 19), .alpha = 1};
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = "",
                                                   .device_allocate = take_of_graph, .device_release = give_to_graph, .device_user = &user},
                            &mine));
    state->held_stream = STREAM; /* the verdict comes after the plan */
    GOOD(spk_pattern_create(mine, &indices, &pattern));
    GOOD(spk_plan_create_spmm(mine, pattern, &product, &wgmma, &plan)); /* now all is compiled */
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    state->held_stream = NULL;
    GOOD(spk_synchronize(mine, STREAM));
    const int live = state->live_memory, queries = state->queries, launches = state->launches_captured;
    state->capturing = 1;
    for (int i = 0; i < 1000; i++) { /* none takes a place for a verdict */
        GOOD(spk_pattern_create(mine, &indices, &pattern));
        GOOD(spk_plan_create_spmm(mine, pattern, &product, &wgmma, &plan));
        GOOD(spk_plan_run_spmm(plan, &args, STREAM));
        assert_int_equal(user.taken, 1);
        assert_int_equal(spk_pattern_get_info(pattern, &info), SPK_ERR_UNSUPPORTED);
        assert_non_null(strstr(spk_last_error(mine), "made while its stream was captured"));
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
        assert_int_equal(user.taken, 0);
    }
    state->capturing = 0;
    assert_int_equal(state->launches_captured, launches + 3 * 1000);
    assert_int_equal(state->live_memory, live);
    assert_int_equal(state->queries, queries);
    spk_context_destroy(&mine);
    spk_memory_release(context, &user.memory);
    spk_memory_release(context, (void **)&memory);
    spk_memory_release(context, (void **)&there);
}

static void plans_share_a_copy(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices),  .rows = 192, .cols = 256, .block_rows = 64, .block_cols = 64, .nnzb = 5, .row_offsets = right.offsets,
        .col_indices = right.columns};
    spk_pattern *pattern = NULL;
    spk_plan *plans[3] = {NULL, NULL, NULL};
    const spk_tune_options reference = {SPK_SIZED(spk_tune_options), .choice = "reference_cuda_spmm"};
    GOOD(spk_pattern_create(context, &indices, &pattern));
    const int live = state->live_memory;
    GOOD(spk_plan_create_spmm(context, pattern, &product, &reference, &plans[0]));
    assert_int_equal(state->live_memory, live + 1);
    GOOD(spk_plan_create_spmm(context, pattern, &product, &reference, &plans[1]));
    assert_int_equal(state->live_memory, live + 1);
    const spk_spmm turned = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16, .trans_a = SPK_TRANS};
    GOOD(spk_plan_create_spmm(context, pattern, &turned, &reference, &plans[2]));
    assert_int_equal(state->live_memory, live + 2);
    for (int i = 0; i < 3; i++)
        spk_plan_destroy(&plans[i]);
    assert_int_equal(state->live_memory, live + 2); /* given back with others: giving back waits for the device */
    int most = live;
    for (int i = 0; i < 200; i++) {
        GOOD(spk_plan_create_spmm(context, pattern, &product, &reference, &plans[0]));
        spk_plan_destroy(&plans[0]);
        most = state->live_memory > most ? state->live_memory : most;
    }
    assert_true(most > live + 32 && most <= live + 65);
    state->allocate = 2;
    assert_int_equal(spk_plan_create_spmm(context, pattern, &product, &reference, &plans[0]), SPK_ERR_OUT_OF_MEMORY);
    state->allocate = 0;
    assert_int_equal(state->live_memory, live);
    spk_pattern_destroy(&pattern);
}

/* ------------------------------------------------------------------------------------------------ decisions for masks that come and go */

static const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NEVER};

static bool remembered(spk_pattern *pattern, spk_decided *decided)
{
    spk_problem problem;
    spk_tune_options options;
    spk_asked asked;
    GOOD(spk_tune_options_read(&estimate, &options));
    GOOD(spk_problem_read(&spk_op_spmm, pattern, &product, &options, &problem));
    spk_problem_fold(&problem);
    return spk_asked_make(&problem, &options, &asked) && spk_decisions_find(context->decisions, &asked, decided);
}

static bool same_candidate(const spk_bound *bound, const spk_choice *choice)
{
    return bound->kernel == choice->kernel && memcmp(&bound->params, &choice->params, sizeof bound->params) == 0;
}

static void one_decision_for_equal_masks(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    arrays *there;
    spk_bsr_indices indices = on_device(&right, &there), longer = indices;
    spk_pattern *first = NULL, *second = NULL, *other = NULL;
    spk_plan *plan = NULL;
    spk_decided decided;
    spk_deferred_indices four = later;
    four.longest_row = 4;
    longer.deferred = &four;
    GOOD(spk_pattern_create(context, &indices, &first));
    GOOD(spk_pattern_create(context, &indices, &second));
    GOOD(spk_pattern_create(context, &longer, &other));
    assert_false(remembered(first, &decided));
    GOOD(spk_plan_create_spmm(context, first, &product, &estimate, &plan));
    assert_true(remembered(second, &decided));
    assert_true(same_candidate(&plan->bound, &decided.first));
    assert_true(decided.first.proof[0] != '\0');
    spk_plan_destroy(&plan);
    GOOD(spk_plan_create_spmm(context, second, &product, &estimate, &plan));
    assert_true(same_candidate(&plan->bound, &decided.first));
    assert_ptr_equal(plan->fallback.kernel, decided.fallback.kernel);
    assert_ptr_equal(plan->bound.problem.pattern, second);
    spk_plan_destroy(&plan);
    assert_false(remembered(other, &decided));
    spk_pattern_info info = {SPK_SIZED(spk_pattern_info)};
    GOOD(spk_pattern_get_info(second, &info)); /* the host knows more of it now */
    assert_false(remembered(second, &decided));
    assert_true(remembered(first, &decided));
    const int live = state->live_memory;
    for (int64_t fail = 0;; fail++) { /* of a remembered decision, too */
        assert_true(remembered(first, &decided));
        spk_mem_fail_after(fail);
        const spk_status status = spk_plan_create_spmm(context, first, &product, &estimate, &plan);
        spk_mem_fail_after(-1);
        assert_true(status == SPK_OK || status == SPK_ERR_OUT_OF_MEMORY);
        const bool whole = status == SPK_OK && (plan->fallback.kernel != NULL) == (decided.fallback.kernel != NULL);
        spk_plan_destroy(&plan);
        assert_int_equal(state->live_memory, live);
        if (whole)
            break;
    }
    spk_pattern_destroy(&first);
    spk_pattern_destroy(&second);
    spk_pattern_destroy(&other);
    spk_memory_release(context, (void **)&there);
}

/* What was proved when it was decided for, and refuted since, is not bound. */
static void a_refutation_ends_it(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    char cache[] = "/tmp/spk-deferred-XXXXXX", old[300], command[64];
    snprintf(old, sizeof old, "%s", getenv("SPARSEK_CACHE_DIR") != NULL ? getenv("SPARSEK_CACHE_DIR") : "");
    assert_non_null(mkdtemp(cache)); /* what is refuted here shall be so nowhere else */
    setenv("SPARSEK_CACHE_DIR", cache, 1);
    arrays *there;
    const spk_bsr_indices indices = on_device(&right, &there);
    spk_pattern *pattern = NULL;
    for (int second = 0; second < 2; second++) {
        spk_plan *plan = NULL;
        spk_decided decided;
        GOOD(spk_pattern_create(context, &indices, &pattern));
        GOOD(spk_plan_create_spmm(context, pattern, &product, &estimate, &plan));
        spk_plan_destroy(&plan);
        assert_true(remembered(pattern, &decided));
        const spk_choice *choice = second ? &decided.fallback : &decided.first;
        if (choice->kernel != NULL) {
            const spk_prepared candidate = {.kernel = choice->kernel, .params = choice->params};
            spk_proof_keep(context->device, &candidate, choice->proof, "it took the proving process with it");
        }
        GOOD(spk_plan_create_spmm(context, pattern, &product, &estimate, &plan));
        assert_false(same_candidate(second ? &plan->fallback : &plan->bound, choice) && choice->kernel != NULL);
        spk_plan_destroy(&plan);
        assert_true(remembered(pattern, &decided)); /* the one that took its place */
        spk_pattern_destroy(&pattern);
    }
    spk_memory_release(context, (void **)&there);
    spk_proofs_forget();
    setenv("SPARSEK_CACHE_DIR", old, 1);
    snprintf(command, sizeof command, "rm -r %s", cache);
    assert_int_equal(system(command), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(nothing_waits),
                                       TEST(tiles_are_listed_there),
                                       TEST(rows_with_lists_are_left_out),
                                       TEST(wrong_indices_fail_later),
                                       TEST(asking_waits_and_measures),
                                       TEST(refusals),
                                       TEST(failures_leave_nothing),
                                       TEST(the_callers_memory),
                                       TEST(captured_with_its_run),
                                       TEST(plans_share_a_copy),
                                       TEST(one_decision_for_equal_masks),
                                       TEST(a_refutation_ends_it)};
    return cmocka_run_group_tests(tests, prove_all, forget_all);
}

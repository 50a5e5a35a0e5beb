/* Plans on the test double of libcuda, with programs that NVRTC really compiles: pointers that a kernel does not take go to the plan's
 * second candidate. Where SPARSEK_NVRTC is not set, it says so and passes. */
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
#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/proof/proof_store.h"
#include "cublas_double.h"
#include "cuda_double.h"
#include "op/product.h"
#include "prove_all.h"
#include "registry/registry.h"

static void good(spk_status status, const char *call)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", call, spk_error_last());
}
#define GOOD(call) good(call, #call)

static bool have_nvrtc(void)
{
    const char *nvrtc = getenv("SPARSEK_NVRTC");
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    if (nvrtc != NULL && strcmp(nvrtc, "none") != 0)
        return true;
    printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
    return false;
}

static void misaligned_goes_to_the_second(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    cuda_double *state = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    const int offsets[] = {0, 1, 2}, columns[] = {0, 1};
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = 128,           .cols = 128,
                               .block_rows = 64,           .block_cols = 64,      .nnzb = 2,
                               .row_offsets = offsets,     .col_indices = columns};
    spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16, .dtype_b = SPK_F16, .dtype_d = SPK_F16, .compute = SPK_F32};
    spk_tune_options options = {SPK_SIZED(spk_tune_options),
                                .choice = "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"};
    char *memory[3];
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    GOOD(spk_pattern_create(context, &indices, &pattern));
    for (int i = 0; i < 3; i++)
        GOOD(spk_memory_allocate(context, 65536, (void **)&memory[i]));
    GOOD(spk_plan_create_spmm(context, pattern, &spmm, &options, &plan));
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = memory[0], .b = memory[1], .d = memory[2], .alpha = 1};
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    assert_string_equal(state->launched, "spmm_sm90_wgmma");
    args.b = memory[1] + 8;
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    assert_string_not_equal(state->launched, "spmm_sm90_wgmma");
    args.b = memory[1];
    args.values = memory[0] + 2;
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    assert_string_not_equal(state->launched, "spmm_sm90_wgmma");
    args.values = memory[0];
    args.d = memory[2] + 2; /* the kernel's own affair */
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    assert_string_equal(state->launched, "spmm_sm90_wgmma");
    spk_unbind(&plan->fallback); /* as where no second one could be proved: nothing runs, and nothing reads what it cannot */
    args.b = memory[1] + 8;
    state->launched = "nothing";
    assert_int_equal(spk_plan_run_spmm(plan, &args, NULL), SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(context), "is not aligned to 16 bytes, as spmm_sm90_wgmma needs"));
    assert_string_equal(state->launched, "nothing");
    args.b = memory[1];
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    spk_plan_destroy(&plan);
    for (int i = 0; i < 3; i++)
        spk_memory_release(context, (void **)&memory[i]);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    assert_int_equal(state->live_memory, 0);
}

/* ------------------------------------------------------------------------------------------------ batches and SDDMM */

typedef struct small {
    spk_context *context;
    spk_pattern *pattern;
    char *memory;
    cuda_double *state;
} small;

static void make_small(small *s)
{
    static const int offsets[] = {0, 1, 2}, columns[] = {0, 1};
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = 128,           .cols = 128,
                                     .block_rows = 64,           .block_cols = 64,      .nnzb = 2,
                                     .row_offsets = offsets,     .col_indices = columns};
    s->state = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &s->context));
    GOOD(spk_pattern_create(s->context, &indices, &s->pattern));
    GOOD(spk_memory_allocate(s->context, 1 << 20, (void **)&s->memory));
}

static void release_small(small *s)
{
    spk_memory_release(s->context, (void **)&s->memory);
    spk_pattern_destroy(&s->pattern);
    spk_context_destroy(&s->context);
}

/* Thread blocks of the launches of one run. */
static unsigned grid_of(small *s, const char *choice, int64_t batch)
{
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 8, .dtype_a = strncmp(choice, "spmm_sm80_mma", 13) == 0 ? SPK_F16 : SPK_F32,
                           .batch = batch};
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = s->memory, .b = s->memory + (1 << 18), .d = s->memory + (1 << 19),
                                .alpha = 1};
    spk_plan *plan = NULL;
    const int before = s->state->launches;
    GOOD(spk_plan_create_spmm(s->context, s->pattern, &spmm, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan));
    GOOD(spk_plan_run_spmm(plan, &args, NULL));
    assert_int_equal(s->state->launches, before + 1);
    spk_plan_destroy(&plan);
    return s->state->grid;
}

static void a_batch_is_one_launch(void **unused)
{
    (void)unused;
    static const char *const choices[] = {"reference_cuda_spmm", "spmm_cuda_simt TILE_N=32 THREAD_N=2 TILE_K=16 STAGES=3 SPLIT=0",
                                          "spmm_cuda_narrow ROWS=1 SPLIT=1 AHEAD=4"};
    small s;
    if (!have_nvrtc())
        return;
    make_small(&s);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        assert_int_equal(grid_of(&s, choices[i], 5), 5 * grid_of(&s, choices[i], 1));
    spk_plan *plan = NULL;
    const spk_spmm batch = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16, .batch = 5};
    const spk_tune_options groups = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .only = "spmm_sm90_groups"};
    assert_int_equal(spk_plan_create_spmm(s.context, s.pattern, &batch, &groups, &plan), SPK_ERR_NO_CANDIDATE);
    assert_non_null(strstr(spk_last_error(s.context), "it takes one product at a time, no batch"));
    release_small(&s);
}

static void sddmm_runs(void **unused)
{
    (void)unused;
    small s;
    spk_plan *plan = NULL;
    if (!have_nvrtc())
        return;
    make_small(&s);
    const spk_sddmm problem = {SPK_SIZED(spk_sddmm), .k = 32};
    const spk_sddmm_args args = {SPK_SIZED(spk_sddmm_args), .x = s.memory, .y = s.memory + (1 << 18), .d = s.memory + (1 << 19),
                                 .alpha = 1};
    const spk_tune_options reference = {SPK_SIZED(spk_tune_options), .choice = "reference_cuda_sddmm"};
    GOOD(spk_plan_create_sddmm(s.context, s.pattern, &problem, &reference, &plan));
    GOOD(spk_plan_run_sddmm(plan, &args, NULL));
    assert_string_equal(s.state->launched, "reference_cuda_sddmm");
    assert_int_equal(s.state->grid, 2 * 64 * 64 / 256);
    float host = 0;
    assert_int_equal(
        spk_plan_run_sddmm(plan, &(spk_sddmm_args){SPK_SIZED(spk_sddmm_args), .x = &host, .y = args.y, .d = args.d, .alpha = 1}, NULL),
        SPK_ERR_ARGUMENT);
    assert_non_null(strstr(spk_last_error(s.context), "args.x = "));
    spk_plan_destroy(&plan);
    release_small(&s);
}

/* A block a tile of queries; with SPLIT the parts are merged by a launch of their own. */
static void attention_runs(void **unused)
{
    (void)unused;
    static const struct {
        const char *choice, *launched;
        int launches;
        unsigned grid;
    } cases[] = {{"attention_sm80 WARPS=4 SIXTEENS=1 STEP=64 Q_HELD=0 SPLIT=1", "attention_sm80", 1, 2 * 4 * 2},
                 {"attention_sm80 WARPS=4 SIXTEENS=2 STEP=64 Q_HELD=1 SPLIT=1", "attention_sm80", 1, 4 * 2},
                 {"attention_sm80 WARPS=4 SIXTEENS=1 STEP=32 Q_HELD=0 SPLIT=4", "attention_merge", 2, 128 * 4 * 2},
                 {"attention_simt ROWS=32 WARPS=4 STEP=32 SPLIT=1", "attention_simt", 1, 4 * 4 * 2},
                 {"attention_simt ROWS=32 WARPS=4 STEP=32 SPLIT=4", "attention_merge", 2, 128 * 4 * 2}};
    small s;
    if (!have_nvrtc())
        return;
    make_small(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const spk_attention problem = {
            SPK_SIZED(spk_attention), .dtype = SPK_F16, .queries = 128, .keys = 128, .depth = 64, .heads = 4, .heads_kv = 2, .batch = 2};
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = cases[i].choice};
        spk_plan *plan = NULL;
        GOOD(spk_plan_create(s.context, NULL, &problem, &options, &plan));
        const size_t bytes = spk_plan_workspace_bytes(plan);
        char *work = NULL;
        GOOD(spk_memory_allocate(s.context, bytes + 64, (void **)&work));
        const spk_attention_args args = {
            SPK_SIZED(spk_attention_args), .q = s.memory,  .k = s.memory + (1 << 18), .v = s.memory + (1 << 19),
            .o = s.memory + (3 << 18),     .scale = 0.125, .workspace = work,         .workspace_bytes = bytes};
        const int before = s.state->launches;
        GOOD(spk_plan_run(plan, &args, NULL));
        assert_int_equal(s.state->launches, before + cases[i].launches);
        assert_string_equal(s.state->launched, cases[i].launched);
        assert_int_equal(s.state->grid, cases[i].grid);
        spk_memory_release(s.context, (void **)&work);
        spk_plan_destroy(&plan);
    }
    release_small(&s);
}

/* Numbers of the queries, the lists of a mask turned, grad_Q, grad_K and grad_V: the last launch has a block a tile of keys. On Hopper:
 * numbers of the queries, all gradients, the sums of grad_Q as its rows, of which the last has a block for 64 rows of each tile of queries,
 * or for 64 columns of each 80 rows. */
static void attention_backward_runs(void **unused)
{
    (void)unused;
    static const struct {
        const char *choice;
        int depth;
        bool masked;
        int launches;
        unsigned grid;
        const char *last;
    } cases[] = {{"attention_backward_sm80 WARPS=4 QUERIES=1 KEYS=1 STEP=64 ACROSS=64", 64, false, 3, 2 * 2 * 2, "attention_backward_keys"},
                 {"attention_backward_sm80 WARPS=4 QUERIES=1 KEYS=1 STEP=64 ACROSS=64", 64, true, 4, 2 * 2 * 2, "attention_backward_keys"},
                 {"attention_backward_sm80 WARPS=1 QUERIES=2 KEYS=2 STEP=32 ACROSS=32", 64, true, 4, 4 * 2 * 2, "attention_backward_keys"},
                 {"attention_backward_sm90 SHARERS=2 ROWS=128 LAG=1", 64, false, 3, 2 * 4 * 2, "attention_grad_q"},
                 {"attention_backward_sm90 SHARERS=2 ROWS=80 LAG=0", 72, false, 3, 2 * 2 * 4 * 2, "attention_grad_q"},
                 {"attention_backward_sm90 SHARERS=1 ROWS=64 LAG=0", 64, false, 3, 2 * 4 * 2, "attention_grad_q"},
                 {"attention_backward_sm90_two_pass SHARERS=1", 64, false, 3, 2 * 4 * 2 / 2, "attention_backward_sm90_two_pass"},
                 {"attention_backward_sm90_two_pass SHARERS=2", 64, false, 3, 4 * 2, "attention_backward_sm90_two_pass"}};
    small s;
    if (!have_nvrtc())
        return;
    make_small(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const spk_attention_backward problem = {SPK_SIZED(spk_attention_backward), .dtype = SPK_F16, .queries = 128, .keys = 128,
                                                .depth = cases[i].depth,           .heads = 4,       .heads_kv = 2,  .batch = 2};
        const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = cases[i].choice};
        spk_plan *plan = NULL;
        GOOD(spk_plan_create(s.context, cases[i].masked ? s.pattern : NULL, &problem, &options, &plan));
        const size_t bytes = spk_plan_workspace_bytes(plan);
        char *work = NULL, *outputs = NULL;
        assert_true(bytes >= sizeof(float) * 2 * 128 * 4 * 2);
        GOOD(spk_memory_allocate(s.context, bytes + 64, (void **)&work));
        GOOD(spk_memory_allocate(s.context, 3 << 18, (void **)&outputs));
        const spk_attention_backward_args args = {SPK_SIZED(spk_attention_backward_args),
                                                  .q = s.memory,
                                                  .k = s.memory + (1 << 17),
                                                  .v = s.memory + (2 << 17),
                                                  .o = s.memory + (3 << 17),
                                                  .lse = s.memory + (5 << 17),
                                                  .grad_o = s.memory + (6 << 17),
                                                  .grad_q = outputs,
                                                  .grad_k = outputs + (1 << 18),
                                                  .grad_v = outputs + (2 << 18),
                                                  .scale = 0.125,
                                                  .workspace = work,
                                                  .workspace_bytes = bytes};
        const int before = s.state->launches;
        GOOD(spk_plan_run(plan, &args, NULL));
        assert_int_equal(s.state->launches, before + cases[i].launches);
        assert_string_equal(s.state->launched, cases[i].last);
        assert_int_equal(s.state->grid, cases[i].grid);
        spk_memory_release(s.context, (void **)&outputs);
        spk_memory_release(s.context, (void **)&work);
        spk_plan_destroy(&plan);
    }
    release_small(&s);
}

/* ------------------------------------------------------------------------------------------------ cuBLAS block by block */

typedef struct product {
    spk_context *context;
    spk_pattern *pattern;
    spk_plan *plan;
    char *memory[3];
    spk_spmm_args args;
} product;

/* 4 x 3 blocks of 64 x 32 (op N), the rows of 2, 0 or 1, 3 and 1 blocks. */
static spk_status make_product(product *p, const spk_spmm *spmm, bool empty_row)
{
    static const int offsets[] = {0, 2, 3, 6, 7}, columns[] = {0, 2, 1, 0, 1, 2, 2}, offsets_empty[] = {0, 2, 2, 5, 6},
                     columns_empty[] = {0, 2, 0, 1, 2, 2};
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                               .rows = 256,
                               .cols = 96,
                               .block_rows = 64,
                               .block_cols = 32,
                               .nnzb = empty_row ? 6 : 7,
                               .row_offsets = empty_row ? offsets_empty : offsets,
                               .col_indices = empty_row ? columns_empty : columns};
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = "cublas_blocks"};
    memset(p, 0, sizeof *p);
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &p->context));
    GOOD(spk_pattern_create(p->context, &indices, &p->pattern));
    for (int i = 0; i < 3; i++)
        GOOD(spk_memory_allocate(p->context, 1 << 18, (void **)&p->memory[i]));
    p->args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = p->memory[0], .b = p->memory[1], .d = p->memory[2], .alpha = 0.5};
    return spk_plan_create_spmm(p->context, p->pattern, spmm, &options, &p->plan);
}

static void release_product(product *p)
{
    spk_plan_destroy(&p->plan);
    for (int i = 0; i < 3; i++)
        spk_memory_release(p->context, (void **)&p->memory[i]);
    spk_pattern_destroy(&p->pattern);
    spk_context_destroy(&p->context);
}

static cublas_double *open_cublas(void)
{
    setenv("SPARSEK_CUBLAS", CUBLAS_DOUBLE, 1);
    cublas_double *state = dlsym(dlopen(CUBLAS_DOUBLE, RTLD_NOW), "cublas_double_state");
    *state = (cublas_double){.fail_at = -1};
    return state;
}

static void blocks_in_passes(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    cublas_double *state = open_cublas();
    product p;
    GOOD(make_product(&p, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 40, .dtype_a = SPK_F32, .ldb = 48, .ldd = 44}, false));
    GOOD(spk_plan_run_spmm(p.plan, &p.args, (void *)0x100));
    assert_true(state->calls == 3 && state->stream == (void *)0x100 && state->workspace != NULL && state->workspace_bytes > 0);
    const int counts[] = {4, 2, 1};
    for (int j = 0; j < 3; j++) {
        assert_int_equal(state->call[j].count, counts[j]);
        assert_true(state->call[j].alpha == 0.5f && state->call[j].beta == (j > 0 ? 1.0f : 0.0f));
        assert_true(state->call[j].m == 40 && state->call[j].n == 64 && state->call[j].k == 32); /* D^T = B^T A^T */
        assert_true(state->call[j].op_a == 0 && state->call[j].op_b == 0 && state->call[j].lda == 48 && state->call[j].ldb == 32 &&
                    state->call[j].ldc == 44);
    }
    assert_ptr_equal((const char *)state->call[1].a, (const char *)state->call[0].a + 4 * sizeof(void *));
    release_product(&p);

    /* f16 by columns, with an activation, an empty row: sums in f32 of the workspace, then the epilogue. */
    *state = (cublas_double){.fail_at = -1};
    cuda_double *driver = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    const spk_spmm half = {SPK_SIZED(spk_spmm),       .n = 40, .dtype_a = SPK_F16, .layout_d = SPK_COL_MAJOR, .layout_b = SPK_COL_MAJOR,
                           .activation = SPK_ACT_RELU};
    GOOD(make_product(&p, &half, true));
    GOOD(spk_plan_run_spmm(p.plan, &p.args, NULL));
    assert_true(state->calls == 3 && state->call[0].count == 3 && state->call[0].m == 64 && state->call[0].n == 40 &&
                state->call[0].k == 32);
    assert_true(state->call[0].op_a == 1 && state->call[0].op_b == 0 && state->call[0].lda == 32 && state->call[0].ldb == 96 &&
                state->call[0].ldc == 256);
    assert_true(state->call[0].alpha == 1.0f && state->call[0].type_a == 2 && state->call[0].type_c == 0 && state->call[0].compute == 68);
    assert_string_equal(driver->launched, "finish_product");
    p.args.b = p.memory[1] + 2; /* the tensor cores want 16 bytes */
    GOOD(spk_plan_run_spmm(p.plan, &p.args, NULL));
    assert_int_equal(state->calls, 3);
    release_product(&p);
}

static void cublas_fails(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    cublas_double *state = open_cublas();
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 40, .dtype_a = SPK_F32};
    product p;
    GOOD(make_product(&p, &spmm, false));
    state->batched = 13;
    state->fail_at = 1;
    assert_int_equal(spk_plan_run_spmm(p.plan, &p.args, NULL), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_last_error(p.context), "cublasGemmBatchedEx: cuBLAS status 13"));
    assert_int_equal(state->calls, 2);
    state->batched = 3;
    state->fail_at = 2;
    assert_int_equal(spk_plan_run_spmm(p.plan, &p.args, NULL), SPK_ERR_OUT_OF_MEMORY);
    release_product(&p);
}

/* ------------------------------------------------------------------------------------------------ proofs */

static void refute(spk_context *context, spk_pattern *pattern, const spk_spmm *spmm, const char *choice)
{
    spk_problem problem;
    char key[SPK_PROOF_KEY_BYTES];
    const size_t length = strcspn(choice, " ");
    char name[64] = "";
    memcpy(name, choice, length);
    spk_prepared candidate = {.kernel = spk_kernel_by_name(name)};
    GOOD(spk_params_parse(candidate.kernel, choice + length, &candidate.params));
    GOOD(spk_problem_read(&spk_op_spmm, pattern, spmm, NULL, &problem));
    spk_proof_key(context->device, &problem, candidate.kernel, &candidate.params, key);
    spk_proof_keep(context->device, &candidate, key, "it took the proving process with it");
}

/* Without a prover only what committed runs proved is bound, and what is on record as refuted never, pinned or not. */
static void only_the_proved_run(void **unused)
{
    (void)unused;
    if (!have_nvrtc())
        return;
    char chosen[200], folder[] = "/tmp/spk-plan-XXXXXX", old[300], command[64];
    spk_plan *plan = NULL;
    small s;
    make_small(&s);
    snprintf(old, sizeof old, "%s", getenv("SPARSEK_CACHE_DIR") != NULL ? getenv("SPARSEK_CACHE_DIR") : "");
    assert_non_null(mkdtemp(folder)); /* what is refuted here shall be so nowhere else */
    setenv("SPARSEK_CACHE_DIR", folder, 1);
    setenv("SPARSEK_PROVER", "none", 1);
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 8, .dtype_a = SPK_F32, .activation = SPK_ACT_RELU};
    const spk_tune_options estimate = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NEVER};
    GOOD(spk_plan_create_spmm(s.context, s.pattern, &spmm, &estimate, &plan));
    snprintf(chosen, sizeof chosen, "%s", spk_plan_choice(plan));
    spk_plan_destroy(&plan);
    const spk_tune_options pinned = {SPK_SIZED(spk_tune_options), .choice = chosen};
    refute(s.context, s.pattern, &spmm, chosen);
    assert_int_equal(spk_plan_create_spmm(s.context, s.pattern, &spmm, &pinned, &plan), SPK_ERR_NO_CANDIDATE);
    assert_non_null(strstr(spk_last_error(s.context), "it never runs in this process"));
    assert_non_null(strstr(spk_last_error(s.context), "it took the proving process with it"));
    GOOD(spk_plan_create_spmm(s.context, s.pattern, &spmm, &estimate, &plan));
    assert_string_not_equal(spk_plan_choice(plan), chosen);
    spk_plan_destroy(&plan);

    spk_proved_use(NULL, 0);
    spk_proofs_forget();
    const int launches = s.state->launches;
    assert_int_equal(spk_plan_create_spmm(s.context, s.pattern, &spmm, &estimate, &plan), SPK_ERR_NO_CANDIDATE);
    assert_non_null(strstr(spk_last_error(s.context), "install sparsek-prover"));
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    GOOD(spk_plan_create_spmm(s.context, s.pattern, &spmm,
                              &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = "reference_cuda_spmm"}, &plan));
    GOOD(spk_plan_get_info(plan, &info));
    assert_string_equal(info.why, "pinned, not proved");
    spk_plan_destroy(&plan);
    assert_int_equal(s.state->launches, launches);
    unsetenv("SPARSEK_PROVER");
    setenv("SPARSEK_CACHE_DIR", old, 1);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    release_small(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(misaligned_goes_to_the_second),
                                       cmocka_unit_test(a_batch_is_one_launch),
                                       cmocka_unit_test(sddmm_runs),
                                       cmocka_unit_test(attention_runs),
                                       cmocka_unit_test(attention_backward_runs),
                                       cmocka_unit_test(blocks_in_passes),
                                       cmocka_unit_test(cublas_fails),
                                       cmocka_unit_test(only_the_proved_run)};
    return cmocka_run_group_tests(tests, prove_all, forget_all);
}

/* GEMM on the test double of libcuda. cuBLASLt's double computes: what the row asks of it is right, in every layout, batch and epilogue
 * that it takes part in. Needs NVRTC, but no device; where SPARSEK_NVRTC is not set, it says so and passes. */
#include <dlfcn.h>

#include "cublaslt_double.h"
#include "cuda_double.h"
#include "gemm_case.h"
#include "prove_all.h"

static spk_context *device; /* operation_case.h's context is the host's */

static void good(spk_status status, const char *call)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", call, spk_last_error(device));
}
#define GOOD(call) good(call, #call)

static bool begin(void)
{
    const char *nvrtc = getenv("SPARSEK_NVRTC");
    if (nvrtc == NULL || strcmp(nvrtc, "none") == 0) {
        printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
        return false;
    }
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    setenv("SPARSEK_CUBLASLT", CUBLASLT_DOUBLE, 1);
    assert_int_equal(set_up(NULL), 0);
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &device));
    return true;
}

static void end(void)
{
    spk_context_destroy(&device);
    tear_down(NULL);
}

static cuda_double *driver(void)
{
    return dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
}

static cublaslt_double *library(void)
{
    return dlsym(dlopen(CUBLASLT_DOUBLE, RTLD_NOW), "cublaslt_double_state");
}

/* ------------------------------------------------------------------------------------------------ a case on the device */

typedef struct there {
    char *memory[7], *work;
    spk_gemm_args args;
} there;

static void send(const gemm_case *t, const spk_plan *plan, int shift, there *out)
{
    const array *const all[] = {&t->a, &t->b, &t->c, &t->d, &t->residual, &t->preact, &t->bias};
    for (int i = 0; i < 7; i++) {
        const size_t element = spk_dtype_bytes(all[i]->dtype), bytes = (size_t)all[i]->elements * element;
        GOOD(spk_memory_allocate(device, bytes + 64, (void **)&out->memory[i]));
        memcpy(out->memory[i] + (size_t)shift * element, all[i]->memory, bytes);
        out->memory[i] += (size_t)shift * element;
    }
    GOOD(spk_memory_allocate(device, spk_plan_workspace_bytes(plan) + 64, (void **)&out->work));
    out->args = t->args;
    out->args.a = out->memory[0];
    out->args.b = out->memory[1];
    out->args.c = out->memory[2];
    out->args.d = out->memory[3];
    out->args.residual = out->memory[4];
    out->args.preact = out->memory[5];
    out->args.bias = out->memory[6];
    out->args.workspace = out->work;
    out->args.workspace_bytes = spk_plan_workspace_bytes(plan) + 64;
}

static void release(const gemm_case *t, int shift, there *out)
{
    const array *const all[] = {&t->a, &t->b, &t->c, &t->d, &t->residual, &t->preact, &t->bias};
    for (int i = 0; i < 7; i++) {
        out->memory[i] -= (size_t)shift * spk_dtype_bytes(all[i]->dtype);
        spk_memory_release(device, (void **)&out->memory[i]);
    }
    spk_memory_release(device, (void **)&out->work);
}

/* The plain sums that the library left in the workspace for the program after it. */
static void check_sums(const gemm_case *t, const there *at, uint64_t seed)
{
    const spk_gemm *p = &t->problem;
    const bool rows = p->layout_d == SPK_ROW_MAJOR;
    const int64_t length = rows ? p->n : p->m, lines = rows ? p->m : p->n, ld = (length + 7) / 8 * 8;
    const spk_dtype dtype = p->dtype_a == SPK_F64 ? SPK_F64 : SPK_F32;
    for (int64_t item = 0; item < t->items; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < p->k; k++) {
                    const double term = after(&t->a, p->trans_a, item, i, k) * after(&t->b, p->trans_b, item, k, j);
                    sum += term;
                    size += fabs(term);
                }
                const double is = spk_value_get(at->work, dtype, (item * lines + (rows ? i : j)) * ld + (rows ? j : i));
                if (!(fabs(is - sum) <= 1e-6 * size))
                    fail_msg("seed %llu: the sum of D[%lld][%lld][%lld] is %.9g, expected %.9g", (unsigned long long)seed, (long long)item,
                             (long long)i, (long long)j, is, sum);
            }
}

enum { EVERY = 100 }; /* of the first problems all are tried, after them those that the library can do by itself */

typedef struct tally {
    int direct, after, fused, unaligned, batches;
} tally;

static void multiply(gemm_case *t, uint64_t seed, tally *count)
{
    spk_plan *plan = NULL;
    there at;
    const int shift = seed % 3 == 0, rank = (int)(seed % 4);
    char choice[32];
    snprintf(choice, sizeof choice, "cublas_gemm ALGO=%d", rank);
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice};
    t->problem.assume_finite = seed % 2 || seed > EVERY;
    const spk_status status = spk_plan_create_gemm(device, &t->problem, &options, &plan);
    if (status == SPK_ERR_NO_CANDIDATE)
        return;
    GOOD(status);
    send(t, plan, shift, &at);
    cublaslt_double *lt = library();
    const int before = lt->products;
    GOOD(spk_plan_run_gemm(plan, &at.args, NULL));
    assert_int_equal(lt->products, before + 1);
    if (lt->d == at.args.d) {
        memcpy(t->d.memory, at.args.d, (size_t)t->d.elements * spk_dtype_bytes(t->d.dtype));
        check_gemm(t, seed, choice);
        count->direct++;
        count->fused += lt->epilogue != 1;
    } else {
        check_sums(t, &at, seed);
        assert_string_equal(driver()->launched, "finish_product");
        count->after++;
    }
    count->unaligned += !lt->was_aligned;
    count->batches += t->items > 1;
    assert_int_equal(lt->rank, lt->was_aligned || rank < 3 ? rank : 2); /* of those for other arrays the last */
    release(t, shift, &at);
    spk_plan_destroy(&plan);
}

/* More than a plain product. */
static bool the_library_can(const spk_gemm *p)
{
    const spk_bias along = p->layout_d == SPK_ROW_MAJOR ? SPK_BIAS_PER_COL : SPK_BIAS_PER_ROW;
    const bool half = p->dtype_d == SPK_F16 || p->dtype_d == SPK_BF16, act = p->activation != SPK_ACT_NONE, bias = p->bias == along;
    return (act || bias) && (!act || p->activation == SPK_ACT_RELU || (half && p->activation == SPK_ACT_GELU_TANH)) &&
           (bias || p->bias == SPK_BIAS_NONE) && p->residual == SPK_RESIDUAL_NONE && !p->keep_preact;
}

static void cublas_computes_what_is_asked(void **unused)
{
    (void)unused;
    if (!begin())
        return;
    tally count = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        spk_rng rng;
        gemm_case t;
        spk_rng_seed(&rng, seed);
        const int64_t m = pick(&rng, 0, 24), n = pick(&rng, 1, 24), k = pick(&rng, 0, 24);
        draw_gemm(&rng, &t, m, n, k, 4);
        while (seed > EVERY && !the_library_can(&t.problem)) {
            free_gemm(&t);
            draw_gemm(&rng, &t, m, n, k, 4);
        }
        multiply(&t, seed, &count);
        free_gemm(&t);
    }
    print_message("%d direct, %d fused, %d with a program after it, %d unaligned, %d batches\n", count.direct, count.fused, count.after,
                  count.unaligned, count.batches);
    assert_true(count.direct > 30 && count.after > 30 && count.fused > 60 && count.unaligned > 30 && count.batches > 30);
    assert_int_equal(library()->live, 0);
    end();
}

/* ------------------------------------------------------------------------------------------------ recommendations */

static spk_status plan_of(const spk_gemm *gemm, const char *choice, spk_plan **plan)
{
    spk_gemm finite = *gemm;
    finite.assume_finite = 1;
    return spk_plan_create_gemm(device, &finite, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, plan);
}

static void fewer_recommendations(void **unused)
{
    (void)unused;
    if (!begin())
        return;
    cublaslt_double *lt = library();
    spk_plan *plan = NULL;
    const spk_gemm plain = {SPK_SIZED(spk_gemm), .m = 32, .n = 16, .k = 24},
                   relu = {SPK_SIZED(spk_gemm), .m = 32, .n = 16, .k = 24, .activation = SPK_ACT_RELU};
    GOOD(plan_of(&plain, "cublas_gemm ALGO=3", &plan));
    assert_int_equal(spk_plan_workspace_bytes(plan), lt->workspace);
    spk_plan_destroy(&plan);
    assert_int_equal(plan_of(&plain, "cublas_gemm ALGO=4", &plan), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_last_error(device), "cuBLASLt recommends 4 algorithms for this product: there is no ALGO=4"));
    assert_int_equal(plan_of(&relu, "cublas_gemm ALGO=4", &plan), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_last_error(device), "there is no ALGO=4"));
    lt->knows_epilogues = 0; /* then a program of ours does it */
    GOOD(plan_of(&relu, "cublas_gemm ALGO=3", &plan));
    assert_true(spk_plan_workspace_bytes(plan) >= 32 * 16 * 4);
    spk_plan_destroy(&plan);
    lt->knows_epilogues = 1;
    lt->recommended = 0;
    assert_int_equal(plan_of(&plain, "cublas_gemm ALGO=0", &plan), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_last_error(device), "recommends nothing"));
    lt->recommended = 4;
    assert_int_equal(lt->live, 0);
    end();
}

/* ------------------------------------------------------------------------------------------------ our own */

static void the_reference_covers_d(void **unused)
{
    (void)unused;
    if (!begin())
        return;
    spk_plan *plan = NULL;
    char *memory = NULL;
    const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = 100, .n = 33, .k = 7, .batch = 3, .activation = SPK_ACT_SILU};
    GOOD(spk_memory_allocate(device, 1 << 20, (void **)&memory));
    GOOD(plan_of(&gemm, "reference_cuda_gemm", &plan));
    const spk_gemm_args args = {SPK_SIZED(spk_gemm_args), .a = memory, .b = memory + (1 << 18), .d = memory + (1 << 19), .alpha = 1};
    GOOD(spk_plan_run_gemm(plan, &args, NULL));
    assert_string_equal(driver()->launched, "reference_cuda_gemm");
    assert_int_equal(driver()->grid, (3 * 100 * 33 + 255) / 256);
    spk_plan_destroy(&plan);
    spk_memory_release(device, (void **)&memory);
    end();
}

typedef struct launch_case {
    const char *choice;
    spk_dtype dtype;
    int64_t m, n, k, batch;
    unsigned grid; /* of the last launch */
    int launches;
    size_t workspace;
} launch_case;

/* Thread blocks for all tiles of all items, and where K is cut, a second launch with a thread for each 16 bytes of a tile of sums. */
static void tiles_cover_d(void **unused)
{
    (void)unused;
    static const launch_case cases[] = {
        {"gemm_sm80_mma HEIGHT=128 WIDTH=128 TILE_K=32 STAGES=3 SPLIT=1", SPK_F16, 300, 500, 588, 1, 3 * 4, 1, 0},
        {"gemm_sm80_mma HEIGHT=128 WIDTH=128 TILE_K=32 STAGES=3 SPLIT=1", SPK_BF16, 300, 500, 588, 5, 5 * 3 * 4, 1, 0},
        {"gemm_sm80_mma HEIGHT=64 WIDTH=32 TILE_K=32 STAGES=4 SPLIT=4", SPK_F16, 100, 50, 1100, 3, 3 * 4 * 64 * 10 / 128, 2,
         (size_t)3 * 4 * 4 * 64 * 40 * 4},
        {"gemm_sm80_dmma HEIGHT=32 WIDTH=64 TILE_K=16 STAGES=3 SPLIT=1", SPK_F64, 65, 65, 10, 2, 2 * 3 * 2, 1, 0},
        {"gemm_cuda_simt HEIGHT=32 TILE_N=32 THREAD_N=4 TILE_K=16 STAGES=3 SPLIT=1", SPK_F32, 70, 40, 9, 1, 2, 1, 0},
        {"gemm_cuda_simt HEIGHT=8 TILE_N=128 THREAD_N=4 TILE_K=16 STAGES=3 SPLIT=1", SPK_F32, 3, 200, 9, 1, 1, 1, 0}};
    if (!begin())
        return;
    char *memory = NULL;
    GOOD(spk_memory_allocate(device, 8 << 20, (void **)&memory));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const launch_case *c = &cases[i];
        const spk_gemm gemm = {SPK_SIZED(spk_gemm),     .m = c->m, .n = c->n, .k = c->k, .batch = c->batch, .dtype_a = c->dtype,
                               .bias = SPK_BIAS_PER_COL};
        const spk_gemm_args args = {SPK_SIZED(spk_gemm_args),   .a = memory, .b = memory + (2 << 20), .d = memory + (5 << 20),
                                    .bias = memory + (7 << 20), .alpha = 1};
        spk_plan *plan = NULL;
        GOOD(plan_of(&gemm, c->choice, &plan));
        assert_int_equal(spk_plan_workspace_bytes(plan), c->workspace);
        const int before = driver()->launches;
        GOOD(spk_plan_run_gemm(plan, &args, NULL));
        assert_int_equal(driver()->launches, before + c->launches);
        if (driver()->grid != c->grid)
            fail_msg("%s: %u thread blocks, expected %u", c->choice, driver()->grid, c->grid);
        spk_plan_destroy(&plan);
    }
    spk_memory_release(device, (void **)&memory);
    end();
}

/* What a row is not for. */
static void rows_say_what_they_are_for(void **unused)
{
    (void)unused;
    static const struct {
        const char *choice, *why;
        spk_dtype dtype, compute;
        int64_t m, n, k;
    } cases[] = {{"gemm_sm80_mma", "it is for f16, bf16, tf32", SPK_F32, SPK_F32, 64, 64, 64},
                 {"gemm_sm80_dmma", "it is for f64", SPK_F32, SPK_F32, 64, 64, 64},
                 {"gemm_cuda_simt", "it is for f32, f64, f16, bf16", SPK_F32, SPK_TF32, 64, 64, 64},
                 {"gemm_sm80_mma HEIGHT=128 WIDTH=64 TILE_K=32 STAGES=3 SPLIT=1", "a lower tile", SPK_F16, SPK_F32, 64, 64, 64},
                 {"gemm_sm80_mma HEIGHT=64 WIDTH=128 TILE_K=32 STAGES=3 SPLIT=1", "a narrower tile", SPK_F16, SPK_F32, 64, 64, 64},
                 {"gemm_sm80_mma HEIGHT=64 WIDTH=64 TILE_K=32 STAGES=3 SPLIT=2", "too short", SPK_F16, SPK_F32, 64, 64, 511},
                 {"gemm_sm80_mma HEIGHT=64 WIDTH=64 TILE_K=32 STAGES=3 SPLIT=2", "fewer parts", SPK_F16, SPK_F32, 4096, 4096, 4096},
                 {"gemm_sm80_mma HEIGHT=32 WIDTH=32 TILE_K=32 STAGES=3 SPLIT=1", "small products", SPK_F16, SPK_F32, 4096, 4096, 4096}};
    if (!begin())
        return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = cases[i].m,           .n = cases[i].n,
                               .k = cases[i].k,     .dtype_a = cases[i].dtype, .compute = cases[i].compute};
        spk_plan *plan = NULL;
        assert_int_equal(plan_of(&gemm, cases[i].choice, &plan), SPK_ERR_NO_CANDIDATE);
        if (strstr(spk_last_error(device), cases[i].why) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].choice, spk_last_error(device), cases[i].why);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cublas_computes_what_is_asked), cmocka_unit_test(fewer_recommendations),
                                       cmocka_unit_test(the_reference_covers_d), cmocka_unit_test(tiles_cover_d),
                                       cmocka_unit_test(rows_say_what_they_are_for)};
    return cmocka_run_group_tests(tests, prove_all, forget_all);
}

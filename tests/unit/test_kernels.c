/* Every own CPU kernel, every candidate of it, against a long double product with everything poisoned that must not matter; and the parts
 * that the kernels share: the epilogue and the partition of block rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "type/half.h"
#include "kernel/threads.h"
#include "kernel_case.h"
#include "registry/registry.h"
#include "op/product.h"

static uint64_t seed_of_the_day(void)
{
    const char *text = getenv("SPARSEK_TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : 20261121;
}

static spk_device *open_device(int threads)
{
    spk_executor executor = {.threads = threads};
    spk_device *device = NULL;
    must(spk_backend_cpu.open(&spk_mem_system, "cpu", &executor, &device));
    return device;
}

/* All applicable candidates of all own rows; returns how many ran. */
static int run_all(kernel_case *c, spk_device *device, const char *label)
{
    const spk_kernel *table;
    int rows = spk_kernels(&table), ran = 0;
    for (int r = 0; r < rows; r++) {
        if (table[r].kind != SPK_KIND_OWN && table[r].kind != SPK_KIND_REFERENCE)
            continue;
        for (int i = 0; i < spk_params_count(&table[r]); i++) {
            spk_params params;
            const char *why;
            char what[256] = "", text[SPK_MAX_PARAMS_TEXT];
            spk_params_get(&table[r], i, &params);
            if (!spk_candidate_applicable(&table[r], &params, &c->problem, device, &why))
                continue;
            assert_true(table[r].ops->predict_us(&c->problem, device, &params) >= 0);
            ran++;
            if (case_run(c, &table[r], &params, device, what, sizeof what) != 0) {
                spk_params_text(&table[r], &params, text, sizeof text);
                fail_msg("%s %s, %d threads, %s: %s", table[r].name, text, device->executor.threads, label, what);
            }
        }
    }
    return ran;
}

static int64_t slack(spk_rng *rng, int64_t tight)
{
    return (tight > 0 ? tight : 1) + (spk_rng_below(rng, 2) == 0 ? 0 : (int64_t)spk_rng_below(rng, 9));
}

static spk_spmm random_spmm(spk_rng *rng, const case_shape *shape, int64_t n)
{
    spk_spmm s = {SPK_SIZED(spk_spmm), .n = n};
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    s.dtype_a = dtypes[spk_rng_below(rng, sizeof dtypes / sizeof dtypes[0])];
    if (s.dtype_a == SPK_F16 || s.dtype_a == SPK_BF16)
        s.dtype_d = spk_rng_below(rng, 2) == 0 ? SPK_F32 : s.dtype_a;
    if (s.dtype_a == SPK_F32 && spk_rng_below(rng, 8) == 0)
        s.compute = SPK_TF32; /* a permission: exact products will do */
    s.trans_a = spk_rng_below(rng, 2) == 0 ? SPK_NO_TRANS : SPK_TRANS;
    s.block_layout = spk_rng_below(rng, 2) == 0 ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
    s.layout_b = spk_rng_below(rng, 3) > 0 ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
    s.layout_d = spk_rng_below(rng, 3) > 0 ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
    int64_t m = s.trans_a == SPK_TRANS ? shape->cols : shape->rows, k = s.trans_a == SPK_TRANS ? shape->rows : shape->cols;
    s.ldb = slack(rng, s.layout_b == SPK_ROW_MAJOR ? n : k);
    int64_t tight = s.layout_d == SPK_ROW_MAJOR ? n : m;
    s.ldd = slack(rng, tight);
    s.ldc = spk_rng_below(rng, 2) == 0 ? s.ldd : slack(rng, tight);
    s.ldr = spk_rng_below(rng, 2) == 0 ? s.ldd : slack(rng, tight);
    s.ldp = slack(rng, tight);
    if (spk_rng_below(rng, 3) > 0) { /* else a plain product */
        s.use_c = (int)spk_rng_below(rng, 2);
        s.bias = (spk_bias)spk_rng_below(rng, 3);
        s.activation = (spk_activation)spk_rng_below(rng, 5);
        s.residual = (spk_residual)spk_rng_below(rng, 3);
        s.keep_preact = (int)spk_rng_below(rng, 2);
    }
    return s;
}

static void test_random_problems(void **state)
{
    (void)state;
    static const int blocks[][2] = {{1, 1}, {3, 3}, {1, 16}, {24, 40}, {64, 32}, {7, 5},  {256, 3}, {16, 16},
                                    {2, 2}, {6, 6}, {4, 4},  {8, 8},   {32, 32}, {5, 64}, {2, 9},   {16, 1}};
    static const int64_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 48, 65, 100, 130};
    const int cases = getenv("SPARSEK_TEST_QUICK") != NULL ? 48 : 160;
    enum { BLOCKS = sizeof blocks / sizeof blocks[0], WIDTHS = sizeof widths / sizeof widths[0] };
    const uint64_t seed = seed_of_the_day();
    spk_device *devices[3] = {open_device(1), open_device(2), open_device(3)};
    int ran = 0;
    for (int i = 0; i < cases; i++) {
        spk_rng rng;
        spk_rng_seed(&rng, seed + (uint64_t)i);
        const int *block = blocks[i % BLOCKS];
        case_shape shape = {.block_rows = block[0], .block_cols = block[1], .empty_rows = (int)spk_rng_below(&rng, 2)};
        shape.rows = 1 + (int64_t)spk_rng_below(&rng, (uint64_t)(block[0] * 4 > 40 ? block[0] * 4 : 40) < 300
                                                          ? (uint64_t)(block[0] * 4 > 40 ? block[0] * 4 : 40)
                                                          : 300);
        shape.cols = 1 + (int64_t)spk_rng_below(&rng, (uint64_t)(block[1] * 4 > 40 ? block[1] * 4 : 40));
        shape.density = 0.05 + 0.6 * spk_rng_uniform(&rng);
        spk_spmm spmm = random_spmm(&rng, &shape, widths[spk_rng_below(&rng, WIDTHS)]);
        double alpha = spk_rng_below(&rng, 2) == 0 ? 1 : spk_rng_normal(&rng),
               beta = spk_rng_below(&rng, 3) == 0 ? 0 : spk_rng_normal(&rng);
        kernel_case c;
        case_make(&c, &rng, make_pattern(&rng, &shape), &spmm, alpha, beta, (int)spk_rng_below(&rng, 3));
        char label[320], epilogue[96];
        spk_epilogue_text(&c.problem.epilogue, epilogue, sizeof epilogue);
        snprintf(label, sizeof label, "SPARSEK_TEST_SEED=%llu case %d: %lldx%lld blocks %dx%d n %lld %s op %c layouts %d%d%d %s",
                 (unsigned long long)seed, i, (long long)shape.rows, (long long)shape.cols, block[0], block[1], (long long)spmm.n,
                 spk_dtype_name(spmm.dtype_a), spmm.trans_a == SPK_TRANS ? 'T' : 'N', spmm.block_layout, spmm.layout_b, spmm.layout_d,
                 epilogue);
        ran += run_all(&c, devices[i % 3], label);
        case_release(&c);
    }
    assert_true(ran > 3 * cases);
    for (int i = 0; i < 3; i++)
        spk_backend_cpu.close(&devices[i]);
}

/* Large enough that tasks are many: groups of panels, parts of block rows, packing in its own pass. */
static void test_many_tasks(void **state)
{
    (void)state;
    static const int64_t widths[] = {300, 43, 96, 300, 43};
    const uint64_t seed = seed_of_the_day() + 1000;
    for (int i = 0; i < 10; i++) {
        spk_rng rng;
        spk_rng_seed(&rng, seed + (uint64_t)i);
        spk_device *device = open_device(i == 5 || i == 9 ? 16 : 1 + i % 4);
        case_shape shape = {
            .rows = 203, .cols = 190, .block_rows = i % 2 == 0 ? 8 : 3, .block_cols = i % 2 == 0 ? 16 : 3, .density = 0.3, .empty_rows = 1};
        spk_spmm spmm = {SPK_SIZED(spk_spmm),
                         .n = widths[i / 2],
                         .dtype_a = i >= 6       ? i % 2 == 0 ? SPK_F16 : SPK_BF16
                                    : i % 3 == 0 ? SPK_F64
                                                 : SPK_F32,
                         .layout_b = i % 3 == 1 ? SPK_COL_MAJOR : SPK_ROW_MAJOR,
                         .bias = i % 2 == 0 ? SPK_BIAS_PER_ROW : SPK_BIAS_NONE,
                         .activation = i % 2 == 0 ? SPK_ACT_GELU_ERF : SPK_ACT_NONE};
        kernel_case c;
        case_make(&c, &rng, make_pattern(&rng, &shape), &spmm, 1, 0, 0);
        char label[64];
        snprintf(label, sizeof label, "SPARSEK_TEST_SEED=%llu many tasks %d", (unsigned long long)seed_of_the_day(), i);
        assert_true(run_all(&c, device, label) > 1);
        case_release(&c);
        spk_backend_cpu.close(&device);
    }
}

/* Nothing stored, nothing to sum, nothing to write: D is the epilogue of 0, or stays as it is. */
static void test_empty(void **state)
{
    (void)state;
    static const case_shape shapes[] = {
        {0, 10, 4, 4, 0.5, 0}, {10, 0, 4, 4, 0.5, 0}, {0, 0, 3, 5, 0.5, 0}, {13, 11, 4, 4, 0, 0}, {13, 11, 16, 16, 0, 0}};
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    spk_device *device = open_device(2);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int variant = 0; variant < 16; variant++) {
            spk_rng rng;
            spk_rng_seed(&rng, 77 + i);
            spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = variant & 1 ? 0 : 19, .dtype_a = dtypes[variant / 2 % 4]};
            if (variant & 8) {
                spmm.use_c = 1;
                spmm.bias = SPK_BIAS_PER_COL;
                spmm.activation = SPK_ACT_SILU;
                spmm.residual = SPK_RESIDUAL_ADD;
            }
            kernel_case c;
            case_make(&c, &rng, make_pattern(&rng, &shapes[i]), &spmm, 2, 0.5, 0);
            char label[64];
            snprintf(label, sizeof label, "empty shape %zu variant %d", i, variant);
            assert_true(run_all(&c, device, label) >= 2);
            case_release(&c);
        }
    spk_backend_cpu.close(&device);
}

/* One run of a candidate, where it is for the problem; 0: it is not. */
static int run_once(kernel_case *c, const spk_kernel *kernel, int candidate, spk_device *device)
{
    spk_params params;
    spk_bound bound;
    const char *why;
    spk_params_get(kernel, candidate, &params);
    if (!spk_candidate_applicable(kernel, &params, &c->problem, device, &why))
        return 0;
    must(spk_bind(kernel, &params, &c->problem, device, &bound));
    c->args.workspace = need(aligned_alloc(64, (bound.workspace_bytes + 127) / 64 * 64));
    c->args.d = c->operands[SPK_D];
    must(spk_bound_run(&bound, &c->args, NULL));
    free(c->args.workspace);
    spk_unbind(&bound);
    return 1;
}

/* An infinity or NaN that a stored block touches does reach its rows, and no others. */
static void test_non_finite_reaches_its_rows_only(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    const int64_t size = 24, n = 17;
    const int64_t offsets[] = {0, 1, 2, 3}, columns[] = {0, 1, 1}; /* block rows 1 and 2 touch rows 8..15 of B */
    const spk_kernel *table;
    int rows = spk_kernels(&table);
    for (int r = 0; r < rows; r++)
        for (int i = 0; (table[r].kind == SPK_KIND_OWN || table[r].kind == SPK_KIND_REFERENCE) && i < spk_params_count(&table[r]); i++)
            for (int narrow = 0; narrow < 2; narrow++) {
                const spk_dtype dtype = strstr(table[r].name, "f64") != NULL    ? SPK_F64
                                        : strstr(table[r].name, "half") != NULL ? SPK_F16
                                        : strstr(table[r].name, "bf16") != NULL ? SPK_BF16
                                                                                : SPK_F32;
                spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                           .rows = size,
                                           .cols = size,
                                           .block_rows = 8,
                                           .block_cols = 8,
                                           .nnzb = 3,
                                           .row_offsets = offsets,
                                           .col_indices = columns,
                                           .index_type = SPK_INDEX_I64};
                spk_pattern *pattern = NULL;
                must(spk_pattern_make(&spk_mem_system, &indices, &pattern));
                spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = narrow ? 1 : n, .dtype_a = dtype};
                kernel_case c;
                spk_rng rng;
                spk_rng_seed(&rng, 5);
                case_make(&c, &rng, pattern, &spmm, 1, 0, 0);
                put(c.operands[SPK_B], c.problem.b.dtype, 10 * c.problem.b.ld, (double)INFINITY);
                if (run_once(&c, &table[r], i, device))
                    for (int64_t row = 0; row < size; row++)
                        for (int64_t j = 0; j < c.problem.n; j++)
                            assert_int_equal(isfinite(get(c.args.d, c.problem.d.dtype, row * c.problem.d.ld + j)) ? 1 : 0,
                                             row >= 8 && j == 0 ? 0 : 1);
                case_release(&c);
            }
    spk_backend_cpu.close(&device);
}

/* Any half, or one so much smaller than other that their sum has to be rounded: to nearest, or from half way. */
static double any_half(spk_rng *rng, spk_dtype dtype, double other)
{
    const uint16_t bits = (uint16_t)spk_rng_below(rng, 65536);
    uint16_t small = 0;
    if (spk_rng_below(rng, 3) == 0)
        return get(&bits, dtype, 0);
    put(&small, dtype, 0,
        spk_rng_below(rng, 2) == 0 ? ldexp(1, ilogb(other) - (dtype == SPK_F16 ? 11 : 8)) : other * ldexp(spk_rng_normal(rng), -9));
    return get(&small, dtype, 0);
}

/* D must be to the bit what type/half.h makes of alpha times the sum of two numbers, for float rounds there as it does here: denormals,
 * infinities, NaN, ties. */
static void check_sums_of_two(const kernel_case *c, const char *name)
{
    const spk_problem *problem = &c->problem;
    for (int64_t i = 0; i < problem->m; i++)
        for (int64_t j = 0; j < problem->n; j++) {
            const double x = get(c->operands[SPK_B], problem->b.dtype, 2 * i * problem->b.ld + j);
            const double y = get(c->operands[SPK_B], problem->b.dtype, (2 * i + 1) * problem->b.ld + j);
            const float sum = (float)x + (float)y, scaled = (float)c->args.alpha * sum;
            double want = (double)scaled, got = get(c->args.d, problem->d.dtype, at(problem->d.layout, problem->d.ld, i, j));
            if (problem->d.dtype == SPK_F16)
                want = (double)spk_f16_to_float(spk_f16_from_float(scaled));
            else if (problem->d.dtype == SPK_BF16)
                want = (double)spk_bf16_to_float(spk_bf16_from_float(scaled));
            if (!(got == want || (isnan(got) && isnan(want))))
                fail_msg("%s, %s to %s: %g (%a + %a) = %a, expected %a", name, spk_dtype_name(problem->a.dtype),
                         spk_dtype_name(problem->d.dtype), c->args.alpha, x, y, got, want);
        }
}

static void test_rounding_to_halves(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    spk_device *device = open_device(1);
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    int ran = 0;
    for (int variant = 0; variant < 16; variant++) {
        int64_t offsets[ROWS + 1], columns[ROWS];
        for (int i = 0; i < ROWS; i++)
            offsets[i] = columns[i] = i;
        offsets[ROWS] = ROWS;
        spk_bsr_indices indices = {
            SPK_SIZED(spk_bsr_indices), .rows = ROWS,           .cols = 2 * ROWS,           .block_rows = 1, .block_cols = 2, .nnzb = ROWS,
            .row_offsets = offsets,     .col_indices = columns, .index_type = SPK_INDEX_I64};
        spk_pattern *pattern = NULL;
        must(spk_pattern_make(&spk_mem_system, &indices, &pattern));
        spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = variant & 8 ? 19 : 3, .dtype_a = variant & 1 ? SPK_F16 : SPK_BF16,
                         .dtype_d = variant & 2 ? SPK_F32 : 0};
        spmm.layout_d = variant & 4 ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
        kernel_case c;
        spk_rng rng;
        spk_rng_seed(&rng, seed_of_the_day() + (uint64_t)variant);
        case_make(&c, &rng, pattern, &spmm, variant & 4 ? 1 : 0x1p-12, 0, 0);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < spmm.n; j++) {
                const uint16_t largest = spmm.dtype_a == SPK_F16 ? 0x7bff : 0x7f7f;
                const double x = spk_rng_below(&rng, 20) == 0 ? get(&largest, spmm.dtype_a, 0) : any_half(&rng, spmm.dtype_a, 1);
                put(c.operands[SPK_A], spmm.dtype_a, 2 * i, 1);
                put(c.operands[SPK_A], spmm.dtype_a, 2 * i + 1, 1);
                put(c.operands[SPK_B], spmm.dtype_a, 2 * i * c.problem.b.ld + j, x);
                put(c.operands[SPK_B], spmm.dtype_a, (2 * i + 1) * c.problem.b.ld + j,
                    any_half(&rng, spmm.dtype_a, isfinite(x) && x != 0 ? x : 1));
            }
        for (int r = 0; r < rows; r++)
            for (int i = 0; (table[r].kind == SPK_KIND_OWN || table[r].kind == SPK_KIND_REFERENCE) && i < spk_params_count(&table[r]); i++)
                if (run_once(&c, &table[r], i, device)) {
                    check_sums_of_two(&c, table[r].name);
                    ran++;
                }
        case_release(&c);
    }
    assert_true(ran >= 32);
    spk_backend_cpu.close(&device);
}

/* Products whose factors or whose sum are denormal: instructions that take these for 0 must not be used then. One number a row of A, so
 * that D is exact. */
static void test_denormals(void **state)
{
    (void)state;
    static const int blocks[] = {16, 9, 1};
    spk_device *device = open_device(2);
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    int ran = 0;
    for (int variant = 0; variant < 24; variant++) {
        const int block = blocks[variant % 3], grid = 5;
        const int64_t size = (int64_t)grid * block - (block > 1), n = 35;
        int64_t offsets[8], columns[8];
        for (int i = 0; i <= grid; i++)
            offsets[i] = columns[i] = i;
        spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = size,           .cols = size,
                                   .block_rows = block,        .block_cols = block,    .nnzb = grid,
                                   .row_offsets = offsets,     .col_indices = columns, .index_type = SPK_INDEX_I64};
        spk_pattern *pattern = NULL;
        must(spk_pattern_make(&spk_mem_system, &indices, &pattern));
        spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = n, .dtype_a = SPK_BF16, .dtype_d = SPK_F32};
        spmm.layout_b = variant / 3 & 1 ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
        spmm.trans_a = variant / 6 & 1 ? SPK_TRANS : SPK_NO_TRANS;
        const double a = variant / 12 & 1 ? 0x1p-70 : 0x1p100, b = variant / 12 & 1 ? 0x1p-60 : 0x1p-130;
        kernel_case c;
        spk_rng rng;
        spk_rng_seed(&rng, seed_of_the_day() + (uint64_t)variant);
        case_make(&c, &rng, pattern, &spmm, 1, 0, 0);
        for (int64_t i = 0; i < (int64_t)grid * block * block; i++) /* the diagonal, and what hangs over */
            put(c.operands[SPK_A], SPK_BF16, i, i % (block * block) % (block + 1) == 0 ? a : 0);
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j < n; j++)
                put(c.operands[SPK_B], SPK_BF16, at(c.problem.b.layout, c.problem.b.ld, i, j), b * (double)((i + j) % 5));
        for (int r = 0; r < rows; r++)
            for (int p = 0; (table[r].kind == SPK_KIND_OWN || table[r].kind == SPK_KIND_REFERENCE) && p < spk_params_count(&table[r]); p++)
                if (run_once(&c, &table[r], p, device)) {
                    ran++;
                    for (int64_t i = 0; i < size; i++)
                        for (int64_t j = 0; j < n; j++) {
                            const double got = get(c.args.d, SPK_F32, i * c.problem.d.ld + j), want = a * b * (double)((i + j) % 5);
                            if (got != want)
                                fail_msg("%s, variant %d: D[%d,%d] = %a, expected %a", table[r].name, variant, (int)i, (int)j, got, want);
                        }
                }
        case_release(&c);
    }
    assert_true(ran >= 48);
    spk_backend_cpu.close(&device);
}

/* The vector activations against the definition, relative to |x|, and to the result as far as the definition is exact there. */
static void test_activations(void **state)
{
    (void)state;
    enum { COUNT = 4001 };
    const int64_t offsets[] = {0, 0};
    spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = 1, .cols = 1, .block_rows = 1, .block_cols = 1, .row_offsets = offsets, .col_indices = offsets,
        .index_type = SPK_INDEX_I64};
    spk_pattern *pattern = NULL;
    must(spk_pattern_make(&spk_mem_system, &indices, &pattern));
    static float x32[COUNT + 8], d32[COUNT + 8];
    static double x64[COUNT + 8], d64[COUNT + 8];
    const double special[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0, 1e30, -1e30, 1e-30, -1e-30};
    for (int i = 0; i < COUNT + 8; i++)
        x32[i] = (float)(x64[i] = i < COUNT ? -20 + 40.0 * i / (COUNT - 1) : special[i - COUNT]);
    for (int act = SPK_ACT_NONE; act <= SPK_ACT_SILU; act++)
        for (int wide = 0; wide < 2; wide++) {
            spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = COUNT + 8, .dtype_a = wide ? SPK_F64 : SPK_F32, .activation = (spk_activation)act};
            spk_problem problem;
            must(spk_problem_read(&spk_op_spmm, pattern, &spmm, NULL, &problem));
            spk_args args = {.alpha = 1, .d = wide ? (void *)d64 : (void *)d32};
            if (wide)
                spk_epilogue_f64(&problem, &args, x64, COUNT + 8, 0, 1, 0, COUNT + 8);
            else
                spk_epilogue_f32(&problem, &args, x32, COUNT + 8, 0, 1, 0, COUNT + 8);
            for (int i = 0; i < COUNT + 8; i++) {
                double x = wide ? x64[i] : (double)x32[i], got = wide ? d64[i] : (double)d32[i],
                       want = spk_activate_f64((spk_activation)act, x);
                double eps = wide ? DBL_EPSILON : FLT_EPSILON;
                if (isnan(want)) {
                    assert_true(isnan(got));
                } else if (isinf(want)) {
                    assert_true(got == want);
                } else if (!(fabs(got - want) <= 3 * eps * fmax(fabs(x), fabs(want)) &&
                             fabs(got - want) <= fabs(want) * eps * (8 + 4 * fmin(x * x, 1e3)) + DBL_EPSILON * fabs(x) + 1e-37)) {
                    fail_msg("activation %d f%d(%g) = %.17g, expected %.17g", act, wide ? 64 : 32, x, got, want);
                }
            }
        }
    spk_pattern_release(&pattern);
}

static void test_partition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        spk_rng rng;
        spk_rng_seed(&rng, seed);
        int64_t rows = (int64_t)spk_rng_below(&rng, 60);
        int64_t *offsets = need(calloc((size_t)rows + 1, sizeof *offsets));
        int64_t longest = 0;
        for (int64_t i = 0; i < rows; i++) {
            int64_t length = (int64_t)spk_rng_below(&rng, i % 7 == 0 ? 50 : 5);
            longest = length > longest ? length : longest;
            offsets[i + 1] = offsets[i] + length;
        }
        spk_bsr_view view = {.grid_rows = rows, .offsets = offsets, .nnzb = offsets[rows]};
        int parts = 1 + (int)spk_rng_below(&rng, 9);
        int64_t *bounds = NULL;
        must(spk_partition_rows(&spk_mem_system, &view, parts, &bounds));
        assert_int_equal(bounds[0], 0);
        assert_int_equal(bounds[parts], rows);
        for (int part = 0; part < parts; part++) {
            assert_true(bounds[part] <= bounds[part + 1]);
            double work = (double)(offsets[bounds[part + 1]] - offsets[bounds[part]]),
                   fair = ((double)offsets[rows] + 0.5 * (double)rows) / parts;
            assert_true(work <= fair + (double)longest + 1);
        }
        spk_free(&spk_mem_system, bounds);
        double *cuts = NULL;
        must(spk_partition_cuts(&spk_mem_system, &view, parts, &cuts));
        assert_true(cuts[0] == 0);
        assert_true(cuts[parts] == (double)rows);
        for (int part = 0; part < parts; part++) { /* a share of a block row is the same share of its work */
            double ends[2];
            for (int end = 0; end < 2; end++) {
                int64_t row = (int64_t)cuts[part + end];
                double share = cuts[part + end] - (double)row;
                ends[end] =
                    (double)offsets[row] + 0.5 * cuts[part + end] + (row < rows ? share * (double)(offsets[row + 1] - offsets[row]) : 0);
            }
            assert_true(fabs(ends[1] - ends[0] - ((double)offsets[rows] + 0.5 * (double)rows) / parts) < 1e-6);
        }
        spk_free(&spk_mem_system, cuts);
        free(offsets);
    }
    int64_t zero = 0, *bounds = NULL;
    double *cuts = NULL;
    spk_bsr_view none = {.offsets = &zero};
    assert_int_equal(spk_partition_cuts(&spk_mem_system, &none, 0, &cuts), SPK_ERR_ARGUMENT);
    assert_null(cuts);
    assert_int_equal(spk_partition_rows(&spk_mem_system, &none, 0, &bounds), SPK_ERR_ARGUMENT);
    assert_null(bounds);
}

/* Binding fails cleanly at every allocation. */
static void test_bind_without_memory(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    spk_rng rng;
    spk_rng_seed(&rng, 3);
    case_shape shape = {.rows = 50, .cols = 60, .block_rows = 4, .block_cols = 8, .density = 0.4};
    for (int trans = 0; trans < 2; trans++) {
        spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 40, .trans_a = (spk_trans)trans};
        kernel_case c;
        case_make(&c, &rng, make_pattern(&rng, &shape), &spmm, 1, 0, 0);
        const spk_kernel *table;
        int rows = spk_kernels(&table);
        for (int r = 0; r < rows; r++) {
            spk_params params;
            const char *why;
            spk_params_get(&table[r], 0, &params);
            if ((table[r].kind != SPK_KIND_OWN && table[r].kind != SPK_KIND_REFERENCE) ||
                !spk_candidate_applicable(&table[r], &params, &c.problem, device, &why))
                continue;
            for (int64_t fail_at = 0;; fail_at++) {
                spk_bound bound = {0};
                spk_mem_fail_after(fail_at);
                spk_status status = spk_bind(&table[r], &params, &c.problem, device, &bound);
                spk_mem_fail_after(-1);
                if (status == SPK_OK) {
                    spk_unbind(&bound);
                    break;
                }
                assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
                assert_null(bound.kernel);
                assert_true(fail_at < 50);
            }
        }
        case_release(&c);
    }
    spk_backend_cpu.close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_non_finite_reaches_its_rows_only),
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_rounding_to_halves),
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_many_tasks),
        cmocka_unit_test(test_bind_without_memory),
    };
    spk_threads_for_any_work = true; /* the problems are small */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every device program of the kernel table compiles, for every architecture its row names, without spilled registers, a stack frame, serialised wgmma
 * (C75xx) or a warning: over a set of problems and tunables that covers each value of each (SPARSEK_TEST_LONG: over all that differ). Needs NVRTC but no
 * device; where SPARSEK_NVRTC is not set, it says so and passes. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/nvrtc.h"
#include "backend/cuda/program.h"
#include "base/clock.h"
#include "base/rng.h"

enum { DRAWS = 6000, MOST_JOBS = 4096, MOST_FEATURES = 4096, NATIVE_LIMIT = 32, OTHER_LIMIT = 4 };

/* What a row may do all the same, and why. */
static const struct {
    const char *row, *why;
} may_use_stack[] = {{"", ""}};

static const struct arch {
    const char *name;
    int compute, shared_bytes, shared_processor_bytes, processors;
    unsigned isa;
} archs[] = {
    {"sm_90a", 90, 232448, 233472, 132, SPK_ISA_SM70 | SPK_ISA_SM80 | SPK_ISA_SM90A},
    {"sm_80", 80, 166912, 167936, 108, SPK_ISA_SM70 | SPK_ISA_SM80},
    {"sm_89", 89, 101376, 102400, 128, SPK_ISA_SM70 | SPK_ISA_SM80},
    {"sm_100", 100, 232448, 233472, 148, SPK_ISA_SM70 | SPK_ISA_SM80},
};

typedef struct job {
    const spk_kernel *kernel;
    const char *arch;
    char params[SPK_MAX_PARAMS_TEXT];
    spk_build build;
    double ms;
    int registers;
    char wrong[400]; /* "": nothing */
} job;

static job jobs[MOST_JOBS];
static int job_count;

/* ------------------------------------------------------------------------------------------------ problems at random */

static const spk_dtype dtypes[][4] = {/* A, B, D, compute */
                                      {SPK_F32, SPK_F32, SPK_F32, SPK_F32},   {SPK_F64, SPK_F64, SPK_F64, SPK_F64},   {SPK_F16, SPK_F16, SPK_F16, SPK_F32},
                                      {SPK_BF16, SPK_BF16, SPK_BF16, SPK_F32}, {SPK_F16, SPK_F16, SPK_F32, SPK_F32}, {SPK_BF16, SPK_BF16, SPK_F32, SPK_F32},
                                      {SPK_F32, SPK_F32, SPK_F32, SPK_TF32}};
static const int blocks[][2] = {{1, 1}, {3, 3}, {4, 4}, {8, 8}, {16, 16}, {16, 8}, {8, 32}, {32, 32}, {48, 48}, {64, 64}, {64, 32}, {128, 128}, {128, 64}, {20, 12}, {256, 256}};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0], BLOCKS = sizeof blocks / sizeof blocks[0] };

static spk_pattern *patterns[BLOCKS][2]; /* sizes that are multiples of the block, and ragged ones */

static void make_patterns(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int ragged = 0; ragged < 2; ragged++) {
            const int64_t down = (4096 + blocks[i][0] - 1) / blocks[i][0], across = (4096 + blocks[i][1] - 1) / blocks[i][1];
            int64_t *offsets = calloc((size_t)down + 1, sizeof *offsets), column = 0;
            for (int64_t row = 0; offsets != NULL && row < down; row++)
                offsets[row + 1] = 1;
            spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),      .rows = down * blocks[i][0] - ragged * (blocks[i][0] > 1), .cols = across * blocks[i][1] - ragged * (blocks[i][1] > 1),
                                       .block_rows = blocks[i][0], .block_cols = blocks[i][1], .nnzb = 1, .row_offsets = offsets, .col_indices = &column, .index_type = SPK_I64};
            assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &patterns[i][ragged]), SPK_OK);
            free(offsets);
        }
}

static void release_patterns(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int ragged = 0; ragged < 2; ragged++)
            spk_pattern_release(&patterns[i][ragged]);
}

typedef struct draw {
    spk_problem problem;
    int dtype, block;
} draw;

static bool draw_problem(spk_rng *rng, draw *out)
{
    static const int64_t widths[] = {1, 4, 8, 16, 32, 64, 128, 512, 4096, 37};
    const int dtype = (int)spk_rng_below(rng, DTYPES), block = (int)spk_rng_below(rng, BLOCKS), plain = spk_rng_below(rng, 3) == 0;
    spk_spmm spmm = {SPK_SIZED(spk_spmm),
                     .n = widths[spk_rng_below(rng, sizeof widths / sizeof widths[0])],
                     .dtype_a = dtypes[dtype][0],
                     .dtype_b = dtypes[dtype][1],
                     .dtype_d = dtypes[dtype][2],
                     .compute = dtypes[dtype][3],
                     .trans_a = (spk_trans)spk_rng_below(rng, 2),
                     .block_layout = (spk_layout)spk_rng_below(rng, 2),
                     .layout_b = (spk_layout)spk_rng_below(rng, 2),
                     .layout_d = (spk_layout)spk_rng_below(rng, 2)};
    if (!plain) {
        spmm.use_c = (int)spk_rng_below(rng, 2);
        spmm.bias = (spk_bias)spk_rng_below(rng, 3);
        spmm.activation = (spk_activation)spk_rng_below(rng, 5);
        spmm.use_residual = (int)spk_rng_below(rng, 2);
        spmm.keep_preact = (int)spk_rng_below(rng, 2);
    }
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .assume_finite = (int)spk_rng_below(rng, 2), .static_values = (int)spk_rng_below(rng, 2)};
    out->dtype = dtype;
    out->block = block;
    return spk_problem_from_spmm(patterns[block][spk_rng_below(rng, 4) == 0], &spmm, &options, &out->problem) == SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ which to compile */

typedef struct features {
    char text[MOST_FEATURES][48];
    int count;
} features;

static bool is_new(features *seen, const char *text)
{
    for (int i = 0; i < seen->count; i++)
        if (strcmp(seen->text[i], text) == 0)
            return false;
    if (seen->count < MOST_FEATURES)
        snprintf(seen->text[seen->count++], sizeof seen->text[0], "%s", text);
    return true;
}

/* Whether this candidate has a value, or a pair of values with the dtype, that none before it had. */
static bool adds_something(features *seen, const draw *drawn, const spk_params *params)
{
    const spk_epilogue *e = &drawn->problem.epilogue;
    const int values[] = {drawn->problem.layout_b, drawn->problem.layout_d, drawn->problem.block_layout, drawn->problem.trans_a, (int)e->activation, (int)e->bias,
                          e->use_c, e->use_residual, e->keep_preact};
    char text[48];
    bool any = false;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(text, sizeof text, "%d dtype %d: %d", (int)i, drawn->dtype, values[i]);
        any |= is_new(seen, text);
    }
    for (int i = 0; i < SPK_MAX_TUNABLES; i++) {
        snprintf(text, sizeof text, "tunable %d dtype %d: %d", i, drawn->dtype, params->v[i]);
        any |= is_new(seen, text);
    }
    snprintf(text, sizeof text, "block %d", drawn->block);
    return is_new(seen, text) || any;
}

static bool have_job(int first, const spk_build *build)
{
    for (int i = first; i < job_count; i++)
        if (strcmp(jobs[i].build.options, build->options) == 0 && strcmp(jobs[i].build.entry, build->entry) == 0)
            return true;
    return false;
}

static void add_jobs(const spk_kernel *kernel, const struct arch *arch, int limit)
{
    spk_cuda cuda = {.compute = arch->compute, .shared_bytes = arch->shared_bytes, .shared_processor_bytes = arch->shared_processor_bytes, .processors = arch->processors,
                     .l2_bytes = 50 << 20, .driver_version = 13000};
    snprintf(cuda.arch, sizeof cuda.arch, "%s", arch->name);
    spk_device device = {.backend = &spk_backend_cuda, .mem = spk_mem_system, .isa = arch->isa, .processors = arch->processors, .peak_gflops_f32 = 6e4, .stream_gbs = 4000,
                         .l2_bytes = 50 << 20, .memory_bytes = (int64_t)80 << 30, .state = &cuda};
    static features seen;
    spk_rng rng;
    const int first = job_count, candidates = spk_params_count(kernel);
    seen.count = 0;
    spk_rng_seed(&rng, 1);
    for (int i = 0; i < DRAWS && job_count < MOST_JOBS && job_count - first < limit; i++) {
        draw drawn;
        job *one = &jobs[job_count];
        spk_params params;
        const char *why = NULL;
        if (!draw_problem(&rng, &drawn))
            continue;
        spk_params_get(kernel, (int)spk_rng_below(&rng, (uint64_t)candidates), &params);
        if (!kernel->ops->applicable(&drawn.problem, &device, &params, &why))
            continue;
        *one = (job){.kernel = kernel, .arch = arch->name};
        kernel->ops->build(&drawn.problem, &device, &params, &one->build);
        spk_params_text(kernel, &params, one->params, sizeof one->params);
        if ((limit == MOST_JOBS || adds_something(&seen, &drawn, &params)) && !have_job(first, &one->build)) {
            if (one->build.shared_bytes > arch->shared_bytes)
                fail_msg("%s %s on %s asks for %d bytes of shared memory; the limit is %d", kernel->name, one->params, arch->name, one->build.shared_bytes, arch->shared_bytes);
            job_count++;
        }
    }
}

/* ------------------------------------------------------------------------------------------------ compiling, on all cores */

static bool stack_allowed(const char *row)
{
    for (size_t i = 0; i < sizeof may_use_stack / sizeof may_use_stack[0]; i++)
        if (strcmp(may_use_stack[i].row, row) == 0)
            return true;
    return false;
}

static void read_log(job *one, char *log)
{
    char *rest = NULL;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        int stack = 0, stores = 0, loads = 0;
        const char *bytes = strstr(line, "bytes stack frame"), *c75 = strstr(line, "C75"), *used = strstr(line, "Used ");
        if (bytes != NULL) {
            while (bytes > line && (bytes[-1] == ' ' || (bytes[-1] >= '0' && bytes[-1] <= '9')))
                bytes--;
            sscanf(bytes, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack, &stores, &loads);
        }
        if (used != NULL)
            sscanf(used, "Used %d registers", &one->registers);
        if ((c75 != NULL || strstr(line, "warning") != NULL || stores > 0 || loads > 0 || (stack > 0 && !stack_allowed(one->kernel->name))) && one->wrong[0] == '\0')
            snprintf(one->wrong, sizeof one->wrong, "%s", line);
    }
}

static atomic_int next_job;

static void *work(void *unused)
{
    for (int i; (i = atomic_fetch_add(&next_job, 1)) < job_count;) {
        job *one = &jobs[i];
        void *cubin = NULL;
        size_t bytes = 0;
        char *log = NULL;
        const double begun = spk_now_us();
        if (spk_cuda_compile(&spk_mem_system, &one->build, one->arch, &cubin, &bytes, &log) != SPK_OK)
            snprintf(one->wrong, sizeof one->wrong, "%s", spk_error_message(0));
        else
            read_log(one, log);
        one->ms = (spk_now_us() - begun) / 1e3;
        spk_free(&spk_mem_system, cubin);
        spk_free(&spk_mem_system, log);
    }
    return unused;
}

static void compile_all(void)
{
    cpu_set_t set;
    pthread_t threads[64];
    int wanted = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1, begun = 0;
    wanted = wanted < 64 ? wanted : 64;
    while (begun < wanted - 1 && pthread_create(&threads[begun], NULL, work, NULL) == 0)
        begun++;
    work(NULL);
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
}

/* One line a row and architecture; returns how many were wrong. */
static int report(void)
{
    int wrong = 0;
    for (int i = 0; i < job_count;) {
        const int first = i;
        double total = 0, most = 0;
        int registers = 0;
        for (; i < job_count && jobs[i].kernel == jobs[first].kernel && jobs[i].arch == jobs[first].arch; i++) {
            total += jobs[i].ms;
            most = jobs[i].ms > most ? jobs[i].ms : most;
            registers = jobs[i].registers > registers ? jobs[i].registers : registers;
            if (jobs[i].wrong[0] != '\0' && wrong++ < 20)
                printf("WRONG %s %s for %s: %s\n  options: %s\n", jobs[i].kernel->name, jobs[i].params, jobs[i].arch, jobs[i].wrong, jobs[i].build.options);
        }
        printf("%-24s %-7s %4d programs, %.0f ms each, %.0f at most, %d registers at most\n", jobs[first].kernel->name, jobs[first].arch, i - first,
               total / (i - first), most, registers);
    }
    return wrong;
}

/* Minutes of compiling: only where it is asked for by name. */
static bool have_nvrtc(void)
{
    char version[32];
    const char *wish = getenv("SPARSEK_NVRTC");
    if (wish == NULL || strcmp(wish, "none") == 0) {
        printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
        return false;
    }
    if (spk_cuda_nvrtc_open(version, sizeof version) != SPK_OK)
        fail_msg("%s", spk_error_message(0));
    printf("NVRTC %s\n", version);
    return true;
}

static void every_row_compiles(void **state)
{
    (void)state;
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    const char *only = getenv("SPARSEK_TEST_ROW");
    const bool all = getenv("SPARSEK_TEST_LONG") != NULL;
    if (!have_nvrtc())
        return;
    make_patterns();
    for (int r = 0; r < rows; r++)
        for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++) {
            const int before = job_count;
            if (table[r].backend != SPK_BACKEND_CUDA || table[r].ops->build == NULL || (table[r].isa & ~archs[a].isa) != 0 || (only != NULL && strcmp(only, table[r].name) != 0))
                continue;
            add_jobs(&table[r], &archs[a], all ? MOST_JOBS : a == 0 ? NATIVE_LIMIT : OTHER_LIMIT);
            if (job_count == before && job_count < MOST_JOBS)
                fail_msg("%s: no problem was found that it computes on %s", table[r].name, archs[a].name);
        }
    compile_all();
    release_patterns();
    int wrong = report();
    if (wrong != 0)
        fail_msg("%d programs of %d", wrong, job_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_compiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What needs a GPU and is no single product: proofs with rows that fault and hang, streams, threads, contexts, graphs, pointers of little alignment. The
 * public library only, and the driver through dlopen. Usage: test_device [proof|streams|threads|contexts|graphs|aligned ...] (default: all). Ends with 1
 * where something is wrong; says it on standard error. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sparsek/sparsek.h>

typedef void *handle;

static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*retain)(handle *context, int device);
    int (*push)(handle context);
    int (*stream_create)(handle *stream, unsigned flags);
    int (*stream_synchronize)(handle stream);
    int (*stream_destroy)(handle stream);
    int (*begin_capture)(handle stream, int mode);
    int (*end_capture)(handle stream, handle *graph);
    int (*instantiate)(handle *executable, handle graph, unsigned long long flags);
    int (*launch)(handle executable, handle stream);
    int (*executable_destroy)(handle executable);
    int (*graph_destroy)(handle graph);
} cu;

static int failures;

#define FAIL(...)                                              \
    do {                                                       \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);        \
        fprintf(stderr, __VA_ARGS__);                          \
        fprintf(stderr, "\n");                                 \
        __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);    \
    } while (0)
#define DRIVER(call)                             \
    do {                                         \
        int error_ = (call);                     \
        if (error_ != 0) {                       \
            FAIL("%s: error %d", #call, error_); \
            exit(1);                             \
        }                                        \
    } while (0)
#define MUST(context, call)                                                                           \
    do {                                                                                              \
        spk_status status_ = (call);                                                                  \
        if (status_ != SPK_OK) {                                                                      \
            FAIL("%s: %s: %s", #call, spk_status_name(status_), spk_last_error(context)); \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

static void open_driver(void)
{
    static const char *const names[] = {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate", "cuStreamSynchronize",
                                        "cuStreamDestroy_v2", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                        "cuGraphExecDestroy", "cuGraphDestroy"};
    const char *wish = getenv("SPARSEK_CUDA");
    void *library = dlopen(wish != NULL ? wish : "libcuda.so.1", RTLD_NOW), *found[sizeof names / sizeof names[0]];
    handle context;
    int device = 0;
    if (library == NULL) {
        FAIL("%s", dlerror());
        exit(1);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((found[i] = dlsym(library, names[i])) == NULL) {
            FAIL("libcuda has no %s", names[i]);
            exit(1);
        }
    memcpy(&cu, found, sizeof cu);
    DRIVER(cu.init(0));
    DRIVER(cu.device_get(&device, 0));
    DRIVER(cu.retain(&context, device));
    DRIVER(cu.push(context));
}

/* ------------------------------------------------------------------------------------------------ a problem with its answer */

enum { M = 384, K = 512, N = 96, BLOCK = 64, GRID_M = M / BLOCK, GRID_K = K / BLOCK };

typedef struct product {
    spk_context *context;
    spk_pattern *pattern;
    spk_spmm spmm;
    size_t element;
    char *host_values, *host_b, *values, *b; /* the last two on the device, with room for an element more */
    int64_t nnzb;
    double *expected, *magnitude, tolerance;
} product;

static spk_context *new_context(void)
{
    spk_context *context = NULL;
    MUST(NULL, spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    return context;
}

static void *device_copy(spk_context *context, const void *host, size_t bytes)
{
    void *memory = NULL;
    MUST(context, spk_memory_allocate(context, bytes + 64, &memory));
    MUST(context, spk_memory_copy(context, memory, SPK_DEVICE, host, SPK_HOST, bytes));
    return memory;
}

/* Every third block is there; the last block row is empty. */
static void make_product(spk_context *context, spk_dtype dtype, product *p)
{
    int offsets[GRID_M + 1] = {0}, columns[GRID_M * GRID_K];
    memset(p, 0, sizeof *p);
    p->context = context;
    for (int i = 0; i < GRID_M; i++) {
        offsets[i + 1] = offsets[i];
        for (int j = 0; j < GRID_K && i < GRID_M - 1; j++)
            if ((i + j) % 3 == 0)
                columns[offsets[i + 1]++] = j;
    }
    p->nnzb = offsets[GRID_M];
    p->element = dtype == SPK_F64 ? 8 : dtype == SPK_F32 ? 4 : 2;
    p->spmm = (spk_spmm){SPK_SIZED(spk_spmm), .n = N, .dtype_a = dtype, .activation = SPK_ACT_RELU};
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = M, .cols = K, .block_rows = BLOCK, .block_cols = BLOCK, .nnzb = p->nnzb, .row_offsets = offsets,
                               .col_indices = columns};
    MUST(context, spk_pattern_create(context, &indices, &p->pattern));
    const int64_t elements = p->nnzb * BLOCK * BLOCK;
    p->host_values = malloc((size_t)elements * p->element);
    p->host_b = malloc((size_t)K * N * p->element);
    p->expected = malloc(sizeof(double) * M * N);
    p->magnitude = malloc(sizeof(double) * M * N);
    MUST(context, spk_fill_random(context, dtype, elements, 1, p->host_values));
    MUST(context, spk_fill_random(context, dtype, (int64_t)K * N, 2, p->host_b));
    MUST(context, spk_default_tolerance(context, p->pattern, &p->spmm, &p->tolerance));
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = p->host_values, .b = p->host_b, .alpha = 1};
    MUST(context, spk_oracle_spmm(context, p->pattern, &p->spmm, &args, NULL, 0, p->expected, NULL, p->magnitude));
    p->values = device_copy(context, p->host_values, (size_t)elements * p->element);
    p->b = device_copy(context, p->host_b, (size_t)K * N * p->element);
}

static void release_product(product *p)
{
    spk_memory_release(p->context, (void **)&p->values);
    spk_memory_release(p->context, (void **)&p->b);
    spk_pattern_destroy(&p->pattern);
    free(p->host_values);
    free(p->host_b);
    free(p->expected);
    free(p->magnitude);
}

/* D in device memory, full of bytes that no result may keep. */
static char *new_d(const product *p)
{
    const size_t bytes = M * N * p->element;
    char *poison = malloc(bytes);
    memset(poison, 0xff, bytes);
    char *d = device_copy(p->context, poison, bytes);
    free(poison);
    return d;
}

static spk_spmm_args args_of(const product *p, char *d)
{
    return (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = p->values, .b = p->b, .d = d, .alpha = 1};
}

static void check(const product *p, const char *d, const char *what)
{
    char *raw = malloc(M * N * p->element);
    double *got = malloc(sizeof(double) * M * N);
    MUST(p->context, spk_memory_copy(p->context, raw, SPK_HOST, d, SPK_DEVICE, M * N * p->element));
    MUST(p->context, spk_cast_values(p->context, SPK_F64, got, p->spmm.dtype_a, raw, M * N));
    for (int i = 0; i < M * N; i++)
        if (!(fabs(got[i] - p->expected[i]) <= p->tolerance * p->magnitude[i])) {
            FAIL("%s: D[%d, %d] = %.9g; right is %.9g", what, i / N, i % N, got[i], p->expected[i]);
            break;
        }
    free(raw);
    free(got);
}

static spk_plan *new_plan(const product *p, const char *choice)
{
    spk_plan *plan = NULL;
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice, .assume_finite = 1};
    MUST(p->context, spk_plan_spmm(p->context, p->pattern, &p->spmm, &options, &plan));
    return plan;
}

/* One choice of every row that computes the product; `each` gets it. */
static void for_each_row(product *p, void (*each)(product *p, const char *choice))
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    char last[128] = "", choice[256];
    MUST(p->context, spk_list_spmm(p->context, p->pattern, &p->spmm, &(spk_tune_options){SPK_SIZED(spk_tune_options), .assume_finite = 1}, &report));
    MUST(p->context, spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        MUST(p->context, spk_report_candidate(report, i, &c));
        if (c.status == SPK_CANDIDATE_NOT_APPLICABLE || strcmp(c.name, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", c.name);
        snprintf(choice, sizeof choice, "%s%s%s", c.name, c.params[0] != '\0' ? " " : "", c.params);
        each(p, choice);
    }
    spk_report_destroy(&report);
}

static void on_every_row(void (*each)(product *p, const char *choice))
{
    static const spk_dtype dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    spk_context *context = new_context();
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        product p;
        make_product(context, dtypes[i], &p);
        for_each_row(&p, each);
        release_product(&p);
    }
    spk_context_destroy(&context);
}

/* ------------------------------------------------------------------------------------------------ streams, graphs, pointers */

static void two_streams(product *p, const char *choice)
{
    handle streams[2];
    char *d[2];
    spk_plan *plan = new_plan(p, choice);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_create(&streams[i], 1));
        d[i] = new_d(p);
    }
    for (int i = 0; i < 40; i++) {
        spk_spmm_args args = args_of(p, d[i % 2]);
        MUST(p->context, spk_run_spmm(plan, &args, streams[i % 2]));
    }
    for (int i = 0; i < 2; i++) {
        MUST(p->context, spk_synchronize(p->context, streams[i]));
        check(p, d[i], choice);
    }
    spk_plan_destroy(&plan);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_destroy(streams[i]));
        spk_memory_release(p->context, (void **)&d[i]);
    }
}

static void graph(product *p, const char *choice)
{
    handle stream, recorded, executable;
    spk_plan *plan = new_plan(p, choice);
    char *d = new_d(p), *again = new_d(p);
    spk_spmm_args args = args_of(p, d);
    DRIVER(cu.stream_create(&stream, 1));
    MUST(p->context, spk_run_spmm(plan, &args, stream));
    DRIVER(cu.stream_synchronize(stream));
    args.d = again;
    DRIVER(cu.begin_capture(stream, 0));
    for (int i = 0; i < 3; i++)
        MUST(p->context, spk_run_spmm(plan, &args, stream));
    DRIVER(cu.end_capture(stream, &recorded));
    DRIVER(cu.instantiate(&executable, recorded, 0));
    for (int i = 0; i < 3; i++)
        DRIVER(cu.launch(executable, stream));
    DRIVER(cu.stream_synchronize(stream));
    check(p, d, choice);
    check(p, again, choice);
    DRIVER(cu.executable_destroy(executable));
    DRIVER(cu.graph_destroy(recorded));
    spk_plan_destroy(&plan);
    DRIVER(cu.stream_destroy(stream));
    spk_memory_release(p->context, (void **)&d);
    spk_memory_release(p->context, (void **)&again);
}

/* Operands one element beyond what allocation aligns. */
static void aligned_to_elements(product *p, const char *choice)
{
    spk_plan *plan = new_plan(p, choice);
    char *d = new_d(p), what[300];
    char *values = p->values, *b = p->b;
    const size_t value_bytes = (size_t)p->nnzb * BLOCK * BLOCK * p->element, b_bytes = (size_t)K * N * p->element;
    for (int which = 1; which < 8; which++) {
        spk_spmm_args args = args_of(p, d + (which & 4 ? p->element : 0));
        if (which & 1) {
            MUST(p->context, spk_memory_copy(p->context, values + p->element, SPK_DEVICE, p->host_values, SPK_HOST, value_bytes));
            args.values = values + p->element;
        }
        if (which & 2) {
            MUST(p->context, spk_memory_copy(p->context, b + p->element, SPK_DEVICE, p->host_b, SPK_HOST, b_bytes));
            args.b = b + p->element;
        }
        snprintf(what, sizeof what, "%s, misaligned %d", choice, which);
        MUST(p->context, spk_run_spmm(plan, &args, NULL));
        MUST(p->context, spk_synchronize(p->context, NULL));
        check(p, args.d, what);
        MUST(p->context, spk_memory_copy(p->context, values, SPK_DEVICE, p->host_values, SPK_HOST, value_bytes));
        MUST(p->context, spk_memory_copy(p->context, b, SPK_DEVICE, p->host_b, SPK_HOST, b_bytes));
    }
    spk_plan_destroy(&plan);
    spk_memory_release(p->context, (void **)&d);
}

/* ------------------------------------------------------------------------------------------------ threads and contexts */

typedef struct runner {
    product *p;
    spk_plan *plan;
    const char *choice;
} runner;

static void *run_many(void *arg)
{
    runner *r = arg;
    handle stream;
    char *d = new_d(r->p);
    DRIVER(cu.stream_create(&stream, 1)); /* of the primary context, which the run makes current for itself */
    spk_spmm_args args = args_of(r->p, d);
    for (int i = 0; i < 50; i++)
        MUST(r->p->context, spk_run_spmm(r->plan, &args, stream));
    MUST(r->p->context, spk_synchronize(r->p->context, stream));
    check(r->p, d, r->choice);
    DRIVER(cu.stream_destroy(stream));
    spk_memory_release(r->p->context, (void **)&d);
    return NULL;
}

static void *run_many_current(void *arg)
{
    handle context;
    int device = 0;
    DRIVER(cu.device_get(&device, 0));
    DRIVER(cu.retain(&context, device));
    DRIVER(cu.push(context));
    return run_many(arg);
}

static void two_threads(product *p, const char *choice)
{
    runner r = {p, new_plan(p, choice), choice};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run_many_current, &r);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    spk_plan_destroy(&r.plan);
}

/* The second goes on after the first is gone. */
static void two_contexts(void)
{
    spk_context *contexts[2] = {new_context(), new_context()};
    product p[2];
    spk_plan *plans[2];
    char *d[2];
    for (int i = 0; i < 2; i++) {
        make_product(contexts[i], i == 0 ? SPK_F16 : SPK_F32, &p[i]);
        plans[i] = new_plan(&p[i], "reference_cuda");
        d[i] = new_d(&p[i]);
    }
    for (int i = 0; i < 20; i++) {
        spk_spmm_args args = args_of(&p[i % 2], d[i % 2]);
        MUST(contexts[i % 2], spk_run_spmm(plans[i % 2], &args, NULL));
    }
    for (int i = 0; i < 2; i++) {
        MUST(contexts[i], spk_synchronize(contexts[i], NULL));
        check(&p[i], d[i], "the contexts in turn");
        if (i == 0) {
            spk_plan_destroy(&plans[0]);
            spk_memory_release(contexts[0], (void **)&d[0]);
            release_product(&p[0]);
            spk_context_destroy(&contexts[0]);
        }
    }
    spk_spmm_args args = args_of(&p[1], d[1]);
    MUST(contexts[1], spk_run_spmm(plans[1], &args, NULL));
    MUST(contexts[1], spk_synchronize(contexts[1], NULL));
    check(&p[1], d[1], "the context that is left");
    spk_plan_destroy(&plans[1]);
    spk_memory_release(contexts[1], (void **)&d[1]);
    release_product(&p[1]);
    spk_context_destroy(&contexts[1]);
}

/* ------------------------------------------------------------------------------------------------ proofs */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check_refuted(const product *p, const spk_report *report, const char *name)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    MUST(p->context, spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        MUST(p->context, spk_report_candidate(report, i, &c));
        if (strcmp(c.name, name) != 0)
            continue;
        printf("  %s: status %d, \"%s\"\n", name, (int)c.status, c.why != NULL ? c.why : "");
        if (c.status != SPK_CANDIDATE_FAILED || c.why == NULL || c.why[0] == '\0')
            FAIL("%s was not refuted", name);
        return;
    }
    FAIL("%s is not in the table: build with -DSPARSEK_TEST_ROWS=ON", name);
}

static void tune_with_them(const char *when)
{
    spk_context *context = new_context();
    product p;
    spk_report *report = NULL;
    make_product(context, SPK_F32, &p);
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .only = "test_fault,test_hang,spmm_cuda_simt,reference_cuda"};
    const double begun = now_s();
    MUST(context, spk_tune_spmm(context, p.pattern, &p.spmm, &options, &report));
    printf("  %s: tuned in %.2f s\n", when, now_s() - begun);
    check_refuted(&p, report, "test_fault");
    check_refuted(&p, report, "test_hang");
    spk_report_destroy(&report);
    spk_plan *plan = NULL;
    MUST(context, spk_plan_spmm(context, p.pattern, &p.spmm, &options, &plan));
    printf("  %s: %s\n", when, spk_plan_choice(plan));
    char *d = new_d(&p);
    spk_spmm_args args = args_of(&p, d);
    MUST(context, spk_run_spmm(plan, &args, NULL));
    MUST(context, spk_synchronize(context, NULL));
    check(&p, d, "after the refutation");
    spk_plan_destroy(&plan);
    spk_memory_release(context, (void **)&d);
    release_product(&p);
    spk_context_destroy(&context);
}

static void proof(void)
{
    setenv("SPARSEK_TEST_ROWS", "1", 1);
    tune_with_them("first");
    tune_with_them("again, from what is kept");
    unsetenv("SPARSEK_TEST_ROWS");
}

static void streams(void) { on_every_row(two_streams); }
static void graphs(void) { on_every_row(graph); }
static void threads(void) { on_every_row(two_threads); }
static void aligned(void) { on_every_row(aligned_to_elements); }

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"streams", streams}, {"threads", threads}, {"contexts", two_contexts}, {"graphs", graphs}, {"aligned", aligned}, {"proof", proof}};
    int known = 0;
    open_driver();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], tests[i].name) == 0;
        if (!wanted)
            continue;
        known++;
        const int before = failures;
        const double begun = now_s();
        printf("%s\n", tests[i].name);
        tests[i].run();
        printf("%s: %s, %.1f s\n", tests[i].name, failures == before ? "passed" : "FAILED", now_s() - begun);
        fflush(stdout);
    }
    if (known < argc - 1)
        FAIL("there is no such test");
    return failures != 0;
}

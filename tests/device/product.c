/* The driver, and a product with its answer. */
#include "product.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <time.h>

driver cu;
int failures;

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void open_driver(void)
{
    static const char *const names[] = {"cuInit",
                                        "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuCtxPushCurrent_v2",
                                        "cuStreamCreate",
                                        "cuStreamSynchronize",
                                        "cuStreamDestroy_v2",
                                        "cuStreamBeginCapture_v2",
                                        "cuStreamEndCapture",
                                        "cuGraphInstantiateWithFlags",
                                        "cuGraphLaunch",
                                        "cuGraphExecDestroy",
                                        "cuGraphDestroy",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuMemGetInfo_v2",
                                        "cuMemAllocAsync",
                                        "cuMemFreeAsync",
                                        "cuDeviceGetCount"};
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

spk_context *new_context(void)
{
    spk_context *context = NULL;
    MUST(NULL, spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    return context;
}

void *device_copy(spk_context *context, const void *host, size_t bytes)
{
    void *memory = NULL;
    MUST(context, spk_memory_allocate(context, bytes + 64, &memory));
    MUST(context, spk_memory_copy(context, memory, SPK_DEVICE, host, SPK_HOST, bytes));
    return memory;
}

void make_product(spk_context *context, spk_dtype dtype, product *p)
{
    int offsets[GRID_M + 1] = {0}, columns[GRID_M * GRID_K];
    memset(p, 0, sizeof *p);
    p->context = context;
    for (int i = 0; i < GRID_M; i++) {
        offsets[i + 1] = offsets[i];
        for (int j = 0; j < GRID_K && i < GRID_M - 1; j++)
            if (i == 0 || (i + j) % 3 == 0)
                columns[offsets[i + 1]++] = j;
    }
    p->nnzb = offsets[GRID_M];
    p->element = dtype == SPK_F64 ? 8 : dtype == SPK_F32 ? 4 : 2;
    p->spmm = (spk_spmm){SPK_SIZED(spk_spmm), .n = N, .dtype_a = dtype, .activation = SPK_ACT_RELU};
    spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = M, .cols = K, .block_rows = BLOCK, .block_cols = BLOCK, .nnzb = p->nnzb, .row_offsets = offsets,
        .col_indices = columns};
    MUST(context, spk_pattern_create(context, &indices, &p->pattern));
    const int64_t elements = p->nnzb * BLOCK * BLOCK;
    p->host_values = malloc((size_t)elements * p->element);
    p->host_b = malloc((size_t)K * N * p->element);
    p->expected = malloc(sizeof(double) * M * N);
    p->magnitude = malloc(sizeof(double) * M * N);
    MUST(context, spk_fill_random(context, dtype, elements, 1, p->host_values));
    MUST(context, spk_fill_random(context, dtype, (int64_t)K * N, 2, p->host_b));
    MUST(context, spk_default_tolerance(context, p->pattern, &p->spmm, SPK_FIRST_OUTPUT, &p->tolerance));
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = p->host_values, .b = p->host_b, .alpha = 1};
    MUST(context, spk_oracle(context, p->pattern, &p->spmm, &args, SPK_FIRST_OUTPUT, NULL, 0, p->expected, p->magnitude));
    p->values = device_copy(context, p->host_values, (size_t)elements * p->element);
    p->b = device_copy(context, p->host_b, (size_t)K * N * p->element);
}

void release_product(product *p)
{
    spk_memory_release(p->context, (void **)&p->values);
    spk_memory_release(p->context, (void **)&p->b);
    spk_pattern_destroy(&p->pattern);
    free(p->host_values);
    free(p->host_b);
    free(p->expected);
    free(p->magnitude);
}

char *new_d(const product *p)
{
    const size_t bytes = M * N * p->element;
    char *poison = malloc(bytes);
    memset(poison, 0xff, bytes);
    char *d = device_copy(p->context, poison, bytes);
    free(poison);
    return d;
}

spk_spmm_args args_of(const product *p, char *d)
{
    return (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = p->values, .b = p->b, .d = d, .alpha = 1};
}

void check(const product *p, const char *d, const char *what)
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

void check_same(const product *p, const char *d, const char *again, const char *what)
{
    const size_t bytes = M * N * p->element;
    char *raw[2] = {malloc(bytes), malloc(bytes)};
    MUST(p->context, spk_memory_copy(p->context, raw[0], SPK_HOST, d, SPK_DEVICE, bytes));
    MUST(p->context, spk_memory_copy(p->context, raw[1], SPK_HOST, again, SPK_DEVICE, bytes));
    if (strncmp(what, "spmm_", 5) == 0 && memcmp(raw[0], raw[1], bytes) != 0)
        FAIL("%s: other bits in another run", what);
    free(raw[0]);
    free(raw[1]);
}

spk_plan *new_plan(const product *p, const char *choice)
{
    spk_plan *plan = NULL;
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice};
    spk_spmm finite = p->spmm;
    finite.assume_finite = 1;
    MUST(p->context, spk_plan_create_spmm(p->context, p->pattern, &finite, &options, &plan));
    return plan;
}

void for_each_row(product *p, void (*each)(product *p, const char *choice))
{
    spk_report *report = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    char last[128] = "", choice[256];
    int shared = 0;
    spk_spmm finite = p->spmm;
    finite.assume_finite = 1;
    MUST(p->context, spk_list_candidates(p->context, p->pattern, &finite, NULL, &report));
    MUST(p->context, spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        MUST(p->context, spk_report_get_candidate(report, i, &c));
        const char *wanted = strcmp(c.name, "spmm_sm90_wgmma") == 0    ? "SPLIT=4"
                             : strcmp(c.name, "spmm_cuda_narrow") == 0 ? "none"
                                                                       : "SPLIT=1";
        const int first = strcmp(c.name, last) != 0, shares = strstr(c.params, wanted) != NULL;
        if (c.status == SPK_CANDIDATE_NOT_APPLICABLE || (!first && (shared || !shares)))
            continue;
        shared = first ? shares : 1;
        snprintf(last, sizeof last, "%s", c.name);
        snprintf(choice, sizeof choice, "%s%s%s", c.name, c.params[0] != '\0' ? " " : "", c.params);
        each(p, choice);
    }
    spk_report_destroy(&report);
}

void on_every_row(void (*each)(product *p, const char *choice))
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

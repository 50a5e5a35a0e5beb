/* Host costs of sparsek on an NVIDIA GPU, in microseconds: spk_plan_run_spmm over the bare launch of an empty kernel, spk_compute_spmm over
 * running its plan, plans from a warm store, the first known problem of a fresh context. f16, blocks of 64, 4,096 stored blocks, and few
 * columns, so that the host is what counts.
 *
 * Prints JSON. Build and run: cmake --build --preset release --target bench_overhead_gpu && build/release/bench/bench_overhead_gpu */
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { SIZE = 8192, BLOCK = 64, ROUNDS = 301 };

typedef struct product {
    spk_matrix *matrix;
    spk_pattern *pattern;
    spk_plan *plan;
    spk_spmm problem;
    spk_tune_options options;
    spk_spmm_args args;
} product;

static product make_product(int64_t n)
{
    product p = {.problem = {SPK_SIZED(spk_spmm), .n = n, .dtype_a = SPK_F16, .assume_finite = 1},
                 .options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM, .budget_s = 1}};
    TRY(spk_matrix_generate(context,
                            &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = SIZE, .cols = SIZE,
                                            .block_rows = BLOCK, .block_cols = BLOCK, .density = 0.25, .seed = 1},
                            &p.matrix, NULL));
    TRY(spk_pattern_from_matrix(context, p.matrix, &p.pattern));
    TRY(spk_plan_create_spmm(context, p.pattern, &p.problem, &p.options, &p.plan)); /* tunes */
    const size_t bytes = spk_plan_workspace_bytes(p.plan);
    p.args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .alpha = 1, .workspace_bytes = bytes, .stream = stream};
    p.args.values = device_zeros((size_t)SIZE * SIZE / 4 * 2);
    p.args.b = device_zeros((size_t)(SIZE * n * 2));
    p.args.d = device_zeros((size_t)(SIZE * n * 2));
    p.args.workspace = bytes > 0 ? device_zeros(bytes) : NULL;
    return p;
}

static double runs_us(const product *p)
{
    TRY(spk_plan_run_spmm(p->plan, &p->args, stream));
    double start = now_us();
    for (int j = 0; j < CALLS; j++)
        TRY(spk_plan_run_spmm(p->plan, &p->args, stream));
    return (now_us() - start) / CALLS;
}

static double matmuls_us(const product *p)
{
    TRY(spk_compute_spmm(context, p->pattern, &p->problem, &p->args, &p->options));
    double start = now_us();
    for (int j = 0; j < CALLS; j++)
        TRY(spk_compute_spmm(context, p->pattern, &p->problem, &p->args, &p->options));
    return (now_us() - start) / CALLS;
}

typedef struct costs {
    double launch, run, run_over_launch, matmul_over_run, pattern, plan;
    char choice[160];
} costs;

/* Alternated: each round is one sample of everything, the queue empty before each. */
static costs measure(const product *p)
{
    static double launch[ROUNDS], run[ROUNDS], over[ROUNDS], matmul[ROUNDS], pattern_us[ROUNDS], plan_us[ROUNDS];
    costs c = {0};
    for (int i = -20; i < ROUNDS; i++) {
        const int at = i < 0 ? 0 : i; /* the first rounds warm up */
        launch[at] = launches_us();
        DRIVER(cu.synchronize(stream));
        run[at] = runs_us(p);
        DRIVER(cu.synchronize(stream));
        matmul[at] = matmuls_us(p) - run[at];
        DRIVER(cu.synchronize(stream));
        over[at] = run[at] - launch[at];
        spk_pattern *fresh = NULL;
        spk_plan *from_store = NULL;
        double start = now_us();
        TRY(spk_pattern_from_matrix(context, p->matrix, &fresh));
        pattern_us[at] = now_us() - start;
        start = now_us();
        TRY(spk_plan_create_spmm(context, fresh, &p->problem, &p->options, &from_store));
        plan_us[at] = now_us() - start;
        snprintf(c.choice, sizeof c.choice, "%s", spk_plan_choice(from_store));
        spk_plan_destroy(&from_store);
        spk_pattern_destroy(&fresh);
    }
    c.launch = median(launch, ROUNDS);
    c.run = median(run, ROUNDS);
    c.run_over_launch = median(over, ROUNDS);
    c.matmul_over_run = median(matmul, ROUNDS);
    c.pattern = median(pattern_us, ROUNDS);
    c.plan = median(plan_us, ROUNDS);
    return c;
}

/* Open, look up, load the compiled program, bind, run. */
static double fresh_context_us(const spk_context_options *options, const product *p)
{
    spk_pattern *pattern = NULL;
    spk_context *first = context;
    double start = now_us();
    context = NULL;
    TRY(spk_context_create(options, &context));
    TRY(spk_pattern_from_matrix(context, p->matrix, &pattern));
    TRY(spk_compute_spmm(context, pattern, &p->problem, &p->args, &p->options));
    DRIVER(cu.synchronize(stream));
    double us = now_us() - start;
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    context = first;
    return us;
}

static void release_product(product *p)
{
    void *all[] = {(void *)p->args.values, (void *)p->args.b, p->args.d, p->args.workspace};
    DRIVER(cu.synchronize(stream));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        spk_memory_release(context, &all[i]);
    spk_plan_destroy(&p->plan);
    spk_pattern_destroy(&p->pattern);
    spk_matrix_destroy(&p->matrix);
}

int main(void)
{
    char folder[] = "/tmp/sparsek-overhead-XXXXXX", path[64], date[32];
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/store.db", folder);
    const spk_context_options options = {SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = path};
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    open_driver();
    TRY(spk_context_create(&options, &context));
    TRY(spk_context_get_device(context, &device));
    product wide = make_product(256), narrow = make_product(1);
    costs w = measure(&wide), n = measure(&narrow);
    double fresh_us = fresh_context_us(&options, &wide);
    printf("{\"schema\": 1, \"sparsek\": \"%s\", \"commit\": \"%s\", \"date\": \"%s\", \"command\": \"bench_overhead_gpu\", \"device\": "
           "{\"kind\": \"cuda\", \"name\": \"%s\"},\n"
           " \"nnzb\": 4096, \"choice\": \"%s\", \"choice_one_column\": \"%s\",\n"
           " \"launch_us\": %.2f, \"run_us\": %.2f, \"run_over_launch_us\": %.2f, \"run_one_column_us\": %.2f, "
           "\"run_one_column_over_launch_us\": %.2f,\n"
           " \"pattern_us\": %.1f, \"plan_from_store_us\": %.1f, \"plan_one_column_from_store_us\": %.1f, \"matmul_over_run_us\": %.3f,\n"
           " \"fresh_context_first_product_us\": %.0f}\n",
           spk_version(), spk_commit(), date, device.name, w.choice, n.choice, w.launch, w.run, w.run_over_launch, n.run, n.run_over_launch,
           w.pattern, w.plan, n.plan, w.matmul_over_run, fresh_us);
    release_product(&wide);
    release_product(&narrow);
    spk_context_destroy(&context);
    unlink(path);
    strcat(path, ".lock");
    unlink(path);
    rmdir(folder);
    return 0;
}

/* Host costs of attention on an NVIDIA GPU, in microseconds: a run over the bare launch of an empty kernel, a plan from a warm store, and
 * one whose decision the context remembers, and a mask that is new on the device at every step, pattern and plan included, over the product
 * alone. bf16, depth 128.
 *
 * Prints JSON. Build and run: cmake --build --preset release --target bench_overhead_attention &&
 * build/release/bench/bench_overhead_attention */
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { ROUNDS = 101, DEPTH = 128, HEADS = 8, BLOCK = 64, QUERIES = 4096, KEPT = 16 };

typedef struct attention {
    spk_pattern *pattern;
    spk_plan *plan;
    spk_attention problem;
    spk_tune_options options;
    spk_attention_args args;
} attention;

static void *filled(const void *host, size_t bytes)
{
    void *memory = NULL;
    TRY(spk_memory_allocate(context, bytes, &memory));
    TRY(spk_memory_copy(context, memory, SPK_DEVICE, host, SPK_HOST, bytes));
    return memory;
}

static attention make(int64_t queries, spk_pattern *pattern)
{
    const size_t bytes = (size_t)(queries * HEADS * DEPTH * 2);
    attention a = {.pattern = pattern,
                   .problem = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .queries = queries, .keys = queries, .depth = DEPTH,
                               .heads = HEADS, .mask_heads = pattern != NULL ? HEADS : 0, .assume_finite = 1},
                   .options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM, .budget_s = 2}};
    TRY(spk_plan_create_attention(context, pattern, &a.problem, &a.options, &a.plan)); /* tunes */
    a.args = (spk_attention_args){SPK_SIZED(spk_attention_args),
                                  .q = device_zeros(bytes),
                                  .k = device_zeros(bytes),
                                  .v = device_zeros(bytes),
                                  .o = device_zeros(bytes),
                                  .scale = 0.1,
                                  .workspace_bytes = spk_plan_workspace_bytes(a.plan)};
    a.args.workspace = a.args.workspace_bytes > 0 ? device_zeros(a.args.workspace_bytes) : NULL;
    return a;
}

static double runs_us(const attention *a)
{
    TRY(spk_plan_run_attention(a->plan, &a->args, stream));
    const double start = now_us();
    for (int j = 0; j < CALLS; j++)
        TRY(spk_plan_run_attention(a->plan, &a->args, stream));
    return (now_us() - start) / CALLS;
}

/* less_s: of the budget, to ask a question that the context has not just answered. */
static double plan_us(const attention *a, double less_s)
{
    spk_plan *plan = NULL;
    spk_tune_options options = a->options;
    options.budget_s -= less_s;
    const double start = now_us();
    TRY(spk_plan_create_attention(context, a->pattern, &a->problem, &options, &plan));
    const double us = now_us() - start;
    spk_plan_destroy(&plan);
    return us;
}

/* KEPT blocks of each block row, in device memory. */
static spk_bsr_indices make_mask(void)
{
    static int32_t offsets[HEADS * (QUERIES / BLOCK) + 1], columns[HEADS * (QUERIES / BLOCK) * KEPT];
    static spk_deferred_indices deferred;
    const int rows = HEADS * (QUERIES / BLOCK), across = QUERIES / BLOCK;
    deferred = (spk_deferred_indices){SPK_SIZED(spk_deferred_indices), .stream = stream, .longest_row = KEPT};
    for (int row = 0; row < rows; row++) {
        offsets[row + 1] = (row + 1) * KEPT;
        for (int i = 0; i < KEPT; i++)
            columns[row * KEPT + i] = (i * across + row * 7 % across) / KEPT;
    }
    return (spk_bsr_indices){SPK_SIZED(spk_bsr_indices),
                             .rows = (int64_t)HEADS * QUERIES,
                             .cols = QUERIES,
                             .block_rows = BLOCK,
                             .block_cols = BLOCK,
                             .nnzb = (int64_t)rows * KEPT,
                             .row_offsets = filled(offsets, sizeof offsets),
                             .col_indices = filled(columns, sizeof columns),
                             .index_type = SPK_INDEX_I32,
                             .index_memory = SPK_DEVICE,
                             .deferred = &deferred};
}

/* So many steps with the mask at hand, or each with one of its own, from the first call to the last result. */
static double steps_us(const attention *a, const spk_bsr_indices *indices)
{
    spk_pattern *patterns[CALLS] = {NULL};
    spk_plan *plans[CALLS] = {NULL};
    DRIVER(cu.synchronize(stream));
    const double start = now_us();
    for (int j = 0; j < CALLS; j++) {
        if (indices != NULL) {
            TRY(spk_pattern_create(context, indices, &patterns[j]));
            TRY(spk_plan_create_attention(context, patterns[j], &a->problem, &a->options, &plans[j]));
        }
        TRY(spk_plan_run_attention(indices != NULL ? plans[j] : a->plan, &a->args, stream));
    }
    DRIVER(cu.synchronize(stream));
    const double us = (now_us() - start) / CALLS;
    for (int j = 0; j < CALLS; j++) {
        spk_plan_destroy(&plans[j]);
        spk_pattern_destroy(&patterns[j]);
    }
    return us;
}

static void release(attention *a)
{
    void *all[] = {(void *)a->args.q, (void *)a->args.k, (void *)a->args.v, a->args.o, a->args.workspace};
    DRIVER(cu.synchronize(stream));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        spk_memory_release(context, &all[i]);
    spk_plan_destroy(&a->plan);
}

int main(void)
{
    static double launch[ROUNDS], run[ROUNDS], over[ROUNDS], plan[ROUNDS], masked_plan[ROUNDS], again[ROUNDS], product[ROUNDS],
        fresh[ROUNDS], more[ROUNDS];
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
    const spk_bsr_indices indices = make_mask();
    spk_pattern *mask = NULL;
    TRY(spk_pattern_create(context, &indices, &mask));
    attention brief = make(512, NULL), masked = make(QUERIES, mask);
    for (int i = -10; i < ROUNDS; i++) {
        const int at = i < 0 ? 0 : i;
        launch[at] = launches_us();
        DRIVER(cu.synchronize(stream));
        run[at] = runs_us(&brief);
        DRIVER(cu.synchronize(stream));
        over[at] = run[at] - launch[at];
        plan[at] = plan_us(&brief, 1e-3 * (i & 1));
        masked_plan[at] = plan_us(&masked, 1e-3); /* the steps asked with the whole budget */
        again[at] = plan_us(&masked, 1e-3);
        product[at] = steps_us(&masked, NULL);
        fresh[at] = steps_us(&masked, &indices);
        more[at] = fresh[at] - product[at];
    }
    printf("{\"schema\": 1, \"sparsek\": \"%s\", \"commit\": \"%s\", \"date\": \"%s\", \"command\": \"bench_overhead_attention\", "
           "\"device\": {\"kind\": \"cuda\", \"name\": \"%s\"},\n"
           " \"choice\": \"%s\", \"choice_of_mask\": \"%s\",\n"
           " \"launch_us\": %.2f, \"run_us\": %.2f, \"run_over_launch_us\": %.2f, \"plan_from_store_us\": %.1f, "
           "\"masked_plan_from_store_us\": %.1f, \"masked_plan_again_us\": %.1f,\n"
           " \"product_us\": %.2f, \"with_new_mask_us\": %.2f, \"new_mask_over_product_us\": %.2f}\n",
           spk_version(), spk_commit(), date, device.name, spk_plan_choice(brief.plan), spk_plan_choice(masked.plan),
           median(launch, ROUNDS), median(run, ROUNDS), median(over, ROUNDS), median(plan, ROUNDS), median(masked_plan, ROUNDS),
           median(again, ROUNDS), median(product, ROUNDS), median(fresh, ROUNDS), median(more, ROUNDS));
    release(&brief);
    release(&masked);
    spk_pattern_destroy(&mask);
    spk_context_destroy(&context);
    unlink(path);
    strcat(path, ".lock");
    unlink(path);
    rmdir(folder);
    return 0;
}

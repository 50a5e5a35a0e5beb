/* Fresh topologies of one mixture-of-experts layer, in microseconds: a thousand patterns H of tokens by experts x hidden with a group of
 * block rows for each expert, of sizes that change every step, times W of experts x hidden by model. After a warm-up of the fewest, the
 * mean and the most tokens nothing is tuned. Each topology is a pattern, a plan and a run. Prints JSON; its exit status is 1 where a plan
 * was tuned after warm-up.
 *
 * Build and run:
 * cmake --build --preset release --target bench_topologies && build/release/bench/bench_topologies cpu|cuda:0 host|deferred [EXPERTS
 * [CHOICE]] deferred: the indices are in device memory, and nothing waits for them. */
#include <sparsek/sparsek.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "timing.h"

enum { BLOCK = 128, MODEL = 2048, HIDDEN = 4096, FEWEST = 16, MOST = 256, STEPS = 1000, MOST_EXPERTS = 64 };
enum { GRID_ROWS = MOST_EXPERTS * MOST / BLOCK, PER_ROW = HIDDEN / BLOCK };

static unsigned draw(unsigned below)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((state >> 33) % below);
}

typedef struct topology {
    int offsets[GRID_ROWS + 1], columns[GRID_ROWS * PER_ROW];
    int rows, blocks;
} topology;

/* Of `tokens` tokens an expert, 0: at random. */
static void make_topology(int experts, int tokens, topology *t)
{
    t->rows = t->blocks = 0;
    for (int e = 0; e < experts; e++) {
        const int here = tokens > 0 ? tokens : FEWEST + (int)draw(MOST - FEWEST + 1);
        for (int row = 0; row < (here + BLOCK - 1) / BLOCK; row++) {
            for (int i = 0; i < PER_ROW; i++)
                t->columns[t->blocks++] = e * PER_ROW + i;
            t->offsets[++t->rows] = t->blocks;
        }
    }
}

typedef struct bench {
    int experts, deferred;
    void *offsets, *columns; /* in device memory */
    spk_spmm problem;
    spk_tune_options options;
    spk_spmm_args args;
    double pattern[STEPS], plan[STEPS], release[STEPS], fixed[STEPS];
    int tuned, distinct;
    char choices[16][160];
} bench;

static void remember_choice(bench *b, const char *choice)
{
    for (int i = 0; i < b->distinct; i++)
        if (strcmp(b->choices[i], choice) == 0)
            return;
    if (b->distinct < 16)
        snprintf(b->choices[b->distinct++], sizeof b->choices[0], "%s", choice);
}

/* One step; at < 0: of warm-up. */
static void step(bench *b, const topology *t, int at)
{
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                               .rows = (int64_t)t->rows * BLOCK,
                               .cols = (int64_t)b->experts * HIDDEN,
                               .block_rows = BLOCK,
                               .block_cols = BLOCK,
                               .nnzb = t->blocks,
                               .row_offsets = t->offsets,
                               .col_indices = t->columns};
    const spk_deferred_indices deferred = {SPK_SIZED(spk_deferred_indices), .longest_row = PER_ROW, .row_overlap = 1};
    if (b->deferred) {
        TRY(spk_synchronize(context, NULL));
        TRY(spk_memory_copy(context, b->offsets, SPK_DEVICE, t->offsets, SPK_HOST, sizeof(int) * ((size_t)t->rows + 1)));
        TRY(spk_memory_copy(context, b->columns, SPK_DEVICE, t->columns, SPK_HOST, sizeof(int) * (size_t)t->blocks));
        indices.row_offsets = b->offsets;
        indices.col_indices = b->columns;
        indices.index_memory = SPK_DEVICE;
        indices.deferred = &deferred;
    }
    b->options.tuning = at < 0 ? SPK_TUNING_NOW : SPK_TUNING_NEVER;
    const double start = now_us();
    TRY(spk_pattern_create(context, &indices, &pattern));
    const double made = now_us();
    TRY(spk_plan_create_spmm(context, pattern, &b->problem, &b->options, &plan));
    const double planned = now_us();
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    TRY(spk_plan_get_info(plan, &info));
    if (b->args.values != NULL && (at < 0 || at % 50 == 0))
        TRY(spk_plan_run_spmm(plan, &b->args, NULL));
    if (at >= 0)
        remember_choice(b, spk_plan_choice(plan));
    const double used = now_us();
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    if (at < 0)
        return;
    b->tuned += strcmp(info.why, "measured") == 0;
    b->pattern[at] = made - start;
    b->plan[at] = planned - made;
    b->release[at] = now_us() - used;
    b->fixed[at] = planned - start - 0.05 * t->blocks;
}

static double quantile(double *samples, double share)
{
    qsort(samples, STEPS, sizeof *samples, compare);
    return samples[(int)(share * (STEPS - 1))];
}

/* Zeros: only the host is measured. */
static void *operand(size_t bytes)
{
    void *memory = NULL, *zeros = calloc(bytes, 1);
    TRY(spk_memory_allocate(context, bytes, &memory));
    TRY(spk_memory_copy(context, memory, SPK_DEVICE, zeros, SPK_HOST, bytes));
    free(zeros);
    return memory;
}

int main(int argc, char **argv)
{
    static bench b;
    static topology t;
    char folder[] = "/tmp/sparsek-topologies-XXXXXX", path[64];
    const char *device = argc > 1 ? argv[1] : "cpu";
    const int gpu = strncmp(device, "cuda", 4) == 0, experts = argc > 3 ? atoi(argv[3]) : MOST_EXPERTS;
    if (experts < 1 || experts > MOST_EXPERTS || mkdtemp(folder) == NULL)
        return 2;
    snprintf(path, sizeof path, "%s/store.db", folder);
    const spk_context_options options = {SPK_SIZED(spk_context_options), .device = device, .store_path = path};
    TRY(spk_context_create(&options, &context));
    b.experts = experts;
    b.deferred = argc > 2 && strcmp(argv[2], "deferred") == 0;
    b.problem = (spk_spmm){SPK_SIZED(spk_spmm), .n = MODEL, .dtype_a = gpu ? SPK_BF16 : SPK_F32};
    b.options = (spk_tune_options){SPK_SIZED(spk_tune_options), .cache = SPK_WARM, .budget_s = 1, .choice = argc > 4 ? argv[4] : NULL};
    const size_t element = gpu ? 2 : 4, rows = (size_t)experts * MOST;
    void *all[] = {operand(rows * HIDDEN * element), operand((size_t)experts * HIDDEN * MODEL * element), operand(rows * MODEL * element),
                   operand(sizeof t.offsets), operand(sizeof t.columns)};
    b.offsets = all[3];
    b.columns = all[4];
    b.args = (spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = gpu ? all[0] : NULL, .b = all[1], .d = all[2], .alpha = 1};
    const int warm_up[] = {FEWEST, (FEWEST + MOST) / 2, MOST, 0};
    for (int i = 0; i < 4; i++) {
        make_topology(experts, warm_up[i], &t);
        step(&b, &t, -1);
    }
    double blocks = 0;
    for (int i = 0; i < STEPS; i++) {
        make_topology(experts, 0, &t);
        step(&b, &t, i);
        blocks += (double)t.blocks / STEPS;
    }
    TRY(spk_synchronize(context, NULL));
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    char date[32];
    const time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    TRY(spk_context_get_device(context, &info));
    printf("{\"schema\": 1, \"sparsek\": \"%s\", \"commit\": \"%s\", \"date\": \"%s\", \"command\": \"bench_topologies %s %s %d\",\n",
           spk_version(), spk_commit(), date, device, b.deferred ? "deferred" : "host", experts);
    printf(
        " \"device\": {\"kind\": \"%s\", \"name\": \"%s\"}, \"indices\": \"%s\", \"experts\": %d, \"steps\": %d, \"mean_blocks\": %.0f,\n",
        info.kind, info.name, b.deferred ? "deferred" : "host", experts, STEPS, blocks);
    printf(" \"pattern_us\": %.1f, \"plan_us\": %.1f, \"release_us\": %.1f, \"beyond_50ns_a_block_us\": {\"median\": %.1f, \"p99\": %.1f, "
           "\"most\": %.1f},\n",
           quantile(b.pattern, 0.5), quantile(b.plan, 0.5), quantile(b.release, 0.5), quantile(b.fixed, 0.5), quantile(b.fixed, 0.99),
           quantile(b.fixed, 1));
    printf(" \"tuned_after_warm_up\": %d, \"choices\": [", b.tuned);
    for (int i = 0; i < b.distinct; i++)
        printf("%s\"%s\"", i > 0 ? ", " : "", b.choices[i]);
    printf("]}\n");
    for (int i = 0; i < 5; i++)
        spk_memory_release(context, &all[i]);
    spk_context_destroy(&context);
    unlink(path);
    strcat(path, ".lock");
    unlink(path);
    rmdir(folder);
    return b.tuned > 0;
}

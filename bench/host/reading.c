/* One column, many values: how the product's rate compares with the rate at which the same threads read the same values. They
 * take turns, and a ratio is that of two neighbours in time. 16384 x 16384, half of the 64 x 64 blocks, own rows: 512 MiB in float32, 256
 * in bfloat16, which a larger last cache may hold. Prints JSON. Build and run: cmake --build --preset release --target bench_reading &&
 * build/release/bench/bench_reading [ROUNDS] */
#include <omp.h>
#include <sparsek/sparsek.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "timing.h"

enum { BLOCK = 64, GRID = 256, STORED = GRID / 2, CHUNK = 4096, MOST_ROUNDS = 1001 };
static const size_t ELEMENTS = (size_t)GRID * STORED * BLOCK * BLOCK;

typedef long long vector __attribute__((vector_size(64), aligned(64), may_alias));

/* A sum is what a compiler cannot leave out. */
__attribute__((noinline, target_clones("avx512f", "avx2", "default"))) static long long sum_of(const char *from, size_t bytes)
{
    vector sums[4] = {{0}};
    for (size_t at = 0; at < bytes; at += sizeof sums)
        for (int i = 0; i < 4; i++)
            sums[i] += *(const vector *)(from + at + i * sizeof(vector));
    const vector all = sums[0] + sums[1] + sums[2] + sums[3];
    return all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
}

/* Each thread reads one piece. */
static long long read_all(const char *from, size_t bytes)
{
    long long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        const size_t chunks = bytes / CHUNK, thread = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
        const size_t first = chunks * thread / threads, last = chunks * (thread + 1) / threads;
        sum += sum_of(from + first * CHUNK, (last - first) * CHUNK);
    }
    return sum;
}

/* Half of the block columns in each block row, by a generator of fixed seed. */
static void draw_pattern(int64_t *offsets, int64_t *columns)
{
    uint64_t state = 1;
    for (int row = 0; row < GRID; row++) {
        int held = 0;
        for (int column = 0; column < GRID; column++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            if ((state >> 33) % (uint64_t)(GRID - column) < (uint64_t)(STORED - held))
                columns[row * STORED + held++] = column;
        }
        offsets[row + 1] = (row + 1) * (int64_t)STORED;
    }
}

static void race(spk_dtype dtype, const char *name, spk_pattern *pattern, const char *values, int rounds, const char *end)
{
    const size_t element = dtype == SPK_F32 ? 4 : 2, bytes = ELEMENTS * element;
    void *b = calloc((size_t)GRID * BLOCK, element), *d = calloc((size_t)GRID * BLOCK, element);
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = 1, .dtype_a = dtype, .dtype_b = dtype, .dtype_d = dtype};
    spk_plan *plan = NULL;
    TRY(spk_plan_create_spmm(context, pattern, &problem,
                             &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW,
                                                 .only = "spmm_f32_narrow_avx2,spmm_half_narrow_avx2,spmm_half_narrow_avx512"},
                             &plan));
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1};
    double reading[MOST_ROUNDS], product[MOST_ROUNDS], ratio[MOST_ROUNDS];
    long long sum = 0;
    for (int round = -2; round < rounds; round++) {
        const int at = round < 0 ? 0 : round;
        const double start = now_us();
        sum += read_all(values, bytes);
        const double middle = now_us();
        TRY(spk_plan_run_spmm(plan, &args, NULL));
        product[at] = now_us() - middle;
        reading[at] = middle - start;
        ratio[at] = reading[at] / product[at];
    }
    const double middle_ratio = median(ratio, rounds);
    printf(" \"%s\": {\"choice\": \"%s\", \"value_bytes\": %zu, \"reading_gbs\": %.1f, \"product_gbs\": %.1f, \"ratio\": %.3f, "
           "\"ratio_p10\": %.3f, \"ratio_p90\": %.3f}%s\n",
           name, spk_plan_choice(plan), bytes, (double)bytes / 1e3 / median(reading, rounds), (double)bytes / 1e3 / median(product, rounds),
           middle_ratio, ratio[rounds / 10], ratio[rounds - 1 - rounds / 10], end);
    if (sum == 1)
        puts("");
    spk_plan_destroy(&plan);
    free(b);
    free(d);
}

int main(int argc, char **argv)
{
    char *end = "";
    const long rounds = argc > 1 ? strtol(argv[1], &end, 10) : 41;
    if (argc > 2 || *end != '\0' || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "Usage: bench_reading [ROUNDS], 1 to %d\n", MOST_ROUNDS);
        return 2;
    }
    TRY(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &context));
    int64_t *offsets = calloc(GRID + 1, sizeof *offsets), *columns = calloc(GRID * STORED, sizeof *columns);
    char *values = aligned_alloc(CHUNK, ELEMENTS * sizeof(float));
    if (offsets == NULL || columns == NULL || values == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", ELEMENTS * sizeof(float));
        return 1;
    }
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < ELEMENTS * sizeof(float); at += CHUNK)
        memset(values + at, 61, CHUNK); /* small numbers of either type; each page lies near the thread that will read it */
    draw_pattern(offsets, columns);
    spk_pattern *pattern = NULL;
    TRY(spk_pattern_create(context,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = GRID * BLOCK, .cols = GRID * BLOCK, .block_rows = BLOCK,
                                              .block_cols = BLOCK, .nnzb = GRID * STORED, .row_offsets = offsets, .col_indices = columns,
                                              .index_type = SPK_INDEX_I64},
                           &pattern));
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    TRY(spk_context_get_device(context, &device));
    printf("{\"schema\": 1, \"sparsek\": \"%s\", \"commit\": \"%s\", \"device\": {\"name\": \"%s\"}, \"threads\": %d, \"rounds\": %d,\n"
           " \"reading\": {\n",
           spk_version(), spk_commit(), device.name, omp_get_max_threads(), (int)rounds);
    race(SPK_F32, "f32", pattern, values, (int)rounds, ",");
    race(SPK_BF16, "bf16", pattern, values, (int)rounds, "}}");
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    free(values);
    free(columns);
    free(offsets);
    return 0;
}

/* Host costs of sparsek, in microseconds: plans from a warm store and from the context's cache, spk_compute_spmm over the kernel alone, the
 * first known problem of a fresh context, and 1,000 fresh patterns of a known class. 4,096 stored blocks. Prints JSON.
 * Build and run: cmake --build --preset release --target bench_overhead && build/release/bench/bench_overhead */
#include <sparsek/sparsek.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "timing.h"

enum { SIZE = 2048, BLOCK = 16, N = 8, ROUNDS = 501 };

static spk_matrix *fresh_matrix(uint64_t seed)
{
    spk_matrix *matrix = NULL;
    TRY(spk_matrix_generate(context,
                            &(spk_generate){SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = SIZE, .cols = SIZE,
                                            .block_rows = BLOCK, .block_cols = BLOCK, .density = 0.25, .seed = seed},
                            &matrix, NULL));
    return matrix;
}

int main(void)
{
    char store[] = "/tmp/sparsek-overhead-XXXXXX";
    if (mkdtemp(store) == NULL)
        return 1;
    char path[sizeof store + 32];
    snprintf(path, sizeof path, "%s/store.db", store);
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = path};
    TRY(spk_context_create(&options, &context));

    spk_matrix *matrix = fresh_matrix(1);
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    TRY(spk_matrix_view(matrix, &desc));
    float *b = calloc(SIZE * N, sizeof *b), *d = calloc(SIZE * N, sizeof *d);
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = N};
    const spk_tune_options warm = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .cache = SPK_WARM};
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    TRY(spk_pattern_from_matrix(context, matrix, &pattern));
    TRY(spk_plan_create_spmm(context, pattern, &problem, &warm, &plan)); /* tunes */
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = desc.values, .b = b, .d = d, .alpha = 1};

    double samples[ROUNDS], other[ROUNDS];
    /* A plan from a warm store, the pattern included: what a fresh pattern of a known class costs. */
    for (int i = 0; i < ROUNDS; i++) {
        spk_pattern *fresh = NULL;
        spk_plan *from_store = NULL;
        double start = now_us();
        TRY(spk_pattern_from_matrix(context, matrix, &fresh));
        other[i] = now_us() - start;
        start = now_us();
        TRY(spk_plan_create_spmm(context, fresh, &problem, &warm, &from_store));
        samples[i] = now_us() - start;
        spk_plan_destroy(&from_store);
        spk_pattern_destroy(&fresh);
    }
    double pattern_us = median(other, ROUNDS), plan_us = median(samples, ROUNDS);

    /* spk_compute_spmm on a known handle, over running the plan, over the kernel: paired. */
    for (int i = 0; i < 50; i++)
        TRY(spk_compute_spmm(context, pattern, &problem, &args, &warm));
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_us();
        for (int j = 0; j < 10; j++)
            TRY(spk_plan_run_spmm(plan, &args, NULL));
        double middle = now_us();
        for (int j = 0; j < 10; j++)
            TRY(spk_compute_spmm(context, pattern, &problem, &args, &warm));
        samples[i] = (now_us() - middle - (middle - start)) / 10;
    }
    double matmul_us = median(samples, ROUNDS);

    /* The whole host path on a problem with nothing to compute. */
    spk_pattern *empty = NULL;
    const int64_t offsets[2] = {0, 0};
    TRY(spk_pattern_create(context,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = 1, .cols = 1, .block_rows = 1, .block_cols = 1,
                                              .row_offsets = offsets, .index_type = SPK_INDEX_I64},
                           &empty));
    const spk_spmm one = {SPK_SIZED(spk_spmm), .n = 1};
    TRY(spk_compute_spmm(context, empty, &one, &args, &warm));
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_us();
        for (int j = 0; j < 100; j++)
            TRY(spk_compute_spmm(context, empty, &one, &args, &warm));
        samples[i] = (now_us() - start) / 100;
    }
    double empty_matmul_us = median(samples, ROUNDS);

    /* A fresh context on the known store: open, look up, bind, run. */
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&empty);
    spk_pattern_destroy(&pattern);
    spk_context *first = context;
    double start = now_us();
    context = NULL;
    TRY(spk_context_create(&options, &context));
    TRY(spk_pattern_from_matrix(context, matrix, &pattern));
    TRY(spk_compute_spmm(context, pattern, &problem, &args, &warm));
    double fresh_context_us = now_us() - start;
    spk_pattern_destroy(&pattern);
    spk_context *second = context;
    context = first;

    int tuned = 0;
    double fresh_us = 0;
    for (uint64_t seed = 2; seed < 1002; seed++) {
        spk_matrix *other_matrix = fresh_matrix(seed);
        start = now_us();
        TRY(spk_pattern_from_matrix(context, other_matrix, &pattern));
        TRY(spk_plan_create_spmm(context, pattern, &problem, &warm, &plan));
        fresh_us += (now_us() - start) / 1000;
        spk_plan_info info = {SPK_SIZED(spk_plan_info)};
        TRY(spk_plan_get_info(plan, &info));
        tuned += !info.from_store;
        spk_plan_destroy(&plan);
        spk_pattern_destroy(&pattern);
        spk_matrix_destroy(&other_matrix);
    }
    printf(
        "{\"schema\": 1, \"sparsek\": \"%s\", \"commit\": \"%s\", \"nnzb\": 4096,\n"
        " \"pattern_us\": %.1f, \"plan_from_store_us\": %.1f, \"matmul_over_run_us\": %.3f, \"empty_matmul_us\": %.3f,\n"
        " \"fresh_context_first_product_us\": %.0f, \"fresh_patterns\": 1000, \"fresh_pattern_and_plan_us\": %.1f, \"tuned_again\": %d}\n",
        spk_version(), spk_commit(), pattern_us, plan_us, matmul_us, empty_matmul_us, fresh_context_us, fresh_us, tuned);
    spk_matrix_destroy(&matrix);
    spk_context_destroy(&second);
    spk_context_destroy(&context);
    unlink(path);
    strcat(path, ".lock");
    unlink(path);
    rmdir(store);
    free(b);
    free(d);
    return 0;
}

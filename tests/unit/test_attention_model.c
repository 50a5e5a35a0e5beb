/* attention_sm90's predictions against times measured on an H200 (bf16, at the clock that the power allows): the candidate that it ranks
 * first among those measured takes no more than 3 % longer than the best. And the order of the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/cuda/host/frame/rows.h"
#include "op/attention/attention.h"
#include "registry/registry.h"

static const struct measured_problem {
    int64_t batch, heads, heads_kv, queries, keys, depth;
    int causal;
    int64_t window;
    int block, kept; /* of a mask: size, blocks of a row; 0: there is none */
    int64_t lists;
} problems[] = {
    {2, 16, 16, 4096, 4096, 128, 0, 0, 0, 0, 0},       {2, 16, 16, 4096, 4096, 128, 1, 0, 0, 0, 0},
    {1, 16, 16, 16384, 16384, 128, 0, 0, 0, 0, 0},     {2, 16, 16, 4096, 4096, 64, 0, 0, 0, 0, 0},
    {2, 16, 16, 4096, 4096, 64, 1, 0, 0, 0, 0},        {1, 16, 16, 16384, 16384, 64, 0, 0, 0, 0, 0},
    {1, 16, 16, 8192, 8192, 256, 0, 0, 0, 0, 0},       {1, 8, 8, 512, 512, 64, 0, 0, 0, 0, 0},
    {1, 16, 16, 16384, 16384, 128, 0, 0, 128, 17, 16}, {1, 16, 16, 16384, 16384, 128, 0, 0, 64, 33, 16},
    {1, 16, 4, 16384, 16384, 128, 0, 0, 64, 33, 4},    {1, 16, 16, 16384, 16384, 64, 0, 0, 128, 17, 16},
    {1, 16, 16, 16384, 16384, 128, 1, 1024, 0, 0, 0},  {1, 16, 16, 16384, 16384, 64, 1, 1024, 0, 0, 0},
    {32, 32, 8, 1, 8192, 128, 0, 0, 0, 0, 0},          {1, 16, 16, 16384, 16384, 64, 1, 0, 0, 0, 0},
};

/* CONSUMERS, FORM, STEP, Q_HELD, TURNS, JOIN, SPLIT */
static const struct measured {
    int problem;
    spk_params params;
    double us;
} times[] = {
    {0, {{2, 0, 128, 0, 0, 0, 1}}, 432.9},   {0, {{2, 0, 128, 0, 0, 1, 1}}, 442.4},   {0, {{2, 0, 128, 0, 1, 0, 1}}, 428.6},
    {0, {{2, 0, 128, 0, 1, 1, 1}}, 453.0},   {0, {{2, 0, 160, 0, 0, 0, 1}}, 431.5},   {0, {{2, 0, 160, 0, 1, 0, 1}}, 434.8},
    {0, {{2, 0, 112, 1, 0, 0, 1}}, 441.1},   {0, {{2, 0, 96, 1, 0, 0, 1}}, 449.6},    {1, {{2, 0, 128, 0, 0, 0, 1}}, 236.4},
    {1, {{2, 0, 128, 0, 0, 1, 1}}, 246.6},   {1, {{2, 0, 128, 0, 1, 0, 1}}, 238.7},   {1, {{2, 0, 128, 0, 1, 1, 1}}, 246.6},
    {1, {{2, 0, 160, 0, 0, 0, 1}}, 247.0},   {1, {{2, 0, 160, 0, 1, 0, 1}}, 247.2},   {1, {{2, 0, 112, 1, 0, 0, 1}}, 250.1},
    {1, {{2, 0, 96, 1, 0, 0, 1}}, 252.1},    {2, {{2, 0, 128, 0, 0, 0, 1}}, 3305.9},  {2, {{2, 0, 128, 0, 0, 1, 1}}, 3432.3},
    {2, {{2, 0, 128, 0, 1, 0, 1}}, 3333.2},  {2, {{2, 0, 128, 0, 1, 1, 1}}, 3523.4},  {2, {{2, 0, 160, 0, 0, 0, 1}}, 3308.4},
    {2, {{2, 0, 160, 0, 1, 0, 1}}, 3382.9},  {3, {{3, 0, 128, 0, 0, 0, 1}}, 313.6},   {3, {{3, 0, 128, 0, 0, 1, 1}}, 315.1},
    {3, {{3, 0, 128, 0, 1, 0, 1}}, 307.9},   {3, {{3, 0, 128, 0, 1, 1, 1}}, 312.9},   {3, {{3, 0, 96, 1, 0, 0, 1}}, 333.2},
    {3, {{3, 0, 96, 1, 0, 1, 1}}, 340.2},    {3, {{3, 0, 96, 1, 1, 0, 1}}, 327.3},    {3, {{3, 0, 96, 1, 1, 1, 1}}, 335.6},
    {3, {{3, 0, 80, 1, 0, 0, 1}}, 345.5},    {3, {{2, 0, 128, 1, 0, 0, 1}}, 311.5},   {3, {{2, 0, 128, 1, 1, 0, 1}}, 326.7},
    {3, {{2, 0, 160, 1, 0, 0, 1}}, 315.8},   {3, {{2, 0, 160, 1, 1, 0, 1}}, 309.3},   {3, {{3, 0, 96, 0, 1, 0, 1}}, 329.0},
    {3, {{2, 0, 128, 0, 0, 0, 1}}, 323.2},   {4, {{3, 0, 128, 0, 0, 0, 1}}, 165.5},   {4, {{3, 0, 128, 0, 0, 1, 1}}, 162.7},
    {4, {{3, 0, 128, 0, 1, 0, 1}}, 157.8},   {4, {{3, 0, 128, 0, 1, 1, 1}}, 158.9},   {4, {{3, 0, 96, 1, 0, 0, 1}}, 165.1},
    {4, {{3, 0, 96, 1, 0, 1, 1}}, 167.7},    {4, {{3, 0, 96, 1, 1, 0, 1}}, 161.8},    {4, {{3, 0, 96, 1, 1, 1, 1}}, 164.1},
    {4, {{3, 0, 80, 1, 0, 0, 1}}, 173.0},    {4, {{2, 0, 128, 1, 0, 0, 1}}, 163.3},   {4, {{2, 0, 128, 1, 1, 0, 1}}, 168.5},
    {4, {{2, 0, 160, 1, 0, 0, 1}}, 166.9},   {4, {{2, 0, 160, 1, 1, 0, 1}}, 166.8},   {4, {{3, 0, 96, 0, 1, 0, 1}}, 165.4},
    {4, {{2, 0, 128, 0, 0, 0, 1}}, 173.6},   {5, {{3, 0, 128, 0, 0, 0, 1}}, 2242.2},  {5, {{3, 0, 128, 0, 0, 1, 1}}, 2229.3},
    {5, {{3, 0, 128, 0, 1, 0, 1}}, 2200.0},  {5, {{3, 0, 128, 0, 1, 1, 1}}, 2246.0},  {5, {{3, 0, 96, 1, 0, 0, 1}}, 2338.3},
    {5, {{3, 0, 96, 1, 0, 1, 1}}, 2380.8},   {5, {{3, 0, 96, 1, 1, 0, 1}}, 2352.0},   {5, {{3, 0, 96, 1, 1, 1, 1}}, 2401.3},
    {5, {{3, 0, 80, 1, 0, 0, 1}}, 2385.6},   {5, {{2, 0, 128, 1, 0, 0, 1}}, 2325.9},  {5, {{2, 0, 128, 1, 1, 0, 1}}, 2482.6},
    {5, {{2, 0, 160, 1, 0, 0, 1}}, 2454.3},  {5, {{2, 0, 160, 1, 1, 0, 1}}, 2257.3},  {5, {{3, 0, 96, 0, 1, 0, 1}}, 2241.1},
    {5, {{2, 0, 128, 0, 0, 0, 1}}, 2465.6},  {6, {{2, 0, 64, 0, 0, 0, 1}}, 1668.8},   {6, {{2, 0, 64, 0, 1, 0, 1}}, 1652.2},
    {6, {{2, 0, 80, 0, 0, 0, 1}}, 1602.3},   {6, {{2, 0, 80, 0, 1, 0, 1}}, 1583.8},   {7, {{1, 0, 64, 0, 0, 0, 1}}, 7.1},
    {7, {{1, 0, 128, 0, 0, 0, 1}}, 6.6},     {7, {{1, 0, 160, 0, 0, 0, 1}}, 8.1},     {7, {{2, 0, 64, 0, 0, 0, 1}}, 9.0},
    {7, {{2, 0, 128, 0, 0, 0, 1}}, 9.2},     {7, {{1, 0, 128, 1, 0, 0, 1}}, 6.5},     {8, {{2, 0, 128, 0, 0, 0, 1}}, 482.4},
    {8, {{2, 0, 128, 0, 0, 1, 1}}, 513.8},   {8, {{2, 0, 128, 0, 1, 0, 1}}, 478.0},   {8, {{2, 0, 128, 0, 1, 1, 1}}, 510.8},
    {9, {{2, 1, 64, 0, 0, 0, 1}}, 601.8},    {9, {{2, 1, 64, 0, 0, 1, 1}}, 600.0},    {9, {{2, 1, 64, 1, 0, 0, 1}}, 570.2},
    {9, {{2, 1, 64, 1, 0, 1, 1}}, 584.5},    {10, {{2, 2, 64, 0, 0, 0, 1}}, 542.5},   {10, {{2, 2, 64, 1, 0, 0, 1}}, 518.4},
    {10, {{2, 2, 64, 1, 0, 1, 1}}, 525.8},   {10, {{2, 2, 64, 1, 1, 0, 1}}, 518.6},   {10, {{2, 2, 128, 0, 0, 0, 1}}, 475.1},
    {10, {{2, 2, 128, 0, 1, 0, 1}}, 475.8},  {10, {{2, 2, 128, 0, 0, 1, 1}}, 506.1},  {11, {{2, 0, 128, 0, 0, 0, 1}}, 352.8},
    {11, {{2, 0, 128, 0, 1, 0, 1}}, 360.9},  {11, {{2, 0, 128, 1, 0, 0, 1}}, 341.6},  {11, {{2, 0, 128, 1, 1, 0, 1}}, 351.0},
    {11, {{2, 1, 128, 0, 0, 0, 1}}, 357.3},  {11, {{2, 1, 128, 1, 0, 0, 1}}, 343.2},  {11, {{3, 1, 64, 1, 0, 0, 1}}, 358.5},
    {11, {{3, 1, 64, 1, 0, 1, 1}}, 374.3},   {11, {{3, 1, 64, 0, 0, 0, 1}}, 377.7},   {12, {{2, 0, 128, 0, 0, 0, 1}}, 272.0},
    {12, {{2, 0, 128, 0, 0, 1, 1}}, 282.9},  {12, {{2, 0, 128, 0, 1, 0, 1}}, 271.7},  {12, {{2, 0, 128, 0, 1, 1, 1}}, 280.1},
    {12, {{2, 0, 96, 1, 0, 0, 1}}, 303.1},   {12, {{2, 0, 96, 1, 0, 1, 1}}, 325.4},   {12, {{2, 1, 64, 1, 0, 0, 1}}, 298.8},
    {12, {{2, 1, 64, 1, 0, 1, 1}}, 298.8},   {12, {{2, 0, 112, 1, 0, 0, 1}}, 310.0},  {12, {{2, 0, 160, 0, 1, 0, 1}}, 301.0},
    {12, {{2, 1, 96, 1, 0, 0, 1}}, 297.7},   {13, {{3, 1, 64, 1, 0, 0, 1}}, 177.9},   {13, {{3, 1, 64, 1, 0, 1, 1}}, 187.0},
    {13, {{3, 1, 96, 1, 0, 0, 1}}, 185.2},   {13, {{3, 1, 96, 0, 0, 0, 1}}, 185.5},   {13, {{3, 1, 128, 0, 0, 0, 1}}, 178.5},
    {13, {{3, 0, 128, 0, 0, 0, 1}}, 208.5},  {13, {{3, 0, 128, 0, 1, 0, 1}}, 203.6},  {13, {{3, 0, 96, 1, 0, 0, 1}}, 207.9},
    {13, {{3, 0, 96, 1, 0, 1, 1}}, 212.1},   {13, {{3, 0, 64, 1, 0, 0, 1}}, 216.0},   {13, {{2, 0, 128, 1, 0, 0, 1}}, 188.1},
    {13, {{2, 1, 128, 0, 0, 0, 1}}, 203.3},  {14, {{1, 0, 64, 0, 0, 1, 1}}, 247.1},   {14, {{1, 0, 64, 0, 0, 0, 1}}, 246.7},
    {14, {{1, 0, 128, 0, 0, 0, 1}}, 246.5},  {14, {{1, 0, 64, 0, 0, 0, 2}}, 253.2},   {14, {{1, 0, 128, 0, 0, 1, 1}}, 246.6},
    {15, {{3, 0, 128, 0, 0, 0, 1}}, 1155.7}, {15, {{3, 0, 128, 0, 0, 1, 1}}, 1142.2}, {15, {{3, 0, 128, 0, 1, 0, 1}}, 1117.0},
    {15, {{3, 0, 128, 0, 1, 1, 1}}, 1118.7}, {15, {{3, 0, 96, 1, 0, 0, 1}}, 1177.2},  {15, {{3, 0, 96, 1, 0, 1, 1}}, 1184.2},
    {15, {{3, 0, 96, 1, 1, 0, 1}}, 1169.1},  {15, {{3, 0, 96, 1, 1, 1, 1}}, 1196.0},  {15, {{3, 0, 80, 1, 0, 0, 1}}, 1239.2},
    {15, {{2, 0, 128, 1, 0, 0, 1}}, 1222.1}, {15, {{2, 0, 128, 1, 1, 0, 1}}, 1297.7}, {15, {{2, 0, 160, 1, 0, 0, 1}}, 1216.8},
    {15, {{2, 0, 160, 1, 1, 0, 1}}, 1209.3}, {15, {{3, 0, 96, 0, 1, 0, 1}}, 1193.6},  {15, {{2, 0, 128, 0, 0, 0, 1}}, 1284.0},
};

enum { PROBLEMS = sizeof problems / sizeof problems[0], TIMES = sizeof times / sizeof times[0] };

/* As many blocks in every row, apart by chance. */
static spk_pattern *mask_of(const struct measured_problem *p)
{
    const int64_t rows = p->lists * (p->queries / p->block), across = p->keys / p->block;
    int64_t *offsets = calloc((size_t)rows + 1, sizeof *offsets), *columns = calloc((size_t)(rows * p->kept), sizeof *columns);
    spk_pattern *made = NULL;
    assert_true(offsets != NULL && columns != NULL);
    for (int64_t row = 0; row < rows; row++) {
        offsets[row + 1] = (row + 1) * p->kept;
        for (int64_t i = 0; i < p->kept; i++)
            columns[row * p->kept + i] = i * across / p->kept + (row * 7 + i * 5) % (across / p->kept);
    }
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = rows * p->block, .cols = p->keys,
                                     .block_rows = p->block,     .block_cols = p->block,  .nnzb = rows * p->kept,
                                     .row_offsets = offsets,     .col_indices = columns,  .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &made), SPK_OK);
    free(offsets);
    free(columns);
    return made;
}

/* Its mask, where it has one, is the caller's to release. */
static spk_problem problem_of(const struct measured_problem *p, spk_pattern **mask)
{
    const spk_attention attention = {
        SPK_SIZED(spk_attention), .dtype = SPK_BF16,      .batch = p->batch, .heads = p->heads,   .heads_kv = p->heads_kv,
        .queries = p->queries,    .keys = p->keys,        .depth = p->depth, .causal = p->causal, .diagonal = SPK_DIAGONAL_TOP_LEFT,
        .window_left = p->window, .mask_heads = p->lists, .assume_finite = 1};
    spk_problem problem;
    *mask = p->block > 0 ? mask_of(p) : NULL;
    assert_int_equal(spk_problem_read(&spk_op_attention, *mask, &attention, NULL, &problem), SPK_OK);
    return problem;
}

/* Whether what is ranked first among the measured is good; says what all candidates' first is. */
static bool ranks_well(int which, const spk_problem *problem, const spk_device *device, const spk_kernel *row)
{
    double best = 1e30, least = 1e30, chosen = 0;
    const char *why = NULL;
    for (int i = 0; i < TIMES; i++)
        if (times[i].problem == which) {
            assert_true(row->ops->applicable(problem, device, &times[i].params, &why));
            const double us = row->ops->predict_us(problem, device, &times[i].params);
            best = times[i].us < best ? times[i].us : best;
            if (us < least) {
                least = us;
                chosen = times[i].us;
            }
        }
    char text[SPK_MAX_PARAMS_TEXT], first[SPK_MAX_PARAMS_TEXT] = "";
    double of_all = 1e30;
    for (int i = 0; i < spk_params_count(row); i++) {
        spk_params params;
        spk_params_get(row, i, &params);
        why = NULL;
        if (!row->ops->applicable(problem, device, &params, &why) || row->ops->predict_us(problem, device, &params) >= of_all)
            continue;
        of_all = row->ops->predict_us(problem, device, &params);
        spk_params_text(row, &params, text, sizeof text);
        snprintf(first, sizeof first, "%s", text);
    }
    printf("problem %d: %.1f us expected, %.1f measured, the best %.1f; of all candidates %s, %.1f\n", which, least, chosen, best, first,
           of_all);
    return chosen <= 1.03 * best && least > 0.85 * best && least < 1.2 * best;
}

static void the_best_is_ranked_first(void **state)
{
    (void)state;
    spk_cuda cuda = {.compute = 90, .shared_bytes = 232448, .shared_processor_bytes = 233472, .processors = 132, .driver_version = 13000};
    const spk_device device = {.backend = &spk_backend_cuda, .mem = spk_mem_system, .processors = 132, .state = &cuda};
    const spk_kernel *row = spk_kernel_by_name("attention_sm90");
    int wrong = 0;
    for (int i = 0; i < PROBLEMS; i++) {
        spk_pattern *mask = NULL;
        const spk_problem problem = problem_of(&problems[i], &mask);
        wrong += !ranks_well(i, &problem, &device, row);
        spk_pattern_release(&mask);
    }
    assert_int_equal(wrong, 0);
}

/* The least time that is expected of a row's candidates. */
static double least_expected(const char *name, const spk_problem *problem, const spk_device *device)
{
    const spk_kernel *row = spk_kernel_by_name(name);
    double least = 1e30;
    char text[SPK_MAX_PARAMS_TEXT] = "";
    assert_non_null(row);
    for (int i = 0; i < spk_params_count(row); i++) {
        spk_params params;
        const char *why = NULL;
        spk_params_get(row, i, &params);
        if (row->ops->applicable != NULL && !row->ops->applicable(problem, device, &params, &why))
            continue;
        const double us = row->ops->predict_us(problem, device, &params);
        assert_true(us > 0 && us < 1e12);
        if (us < least) {
            least = us;
            spk_params_text(row, &params, text, sizeof text);
        }
    }
    printf("  %s %s: %.1f us expected\n", name, text, least);
    return least;
}

/* Hopper's own instructions first, then the older ones, then none, then the definition. */
static void rows_are_ranked(void **state)
{
    (void)state;
    static const char *const rows[] = {"attention_sm90", "attention_sm80", "attention_simt", "reference_cuda_attention"};
    spk_cuda cuda = {.compute = 90, .shared_bytes = 232448, .shared_processor_bytes = 233472, .processors = 132, .driver_version = 13000};
    const spk_device device = {.backend = &spk_backend_cuda,
                               .mem = spk_mem_system,
                               .processors = 132,
                               .state = &cuda,
                               .peak_gflops_f32 = 66900,
                               .stream_gbs = 4000};
    for (int i = 0; i < PROBLEMS; i++) {
        spk_pattern *mask = NULL;
        const spk_problem problem = problem_of(&problems[i], &mask);
        double before = 0;
        printf("problem %d\n", i);
        for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
            const double us = least_expected(rows[row], &problem, &device);
            assert_true(us > before);
            before = us;
        }
        spk_pattern_release(&mask);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_is_ranked_first), cmocka_unit_test(rows_are_ranked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Stages that one half of a group leaves out, a whole round of the ring of them, before the last one, where A ends within a block: of one
 * block of threads and of a cluster of two, loaded by one warp and by four. */
#include <string.h>

#include "product.h"

enum { ROWS = 256, COLS = 386, SMALL = 16, GRID_ROWS = ROWS / SMALL, GRID_COLS = COLS / SMALL + 1, MOST_COLUMNS = 256, RUNS = 200 };
static const unsigned short one = 0x3c00, not_a_number = 0x7e00; /* of f16 */

typedef struct problem {
    int offsets[GRID_ROWS + 1], columns[GRID_ROWS * GRID_COLS];
    unsigned short values[GRID_ROWS * GRID_COLS * SMALL * SMALL], b[COLS * MOST_COLUMNS], d[ROWS * MOST_COLUMNS];
} problem;

/* Ones, and NaN beyond K. The first half of the block rows have all their blocks, the others the last. */
static void fill(problem *p)
{
    int count = 0;
    for (int i = 0; i < GRID_ROWS; i++) {
        for (int j = i < GRID_ROWS / 2 ? 0 : GRID_COLS - 1; j < GRID_COLS; j++) {
            for (int at = 0; at < SMALL * SMALL; at++)
                p->values[count * SMALL * SMALL + at] = j * SMALL + at % SMALL < COLS ? one : not_a_number;
            p->columns[count++] = j;
        }
        p->offsets[i + 1] = count;
    }
    for (int i = 0; i < COLS * MOST_COLUMNS; i++)
        p->b[i] = one;
}

static void run_often(spk_context *context, problem *p, spk_pattern *pattern, const char *choice, int columns)
{
    spk_plan *plan = NULL;
    const int count = p->offsets[GRID_ROWS];
    float wide[ROWS * MOST_COLUMNS];
    MUST(context,
         spk_plan_create_spmm(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = columns, .dtype_a = SPK_F16, .assume_finite = 1},
                              &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan));
    char *values = device_copy(context, p->values, (size_t)count * SMALL * SMALL * 2), *b = device_copy(context, p->b, sizeof p->b);
    char *d = device_copy(context, p->d, sizeof p->d);
    for (int run = 0, bad = 0; run < RUNS && !bad; run++) {
        memset(p->d, 0xff, sizeof p->d);
        MUST(context, spk_memory_copy(context, d, SPK_DEVICE, p->d, SPK_HOST, sizeof p->d));
        MUST(context,
             spk_plan_run_spmm(plan, &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1}, NULL));
        MUST(context, spk_synchronize(context, NULL));
        MUST(context, spk_memory_copy(context, p->d, SPK_HOST, d, SPK_DEVICE, sizeof p->d));
        MUST(context, spk_cast_values(context, SPK_F32, wide, SPK_F16, p->d, ROWS * columns));
        for (int i = 0; i < ROWS * columns && !bad; i++) {
            const float right = i / columns < ROWS / 2 ? COLS : COLS % SMALL;
            bad = !(wide[i] == right);
            if (bad)
                FAIL("%s, run %d: D[%d, %d] = %g; right is %g", choice, run, i / columns, i % columns, wide[i], right);
        }
    }
    spk_memory_release(context, (void **)&values);
    spk_memory_release(context, (void **)&b);
    spk_memory_release(context, (void **)&d);
    spk_plan_destroy(&plan);
}

void skipped(void)
{
    spk_context *context = new_context();
    spk_pattern *pattern = NULL;
    problem *p = calloc(1, sizeof *p);
    fill(p);
    MUST(context, spk_pattern_create(context,
                                     &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = ROWS, .cols = COLS, .block_rows = SMALL,
                                                        .block_cols = SMALL, .nnzb = p->offsets[GRID_ROWS], .row_offsets = p->offsets,
                                                        .col_indices = p->columns},
                                     &pattern));
    for (int slots = 2; slots <= 4; slots *= 2) /* blocks of 16 share their stages */
        for (int producers = 1; producers <= 4; producers += 3)
            for (int cluster = 1; cluster <= 2; cluster++) {
                char choice[100];
                snprintf(choice, sizeof choice, "spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=%d SLOTS=%d CLUSTER=%d", producers, slots,
                         cluster);
                memset(p->d, 0xff, sizeof p->d);
                run_often(context, p, pattern, choice, cluster * 128);
            }
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    free(p);
}

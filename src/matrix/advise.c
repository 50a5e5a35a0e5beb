/* Block-size advice: what each natural block size would store, counted exactly, and a rule of thumb for what that costs. */
#include <inttypes.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/entries.h"

/* Throughput of one stored element by block size, relative to blocks of 64: small blocks spend their time on indices and on loads of B that
 * they hardly reuse. Rounded from the fastest kernels with 128 columns of B, both element types, on Zen 3 and Emerald Rapids; a rule of
 * thumb for a first choice, not a prediction: tuning measures the real thing. */
static const struct {
    int block;
    double rate;
} natural[] = {{1, 0.3},   {2, 0.4},  {3, 0.5},  {4, 0.58},  {5, 0.62}, {6, 0.66}, {8, 0.68},
               {12, 0.78}, {16, 0.8}, {24, 0.9}, {32, 0.97}, {48, 1},   {64, 1},   {128, 1}};

enum { SIZES = sizeof natural / sizeof natural[0] };

/* Counts of one block size while the rows go by. */
typedef struct counter {
    int64_t block;
    spk_divider divider;
    int64_t *met; /* for each place, 1 + the last block row that had an entry there */
    /* NULL: places are block columns; else their block columns, in a hash table of mask + 1 places: the matrix is much wider than full */
    int64_t *cols;
    uint64_t mask;
    int64_t nnzb, elements;
} counter;

/* The place of a block column. A place that this block row has not used is free, so that nothing is ever removed. */
static int64_t place_of(const counter *c, int64_t block_col, int64_t stamp)
{
    if (c->cols == NULL)
        return block_col;
    uint64_t at = ((uint64_t)block_col * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    while (c->met[at & c->mask] == stamp && c->cols[at & c->mask] != block_col)
        at++;
    c->cols[at & c->mask] = block_col;
    return (int64_t)(at & c->mask);
}

static void count_row(counter *c, const spk_entries *entries, int64_t rows, int64_t cols, int64_t row)
{
    int64_t block_row = spk_divide(c->divider, row), height = spk_min_i64(c->block, rows - block_row * c->block);
    for (int64_t i = 0; i < entries->count; i++) {
        int64_t block_col = spk_divide(c->divider, entries->cols[i]), place = place_of(c, block_col, block_row + 1);
        if (c->met[place] == block_row + 1)
            continue;
        c->met[place] = block_row + 1;
        c->nnzb++;
        c->elements += height * spk_min_i64(c->block, cols - block_col * c->block);
    }
}

/* One place a block column, unless far more of those than entries would make that the cost of it all. */
static spk_status make_places(const spk_mem *mem, counter *c, int64_t entries, int64_t grid_cols)
{
    uint64_t places = 2;
    while (entries < grid_cols && places < 2 * (uint64_t)entries)
        places *= 2;
    if ((uint64_t)grid_cols <= 2 * places || entries >= grid_cols)
        return spk_calloc(mem, (size_t)grid_cols, sizeof *c->met, &c->met);
    c->mask = places - 1;
    SPK_TRY(spk_calloc(mem, (size_t)places, sizeof *c->met, &c->met));
    return spk_alloc(mem, (size_t)places, sizeof *c->cols, &c->cols);
}

static spk_status count_all(const spk_mem *mem, spk_entries *entries, counter *counters, int sizes)
{
    spk_status status = SPK_OK;
    const spk_matrix *matrix = entries->matrix;
    for (int k = 0; k < sizes; k++) {
        counters[k] = (counter){.block = natural[k].block, .divider = spk_divider_make(natural[k].block)};
        int64_t grid_cols = matrix->nnz > 0 ? spk_ceil_div(matrix->cols, natural[k].block) : 0;
        /* that a block row can meet, at most */
        int64_t columns = matrix->format == SPK_DENSE ? grid_cols : matrix->nnz * matrix->block_cols;
        SPK_GOTO(make_places(mem, &counters[k], columns, grid_cols));
    }
    for (int64_t row = 0; row < matrix->rows; row++) {
        spk_entries_load(entries, row, false);
        for (int k = 0; k < sizes; k++)
            count_row(&counters[k], entries, matrix->rows, matrix->cols, row);
    }
done:
    for (int k = 0; k < sizes; k++) {
        spk_free(mem, counters[k].met);
        spk_free(mem, counters[k].cols);
    }
    return status;
}

/* Entry i of a caller's array, whose entries are as large as its first one says. */
static spk_status write_entry(spk_block_advice *theirs, int i, const spk_block_advice *ours)
{
    const size_t bytes = theirs->struct_size;
    char *entry = (char *)theirs + (size_t)i * bytes;
    memcpy(entry, &bytes, sizeof bytes);
    return spk_struct_write(entry, ours, sizeof *ours, "spk_block_advice");
}

/* Time is taken as proportional to whole blocks, overhang included: kernels work on those. */
static void compute_advice(const spk_matrix *matrix, const counter *counters, int sizes, spk_block_advice *advice)
{
    double best = 0;
    for (int k = 0; k < sizes; k++) {
        const counter *c = &counters[k];
        double grid = (double)spk_ceil_div(matrix->rows, c->block) * (double)spk_ceil_div(matrix->cols, c->block);
        double time = (double)c->nnzb * (double)c->block * (double)c->block / natural[k].rate;
        advice[k] = (spk_block_advice){SPK_SIZED(spk_block_advice), .block_rows = c->block, .block_cols = c->block, .nnzb = c->nnzb};
        advice[k].density = (double)c->nnzb / grid;
        /* blocks of one count each element once */
        advice[k].fill = c->elements > 0 ? (double)c->elements / (double)counters[0].elements : 1;
        advice[k].score = time;
        best = k == 0 || time < best ? time : best;
    }
    for (int k = 0; k < sizes; k++)
        advice[k].score = best > 0 ? advice[k].score / best : 1;
}

spk_status spk_advise_blocks(const spk_mem *mem, const spk_matrix *in, spk_block_advice *advice, int *count)
{
    int sizes = 0;
    SPK_TRY(spk_struct_check(advice->struct_size, "spk_block_advice"));
    if (*count < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "*count = %d is negative: it is the room in advice", *count);
    while (sizes < SIZES && sizes < *count && natural[sizes].block <= spk_min_i64(in->rows, in->cols))
        sizes++;
    counter counters[SIZES] = {0};
    spk_entries entries;
    SPK_TRY(spk_entries_open(mem, in, &entries));
    spk_status status = count_all(mem, &entries, counters, sizes);
    spk_entries_close(mem, &entries);
    if (status != SPK_OK)
        return status;
    spk_block_advice made[SIZES];
    compute_advice(in, counters, sizes, made);
    for (int k = 0; k < sizes; k++)
        SPK_TRY(write_entry(advice, k, &made[k]));
    *count = sizes;
    return SPK_OK;
}

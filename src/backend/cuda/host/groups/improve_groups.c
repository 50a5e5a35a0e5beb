/* Exchanges rows of groups by chance, and groups by their length. */
#include "backend/cuda/host/groups/improve_groups.h"

#include <string.h>

enum {
    GROUPS_MOST_SWAPS = 6000,   /* of two rows, tried: 0.1 ms for 64 block rows of 64 columns, in pairs */
    GROUPS_SWAP_WORDS = 100000, /* of 64 columns, looked at while they are tried */
    GROUPS_PAIRS = 4,           /* the square of the rows over the swaps: where it is more, few are met that fit */
    GROUPS_UNEVEN_ROWS = 3,     /* a row so much longer than the mean: groups stay as they are (docs/log/hopper-spmm.md) */
    GROUPS_UNEVEN = 2,          /* a group so much longer than the mean: lengths will decide who gets it (schedule.h), most likely */
    GROUPS_SAMPLE = 32          /* rows in the middle that tell whether neighbours meet */
};

/* The columns of each row, a bit each; a row of none behind them. */
typedef struct groups_bits {
    uint64_t *memory;
    int64_t rows, words; /* of 64 columns, of a row */
} groups_bits;

/* Set bits, in a processor's oldest instructions: Warren, Hacker's Delight, 5-1. */
static int groups_popcount(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(x * 0x0101010101010101u >> 56);
}

static spk_status groups_bits_make(const spk_mem *mem, const spk_bsr_view *view, groups_bits *bits)
{
    bits->rows = view->grid_rows;
    bits->words = (view->grid_cols + 63) / 64;
    SPK_TRY(spk_calloc(mem, (size_t)((bits->rows + 1) * bits->words), sizeof *bits->memory, &bits->memory));
    for (int64_t i = 0; i < view->grid_rows; i++)
        for (int64_t p = view->offsets[i]; p < view->offsets[i + 1]; p++)
            bits->memory[i * bits->words + view->columns[p] / 64] |= (uint64_t)1 << view->columns[p] % 64;
    return SPK_OK;
}

/* Columns of a group. */
static int groups_united(const groups_bits *bits, const int *rows, int height)
{
    int united = 0;
    for (int64_t word = 0; word < bits->words; word++) {
        uint64_t all = 0;
        for (int y = 0; y < height; y++)
            all |= bits->memory[(rows[y] >= 0 ? rows[y] : bits->rows) * bits->words + word];
        united += groups_popcount(all);
    }
    return united;
}

/* Exchanges rows of two groups where they then have no more columns, by chance: of 64 rows of random columns at 50 % a per cent fewer
 * columns remain, which few matchings of pairs surpass. The same result on each call. */
static void groups_exchange(groups_work *w, const groups_bits *bits, int64_t groups, int height, int64_t swaps)
{
    const uint64_t part = (uint64_t)groups;
    spk_rng rng;
    spk_rng_seed(&rng, 1);
    for (int64_t i = 0; i < swaps; i++) {
        const uint64_t drawn = spk_rng_next(&rng); /* 24 bits for each group, 8 for each row */
        const int64_t a = (int64_t)((drawn & 0xffffff) * part >> 24),
                      after = a + 1 + (int64_t)((drawn >> 24 & 0xffffff) * (part - 1) >> 24);
        const int64_t b = after < groups ? after : after - groups;
        int *rows_a = w->rows + a * height, *rows_b = w->rows + b * height;
        int *row_a = rows_a + ((drawn >> 48 & 0xff) * (unsigned)height >> 8), *row_b = rows_b + ((drawn >> 56) * (unsigned)height >> 8);
        spk_balance_exchange(row_a, row_b);
        const int united_a = groups_united(bits, rows_a, height), united_b = groups_united(bits, rows_b, height);
        if (united_a + united_b > w->unions[a] + w->unions[b]) {
            spk_balance_exchange(row_a, row_b);
            continue;
        }
        w->unions[a] = united_a;
        w->unions[b] = united_b;
    }
}

bool spk_groups_may_change(const spk_bsr_view *view)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < view->grid_rows; i++)
        longest = view->offsets[i + 1] - view->offsets[i] > longest ? view->offsets[i + 1] - view->offsets[i] : longest;
    const int64_t rows = view->grid_rows < GROUPS_SAMPLE ? view->grid_rows : GROUPS_SAMPLE;
    const turns_lists sample = {
        .columns = view->columns, .stride = 1, .rows = rows, .offsets = view->offsets + (view->grid_rows - rows) / 2};
    return longest * view->grid_rows <= GROUPS_UNEVEN_ROWS * view->nnzb && spk_turns_period(&sample) == 0;
}

spk_status spk_groups_unite(const spk_mem *mem, groups_work *w, int64_t groups, int height)
{
    const int64_t rows = w->view->grid_rows, most = GROUPS_SWAP_WORDS / (2 * height * ((w->view->grid_cols + 63) / 64 + 1));
    const int64_t swaps = most < GROUPS_MOST_SWAPS ? most : GROUPS_MOST_SWAPS;
    groups_bits bits = {0};
    if (groups < 2 || rows > GROUPS_MOST_SWAPS || rows * rows > GROUPS_PAIRS * swaps)
        return SPK_OK;
    SPK_TRY(groups_bits_make(mem, w->view, &bits));
    groups_exchange(w, &bits, groups, height, swaps);
    spk_free(mem, bits.memory);
    return SPK_OK;
}

/* Rows and unions of the groups in another order. rows: as many as there are, for the time being. */
static void groups_reorder(groups_work *w, const int *places, int *rows, int *unions, int64_t groups, int height)
{
    for (int64_t g = 0; g < groups; g++) {
        memcpy(rows + g * height, w->rows + (int64_t)places[g] * height, (size_t)height * sizeof *rows);
        unions[g] = w->unions[places[g]];
    }
    memcpy(w->rows, rows, (size_t)(groups * height) * sizeof *rows);
    memcpy(w->unions, unions, (size_t)groups * sizeof *unions);
}

spk_status spk_groups_balance(const spk_mem *mem, groups_work *w, int64_t groups, int height, int slots, groups_dealt dealt)
{
    int64_t all = 0, longest = 0;
    int *lengths = NULL, *places = NULL, *rows = NULL;
    spk_status status;
    for (int64_t g = 0; g < groups; g++) {
        all += w->unions[g];
        longest = w->unions[g] > longest ? w->unions[g] : longest;
    }
    if (dealt.blocks == 0 || longest * groups > GROUPS_UNEVEN * all)
        return SPK_OK;
    SPK_GOTO(spk_alloc(mem, (size_t)groups, sizeof *lengths, &lengths));
    SPK_GOTO(spk_alloc(mem, (size_t)groups, sizeof *places, &places));
    SPK_GOTO(spk_alloc(mem, (size_t)(groups * height), sizeof *rows, &rows));
    for (int64_t g = 0; g < groups; g++)
        lengths[g] = (w->unions[g] + slots - 1) / slots * dealt.chunks;
    SPK_GOTO(spk_balance_make(mem, lengths, places, groups, dealt.col_tiles, dealt.blocks));
    groups_reorder(w, places, rows, lengths, groups, height);
done:
    spk_free(mem, lengths);
    spk_free(mem, places);
    spk_free(mem, rows);
    return status;
}

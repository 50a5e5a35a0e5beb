/* Better row groups than the first choice: fewer columns in all, and an order in which blocks of threads that get every so-manieth tile end together. */
#ifndef SPK_BACKEND_CUDA_KERNELS_GROUPS_BETTER_H
#define SPK_BACKEND_CUDA_KERNELS_GROUPS_BETTER_H

#include "backend/cuda/kernels/balance.h"
#include "backend/cuda/kernels/groups_choose.h"
#include "backend/cuda/kernels/turns.h"
#include "base/rng.h"

enum {
    GROUPS_MOST_SWAPS = 10000,    /* of two rows, tried: 0.2 ms for 64 block rows of 64 columns */
    GROUPS_SWAP_WORDS = 100000,   /* of 64 columns, looked at in all */
    GROUPS_BIT_WORDS = 1 << 20,   /* no more columns are kept as bits */
    GROUPS_UNEVEN_ROWS = 3,       /* a row so much longer than the mean: groups stay as they are (docs/hopper-log.md) */
    GROUPS_UNEVEN = 2             /* a group so much longer than the mean: tiles will not be dealt out in turns (schedule.h) */
};

/* How tiles will be dealt out: each group's column tiles to so many blocks of threads in turns, groups fastest. 0 blocks: not known. */
typedef struct groups_dealt {
    int64_t col_tiles;
    int blocks;
} groups_dealt;

/* The columns of each row, a bit each. */
typedef struct groups_bits {
    uint64_t *memory;
    int64_t words; /* of a row */
} groups_bits;

/* Set bits, in a processor's oldest instructions: Warren, Hacker's Delight, 5-1. */
static inline int groups_popcount(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(x * 0x0101010101010101u >> 56);
}

static inline spk_status groups_bits_make(const spk_mem *mem, const spk_bsr_view *view, groups_bits *bits)
{
    bits->words = (view->grid_cols + 63) / 64;
    SPK_TRY(spk_calloc(mem, (size_t)(view->grid_rows * bits->words), sizeof *bits->memory, &bits->memory));
    for (int64_t i = 0; i < view->grid_rows; i++)
        for (int64_t p = view->offsets[i]; p < view->offsets[i + 1]; p++)
            bits->memory[i * bits->words + view->columns[p] / 64] |= (uint64_t)1 << view->columns[p] % 64;
    return SPK_OK;
}

/* What a group costs: tiles of B first, then what its tiles of rows have of them (of one row each always the same). *columns: of its union. */
static inline int groups_cost(const groups_bits *bits, const int *rows, int height, int tile_rows, int *columns)
{
    int united = 0, present = 0;
    for (int64_t word = 0; word < bits->words; word++) {
        uint64_t all = 0;
        for (int y = 0; y < height; y += tile_rows) {
            uint64_t tile = 0;
            for (int i = y; i < y + tile_rows; i++)
                tile |= rows[i] >= 0 ? bits->memory[rows[i] * bits->words + word] : 0;
            present += tile_rows > 1 ? groups_popcount(tile) : 0;
            all |= tile;
        }
        united += groups_popcount(all);
    }
    *columns = united;
    return 4 * united + present;
}

static inline void groups_swap_ints(int *a, int *b)
{
    const int moved = *a;
    *a = *b;
    *b = moved;
}

/* Exchanges rows of two groups where that costs no more, by chance: of 64 rows of random columns at 50 % a per cent fewer columns remain, which few matchings of
 * pairs surpass. The same result on each call. costs: of each group. */
static inline void groups_exchange(groups_work *w, const groups_bits *bits, int *costs, int64_t groups, int height, int tile_rows)
{
    const int64_t words = GROUPS_SWAP_WORDS / (2 * height * bits->words), swaps = words < GROUPS_MOST_SWAPS ? words : GROUPS_MOST_SWAPS;
    spk_rng rng;
    spk_rng_seed(&rng, 1);
    for (int64_t g = 0; g < groups; g++)
        costs[g] = groups_cost(bits, w->rows + g * height, height, tile_rows, &w->unions[g]);
    for (int64_t i = 0; i < swaps; i++) {
        const uint64_t drawn = spk_rng_next(&rng), part = (uint64_t)groups; /* 24 bits for each group, 8 for each row */
        const int64_t a = (int64_t)((drawn & 0xffffff) * part >> 24), after = a + 1 + (int64_t)((drawn >> 24 & 0xffffff) * (part - 1) >> 24);
        const int64_t b = after < groups ? after : after - groups;
        int *rows_a = w->rows + a * height, *rows_b = w->rows + b * height;
        int *row_a = rows_a + ((drawn >> 48 & 0xff) * (unsigned)height >> 8), *row_b = rows_b + ((drawn >> 56) * (unsigned)height >> 8);
        int columns_a, columns_b;
        groups_swap_ints(row_a, row_b);
        const int cost_a = groups_cost(bits, rows_a, height, tile_rows, &columns_a), cost_b = groups_cost(bits, rows_b, height, tile_rows, &columns_b);
        if (cost_a + cost_b > costs[a] + costs[b]) {
            groups_swap_ints(row_a, row_b);
            continue;
        }
        costs[a] = cost_a;
        costs[b] = cost_b;
        w->unions[a] = columns_a;
        w->unions[b] = columns_b;
    }
}

/* Whether rows are of about one length, and of no kind whose neighbours want the same columns in turn (turns.h): else fewer columns cost more than they save. */
static inline bool groups_may_change(const spk_bsr_view *view)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < view->grid_rows; i++)
        longest = view->offsets[i + 1] - view->offsets[i] > longest ? view->offsets[i + 1] - view->offsets[i] : longest;
    return longest * view->grid_rows <= GROUPS_UNEVEN_ROWS * view->nnzb &&
           turns_period(&(turns_lists){.columns = view->columns, .stride = 1, .rows = view->grid_rows, .offsets = view->offsets}) == 0;
}

/* Fewer columns in all groups. Nothing is done where rows are too many to look at. */
static inline spk_status groups_unite(const spk_mem *mem, groups_work *w, int64_t groups, int height, int tile_rows)
{
    const int64_t words = (w->view->grid_cols + 63) / 64;
    groups_bits bits = {0};
    int *costs = NULL;
    spk_status status;
    if (groups < 2 || w->view->nnzb == 0 || words > GROUPS_BIT_WORDS / w->view->grid_rows || words * height > GROUPS_SWAP_WORDS / 64)
        return SPK_OK;
    SPK_GOTO(groups_bits_make(mem, w->view, &bits));
    SPK_GOTO(spk_alloc(mem, (size_t)groups, sizeof *costs, &costs));
    groups_exchange(w, &bits, costs, groups, height, tile_rows);
done:
    spk_free(mem, bits.memory);
    spk_free(mem, costs);
    return status;
}

/* Groups in an order in which blocks of threads end together. rows are moved through `moved`, of as many. */
static inline void groups_reorder(groups_work *w, const int *places, int *moved, int64_t groups, int height)
{
    for (int64_t g = 0; g < groups; g++)
        memcpy(moved + g * height, w->rows + (int64_t)places[g] * height, (size_t)height * sizeof *moved);
    memcpy(w->rows, moved, (size_t)(groups * height) * sizeof *moved);
}

static inline spk_status groups_balance(const spk_mem *mem, groups_work *w, int64_t groups, int height, int slots, groups_dealt dealt)
{
    int64_t all = 0, longest = 0;
    int *lengths = NULL, *places = NULL, *moved = NULL;
    spk_status status;
    for (int64_t g = 0; g < groups; g++) {
        all += w->unions[g];
        longest = w->unions[g] > longest ? w->unions[g] : longest;
    }
    if (dealt.blocks == 0 || longest * groups > GROUPS_UNEVEN * all)
        return SPK_OK;
    SPK_GOTO(spk_alloc(mem, (size_t)groups, sizeof *lengths, &lengths));
    SPK_GOTO(spk_alloc(mem, (size_t)groups, sizeof *places, &places));
    SPK_GOTO(spk_alloc(mem, (size_t)(groups * height), sizeof *moved, &moved));
    for (int64_t g = 0; g < groups; g++)
        lengths[g] = (w->unions[g] + slots - 1) / slots;
    SPK_GOTO(balance_make(mem, lengths, places, groups, dealt.col_tiles, dealt.blocks));
    groups_reorder(w, places, moved, groups, height);
done:
    spk_free(mem, lengths);
    spk_free(mem, places);
    spk_free(mem, moved);
    return status;
}

#endif

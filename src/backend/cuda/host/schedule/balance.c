/* Exchanges row tiles between the fullest block of threads and others, for as long as that helps. */
#include "backend/cuda/host/schedule/balance.h"

void spk_balance_exchange(int *a, int *b)
{
    const int moved = *a;
    *a = *b;
    *b = moved;
}

/* The blocks of a place's tiles have so much more to do. */
static void balance_add(balance_work *w, int64_t place, int64_t more)
{
    const int64_t step = w->rows % w->blocks, blocks = w->blocks, count = w->col_tiles;
    int64_t block = place % blocks;
    for (int64_t c = 0; c < count; c++) {
        w->load[block] += more;
        block += step;
        block -= block >= blocks ? blocks : 0;
    }
    w->left -= count;
}

static bool balance_is_below(balance_work *w, int64_t place, int64_t most)
{
    const int64_t step = w->rows % w->blocks, blocks = w->blocks;
    int64_t block = place % blocks;
    for (int64_t c = 0; c < w->col_tiles; c++) {
        if (w->load[block] >= most)
            return false;
        block += step;
        block -= block >= blocks ? blocks : 0;
    }
    return true;
}

/* Exchanges the row tiles at two places where then all blocks whose loads change have less to do than the fullest one had. */
static bool balance_relieves(balance_work *w, int64_t fullest, int64_t a, int64_t b)
{
    const int64_t most = w->load[fullest], less = w->lengths[a] - w->lengths[b];
    w->left--;
    if (less <= 0)
        return false;
    balance_add(w, a, -less);
    balance_add(w, b, less);
    if (w->load[fullest] < most && balance_is_below(w, b, most)) {
        spk_balance_exchange(&w->lengths[a], &w->lengths[b]);
        spk_balance_exchange(&w->places[a], &w->places[b]);
        return true;
    }
    balance_add(w, a, less);
    balance_add(w, b, -less);
    return false;
}

bool spk_balance_step(balance_work *w)
{
    const int64_t tiles = w->rows * w->col_tiles;
    int64_t fullest = 0, first_place = -1;
    for (int64_t b = 1; b < w->blocks; b++)
        fullest = w->load[b] > w->load[fullest] ? b : fullest;
    w->left -= w->blocks;
    for (int64_t tile = fullest; tile < tiles && w->left > 0; tile += w->blocks) {
        const int64_t a = tile % w->rows, first = a / w->blocks * w->blocks,
                      last = first + w->blocks < w->rows ? first + w->blocks : w->rows;
        if (a == first_place) /* from here on the same ones again */
            return false;
        first_place = first_place < 0 ? a : first_place;
        for (int64_t b = first; b < last && w->left > 0; b++)
            if (balance_relieves(w, fullest, a, b))
                return true;
    }
    return false;
}

spk_status spk_balance_make(const spk_mem *mem, int *lengths, int *places, int64_t rows, int64_t col_tiles, int blocks)
{
    balance_work w = {.lengths = lengths, .places = places, .rows = rows, .col_tiles = col_tiles, .blocks = blocks, .left = BALANCE_WORK};
    for (int64_t place = 0; place < rows; place++)
        places[place] = (int)place;
    if (rows > BALANCE_WORK / col_tiles / 2)
        return SPK_OK;
    SPK_TRY(spk_calloc(mem, (size_t)blocks, sizeof *w.load, &w.load));
    for (int64_t place = 0; place < rows; place++)
        balance_add(&w, place, lengths[place] + SCHEDULE_TILE_COST);
    while (spk_balance_step(&w)) {
    }
    spk_free(mem, w.load);
    return SPK_OK;
}

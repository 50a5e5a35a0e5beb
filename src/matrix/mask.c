/* Makes masks: goes through the block rows of all lists, keeps the blocks that a shape marks, and a tile of bits of each that is seen in
 * part; tiles that are alike are kept once. */
#include "matrix/mask.h"

#include <inttypes.h>
#include <string.h>

#include "matrix/generate.h"

/* What is being made, with the room that its arrays have; slots: a hash table of numbers of tiles. */
typedef struct making {
    spk_mask *made;
    const spk_generate *options;
    spk_mask_row row;
    int64_t block_room, tile_room, slot_count;
    int32_t *slots; /* 1 + the number of a tile; 0: free */
} making;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static spk_status grow_blocks(making *m, bool with_tiles)
{
    spk_mask *made = m->made;
    if (made->blocks < m->block_room)
        return SPK_OK;
    const size_t room = 2 * (size_t)m->block_room + 64;
    SPK_TRY(spk_realloc(&made->mem, &made->col_indices, room, sizeof *made->col_indices));
    if (with_tiles)
        SPK_TRY(spk_realloc(&made->mem, &made->tile_numbers, room, sizeof *made->tile_numbers));
    m->block_room = (int64_t)room;
    return SPK_OK;
}

/* Where a tile stands in the table, or the free place for it. */
static int64_t slot_of(const making *m, const uint32_t *bits)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < m->made->tile_words; i++) {
        hash = (hash ^ bits[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    int64_t at = (int64_t)(hash & (uint64_t)(m->slot_count - 1));
    while (m->slots[at] != 0 &&
           memcmp(m->made->tile_bits + (m->slots[at] - 1) * m->made->tile_words, bits, (size_t)m->made->tile_words * sizeof *bits) != 0)
        at = (at + 1) & (m->slot_count - 1);
    return at;
}

static spk_status grow_tiles(making *m)
{
    spk_mask *made = m->made;
    if (made->tiles < m->tile_room)
        return SPK_OK;
    if (made->tiles >= INT32_MAX / 4)
        return spk_fail(SPK_ERR_UNSUPPORTED, "the mask has more than %" PRId64 " tiles", made->tiles);
    const int64_t room = m->tile_room == 0 ? 32 : 2 * m->tile_room, slots = 4 * room; /* powers of two */
    int32_t *table = NULL;
    SPK_TRY(spk_realloc(&made->mem, &made->tile_bits, (size_t)room, (size_t)m->made->tile_words * sizeof *made->tile_bits));
    SPK_TRY(spk_calloc(&made->mem, (size_t)slots, sizeof *table, &table));
    spk_free(&made->mem, m->slots);
    m->slots = table;
    m->slot_count = slots;
    m->tile_room = room;
    for (int64_t i = 0; i < made->tiles; i++)
        m->slots[slot_of(m, made->tile_bits + i * m->made->tile_words)] = (int32_t)(i + 1);
    return SPK_OK;
}

/* The number of these bits among the tiles. */
static spk_status number_tile(making *m, const uint32_t *bits, int32_t *number)
{
    SPK_TRY(grow_tiles(m));
    const int64_t at = slot_of(m, bits);
    if (m->slots[at] == 0) {
        memcpy(m->made->tile_bits + m->made->tiles * m->made->tile_words, bits, (size_t)m->made->tile_words * sizeof *bits);
        m->slots[at] = (int32_t)++m->made->tiles;
    }
    *number = m->slots[at] - 1;
    return SPK_OK;
}

/* Whether all pairs of a block that are there are set. */
static bool is_whole(const making *m, int64_t block, const uint32_t *bits)
{
    const spk_generate *o = m->options;
    const int64_t left = o->cols - block * o->block_cols, keys = left < o->block_cols ? left : o->block_cols;
    for (int64_t q = 0; q <= m->row.last_query - m->row.query; q++)
        for (int64_t k = 0; k < keys; k += 32) {
            const uint32_t wanted = keys - k >= 32 ? UINT32_MAX : (UINT32_C(1) << (keys - k)) - 1;
            if (bits[q * m->made->words + k / 32] != wanted)
                return false;
        }
    return true;
}

static spk_status keep(making *m, int64_t block)
{
    spk_mask *made = m->made;
    SPK_TRY(grow_blocks(m, m->row.bits != NULL));
    made->col_indices[made->blocks] = block;
    if (m->row.bits != NULL) {
        const uint32_t *bits = m->row.bits + block * m->made->tile_words;
        int32_t number = -1;
        if (m->row.marks[block] == SPK_MASK_SOME && !is_whole(m, block, bits))
            SPK_TRY(number_tile(m, bits, &number));
        made->tile_numbers[made->blocks] = number;
    }
    made->blocks++;
    return SPK_OK;
}

static spk_status make_row(making *m, int64_t list, int64_t index)
{
    const spk_generate *o = m->options;
    const spk_mask_shape_row *shape = spk_mask_shape_of(o->mask);
    const bool all = shape->is_free || (o->all_keys && o->window_right == 0);
    spk_mask_row *row = &m->row;
    row->list = list;
    row->index = index;
    row->query = index * o->block_rows;
    row->last_query = (o->rows - row->query < o->block_rows ? o->rows : row->query + o->block_rows) - 1;
    row->shift = o->top_left ? 0 : o->cols - o->rows;
    row->ahead = all ? o->cols + o->rows : o->window_right > 0 ? o->window_right - 1 : 0;
    row->first = row->grid_cols;
    row->end = 0;
    shape->see(row);
    for (int64_t block = row->first; block < row->end; block++)
        if (row->marks[block]) {
            SPK_TRY(keep(m, block));
            row->marks[block] = 0;
        }
    m->made->row_offsets[list * m->made->block_rows_of_list + index + 1] = m->made->blocks;
    return SPK_OK;
}

/* Rows of all lists, checked against the limit of a grid. */
static spk_status size(const spk_generate *o, spk_mask *made)
{
    if (o->block_rows < 1 || o->block_rows > 256 || o->block_cols < 1 || o->block_cols > 256)
        return spk_fail(SPK_ERR_ARGUMENT, "block_rows = %" PRId64 ", block_cols = %" PRId64 ": must be in 1 .. 256", o->block_rows,
                        o->block_cols);
    if (o->rows < 0 || o->cols < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "rows = %" PRId64 ", cols = %" PRId64 ": must be at least 0", o->rows, o->cols);
    made->block_rows_of_list = ceil_div(o->rows, o->block_rows);
    made->grid_cols = ceil_div(o->cols, o->block_cols);
    made->words = ceil_div(o->block_cols, 32);
    made->tile_words = o->block_rows * made->words;
    if (made->block_rows_of_list > SPK_GENERATE_GRID_LIMIT / o->lists || made->grid_cols > SPK_GENERATE_GRID_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT,
                        "rows = %" PRId64 ", cols = %" PRId64 ", lists = %" PRId64 ": make %" PRId64 " block rows each and %" PRId64
                        " block columns, limit %" PRId64 " in all",
                        o->rows, o->cols, o->lists, made->block_rows_of_list, made->grid_cols, SPK_GENERATE_GRID_LIMIT);
    made->grid_rows = o->lists * made->block_rows_of_list;
    return SPK_OK;
}

spk_status spk_mask_make(const spk_mem *mem, const spk_generate *options, bool with_tiles, spk_mask **out)
{
    spk_generate o = *options;
    spk_mask sizes = {.mem = *mem};
    making m = {.options = &o};
    spk_status status;
    SPK_TRY(spk_mask_take(&o));
    SPK_TRY(size(&o, &sizes));
    SPK_TRY(spk_calloc(mem, 1, sizeof *m.made, &m.made));
    *m.made = sizes;
    m.row = (spk_mask_row){.options = &o, .grid_cols = sizes.grid_cols, .words = sizes.words};
    SPK_GOTO(spk_calloc(mem, (size_t)sizes.grid_rows + 1, sizeof *m.made->row_offsets, &m.made->row_offsets));
    SPK_GOTO(spk_calloc(mem, (size_t)sizes.grid_cols + 1, 1, &m.row.marks));
    SPK_GOTO(grow_blocks(&m, with_tiles));
    if (with_tiles)
        SPK_GOTO(spk_alloc(mem, (size_t)sizes.grid_cols + 1, (size_t)sizes.tile_words * sizeof *m.row.bits, &m.row.bits));
    for (int64_t list = 0; list < o.lists; list++)
        for (int64_t i = 0; i < sizes.block_rows_of_list; i++)
            SPK_GOTO(make_row(&m, list, i));
    *out = m.made;
    m.made = NULL;
done:
    spk_free(mem, m.row.marks);
    spk_free(mem, m.row.bits);
    spk_free(mem, m.slots);
    spk_mask_release(&m.made);
    return status;
}

void spk_mask_release(spk_mask **mask)
{
    if (mask == NULL || *mask == NULL)
        return;
    const spk_mem mem = (*mask)->mem;
    spk_free(&mem, (*mask)->row_offsets);
    spk_free(&mem, (*mask)->col_indices);
    spk_free(&mem, (*mask)->tile_numbers);
    spk_free(&mem, (*mask)->tile_bits);
    spk_free(&mem, *mask);
    *mask = NULL;
}

/* Gives tiles to clusters and cuts one of each cluster between its two blocks. */
#include "backend/cuda/host/schedule/cluster_cut.h"

#include <string.h>

typedef struct cut_work {
    const split_task *task; /* size: 2 */
    int *lengths, *rows;    /* of the block rows, in blocks; their numbers by falling length */
    int *owners, *tiles; /* each tile's cluster; the clusters' tiles, one cluster after the other, longest first; of those of a second block
                            ~ of it */
    int64_t *begins;     /* where each cluster's tiles begin */
    schedule_heap heap;
    cut_lists *lists;
    bool began;     /* the block that is being written has its first piece */
    int64_t others; /* pieces that are not a block's first */
} cut_work;

/* Tiles are numbered by falling length. */
static int64_t cut_tiles_a_row(const cut_work *w)
{
    return w->task->parts * w->task->col_tiles;
}

static int64_t cut_stages(const cut_work *w, int64_t tile)
{
    return spk_split_length(w->task, w->rows[tile / cut_tiles_a_row(w)]) * w->task->chunks;
}

/* Whole tiles to clusters, long ones first, to whoever has least. */
static void cut_assign(cut_work *w)
{
    const split_task *t = w->task;
    const int64_t tiles = t->view->grid_rows * cut_tiles_a_row(w);
    spk_schedule_build(&w->heap, t->clusters);
    for (int64_t i = 0; i < tiles; i++)
        w->begins[(w->owners[i] = spk_schedule_add(&w->heap, cut_stages(w, i) + SCHEDULE_TILE_COST)) + 1]++;
    for (int i = 0; i < t->clusters; i++)
        w->begins[i + 1] += w->begins[i];
    for (int64_t i = 0; i < tiles; i++)
        w->tiles[w->begins[w->owners[i]]++] = (int)i;
    memmove(w->begins + 1, w->begins, (size_t)t->clusters * sizeof *w->begins); /* each now stands where the next cluster begins */
    w->begins[0] = 0;
}

/* Stages first .. last of a tile to a block, the last one that has pieces. */
static void cut_write(cut_work *w, int block, int64_t tile, bool cut, int64_t first, int64_t last)
{
    const split_task *t = w->task;
    const int64_t in_row = tile % cut_tiles_a_row(w);
    const int row = w->rows[tile / cut_tiles_a_row(w)], col = (int)(in_row % t->col_tiles);
    const int64_t at = w->began ? t->clusters * 2 + w->others++ : block;
    int *piece = w->lists->memory + spk_split_at_pieces(t) + SPLIT_PIECE_WORDS * at;
    w->began = true;
    w->lists->pieces++;
    piece[0] = row * t->parts + (int)(in_row / t->col_tiles);
    piece[1] = cut ? ~col : col;
    piece[2] = (int)(t->view->offsets[row] * t->chunks + first);
    piece[3] = (int)(t->view->offsets[row] * t->chunks + last);
}

static void cut_write_whole(cut_work *w, int64_t from, int64_t to, int block)
{
    for (int64_t i = from; i < to; i++)
        if ((w->tiles[i] < 0) == (block % 2 == 1)) {
            const int64_t tile = w->tiles[i] < 0 ? ~w->tiles[i] : w->tiles[i];
            cut_write(w, block, tile, false, 0, cut_stages(w, tile));
        }
}

static void cut_end(cut_work *w, int block)
{
    if (!w->began)
        w->lists->memory[spk_split_at_pieces(w->task) + SPLIT_PIECE_WORDS * block] = -1;
    w->lists->memory[block + 1] = (int)w->others;
    w->began = false;
}

/* Shares a cluster's tiles out to its two blocks. */
static void cut_cluster(cut_work *w, int cluster)
{
    const split_task *t = w->task;
    const int64_t from = w->begins[cluster], to = w->begins[cluster + 1], longest = from < to ? cut_stages(w, w->tiles[from]) : 0;
    int64_t load[2] = {0, 0}, most;
    for (int64_t i = from + 1; i < to; i++) {
        const int64_t cost = cut_stages(w, w->tiles[i]) + SCHEDULE_TILE_COST;
        const bool other = load[1] <= load[0];
        load[other] += cost;
        if (other)
            w->tiles[i] = ~w->tiles[i];
    }
    int64_t head = (load[1] + longest + CUT_HANDOVER_COST + 1 - load[0] - SCHEDULE_TILE_COST) / 2;
    if (t->edge && head > longest - t->chunks) /* the block at A's edge, whose stages are fewer, is left whole */
        head = head * 2 > 2 * longest - t->chunks ? longest : longest - t->chunks;
    const bool cut = head > 0 && head < longest, alone = load[0] == 0;
    const int first = cluster * 2, second = first + 1;
    cut_write_whole(w, from + 1, to, first);
    if (from < to)
        cut_write(w, first, w->tiles[from], cut, 0, cut ? head : longest);
    cut_end(w, first);
    if (cut && alone)
        cut_write(w, second, w->tiles[from], true, head, longest);
    cut_write_whole(w, from + 1, to, second);
    if (cut && !alone)
        cut_write(w, second, w->tiles[from], true, head, longest);
    cut_end(w, second);
    load[0] += from < to ? (cut ? head : longest) + SCHEDULE_TILE_COST : 0;
    load[1] += cut ? longest - head + CUT_HANDOVER_COST : 0;
    most = load[0] > load[1] ? load[0] : load[1];
    w->lists->cost = most > w->lists->cost ? most : w->lists->cost;
    w->lists->cut_tiles += cut;
}

static spk_status cut_allocate(const spk_mem *mem, cut_work *w)
{
    const split_task *t = w->task;
    const size_t rows = (size_t)t->view->grid_rows, tiles = rows * (size_t)cut_tiles_a_row(w);
    w->lists->count = spk_split_at_pieces(t) + ((int64_t)tiles + t->clusters * 3) * SPLIT_PIECE_WORDS;
    SPK_TRY(spk_calloc(mem, (size_t)w->lists->count, sizeof *w->lists->memory, &w->lists->memory));
    SPK_TRY(spk_alloc(mem, rows, sizeof *w->lengths, &w->lengths));
    SPK_TRY(spk_alloc(mem, rows, sizeof *w->rows, &w->rows));
    SPK_TRY(spk_alloc(mem, tiles, sizeof *w->owners, &w->owners));
    SPK_TRY(spk_alloc(mem, tiles, sizeof *w->tiles, &w->tiles));
    SPK_TRY(spk_calloc(mem, (size_t)t->clusters + 1, sizeof *w->begins, &w->begins));
    SPK_TRY(spk_schedule_heap_make(mem, t->clusters, &w->heap));
    for (size_t i = 0; i < rows; i++)
        w->lengths[i] = (int)spk_split_length(t, (int)i);
    return spk_schedule_sort(mem, w->lengths, (int64_t)rows, w->rows);
}

spk_status spk_cut_make(const spk_mem *mem, const split_task *task, cut_lists *lists)
{
    cut_lists made = {0};
    cut_work w = {.task = task, .lists = &made};
    spk_status status;
    SPK_GOTO(cut_allocate(mem, &w));
    cut_assign(&w);
    for (int i = 0; i < task->clusters; i++)
        cut_cluster(&w, i);
    *lists = made;
    made.memory = NULL;
done:
    spk_free(mem, made.memory);
    spk_free(mem, w.lengths);
    spk_free(mem, w.rows);
    spk_free(mem, w.owners);
    spk_free(mem, w.tiles);
    spk_free(mem, w.begins);
    spk_schedule_heap_release(mem, &w.heap);
    return status;
}

/* Chooses which rows clusters share, gives tiles away and writes the pieces. */
#include "backend/cuda/host/schedule/cluster_split.h"

#include "backend/cuda/device/schedule/tile_order.h"

int64_t spk_split_at_pieces(const split_task *t)
{
    return pieces_begin((unsigned)(t->clusters * t->size));
}

typedef struct split_work {
    const split_task *task;
    int *lengths, *rows; /* of the block rows; their numbers by falling length */
    int *owners;         /* of each tile, in the order of rows; of a split one its cluster. NULL: not wanted */
    schedule_heap heap;
} split_work;

int64_t spk_split_length(const split_task *t, int row)
{
    return t->view->offsets[row + 1] - t->view->offsets[row];
}

/* Gives the tiles of rows[from .. to) to the least loaded, each adding cost_of(length). */
static void split_give(split_work *w, int64_t from, int64_t to, bool split, int *owners)
{
    const split_task *t = w->task;
    const int64_t tiles = t->parts * t->col_tiles;
    for (int64_t r = from; r < to; r++) {
        const int64_t length = spk_split_length(t, w->rows[r]), own = split ? (length + t->size - 1) / t->size : length;
        const int64_t cost = own * t->chunks + SCHEDULE_TILE_COST + (split ? SPLIT_EXCHANGE_COST : 0);
        for (int64_t i = 0; i < tiles; i++) {
            const int least = spk_schedule_add(&w->heap, cost);
            if (owners != NULL)
                owners[r * tiles + i] = least;
        }
    }
}

/* The first split_rows rows split, the others whole. Returns the load of the fullest block. */
static int64_t split_assign(split_work *w, int64_t split_rows, int *owners)
{
    const split_task *t = w->task;
    const int blocks = t->clusters * t->size;
    int64_t most = 0;
    for (int i = 0; i < t->clusters; i++)
        w->heap.load[i] = 0;
    spk_schedule_build(&w->heap, t->clusters);
    split_give(w, 0, split_rows, true, owners);
    for (int i = blocks - 1; i >= 0; i--) /* a cluster's load is that of each of its blocks */
        w->heap.load[i] = w->heap.load[i / t->size];
    spk_schedule_build(&w->heap, blocks);
    split_give(w, split_rows, t->view->grid_rows, false, owners);
    for (int i = 0; i < blocks; i++)
        most = w->heap.load[i] > most ? w->heap.load[i] : most;
    return most;
}

/* How many rows to split: those above one of a few multiples of a block's fair share, whichever leaves the fullest block least. */
static int64_t split_choose(split_work *w, split_lists *lists)
{
    static const int64_t quarters[SPLIT_THRESHOLDS] = {8, 6, 4, 3, 2};
    const split_task *t = w->task;
    const int64_t tiles = t->parts * t->col_tiles, blocks = (int64_t)t->clusters * t->size;
    const int64_t share = (t->view->nnzb * t->chunks + t->view->grid_rows * SCHEDULE_TILE_COST) * tiles / blocks;
    int64_t best = 0, rows = 0;
    lists->cost = lists->whole_cost = split_assign(w, 0, NULL);
    for (int i = 0; i < SPLIT_THRESHOLDS; i++) {
        const int64_t before = rows;
        while (rows < t->view->grid_rows && spk_split_length(t, w->rows[rows]) >= 2 &&
               spk_split_length(t, w->rows[rows]) * t->chunks * 4 > share * quarters[i])
            rows++;
        const int64_t cost = rows > before ? split_assign(w, rows, NULL) : lists->cost;
        if (cost < lists->cost) {
            lists->cost = cost;
            best = rows;
        }
    }
    return best;
}

static spk_status split_sort(const spk_mem *mem, split_work *w)
{
    const split_task *t = w->task;
    for (int i = 0; i < t->view->grid_rows; i++)
        w->lengths[i] = (int)spk_split_length(t, i);
    return spk_schedule_sort(mem, w->lengths, t->view->grid_rows, w->rows);
}

static int64_t split_segment(const split_task *t, int row, int segment)
{
    return t->view->offsets[row] + spk_split_length(t, row) * segment / t->size;
}

/* next: where each block's next piece goes. */
static void split_write(const split_work *w, const split_lists *lists, int64_t *next)
{
    const split_task *t = w->task;
    const int64_t tiles = t->parts * t->col_tiles;
    for (int64_t i = 0; i < t->view->grid_rows * tiles; i++) {
        const int row = w->rows[i / tiles], part = (int)(i % tiles / t->col_tiles), col = (int)(i % t->col_tiles);
        const bool split = i / tiles < lists->split_rows;
        for (int segment = 0; segment < (split ? t->size : 1); segment++) {
            int *piece = lists->memory + spk_split_at_pieces(t) +
                         SPLIT_PIECE_WORDS * next[split ? w->owners[i] * t->size + segment : w->owners[i]]++;
            piece[0] = row * t->parts + part;
            piece[1] = split ? ~col : col;
            piece[2] = (int)(split ? split_segment(t, row, segment) : t->view->offsets[row]);
            piece[3] = (int)(split ? split_segment(t, row, segment + 1) : t->view->offsets[row + 1]);
        }
    }
}

static spk_status split_list(const spk_mem *mem, const split_work *w, split_lists *lists)
{
    const split_task *t = w->task;
    const int64_t tiles = t->parts * t->col_tiles, blocks = (int64_t)t->clusters * t->size;
    int64_t *next = NULL;
    spk_status status;
    lists->pieces = tiles * (t->view->grid_rows + lists->split_rows * (t->size - 1));
    lists->count = spk_split_at_pieces(t) + lists->pieces * SPLIT_PIECE_WORDS;
    SPK_GOTO(spk_calloc(mem, (size_t)lists->count, sizeof *lists->memory, &lists->memory));
    SPK_GOTO(spk_calloc(mem, (size_t)blocks + 1, sizeof *next, &next));
    for (int64_t i = 0; i < t->view->grid_rows * tiles; i++)
        for (int segment = 0; segment < t->size; segment++) {
            if (i / tiles < lists->split_rows)
                next[w->owners[i] * t->size + segment + 1]++;
            else if (segment == 0)
                next[w->owners[i] + 1]++;
        }
    for (int64_t i = 0; i < blocks; i++)
        next[i + 1] += next[i];
    for (int64_t i = 0; i <= blocks; i++)
        lists->memory[i] = (int)next[i];
    split_write(w, lists, next);
done:
    spk_free(mem, next);
    return status;
}

spk_status spk_split_make(const spk_mem *mem, const split_task *task, split_lists *lists)
{
    const size_t rows = (size_t)task->view->grid_rows, blocks = (size_t)task->clusters * (size_t)task->size;
    split_work w = {.task = task};
    split_lists made = {0};
    spk_status status;
    SPK_GOTO(spk_alloc(mem, rows, sizeof *w.lengths, &w.lengths));
    SPK_GOTO(spk_alloc(mem, rows, sizeof *w.rows, &w.rows));
    SPK_GOTO(spk_alloc(mem, rows * (size_t)task->parts * (size_t)task->col_tiles, sizeof *w.owners, &w.owners));
    SPK_GOTO(spk_schedule_heap_make(mem, (int)blocks, &w.heap));
    SPK_GOTO(split_sort(mem, &w));
    made.split_rows = split_choose(&w, &made);
    split_assign(&w, made.split_rows, w.owners);
    SPK_GOTO(split_list(mem, &w, &made));
    *lists = made;
    made.memory = NULL;
done:
    spk_free(mem, made.memory);
    spk_schedule_heap_release(mem, &w.heap);
    spk_free(mem, w.owners);
    spk_free(mem, w.rows);
    spk_free(mem, w.lengths);
    return status;
}

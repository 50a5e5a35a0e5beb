#include "backend/cuda/host/attention/attention_backward_remote.h"

#include <limits.h>

#include "backend/cuda/helpers/attention_steps.h"
#include "backend/cuda/host/attention/attention_backward.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/remote/deferred.h"

enum { PIECE_ALIGNMENT = 256, END_BYTES = 16, MOST_BLOCKS = 4096, PASSES = 2 };

static const double MOST_SEEN_BYTES = 1 << 30; /* of bits, one for each block that a list could have */

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Where the pieces of the memory are, from its first byte. What the programs count up from 0 comes first. */
typedef struct layout {
    size_t seen, used, cleared, spans[PASSES], sorted[PASSES], steps[PASSES], end, bytes;
} layout;

typedef struct work {
    attention_steps_task task; /* pointers are NULL */
    int64_t steps[PASSES];     /* that there is room for */
    double seen_bytes, tiles[PASSES];
} work;

/* Each list's steps are walked once by each group that has it, or once by each head of a group. */
static work work_of(const spk_problem *p, const two_pass_cut cuts[PASSES])
{
    const attention_task t = spk_cuda_attention_task(p, NULL);
    work made = {.task = {.task = t,
                          .lists = t.list_rows > 0 ? (int)(p->pattern->index.grid_rows / t.list_rows) : 0,
                          .grid_cols = (int)p->pattern->index.grid_cols,
                          .tiled = p->lists.tiles > 0,
                          .seen_words = (int)up(t.list_rows, 32)}};
    made.seen_bytes = (double)made.task.lists * made.task.grid_cols * made.task.seen_words * sizeof(unsigned);
    for (int i = 0; i < PASSES; i++) {
        const two_pass_cut *cut = &cuts[i];
        const int query_rows = cut->by_queries ? cut->own_rows : TWO_PASS_ROWS, key_rows = cut->by_queries ? TWO_PASS_ROWS : cut->own_rows,
                  of_keys = t.list_sharing > t.sharing ? t.list_sharing / t.sharing : 1,
                  walks = cut->by_queries              ? 1
                          : t.list_sharing > t.sharing ? t.sharing
                                                       : t.list_sharing;
        attention_steps_pass *pass = &made.task.pass[i];
        *pass = (attention_steps_pass){.by_queries = cut->by_queries,
                                       .own_rows = cut->own_rows,
                                       .own_tiles = (int)up(cut->by_queries ? t.queries : t.keys, cut->own_rows),
                                       .own_heads = cut->by_queries ? t.heads : t.heads / t.sharing,
                                       .group_heads = cut->by_queries ? t.list_sharing : of_keys,
                                       .group_items = t.item_lists > 0 ? t.items : 1,
                                       .row_tiles = (int)up(t.block_rows < t.queries ? t.block_rows : t.queries, query_rows)};
        pass->group_tiles = pass->own_tiles * (pass->own_heads / pass->group_heads) * pass->group_items;
        made.tiles[i] = (double)pass->own_tiles * pass->own_heads * t.items;
        made.steps[i] = p->pattern->nnzb * pass->row_tiles * (t.block_cols / key_rows) * walks;
        pass->section = (int)spk_cuda_attention_backward_section(p, cut);
    }
    return made;
}

const char *spk_cuda_attention_backward_remote_refusal(const spk_problem *p, const two_pass_cut cuts[PASSES])
{
    const work w = work_of(p, cuts);
    if (w.seen_bytes > MOST_SEEN_BYTES)
        return "without the indices on the host its lists of queries would take more than 1 GB";
    for (int i = 0; i < PASSES; i++)
        if (w.steps[i] > INT_MAX / 4 || w.tiles[i] > INT_MAX / 4)
            return "it counts tiles and steps up to 2^29";
    return NULL;
}

static size_t piece(size_t *bytes, size_t size)
{
    const size_t at = *bytes;
    *bytes += (size + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    return at;
}

static layout layout_of(const work *w)
{
    layout l = {0};
    l.seen = piece(&l.bytes, (size_t)w->seen_bytes);
    l.used = piece(&l.bytes, sizeof(int));
    l.cleared = l.bytes;
    for (int i = 0; i < PASSES; i++) {
        l.spans[i] = piece(&l.bytes, (size_t)w->task.pass[i].group_tiles * 2 * sizeof(int));
        l.sorted[i] = piece(&l.bytes, (size_t)w->task.pass[i].tiles * sizeof(two_pass_tile));
        l.steps[i] = piece(&l.bytes, (size_t)w->steps[i] * sizeof(two_pass_step));
    }
    l.end = piece(&l.bytes, END_BYTES);
    return l;
}

void spk_cuda_attention_backward_remote_build(const char *entry, spk_build *build)
{
    *build = (spk_build){.file = "attention_steps.cu", .entry = entry};
}

static spk_status launch(const spk_bound *bound, attention_steps_task *task, const char *entry, int64_t blocks, int threads)
{
    spk_build build;
    CUfunction function = NULL;
    void *parameters[] = {task};
    if (blocks == 0)
        return SPK_OK;
    spk_cuda_attention_backward_remote_build(entry, &build);
    SPK_TRY(spk_cuda_function(bound->device, &build, &function));
    return spk_cuda_launch(bound->device, function, (unsigned)blocks, (unsigned)threads, 0,
                           spk_cuda_deferred_stream(bound->problem.pattern), parameters);
}

/* So many warps, of as many blocks as a loop over them is worth. */
static int64_t blocks_of(int64_t warps)
{
    const int64_t blocks = up(warps, ATTENTION_STEPS_THREADS / 32);
    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

static spk_status launch_all(const spk_bound *bound, attention_steps_task *task, const layout *l, void *memory)
{
    const spk_cuda_driver *driver = spk_cuda_of(bound->device)->driver;
    const CUstream stream = spk_cuda_deferred_stream(bound->problem.pattern);
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;
    const attention_steps_pass *a = &task->pass[0], *b = &task->pass[1];
    SPK_TRY(spk_cuda_check(bound->device, driver->fill_bytes(at, 0, l->cleared, stream), "cuMemsetD8Async"));
    SPK_TRY(launch(bound, task, "mark_seen_blocks", blocks_of((int64_t)task->lists * task->task.list_rows), ATTENTION_STEPS_THREADS));
    SPK_TRY(launch(bound, task, "list_seen_steps", blocks_of((int64_t)a->group_tiles + b->group_tiles), ATTENTION_STEPS_THREADS));
    SPK_TRY(launch(bound, task, "sort_seen_tiles", up(a->tiles, a->section) + up(b->tiles, b->section), ATTENTION_STEPS_SORT_THREADS));
    /* The next launch may begin before the lists can be seen, but not before what comes after them is done. */
    return spk_cuda_check(bound->device, driver->fill_bytes(at + l->end, 0, END_BYTES, stream), "cuMemsetD8Async");
}

spk_status spk_cuda_attention_backward_remote(const spk_bound *bound, const spk_cuda_index *index, const two_pass_cut cuts[PASSES],
                                              two_pass_lists lists[PASSES], two_pass_remote *remote)
{
    work w = work_of(&bound->problem, cuts);
    for (int i = 0; i < PASSES; i++)
        w.task.pass[i].tiles = (int)w.tiles[i];
    const layout l = layout_of(&w);
    SPK_TRY(spk_cuda_deferred_take(bound->problem.pattern, l.bytes, &remote->memory));
    remote->bytes = l.bytes;
    char *memory = remote->memory;
    w.task.task.offsets = index->arguments.offsets;
    w.task.task.columns = index->arguments.columns;
    w.task.seen = (unsigned *)(void *)(memory + l.seen);
    w.task.used = (int *)(void *)(memory + l.used);
    for (int i = 0; i < PASSES; i++) {
        attention_steps_pass *pass = &w.task.pass[i];
        pass->spans = (int *)(void *)(memory + l.spans[i]);
        pass->sorted = (int *)(void *)(memory + l.sorted[i]);
        pass->steps = (int *)(void *)(memory + l.steps[i]);
        lists[i] = (two_pass_lists){.tiles = pass->sorted, .steps = pass->steps, .count = pass->tiles};
    }
    return launch_all(bound, &w.task, &l, remote->memory);
}

void spk_cuda_attention_backward_remote_release(const spk_bound *bound, two_pass_remote *remote)
{
    if (remote->memory != NULL)
        spk_cuda_deferred_give(bound->problem.pattern, remote->bytes, remote->memory);
    remote->memory = NULL;
}

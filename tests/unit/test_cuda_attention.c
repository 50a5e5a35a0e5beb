/* Tiles of attention on a GPU: every tile goes to one worker, workers have about as much to do, and a tile's steps hold all keys that its
 * queries see. Needs no GPU: device memory is the host's here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/host/attention/attention_backward_lists.h"
#include "backend/cuda/host/attention/attention_backward_order.h"
#include "backend/cuda/host/attention/attention_order.h"
#include "base/rng.h"
#include "op/attention/attention.h"
#include "registry/registry.h"

static spk_status take(spk_device *device, size_t bytes, void **memory)
{
    (void)device;
    *memory = malloc(bytes);
    return *memory != NULL ? SPK_OK : SPK_ERR_OUT_OF_MEMORY;
}

static spk_status copy_in(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
    return SPK_OK;
}

static const spk_backend host_memory = {.allocate = take, .copy_in = copy_in};
static spk_device device = {.backend = &host_memory};

static int64_t between(spk_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)spk_rng_below(rng, (uint64_t)(high - low + 1));
}

/* Lists for `lists` heads; a block is stored by a chance of its row's own. */
static spk_pattern *draw_mask(spk_rng *rng, const spk_attention *a, int64_t lists, int block_rows, int block_cols)
{
    const int64_t down = (a->queries + block_rows - 1) / block_rows, across = (a->keys + block_cols - 1) / block_cols;
    int64_t *offsets = calloc((size_t)(lists * down) + 1, sizeof *offsets), *columns = calloc((size_t)(lists * down * across) + 1, 8),
            count = 0;
    spk_pattern *made = NULL;
    assert_true(offsets != NULL && columns != NULL);
    for (int64_t row = 0; row < lists * down; row++) {
        const double density = spk_rng_uniform(rng);
        for (int64_t column = 0; column < across; column++)
            if (spk_rng_uniform(rng) < density)
                columns[count++] = column;
        offsets[row + 1] = count;
    }
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = lists == 1 ? a->queries : lists * down * block_rows,
                                     .cols = a->keys,
                                     .block_rows = block_rows,
                                     .block_cols = block_cols,
                                     .nnzb = count,
                                     .row_offsets = offsets,
                                     .col_indices = columns,
                                     .index_type = SPK_INDEX_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &made), SPK_OK);
    free(offsets);
    free(columns);
    return made;
}

typedef struct drawn {
    spk_pattern *mask;
    spk_problem problem;
} drawn;

static drawn draw(spk_rng *rng)
{
    static const int sizes[] = {16, 32, 64, 128};
    spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_BF16, .depth = 64, .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT};
    drawn d = {0};
    a.queries = between(rng, 1, 700);
    a.keys = between(rng, 1, 700);
    a.heads_kv = between(rng, 1, 3);
    a.heads = a.heads_kv * between(rng, 1, 3);
    a.batch = between(rng, 1, 2);
    a.causal = (int)between(rng, 0, 1);
    a.window_left = between(rng, 0, 1) * between(rng, 1, 300);
    a.sinks = a.window_left > 0 ? between(rng, 0, 1) * between(rng, 1, 40) : 0;
    if (between(rng, 0, 1) == 1) {
        a.mask_heads = between(rng, 0, 1) == 0 ? 1 : a.heads_kv;
        d.mask = draw_mask(rng, &a, a.mask_heads, sizes[between(rng, 0, 3)], sizes[between(rng, 0, 3)]);
    }
    assert_int_equal(spk_problem_read(&spk_op_attention, d.mask, &a, NULL, &d.problem), SPK_OK);
    return d;
}

/* Keys of blocks that some query of the tile sees, whole blocks of the mask or whole steps: no fewer must be walked. */
static int64_t least_steps(const spk_problem *p, const attention_tiling *t, int64_t tile)
{
    const int64_t row_tile = tile % t->row_tiles, rest = tile / t->row_tiles, head = rest % t->head_tiles * t->heads;
    const int64_t first = row_tile / t->block_tiles * t->block_rows + row_tile % t->block_tiles * t->rows,
                  block_end = (row_tile / t->block_tiles + 1) * t->block_rows;
    const int64_t width = p->pattern != NULL ? p->pattern->block_cols : t->step_keys, units = (p->n + width - 1) / width;
    int64_t *keys = calloc((size_t)p->n + 1, sizeof *keys), seen = 0;
    bool *unit = calloc((size_t)units + 1, sizeof *unit);
    assert_true(keys != NULL && unit != NULL);
    for (int64_t query = first; query < first + t->rows && query < block_end && query < p->m; query++) {
        const spk_args args = {.item = rest / t->head_tiles};
        const spk_sequence whole = spk_attention_whole(p);
        const int64_t count = spk_attention_keys(p, &args, &whole, head, query, keys);
        for (int64_t i = 0; i < count; i++)
            unit[keys[i] / width] = true;
    }
    for (int64_t i = 0; i < units; i++)
        seen += unit[i];
    free(keys);
    free(unit);
    return width >= t->step_keys ? seen * (width / t->step_keys) : (seen + t->step_keys / width - 1) / (t->step_keys / width);
}

/* Marks the steps of worker w, each of which nobody has done; answers with how many there are, tiles' ends included. */
static int64_t mark_steps(const spk_problem *p, const attention_tiling *t, const attention_lists *lists, int w, unsigned char *done,
                          int64_t longest)
{
    int64_t load = 0;
    for (int at = lists->offsets[w]; at < lists->offsets[w + 1]; at++) {
        const int entry = lists->tiles[at];
        attention_share share = {entry, 0, 0};
        assert_true(entry >= 0 && entry < t->all + lists->share_count);
        if (entry >= t->all)
            share = lists->shares[entry - t->all];
        else
            share.end = (int)spk_cuda_attention_steps(p, t, entry);
        if (share.end == share.first)
            assert_false(done[share.tile * (longest + 1) + longest]++);
        for (int step = share.first; step < share.end; step++)
            assert_false(done[share.tile * (longest + 1) + step]++);
        load += share.end - share.first + 1;
    }
    return load;
}

/* The shares of a tile follow each other in the order of their keys. */
static void check_joined(const attention_lists *lists, int64_t longest)
{
    int shares = 0;
    for (int i = 0; i < lists->joined_count; i++) {
        const attention_joined *j = &lists->joined[i];
        int first = 0;
        assert_int_equal(j->share, shares);
        assert_true(j->count > 1 && j->row < j->end);
        for (int s = 0; s < j->count; s++) {
            const attention_share *share = &lists->shares[j->share + s];
            assert_true(share->tile == lists->shares[j->share].tile && share->first == first);
            assert_true(share->end > first);
            first = share->end;
        }
        assert_int_equal(first, longest);
        shares += j->count;
    }
    assert_int_equal(shares, lists->share_count);
}

/* A tile's steps hold all keys that its queries see. Answers with the most of a tile. */
static int64_t check_lengths(const spk_problem *p, const attention_tiling *t)
{
    int64_t longest = 0;
    for (int64_t tile = 0; tile < t->all; tile++) {
        const int64_t steps = spk_cuda_attention_steps(p, t, tile), wanted = least_steps(p, t, tile);
        /* a window and sinks may leave out what lies between: whole blocks that one of them touches are walked */
        assert_true(steps >= wanted && (p->band.sinks > 0 || p->band.left > 0 || p->band.right > 0 || steps == wanted));
        longest = steps > longest ? steps : longest;
    }
    return longest;
}

static void check_order(const spk_problem *p, const attention_tiling *t, int workers, int64_t longest)
{
    attention_lists lists = {0};
    int64_t most = 0, least = INT64_MAX;
    const bool shares = spk_cuda_attention_shares(p, t, workers, 1);
    assert_int_equal(spk_cuda_attention_order(&device, p, t, workers, shares, &lists), SPK_OK);
    if (lists.memory == NULL)
        return;
    unsigned char *done = calloc((size_t)t->all, (size_t)longest + 1); /* the last: of tiles without steps */
    assert_non_null(done);
    assert_int_equal(lists.offsets[0], 0);
    for (int w = 0; w < workers; w++) {
        const int64_t load = mark_steps(p, t, &lists, w, done, longest);
        most = load > most ? load : most;
        least = load < least ? load : least;
    }
    for (int64_t tile = 0; tile < t->all; tile++) {
        const int64_t steps = spk_cuda_attention_steps(p, t, tile);
        for (int64_t step = 0; step <= longest; step++)
            assert_int_equal(done[tile * (longest + 1) + step], step < steps || (steps == 0 && step == longest));
    }
    check_joined(&lists, longest);
    assert_true(most - least <= (lists.share_count > 0 ? 5 : longest + 1));
    free(done);
    free(lists.memory);
}

/* Full attention of so many tiles that the last ones are shared out. */
static void last_tiles_are_shared_out(void **state)
{
    (void)state;
    int with_shares = 0;
    for (int workers = 2; workers < 40; workers++)
        for (int tiles = workers + 1; tiles < 4 * workers; tiles += 3) {
            const spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .depth = 64, .queries = 128 * tiles - 5, .keys = 16384};
            spk_problem problem;
            assert_int_equal(spk_problem_read(&spk_op_attention, NULL, &a, NULL, &problem), SPK_OK);
            const attention_tiling t = spk_cuda_attention_tiling(&problem, 128, 1, 128);
            with_shares += spk_cuda_attention_shares(&problem, &t, workers, 1);
            check_order(&problem, &t, workers, spk_cuda_attention_steps(&problem, &t, 0));
        }
    assert_true(with_shares > 100);
}

static void tiles_are_dealt_out(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 4711);
    for (int i = 0; i < 400; i++) {
        static const int rows[] = {64, 128, 192}, steps[] = {64, 128};
        drawn d = draw(&rng);
        const int shared = spk_cuda_attention_shared_heads(&d.problem);
        const attention_tiling t =
            spk_cuda_attention_tiling(&d.problem, rows[between(&rng, 0, 2)], between(&rng, 0, 1) ? shared : 1, steps[between(&rng, 0, 1)]);
        check_order(&d.problem, &t, (int)between(&rng, 1, 12), check_lengths(&d.problem, &t));
        spk_pattern_release(&d.mask);
    }
}

static const spk_kernel *find(const char *name)
{
    const spk_kernel *rows = NULL;
    for (int i = spk_kernels(&rows) - 1; i >= 0; i--)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* A window wider than queries and keys together is none. The program must know it as the task does: compiled with a limit, it would read
 * the task's 0 as a width. */
static void wide_windows_are_none(void **state)
{
    (void)state;
    const spk_kernel *kernel = find("attention_sm90");
    assert_non_null(kernel);
    for (int i = 0; i < 2; i++) {
        const spk_attention a = {SPK_SIZED(spk_attention),
                                 .dtype = SPK_F16,
                                 .depth = 64,
                                 .queries = 16,
                                 .keys = 64,
                                 .heads = 1,
                                 .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT,
                                 .window_left = i == 0 ? 93 : 47,
                                 .window_right = i == 0 ? 47 : 93};
        spk_problem problem;
        spk_build build = {0};
        spk_params params;
        assert_int_equal(spk_problem_read(&spk_op_attention, NULL, &a, NULL, &problem), SPK_OK);
        spk_params_get(kernel, 0, &params);
        kernel->ops->build(&problem, &device, &params, &build);
        const attention_task task = spk_cuda_attention_task(&problem, NULL);
        assert_int_equal(strstr(build.options, "-DLEFT=1") != NULL, task.left != 0);
        assert_int_equal(strstr(build.options, "-DRIGHT=1") != NULL, task.right != 0);
        assert_int_equal(task.left, i == 0 ? 0 : 47);
        assert_int_equal(task.right, i == 0 ? 47 : 0);
    }
}

/* ---- attention_backward_sm90: in which order tiles of keys add to rows of grad_Q */

enum { KEYS = 128 };

/* Which pairs of a tile of queries and one of `wide` keys are seen. */
static int64_t seen_pairs_of(const spk_problem *p, int rows, int wide, int64_t item, int64_t head, int64_t query_tile, int64_t key_tile)
{
    int64_t *keys = calloc((size_t)p->n + 1, sizeof *keys), seen = 0;
    const spk_args args = {.item = item};
    const spk_sequence whole = spk_attention_whole(p);
    assert_non_null(keys);
    for (int64_t query = query_tile * rows; query < (query_tile + 1) * rows && query < p->m; query++) {
        const int64_t count = spk_attention_keys(p, &args, &whole, head, query, keys);
        for (int64_t i = 0; i < count; i++)
            seen += keys[i] / wide == key_tile;
    }
    free(keys);
    return seen;
}

static int64_t seen_pairs(const spk_problem *p, int rows, int64_t item, int64_t head, int64_t query_tile, int64_t key_tile)
{
    return seen_pairs_of(p, rows, KEYS, item, head, query_tile, key_tile);
}

/* A step of a mask whose blocks may have bits names its block. */
static void check_entry(const spk_problem *p, int most_rows, const attention_backward_tile *tile, const attention_backward_step *step,
                        int entry)
{
    const spk_index *index = &p->pattern->index;
    const int64_t query = (int64_t)(step->tile & ~ATTENTION_BACKWARD_HIDDEN) * most_rows,
                  list = spk_attention_list_row(p, tile->item, step->head, query), key = tile->key & ~ATTENTION_BACKWARD_HIDDEN;
    assert_true(entry >= index->offsets[list] && entry < index->offsets[list + 1]);
    assert_int_equal(index->columns[entry], key / p->pattern->block_cols);
    assert_true((tile->key & ATTENTION_BACKWARD_HIDDEN) != 0);
}

/* A tile's steps are those that have pairs, each once; those that are not marked have all. */
static void check_steps(const spk_problem *p, int most_rows, const attention_backward_order *o, const attention_backward_tile *tile)
{
    const attention_backward_step *steps = (const attention_backward_step *)o->steps;
    const int64_t sharing = spk_attention_sharing(p), key = tile->key & ~ATTENTION_BACKWARD_HIDDEN;
    bool *there = calloc((size_t)(sharing * o->query_tiles), sizeof *there);
    assert_non_null(there);
    for (int i = tile->begin; i < tile->end; i++) {
        const int64_t query_tile = steps[i].tile & ~ATTENTION_BACKWARD_HIDDEN, head = steps[i].head;
        const bool hidden = (steps[i].tile & ATTENTION_BACKWARD_HIDDEN) != 0;
        const int64_t rows = p->m - query_tile * most_rows < most_rows ? p->m - query_tile * most_rows : most_rows;
        assert_int_equal(head / sharing, tile->head_kv);
        assert_int_equal(steps[i].number, (tile->item * o->heads_kv * sharing + head) * o->query_tiles + query_tile);
        assert_true(!hidden || (tile->key & ATTENTION_BACKWARD_HIDDEN) != 0);
        assert_true(hidden || seen_pairs(p, most_rows, tile->item, head, query_tile, key / KEYS) == rows * KEYS);
        assert_false(there[head % sharing * o->query_tiles + query_tile]);
        there[head % sharing * o->query_tiles + query_tile] = true;
    }
    for (int64_t i = 0; i < sharing * o->query_tiles; i++)
        assert_true(there[i] || seen_pairs(p, most_rows, tile->item, tile->head_kv * sharing + i / o->query_tiles, i % o->query_tiles,
                                           key / KEYS) == 0);
    free(there);
}

/* Workers that wait for their turns come to an end, however fast each is. */
static void check_turns(spk_rng *rng, const spk_problem *p, const attention_backward_order *o, int workers)
{
    const attention_backward_step *steps = (const attention_backward_step *)o->steps;
    const attention_backward_tile *tiles = (const attention_backward_tile *)o->tiles;
    const int64_t queries = (int64_t)o->query_tiles * o->heads_kv * spk_attention_sharing(p) * p->batch;
    int *turns = calloc((size_t)queries + 1, sizeof *turns), *at = calloc((size_t)workers, sizeof *at),
        *step = calloc((size_t)workers, sizeof *step);
    assert_true(turns != NULL && at != NULL && step != NULL);
    for (int w = 0; w < workers; w++) {
        at[w] = o->offsets[w];
        step[w] = at[w] < o->offsets[w + 1] ? tiles[at[w]].begin : 0;
    }
    for (int waiting = 1, moved = 1; waiting > 0;) {
        assert_true(moved > 0);
        waiting = moved = 0;
        for (int w = 0; w < workers; w++)
            for (int64_t most = between(rng, 0, 3); at[w] < o->offsets[w + 1]; most--) {
                waiting++;
                if (step[w] == tiles[at[w]].end) {
                    step[w] = ++at[w] < o->offsets[w + 1] ? tiles[at[w]].begin : 0;
                    moved++;
                } else if (turns[steps[step[w]].number] == steps[step[w]].turn) {
                    if (most < 0) { /* it could, and is slow */
                        moved++;
                        break;
                    }
                    turns[steps[step[w]++].number]++;
                    moved++;
                } else {
                    assert_true(turns[steps[step[w]].number] < steps[step[w]].turn);
                    break;
                }
            }
    }
    free(turns);
    free(at);
    free(step);
}

static void sums_of_queries_take_turns(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 20261126);
    for (int i = 0; i < 150; i++) {
        drawn d = draw(&rng);
        const spk_pattern *mask = d.mask;
        const int workers = (int)between(&rng, 1, 9), rows = mask == NULL && i % 2 == 0 ? 80 : 64;
        backward_order order = {0};
        if (mask != NULL && (mask->block_rows % rows != 0 || mask->block_cols % KEYS != 0)) {
            spk_pattern_release(&d.mask);
            continue;
        }
        const bool tiled = mask != NULL && i % 2 == 0;
        d.problem.lists.tiles = tiled ? 3 : 0; /* which block has which tile, and whether one, a run says */
        assert_int_equal(spk_cuda_attention_backward_order(&device, &d.problem, rows, KEYS, workers, &order), SPK_OK);
        d.problem.lists.tiles = 0;
        const attention_backward_order *o = &order.made;
        const int64_t tiles = (int64_t)o->key_tiles * o->heads_kv * d.problem.batch;
        const attention_backward_tile *all = (const attention_backward_tile *)o->tiles;
        unsigned char *given = calloc((size_t)tiles, 1);
        assert_non_null(given);
        assert_int_equal(o->offsets[0], 0);
        assert_int_equal(o->offsets[workers], tiles);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t number =
                ((int64_t)all[t].item * o->heads_kv + all[t].head_kv) * o->key_tiles + (all[t].key & ~ATTENTION_BACKWARD_HIDDEN) / KEYS;
            assert_true(number >= 0 && number < tiles && !given[number]);
            given[number] = 1;
            check_steps(&d.problem, rows, o, &all[t]);
            for (int step = all[t].begin; tiled && step < all[t].end; step++)
                check_entry(&d.problem, rows, &all[t], (const attention_backward_step *)o->steps + step, o->entries[step]);
        }
        check_turns(&rng, &d.problem, o, workers);
        free(given);
        free(order.memory);
        spk_pattern_release(&d.mask);
    }
}

/* ---- attention_backward_sm90_two_pass: which tiles walk which */

/* Of one tile: its steps are those that have pairs, each once; those that are not marked have all; of blocks that may have bits, each names
 * its own. */
static void check_walk(const spk_problem *p, bool by_queries, int own_rows, const two_pass_tile *tile, const two_pass_step *steps)
{
    const int64_t sharing = spk_attention_sharing(p), walked = by_queries ? p->n : p->m, count = (walked + 63) / 64;
    const int64_t first_head = by_queries ? tile->head : tile->head * sharing, heads = by_queries ? 1 : sharing;
    bool *there = calloc((size_t)(heads * count), sizeof *there);
    assert_non_null(there);
    assert_int_equal(tile->first, (tile->item * spk_operand_heads(&p->operand[ATTENTION_Q]) + first_head) * ((p->m + 63) / 64));
    for (int i = tile->begin; i < tile->end; i++) {
        const int64_t at = steps[i].tile & ~TWO_PASS_HIDDEN, sharer = steps[i].head;
        assert_true(at >= 0 && at < count && sharer >= 0 && sharer < heads && !there[sharer * count + at]);
        there[sharer * count + at] = true;
    }
    for (int64_t i = 0, step = tile->begin; i < heads * count; i++, step = tile->begin) {
        const int64_t head = first_head + i / count, at = i % count, own = tile->row / own_rows, query_tile = by_queries ? own : at,
                      key_tile = by_queries ? at : own;
        const int query_rows = by_queries ? own_rows : 64, key_rows = by_queries ? 64 : own_rows;
        const int64_t rows = p->m - query_tile * query_rows < query_rows ? p->m - query_tile * query_rows : query_rows,
                      seen = seen_pairs_of(p, query_rows, key_rows, tile->item, head, query_tile, key_tile);
        if (!there[i]) {
            assert_int_equal(seen, 0);
            continue;
        }
        while ((steps[step].tile & ~TWO_PASS_HIDDEN) != at || steps[step].head != i / count)
            step++;
        assert_true((steps[step].tile & TWO_PASS_HIDDEN) != 0 || seen == rows * key_rows);
        if (p->pattern != NULL) {
            const spk_index *index = &p->pattern->index;
            const int64_t list = spk_attention_list_row(p, tile->item, head, query_tile * query_rows);
            assert_true(steps[step].entry >= index->offsets[list] && steps[step].entry < index->offsets[list + 1]);
            assert_int_equal(index->columns[steps[step].entry], key_tile * key_rows / p->pattern->block_cols);
        }
    }
    free(there);
}

static void tiles_walk_what_is_seen(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 20261201);
    int masked = 0;
    for (int i = 0; i < 200; i++) {
        drawn d = draw(&rng);
        const bool by_queries = i % 2 == 0;
        const int own_rows = between(&rng, 0, 1) ? 128 : 64, query_rows = by_queries ? own_rows : 64, key_rows = by_queries ? 64 : own_rows;
        const spk_problem *p = &d.problem;
        const two_pass_cut cut = {by_queries, own_rows, (int)between(&rng, 1, 300)};
        two_pass_lists lists = {0};
        if (d.mask != NULL && (d.mask->block_rows % query_rows != 0 || d.mask->block_cols % key_rows != 0)) {
            spk_pattern_release(&d.mask);
            continue;
        }
        masked += d.mask != NULL;
        assert_int_equal(spk_cuda_attention_backward_lists(&device, p, &cut, &lists), SPK_OK);
        const int64_t own = by_queries ? p->m : p->n, own_tiles = (own + own_rows - 1) / own_rows,
                      heads = spk_operand_heads(&p->operand[by_queries ? ATTENTION_Q : ATTENTION_K]), tiles = heads * p->batch * own_tiles;
        const two_pass_tile *all = (const two_pass_tile *)lists.tiles;
        unsigned char *given = calloc((size_t)tiles, 1);
        assert_non_null(given);
        assert_int_equal(lists.count, tiles);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t number = ((int64_t)all[t].item * heads + all[t].head) * own_tiles + all[t].row / own_rows;
            assert_true(number >= 0 && number < tiles && !given[number]);
            given[number] = 1;
            check_walk(p, by_queries, own_rows, &all[t], (const two_pass_step *)lists.steps);
        }
        free(given);
        free(lists.memory);
        spk_pattern_release(&d.mask);
    }
    assert_true(masked > 10);
}

/* ---- the rows whose blocks have a tile each: attention_sm80, attention_simt */

static int option(const spk_build *build, const char *name)
{
    char text[40];
    snprintf(text, sizeof text, "-D%s=", name);
    const char *at = strstr(build->options, text);
    assert_non_null(at);
    return atoi(at + strlen(text));
}

/* A candidate's program suits the problem: heads of a tile share what they read, no warp is without rows. */
static void check_program(const spk_kernel *kernel, const spk_problem *p, const spk_params *params)
{
    spk_build build = {0};
    kernel->ops->build(p, &device, params, &build);
    const int heads = option(&build, "TILE_HEADS"), rows = option(&build, "TILE_ROWS") * heads, warps = option(&build, "WARPS"),
              step = option(&build, "STEP_KEYS");
    const attention_tiling t = spk_cuda_attention_tiling(p, option(&build, "TILE_ROWS"), heads, step);
    const attention_task task = spk_cuda_attention_task(p, NULL);
    assert_int_equal(spk_cuda_attention_shared_heads(p) % heads, 0);
    assert_int_equal(rows % warps, 0);
    assert_true(t.all > 0 && t.head_tiles * heads == task.heads);
    assert_int_equal(option(&build, "MASKED"), p->pattern != NULL);
    assert_int_equal(option(&build, "LIMITED"), task.left != 0 || task.right != 0);
    assert_int_equal(option(&build, "SCRUB"), option(&build, "LIMITED"));
    assert_true(build.shared_bytes > 0 && build.shared_bytes < 232448);
    assert_true(kernel->ops->predict_us(p, &device, params) > 0);
}

static void tiles_suit_every_problem(void **state)
{
    (void)state;
    static const char *const names[] = {"attention_sm80", "attention_simt"};
    spk_rng rng;
    spk_rng_seed(&rng, 815);
    for (int i = 0; i < 200; i++) {
        drawn d = draw(&rng);
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            const spk_kernel *kernel = find(names[n]);
            int fit = 0;
            assert_non_null(kernel);
            for (int c = 0; c < spk_params_count(kernel); c++) {
                const char *why = NULL;
                spk_params params;
                spk_params_get(kernel, c, &params);
                if (!kernel->ops->applicable(&d.problem, &device, &params, &why)) {
                    assert_non_null(why);
                    continue;
                }
                check_program(kernel, &d.problem, &params);
                fit++;
            }
            assert_true(fit > 0);
        }
        spk_pattern_release(&d.mask);
    }
}

/* How much is read at once follows from the distances; a run whose pointers lie worse is another candidate's, but where threads load. */
static void any_distance_is_taken(void **state)
{
    (void)state;
    static const struct {
        int64_t ld;
        int vector;
    } cases[] = {{64, 8}, {72, 8}, {68, 4}, {66, 2}, {65, 1}};
    static _Alignas(16) char memory[64];
    const spk_kernel *kernel = find("attention_sm80"), *simt = find("attention_simt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .depth = 64, .queries = 40, .keys = 50, .heads = 1,
                                 .ldk = cases[i].ld};
        spk_bound bound = {.kernel = kernel, .device = &device};
        spk_build build = {0};
        spk_args args = {0};
        const char *why = NULL;
        assert_int_equal(spk_problem_read(&spk_op_attention, NULL, &a, NULL, &bound.problem), SPK_OK);
        spk_params_get(kernel, 0, &bound.params);
        assert_true(kernel->ops->applicable(&bound.problem, &device, &bound.params, &why));
        kernel->ops->build(&bound.problem, &device, &bound.params, &build);
        assert_int_equal(option(&build, "VECTOR"), cases[i].vector);
        for (int shift = 0; shift < 8; shift++) {
            args.at[ATTENTION_Q] = args.at[ATTENTION_V] = memory;
            args.at[ATTENTION_K] = memory + 2 * (ptrdiff_t)shift;
            assert_int_equal(kernel->ops->accepts(&bound, &args), shift % cases[i].vector == 0);
        }
        assert_null(simt->ops->accepts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_are_dealt_out),     cmocka_unit_test(last_tiles_are_shared_out),
                                       cmocka_unit_test(wide_windows_are_none),   cmocka_unit_test(sums_of_queries_take_turns),
                                       cmocka_unit_test(tiles_walk_what_is_seen), cmocka_unit_test(tiles_suit_every_problem),
                                       cmocka_unit_test(any_distance_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

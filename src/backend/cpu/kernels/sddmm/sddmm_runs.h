/* The stored blocks of an SDDMM as runs of equal work: in the order of slices of the block columns, then of rows, so that a run stays in
 * one slice of Y, or in few. A block counts as often as its rows are split into strips, and the whole is there once for each part of K. */
#ifndef SPK_BACKEND_CPU_KERNELS_SDDMM_RUNS_H
#define SPK_BACKEND_CPU_KERNELS_SDDMM_RUNS_H

#include "backend/cpu/kernels/tiles/strip_queue.h"

/* The stored blocks first .. first + count - 1, which a block row has in a slice. */
typedef struct sddmm_segment {
    int64_t first, block_row, count;
} sddmm_segment;

/* Where a run begins: a part of K, a segment, a strip of its rows, and how many of its blocks come before. */
typedef struct sddmm_place {
    int64_t part, segment, strip, skipped;
} sddmm_place;

typedef struct sddmm_runs {
    int64_t count;                  /* of the runs */
    int64_t slices, strips, splits; /* of the block columns, of a block's rows, of K */
    int64_t most;                   /* blocks of a piece */
    sddmm_segment *segments;        /* in the order of slices */
    int64_t *slice_starts;          /* among the segments, and where the last one ends */
    sddmm_place *places;            /* of the runs */
} sddmm_runs;

/* The slice of a block column: that of strip_part. */
static inline int64_t sddmm_slice_of(int64_t column, int64_t columns, int64_t slices)
{
    return ((column + 1) * slices - 1) / columns;
}

/* The end of those stored blocks from `first` on, before `last`, that are in the slice of the first one. All are of one block row, in the
 * order of their columns. */
static inline int64_t sddmm_same_slice(const spk_bsr_view *view, int64_t first, int64_t last, int64_t slices, int64_t *slice)
{
    *slice = sddmm_slice_of(view->columns[first], view->grid_cols, slices);
    const int64_t end = strip_part(view->grid_cols, *slice, slices).end;
    int64_t p = first + 1;
    while (p < last && view->columns[p] < end)
        p++;
    return p;
}

/* The segments of each slice are counted, and then put behind those of the slices before. */
static inline spk_status sddmm_make_segments(const spk_mem *mem, const spk_bsr_view *view, sddmm_runs *runs)
{
    int64_t slice, count = 0;
    SPK_TRY(spk_calloc(mem, (size_t)runs->slices + 2, sizeof *runs->slice_starts, &runs->slice_starts));
    int64_t *starts = runs->slice_starts + 1;
    for (int64_t row = 0; row < view->grid_rows; row++)
        for (int64_t p = view->offsets[row]; p < view->offsets[row + 1]; count++) {
            p = sddmm_same_slice(view, p, view->offsets[row + 1], runs->slices, &slice);
            starts[slice + 1]++;
        }
    for (int64_t i = 1; i <= runs->slices; i++)
        starts[i] += starts[i - 1];
    SPK_TRY(spk_calloc(mem, (size_t)(count > 0 ? count : 1), sizeof *runs->segments, &runs->segments));
    for (int64_t row = 0; row < view->grid_rows; row++)
        for (int64_t p = view->offsets[row]; p < view->offsets[row + 1];) {
            const int64_t end = sddmm_same_slice(view, p, view->offsets[row + 1], runs->slices, &slice);
            runs->segments[starts[slice]++] = (sddmm_segment){p, row, end - p};
            p = end;
        }
    return SPK_OK; /* starts[i] is where slice i ends now, so that slice_starts[i] is where it begins */
}

/* How many strips of blocks the run has. */
static inline int64_t sddmm_run_length(const sddmm_runs *runs, int64_t blocks, int64_t number)
{
    const strip_range range = strip_part(blocks * runs->strips * runs->splits, number, runs->count);
    return range.end - range.begin;
}

static inline spk_status sddmm_place_runs(const spk_mem *mem, const spk_bsr_view *view, sddmm_runs *runs)
{
    const int64_t segments = runs->slice_starts[runs->slices], all = view->nnzb * runs->strips * runs->splits;
    int64_t run = 0, before = 0;
    SPK_TRY(spk_calloc(mem, (size_t)runs->count, sizeof *runs->places, &runs->places));
    for (int64_t part = 0; part < runs->splits; part++)
        for (int64_t i = 0; i < segments; i++)
            for (int64_t strip = 0; strip < runs->strips; strip++) {
                const int64_t end = before + runs->segments[i].count;
                for (int64_t at; run < runs->count && (at = strip_part(all, run, runs->count).begin) < end; run++)
                    runs->places[run] = (sddmm_place){part, i, strip, at - before};
                before = end;
            }
    return SPK_OK;
}

static inline void sddmm_free_runs(const spk_mem *mem, sddmm_runs *runs)
{
    spk_free(mem, runs->segments);
    spk_free(mem, runs->slice_starts);
    spk_free(mem, runs->places);
}

/* Count, slices, strips, splits and most are there, 1 at least. What was allocated is there after an error, too. */
static inline spk_status sddmm_make_runs(const spk_mem *mem, const spk_bsr_view *view, sddmm_runs *runs)
{
    SPK_TRY(sddmm_make_segments(mem, view, runs));
    return sddmm_place_runs(mem, view, runs);
}

/* A piece of a run: the stored blocks first .. last - 1 of one block row and slice, a strip of their rows, a part of K. */
typedef struct sddmm_piece {
    int64_t part, slice, strip, block_row, first, last;
} sddmm_piece;

/* Where a thread is in a run: `left` of its strips of blocks are to come. */
typedef struct sddmm_walk {
    sddmm_place at;
    int64_t slice, left;
} sddmm_walk;

static inline sddmm_walk sddmm_walk_run(const sddmm_runs *runs, int64_t blocks, int64_t number)
{
    return (sddmm_walk){runs->places[number], 0, sddmm_run_length(runs, blocks, number)};
}

static inline bool sddmm_next(const sddmm_runs *runs, sddmm_walk *walk, sddmm_piece *piece)
{
    sddmm_place *at = &walk->at;
    if (walk->left == 0)
        return false;
    const sddmm_segment *segment = &runs->segments[at->segment];
    const int64_t first = segment->first + at->skipped, there = segment->count - at->skipped,
                  most = walk->left < runs->most ? walk->left : runs->most, taken = there < most ? there : most;
    while (at->segment >= runs->slice_starts[walk->slice + 1])
        walk->slice++;
    *piece = (sddmm_piece){at->part, walk->slice, at->strip, segment->block_row, first, first + taken};
    walk->left -= taken;
    if (taken < there) {
        at->skipped += taken;
        return true;
    }
    at->skipped = 0;
    if (++at->strip == runs->strips) {
        at->strip = 0;
        if (++at->segment == runs->slice_starts[runs->slices]) {
            at->segment = walk->slice = 0;
            at->part++;
        }
    }
    return true;
}

#endif

/* A block row times a panel by pieces of B, for numbers of 16 bits. Each tile of a block row reads the same rows of B, and where they are
 * converted as they are read, does so again. So a few rows of B are copied at a time to the first cache, all tiles of the block row
 * multiply them, and add to sums that wait. */
#include "backend/cpu/kernels/spmm/tile_worker.h"

/* A few blocks of a block row, or some of the columns of one: what is multiplied at a time. */
typedef struct S(tile_piece) {
    int64_t block, blocks;
    int64_t k0, depth; /* of each block's columns */
} S(tile_piece);

/* The piece that begins with column k0 of the block; no more blocks: none. */
SPK_INLINE S(tile_piece) S(piece_from)(const S(tile_state) *state, int64_t all, int64_t depth, int64_t block, int64_t k0)
{
    return (S(tile_piece)){.block = block,
                           .blocks = all - block < state->near_blocks ? all - block : state->near_blocks,
                           .k0 = k0,
                           .depth = depth - k0 < state->near_depth ? depth - k0 : state->near_depth};
}

SPK_INLINE S(tile_piece) S(piece_after)(const S(tile_state) *state, int64_t all, int64_t depth, S(tile_piece) piece)
{
    return piece.k0 + piece.depth < depth ? S(piece_from)(state, all, depth, piece.block, piece.k0 + piece.depth)
                                          : S(piece_from)(state, all, depth, piece.block + piece.blocks, 0);
}

/* Rows of B beside a block's columns from k0 on, `most` at most. */
SPK_INLINE int64_t S(rows_beside)(const spk_bsr_view *view, int64_t column, int64_t k0, int64_t most)
{
    const int64_t left = view->cols - column * view->block_cols - k0;
    return left < 0 ? 0 : left < most ? left : most;
}

/* Fetches share `tile` of `tiles` of the rows of B of a piece to the second cache. */
static void S(fetch_piece_of_b)(const S(tile_run) *run, const int32_t *columns, S(tile_piece) piece, const S(tile_panel) *at, int tile,
                                int tiles)
{
    const spk_problem *problem = &run->bound->problem;
    const int64_t bytes = at->columns * (int64_t)sizeof(STORED), share = tile_ceil(piece.depth, tiles);
    for (int64_t i = 0; i < piece.blocks; i++) {
        const int64_t rows = S(rows_beside)(&run->bound->view, columns[piece.block + i], piece.k0, piece.depth);
        const int64_t k = columns[piece.block + i] * (int64_t)run->bound->view.block_cols + piece.k0;
        const int64_t first = tile * share, end = first + share < rows ? first + share : rows;
        for (int64_t row = first; row < end; row++) {
            const char *line = (const char *)((const STORED *)run->args->b + (k + row) * problem->b.ld + at->column0);
            for (int64_t byte = 0; byte < bytes; byte += 64)
                __builtin_prefetch(line + byte, 0, 2);
        }
    }
}

static void S(copy_piece)(const S(tile_run) *run, const int32_t *columns, S(tile_piece) piece, const S(tile_panel) *at, REAL *copy)
{
    const spk_problem *problem = &run->bound->problem;
    const bool row_major = problem->b.layout == SPK_ROW_MAJOR;
    const STORED *b = (const STORED *)run->args->b + (row_major ? at->column0 : at->column0 * problem->b.ld);
    for (int64_t i = 0; i < piece.blocks; i++) {
        const int64_t column = columns[piece.block + i], k = column * run->bound->view.block_cols + piece.k0;
        const int64_t rows = S(rows_beside)(&run->bound->view, column, piece.k0, piece.depth);
        if (rows > 0)
            S(pack)(problem->b.layout, b + (row_major ? k * problem->b.ld : k), problem->b.ld, 0, rows, at->width, problem->n - at->column0,
                    copy + i * piece.depth * at->width * T(lanes));
    }
}

/* A block row, whose values the worker has converted, times a panel. */
static void S(multiply_near)(S(tile_worker) *worker, int64_t block_row, int64_t panel)
{
    const S(tile_run) *run = worker->run;
    const S(tile_state) *state = run->state;
    const spk_problem *problem = &run->bound->problem;
    const spk_bsr_view *view = &run->bound->view;
    T(tile_job) *job = &worker->job;
    const S(tile_panel) at = S(start_panel)(worker, panel);
    const int64_t row0 = block_row * view->block_rows, depth = view->block_cols, wide = at.width * T(lanes);
    const int rows = S(rows_of)(run->bound, block_row);
    const tile_split split = tile_make_split(&T(machine), rows, at.width);
    REAL *sums = worker->near, *copy = sums + view->block_rows * state->cut.width * T(lanes);
    S(start_block_row)(worker, block_row);
    const int64_t blocks = job->blocks;
    const int32_t *columns = job->columns;
    job->panel = copy;
    job->panel_stride = job->out_stride = wide;
    job->back = 0;
    job->alpha = 1;
    job->columns = state->order;
    job->positions = NULL;
    S(tile_piece) piece = S(piece_from)(state, blocks, depth, 0, 0);
    do {
        const S(tile_piece) next = S(piece_after)(state, blocks, depth, piece);
        const bool last = next.block >= blocks;
        job->adds = piece.block + piece.k0 > 0;
        job->blocks = piece.blocks;
        job->depth = piece.depth;
        if (piece.blocks > 0) {
            S(copy_piece)(run, columns, piece, &at, copy);
            job->edge_column = piece.blocks - 1; /* only the last block of a row can be at the edge */
            job->edge_depth = S(rows_beside)(view, columns[piece.block + piece.blocks - 1], piece.k0, piece.depth);
        }
        for (int64_t tile = 0, row = 0; tile < split.tiles; tile++) {
            const int height = split.low + (tile < split.taller);
            if (!last && problem->b.layout == SPK_ROW_MAJOR)
                S(fetch_piece_of_b)(run, columns, next, &at, (int)tile, split.tiles);
            if (last && problem->d.layout == SPK_ROW_MAJOR)
                S(fetch_for_epilogue)(run, row0 + row, height, at.column0, at.columns);
            if (piece.blocks > 0) /* else there may be no values */
                job->values = worker->values + piece.block * job->block_stride + row * job->row_stride + piece.k0 * job->col_stride;
            job->out = sums + row * wide;
            T(tiles)[at.width - 1][height - 1](job);
            row += height;
        }
        piece = next;
    } while (piece.block < blocks);
    S(finish_rows)(run, sums, wide, row0, rows, at.column0, at.columns);
}

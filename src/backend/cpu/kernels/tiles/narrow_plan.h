/* What narrow products decide, whatever the element type: which way vectors run, and how many sums a tile keeps in registers. */
#ifndef SPK_BACKEND_CPU_KERNELS_NARROW_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_NARROW_PLAN_H

#include "backend/cpu/kernels/tiles/tile_plan.h"

/* Rows of D that wait for the epilogue together, and the most columns of B: along k, and at all. */
enum { NARROW_ROWS = 64, NARROW_COLUMNS_K = 4, NARROW_COLUMNS = 8 };

/* How far ahead of its use a value is fetched; below so many bytes of values nothing is. */
enum { NARROW_AHEAD = 4096, NARROW_AHEAD_FROM = 1 << 18 };

static inline bool narrow_applicable(const spk_problem *problem, const char **why)
{
    if (problem->n > NARROW_COLUMNS)
        *why = "it is for N of at most 8";
    return *why == NULL;
}

/* Which way vectors run: along k where the elements of a row of a block of op(A) are neighbours, and along the columns of B where there are
 * too many of them for that; along the rows where the elements of a column are neighbours. */
typedef enum narrow_way { NARROW_ALONG_K, NARROW_ALONG_N, NARROW_ALONG_ROWS } narrow_way;

static inline bool narrow_rows_contiguous(const spk_problem *problem)
{
    if (tile_block_rows(problem) == 1)
        return true;
    if (tile_block_cols(problem) == 1)
        return false;
    return (problem->trans_a == SPK_NO_TRANS) == (problem->block_layout == SPK_ROW_MAJOR);
}

static inline narrow_way narrow_way_of(const spk_problem *problem)
{
    return !narrow_rows_contiguous(problem) ? NARROW_ALONG_ROWS : problem->n <= NARROW_COLUMNS_K ? NARROW_ALONG_K : NARROW_ALONG_N;
}

/* Rows (along the rows: vectors of rows) of a tile for n columns, so that its sums stay in registers. whole: a row of a block fits one
 * vector, which is masked and so takes a register more. */
static inline int narrow_most(narrow_way way, bool whole, int n, int lanes)
{
    /* along k, k masked, rows */
    static const int most[3][NARROW_COLUMNS] = {{8, 6, 4, 3, 1, 1, 1, 1}, {8, 6, 3, 2, 1, 1, 1, 1}, {8, 6, 4, 3, 2, 2, 1, 1}};
    if (way == NARROW_ALONG_N)
        return n <= lanes ? 8 : 5;
    return most[way == NARROW_ALONG_ROWS ? 2 : whole ? 1 : 0][n - 1];
}

#endif

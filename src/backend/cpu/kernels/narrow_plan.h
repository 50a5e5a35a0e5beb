/* What narrow products decide, whatever the element type: which way vectors run, and how many sums a tile keeps in registers. */
#ifndef SPK_BACKEND_CPU_KERNELS_NARROW_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_NARROW_PLAN_H

#include "backend/cpu/kernels/tile_plan.h"

/* Rows of D that wait for the epilogue together, and the most columns of B: along k, and at all. */
enum { NARROW_ROWS = 64, NARROW_COLUMNS_K = 4, NARROW_COLUMNS = 8 };

/* Along k where the elements of a row of a block of op(A) are neighbours, along the rows where those of a column are. */
static inline bool narrow_along_k(const spk_problem *problem)
{
    if (tile_block_rows(problem) == 1)
        return true;
    if (tile_block_cols(problem) == 1)
        return false;
    return (problem->trans_a == SPK_NO_TRANS) == (problem->block_layout == SPK_ROW_MAJOR);
}

/* Rows (or vectors of rows) of a tile for n columns; whole: a row of a block fits one vector, which is masked and so takes a register more. */
static inline int narrow_most(bool along_k, bool whole, int n)
{
    static const int most[3][NARROW_COLUMNS] = {{8, 6, 4, 3, 1, 1, 1, 1}, {8, 6, 3, 2, 1, 1, 1, 1}, {8, 6, 4, 3, 2, 2, 1, 1}}; /* along k, k masked, rows */
    return most[!along_k ? 2 : whole ? 1 : 0][n - 1];
}

#endif

/* Tiles gathered along the stored blocks of a block row (gather.cuh): what both sides know beside the team's constants.
 *
 * The second argument of a program, after spk_cuda_arguments, is a list of int. PIECES 0: the block rows, longest first; null: as they
 * come. PIECES 1, entries of four words: the number of pieces and of cut rows, 0, 0; of each piece, longest first, its block row, first and
 * last block, and its number among those of cut rows (negative: it is the whole row); of each cut row its number, the number of its first
 * piece, how many it has, 0. */
#ifndef SPK_CUDA_GATHER_H
#define SPK_CUDA_GATHER_H

#include "backend/cuda/device/copy/team.h"

/* The constants.
 *   RAGGED_K   1: K is no multiple of BLOCK_COLS
 *   PIECES     1: long block rows come in pieces, whose sums go to the workspace and are added by a second launch */
#define GATHER_CONSTANTS(C) \
    C(RAGGED_K, ragged_k)   \
    C(PIECES, pieces)
typedef struct gather_constants {
    GATHER_CONSTANTS(SPK_CONSTANT_MEMBER)
} gather_constants;

enum { PIECES_WORDS = 4 };

#endif

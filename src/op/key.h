/* Fields of the tuning key (spk_key_row) that operations share, and what they make theirs of. */
#ifndef SPK_OP_KEY_H
#define SPK_OP_KEY_H

#include "op/operation.h"

/* The value of an exact field; false where it does not fit. */
bool spk_key_text(char *text, size_t size, const char *value);
bool spk_key_whole(char *text, size_t size, int value);

/* Of elements, in steps (spk_operand_steps) of one or of several operands, joined by |: the largest power of two up to 16 that divides them
 * all. It is what vector and TMA loads ask about. */
int spk_key_alignment(int64_t steps);

/* Of a size that may differ within a class: exact up to 8, then four classes an octave. */
int64_t spk_key_size(int64_t size);

/* What the caller promised, the same for every operation; where indices are. */
bool spk_key_finite(const spk_problem *problem, char *text, size_t size);
bool spk_key_static(const spk_problem *problem, char *text, size_t size);
bool spk_key_cache(const spk_problem *problem, char *text, size_t size);
bool spk_key_indices(const spk_problem *problem, char *text, size_t size);

/* Whether there is a batch; of how many items. */
bool spk_key_batch(const spk_problem *problem, char *text, size_t size);
bool spk_key_items(const spk_problem *problem, int64_t *value);

/* Of the pattern: the size of its blocks, how many there are, how uneven its rows are, how alike neighbouring ones. The first, the second
 * and the fourth are missing where there is none. */
bool spk_key_block_rows(const spk_problem *problem, int64_t *value);
bool spk_key_block_cols(const spk_problem *problem, int64_t *value);
bool spk_key_blocks(const spk_problem *problem, int64_t *value);
bool spk_key_spread(const spk_problem *problem, int64_t *value);
bool spk_key_overlap(const spk_problem *problem, int64_t *value);

#endif

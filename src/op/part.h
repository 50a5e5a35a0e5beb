/* A smaller problem of the same kind, which device programs are proved with in place of one that takes much memory. */
#ifndef SPK_OP_PART_H
#define SPK_OP_PART_H

#include "op/operation.h"

/* Sizes of up to so much stay whole, and larger ones are cut by multiples of the step: what alignment they have stays. */
enum { SPK_PART_LEAST = 1024, SPK_PART_STEP = 256 };

/* About `most_bytes` of operands of the problem: fewer items, then fewer heads or smaller sizes, with dense strides made to fit; the whole
 * where it takes no more, or where no part of it is a problem of its own. What spk_op.read says of the part's description is that part.
 * *pattern: one made for the part, which then borrows it and the caller releases; NULL: it has the problem's own. The indices of a pattern
 * must be on the host (spk_pattern_fetch). Fails where memory is wanting. */
spk_status spk_problem_part(const spk_mem *mem, const spk_problem *whole, double most_bytes, spk_problem *part, spk_pattern **pattern);

/* Bytes of all operands, from their first to their last elements. */
double spk_problem_operand_bytes(const spk_problem *problem);

/* Of a size: about this share, in steps. Never 0 of what is not. */
int64_t spk_part_of_size(int64_t size, double share);

#endif

/* Whether two strided arrays share memory. */
#ifndef SPK_OP_OVERLAP_H
#define SPK_OP_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

enum { SPK_AREA_DIMS = 3 };

/* Pieces of `width` bytes, from `start` on: one for each choice of an index in every dimension, whose steps (in bytes, >= 0) add up. */
typedef struct spk_area {
    uintptr_t start;
    int64_t width; /* 0: nothing */
    struct {
        int64_t count, step; /* count >= 1 */
    } dims[SPK_AREA_DIMS];
} spk_area;

/* Never false where a byte is in both. Exact, but where a thousand steps do not tell: dimensions whose pieces lie in one another without
 * order. */
bool spk_areas_meet(const spk_area *a, const spk_area *b);

#endif

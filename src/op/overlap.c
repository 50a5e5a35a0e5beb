/* A byte is in both areas where the difference of their starts, plus a sum of steps, is less than a piece long. Each dimension of either
 * area gives one term, a multiple of its step between two bounds; dimensions of equal step give one together, so that arrays that
 * interleave need no search at all. */
#include "op/overlap.h"

enum { MOST_TERMS = 2 * SPK_AREA_DIMS, MOST_STEPS = 1000 };
static const int64_t too_long = INT64_C(1) << 60; /* bytes: no array is so long, and sums of a few such numbers fit */

typedef struct term {
    int64_t step, least, most; /* least <= 0 <= most */
} term;

typedef struct sum {
    term terms[MOST_TERMS]; /* by step, the smallest first */
    int count;
    int64_t above, below; /* the difference must lie between these, and be neither */
    int steps;            /* left */
} sum;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* Whether the first `count` terms can bring the difference between the bounds. */
static bool reaches(sum *s, int count, int64_t difference)
{
    if (count == 0)
        return difference > s->above && difference < s->below;
    const term t = s->terms[count - 1];
    int64_t up = 0, down = 0; /* what the smaller terms can add */
    for (int i = 0; i < count - 1; i++) {
        up += s->terms[i].most * s->terms[i].step;
        down += s->terms[i].least * s->terms[i].step;
    }
    int64_t first = floor_div(s->above - up - difference, t.step) + 1, last = floor_div(s->below - down - difference - 1, t.step);
    first = first > t.least ? first : t.least;
    last = last < t.most ? last : t.most;
    if (count == 1)
        return first <= last;
    for (int64_t k = first; k <= last; k++)
        if (s->steps-- <= 0 || reaches(s, count - 1, difference + k * t.step))
            return true;
    return false;
}

/* A dimension of b adds up to (count - 1) steps to the difference, one of a takes them away. */
static void add_term(sum *s, int64_t step, int64_t least, int64_t most, bool pair)
{
    int at = s->count;
    if (least == most || step == 0)
        return;
    for (int i = 0; pair && i < s->count; i++)
        if (s->terms[i].step == step && s->terms[i].most == 0) {
            s->terms[i].most = most;
            return;
        }
    for (; at > 0 && s->terms[at - 1].step > step; at--)
        s->terms[at] = s->terms[at - 1];
    s->terms[at] = (term){step, least, most};
    s->count++;
}

/* Bytes from the first to the last. */
static int64_t extent(const spk_area *a)
{
    int64_t bytes = a->width;
    for (int i = 0; i < SPK_AREA_DIMS; i++)
        bytes += (a->dims[i].count - 1) * a->dims[i].step;
    return bytes;
}

bool spk_areas_meet(const spk_area *a, const spk_area *b)
{
    if (a->width == 0 || b->width == 0)
        return false;
    const int64_t a_bytes = extent(a), b_bytes = extent(b);
    if (a->start >= b->start + (uintptr_t)b_bytes || b->start >= a->start + (uintptr_t)a_bytes)
        return false;
    if (a_bytes > too_long || b_bytes > too_long)
        return true;
    sum s = {.above = -b->width, .below = a->width, .steps = MOST_STEPS};
    for (int i = 0; i < SPK_AREA_DIMS; i++)
        add_term(&s, a->dims[i].step, 1 - a->dims[i].count, 0, false);
    for (int i = 0; i < SPK_AREA_DIMS; i++)
        add_term(&s, b->dims[i].step, 0, b->dims[i].count - 1, true);
    return reaches(&s, s.count, (int64_t)(b->start - a->start));
}

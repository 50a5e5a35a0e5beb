/* Large scores of attention, of some cases of `check`: random ones, of which rounding alone may decide which key wins, and exact ones,
 * whose answer is not in doubt at any size. */
#include <math.h>
#include <string.h>

#include "cli/base/values.h"
#include "cli/check/draw.h"
#include "type/type.h"

enum { MOST_POWER = 96, COMMON = 512 }; /* gradients have the size of scores, and float32 ends at 2^128; squared, what exact scores share */

void check_enlarge_scores(random_state *r, check_case *c)
{
    check_scores *s = &c->scores;
    if (!random_chance(r, 0.2))
        return;
    const spk_dtype dtype = (spk_dtype)operation_get(operation_field_named(c->op, "dtype"), &c->given);
    const bool half = dtype != SPK_DTYPE_DEFAULT && spk_type_of(dtype)->largest < 0x1p20;
    s->are_large = true;
    s->are_exact = random_chance(r, 0.5);
    s->share = s->are_exact && random_chance(r, 0.5);
    const int most = !half ? 40 : s->are_exact ? 6 : 12; /* float16 ends at 2^16 */
    int power = (int)random_between(r, s->are_exact ? 5 : 10, MOST_POWER);
    if (s->share && random_chance(r, 0.5))
        power = (int)random_between(r, -4, 2); /* what they do not share decides */
    s->power_q = power > 0 ? (int)random_between(r, 0, power < most ? power : most) : 0;
    s->power_k = power > s->power_q ? (int)random_between(r, 0, power - s->power_q < most ? power - s->power_q : most) : 0;
    int rest = power - s->power_q - s->power_k;
    if (half && rest > 0 && random_chance(r, 0.7))
        rest = 0;
    s->power = rest + s->power_q + s->power_k;
    const double scale = ldexp(s->are_exact ? 1 : 1 + random_unit(r), rest) * (random_chance(r, 0.25) ? -1 : 1);
    for (int i = 0; i < c->op->info.scalar_count; i++)
        if (strcmp(c->op->scalars[i].name, "scale") == 0)
            c->scalars[i] = scale;
}

/* Of Q and K, which are normal numbers so far. */
void check_fill_scores(random_state *r, const check_case *c, int which, void *array)
{
    const spk_array_info *a = &c->arrays[which];
    const check_scores *s = &c->scores;
    const bool is_q = strcmp(c->op->operands[which].name, "q") == 0;
    if (!s->are_large || (!is_q && strcmp(c->op->operands[which].name, "k") != 0))
        return;
    for (int64_t item = 0; item < check_items(c, which); item++)
        for (int64_t i = 0; i < check_rows(a); i++)
            for (int64_t j = 0; j < a->cols; j++) {
                const int64_t at = check_place(a, item, i, j);
                const double whole = s->share && j == 0      ? COMMON
                                     : random_chance(r, 0.5) ? 0
                                                             : (double)random_between(r, -2, 2),
                             number = s->are_exact ? whole : value_get(a->dtype, array, at);
                value_put(a->dtype, array, at, ldexp(number, is_q ? s->power_q : s->power_k));
            }
}

/* What masks may be told: the table, and what it says of options. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "matrix/mask.h"

static const spk_mask_parameter parameters[] = {
#define SPK_MASK_PARAMETER(ID, NAME, FIELD, VALUE, LEAST, MOST, USUAL, USUAL_PART, USUAL_TEXT, HELP) \
    {NAME, #FIELD, offsetof(spk_generate, FIELD), VALUE, LEAST, MOST, USUAL, USUAL_PART, USUAL_TEXT, HELP},
#include "matrix/mask_parameters.def"
#undef SPK_MASK_PARAMETER
};

const spk_mask_parameter *spk_mask_parameter_of(spk_mask_word word)
{
    return &parameters[word];
}

static spk_status take_count(const spk_mask_parameter *p, int64_t *value, int64_t keys)
{
    if (*value < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": must be at least 0", p->field, *value);
    if (*value > p->most)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": the limit is %" PRId64, p->field, *value, p->most);
    if (*value == 0 && p->usual_part > 0)
        *value = keys > 0 ? (keys - 1) / p->usual_part + 1 : 1;
    else if (*value == 0)
        *value = p->usual;
    return SPK_OK;
}

static spk_status take_range(const spk_mask_parameter *p, const int64_t *ends)
{
    if (ends[0] < 0 || ends[1] < ends[0] || (ends[1] > 0 && ends[0] == 0))
        return spk_fail(SPK_ERR_ARGUMENT,
                        "tokens_least = %" PRId64 ", tokens_most = %" PRId64 ": both at least 1, the first no more than the second",
                        ends[0], ends[1]);
    if (ends[1] > p->most)
        return spk_fail(SPK_ERR_ARGUMENT, "tokens_most = %" PRId64 ": the limit is %" PRId64, ends[1], p->most);
    return SPK_OK;
}

static spk_status take_list(const spk_mask_parameter *p, const int64_t *list, int64_t count)
{
    if (count < 0 || (count > 0 && list == NULL))
        return spk_fail(SPK_ERR_ARGUMENT, "%s: %s, of %" PRId64 " numbers", p->field, list == NULL ? "NULL" : "an array", count);
    for (int64_t i = 0; i < count; i++)
        if (list[i] < p->least || list[i] > p->most)
            return spk_fail(SPK_ERR_ARGUMENT, "%s[%" PRId64 "] = %" PRId64 ": must be in %" PRId64 " .. %" PRId64, p->field, i, list[i],
                            p->least, p->most);
    return SPK_OK;
}

static spk_status take(const spk_mask_parameter *p, spk_generate *o)
{
    void *at = (char *)o + p->offset;
    switch (p->value) {
    case SPK_MASK_VALUE_COUNT:
        return take_count(p, at, o->cols);
    case SPK_MASK_VALUE_SHARE:
        if (!(*(double *)at >= (double)p->least && *(double *)at <= (double)p->most))
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %g: must be in %" PRId64 " .. %" PRId64, p->field, *(double *)at, p->least, p->most);
        return SPK_OK;
    case SPK_MASK_VALUE_FLAG:
        if (*(int *)at != 0 && *(int *)at != 1)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = %d: must be 0 or 1", p->field, *(int *)at);
        return SPK_OK;
    case SPK_MASK_VALUE_RANGE:
        return take_range(p, at);
    case SPK_MASK_VALUE_LIST:
        return take_list(p, o->lengths, o->length_count);
    case SPK_MASK_VALUE_CELLS: /* the shape itself says what they may be */
        return SPK_OK;
    }
    return SPK_OK;
}

static bool takes(const spk_mask_shape_row *shape, spk_mask_word word)
{
    for (int i = 0; i < SPK_MASK_MOST_WORDS && shape->words[i] != SPK_MASK_TAKES_NOTHING; i++)
        if (shape->words[i] == word)
            return true;
    return false;
}

spk_status spk_mask_need(const spk_mask_parameter *p, const spk_generate *o)
{
    const int64_t value = p->value == SPK_MASK_VALUE_COUNT ? *(const int64_t *)((const char *)o + p->offset) : p->least;
    if (p->usual_text == NULL && value < p->least)
        return spk_fail(SPK_ERR_ARGUMENT, "%s = %" PRId64 ": mask %s needs it, at least %" PRId64, p->field, value,
                        spk_mask_shape_of(o->mask)->name, p->least);
    return SPK_OK;
}

/* Counts that other shapes take are looked at, too: a wrong number is a mistake, whoever reads it. */
spk_status spk_mask_take(spk_generate *o)
{
    const spk_mask_shape_row *shape = spk_mask_shape_of(o->mask);
    int shapes = 0;
    while (spk_mask_shape_of((spk_mask_shape)(shapes + 1)) != NULL)
        shapes++;
    if (shape == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "mask = %d: must be in 1 .. %d", (int)o->mask, shapes);
    for (int i = SPK_MASK_TAKES_NOTHING + 1; i < SPK_MASK_TAKES_END; i++)
        SPK_TRY(take(&parameters[i], o));
    for (int i = 0; i < SPK_MASK_MOST_WORDS && shape->words[i] != SPK_MASK_TAKES_NOTHING; i++)
        SPK_TRY(spk_mask_need(&parameters[shape->words[i]], o));
    if (!takes(shape, SPK_MASK_TAKES_WINDOW_RIGHT))
        o->window_right = 0; /* block rows of all shapes are limited by it */
    return shape->check != NULL ? shape->check(o) : SPK_OK;
}

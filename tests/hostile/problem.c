/* Problems. A plain one, of sizes alone, becomes rich: some of its fields at a time get other values, which stay where the library takes
 * the problem so. Who knows no operation finds in this way what goes together in it. Then some problems are spoiled. */
#include "hostile.h"

enum { MOST_CHANGES = 40, MOST_AT_ONCE = 3 };

/* The value of a field; 1 where it is 0 or none. */
static int64_t value_or_one(const trial *t, const char *name)
{
    const spk_field_info *field = field_named(t->op, name);
    const int64_t value = field != NULL ? field_get(field, &t->problem) : 0;
    return value > 0 ? value : 1;
}

/* Numbers that fields count: of heads, of items, of lists, of keys. */
static int64_t draw_count(trial *t, const spk_field_info *field)
{
    switch (draw_below(&t->d, 5)) {
    case 0:
        return value_or_one(t, "heads");
    case 1:
        return value_or_one(t, "heads_kv");
    case 2:
        return value_or_one(t, "batch");
    case 3:
        return draw_size(&t->d);
    default:
        return draw_below(&t->d, field->high < 7 ? (int64_t)field->high + 1 : 7);
    }
}

/* How operand `i` of the problem lies; all 0 where it has none. */
static spk_array_info array_of(const trial *t, int i)
{
    spk_array_info array = {SPK_SIZED(spk_array_info)};
    if (i < 0 || spk_problem_get_array(t->context, t->pattern, &t->problem, i, &array) != SPK_OK)
        array = (spk_array_info){0};
    return array;
}

static int64_t draw_stride(trial *t, const spk_field_info *field)
{
    const spk_array_info a = array_of(t, field->operand);
    const int64_t lines = a.layout == SPK_ROW_MAJOR ? a.rows : a.cols, length = a.layout == SPK_ROW_MAJOR ? a.cols : a.rows;
    const int64_t matrix = a.ld * lines, extra = draw_chance(&t->d, 50) ? 0 : draw_below(&t->d, 20);
    if (draw_chance(&t->d, 20))
        return SPK_STRIDE_SHARED;
    if (draw_chance(&t->d, 20)) /* side by side in each line */
        return length + extra;
    return (field->kind == SPK_FIELD_STRIDE && a.heads > 1 ? a.head_stride * a.heads : matrix) + extra;
}

static spk_dtype draw_dtype(draw *d, const spk_field_info *field)
{
    spk_dtype short_ones[16];
    int count = 0;
    for (int i = 1; i < 64 && count < 16; i++)
        if (spk_dtype_bytes((spk_dtype)i) == 1)
            short_ones[count++] = (spk_dtype)i;
    if (field->operand < 0 && draw_chance(d, 30))
        return draw_chance(d, 50) ? SPK_TF32 : SPK_INT32;
    return draw_chance(d, 20) ? short_ones[draw_below(d, count)] : (spk_dtype)(1 + draw_below(d, 4));
}

/* A value that the field may have, though not beside every other one. */
static int64_t draw_value(trial *t, const spk_field_info *field)
{
    draw *d = &t->d;
    switch (field->kind) {
    case SPK_FIELD_SIZE:
        return draw_size(d);
    case SPK_FIELD_ITEMS:
        return 1 + draw_below(d, 3);
    case SPK_FIELD_DTYPE:
        return draw_dtype(d, field);
    case SPK_FIELD_SCALE:
        return (int64_t[]){SPK_SCALE_ALL, 1, 2, 3, 16, 0}[draw_below(d, 6)];
    case SPK_FIELD_LD: {
        const spk_array_info a = array_of(t, field->operand);
        const int64_t length = a.layout == SPK_ROW_MAJOR ? a.cols : a.rows, width = draw_chance(d, 30) ? value_or_one(t, "heads") : 1;
        return length * width + (draw_chance(d, 50) ? 0 : draw_below(d, 9));
    }
    case SPK_FIELD_STRIDE:
    case SPK_FIELD_HEAD_STRIDE:
        return draw_stride(t, field);
    case SPK_FIELD_GROUPS:
    case SPK_FIELD_HEADS:
        return 1 + draw_below(d, 6);
    case SPK_FIELD_COUNT:
        return draw_count(t, field);
    case SPK_FIELD_REAL:
        return 1 + draw_below(d, 3);
    default:
        return draw_below(d, (int64_t)field->high + 1);
    }
}

static bool is_taken(trial *t)
{
    spk_problem_info info = {SPK_SIZED(spk_problem_info)};
    const spk_status status = spk_problem_get_info(t->context, t->pattern, &t->problem, &info);
    if (status != SPK_OK)
        check_refused(t, "a problem");
    return status == SPK_OK;
}

/* Another mask: one list of blocks for all, or one for each head or item. */
static spk_pattern *draw_mask(trial *t, given *changed)
{
    const spk_field_info *heads = field_named(t->op, "mask_heads"), *items = field_named(t->op, "mask_items");
    int64_t lists = 1, rows = value_or_one(t, "queries"), cols = value_or_one(t, "keys");
    if (heads != NULL && draw_chance(&t->d, 50)) {
        const int64_t count = value_or_one(t, draw_chance(&t->d, 50) ? "heads" : "heads_kv");
        field_put(heads, changed, count);
        lists *= count;
    }
    if (items != NULL && draw_chance(&t->d, 40)) {
        field_put(items, changed, value_or_one(t, "batch"));
        lists *= value_or_one(t, "batch");
    }
    return trial_draw_pattern(t, rows, cols, lists);
}

/* Some fields at once, and the mask with them. What the library does not take is as it was. */
static void change(trial *t)
{
    const given before = t->problem;
    spk_pattern *const pattern = t->pattern;
    const int count = t->op->info.field_count;
    int64_t at = draw_below(&t->d, count);
    for (int64_t left = 1 + draw_below(&t->d, MOST_AT_ONCE); left > 0; left--) {
        field_put(&t->op->fields[at], &t->problem, draw_value(t, &t->op->fields[at]));
        at = draw_chance(&t->d, 60) ? (at + 1) % count : draw_below(&t->d, count); /* what goes together stands together, mostly */
    }
    spk_pattern *made = NULL;
    if (t->op->info.takes_pattern == SPK_PATTERN_OPTIONAL && draw_chance(&t->d, 25)) {
        made = draw_mask(t, &t->problem);
        t->pattern = made != NULL ? made : pattern;
    }
    if (is_taken(t)) {
        if (made != NULL)
            spk_pattern_destroy((spk_pattern *[]){pattern});
        return;
    }
    t->problem = before;
    t->pattern = pattern;
    spk_pattern_destroy(&made);
}

/* Mostly one that takes part in the problem. */
static const spk_field_info *draw_field(trial *t)
{
    const spk_field_info *field = NULL;
    for (int tries = 0; tries < 8 && (field == NULL || (field_get(field, &t->problem) == 0 && draw_chance(&t->d, 80))); tries++)
        field = &t->op->fields[draw_below(&t->d, t->op->info.field_count)];
    return field;
}

/* What nobody should pass: numbers at the ends of their types, unknown enumerators, structs of another size or operation. */
static void spoil(trial *t)
{
    draw *d = &t->d;
    for (int64_t left = 1 + draw_below(d, 2); left > 0; left--) {
        field_put(draw_field(t), &t->problem, draw_wrong(d));
    }
    if (draw_chance(d, 10))
        t->problem.head.struct_size = (size_t)(draw_chance(d, 50) ? draw_wrong(d) : draw_below(d, 4096));
    if (t->problem.head.struct_size > sizeof t->problem && t->problem.head.struct_size <= 1 << 16) /* these bytes would be read, rightly */
        t->problem.head.struct_size = t->op->info.problem_bytes;
    if (draw_chance(d, 5))
        t->problem.head.operation = (spk_operation)draw_wrong(d);
}

void trial_draw_problem(trial *t)
{
    t->problem = given_problem(t->op);
    for (int i = 0; i < t->op->info.field_count; i++)
        if (t->op->fields[i].kind == SPK_FIELD_SIZE)
            field_put(&t->op->fields[i], &t->problem, draw_size(&t->d));
    if (t->op->info.takes_pattern == SPK_PATTERN_NEEDED)
        t->pattern = trial_draw_pattern(t, draw_size(&t->d) + draw_size(&t->d), draw_size(&t->d) + draw_size(&t->d), 1);
    const bool has_pattern = t->pattern != NULL || t->op->info.takes_pattern != SPK_PATTERN_NEEDED;
    if (!is_taken(t) && has_pattern)
        fail(t, "a problem of sizes alone is refused: %s", spk_last_error(t->context));
    for (int64_t left = draw_below(&t->d, MOST_CHANGES); left > 0; left--)
        change(t);
    if (t->wrong)
        spoil(t);
}

/* How the arrays of a case lie: what the library makes of the description, and what is drawn of it once there is a pattern. */
#include "cli/check/check.h"

enum { TIGHT, LOOSE, SIDE_BY_SIDE, SHARED };

int64_t check_rows(const spk_array_info *a)
{
    return a->rows * a->heads;
}

int64_t check_place(const spk_array_info *a, int64_t item, int64_t i, int64_t j)
{
    const int64_t head = i / a->rows, row = i % a->rows;
    return item * a->stride + head * a->head_stride + (a->layout == SPK_ROW_MAJOR ? row * a->ld + j : j * a->ld + row);
}

int64_t check_items(const check_case *c, int which)
{
    return c->arrays[which].stride != 0 ? c->items : 1;
}

bool check_takes_part(const check_case *c, int which)
{
    return c->arrays[which].rows > 0 && c->arrays[which].cols > 0;
}

static spk_status find_arrays(check_case *c, spk_context *context, const spk_pattern *pattern)
{
    spk_status status = SPK_OK;
    for (int i = 0; i < c->op->info.operand_count && status == SPK_OK; i++) {
        c->arrays[i] = (spk_array_info){SPK_SIZED(spk_array_info)};
        status = spk_problem_get_array(context, pattern, &c->given, i, &c->arrays[i]);
    }
    return status;
}

static void set_field(check_case *c, spk_field_kind kind, int operand, int64_t value)
{
    const spk_field_info *field = operation_field(c->op, kind, operand);
    if (field)
        operation_put(field, &c->given, value);
}

static int64_t get(const check_case *c, spk_field_kind kind, int operand)
{
    const spk_field_info *field = operation_field(c->op, kind, operand);
    return field ? operation_get(field, &c->given) : 0;
}

/* Leading dimensions, where the drawing of the operation left them open: tight, a little more, or as TMA wants them. */
static void draw_lds(check_case *c)
{
    for (int i = 0; i < c->op->info.operand_count; i++) {
        const int64_t tight = c->arrays[i].ld;
        if (!check_takes_part(c, i) || !operation_field(c->op, SPK_FIELD_LD, i))
            continue;
        if (random_chance(&c->later, c->aligned ? 0.85 : 0.2))
            set_field(c, SPK_FIELD_LD, i, (tight + 7) / 8 * 8 + (random_chance(&c->later, 0.3) ? 8 * random_between(&c->later, 0, 3) : 0));
        else if (random_chance(&c->later, 0.5))
            set_field(c, SPK_FIELD_LD, i, tight + random_between(&c->later, 0, 17));
    }
}

static int64_t lines_of(const spk_array_info *a)
{
    return a->layout == SPK_ROW_MAJOR ? a->rows : a->cols;
}

/* Elements from which on another item may begin. */
static int64_t room_of_item(const spk_array_info *a)
{
    const int64_t lines = a->ld * lines_of(a), heads = a->heads * a->head_stride;
    return lines > heads ? lines : heads;
}

static int64_t some_more(check_case *c)
{
    return random_chance(&c->later, 0.5) ? 8 * random_between(&c->later, 1, 4) : random_between(&c->later, 1, 9);
}

/* How the heads of an item lie: one after another, with gaps, or side by side in each line. */
static void draw_head_stride(check_case *c, const spk_field_info *field)
{
    const spk_array_info *a = &c->arrays[field->operand];
    if (a->heads < 2)
        return;
    const int64_t way = random_between(&c->later, TIGHT, SIDE_BY_SIDE);
    if (way == LOOSE)
        operation_put(field, &c->given, a->ld * lines_of(a) + some_more(c));
    else if (way == SIDE_BY_SIDE && operation_field(c->op, SPK_FIELD_LD, field->operand)) {
        operation_put(field, &c->given, a->ld);
        set_field(c, SPK_FIELD_LD, field->operand, a->ld * a->heads);
    }
}

/* How the items of an array lie. */
static void draw_stride(check_case *c, const spk_field_info *field)
{
    static const int of_values[] = {TIGHT, LOOSE, SHARED};
    const spk_operand_info *operand = &c->op->operands[field->operand];
    const spk_array_info *a = &c->arrays[field->operand];
    const bool may_share = field->low < 0, may_be_beside = !operand->is_values && operation_field(c->op, SPK_FIELD_LD, field->operand);
    int way;
    if (a->stride == 0 && !field->option) /* pages, which all items share */
        return;
    if (operand->is_values)
        way = of_values[random_between(&c->later, field->option ? 1 : 0, may_share ? 2 : 1)];
    else
        way = (int)random_between(&c->later, TIGHT, may_share ? SHARED : SIDE_BY_SIDE);
    if (way == SIDE_BY_SIDE && (!may_be_beside || a->heads > 1))
        way = LOOSE;
    if (way == SHARED)
        operation_put(field, &c->given, SPK_STRIDE_SHARED);
    else if (way == SIDE_BY_SIDE) {
        operation_put(field, &c->given, a->ld);
        set_field(c, SPK_FIELD_LD, field->operand, a->ld * c->items);
    } else if (way == LOOSE)
        operation_put(field, &c->given, room_of_item(a) + some_more(c));
}

/* What is the very array of an output lies as that does. */
static void lay_alike(check_case *c)
{
    for (int i = 0; i < c->op->info.operand_count; i++) {
        if (c->same_as[i] < 0 || !check_takes_part(c, i))
            continue;
        set_field(c, SPK_FIELD_LD, i, get(c, SPK_FIELD_LD, c->same_as[i]));
        set_field(c, SPK_FIELD_STRIDE, i, get(c, SPK_FIELD_STRIDE, c->same_as[i]));
        set_field(c, SPK_FIELD_HEAD_STRIDE, i, get(c, SPK_FIELD_HEAD_STRIDE, c->same_as[i]));
    }
}

static bool may_be_same(const spk_array_info *input, const spk_array_info *output)
{
    return input->rows > 0 && input->cols > 0 && input->rows == output->rows && input->cols == output->cols &&
           input->heads == output->heads && input->dtype == output->dtype && input->layout == output->layout;
}

static void draw_all(check_case *c, spk_field_kind kind, void (*draw)(check_case *c, const spk_field_info *field))
{
    for (int i = 0; i < c->op->info.field_count; i++)
        if (c->op->fields[i].kind == kind && check_takes_part(c, c->op->fields[i].operand))
            draw(c, &c->op->fields[i]);
    lay_alike(c);
}

spk_status check_lay_out(check_case *c, spk_context *context, const spk_pattern *pattern)
{
    const spk_field_info *items = operation_field(c->op, SPK_FIELD_ITEMS, -2);
    spk_status status = find_arrays(c, context, pattern);
    const int64_t groups = get(c, SPK_FIELD_GROUPS, -2);
    c->items = groups > 0 ? groups : items ? c->items : 1;
    if (status == SPK_OK && (!c->own || c->own->draws_lds)) {
        draw_lds(c);
        lay_alike(c);
        status = find_arrays(c, context, pattern);
    }
    if (status == SPK_OK && operation_field(c->op, SPK_FIELD_HEADS, -2)) {
        draw_all(c, SPK_FIELD_HEAD_STRIDE, draw_head_stride);
        status = find_arrays(c, context, pattern);
    }
    for (int i = 0; status == SPK_OK && i < c->op->info.operand_count; i++)
        if (c->same_as[i] >= 0 && !may_be_same(&c->arrays[i], &c->arrays[c->same_as[i]]))
            c->same_as[i] = -1;
    if (status != SPK_OK || c->items == 1 || groups > 0)
        return status;
    operation_put(items, &c->given, c->items);
    status = find_arrays(c, context, pattern);
    if (status != SPK_OK)
        return status;
    draw_all(c, SPK_FIELD_STRIDE, draw_stride);
    return find_arrays(c, context, pattern);
}

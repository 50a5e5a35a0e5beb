/* What `check` draws of an operation by its table alone. */
#include <string.h>

#include "cli/check/draw.h"

/* A field of SpMM that is called so, and of the same kind; NULL: there is none. */
static const spk_field_info *alike(const operation *spmm, const spk_field_info *field)
{
    for (int i = 0; i < spmm->info.field_count; i++)
        if (strcmp(spmm->fields[i].name, field->name) == 0 && spmm->fields[i].kind == field->kind)
            return &spmm->fields[i];
    return NULL;
}

static int64_t draw_size(random_state *r, const check_draft *draft, const char *name)
{
    if (strcmp(name, "m") == 0 || strcmp(name, "k") == 0 || strcmp(name, "n") == 0)
        return name[0] == 'm' ? draft->m : name[0] == 'k' ? draft->k : draft->n;
    return random_chance(r, 0.5) ? 8 * random_between(r, 1, 16) : random_between(r, 1, 100);
}

static void draw_field(random_state *r, const check_draft *draft, const spk_field_info *field, operation_struct *given)
{
    switch (field->kind) {
    case SPK_FIELD_SIZE:
        operation_put(field, given, draw_size(r, draft, field->name));
        break;
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_PART:
    case SPK_FIELD_CHOICE:
        operation_put(field, given, random_chance(r, 0.5) ? 0 : random_between(r, 0, (int64_t)field->high));
        break;
    case SPK_FIELD_REAL:
        operation_put_real(field, given, random_chance(r, 0.5) ? 0 : field->low + (field->high - field->low) * random_unit(r));
        break;
    case SPK_FIELD_HEADS:
        operation_put(field, given, random_chance(r, 0.5) ? 0 : random_between(r, 1, 5));
        break;
    case SPK_FIELD_SCALE:
        operation_put_scale(field, given, check_draw_scale(r, draft->spmm.dtype_a, draft->block_rows, draft->block_cols));
        break;
    case SPK_FIELD_ITEMS:
    case SPK_FIELD_GROUPS:
    case SPK_FIELD_DTYPE:
    case SPK_FIELD_LD:
    case SPK_FIELD_STRIDE:
    case SPK_FIELD_HEAD_STRIDE:
    case SPK_FIELD_PROMISE: /* kept, or not, by how the arrays are filled (check_given) */
        break;
    case SPK_FIELD_COUNT:
        operation_put(field, given, random_chance(r, 0.5) ? 0 : random_between(r, 1, 40));
        break;
    }
}

/* A fifth of the cases are in groups, of some axis. */
static void draw_groups(random_state *r, const operation *op, operation_struct *given)
{
    const spk_field_info *groups = operation_field(op, SPK_FIELD_GROUPS, -2), *axis = operation_field_named(op, OPERATION_GROUP_AXIS);
    if (!groups || !axis || random_chance(r, 0.8))
        return;
    operation_put(axis, given, random_between(r, 1, (int64_t)axis->high));
    operation_put(groups, given, random_chance(r, 0.7) ? random_between(r, 1, 6) : random_between(r, 7, 40));
    for (int i = 0; i < op->info.field_count; i++) { /* no tile lies across groups */
        const spk_scale tile = op->fields[i].kind == SPK_FIELD_SCALE ? operation_get_scale(&op->fields[i], given) : (spk_scale){0, 0};
        if (tile.rows != 0)
            operation_put_scale(&op->fields[i], given, (spk_scale){tile.rows == 1 ? 1 : SPK_SCALE_ALL, tile.cols == 1 ? 1 : SPK_SCALE_ALL});
    }
}

void check_draw_any(random_state *r, const operation *op, const check_draft *draft, operation_struct *given)
{
    const operation *spmm = operation_at(operation_index(SPK_SPMM));
    operation_struct product;
    memcpy(product.bytes, &draft->spmm, sizeof(draft->spmm));
    for (int i = 0; i < op->info.field_count; i++) {
        const spk_field_info *field = &op->fields[i], *same = alike(spmm, field);
        if (field->kind == SPK_FIELD_LD || field->kind == SPK_FIELD_STRIDE || field->kind == SPK_FIELD_HEAD_STRIDE ||
            field->kind == SPK_FIELD_ITEMS)
            continue;
        if (strcmp(field->name, OPERATION_GROUP_AXIS) == 0)
            continue;
        if (same && field->kind != SPK_FIELD_SIZE && field->kind != SPK_FIELD_SCALE)
            operation_put(field, given, operation_get(same, &product));
        else
            draw_field(r, draft, field, given);
    }
    draw_groups(r, op, given);
}

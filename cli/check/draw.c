/* Draws the cases of `check`: an operation, a pattern, a description (check/), numbers; and, once there is a pattern, how arrays lie. */
#include "cli/check/draw.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"

enum { FAMILIES_APART = 96 }; /* more than cases are on their way at once: whoever comes second finds the program compiled */

/* Operations of which more is known than their tables say. */
static const check_own owns[] = {
    {.name = "spmm", .draw = check_draw_spmm},
    {.name = "sddmm", .draw = check_draw_sddmm},
    {.name = "attention",
     .draw = check_draw_attention,
     .draws_lds = true,
     .draw_numbers = check_enlarge_scores,
     .fill = check_fill_scores,
     .spoil = check_spoil_pages,
     .hide = check_hide_attention},
    {.name = "attention_backward",
     .draw = check_draw_attention_backward,
     .draws_lds = true,
     .draw_numbers = check_enlarge_scores,
     .fill = check_fill_scores,
     .derive = check_attend,
     .hide = check_hide_attention_backward},
};

static void add_block(check_case *c, int64_t i, int64_t j)
{
    c->columns[c->nnzb++] = j;
    c->overhang = c->overhang || (i + 1) * c->block_rows > c->rows || (j + 1) * c->block_cols > c->cols;
}

/* A group of block rows for each of a few experts, which share the columns; some have none. */
static void draw_experts(random_state *r, check_case *c)
{
    const int64_t experts = random_between(r, 1, c->grid_cols < 6 ? c->grid_cols : 6);
    int64_t expert = 0;
    for (int64_t i = 0; i < c->grid_rows; i++) {
        while (expert < experts - 1 && random_chance(r, 0.4))
            expert++;
        for (int64_t j = c->grid_cols * expert / experts; j < c->grid_cols * (expert + 1) / experts; j++)
            add_block(c, i, j);
        c->offsets[i + 1] = c->nnzb;
    }
}

static void draw_pattern(random_state *r, check_case *c)
{
    free(c->offsets);
    free(c->columns);
    c->nnzb = 0;
    c->overhang = false;
    static const double densities[] = {0, 0.02, 0.1, 0.3, 0.6, 1};
    double density = densities[random_between(r, 0, 5)], empty = random_chance(r, 0.3) ? 0.5 : 0;
    c->grid_rows = (c->rows + c->block_rows - 1) / c->block_rows;
    c->grid_cols = (c->cols + c->block_cols - 1) / c->block_cols;
    /* a row much longer than the others */
    const int64_t full = c->grid_rows > 0 && random_chance(r, 0.2) ? random_between(r, 0, c->grid_rows - 1) : -1;
    c->offsets = cli_alloc((size_t)c->grid_rows + 1, sizeof(int64_t));
    c->columns = cli_alloc((size_t)(c->grid_rows * c->grid_cols), sizeof(int64_t));
    if (c->grid_cols > 0 && random_chance(r, 0.1)) {
        draw_experts(r, c);
        return;
    }
    for (int64_t i = 0; i < c->grid_rows; i++) {
        bool none = random_chance(r, empty);
        for (int64_t j = 0; j < c->grid_cols; j++)
            if ((random_chance(r, density) && !none) || i == full)
                add_block(c, i, j);
        c->offsets[i + 1] = c->nnzb;
    }
}

/* Pointers of little alignment: whole elements off. */
static void draw_shifts(random_state *r, check_case *c)
{
    if (random_chance(r, 0.85))
        return;
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        c->shifts[i] = random_chance(r, 0.5) ? (int)random_between(r, 1, 15) : 0;
}

/* A mask of blocks in lists, for each item where `own`; the last may end with the queries or with a block. */
static void draw_mask(random_state *r, const check_draft *draft, check_case *c)
{
    const spk_field_info *items = operation_field(c->op, SPK_FIELD_ITEMS, -2), *of_heads = operation_field_named(c->op, "mask_heads"),
                         *of_items = operation_field_named(c->op, "mask_items");
    const bool own = c->items > 1 && random_chance(r, 0.5);
    const int64_t lists = draft->mask_heads * (own ? c->items : 1), whole = (draft->m + draft->block_rows - 1) / draft->block_rows;
    operation_put(of_heads, &c->given, draft->mask_heads);
    operation_put(of_items, &c->given, own ? c->items : random_between(r, 0, 1));
    operation_put(items, &c->given, c->items);
    c->has_pattern = true;
    c->block_rows = draft->block_rows;
    c->block_cols = draft->block_cols;
    c->rows = (lists - 1) * whole * c->block_rows + (lists > 1 && random_chance(r, 0.5) ? whole * c->block_rows : draft->m);
    c->cols = draft->n;
    draw_pattern(r, c);
    c->overhang = false; /* there are no values */
}

uint64_t check_family(const check_wish *wish, int64_t number)
{
    return (uint64_t)(number / (wish->alike * FAMILIES_APART) * FAMILIES_APART + number % FAMILIES_APART);
}

/* One of the operations wished for: the first of the table three times as often as each of the others. */
static const operation *draw_operation(random_state *t, unsigned wished)
{
    int all[OPERATION_MOST + 2], count = 0;
    for (int i = 0; operation_at(i); i++)
        for (int times = i == 0 ? 3 : 1; (wished >> i & 1) != 0 && times > 0; times--)
            all[count++] = i;
    const int64_t pick = random_between(t, 0, count > 0 ? count - 1 : 0);
    return operation_at(count > 0 ? all[pick] : 0);
}

static void describe(random_state *t, const check_wish *wish, check_draft *draft, check_case *c)
{
    c->op = draw_operation(t, wish->operations);
    c->given = operation_problem(c->op);
    for (size_t i = 0; i < sizeof(owns) / sizeof(*owns); i++)
        if (strcmp(owns[i].name, c->op->info.name) == 0)
            c->own = &owns[i];
    if (c->own)
        c->own->draw(t, wish->gpu, draft, &c->given);
    else
        check_draw_any(t, c->op, draft, &c->given);
}

/* Operand by its name; -1: there is none. */
static int operand_named(const operation *op, const char *name)
{
    for (int i = 0; i < op->info.operand_count; i++)
        if (strcmp(op->operands[i].name, name) == 0)
            return i;
    return -1;
}

/* Whether the product of the draft has an array of this name that D may be: it says whether it is. */
static bool is_of_draft(const char *name)
{
    return strcmp(name, "c") == 0 || strcmp(name, "residual") == 0;
}

/* Inputs that the draft does not have, and that are the very array that an output is. */
static void draw_alike(random_state *r, check_case *c)
{
    for (int i = 0; i < c->op->info.operand_count; i++)
        for (int from = 0; c->op->operands[i].may_be != 0 && from < c->op->info.operand_count; from++)
            if ((c->op->operands[i].may_be >> from & 1) != 0 && !is_of_draft(c->op->operands[from].name) && random_chance(r, 0.3))
                c->same_as[from] = i;
}

/* Scalars, and which inputs are the very array that an output is. */
static void take_numbers(random_state *r, const check_draft *draft, check_case *c)
{
    const int output = operation_output(c->op, 0), like[] = {operand_named(c->op, "c"), operand_named(c->op, "residual")};
    const bool same[] = {draft->alias_c, draft->alias_residual};
    for (int i = 0; i < c->op->info.scalar_count; i++)
        c->scalars[i] = strcmp(c->op->scalars[i].name, "beta") == 0 ? draft->beta : draft->alpha;
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        c->same_as[i] = -1;
    for (int i = 0; i < 2; i++)
        if (same[i] && like[i] >= 0 && (c->op->operands[output].may_be >> like[i] & 1) != 0)
            c->same_as[like[i]] = output;
    draw_alike(r, c);
}

/* A fifth are batches; the oracle takes its time. */
static int64_t draw_items(random_state *t, random_state *r, const check_draft *draft)
{
    if (random_chance(t, 0.8))
        return 1;
    const int64_t items = random_chance(r, 0.8) ? random_between(r, 2, 6) : random_between(r, 7, 20);
    return (double)draft->m * (double)draft->n * (double)draft->k > 1e7 ? 2 : items;
}

void check_draw(uint64_t seed, int64_t number, const check_wish *wish, check_case *out)
{
    const bool gpu = wish->gpu;
    random_state family = random_for(seed, check_family(wish, number), "family"), one = random_for(seed, (uint64_t)number, NULL);
    random_state *t = gpu ? &family : &one, *r = &one; /* t: the traits that a family shares */
    check_case c = {.seed = seed, .number = number};
    check_draft draft = {.spmm = {SPK_SIZED(spk_spmm)}};
    const bool tensor = gpu && random_chance(t, 0.45);
    check_draw_shape(t, gpu, tensor, &draft);
    if (gpu)
        check_redraw_sizes(r, &draft);
    draft.spmm.n = draft.n;
    c.rows = draft.rows;
    c.cols = draft.cols;
    c.block_rows = draft.block_rows;
    c.block_cols = draft.block_cols;
    c.index_type = random_between(r, 0, 1) == 0 ? SPK_INDEX_I32 : SPK_INDEX_I64;
    draw_pattern(r, &c);
    random_state kind = random_for(seed, gpu ? check_family(wish, number) : (uint64_t)number, "residual");
    check_draw_epilogue(t, r, (spk_residual)random_between(&kind, SPK_RESIDUAL_ADD, SPK_RESIDUAL_MULTIPLY), &draft);
    check_draw_layouts(t, r, &draft);
    if (tensor)
        check_align_lds(t, r, &draft);
    c.assume_finite = random_chance(t, tensor ? 0.6 : 0.4);
    c.inf_in_use = random_chance(r, tensor ? 0.3 : 0.15);
    c.static_values = random_chance(r, 0.3);
    c.own_workspace = random_chance(r, 0.5);
    c.threads = (int)random_between(r, 1, 4);
    if (gpu)
        draw_shifts(r, &c);
    random_state more = random_for(seed, (uint64_t)number, "operation"),
                 more_family = random_for(seed, check_family(wish, number), "operation of the family");
    random_state *shared = gpu ? &more_family : &more;
    draft.sizes = &more;
    describe(shared, wish, &draft, &c);
    take_numbers(&more, &draft, &c);
    random_state numbers = random_for(seed, (uint64_t)number, "numbers");
    if (c.own && c.own->draw_numbers)
        c.own->draw_numbers(&numbers, &c);
    c.static_values = c.static_values && operation_static_operand(c.op) >= 0;
    c.items = draw_items(shared, &more, &draft);
    const spk_field_info *sequences = operation_field_named(c.op, "sequences");
    if (sequences && operation_get(sequences, &c.given) > 0)
        c.items = 1;
    c.has_pattern = c.op->info.takes_pattern == SPK_PATTERN_NEEDED;
    if (draft.masked)
        draw_mask(&more, &draft, &c);
    else if (operation_field_named(c.op, "tiles"))
        operation_put(operation_field_named(c.op, "tiles"), &c.given, 0);
    c.later = more;
    c.aligned = tensor;
    *out = c;
}

bool check_is_shifted(const check_case *c)
{
    bool shifted = false;
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        shifted = shifted || c->shifts[i] != 0;
    return shifted;
}

void check_release(check_case *c)
{
    free(c->offsets);
    free(c->columns);
    *c = (check_case){0};
}

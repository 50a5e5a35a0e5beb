/* Fields of the tuning key of attention, and of its gradients. */
#include "op/attention/attention.h"
#include "op/key.h"

static bool key_dtype(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, spk_dtype_name(p->operand[ATTENTION_Q].dtype));
}

static bool key_lse(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT);
}

static bool key_cap(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->band.use_softcap);
}

/* Whether there is a limit: to the left, to the right, sinks. */
static bool key_band(const spk_problem *p, char *text, size_t size)
{
    static const char *const names[] = {"all", "left", "right", "band", "sinks", "sinks_left", "sinks_right", "sinks_band"};
    return spk_key_text(text, size, names[(p->band.left > 0) + 2 * (p->band.right > 0) + 4 * (p->band.sinks > 0)]);
}

static bool key_diagonal(const spk_problem *p, char *text, size_t size)
{
    return p->band.left + p->band.right > 0 && spk_key_whole(text, size, p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT);
}

static bool key_alignment(const spk_problem *p, char *text, size_t size)
{
    int64_t steps = 0;
    for (int i = 0; i < p->op->operand_count; i++)
        if (p->operand[i].dtype == p->operand[ATTENTION_Q].dtype && p->operand[i].layout == SPK_ROW_MAJOR) /* neither LSE nor indices */
            steps |= spk_operand_steps(&p->operand[i]);
    return spk_key_whole(text, size, spk_key_alignment(steps));
}

/* What the arguments of a run say, where they do. */
static bool key_packing(const spk_problem *p, char *text, size_t size)
{
    const spk_packing *packing = &p->packing;
    const bool lengths = packing->key_lengths != 0, paged = packing->page_keys > 0;
    static const char *const names[] = {"", "paged", "lengths", "lengths_paged", "packed", "packed_paged"};
    const int which = (paged ? 1 : 0) + (lengths ? 2 : 0) + (packing->sequences > 0 ? 4 : 0);
    return which > 0 && spk_key_text(text, size, names[which]);
}

static bool key_tiles(const spk_problem *p, char *text, size_t size)
{
    return p->lists.tiles > 0 && spk_key_whole(text, size, 1);
}

static bool key_sequences(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->packing.sequences);
    return p->packing.sequences > 0;
}

static bool key_page(const spk_problem *p, int64_t *value)
{
    *value = p->packing.page_keys;
    return p->packing.page_keys > 0;
}

static bool key_depth(const spk_problem *p, int64_t *value)
{
    *value = p->k;
    return true;
}

static bool key_depth_v(const spk_problem *p, int64_t *value)
{
    *value = p->depth_v;
    return true;
}

static bool key_queries(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->m);
    return true;
}

static bool key_keys(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->n);
    return true;
}

static bool key_window(const spk_problem *p, int64_t *value)
{
    const int64_t left = p->band.left > 0 ? p->band.left : 0, right = p->band.right > 1 ? p->band.right : 0;
    *value = spk_key_size(left + right);
    return left + right > 0;
}

static bool key_heads(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(spk_operand_heads(&p->operand[ATTENTION_Q]));
    return true;
}

static bool key_sharing(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(spk_attention_sharing(p));
    return true;
}

/* Whose lists the mask has. */
static bool key_lists(const spk_problem *p, char *text, size_t size)
{
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]);
    return p->pattern != NULL && spk_key_text(text, size, p->lists.heads == 1 ? "one" : p->lists.heads < heads ? "groups" : "heads");
}

/* Keys that a query sees on average. */
static bool key_seen(const spk_problem *p, int64_t *value)
{
    const double queries = (double)p->m * (double)spk_operand_heads(&p->operand[ATTENTION_Q]);
    *value = queries > 0 ? spk_key_size((int64_t)ceil(p->pairs / queries)) : 0;
    return p->pattern != NULL;
}

const spk_key_row spk_attention_key[] = {{.name = "t", .exact = key_dtype},
                                         {.name = "lse", .exact = key_lse},
                                         {.name = "cap", .exact = key_cap},
                                         {.name = "band", .exact = key_band},
                                         {.name = "diag", .exact = key_diagonal},
                                         {.name = "lists", .exact = key_lists},
                                         {.name = "packing", .exact = key_packing},
                                         {.name = "tiles", .exact = key_tiles},
                                         {.name = "al", .exact = key_alignment, .token_group = 1},
                                         {.name = "batch", .exact = spk_key_batch},
                                         {.name = "finite", .exact = spk_key_finite},
                                         {.name = "cache", .exact = spk_key_cache},
                                         {.name = "d", .near = key_depth, .weight = 4},
                                         {.name = "dv", .near = key_depth_v, .weight = 4},
                                         {.name = "q", .near = key_queries, .weight = 1, .token_group = 1},
                                         {.name = "kv", .near = key_keys, .weight = 1, .token_group = 1},
                                         {.name = "win", .near = key_window, .weight = 1},
                                         {.name = "br", .near = spk_key_block_rows, .weight = 4},
                                         {.name = "bc", .near = spk_key_block_cols, .weight = 4},
                                         {.name = "seen", .near = key_seen, .weight = 1, .token_group = 1},
                                         {.name = "rs", .near = spk_key_spread, .weight = 0.5, .is_class_number = true},
                                         {.name = "h", .near = key_heads, .weight = 1},
                                         {.name = "share", .near = key_sharing, .weight = 1},
                                         {.name = "items", .near = spk_key_items, .weight = 1, .token_group = 4},
                                         {.name = "seqs", .near = key_sequences, .weight = 1, .token_group = 1, .is_smooth = true},
                                         {.name = "page", .near = key_page, .weight = 1},
                                         {.name = NULL}};

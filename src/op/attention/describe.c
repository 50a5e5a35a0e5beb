/* Attention: its tables, and what follows from a problem. */
#include <float.h>

#include "op/attention/attention.h"
#include "op/fields.h"
#include "op/read.h"

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    return spk_attention_read(pattern, given, p);
}

static void write(const spk_problem *p, void *given)
{
    const spk_operand *q = &p->operand[ATTENTION_Q], *k = &p->operand[ATTENTION_K], *v = &p->operand[ATTENTION_V],
                      *o = &p->operand[ATTENTION_O], *lse = &p->operand[ATTENTION_LSE];
    *(spk_attention *)given = (spk_attention){SPK_SIZED(spk_attention),
                                              .dtype = q->dtype,
                                              .queries = p->m,
                                              .keys = p->n,
                                              .depth = p->k,
                                              .depth_v = p->depth_v,
                                              .batch = p->batch,
                                              .heads = q->heads,
                                              .heads_kv = k->heads,
                                              .diagonal = p->band.diagonal,
                                              .window_left = p->band.left,
                                              .window_right = p->band.right,
                                              .sinks = p->band.sinks,
                                              .use_softcap = p->band.use_softcap,
                                              .want_lse = lse->dtype != SPK_DTYPE_DEFAULT,
                                              .mask_heads = p->lists.heads,
                                              .mask_items = p->lists.item_step > 0 ? p->batch : 0,
                                              .ldq = q->ld,
                                              .ldk = k->ld,
                                              .ldv = v->ld,
                                              .ldo = o->ld,
                                              .head_stride_q = q->head_stride,
                                              .head_stride_k = k->head_stride,
                                              .head_stride_v = v->head_stride,
                                              .head_stride_o = o->head_stride,
                                              .head_stride_lse = lse->head_stride,
                                              .stride_q = spk_given_stride(p, q),
                                              .stride_k = spk_given_stride(p, k),
                                              .stride_v = spk_given_stride(p, v),
                                              .stride_o = o->stride,
                                              .stride_lse = lse->stride,
                                              .sequences = p->packing.sequences,
                                              .key_lengths = p->packing.key_lengths != 0,
                                              .assume_finite = p->assume_finite,
                                              .page_keys = p->packing.page_keys,
                                              .pages = p->packing.pages,
                                              .tiles = p->lists.tiles};
}

static double flops_of_pairs(const spk_problem *p, double pairs)
{
    return 2 * pairs * (double)(p->k + p->depth_v);
}

static double flops(const spk_problem *p)
{
    return flops_of_pairs(p, p->pairs);
}

static double dense_flops(const spk_problem *p)
{
    return flops_of_pairs(p, (double)p->m * (double)p->n * (double)spk_operand_heads(&p->operand[ATTENTION_Q]));
}

/* Of pages no more than the items' keys. */
double spk_attention_touched(const spk_problem *p, int i)
{
    const spk_operand *o = &p->operand[i];
    const double rows = (double)o->rows * (double)spk_operand_heads(o),
                 keys = (double)p->n * (double)(p->packing.sequences > 0 ? p->packing.sequences : p->batch) * (double)spk_operand_heads(o);
    return (p->packing.page_keys > 0 && (i == ATTENTION_K || i == ATTENTION_V) && keys < rows ? keys : rows) * (double)o->cols;
}

double spk_attention_rounding(const spk_problem *p, int64_t depth, int64_t terms, bool is_stored)
{
    const spk_dtype dtype = p->operand[ATTENTION_Q].dtype;
    const double eps = spk_type_epsilon(p->compute), stored = spk_type_is_narrow(dtype) ? spk_type_rounding(dtype) : 0;
    return eps * (16 + 2 * sqrt((double)depth) + 2 * sqrt((double)terms)) + (is_stored ? 2 * stored : 0);
}

/* The magnitudes say how large the scores' terms were. */
static double tolerance(const spk_problem *p, int output)
{
    return spk_attention_rounding(p, p->k, p->n, output != ATTENTION_LSE);
}

/* A mask fixes both. */
int64_t *spk_attention_free_size(spk_problem *p)
{
    return &p->n;
}

int64_t *spk_attention_other_size(spk_problem *p)
{
    return &p->m;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_attention
#include "op/attention/fields.def"
};

static const spk_size_row sizes[] = {SPK_ATTENTION_SIZES};

#define PLACE(name) offsetof(spk_attention_args, name)
#define INDEX(i, name_, title_, extents_) \
    [i] = {.name = #name_, .title = title_, .extents = extents_, .role = SPK_ROLE_IN, .place = PLACE(name_)}
static const spk_operand_row operands[] = {
    [ATTENTION_Q] = {.name = "q", .title = "Q", .extents = "queries x depth", .role = SPK_ROLE_IN, .place = PLACE(q)},
    [ATTENTION_K] = {.name = "k", .title = "K", .extents = "keys x depth", .role = SPK_ROLE_IN, .place = PLACE(k)},
    [ATTENTION_V] = {.name = "v", .title = "V", .extents = "keys x depth_v", .role = SPK_ROLE_IN, .place = PLACE(v)},
    [ATTENTION_O] = {.name = "o", .title = "O", .extents = "queries x depth_v", .role = SPK_ROLE_OUT, .place = PLACE(o)},
    [ATTENTION_LSE] =
        {.name = "lse", .title = "LSE", .extents = "queries x 1", .role = SPK_ROLE_OUT, .may_be_infinite = true, .place = PLACE(lse)},
    INDEX(ATTENTION_QUERY_ENDS, query_ends, "query ends", "1 x sequences"),
    INDEX(ATTENTION_KEY_ENDS, key_ends, "key ends", "1 x sequences, or 1"),
    INDEX(ATTENTION_PAGE_TABLE, page_table, "page table", "1 x pages of the keys, for each sequence"),
    INDEX(ATTENTION_TILE_NUMBERS, tile_numbers, "tile numbers", "1 x blocks"),
    INDEX(ATTENTION_TILE_BITS, tile_bits, "tile bits", "1 x words of all tiles"),
};

static const spk_scalar_row scalars[] = {
    [ATTENTION_SCALE] = {"scale", PLACE(scale), -1, SPK_ATTENTION_TUNED_SCALE, SPK_ATTENTION_TUNED_SCALE},
    [ATTENTION_SOFTCAP] = {"softcap", PLACE(softcap), -1, 2.5, 1},
};

const spk_op spk_op_attention = {.id = SPK_ATTENTION,
                                 .name = "attention",
                                 SPK_OP_STRUCTS(spk_attention, spk_attention_args),
                                 .formula = "O = softmax(scale Q K^T) V",
                                 .sentence = "attention of {queries} queries on {keys} keys, depth {depth} and {depth_v}",
                                 SPK_OP_TABLES_BUT_KEY,
                                 .key = spk_attention_key,
                                 .takes_pattern = SPK_PATTERN_OPTIONAL,
                                 .read = read,
                                 .write = write,
                                 .fit = spk_attention_fit,
                                 .flops = flops,
                                 .dense_flops = dense_flops,
                                 .touched = spk_attention_touched,
                                 .tolerance = tolerance,
                                 .draw_index = spk_attention_draw_index,
                                 .check_indices = spk_attention_check_indices,
                                 .free_size = spk_attention_free_size,
                                 .other_size = spk_attention_other_size,
                                 .part = spk_attention_part,
                                 .oracle = spk_attention_oracle};

/* Gradients of attention: a caller's spk_attention_backward as a problem, which is one of attention with operands more; its tables. */
#include "op/attention_backward/operands.h"
#include "op/fields.h"
#include "op/read.h"

static const struct {
    int operand, like; /* of the same shape and dtype as this one */
    bool output;
} gradients[] = {{BACKWARD_GRAD_O, ATTENTION_O, false},
                 {BACKWARD_GRAD_LSE, ATTENTION_LSE, false},
                 {BACKWARD_GRAD_Q, ATTENTION_Q, true},
                 {BACKWARD_GRAD_K, ATTENTION_K, true},
                 {BACKWARD_GRAD_V, ATTENTION_V, true}};
enum { GRADIENTS = sizeof gradients / sizeof *gradients };

/* Members of both descriptions. */
#define SHARED(M)                                                                                                                     \
    M(dtype), M(queries), M(keys), M(depth), M(depth_v), M(batch), M(heads), M(heads_kv), M(diagonal), M(causal), M(window_left),     \
        M(window_right), M(sinks), M(use_softcap), M(mask_heads), M(mask_items), M(ldq), M(ldk), M(ldv), M(ldo), M(head_stride_q),    \
        M(head_stride_k), M(head_stride_v), M(head_stride_o), M(head_stride_lse), M(stride_q), M(stride_k), M(stride_v), M(stride_o), \
        M(stride_lse), M(sequences), M(key_lengths), M(assume_finite), M(tiles)

/* The attention whose gradients are wanted. */
static spk_attention attention_of(const spk_attention_backward *given)
{
    spk_attention made = {SPK_SIZED(spk_attention), .want_lse = 1};
#define TAKE(member) made.member = given->member
    SHARED(TAKE);
    return made;
}

static bool takes_part(const spk_problem *p, int operand)
{
    return p->operand[operand].dtype != SPK_DTYPE_DEFAULT;
}

static void fit_operands(spk_problem *p)
{
    spk_attention_fit(p);
    for (int i = 0; i < GRADIENTS; i++)
        if (takes_part(p, gradients[i].operand)) {
            p->operand[gradients[i].operand].rows = p->operand[gradients[i].like].rows;
            p->operand[gradients[i].operand].cols = p->operand[gradients[i].like].cols;
        }
}

static spk_status read_gradients(const spk_attention_backward *a, spk_problem *p)
{
    const struct {
        spk_given_array array;
        const char *head_stride_name;
        int64_t head_stride;
    } arrays[GRADIENTS] = {
        {{"ld_grad_o", "stride_grad_o", a->ld_grad_o, a->stride_grad_o, false}, "head_stride_grad_o", a->head_stride_grad_o},
        {{"ld_grad_lse", "stride_grad_lse", 0, a->stride_grad_lse, false}, "head_stride_grad_lse", a->head_stride_grad_lse},
        {{"ld_grad_q", "stride_grad_q", a->ld_grad_q, a->stride_grad_q, true}, "head_stride_grad_q", a->head_stride_grad_q},
        {{"ld_grad_k", "stride_grad_k", a->ld_grad_k, a->stride_grad_k, true}, "head_stride_grad_k", a->head_stride_grad_k},
        {{"ld_grad_v", "stride_grad_v", a->ld_grad_v, a->stride_grad_v, true}, "head_stride_grad_v", a->head_stride_grad_v}};
    for (int i = 0; i < GRADIENTS; i++) {
        const spk_operand *like = &p->operand[gradients[i].like];
        spk_operand made = {.rows = like->rows, .cols = like->cols, .heads = like->heads, .dtype = like->dtype, .layout = like->layout};
        SPK_TRY(spk_read_array_of_heads(&arrays[i].array, arrays[i].head_stride_name, arrays[i].head_stride, p->batch, &made));
        if (gradients[i].operand != BACKWARD_GRAD_LSE || a->use_grad_lse != 0) /* checked, too, where it takes no part */
            p->operand[gradients[i].operand] = made;
    }
    return SPK_OK;
}

static spk_status read(spk_pattern *pattern, const void *given, spk_problem *p)
{
    const spk_attention_backward *a = given;
    const spk_attention attention = attention_of(a);
    SPK_TRY(spk_attention_read(pattern, &attention, p));
    return read_gradients(a, p);
}

static void write(const spk_problem *p, void *given)
{
    const spk_operand *grad_o = &p->operand[BACKWARD_GRAD_O], *grad_lse = &p->operand[BACKWARD_GRAD_LSE],
                      *grad_q = &p->operand[BACKWARD_GRAD_Q], *grad_k = &p->operand[BACKWARD_GRAD_K],
                      *grad_v = &p->operand[BACKWARD_GRAD_V];
    spk_attention attention;
    spk_op_attention.write(p, &attention);
    spk_attention_backward made = {SPK_SIZED(spk_attention_backward),
                                   .use_grad_lse = takes_part(p, BACKWARD_GRAD_LSE),
                                   .ld_grad_o = grad_o->ld,
                                   .ld_grad_q = grad_q->ld,
                                   .ld_grad_k = grad_k->ld,
                                   .ld_grad_v = grad_v->ld,
                                   .head_stride_grad_o = grad_o->head_stride,
                                   .head_stride_grad_lse = grad_lse->head_stride,
                                   .head_stride_grad_q = grad_q->head_stride,
                                   .head_stride_grad_k = grad_k->head_stride,
                                   .head_stride_grad_v = grad_v->head_stride,
                                   .stride_grad_o = spk_given_stride(p, grad_o),
                                   .stride_grad_lse = spk_given_stride(p, grad_lse),
                                   .stride_grad_q = grad_q->stride,
                                   .stride_grad_k = grad_k->stride,
                                   .stride_grad_v = grad_v->stride};
#define GIVE(member) made.member = attention.member
    SHARED(GIVE);
    *(spk_attention_backward *)given = made;
}

/* Five products of each pair: Q K^T, grad_O V^T, grad_S K, grad_S^T Q, P^T grad_O. */
static double flops_of_pairs(const spk_problem *p, double pairs)
{
    return 2 * pairs * (double)(3 * p->k + 2 * p->depth_v);
}

static double flops(const spk_problem *p)
{
    return flops_of_pairs(p, p->pairs);
}

static double dense_flops(const spk_problem *p)
{
    return flops_of_pairs(p, (double)p->m * (double)p->n * (double)spk_operand_heads(&p->operand[ATTENTION_Q]));
}

/* Scores and their gradients are sums over the columns; grad_Q is one over keys, the others over the queries of all heads that share. */
static double tolerance(const spk_problem *p, int output)
{
    return spk_attention_rounding(p, p->k + p->depth_v, output == BACKWARD_GRAD_Q ? p->n : p->m * spk_attention_sharing(p), true);
}

/* In tuning O and LSE are random, too. Around the logarithm of the sum that scores of random numbers have, and so high that no score of
 * any pair is more than 2 above its query's LSE: a real weight is at most 1, and kernels hold it, times 2^12, in f16. */
static double mean(const spk_problem *p, int i)
{
    static const double highest = 6, above = 2; /* of so many normal numbers, in standard deviations */
    const double rows = (double)p->m * (double)spk_operand_heads(&p->operand[ATTENTION_Q]), scale = SPK_ATTENTION_TUNED_SCALE;
    const double variance = scale * scale * (double)p->k, least = highest * sqrt(variance + 1) - above;
    if (i != ATTENTION_LSE)
        return 0;
    return p->pairs > rows ? fmax(0.5 * variance + log(p->pairs / rows), least) : least;
}

static const spk_field_info fields[] = {
#define FIELDS_OF spk_attention_backward
#include "op/attention_backward/fields.def"
};

static const spk_size_row sizes[] = {SPK_ATTENTION_SIZES};

#define PLACE(name) offsetof(spk_attention_backward_args, name)
#define OPERAND(i, role_, name_, title_, extents_) \
    [i] = {.name = #name_, .title = title_, .extents = extents_, .role = SPK_ROLE_##role_, .place = PLACE(name_)}
static const spk_operand_row operands[] = {
    OPERAND(ATTENTION_Q, IN, q, "Q", "queries x depth"),
    OPERAND(ATTENTION_K, IN, k, "K", "keys x depth"),
    OPERAND(ATTENTION_V, IN, v, "V", "keys x depth_v"),
    OPERAND(ATTENTION_O, IN, o, "O", "queries x depth_v"),
    OPERAND(ATTENTION_LSE, IN, lse, "LSE", "queries x 1"),
    OPERAND(ATTENTION_QUERY_ENDS, IN, query_ends, "query ends", "1 x sequences"),
    OPERAND(ATTENTION_KEY_ENDS, IN, key_ends, "key ends", "1 x sequences, or 1"),
    OPERAND(ATTENTION_TILE_NUMBERS, IN, tile_numbers, "tile numbers", "1 x blocks"),
    OPERAND(ATTENTION_TILE_BITS, IN, tile_bits, "tile bits", "1 x words of all tiles"),
    OPERAND(BACKWARD_GRAD_O, IN, grad_o, "grad O", "queries x depth_v"),
    OPERAND(BACKWARD_GRAD_LSE, IN, grad_lse, "grad LSE", "queries x 1"),
    OPERAND(BACKWARD_GRAD_Q, OUT, grad_q, "grad Q", "queries x depth"),
    OPERAND(BACKWARD_GRAD_K, OUT, grad_k, "grad K", "keys x depth"),
    OPERAND(BACKWARD_GRAD_V, OUT, grad_v, "grad V", "keys x depth_v"),
};

static const spk_scalar_row scalars[] = {
    [ATTENTION_SCALE] = {"scale", PLACE(scale), -1, SPK_ATTENTION_TUNED_SCALE, SPK_ATTENTION_TUNED_SCALE},
    [ATTENTION_SOFTCAP] = {"softcap", PLACE(softcap), -1, 2.5, 1},
};

const spk_op spk_op_attention_backward = {.id = SPK_ATTENTION_BACKWARD,
                                          .name = "attention_backward",
                                          SPK_OP_STRUCTS(spk_attention_backward, spk_attention_backward_args),
                                          .formula = "gradients of O = softmax(scale Q K^T) V",
                                          .sentence =
                                              "gradients of attention of {queries} queries on {keys} keys, depth {depth} and {depth_v}",
                                          SPK_OP_TABLES_BUT_KEY,
                                          .key = spk_attention_key,
                                          .takes_pattern = SPK_PATTERN_OPTIONAL,
                                          .read = read,
                                          .write = write,
                                          .fit = fit_operands,
                                          .flops = flops,
                                          .dense_flops = dense_flops,
                                          .touched = spk_attention_touched,
                                          .tolerance = tolerance,
                                          .mean = mean,
                                          .draw_index = spk_attention_draw_index,
                                          .check_indices = spk_attention_check_indices,
                                          .free_size = spk_attention_free_size,
                                          .other_size = spk_attention_other_size,
                                          .part = spk_attention_part,
                                          .oracle = spk_attention_backward_oracle};

/* cuDNN's attention: it knows no such operation in all of its versions, but recognises the graph of products, comparisons of a query's
 * place with a key's, and the steps of a softmax. */
#include <float.h>
#include <math.h>

#include "backend/cuda/host/attention/attention.h"
#include "backend/cuda/vendor/cudnn.h"
#include "op/attention/attention.h"

enum { PLACE_OF_QUERY = 2, PLACE_OF_KEY = 3 }; /* axes of scores */

spk_dnn_band spk_dnn_band_of(const spk_problem *problem, size_t version)
{
    const spk_problem *p = problem;
    const int left = spk_cuda_attention_limit(p, p->band.left), right = spk_cuda_attention_limit(p, p->band.right);
    const bool bottom = p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT && p->n != p->m;
    return (spk_dnn_band){.queries = (int32_t)p->m,
                          .keys = (int32_t)p->n,
                          .right = right - 1,
                          .left = (float)(left - (bottom ? p->n - p->m : 0)),
                          .nothing = version < 91000 ? -FLT_MAX : -INFINITY, /* older ones want a number */
                          .has_left = left > 0,
                          .has_right = right > 0,
                          .bottom = bottom};
}

/* ------------------------------------------------------------------------------------------------ tensors */

/* heads of items, each of rows x cols, tightly. */
static spk_dnn_shape tight(int64_t items, int64_t heads, int64_t rows, int64_t cols)
{
    return (spk_dnn_shape){{items, heads, rows, cols}, {heads * rows * cols, rows * cols, cols, 1}};
}

static spk_dnn_shape shape_of(const spk_problem *p, int i, bool turned)
{
    const spk_operand *o = &p->operand[i];
    const int64_t heads = spk_operand_heads(o), head_step = heads > 1 ? o->head_stride : o->rows * o->ld,
                  item_step = p->batch > 1 ? o->stride : heads * head_step;
    return turned ? (spk_dnn_shape){{p->batch, heads, o->cols, o->rows}, {item_step, head_step, 1, o->ld}}
                  : (spk_dnn_shape){{p->batch, heads, o->rows, o->cols}, {item_step, head_step, o->ld, 1}};
}

static void *array_of(spk_dnn_graph *g, const spk_problem *p, int i, int64_t id)
{
    const spk_dnn_shape shape = shape_of(p, i, i == ATTENTION_K);
    return spk_dnn_array(g, id, spk_type_of(p->operand[i].dtype)->cudnn, &shape);
}

/* ------------------------------------------------------------------------------------------------ operations */

static void *apply_in(spk_dnn_graph *g, int mode, int type, void *x, void *y, const spk_dnn_shape *shape)
{
    void *out = spk_dnn_between(g, type, shape);
    spk_dnn_add_pointwise(g, &(spk_dnn_pointwise){.mode = mode, .type = type, .x = x, .y = y, .out = out});
    return out;
}

static void *apply(spk_dnn_graph *g, int mode, void *x, void *y, const spk_dnn_shape *shape)
{
    return apply_in(g, mode, DNN_FLOAT, x, y, shape);
}

static void *place(spk_dnn_graph *g, void *scores, int axis, const spk_dnn_shape *shape)
{
    void *out = spk_dnn_between(g, DNN_INT32, shape);
    spk_dnn_add_pointwise(g, &(spk_dnn_pointwise){.mode = DNN_INDEX, .type = DNN_FLOAT, .axis = axis, .x = scores, .out = out});
    return out;
}

/* Scores where `seen`, else the number that stands for nothing. */
static void *keep(spk_dnn_graph *g, void *scores, void *seen, int64_t nothing_id, const spk_dnn_shape *shape)
{
    void *nothing = spk_dnn_number(g, nothing_id, DNN_FLOAT), *out = spk_dnn_between(g, DNN_FLOAT, shape);
    spk_dnn_add_pointwise(g, &(spk_dnn_pointwise){.mode = DNN_SELECT, .type = DNN_FLOAT, .x = scores, .y = nothing, .z = seen, .out = out});
    return out;
}

/* Keys up to the one beside the query, and `right` more. */
static void *keep_right(spk_dnn_graph *g, const spk_dnn_band *band, void *scores, const spk_dnn_shape *shape)
{
    void *query = place(g, scores, PLACE_OF_QUERY, shape), *key = place(g, scores, PLACE_OF_KEY, shape);
    if (band->bottom) {
        query = apply_in(g, DNN_ADD, DNN_INT32, query, spk_dnn_number(g, DNN_KEYS, DNN_INT32), shape);
        query = apply_in(g, DNN_SUBTRACT, DNN_INT32, query, spk_dnn_number(g, DNN_QUERIES, DNN_INT32), shape);
    }
    if (band->right > 0)
        query = apply_in(g, DNN_ADD, DNN_INT32, query, spk_dnn_number(g, DNN_RIGHT, DNN_INT32), shape);
    void *seen = apply_in(g, DNN_GREATER_EQUAL, DNN_BOOLEAN, query, key, shape);
    return keep(g, scores, seen, DNN_NOTHING_RIGHT, shape);
}

/* Keys from the window's first on. */
static void *keep_left(spk_dnn_graph *g, void *scores, const spk_dnn_shape *shape)
{
    void *query = place(g, scores, PLACE_OF_QUERY, shape), *key = place(g, scores, PLACE_OF_KEY, shape);
    key = apply(g, DNN_ADD, key, spk_dnn_number(g, DNN_LEFT, DNN_FLOAT), shape);
    void *seen = apply_in(g, DNN_GREATER, DNN_BOOLEAN, key, query, shape);
    return keep(g, scores, seen, DNN_NOTHING_LEFT, shape);
}

/* exp(scores - their largest) / the sum of these, for each query; the result is an operand of a product, of type `type`. */
static void *soften(spk_dnn_graph *g, void *scores, int type, bool want_lse, const spk_dnn_shape *all, const spk_dnn_shape *each)
{
    void *largest = spk_dnn_between(g, DNN_FLOAT, each), *sum = spk_dnn_between(g, DNN_FLOAT, each);
    spk_dnn_add_reduction(g, DNN_REDUCE_MAX, scores, largest);
    void *powers = apply(g, DNN_EXP, apply(g, DNN_SUBTRACT, scores, largest, all), NULL, all);
    spk_dnn_add_reduction(g, DNN_REDUCE_ADD, powers, sum);
    /* where nobody wants it, too: it is what tells the attention that never stores its scores from one that does */
    void *log = apply(g, DNN_LOG, sum, NULL, each),
         *lse = want_lse ? spk_dnn_array(g, DNN_LSE, DNN_FLOAT, each) : spk_dnn_between(g, DNN_FLOAT, each);
    spk_dnn_add_pointwise(g, &(spk_dnn_pointwise){.mode = DNN_ADD, .type = DNN_FLOAT, .x = largest, .y = log, .out = lse});
    void *out = spk_dnn_between(g, type, all);
    spk_dnn_add_pointwise(g, &(spk_dnn_pointwise){.mode = DNN_DIVIDE, .type = DNN_FLOAT, .x = powers, .y = sum, .out = out});
    return out;
}

void spk_dnn_add_attention(spk_dnn_graph *graph, const spk_problem *problem, const spk_dnn_band *band)
{
    const spk_problem *p = problem;
    const int64_t heads = spk_operand_heads(&p->operand[ATTENTION_Q]);
    const spk_dnn_shape all = tight(p->batch, heads, p->m, p->n), each = tight(p->batch, heads, p->m, 1);
    const int type = spk_type_of(p->operand[ATTENTION_Q].dtype)->cudnn;
    void *q = array_of(graph, p, ATTENTION_Q, DNN_Q), *k = array_of(graph, p, ATTENTION_K, DNN_K),
         *v = array_of(graph, p, ATTENTION_V, DNN_V), *o = array_of(graph, p, ATTENTION_O, DNN_O),
         *scores = spk_dnn_between(graph, DNN_FLOAT, &all);
    spk_dnn_add_product(graph, q, k, scores);
    scores = apply(graph, DNN_MULTIPLY, scores, spk_dnn_number(graph, DNN_SCALE, DNN_FLOAT), &all);
    if (band->has_right)
        scores = keep_right(graph, band, scores, &all);
    if (band->has_left)
        scores = keep_left(graph, scores, &all);
    spk_dnn_add_product(graph, soften(graph, scores, type, p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT, &all, &each), v, o);
}

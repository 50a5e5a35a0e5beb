//! Attention from standard operations: scores of all pairs, hidden ones replaced. What is not finite in a hidden row of V spreads.
use super::problem::shapes;
use crate::attention::{Attention, Sizes};
use burn::backend::tensor::{BoolTensor, FloatTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, TensorData};
use sparsek::Diagonal;

/// What sums are kept in, and LSE.
pub fn sum_type(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// A matrix for each head of K and V, with the rows of all heads of Q that share it one below the other.
fn together<B: Backend>(tensor: FloatTensor<B>, sizes: &Sizes, rows: usize) -> FloatTensor<B> {
    let (shape, wide) = (tensor.shape(), sum_type(tensor.dtype()));
    let tensor = if tensor.dtype() == wide { tensor } else { B::float_cast(tensor, wide.into()) };
    let depth = shape.num_elements() / (sizes.batch * sizes.heads_kv * rows);
    B::float_reshape(tensor, Shape::from([sizes.batch, sizes.heads_kv, rows, depth]))
}

fn back<B: Backend>(tensor: FloatTensor<B>, shape: Shape, dtype: DType) -> FloatTensor<B> {
    let tensor = B::float_reshape(tensor, shape);
    if tensor.dtype() == dtype { tensor } else { B::float_cast(tensor, dtype.into()) }
}

/// Which pairs are hidden, as the scores lie; none where none is.
fn hidden<B: Backend>(attention: &Attention, sizes: &Sizes, like: &FloatTensor<B>) -> Option<BoolTensor<B>> {
    let a = attention;
    if !a.causal && a.window_left == 0 && a.window_right == 0 && a.mask.is_none() {
        return None;
    }
    let Sizes { batch, heads, heads_kv, queries, keys, .. } = *sizes;
    let below = if a.diagonal == Some(Diagonal::BottomRight) { keys as i64 - queries as i64 } else { 0 };
    let in_band = |query: usize, key: usize| {
        let (beside, key) = (query as i64 + below, key as i64);
        let right = if a.causal { 1 } else { a.window_right as i64 };
        (right == 0 || key < beside + right)
            && (a.window_left == 0 || key > beside - a.window_left as i64 || key < a.sinks as i64)
    };
    let mut lists = (1, 1);
    let mut stored = Vec::new();
    let (mut block, mut grid) = ([1, 1], [0, 0]);
    if let Some(mask) = &a.mask {
        (lists, block, grid) = ((mask.heads, mask.items), mask.pattern.block(), mask.pattern.grid());
        stored = vec![false; grid[0] * grid[1]];
        mask.pattern.coordinates().for_each(|(row, column)| stored[row * grid[1] + column] = true);
    }
    let (of_heads, of_items) = lists;
    let (items, group) = (if of_items > 1 { batch } else { 1 }, heads / heads_kv);
    let mut pairs = Vec::with_capacity(items * heads * queries * keys);
    for (item, head) in (0..items).flat_map(|item| (0..heads).map(move |head| (item, head))) {
        let first = (item * of_heads + head * of_heads / heads) * queries.div_ceil(block[0]);
        for query in 0..queries {
            let row = (first + query / block[0]) * grid[1];
            pairs.extend(
                (0..keys).map(|key| !in_band(query, key) || !(stored.is_empty() || stored[row + key / block[1]])),
            );
        }
    }
    let own = Shape::from([items, heads_kv, group * queries, keys]);
    let pairs = B::bool_from_data(TensorData::new(pairs, own), &like.device());
    Some(B::bool_expand(pairs, like.shape()))
}

/// The scores with the soft cap, and the pairs that are hidden.
fn scores<B: Backend>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    attention: &Attention,
    sizes: &Sizes,
) -> (FloatTensor<B>, Option<BoolTensor<B>>) {
    let product = B::float_matmul(q, B::float_swap_dims(k, 2, 3));
    let scores = B::float_mul_scalar(product, attention.scale_for(sizes.depth).into());
    let scores = match attention.softcap {
        None => scores,
        Some(cap) => B::float_mul_scalar(B::float_tanh(B::float_div_scalar(scores, cap.into())), cap.into()),
    };
    let hidden = hidden::<B>(attention, sizes, &scores);
    (scores, hidden)
}

fn filled<B: Backend>(tensor: FloatTensor<B>, hidden: &Option<BoolTensor<B>>, value: f64) -> FloatTensor<B> {
    match hidden {
        None => tensor,
        Some(hidden) => B::float_mask_fill(tensor, hidden.clone(), value.into()),
    }
}

/// The problem's sizes, after all of it was checked.
fn checked<B: Backend>(tensors: [&FloatTensor<B>; 3], attention: &Attention) -> Sizes {
    let [q, k, v] = tensors;
    if let Err(why) = attention.tuning.options() {
        panic!("attention: {why}"); // nothing is tuned here, and a wrong option is wrong all the same
    }
    for (name, tensor) in [("k", k), ("v", v)] {
        assert!(tensor.dtype() == q.dtype(), "attention: {name} of {:?} and q of {:?}", tensor.dtype(), q.dtype());
    }
    attention.sizes(&q.shape(), &k.shape(), &v.shape()).unwrap_or_else(|why| panic!("attention: {why}"))
}

/// O and LSE.
pub fn forward<B: Backend>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    attention: &Attention,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let sizes = checked::<B>([&q, &k, &v], attention);
    let ((shape, shape_lse), dtype, device) = (shapes(&sizes), q.dtype(), q.device());
    let wide = sum_type(dtype);
    if shape.num_elements() == 0 || sizes.keys == 0 {
        let lse = B::float_full(shape_lse, f64::NEG_INFINITY.into(), &device, wide.into());
        return (B::float_zeros(shape, &device, dtype.into()), lse);
    }
    let rows = sizes.heads / sizes.heads_kv * sizes.queries;
    let (q, k, v) =
        (together::<B>(q, &sizes, rows), together::<B>(k, &sizes, sizes.keys), together::<B>(v, &sizes, sizes.keys));
    let (scores, hidden) = scores::<B>(q, k, attention, &sizes);
    let scores = filled::<B>(scores, &hidden, f64::NEG_INFINITY);
    let limits = wide.finfo().expect("a type of floats");
    // Of a query that sees nothing the largest score is -infinity and the sum 0: neither is subtracted, or divided by.
    let largest = B::float_clamp_min(B::float_max_dim(scores.clone(), 3), limits.min.into());
    let terms = B::float_exp(B::float_sub(scores, largest.clone()));
    let sum = B::float_sum_dim(terms.clone(), 3);
    let lse = B::float_add(B::float_log(sum.clone()), largest);
    let o = B::float_div(B::float_matmul(terms, v), B::float_clamp_min(sum, limits.min_positive.into()));
    (back::<B>(o, shape, dtype), back::<B>(lse, shape_lse, wide))
}

/// The gradients by Q, K and V.
pub fn backward<B: Backend>(
    [q, k, v]: [FloatTensor<B>; 3],
    [o, lse]: [FloatTensor<B>; 2],
    [grad_o, grad_lse]: [FloatTensor<B>; 2],
    attention: &Attention,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let sizes = checked::<B>([&q, &k, &v], attention);
    let (dtype, shapes, device) = (q.dtype(), [q.shape(), k.shape(), v.shape()], q.device());
    if o.shape().num_elements() == 0 || sizes.keys == 0 {
        let [q, k, v] = shapes.map(|shape| B::float_zeros(shape, &device, dtype.into()));
        return (q, k, v);
    }
    let rows = sizes.heads / sizes.heads_kv * sizes.queries;
    let of_queries = |tensor: FloatTensor<B>| together::<B>(tensor, &sizes, rows);
    let (q, o, lse, grad_o, grad_lse) =
        (of_queries(q), of_queries(o), of_queries(lse), of_queries(grad_o), of_queries(grad_lse));
    let (k, v) = (together::<B>(k, &sizes, sizes.keys), together::<B>(v, &sizes, sizes.keys));
    let (scores, hidden) = scores::<B>(q.clone(), k.clone(), attention, &sizes);
    let shares = filled::<B>(B::float_exp(B::float_sub(scores.clone(), lse)), &hidden, 0.0);
    let along = B::float_sub(B::float_sum_dim(B::float_mul(grad_o.clone(), o), 3), grad_lse);
    let of_shares = B::float_matmul(grad_o.clone(), B::float_swap_dims(v, 2, 3));
    let mut of_scores = B::float_mul(shares.clone(), B::float_sub(of_shares, along));
    if let Some(cap) = attention.softcap {
        let bent = B::float_div_scalar(scores, cap.into());
        let slope = B::float_add_scalar(B::float_neg(B::float_mul(bent.clone(), bent)), 1.0.into());
        of_scores = B::float_mul(of_scores, slope);
    }
    let of_scores = B::float_mul_scalar(of_scores, attention.scale_for(sizes.depth).into());
    let grad_q = B::float_matmul(of_scores.clone(), k);
    let grad_k = B::float_matmul(B::float_swap_dims(of_scores, 2, 3), q);
    let grad_v = B::float_matmul(B::float_swap_dims(shares, 2, 3), grad_o);
    let [of_q, of_k, of_v] = shapes;
    (back::<B>(grad_q, of_q, dtype), back::<B>(grad_k, of_k, dtype), back::<B>(grad_v, of_v, dtype))
}

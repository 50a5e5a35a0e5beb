//! Attention as the library's problem.
use crate::attention::{Attention, Sizes};
use burn::tensor::Shape;

/// How the rows of a tensor `[batch, heads, rows, depth]` lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub ld: usize,
    pub head_stride: usize,
    pub stride: usize,
    /// All items are one.
    pub shared: bool,
}

impl Rows {
    /// Of a tensor without gaps.
    #[cfg(any(test, feature = "cuda"))]
    pub fn tight() -> Rows {
        Rows::default()
    }

    /// None where the library cannot take it so.
    pub fn of(dims: &[usize], strides: &[isize]) -> Option<Rows> {
        let (&[batch, heads, rows, depth], &[by_item, by_head, by_row, by_column]) = (dims, strides) else {
            return None;
        };
        if dims.contains(&0) {
            return Some(Rows::default());
        }
        // Where a dimension has one index, its stride means nothing; to the library 0 is a tight one.
        let step = |length: usize, stride: isize| match (length, usize::try_from(stride)) {
            (1, _) => Some(0),
            (_, Ok(stride)) if stride > 0 => Some(stride),
            _ => None,
        };
        if depth > 1 && by_column != 1 {
            return None;
        }
        let ld = step(rows, by_row).filter(|&ld| ld == 0 || ld >= depth)?;
        let shared = batch > 1 && by_item == 0;
        let stride = if shared { 0 } else { step(batch, by_item)? };
        Some(Rows { ld, head_stride: step(heads, by_head)?, stride, shared })
    }
}

/// The library's problem for q, k and v that lie so; the rest is tight.
pub fn attention(
    given: &Attention,
    sizes: &Sizes,
    mask: Option<&sparsek::Pattern>,
    [q, k, v]: [Rows; 3],
) -> sparsek::Attention {
    let mut made = sparsek::Attention::new(sizes.queries, sizes.keys, sizes.depth).depth_v(sizes.depth_v);
    made = made.batch(sizes.batch).heads(sizes.heads).heads_kv(sizes.heads_kv);
    made = made.window_left(given.window_left).window_right(given.window_right).sinks(given.sinks);
    made = if given.causal { made.causal() } else { made };
    made = if given.softcap.is_some() { made.use_softcap() } else { made };
    if let Some(diagonal) = given.diagonal {
        made = made.diagonal(diagonal);
    }
    made = made.assume_finite(given.tuning.assume_finite);
    made = match (&given.mask, mask) {
        (Some(mask), Some(pattern)) if mask.heads * mask.items > 1 => made.mask_lists(pattern, mask.heads, mask.items),
        (_, Some(pattern)) => made.mask(pattern),
        _ => made,
    };
    made = made.ldq(q.ld).head_stride_q(q.head_stride).ldk(k.ld).head_stride_k(k.head_stride);
    made = made.ldv(v.ld).head_stride_v(v.head_stride);
    made = if q.shared { made.share_q() } else { made.stride_q(q.stride) };
    made = if k.shared { made.share_k() } else { made.stride_k(k.stride) };
    if v.shared { made.share_v() } else { made.stride_v(v.stride) }
}

/// The problem of its gradients, for a gradient by O that lies so; the rest is tight.
pub fn gradients(given: &Attention, forward: &sparsek::Attention, grad_o: Rows) -> sparsek::AttentionBackward {
    let made = forward.backward().assume_finite(given.tuning.assume_finite).use_grad_lse();
    let made = made.ld_grad_o(grad_o.ld).head_stride_grad_o(grad_o.head_stride);
    if grad_o.shared { made.share_grad_o() } else { made.stride_grad_o(grad_o.stride) }
}

/// O's shape, and LSE's.
pub fn shapes(sizes: &Sizes) -> (Shape, Shape) {
    let Sizes { batch, heads, queries, depth_v, .. } = *sizes;
    (Shape::from([batch, heads, queries, depth_v]), Shape::from([batch, heads, queries]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_strides() {
        let rows = |ld, head_stride, stride| Some(Rows { ld, head_stride, stride, shared: false });
        let dims = [2, 3, 5, 4];
        assert_eq!(Rows::of(&dims, &[60, 20, 4, 1]), rows(4, 20, 60));
        assert_eq!(Rows::of(&dims, &[60, 4, 12, 1]), rows(12, 4, 60)); // heads side by side
        assert_eq!(Rows::of(&dims, &[0, 20, 4, 1]), Some(Rows { ld: 4, head_stride: 20, stride: 0, shared: true }));
        assert_eq!(Rows::of(&dims, &[20, 0, 4, 1]), None); // a head that is repeated
        assert_eq!(Rows::of(&dims, &[60, 20, 0, 1]), None); // one row for all
        assert_eq!(Rows::of(&dims, &[60, 20, 1, 5]), None); // transposed
        assert_eq!(Rows::of(&dims, &[60, 20, -4, 1]), None); // flipped
        assert_eq!(Rows::of(&[1, 1, 1, 4], &[0, 0, 0, 1]), Some(Rows::tight()));
        assert_eq!(Rows::of(&[2, 3, 0, 4], &[0, 0, 4, 1]), Some(Rows::tight()));
        assert_eq!(Rows::of(&[2, 3, 5, 1], &[15, 5, 1, 7]), rows(1, 5, 15));
    }
}

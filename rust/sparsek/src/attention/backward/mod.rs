//! The gradients of attention.
mod extents;
#[rustfmt::skip]
mod generated;
mod given;

pub use generated::{AttentionBackwardArgs, AttentionBackwardPlan, AttentionBackwardPointers};

use super::{Attention, Lines};
use crate::call::Question;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sys;
use crate::types::{Element, sized};
use generated::copy_forward;

/// A problem: the gradients of a loss by the Q, K and V of an [`Attention`], from its O and LSE and from the gradient by O. Made by
/// [`Attention::backward`], which says what it computes with: sizes, heads, causality, windows, sinks, soft cap, mask, sequences, key
/// lengths and tiles. A gradient has the shape and the type of what it belongs to. That by K and that by V are sums over the heads
/// that share them. Sums are in f32 (f64 for f64), in an order that is the same on every run with as many threads.
///
/// O and LSE must be what the attention gave for these Q, K and V: they are not computed again. Pairs of a query and a key that is
/// hidden from it have no influence. A query that sees no key has a gradient of 0. Where
/// [`Attention::key_lengths`] ends an item's keys, the gradients by the rows behind them are 0. What lies behind the last of
/// [packed sequences](Attention::sequences) is neither read nor written.
///
/// ```
/// use sparsek::{Attention, AttentionArgs, AttentionBackwardArgs, Context, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// # let options = TuneOptions::new().estimate();
/// // One query and two keys, whose scores are 0: O is the mean of V.
/// let (q, k, v, mut o, mut lse) = ([0f64], [1., -1.], [2., 4.], [0.], [0.]);
/// let problem = Attention::new(1, 2, 1).want_lse();
/// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse), &options)?;
///
/// let (mut grad_q, mut grad_k, mut grad_v) = ([0.], [0.; 2], [0.; 2]);
/// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
/// let args = AttentionBackwardArgs::new([&q, &k, &v], (&o, &lse), &[1.], grads);
/// context.attention_backward(&problem.backward(), args, &options)?;
/// assert_eq!((grad_q, grad_k, grad_v), ([-1.], [0.; 2], [0.5; 2]));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AttentionBackward {
    attention: Attention,
    /// What attention has not.
    raw: sys::spk_attention_backward,
}

impl Attention {
    /// The problem of its gradients. Whether the forward run writes LSE ([`Attention::want_lse`]) does not matter to it; that run must
    /// have written it. What [`Attention::assume_finite`] promises does not either: [`AttentionBackward::assume_finite`] promises more.
    ///
    /// ```
    /// let layer = sparsek::Attention::new(512, 512, 64).heads(8).heads_kv(2).causal().want_lse();
    /// let gradients = layer.backward();
    /// # let _ = gradients;
    /// ```
    pub fn backward(&self) -> AttentionBackward {
        AttentionBackward { attention: self.clone(), raw: sized!(spk_attention_backward, SPK_ATTENTION_BACKWARD) }
    }
}

impl AttentionBackward {
    /// Gradients lie as their arrays do where nothing else is given.
    fn typed<T: Element>(&self) -> Result<sys::spk_attention_backward> {
        let (forward, mut raw) = (self.attention.typed::<T>(), self.raw);
        if forward.page_keys != 0 || forward.pages != 0 {
            let pages = format!("page_keys = {} and pages = {}", forward.page_keys, forward.pages);
            return Err(Error::argument(format!("{pages}: K and V in pages have no gradients")));
        }
        copy_forward(&forward, &mut raw);
        if self.attention.rows_of_heads {
            let lines = Lines::of_heads(&forward);
            let set = |field: &mut i64, otherwise: i64| *field = if *field != 0 { *field } else { otherwise };
            set(&mut raw.ld_grad_q, lines.q);
            set(&mut raw.ld_grad_k, lines.k);
            set(&mut raw.ld_grad_v, lines.v);
            set(&mut raw.ld_grad_o, lines.o);
            set(&mut raw.head_stride_grad_q, lines.depth);
            set(&mut raw.head_stride_grad_k, lines.depth);
            set(&mut raw.head_stride_grad_v, lines.depth_v);
            set(&mut raw.head_stride_grad_o, lines.depth_v);
        }
        Ok(raw)
    }

    fn question<'a, T: Element>(&'a self, context: &'a Context) -> Result<Question<'a, sys::spk_attention_backward>> {
        Ok(Question { context, pattern: self.attention.pattern(context)?, problem: self.typed::<T>()? })
    }
}

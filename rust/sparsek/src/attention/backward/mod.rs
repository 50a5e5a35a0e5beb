//! The gradients of attention.
mod args;
mod calls;
mod plan;
mod pointers;

pub use args::AttentionBackwardArgs;
pub use plan::AttentionBackwardPlan;
pub use pointers::AttentionBackwardPointers;

use super::{Attention, Lines};
use crate::error::{Error, Result};
use crate::sys;
use crate::types::{Element, size, sized};

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

/// The fields that both problems have.
macro_rules! copied {
    ($from:ident => $to:ident: $($field:ident)*) => {
        $($to.$field = $from.$field;)*
    };
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
    setters! { of "Attention::new(8, 8, 8).backward()",
        /// From row to row of the gradient by O; 0: tight.
        ld_grad_o(ld: usize) ld_grad_o = size(ld);
        /// From row to row of the gradient by Q; 0: tight.
        ld_grad_q(ld: usize) ld_grad_q = size(ld);
        /// From row to row of the gradient by K; 0: tight.
        ld_grad_k(ld: usize) ld_grad_k = size(ld);
        /// From row to row of the gradient by V; 0: tight.
        ld_grad_v(ld: usize) ld_grad_v = size(ld);
        /// From head to head of the gradient by O; 0: tight.
        head_stride_grad_o(stride: usize) head_stride_grad_o = size(stride);
        /// From head to head of the gradient by LSE; 0: tight.
        head_stride_grad_lse(stride: usize) head_stride_grad_lse = size(stride);
        /// From head to head of the gradient by Q; 0: tight.
        head_stride_grad_q(stride: usize) head_stride_grad_q = size(stride);
        /// From head to head of the gradient by K; 0: tight.
        head_stride_grad_k(stride: usize) head_stride_grad_k = size(stride);
        /// From head to head of the gradient by V; 0: tight.
        head_stride_grad_v(stride: usize) head_stride_grad_v = size(stride);
        /// From item to item of the gradient by O; 0: tight.
        stride_grad_o(stride: usize) stride_grad_o = size(stride);
        /// From item to item of the gradient by LSE; 0: tight.
        stride_grad_lse(stride: usize) stride_grad_lse = size(stride);
        /// From item to item of the gradient by Q; 0: tight.
        stride_grad_q(stride: usize) stride_grad_q = size(stride);
        /// From item to item of the gradient by K; 0: tight.
        stride_grad_k(stride: usize) stride_grad_k = size(stride);
        /// From item to item of the gradient by V; 0: tight.
        stride_grad_v(stride: usize) stride_grad_v = size(stride);
        /// You promise that no array that is read holds an infinity or a NaN, not even in rows that take no part; LSE may be -infinity.
        /// That is more than [`Attention::assume_finite`] says, which does not count here.
        assume_finite(yes: bool) assume_finite = yes.into();
    }

    /// The loss depends on LSE, too: [`AttentionBackwardArgs::grad_lse`] is the gradient by it.
    ///
    /// ```
    /// let problem = sparsek::Attention::new(8, 8, 8).want_lse().backward().use_grad_lse();
    /// # let _ = problem;
    /// ```
    pub fn use_grad_lse(mut self) -> Self {
        self.raw.use_grad_lse = 1;
        self
    }

    /// One gradient by O for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Attention::new(8, 8, 8).batch(4).backward().share_grad_o();
    /// # let _ = problem;
    /// ```
    pub fn share_grad_o(mut self) -> Self {
        self.raw.stride_grad_o = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One gradient by LSE for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Attention::new(8, 8, 8).batch(4).backward().use_grad_lse().share_grad_lse();
    /// # let _ = problem;
    /// ```
    pub fn share_grad_lse(mut self) -> Self {
        self.raw.stride_grad_lse = sys::SPK_STRIDE_SHARED;
        self
    }

    /// Gradients lie as their arrays do where nothing else is given.
    fn typed<T: Element>(&self) -> Result<sys::spk_attention_backward> {
        let (forward, mut raw) = (self.attention.typed::<T>(), self.raw);
        if forward.page_keys != 0 || forward.pages != 0 {
            let pages = format!("page_keys = {} and pages = {}", forward.page_keys, forward.pages);
            return Err(Error::argument(format!("{pages}: K and V in pages have no gradients")));
        }
        copied! { forward => raw:
            dtype queries keys depth depth_v batch heads heads_kv diagonal causal window_left window_right sinks use_softcap mask_heads
            mask_items ldq ldk ldv ldo head_stride_q head_stride_k head_stride_v head_stride_o head_stride_lse stride_q stride_k
            stride_v stride_o stride_lse sequences key_lengths tiles
        }
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
}

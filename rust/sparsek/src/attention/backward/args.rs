//! Operands in host memory, checked against the problem.
use super::AttentionBackward;
use crate::attention::args::{Arrays, Extents as Forward, scale_of};
use crate::error::Result;
use crate::extent::{Headed, check_length};
use crate::operands::Target;
use crate::sys;
use crate::types::{Element, sized};
use std::fmt;
use std::mem::MaybeUninit;

/// Elements that each operand needs; `None` where no memory holds them.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub forward: Forward,
    grad_o: Option<usize>,
    grad_lse: Option<usize>,
    use_grad_lse: bool,
    grad_q: Option<usize>,
    grad_k: Option<usize>,
    grad_v: Option<usize>,
}

impl Extents {
    pub fn of<T: Element>(problem: &AttentionBackward, raw: &sys::spk_attention_backward) -> Extents {
        let mut forward = problem.attention.typed::<T>();
        forward.want_lse = 1;
        let heads = raw.heads.max(1);
        let heads_kv = if raw.heads_kv != 0 { raw.heads_kv } else { heads };
        let depth_v = if raw.depth_v != 0 { raw.depth_v } else { raw.depth };
        let elements = |lines, heads, length, ld, head_stride, stride| {
            Headed { lines, length, ld, heads, head_stride, stride }.elements(raw.batch)
        };
        let r = raw;
        Extents {
            forward: Forward::of(&forward, problem.attention.mask.as_ref()),
            grad_o: elements(r.queries, heads, depth_v, r.ld_grad_o, r.head_stride_grad_o, r.stride_grad_o),
            grad_lse: elements(1, heads, r.queries, 0, r.head_stride_grad_lse, r.stride_grad_lse),
            use_grad_lse: r.use_grad_lse != 0,
            grad_q: elements(r.queries, heads, r.depth, r.ld_grad_q, r.head_stride_grad_q, r.stride_grad_q),
            grad_k: elements(r.keys, heads_kv, r.depth, r.ld_grad_k, r.head_stride_grad_k, r.stride_grad_k),
            grad_v: elements(r.keys, heads_kv, depth_v, r.ld_grad_v, r.head_stride_grad_v, r.stride_grad_v),
        }
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (q, k, v, o, lse) = ([1f32; 4], [1f32; 6], [1f32; 6], [1f32; 4], [1f32; 2]);
/// let (grad_o, mut grad_q, mut grad_k, mut grad_v) = ([1f32; 4], [0f32; 4], [0f32; 6], [0f32; 6]);
/// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
/// let args = sparsek::AttentionBackwardArgs::new([&q, &k, &v], (&o, &lse), &grad_o, grads).scale(0.5);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (q, k, v, o, mut both) = ([1f32; 4], [1f32; 4], [1f32; 4], [1f32; 4], [1f32; 4]);
/// let (mut grad_k, mut grad_v) = ([0f32; 4], [0f32; 4]);
/// let grads = [&mut both[..], &mut grad_k, &mut grad_v];
/// let args = sparsek::AttentionBackwardArgs::new([&q, &k, &v], (&o, &[1.; 4]), &both, grads);
/// # let _ = args;
/// ```
#[must_use]
pub struct AttentionBackwardArgs<'a, T: Element> {
    inputs: [&'a [T]; 3],
    o: &'a [T],
    lse: &'a [T::Sum],
    grad_o: &'a [T],
    grad_lse: &'a [T::Sum],
    grads: [Target<'a, T>; 3],
    scale: Option<f64>,
    softcap: f64,
    arrays: Arrays<'a>,
}

/// Lengths, not elements.
impl<T: Element> fmt::Debug for AttentionBackwardArgs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionBackwardArgs");
        let [q, k, v] = self.inputs;
        out.field("q", &q.len()).field("k", &k.len()).field("v", &v.len());
        out.field("o", &self.o.len()).field("lse", &self.lse.len());
        out.field("grad_o", &self.grad_o.len()).field("grad_lse", &self.grad_lse.len());
        let [grad_q, grad_k, grad_v] = &self.grads;
        out.field("grad_q", &grad_q.len()).field("grad_k", &grad_k.len()).field("grad_v", &grad_v.len());
        out.field("scale", &self.scale).field("softcap", &self.softcap);
        self.arrays.fields(&mut out);
        out.finish()
    }
}

impl<'a, T: Element> AttentionBackwardArgs<'a, T> {
    /// Q, K and V, O and LSE as the attention gave them, the gradient by O, and those by Q, K and V to be written. The scale is
    /// 1 / sqrt(depth).
    ///
    /// ```
    /// let (q, k, v, o, lse) = ([1f32; 4], [1f32; 6], [1f32; 6], [1f32; 4], [1f32; 2]);
    /// let (grad_o, mut grad_q, mut grad_k, mut grad_v) = ([1f32; 4], [0f32; 4], [0f32; 6], [0f32; 6]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = sparsek::AttentionBackwardArgs::new([&q, &k, &v], (&o, &lse), &grad_o, grads);
    /// # let _ = args;
    /// ```
    pub fn new(
        [q, k, v]: [&'a [T]; 3],
        (o, lse): (&'a [T], &'a [T::Sum]),
        grad_o: &'a [T],
        grads: [&'a mut [T]; 3],
    ) -> Self {
        AttentionBackwardArgs::to([q, k, v], (o, lse), grad_o, grads.map(Target::Slice))
    }

    /// As [`AttentionBackwardArgs::new`], with gradients that nobody wrote yet. After a run that succeeded they are there; what lies
    /// between their rows, heads or items stays unwritten, and so do rows behind the last of
    /// [packed sequences](crate::Attention::sequences).
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = (Vec::with_capacity(1), Vec::with_capacity(1), Vec::with_capacity(1));
    /// let grads = [&mut grad_q, &mut grad_k, &mut grad_v].map(|grad: &mut Vec<f32>| &mut grad.spare_capacity_mut()[..1]);
    /// let args = AttentionBackwardArgs::uninit([&[0.], &[1.], &[2.]], (&[2.], &[0.]), &[5.], grads);
    /// context.attention_backward(&Attention::new(1, 1, 1).backward(), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: the only element was written.
    /// unsafe { grad_v.set_len(1) };
    /// assert_eq!(grad_v, [5.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(
        [q, k, v]: [&'a [T]; 3],
        (o, lse): (&'a [T], &'a [T::Sum]),
        grad_o: &'a [T],
        grads: [&'a mut [MaybeUninit<T>]; 3],
    ) -> Self {
        AttentionBackwardArgs::to([q, k, v], (o, lse), grad_o, grads.map(Target::Uninit))
    }

    fn to(inputs: [&'a [T]; 3], (o, lse): (&'a [T], &'a [T::Sum]), grad_o: &'a [T], grads: [Target<'a, T>; 3]) -> Self {
        let (grad_lse, scale, softcap, arrays) = (&[] as &[T::Sum], None, 0.0, Arrays::default());
        AttentionBackwardArgs { inputs, o, lse, grad_o, grad_lse, grads, scale, softcap, arrays }
    }

    /// The factor of the scores, as the attention had it.
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.scale(0.125);
    /// # let _ = args;
    /// ```
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// The bound of the scores, as the attention had it, for [`Attention::use_softcap`](crate::Attention::use_softcap).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.softcap(30.0);
    /// # let _ = args;
    /// ```
    pub fn softcap(mut self, softcap: f64) -> Self {
        self.softcap = softcap;
        self
    }

    /// The gradient by LSE, for [`AttentionBackward::use_grad_lse`].
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.grad_lse(&[0.5]);
    /// # let _ = args;
    /// ```
    pub fn grad_lse(mut self, grad_lse: &'a [T::Sum]) -> Self {
        self.grad_lse = grad_lse;
        self
    }

    /// As [`AttentionArgs::query_ends`](crate::AttentionArgs::query_ends).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.query_ends(&[2, 3]).key_ends(&[3, 4]);
    /// # let _ = args;
    /// ```
    pub fn query_ends(mut self, ends: &'a [i32]) -> Self {
        self.arrays.query_ends = ends;
        self
    }

    /// As [`AttentionArgs::key_ends`](crate::AttentionArgs::key_ends).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.key_ends(&[3, 1]);
    /// # let _ = args;
    /// ```
    pub fn key_ends(mut self, ends: &'a [i32]) -> Self {
        self.arrays.key_ends = ends;
        self
    }

    /// As [`AttentionArgs::tiles`](crate::AttentionArgs::tiles).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.tiles(&[0, -1, 0], &[0b01, 0b11]);
    /// # let _ = args;
    /// ```
    pub fn tiles(mut self, numbers: &'a [i32], bits: &'a [u32]) -> Self {
        (self.arrays.tile_numbers, self.arrays.tile_bits) = (numbers, bits);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    pub(super) fn checked(&mut self, needed: &Extents) -> Result<sys::spk_attention_backward_args> {
        let mut raw = sized!(spk_attention_backward_args, SPK_ATTENTION_BACKWARD);
        let ([q, k, v], forward) = (self.inputs, &needed.forward);
        (raw.scale, raw.softcap) = (scale_of(self.scale, forward.depth), self.softcap);
        check_length("q", q.len(), forward.q)?;
        check_length("k", k.len(), forward.k)?;
        check_length("v", v.len(), forward.v)?;
        check_length("o", self.o.len(), forward.o)?;
        check_length("lse", self.lse.len(), forward.lse)?;
        check_length("grad_o", self.grad_o.len(), needed.grad_o)?;
        (raw.q, raw.k, raw.v) = (q.as_ptr().cast(), k.as_ptr().cast(), v.as_ptr().cast());
        (raw.o, raw.lse, raw.grad_o) = (self.o.as_ptr().cast(), self.lse.as_ptr().cast(), self.grad_o.as_ptr().cast());
        if needed.use_grad_lse {
            check_length("grad_lse", self.grad_lse.len(), needed.grad_lse)?;
            raw.grad_lse = self.grad_lse.as_ptr().cast();
        }
        let [grad_q, grad_k, grad_v] = &mut self.grads;
        check_length("grad_q", grad_q.len(), needed.grad_q)?;
        check_length("grad_k", grad_k.len(), needed.grad_k)?;
        check_length("grad_v", grad_v.len(), needed.grad_v)?;
        (raw.grad_q, raw.grad_k, raw.grad_v) = (grad_q.pointer(), grad_k.pointer(), grad_v.pointer());
        let arrays = self.arrays.checked(forward)?;
        (raw.query_ends, raw.key_ends) = (arrays.query_ends, arrays.key_ends);
        (raw.tile_numbers, raw.tile_bits) = (arrays.tile_numbers, arrays.tile_bits);
        Ok(raw)
    }
}

// Generated from the library's tables by rust/generate.py: do not edit.
use crate::attention::extents::scale_of;
use crate::call::Problem;
use crate::context::Context;
use crate::error::Result;
use crate::operands::{Needed, Target, input};
use crate::plan::{PlanInfo, RawPlan};
use crate::report::Report;
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use super::AttentionBackward;

// SAFETY: the struct begins with its size and its operation.
unsafe impl Problem for sys::spk_attention_backward {
    type Args = sys::spk_attention_backward_args;
    const OPERATION: sys::spk_operation = sys::SPK_ATTENTION_BACKWARD;
}

/// Takes over what both problems have.
pub(super) fn copy_forward(forward: &sys::spk_attention, raw: &mut sys::spk_attention_backward) {
    raw.dtype = forward.dtype;
    raw.queries = forward.queries;
    raw.keys = forward.keys;
    raw.depth = forward.depth;
    raw.depth_v = forward.depth_v;
    raw.batch = forward.batch;
    raw.heads = forward.heads;
    raw.heads_kv = forward.heads_kv;
    raw.diagonal = forward.diagonal;
    raw.causal = forward.causal;
    raw.window_left = forward.window_left;
    raw.window_right = forward.window_right;
    raw.sinks = forward.sinks;
    raw.use_softcap = forward.use_softcap;
    raw.mask_heads = forward.mask_heads;
    raw.mask_items = forward.mask_items;
    raw.ldq = forward.ldq;
    raw.ldk = forward.ldk;
    raw.ldv = forward.ldv;
    raw.ldo = forward.ldo;
    raw.head_stride_q = forward.head_stride_q;
    raw.head_stride_k = forward.head_stride_k;
    raw.head_stride_v = forward.head_stride_v;
    raw.head_stride_o = forward.head_stride_o;
    raw.head_stride_lse = forward.head_stride_lse;
    raw.stride_q = forward.stride_q;
    raw.stride_k = forward.stride_k;
    raw.stride_v = forward.stride_v;
    raw.stride_o = forward.stride_o;
    raw.stride_lse = forward.stride_lse;
    raw.sequences = forward.sequences;
    raw.key_lengths = forward.key_lengths;
    raw.tiles = forward.tiles;
}

/// The attention whose gradients are wanted.
pub(super) fn forward_of(raw: &sys::spk_attention_backward) -> sys::spk_attention {
    let mut forward = sized!(spk_attention, SPK_ATTENTION);
    forward.dtype = raw.dtype;
    forward.queries = raw.queries;
    forward.keys = raw.keys;
    forward.depth = raw.depth;
    forward.depth_v = raw.depth_v;
    forward.batch = raw.batch;
    forward.heads = raw.heads;
    forward.heads_kv = raw.heads_kv;
    forward.diagonal = raw.diagonal;
    forward.causal = raw.causal;
    forward.window_left = raw.window_left;
    forward.window_right = raw.window_right;
    forward.sinks = raw.sinks;
    forward.use_softcap = raw.use_softcap;
    forward.mask_heads = raw.mask_heads;
    forward.mask_items = raw.mask_items;
    forward.ldq = raw.ldq;
    forward.ldk = raw.ldk;
    forward.ldv = raw.ldv;
    forward.ldo = raw.ldo;
    forward.head_stride_q = raw.head_stride_q;
    forward.head_stride_k = raw.head_stride_k;
    forward.head_stride_v = raw.head_stride_v;
    forward.head_stride_o = raw.head_stride_o;
    forward.head_stride_lse = raw.head_stride_lse;
    forward.stride_q = raw.stride_q;
    forward.stride_k = raw.stride_k;
    forward.stride_v = raw.stride_v;
    forward.stride_o = raw.stride_o;
    forward.stride_lse = raw.stride_lse;
    forward.sequences = raw.sequences;
    forward.key_lengths = raw.key_lengths;
    forward.tiles = raw.tiles;
    forward
}

impl AttentionBackward {
    /// The loss depends on LSE, too: [`AttentionBackwardArgs::grad_lse`] is the gradient by it.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().use_grad_lse();
    /// # let _ = problem;
    /// ```
    pub fn use_grad_lse(mut self) -> Self {
        self.raw.use_grad_lse = 1;
        self
    }

    /// From row to row of the gradient by O; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().ld_grad_o(16);
    /// # let _ = problem;
    /// ```
    pub fn ld_grad_o(mut self, ld: usize) -> Self {
        self.raw.ld_grad_o = size(ld);
        self
    }

    /// From row to row of the gradient by Q; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().ld_grad_q(16);
    /// # let _ = problem;
    /// ```
    pub fn ld_grad_q(mut self, ld: usize) -> Self {
        self.raw.ld_grad_q = size(ld);
        self
    }

    /// From row to row of the gradient by K; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().ld_grad_k(16);
    /// # let _ = problem;
    /// ```
    pub fn ld_grad_k(mut self, ld: usize) -> Self {
        self.raw.ld_grad_k = size(ld);
        self
    }

    /// From row to row of the gradient by V; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().ld_grad_v(16);
    /// # let _ = problem;
    /// ```
    pub fn ld_grad_v(mut self, ld: usize) -> Self {
        self.raw.ld_grad_v = size(ld);
        self
    }

    /// From head to head of the gradient by O; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().head_stride_grad_o(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_grad_o(mut self, stride: usize) -> Self {
        self.raw.head_stride_grad_o = size(stride);
        self
    }

    /// From head to head of the gradient by LSE; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().head_stride_grad_lse(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_grad_lse(mut self, stride: usize) -> Self {
        self.raw.head_stride_grad_lse = size(stride);
        self
    }

    /// From head to head of the gradient by Q; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().head_stride_grad_q(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_grad_q(mut self, stride: usize) -> Self {
        self.raw.head_stride_grad_q = size(stride);
        self
    }

    /// From head to head of the gradient by K; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().head_stride_grad_k(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_grad_k(mut self, stride: usize) -> Self {
        self.raw.head_stride_grad_k = size(stride);
        self
    }

    /// From head to head of the gradient by V; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().head_stride_grad_v(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_grad_v(mut self, stride: usize) -> Self {
        self.raw.head_stride_grad_v = size(stride);
        self
    }

    /// From item to item of the gradient by O; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().stride_grad_o(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_grad_o(mut self, stride: usize) -> Self {
        self.raw.stride_grad_o = size(stride);
        self
    }

    /// One gradient by O for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().share_grad_o();
    /// # let _ = problem;
    /// ```
    pub fn share_grad_o(mut self) -> Self {
        self.raw.stride_grad_o = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From item to item of the gradient by LSE; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().stride_grad_lse(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_grad_lse(mut self, stride: usize) -> Self {
        self.raw.stride_grad_lse = size(stride);
        self
    }

    /// One gradient by LSE for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().use_grad_lse().share_grad_lse();
    /// # let _ = problem;
    /// ```
    pub fn share_grad_lse(mut self) -> Self {
        self.raw.stride_grad_lse = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From item to item of the gradient by Q; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().stride_grad_q(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_grad_q(mut self, stride: usize) -> Self {
        self.raw.stride_grad_q = size(stride);
        self
    }

    /// From item to item of the gradient by K; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().stride_grad_k(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_grad_k(mut self, stride: usize) -> Self {
        self.raw.stride_grad_k = size(stride);
        self
    }

    /// From item to item of the gradient by V; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().stride_grad_v(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_grad_v(mut self, stride: usize) -> Self {
        self.raw.stride_grad_v = size(stride);
        self
    }

    /// You promise that no array that is read holds an infinity or a NaN, not even in rows that take no part; LSE may
    /// be -infinity. That is more than [`Attention::assume_finite`](crate::Attention::assume_finite) says, which does
    /// not count here.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).backward().assume_finite(true);
    /// # let _ = problem;
    /// ```
    pub fn assume_finite(mut self, yes: bool) -> Self {
        self.raw.assume_finite = yes.into();
        self
    }
}

/// Elements that the problem asks each operand for.
#[derive(Clone, Copy)]
pub(in crate::attention) struct Extents {
    pub q: Needed,
    pub k: Needed,
    pub v: Needed,
    pub o: Needed,
    pub lse: Needed,
    pub query_ends: Needed,
    pub key_ends: Needed,
    pub tile_numbers: Needed,
    pub tile_bits: Needed,
    pub grad_o: Needed,
    pub grad_lse: Needed,
    pub grad_q: Needed,
    pub grad_k: Needed,
    pub grad_v: Needed,
    pub depth: i64,
}

#[cfg(test)]
impl Extents {
    pub fn named(&self) -> Vec<(&'static str, Needed)> {
        vec![
            ("q", self.q),
            ("k", self.k),
            ("v", self.v),
            ("o", self.o),
            ("lse", self.lse),
            ("query_ends", self.query_ends),
            ("key_ends", self.key_ends),
            ("tile_numbers", self.tile_numbers),
            ("tile_bits", self.tile_bits),
            ("grad_o", self.grad_o),
            ("grad_lse", self.grad_lse),
            ("grad_q", self.grad_q),
            ("grad_k", self.grad_k),
            ("grad_v", self.grad_v),
        ]
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
/// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (q, mut both, mut grad_k, mut grad_v) = ([1f32; 4], [1f32; 4], [0f32; 4], [0f32; 4]);
/// let grads = [&mut both[..], &mut grad_k, &mut grad_v];
/// let args = sparsek::AttentionBackwardArgs::new([&q, &q, &q], (&q, &q), &both, grads);
/// # let _ = args;
/// ```
#[must_use]
pub struct AttentionBackwardArgs<'a, T: Element> {
    pub(super) q: &'a [T],
    pub(super) k: &'a [T],
    pub(super) v: &'a [T],
    pub(super) o: &'a [T],
    pub(super) lse: &'a [T::Sum],
    pub(super) query_ends: Option<&'a [i32]>,
    pub(super) key_ends: Option<&'a [i32]>,
    pub(super) tile_numbers: Option<&'a [i32]>,
    pub(super) tile_bits: Option<&'a [u32]>,
    pub(super) grad_o: &'a [T],
    pub(super) grad_lse: Option<&'a [T::Sum]>,
    pub(super) grad_q: Target<'a, T>,
    pub(super) grad_k: Target<'a, T>,
    pub(super) grad_v: Target<'a, T>,
    pub(super) scale: Option<f64>,
    pub(super) softcap: f64,
}

/// Lengths, not elements.
impl<T: Element> fmt::Debug for AttentionBackwardArgs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionBackwardArgs");
        out.field("q", &self.q.len());
        out.field("k", &self.k.len());
        out.field("v", &self.v.len());
        out.field("o", &self.o.len());
        out.field("lse", &self.lse.len());
        out.field("grad_o", &self.grad_o.len());
        out.field("grad_q", &self.grad_q.len());
        out.field("grad_k", &self.grad_k.len());
        out.field("grad_v", &self.grad_v.len());
        out.field("grad_lse", &self.grad_lse.as_ref().map(|grad_lse| grad_lse.len()));
        out.field("scale", &self.scale);
        out.field("softcap", &self.softcap);
        out.field("query_ends", &self.query_ends.as_ref().map(|query_ends| query_ends.len()));
        out.field("key_ends", &self.key_ends.as_ref().map(|key_ends| key_ends.len()));
        out.field("tile_numbers", &self.tile_numbers.as_ref().map(|tile_numbers| tile_numbers.len()));
        out.field("tile_bits", &self.tile_bits.as_ref().map(|tile_bits| tile_bits.len()));
        out.finish()
    }
}

impl<'a, T: Element> AttentionBackwardArgs<'a, T> {
    /// The factor of the scores, as the attention had it.
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]).scale(0.125);
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
    /// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]).softcap(30.0);
    /// # let _ = args;
    /// ```
    pub fn softcap(mut self, softcap: f64) -> Self {
        self.softcap = softcap;
        self
    }

    /// As [`AttentionArgs::query_ends`](crate::AttentionArgs::query_ends).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// // Two sequences: of two queries on three keys, and of one on one.
    /// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]).query_ends(&[2, 3]).key_ends(&[3, 4]);
    /// # let _ = args;
    /// ```
    pub fn query_ends(mut self, query_ends: &'a [i32]) -> Self {
        self.query_ends = Some(query_ends);
        self
    }

    /// As [`AttentionArgs::key_ends`](crate::AttentionArgs::key_ends).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// // Two items of three keys; the second one has only the first of them.
    /// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]).key_ends(&[3, 1]);
    /// # let _ = args;
    /// ```
    pub fn key_ends(mut self, key_ends: &'a [i32]) -> Self {
        self.key_ends = Some(key_ends);
        self
    }

    /// The gradient by LSE, for [`AttentionBackward::use_grad_lse`].
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]).grad_lse(&[0.5]);
    /// # let _ = args;
    /// ```
    pub fn grad_lse(mut self, grad_lse: &'a [T::Sum]) -> Self {
        self.grad_lse = Some(grad_lse);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    #[inline]
    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_attention_backward_args> {
        let mut raw = sized!(spk_attention_backward_args, SPK_ATTENTION_BACKWARD);
        raw.q = input("q", Some(self.q), needed.q)?;
        raw.k = input("k", Some(self.k), needed.k)?;
        raw.v = input("v", Some(self.v), needed.v)?;
        raw.o = input("o", Some(self.o), needed.o)?;
        raw.lse = input("lse", Some(self.lse), needed.lse)?;
        raw.grad_o = input("grad_o", Some(self.grad_o), needed.grad_o)?;
        raw.grad_q = self.grad_q.pointer("grad_q", needed.grad_q)?;
        raw.grad_k = self.grad_k.pointer("grad_k", needed.grad_k)?;
        raw.grad_v = self.grad_v.pointer("grad_v", needed.grad_v)?;
        raw.query_ends = input("query_ends", self.query_ends, needed.query_ends)?;
        raw.key_ends = input("key_ends", self.key_ends, needed.key_ends)?;
        raw.tile_numbers = input("tile_numbers", self.tile_numbers, needed.tile_numbers)?;
        raw.tile_bits = input("tile_bits", self.tile_bits, needed.tile_bits)?;
        raw.grad_lse = input("grad_lse", self.grad_lse, needed.grad_lse)?;
        raw.scale = scale_of(self.scale, needed.depth);
        raw.softcap = self.softcap;
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`AttentionBackwardPlan::run_pointers`]. Null where
/// the problem has none.
///
/// ```
/// # use sparsek::*;
/// # let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);
/// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
/// let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
/// forward.lse = lse.as_mut_ptr();
/// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
/// let pointers = AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
/// # let _ = pointers;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttentionBackwardPointers<T: Element> {
    /// Q
    pub q: *const T,
    /// K
    pub k: *const T,
    /// V
    pub v: *const T,
    /// O, as the attention gave it.
    pub o: *const T,
    /// LSE, likewise.
    pub lse: *const T::Sum,
    /// See [`AttentionBackwardArgs::query_ends`]; null where the problem has no sequences.
    pub query_ends: *const i32,
    /// See [`AttentionBackwardArgs::key_ends`]; null where the problem has neither sequences nor key lengths.
    pub key_ends: *const i32,
    /// See [`AttentionBackwardArgs::tiles`]; null where the problem has none.
    pub tile_numbers: *const i32,
    /// See [`AttentionBackwardArgs::tiles`]; null where the problem has none.
    pub tile_bits: *const u32,
    /// The gradient by O.
    pub grad_o: *const T,
    /// The gradient by LSE; null where the problem has none.
    pub grad_lse: *const T::Sum,
    /// The gradient by Q, to be written.
    pub grad_q: *mut T,
    /// The gradient by K, to be written.
    pub grad_k: *mut T,
    /// The gradient by V, to be written.
    pub grad_v: *mut T,
    /// The factor of the scores, as the attention had it; none: 1 / sqrt(depth).
    pub scale: Option<f64>,
    /// The bound of the scores; 0: none.
    pub softcap: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`].
    pub workspace_bytes: usize,
}

impl<T: Element> AttentionBackwardPointers<T> {
    fn raw(&self, depth: i64) -> sys::spk_attention_backward_args {
        let mut raw = sized!(spk_attention_backward_args, SPK_ATTENTION_BACKWARD);
        raw.q = self.q.cast();
        raw.k = self.k.cast();
        raw.v = self.v.cast();
        raw.o = self.o.cast();
        raw.lse = self.lse.cast();
        raw.query_ends = self.query_ends.cast();
        raw.key_ends = self.key_ends.cast();
        raw.tile_numbers = self.tile_numbers.cast();
        raw.tile_bits = self.tile_bits.cast();
        raw.grad_o = self.grad_o.cast();
        raw.grad_lse = self.grad_lse.cast();
        raw.grad_q = self.grad_q.cast();
        raw.grad_k = self.grad_k.cast();
        raw.grad_v = self.grad_v.cast();
        raw.scale = scale_of(self.scale, depth);
        raw.softcap = self.softcap;
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::*;
/// # let context = Context::builder().store_in_memory().build()?;
/// let plan: AttentionBackwardPlan<f32> = context.plan_attention_backward(&Attention::new(1, 1, 1).backward(), &TuneOptions::new().estimate())?;
/// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
/// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
/// plan.run(AttentionBackwardArgs::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads))?;
/// assert_eq!((grad_q, grad_k, grad_v), ([0.], [0.], [7.])); // a query with one key
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct AttentionBackwardPlan<T: Element> {
    pub(super) plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(T) -> T>,
}

impl<T: Element> AttentionBackwardPlan<T> {
    /// Computes, on the CPU.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention_backward::<f32>(&Attention::new(1, 1, 1).backward(), &TuneOptions::new().estimate())?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// plan.run(AttentionBackwardArgs::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads))?;
    /// assert_eq!((grad_q, grad_k, grad_v), ([0.], [0.], [7.])); // a query with one key
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: AttentionBackwardArgs<'_, T>) -> Result<()> {
        self.plan.context().check_host()?;
        let raw = args.checked(&self.needed)?;
        // SAFETY: every pointer has the elements of the problem, what is written is borrowed for this alone, the library
        // checks indices, and the workspace is the plan's own.
        unsafe { self.plan.run(&raw, ptr::null_mut()) }
    }

    /// Computes on what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// Every pointer that the problem uses is to as many elements as its sizes, leading dimensions and strides span, in
    /// memory of the context's device; what is written overlaps nothing but what may be the same array. Indices on a GPU
    /// are right. The stream is null on the CPU, else one of the device's primary context. All of it, and the plan, stays
    /// until the work is done; without a workspace, no two threads run the plan on one stream at once.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention_backward::<f32>(&Attention::new(1, 1, 1).backward(), &TuneOptions::new().estimate())?;
    /// let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// forward.lse = lse.as_mut_ptr();
    /// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
    /// let pointers = AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
    /// // SAFETY: one query and one key, of depth 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(grad_v, [7.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &AttentionBackwardPointers<T>, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.plan.run(&pointers.raw(self.needed.depth), stream) }
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention_backward::<f32>(&Attention::new(1, 1, 1).backward(), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<T: Element> fmt::Debug for AttentionBackwardPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionBackwardPlan");
        out.field("choice", &self.plan.choice());
        out.finish_non_exhaustive()
    }
}

impl Context {
    /// Binds gradients of attention to a kernel, for operands of `T`.
    ///
    /// ```
    /// # use sparsek::{*, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention_backward::<bf16>(&Attention::new(1, 1, 1).backward(), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
    ) -> Result<AttentionBackwardPlan<T>> {
        let question = problem.question::<T>(self)?;
        let needed = Extents::of(&question);
        Ok(AttentionBackwardPlan { plan: question.plan(options)?, needed, types: PhantomData })
    }

    /// Computes in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = AttentionBackwardArgs::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads);
    /// context.attention_backward(&Attention::new(1, 1, 1).backward(), args, &TuneOptions::new().estimate())?;
    /// assert_eq!((grad_q, grad_k, grad_v), ([0.], [0.], [7.])); // a query with one key
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        mut args: AttentionBackwardArgs<'_, T>,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<T>(self)?;
        question.context.check_host()?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: as in AttentionBackwardPlan::run.
        unsafe { question.compute(&raw, options) }
    }

    /// As [`Context::attention_backward`], for what pointers point to. On a GPU the work is on the stream (null: the default one)
    /// when this returns.
    ///
    /// # Safety
    /// As of [`AttentionBackwardPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// forward.lse = lse.as_mut_ptr();
    /// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
    /// let pointers = AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
    /// let (problem, options) = (Attention::new(1, 1, 1).backward(), TuneOptions::new().estimate());
    /// // SAFETY: one query and one key, of depth 1.
    /// unsafe { context.attention_backward_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(grad_v, [7.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn attention_backward_pointers<T: Element>(
        &self,
        problem: &AttentionBackward,
        pointers: &AttentionBackwardPointers<T>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<T>(self)?;
        let mut raw = pointers.raw(question.problem.depth);
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { question.compute(&raw, options) }
    }

    /// The gradients by Q, K and V by plain loops with sums in float64 (wider for f64), row-major, item after item,
    /// head after head. Reads the operands and writes none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let exact = context.oracle_attention_backward(&Attention::new(1, 1, 1).backward(), AttentionBackwardArgs::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads))?;
    /// assert_eq!(exact, [vec![0.], vec![0.], vec![7.]]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        mut args: AttentionBackwardArgs<'_, T>,
    ) -> Result<[Vec<f64>; 3]> {
        let question = problem.question::<T>(self)?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: every pointer has the elements of the problem.
        unsafe { Ok([question.oracle(&raw, "grad_q")?, question.oracle(&raw, "grad_k")?, question.oracle(&raw, "grad_v")?]) }
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_attention_backward::<f32>(&Attention::new(16, 16, 16).backward(), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_attention_backward<T: Element>(&self, problem: &AttentionBackward, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where
    /// there is none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let error = context.explain_attention_backward::<f32>(&Attention::new(16, 16, 16).backward(), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_attention_backward<T: Element>(&self, problem: &AttentionBackward, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.list_attention_backward::<f32>(&Attention::new(16, 16, 16).backward(), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_attention_backward<T: Element>(&self, problem: &AttentionBackward, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(512, 512, 64).heads(8).backward();
    /// let report = context.race_attention_backward::<f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        problem.question::<T>(self)?.race(options, race)
    }
}

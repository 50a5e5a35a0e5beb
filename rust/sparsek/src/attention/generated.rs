// Generated from the library's tables by rust/generate.py: do not edit.
use crate::attention::extents::scale_of;
use crate::call::Problem;
use crate::context::Context;
use crate::error::Result;
use crate::operands::{Needed, Target, input, output};
use crate::plan::{PlanInfo, RawPlan};
use crate::report::Report;
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use super::Attention;
use super::Diagonal;

// SAFETY: the struct begins with its size and its operation.
unsafe impl Problem for sys::spk_attention {
    type Args = sys::spk_attention_args;
    const OPERATION: sys::spk_operation = sys::SPK_ATTENTION;
}

impl Attention {
    /// Columns of V and O; 0: as many as Q and K have.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).depth_v(16);
    /// # let _ = problem;
    /// ```
    pub fn depth_v(mut self, count: usize) -> Self {
        self.raw.depth_v = size(count);
        self
    }

    /// Items, each with arrays of its own.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).batch(16);
    /// # let _ = problem;
    /// ```
    pub fn batch(mut self, items: usize) -> Self {
        self.raw.batch = size(items);
        self
    }

    /// Heads of Q and O in an item.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).heads(16);
    /// # let _ = problem;
    /// ```
    pub fn heads(mut self, count: usize) -> Self {
        self.raw.heads = size(count);
        self
    }

    /// Heads of K and V in an item; they divide those of Q: head h of Q goes with head h / (heads / heads_kv). 0: as
    /// many as Q has.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).heads_kv(16);
    /// # let _ = problem;
    /// ```
    pub fn heads_kv(mut self, count: usize) -> Self {
        self.raw.heads_kv = size(count);
        self
    }

    /// Which key stands beside which query. Causality and windows want it where queries and keys are not as many.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).diagonal(Diagonal::BottomRight);
    /// # let _ = problem;
    /// ```
    pub fn diagonal(mut self, diagonal: Diagonal) -> Self {
        self.raw.diagonal = diagonal.raw();
        self
    }

    /// A query sees so many keys up to the one beside it, which counts; 0: no limit.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).window_left(16);
    /// # let _ = problem;
    /// ```
    pub fn window_left(mut self, count: usize) -> Self {
        self.raw.window_left = size(count);
        self
    }

    /// A query sees so many keys from the one beside it on, which counts; 0: no limit. Not with [`Attention::causal`].
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).window_right(16);
    /// # let _ = problem;
    /// ```
    pub fn window_right(mut self, count: usize) -> Self {
        self.raw.window_right = size(count);
        self
    }

    /// So many first keys are seen whatever [`Attention::window_left`], which must be given, says; all else holds for
    /// them, too.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).sinks(16);
    /// # let _ = problem;
    /// ```
    pub fn sinks(mut self, count: usize) -> Self {
        self.raw.sinks = size(count);
        self
    }

    /// A score s becomes c tanh(s / c), c being that of [`AttentionArgs::softcap`].
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).use_softcap();
    /// # let _ = problem;
    /// ```
    pub fn use_softcap(mut self) -> Self {
        self.raw.use_softcap = 1;
        self
    }

    /// Writes the natural logarithm of the sum of the exponentials of each query's scores, too: [`AttentionArgs::lse`].
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).want_lse();
    /// # let _ = problem;
    /// ```
    pub fn want_lse(mut self) -> Self {
        self.raw.want_lse = 1;
        self
    }

    /// From row to row of Q; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).ldq(16);
    /// # let _ = problem;
    /// ```
    pub fn ldq(mut self, ld: usize) -> Self {
        self.raw.ldq = size(ld);
        self
    }

    /// From row to row of K; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).ldk(16);
    /// # let _ = problem;
    /// ```
    pub fn ldk(mut self, ld: usize) -> Self {
        self.raw.ldk = size(ld);
        self
    }

    /// From row to row of V; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).ldv(16);
    /// # let _ = problem;
    /// ```
    pub fn ldv(mut self, ld: usize) -> Self {
        self.raw.ldv = size(ld);
        self
    }

    /// From row to row of O; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).ldo(16);
    /// # let _ = problem;
    /// ```
    pub fn ldo(mut self, ld: usize) -> Self {
        self.raw.ldo = size(ld);
        self
    }

    /// From head to head of Q; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).head_stride_q(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_q(mut self, stride: usize) -> Self {
        self.raw.head_stride_q = size(stride);
        self
    }

    /// From head to head of K; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).head_stride_k(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_k(mut self, stride: usize) -> Self {
        self.raw.head_stride_k = size(stride);
        self
    }

    /// From head to head of V; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).head_stride_v(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_v(mut self, stride: usize) -> Self {
        self.raw.head_stride_v = size(stride);
        self
    }

    /// From head to head of O; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).head_stride_o(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_o(mut self, stride: usize) -> Self {
        self.raw.head_stride_o = size(stride);
        self
    }

    /// From head to head of LSE; 0: tight, which is one after the other.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).head_stride_lse(16);
    /// # let _ = problem;
    /// ```
    pub fn head_stride_lse(mut self, stride: usize) -> Self {
        self.raw.head_stride_lse = size(stride);
        self
    }

    /// From item to item of Q; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).stride_q(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_q(mut self, stride: usize) -> Self {
        self.raw.stride_q = size(stride);
        self
    }

    /// One Q for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).batch(4).share_q();
    /// # let _ = problem;
    /// ```
    pub fn share_q(mut self) -> Self {
        self.raw.stride_q = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From item to item of K; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).stride_k(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_k(mut self, stride: usize) -> Self {
        self.raw.stride_k = size(stride);
        self
    }

    /// One K for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).batch(4).share_k();
    /// # let _ = problem;
    /// ```
    pub fn share_k(mut self) -> Self {
        self.raw.stride_k = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From item to item of V; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).stride_v(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_v(mut self, stride: usize) -> Self {
        self.raw.stride_v = size(stride);
        self
    }

    /// One V for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).batch(4).share_v();
    /// # let _ = problem;
    /// ```
    pub fn share_v(mut self) -> Self {
        self.raw.stride_v = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From item to item of O; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).stride_o(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_o(mut self, stride: usize) -> Self {
        self.raw.stride_o = size(stride);
        self
    }

    /// From item to item of LSE; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).stride_lse(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_lse(mut self, stride: usize) -> Self {
        self.raw.stride_lse = size(stride);
        self
    }

    /// You promise that V holds no infinity and no NaN, not even in rows that no query sees: kernels need not look for
    /// them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Attention::new(8, 8, 8).assume_finite(true);
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
    pub page_table: Needed,
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
            ("page_table", self.page_table),
        ]
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
/// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (q, k, mut both) = ([1f32; 4], [1f32; 4], [1f32; 4]);
/// let args = sparsek::AttentionArgs::new(&q, &k, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct AttentionArgs<'a, T: Element> {
    pub(super) q: &'a [T],
    pub(super) k: &'a [T],
    pub(super) v: &'a [T],
    pub(super) o: Target<'a, T>,
    pub(super) lse: Option<&'a mut [T::Sum]>,
    pub(super) query_ends: Option<&'a [i32]>,
    pub(super) key_ends: Option<&'a [i32]>,
    pub(super) tile_numbers: Option<&'a [i32]>,
    pub(super) tile_bits: Option<&'a [u32]>,
    pub(super) page_table: Option<&'a [i32]>,
    pub(super) scale: Option<f64>,
    pub(super) softcap: f64,
}

/// Lengths, not elements.
impl<T: Element> fmt::Debug for AttentionArgs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionArgs");
        out.field("q", &self.q.len());
        out.field("k", &self.k.len());
        out.field("v", &self.v.len());
        out.field("o", &self.o.len());
        out.field("lse", &self.lse.as_ref().map(|lse| lse.len()));
        out.field("scale", &self.scale);
        out.field("softcap", &self.softcap);
        out.field("query_ends", &self.query_ends.as_ref().map(|query_ends| query_ends.len()));
        out.field("key_ends", &self.key_ends.as_ref().map(|key_ends| key_ends.len()));
        out.field("tile_numbers", &self.tile_numbers.as_ref().map(|tile_numbers| tile_numbers.len()));
        out.field("tile_bits", &self.tile_bits.as_ref().map(|tile_bits| tile_bits.len()));
        out.field("page_table", &self.page_table.as_ref().map(|page_table| page_table.len()));
        out.finish()
    }
}

impl<'a, T: Element> AttentionArgs<'a, T> {
    /// Q, K, V, and O to be written. The scale is 1 / sqrt(depth).
    ///
    /// ```
    /// let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o);
    /// # let _ = args;
    /// ```
    pub fn new(q: &'a [T], k: &'a [T], v: &'a [T], o: &'a mut [T]) -> Self {
        AttentionArgs::to(q, k, v, Target::Slice(o))
    }

    /// As [`AttentionArgs::new`], where nobody wrote O yet. After a run that succeeded the result is in it; what lies
    /// between its lines or items (a leading dimension, a stride) stays unwritten. So do rows behind the last of
    /// [packed sequences](crate::Attention::sequences).
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut o = Vec::<f32>::with_capacity(1);
    /// let args = AttentionArgs::uninit(&[0.], &[5., 6.], &[1., 3.], &mut o.spare_capacity_mut()[..1]);
    /// context.attention(&Attention::new(1, 2, 1), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: all of them were written.
    /// unsafe { o.set_len(1) };
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(q: &'a [T], k: &'a [T], v: &'a [T], o: &'a mut [MaybeUninit<T>]) -> Self {
        AttentionArgs::to(q, k, v, Target::Uninit(o))
    }

    fn to(q: &'a [T], k: &'a [T], v: &'a [T], o: Target<'a, T>) -> Self {
        AttentionArgs {
            q,
            k,
            v,
            o,
            lse: None,
            query_ends: None,
            key_ends: None,
            tile_numbers: None,
            tile_bits: None,
            page_table: None,
            scale: None,
            softcap: 0.0,
        }
    }

    /// The factor of the scores, finite.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).scale(0.125);
    /// # let _ = args;
    /// ```
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// The bound of the scores, finite, for [`Attention::use_softcap`](crate::Attention::use_softcap); 0: none.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).softcap(30.0);
    /// # let _ = args;
    /// ```
    pub fn softcap(mut self, softcap: f64) -> Self {
        self.softcap = softcap;
        self
    }

    /// Where LSE goes, for [`Attention::want_lse`]: a number for each query of each head, f32 (f64 for f64).
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// let mut lse = [0f32; 2];
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse);
    /// # let _ = args;
    /// ```
    pub fn lse(mut self, lse: &'a mut [T::Sum]) -> Self {
        self.lse = Some(lse);
        self
    }

    /// For [`Attention::sequences`], a number for each: the queries that it and those before it have. The first
    /// sequence has the rows `0 .. query_ends[0]` of Q and O. (Of offsets that begin with 0 these are all but the
    /// first.)
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// // Two sequences: of two queries on three keys, and of one on one.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).query_ends(&[2, 3]).key_ends(&[3, 4]);
    /// # let _ = args;
    /// ```
    pub fn query_ends(mut self, query_ends: &'a [i32]) -> Self {
        self.query_ends = Some(query_ends);
        self
    }

    /// With [`Attention::sequences`], a number for each: the keys that it and those before it have. With
    /// [`Attention::key_lengths`], a number for each item, and with [`Attention::pages`], for each item or sequence:
    /// its keys, at most as many as the problem has.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// // Two items of three keys; the second one has only the first of them.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).key_ends(&[3, 1]);
    /// # let _ = args;
    /// ```
    pub fn key_ends(mut self, key_ends: &'a [i32]) -> Self {
        self.key_ends = Some(key_ends);
        self
    }

    /// For [`Attention::pages`]: the numbers of the pages of each item or sequence, in order, ceil(keys / page keys)
    /// for each. Numbers behind its last key count for nothing.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// // Two items of up to 32 keys, in pages of 16 keys: those of the first are in pages 3 and 0.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).page_table(&[3, 0, 1, 2]);
    /// # let _ = args;
    /// ```
    pub fn page_table(mut self, page_table: &'a [i32]) -> Self {
        self.page_table = Some(page_table);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    #[inline]
    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_attention_args> {
        let mut raw = sized!(spk_attention_args, SPK_ATTENTION);
        raw.q = input("q", Some(self.q), needed.q)?;
        raw.k = input("k", Some(self.k), needed.k)?;
        raw.v = input("v", Some(self.v), needed.v)?;
        raw.o = self.o.pointer("o", needed.o)?;
        raw.lse = output("lse", self.lse.as_deref_mut(), needed.lse)?;
        raw.query_ends = input("query_ends", self.query_ends, needed.query_ends)?;
        raw.key_ends = input("key_ends", self.key_ends, needed.key_ends)?;
        raw.tile_numbers = input("tile_numbers", self.tile_numbers, needed.tile_numbers)?;
        raw.tile_bits = input("tile_bits", self.tile_bits, needed.tile_bits)?;
        raw.page_table = input("page_table", self.page_table, needed.page_table)?;
        raw.scale = scale_of(self.scale, needed.depth);
        raw.softcap = self.softcap;
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`AttentionPlan::run_pointers`]. Null where the
/// problem has none.
///
/// ```
/// # use sparsek::*;
/// # let (q, k, v, mut o) = ([0f32], [5f32, 6.], [1f32, 3.], [0f32; 1]);
/// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
/// # let _ = pointers;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttentionPointers<T: Element> {
    /// Q
    pub q: *const T,
    /// K
    pub k: *const T,
    /// V
    pub v: *const T,
    /// O
    pub o: *mut T,
    /// LSE; null where the problem has none.
    pub lse: *mut T::Sum,
    /// See [`AttentionArgs::query_ends`]; null where the problem has no sequences.
    pub query_ends: *const i32,
    /// See [`AttentionArgs::key_ends`]; null where the problem has neither sequences nor key lengths.
    pub key_ends: *const i32,
    /// See [`AttentionArgs::tiles`]; null where the problem has none.
    pub tile_numbers: *const i32,
    /// See [`AttentionArgs::tiles`]; null where the problem has none.
    pub tile_bits: *const u32,
    /// See [`AttentionArgs::page_table`]; null where the problem has no pages.
    pub page_table: *const i32,
    /// The factor of the scores; none: 1 / sqrt(depth).
    pub scale: Option<f64>,
    /// The bound of the scores; 0: none.
    pub softcap: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`].
    pub workspace_bytes: usize,
}

impl<T: Element> AttentionPointers<T> {
    /// Q, K, V and O, nothing else.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let (q, k, v, mut o) = ([0f32], [5f32, 6.], [1f32, 3.], [0f32; 1]);
    /// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(q: *const T, k: *const T, v: *const T, o: *mut T) -> Self {
        AttentionPointers {
            q,
            k,
            v,
            o,
            lse: ptr::null_mut(),
            query_ends: ptr::null(),
            key_ends: ptr::null(),
            tile_numbers: ptr::null(),
            tile_bits: ptr::null(),
            page_table: ptr::null(),
            scale: None,
            softcap: 0.0,
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    fn raw(&self, depth: i64) -> sys::spk_attention_args {
        let mut raw = sized!(spk_attention_args, SPK_ATTENTION);
        raw.q = self.q.cast();
        raw.k = self.k.cast();
        raw.v = self.v.cast();
        raw.o = self.o.cast();
        raw.lse = self.lse.cast();
        raw.query_ends = self.query_ends.cast();
        raw.key_ends = self.key_ends.cast();
        raw.tile_numbers = self.tile_numbers.cast();
        raw.tile_bits = self.tile_bits.cast();
        raw.page_table = self.page_table.cast();
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
/// let plan: AttentionPlan<f32> = context.plan_attention(&Attention::new(1, 2, 1), &TuneOptions::new().estimate())?;
/// let mut o = [0f32; 1];
/// plan.run(AttentionArgs::new(&[0.], &[5., 6.], &[1., 3.], &mut o))?;
/// assert_eq!(o, [2.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct AttentionPlan<T: Element> {
    pub(super) plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(T) -> T>,
}

impl<T: Element> AttentionPlan<T> {
    /// Computes, on the CPU.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<f32>(&Attention::new(1, 2, 1), &TuneOptions::new().estimate())?;
    /// let mut o = [0f32; 1];
    /// plan.run(AttentionArgs::new(&[0.], &[5., 6.], &[1., 3.], &mut o))?;
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: AttentionArgs<'_, T>) -> Result<()> {
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
    /// let plan = context.plan_attention::<f32>(&Attention::new(1, 2, 1), &TuneOptions::new().estimate())?;
    /// let (q, k, v, mut o) = ([0f32], [5f32, 6.], [1f32, 3.], [0f32; 1]);
    /// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// // SAFETY: one query and two keys, of depth 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &AttentionPointers<T>, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.plan.run(&pointers.raw(self.needed.depth), stream) }
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<f32>(&Attention::new(1, 2, 1), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<T: Element> fmt::Debug for AttentionPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionPlan");
        out.field("choice", &self.plan.choice());
        out.finish_non_exhaustive()
    }
}

impl Context {
    /// Binds an attention to a kernel, for operands of `T`.
    ///
    /// ```
    /// # use sparsek::{*, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<bf16>(&Attention::new(1, 2, 1), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_attention<T: Element>(
        &self,
        problem: &Attention,
        options: &TuneOptions,
    ) -> Result<AttentionPlan<T>> {
        let question = problem.question::<T>(self)?;
        let needed = Extents::of(&question);
        Ok(AttentionPlan { plan: question.plan(options)?, needed, types: PhantomData })
    }

    /// Computes in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut o = [0f32; 1];
    /// let args = AttentionArgs::new(&[0.], &[5., 6.], &[1., 3.], &mut o);
    /// context.attention(&Attention::new(1, 2, 1), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn attention<T: Element>(
        &self,
        problem: &Attention,
        mut args: AttentionArgs<'_, T>,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<T>(self)?;
        question.context.check_host()?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: as in AttentionPlan::run.
        unsafe { question.compute(&raw, options) }
    }

    /// As [`Context::attention`], for what pointers point to. On a GPU the work is on the stream (null: the default one)
    /// when this returns.
    ///
    /// # Safety
    /// As of [`AttentionPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (q, k, v, mut o) = ([0f32], [5f32, 6.], [1f32, 3.], [0f32; 1]);
    /// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// let (problem, options) = (Attention::new(1, 2, 1), TuneOptions::new().estimate());
    /// // SAFETY: one query and two keys, of depth 1.
    /// unsafe { context.attention_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn attention_pointers<T: Element>(
        &self,
        problem: &Attention,
        pointers: &AttentionPointers<T>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<T>(self)?;
        let mut raw = pointers.raw(question.problem.depth);
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { question.compute(&raw, options) }
    }

    /// The result by plain loops with sums in float64 (wider for f64), row-major, item after item, head after head.
    /// Reads the operands and writes none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut o = [0f32; 1];
    /// let exact = context.oracle_attention(&Attention::new(1, 2, 1), AttentionArgs::new(&[0.], &[5., 6.], &[1., 3.], &mut o))?;
    /// assert_eq!(exact, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_attention<T: Element>(
        &self,
        problem: &Attention,
        mut args: AttentionArgs<'_, T>,
    ) -> Result<Vec<f64>> {
        let question = problem.question::<T>(self)?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: every pointer has the elements of the problem.
        unsafe { question.oracle(&raw, "o") }
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_attention::<f32>(&Attention::new(16, 16, 16), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where
    /// there is none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let error = context.explain_attention::<f32>(&Attention::new(16, 16, 16), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.list_attention::<f32>(&Attention::new(16, 16, 16), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        problem.question::<T>(self)?.report(options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(512, 512, 64).heads(8);
    /// let report = context.race_attention::<f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_attention<T: Element>(
        &self,
        problem: &Attention,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        problem.question::<T>(self)?.race(options, race)
    }
}

//! Operands in host memory, checked against the problem.
use crate::error::Result;
use crate::extent::{Headed, check_length};
use crate::operands::Target;
use crate::sys;
use crate::types::{Element, sized};
use std::fmt;
use std::mem::MaybeUninit;

/// Elements that each operand needs; `None` where no memory holds them. And what else of the problem a run asks for.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    q: Option<usize>,
    k: Option<usize>,
    v: Option<usize>,
    pub o: Option<usize>,
    lse: Option<usize>,
    want_lse: bool,
    pub depth: i64,
}

/// 1 / sqrt(depth), where none is given.
pub(super) fn scale_of(given: Option<f64>, depth: i64) -> f64 {
    given.unwrap_or_else(|| if depth > 0 { 1.0 / (depth as f64).sqrt() } else { 1.0 })
}

impl Extents {
    #[inline]
    pub fn of(problem: &sys::spk_attention) -> Extents {
        let p = problem;
        let heads = p.heads.max(1);
        let heads_kv = if p.heads_kv != 0 { p.heads_kv } else { heads };
        let depth_v = if p.depth_v != 0 { p.depth_v } else { p.depth };
        let (queries, keys) = ((p.queries, heads), (p.keys, heads_kv));
        let elements = |(lines, heads), length, ld, head_stride, stride| {
            Headed { lines, length, ld, heads, head_stride, stride }.elements(p.batch)
        };
        Extents {
            q: elements(queries, p.depth, p.ldq, p.head_stride_q, p.stride_q),
            k: elements(keys, p.depth, p.ldk, p.head_stride_k, p.stride_k),
            v: elements(keys, depth_v, p.ldv, p.head_stride_v, p.stride_v),
            o: elements(queries, depth_v, p.ldo, p.head_stride_o, p.stride_o),
            lse: elements((1, heads), p.queries, 0, p.head_stride_lse, p.stride_lse),
            want_lse: p.want_lse != 0,
            depth: p.depth,
        }
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
/// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).scale(0.5);
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
    q: &'a [T],
    k: &'a [T],
    v: &'a [T],
    o: Target<'a, T>,
    lse: Option<&'a mut [T::Sum]>,
    scale: Option<f64>,
    softcap: f64,
}

/// Lengths, not elements.
impl<T: Element> fmt::Debug for AttentionArgs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionArgs");
        out.field("q", &self.q.len()).field("k", &self.k.len()).field("v", &self.v.len()).field("o", &self.o.len());
        out.field("lse", &self.lse.as_ref().map(|lse| lse.len()));
        out.field("scale", &self.scale).field("softcap", &self.softcap).finish()
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

    /// As [`AttentionArgs::new`], with an O that nobody wrote yet. After a run that succeeded the result is in it; what lies
    /// between its rows, heads or items stays unwritten.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut o = Vec::with_capacity(1);
    /// let args = AttentionArgs::uninit(&[1f32], &[0., 0.], &[3., 4.], &mut o.spare_capacity_mut()[..1]);
    /// context.attention(&Attention::new(1, 2, 1), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: the only element was written.
    /// unsafe { o.set_len(1) };
    /// assert_eq!(o, [3.5]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(q: &'a [T], k: &'a [T], v: &'a [T], o: &'a mut [MaybeUninit<T>]) -> Self {
        AttentionArgs::to(q, k, v, Target::Uninit(o))
    }

    fn to(q: &'a [T], k: &'a [T], v: &'a [T], o: Target<'a, T>) -> Self {
        AttentionArgs { q, k, v, o, lse: None, scale: None, softcap: 0.0 }
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

    /// The bound of the scores, finite, for [`Attention::soft_cap`](crate::Attention::soft_cap); 0: none.
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

    /// Where LSE goes, for [`Attention::want_lse`](crate::Attention::want_lse): a number for each query of each head, f32 (f64 for
    /// f64).
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

    /// Pointers for the library, every one to as many elements as `needed` says. LSE is left out where the problem has none, as its
    /// length means nothing then.
    #[inline]
    pub(super) fn checked(&mut self, needed: &Extents) -> Result<sys::spk_attention_args> {
        let mut raw = sized!(spk_attention_args, SPK_ATTENTION);
        (raw.scale, raw.softcap) = (scale_of(self.scale, needed.depth), self.softcap);
        check_length("q", self.q.len(), needed.q)?;
        check_length("k", self.k.len(), needed.k)?;
        check_length("v", self.v.len(), needed.v)?;
        check_length("o", self.o.len(), needed.o)?;
        (raw.q, raw.k, raw.v) = (self.q.as_ptr().cast(), self.k.as_ptr().cast(), self.v.as_ptr().cast());
        raw.o = self.o.pointer();
        if needed.want_lse {
            let lse = self.lse.as_deref_mut().unwrap_or_default();
            check_length("lse", lse.len(), needed.lse)?;
            raw.lse = lse.as_mut_ptr().cast();
        }
        Ok(raw)
    }
}

//! Operands in host memory, checked against the problem.
use crate::error::Result;
use crate::extent::{Headed, check_length};
use crate::operands::Target;
use crate::pattern::Pattern;
use crate::sys;
use crate::types::{Element, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

/// Elements that each operand needs; `None` where no memory holds them. And what else of the problem a run asks for.
#[derive(Clone, Copy)]
pub(in crate::attention) struct Extents {
    pub q: Option<usize>,
    pub k: Option<usize>,
    pub v: Option<usize>,
    pub o: Option<usize>,
    pub lse: Option<usize>,
    want_lse: bool,
    query_ends: Option<usize>,
    key_ends: Option<usize>,
    page_table: Option<usize>,
    tile_numbers: Option<usize>,
    tile_bits: Option<usize>,
    pub depth: i64,
}

/// 1 / sqrt(depth), where none is given.
pub(in crate::attention) fn scale_of(given: Option<f64>, depth: i64) -> f64 {
    given.unwrap_or_else(|| if depth > 0 { 1.0 / (depth as f64).sqrt() } else { 1.0 })
}

impl Extents {
    #[inline]
    pub fn of(problem: &sys::spk_attention, mask: Option<&Pattern>) -> Extents {
        let p = problem;
        let heads = p.heads.max(1);
        let heads_kv = if p.heads_kv != 0 { p.heads_kv } else { heads };
        let depth_v = if p.depth_v != 0 { p.depth_v } else { p.depth };
        let elements = |(lines, heads, batch), length, ld, head_stride, stride| {
            Headed { lines: lines?, length, ld, heads, head_stride, stride }.elements(batch)
        };
        // All items share the pages.
        let of_pages = p.pages.checked_mul(p.page_keys);
        let keys = if p.page_keys > 0 { (of_pages, heads_kv, 1) } else { (Some(p.keys), heads_kv, p.batch) };
        let queries = (Some(p.queries), heads, p.batch);
        let lists = if p.sequences > 0 { p.sequences } else { p.batch.max(1) };
        let of_item = p.keys / p.page_keys.max(1) + i64::from(p.keys % p.page_keys.max(1) != 0);
        let (blocks, words) = mask.map_or((0, 0), |mask| {
            let (rows, cols) = mask.block();
            (size(mask.nnzb()), size(rows * cols.div_ceil(32)))
        });
        Extents {
            q: elements(queries, p.depth, p.ldq, p.head_stride_q, p.stride_q),
            k: elements(keys, p.depth, p.ldk, p.head_stride_k, p.stride_k),
            v: elements(keys, depth_v, p.ldv, p.head_stride_v, p.stride_v),
            o: elements(queries, depth_v, p.ldo, p.head_stride_o, p.stride_o),
            lse: elements((Some(1), heads, p.batch), p.queries, 0, p.head_stride_lse, p.stride_lse),
            want_lse: p.want_lse != 0,
            query_ends: asked(p.sequences > 0, Some(p.sequences)),
            key_ends: asked(p.sequences > 0 || p.key_lengths != 0, Some(lists)),
            page_table: asked(p.page_keys > 0, of_item.checked_mul(lists)),
            tile_numbers: asked(p.tiles > 0, Some(blocks)),
            tile_bits: asked(p.tiles > 0, words.checked_mul(p.tiles)),
            depth: p.depth,
        }
    }
}

/// `count` numbers, where the problem asks for them.
fn asked(asks: bool, count: Option<i64>) -> Option<usize> {
    if asks { usize::try_from(count?).ok() } else { Some(0) }
}

/// Null where none are needed.
#[inline]
fn checked_indices<I>(name: &str, slice: &[I], needed: Option<usize>) -> Result<*const c_void> {
    check_length(name, slice.len(), needed)?;
    Ok(if needed == Some(0) { ptr::null() } else { slice.as_ptr().cast() })
}

/// What a run reads beside the operands.
#[derive(Clone, Copy, Default)]
pub(in crate::attention) struct Arrays<'a> {
    pub query_ends: &'a [i32],
    pub key_ends: &'a [i32],
    pub page_table: &'a [i32],
    pub tile_numbers: &'a [i32],
    pub tile_bits: &'a [u32],
}

/// The same as the library takes it.
pub(in crate::attention) struct RawArrays {
    pub query_ends: *const c_void,
    pub key_ends: *const c_void,
    pub page_table: *const c_void,
    pub tile_numbers: *const c_void,
    pub tile_bits: *const c_void,
}

impl Arrays<'_> {
    pub fn fields(&self, out: &mut fmt::DebugStruct<'_, '_>) {
        out.field("query_ends", &self.query_ends.len()).field("key_ends", &self.key_ends.len());
        out.field("page_table", &self.page_table.len());
        out.field("tile_numbers", &self.tile_numbers.len()).field("tile_bits", &self.tile_bits.len());
    }

    /// Those that the problem does not ask for are left out, as their lengths mean nothing then.
    #[inline]
    pub fn checked(&self, needed: &Extents) -> Result<RawArrays> {
        Ok(RawArrays {
            query_ends: checked_indices("query_ends", self.query_ends, needed.query_ends)?,
            key_ends: checked_indices("key_ends", self.key_ends, needed.key_ends)?,
            page_table: checked_indices("page_table", self.page_table, needed.page_table)?,
            tile_numbers: checked_indices("tile_numbers", self.tile_numbers, needed.tile_numbers)?,
            tile_bits: checked_indices("tile_bits", self.tile_bits, needed.tile_bits)?,
        })
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
    arrays: Arrays<'a>,
}

/// Lengths, not elements.
impl<T: Element> fmt::Debug for AttentionArgs<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AttentionArgs");
        out.field("q", &self.q.len()).field("k", &self.k.len()).field("v", &self.v.len()).field("o", &self.o.len());
        out.field("lse", &self.lse.as_ref().map(|lse| lse.len()));
        out.field("scale", &self.scale).field("softcap", &self.softcap);
        self.arrays.fields(&mut out);
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

    /// As [`AttentionArgs::new`], with an O that nobody wrote yet. After a run that succeeded the result is in it; what lies
    /// between its rows, heads or items stays unwritten, and so do rows behind the last of
    /// [packed sequences](crate::Attention::sequences).
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
        AttentionArgs { q, k, v, o, lse: None, scale: None, softcap: 0.0, arrays: Arrays::default() }
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

    /// For [`Attention::sequences`](crate::Attention::sequences), a number for each: the queries that it and those before it have.
    /// The first sequence has the rows `0 .. query_ends[0]` of Q and O. (Of offsets that begin with 0 these are all but the first.)
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 3], [1f32; 4], [1f32; 4], [0f32; 3]);
    /// // Two sequences: of two queries on three keys, and of one on one.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).query_ends(&[2, 3]).key_ends(&[3, 4]);
    /// # let _ = args;
    /// ```
    pub fn query_ends(mut self, ends: &'a [i32]) -> Self {
        self.arrays.query_ends = ends;
        self
    }

    /// With [`Attention::sequences`](crate::Attention::sequences), a number for each: the keys that it and those before it have.
    /// With [`Attention::key_lengths`](crate::Attention::key_lengths), a number for each item, and with
    /// [`Attention::pages`](crate::Attention::pages), for each item or sequence: its keys, at most as many as the problem has.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 2], [1f32; 6], [1f32; 6], [0f32; 2]);
    /// // Two items of three keys; the second one has only the first of them.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).key_ends(&[3, 1]);
    /// # let _ = args;
    /// ```
    pub fn key_ends(mut self, ends: &'a [i32]) -> Self {
        self.arrays.key_ends = ends;
        self
    }

    /// For [`Attention::pages`](crate::Attention::pages): the numbers of the pages of each item or sequence, in order, ceil(keys /
    /// page keys) for each. Numbers behind its last key count for nothing.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 2], [1f32; 64], [1f32; 64], [0f32; 2]);
    /// // Two items of up to 32 keys, in pages of 16 keys: those of the first are in pages 3 and 0.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).page_table(&[3, 0, 1, 2]);
    /// # let _ = args;
    /// ```
    pub fn page_table(mut self, pages: &'a [i32]) -> Self {
        self.arrays.page_table = pages;
        self
    }

    /// For [`Attention::tiles`](crate::Attention::tiles). `numbers` has one for each block of the mask, in the pattern's order: -1 for
    /// all pairs of the block, or the number of its tile. A tile in `bits` is block rows lines of ceil(block columns / 32) words: bit
    /// j % 32 of word j / 32 of a line, the lowest first, is key j of the block, 1 where the line's query sees it.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 4], [1f32; 4], [0f32; 4]);
    /// // Three blocks of 2 x 2; in the first and in the last the second key is hidden from the first query.
    /// let args = sparsek::AttentionArgs::new(&q, &k, &v, &mut o).tiles(&[0, -1, 0], &[0b01, 0b11]);
    /// # let _ = args;
    /// ```
    pub fn tiles(mut self, numbers: &'a [i32], bits: &'a [u32]) -> Self {
        (self.arrays.tile_numbers, self.arrays.tile_bits) = (numbers, bits);
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
        let arrays = self.arrays.checked(needed)?;
        (raw.query_ends, raw.key_ends, raw.page_table) = (arrays.query_ends, arrays.key_ends, arrays.page_table);
        (raw.tile_numbers, raw.tile_bits) = (arrays.tile_numbers, arrays.tile_bits);
        Ok(raw)
    }
}

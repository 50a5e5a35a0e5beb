//! Attention: softmax(scale Q K^T) V over the keys that each query sees, and its gradients.
mod backward;
mod extents;
#[rustfmt::skip]
mod generated;

pub use backward::{AttentionBackward, AttentionBackwardArgs, AttentionBackwardPlan, AttentionBackwardPointers};
pub use generated::{AttentionArgs, AttentionPlan, AttentionPointers};

use crate::call::Question;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::pattern::Pattern;
use crate::sys;
use crate::types::{Element, size, sized};

/// Which key stands beside which query, where there are not as many of both, see [`Attention::diagonal`].
///
/// ```
/// // A query after 100 others whose keys are kept: it sees them all.
/// let step = sparsek::Attention::new(1, 101, 64).causal().diagonal(sparsek::Diagonal::BottomRight);
/// # let _ = step;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Diagonal {
    /// The first key beside the first query: key i beside query i.
    TopLeft,
    /// The last key beside the last query: key i + keys - queries beside query i.
    BottomRight,
}

impl Diagonal {
    fn raw(self) -> sys::spk_diagonal {
        match self {
            Diagonal::TopLeft => sys::SPK_DIAGONAL_TOP_LEFT,
            Diagonal::BottomRight => sys::SPK_DIAGONAL_BOTTOM_RIGHT,
        }
    }
}

/// A problem: O = softmax(scale Q K^T over the keys that each query sees) V, for each head of each item, with Q of `queries` x
/// `depth`, K of `keys` x `depth`, V of `keys` x `depth_v` and O of `queries` x `depth_v`, all of one type; sums are in f32 (f64
/// for f64). A query sees the keys that neither causality, nor a window, nor a mask excludes. Keys that it does not see have no
/// influence, whatever stands in their rows; a query that sees none has O = 0 and LSE = -infinity.
///
/// Windows and sinks count keys; leading dimensions and strides count elements.
///
/// ```
/// use sparsek::{Attention, Diagonal};
/// // 32 heads share 8 of K and V; each query sees the 1024 keys up to its own, and the first 4.
/// let layer = Attention::new(4096, 4096, 128).heads(32).heads_kv(8).causal().window_left(1024).sinks(4);
/// # let _ = layer;
/// ```
///
/// A mask of blocks:
///
/// ```
/// # use sparsek::{Attention, AttentionArgs, Context, Pattern, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let mask = Pattern::new(&context, (4, 6), (2, 2), &[0, 1, 3], &[0, 0, 2])?; // as in C
/// let (q, k, v, mut o) = ([0f32; 8], [0f32; 12], [1f32, 3., 5., 7., 9., 11.], [0f32; 4]);
/// let problem = Attention::new(4, 6, 2).depth_v(1).mask(&mask);
/// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o), &TuneOptions::new())?; // o is [2, 2, 6, 6]
/// # assert!(o.iter().zip([2., 2., 6., 6.]).all(|(o, exact)| (o - exact).abs() < 1e-5));
/// # Ok::<(), sparsek::Error>(())
/// ```
///
/// Packed sequences:
///
/// ```
/// # use sparsek::{Attention, AttentionArgs, Context, Diagonal, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// // Two causal sequences, of three and of two tokens.
/// let (q, k, v, mut o) = ([0f32; 5], [0f32; 5], [1f32, 3., 5., 7., 9.], [0f32; 5]);
/// let problem = Attention::new(5, 5, 1).sequences(2).causal().diagonal(Diagonal::TopLeft);
/// let args = AttentionArgs::new(&q, &k, &v, &mut o).query_ends(&[3, 5]).key_ends(&[3, 5]);
/// context.attention(&problem, args, &TuneOptions::new())?; // o is [1, 2, 3, 7, 8]
/// # assert!(o.iter().zip([1., 2., 3., 7., 8.]).all(|(o, exact)| (o - exact).abs() < 1e-5));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Attention {
    raw: sys::spk_attention,
    rows_of_heads: bool,
    mask: Option<Pattern>,
}

/// From row to row and from head to head where all heads of a row lie side by side.
struct Lines {
    q: i64,
    k: i64,
    v: i64,
    o: i64,
    depth: i64,
    depth_v: i64,
}

impl Lines {
    fn of_heads(raw: &sys::spk_attention) -> Lines {
        let heads = raw.heads.max(1);
        let heads_kv = if raw.heads_kv != 0 { raw.heads_kv } else { heads };
        let (depth, depth_v) = (raw.depth, if raw.depth_v != 0 { raw.depth_v } else { raw.depth });
        let (q, o) = (depth.saturating_mul(heads), depth_v.saturating_mul(heads));
        Lines { q, k: depth.saturating_mul(heads_kv), v: depth_v.saturating_mul(heads_kv), o, depth, depth_v }
    }
}

impl Attention {
    /// One head of one item, each query with all keys; V is as deep as Q and K.
    ///
    /// ```
    /// let problem = sparsek::Attention::new(64, 128, 32);
    /// # let _ = problem;
    /// ```
    pub fn new(queries: usize, keys: usize, depth: usize) -> Attention {
        let mut raw = sized!(spk_attention, SPK_ATTENTION);
        (raw.queries, raw.keys, raw.depth) = (size(queries), size(keys), size(depth));
        Attention { raw, rows_of_heads: false, mask: None }
    }

    /// A query sees no key behind the one beside it.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// let (q, k, v, mut o) = ([1f32, 1.], [0f32, 0.], [1f32, 3.], [0f32; 2]);
    /// let args = AttentionArgs::new(&q, &k, &v, &mut o);
    /// context.attention(&Attention::new(2, 2, 1).causal(), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [1., 2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn causal(mut self) -> Self {
        self.raw.causal = 1;
        self
    }

    /// Arrays lie item by item, row by row, head by head (B, S, H, D) in place of item by item, head by head, row by row (B, H, S,
    /// D). Leading dimensions and head strides that are given count in place of what follows from that. LSE lies head by head
    /// in any case.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // Two heads, one query and two keys, of depth 1.
    /// let (q, k, v, mut o) = ([1f32, 1.], [0f32; 4], [1f32, 10., 3., 30.], [0f32; 2]);
    /// let problem = Attention::new(1, 2, 1).heads(2).rows_of_heads();
    /// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o), &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [2., 20.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn rows_of_heads(mut self) -> Self {
        self.rows_of_heads = true;
        self
    }

    /// A mask of blocks: a query sees only keys in the blocks that its block row stores, and of those what causality and windows
    /// leave. The pattern, of the context that computes, has `queries` rows and `keys` columns; blocks may have any size.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, Pattern, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // The first two queries see the last two keys; the third sees none.
    /// let mask = Pattern::new(&context, (3, 4), (2, 2), &[0, 1, 1], &[1])?;
    /// let (q, k, v, mut o) = ([1f32; 3], [0f32; 4], [9f32, 9., 1., 3.], [7f32; 3]);
    /// let problem = Attention::new(3, 4, 1).mask(&mask);
    /// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o), &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [2., 2., 0.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn mask(mut self, pattern: &Pattern) -> Self {
        self.mask = Some(pattern.clone());
        self
    }

    /// A mask with several lists of blocks: `heads` of them for each item (1: one for all heads, or one for each head of K and V,
    /// or one for each head), and such ones for each of `items` items (1: all items have the same, or as many as the batch).
    /// Lists stand one below the other, each of `queries` rows that are rounded up to whole blocks: that of head h of item i
    /// begins at block row (i heads + h) ceil(queries / block rows).
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, Pattern, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // Head 0 sees the second key, head 1 the first: two lists of one query, in blocks of 2 x 1.
    /// let mask = Pattern::new(&context, (4, 2), (2, 1), &[0, 1, 2], &[1, 0])?;
    /// let (q, k, v, mut o) = ([1f32; 2], [0f32; 4], [1f32, 3., 5., 7.], [0f32; 2]);
    /// let problem = Attention::new(1, 2, 1).heads(2).mask_lists(&mask, 2, 1);
    /// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o), &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [3., 5.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn mask_lists(mut self, pattern: &Pattern, heads: usize, items: usize) -> Self {
        (self.raw.mask_heads, self.raw.mask_items) = (size(heads), size(items));
        self.mask(pattern)
    }

    /// Sequences of uneven lengths, one behind the other in Q, K, V and O: `queries` and `keys` are those of all together, and the
    /// batch is 1; 0: none. Where each one ends is read at every run: [`AttentionArgs::query_ends`], [`AttentionArgs::key_ends`]. A
    /// query sees keys of its own sequence only; causality, windows and sinks count within it, and the first two want a
    /// [`Attention::diagonal`]. A mask is over all queries and keys. Rows behind the last end are neither read nor written.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, Diagonal, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // Two queries and one; all scores are 0.
    /// let (q, k, v, mut o) = ([0f32; 3], [0f32; 3], [1f32, 3., 9.], [0f32; 3]);
    /// let problem = Attention::new(3, 3, 1).sequences(2).causal().diagonal(Diagonal::TopLeft);
    /// let args = AttentionArgs::new(&q, &k, &v, &mut o).query_ends(&[2, 3]).key_ends(&[2, 3]);
    /// context.attention(&problem, args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [1., 2., 9.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn sequences(mut self, sequences: usize) -> Self {
        self.raw.sequences = size(sequences);
        self
    }

    /// Item i has its first [`AttentionArgs::key_ends`]`[i]` keys only, at most `keys`; which is read at every run. Causality and
    /// windows want a [`Attention::diagonal`] then.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// let (q, k, v, mut o) = ([0f32; 2], [0f32; 4], [1f32, 3., 5., f32::NAN], [0f32; 2]);
    /// let problem = Attention::new(1, 2, 1).batch(2).key_lengths();
    /// let args = AttentionArgs::new(&q, &k, &v, &mut o).key_ends(&[2, 1]);
    /// context.attention(&problem, args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [2., 5.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn key_lengths(mut self) -> Self {
        self.raw.key_lengths = 1;
        self
    }

    /// K and V are `pages` pages of `page_keys` rows each, one behind the other, which all items share; 0 and 0: they are no pages.
    /// There are at most 2^31 - 1 rows in all. Row r of page p is row p `page_keys` + r.
    /// [`AttentionArgs::page_table`] says at every run which pages each item has (or each sequence; then `keys` is the most that one
    /// has, and [`AttentionArgs::key_ends`] their numbers). Rows behind an item's last key have no influence.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // Three pages of two keys; the item's three keys are in pages 2 and 0.
    /// let (q, k, v, mut o) = ([0f32], [0f32; 6], [3f32, f32::NAN, f32::NAN, f32::NAN, 1., 2.], [0f32]);
    /// let problem = Attention::new(1, 4, 1).pages(2, 3).key_lengths();
    /// let args = AttentionArgs::new(&q, &k, &v, &mut o).page_table(&[2, 0]).key_ends(&[3]);
    /// context.attention(&problem, args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn pages(mut self, page_keys: usize, pages: usize) -> Self {
        (self.raw.page_keys, self.raw.pages) = (size(page_keys), size(pages));
        self
    }

    /// So many tiles of bits: with a mask, each of its blocks keeps all of its pairs of a query and a key, or those that a tile says;
    /// 0: none. [`AttentionArgs::tiles`] has them at every run.
    ///
    /// ```
    /// use sparsek::{Attention, AttentionArgs, Context, Pattern, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // One block of two queries and two keys: the first query sees the first key, the second one both.
    /// let mask = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let (q, k, v, mut o) = ([0f32; 2], [0f32; 2], [1f32, 3.], [0f32; 2]);
    /// let problem = Attention::new(2, 2, 1).mask(&mask).tiles(1);
    /// let args = AttentionArgs::new(&q, &k, &v, &mut o).tiles(&[0], &[0b01, 0b11]);
    /// context.attention(&problem, args, &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [1., 2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tiles(mut self, tiles: usize) -> Self {
        self.raw.tiles = size(tiles);
        self
    }

    fn typed<T: Element>(&self) -> sys::spk_attention {
        let mut raw = self.raw;
        raw.dtype = T::DTYPE.raw();
        if !self.rows_of_heads {
            return raw;
        }
        let lines = Lines::of_heads(&raw);
        let or = |given: i64, otherwise: i64| if given != 0 { given } else { otherwise };
        (raw.ldq, raw.ldk) = (or(raw.ldq, lines.q), or(raw.ldk, lines.k));
        (raw.ldv, raw.ldo) = (or(raw.ldv, lines.v), or(raw.ldo, lines.o));
        raw.head_stride_q = or(raw.head_stride_q, lines.depth);
        raw.head_stride_k = or(raw.head_stride_k, lines.depth);
        raw.head_stride_v = or(raw.head_stride_v, lines.depth_v);
        raw.head_stride_o = or(raw.head_stride_o, lines.depth_v);
        raw
    }

    fn question<'a, T: Element>(&'a self, context: &'a Context) -> Result<Question<'a, sys::spk_attention>> {
        Ok(Question { context, pattern: self.pattern(context)?, problem: self.typed::<T>() })
    }

    /// The mask, which the library would call a pattern.
    fn pattern(&self, context: &Context) -> Result<Option<&Pattern>> {
        match &self.mask {
            Some(mask) if mask.context().raw() != context.raw() => {
                Err(Error::argument("mask is a pattern of another context"))
            }
            mask => Ok(mask.as_ref()),
        }
    }
}

impl<'a, T: Element> AttentionArgs<'a, T> {
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
        (self.tile_numbers, self.tile_bits) = (Some(numbers), Some(bits));
        self
    }
}

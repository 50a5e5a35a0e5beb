//! Attention.
#![allow(deprecated)] // the backend NdArray, which Burn means to drop
use crate::backend::attention::fallback;
use crate::error::{Error, Result};
use crate::pattern::BsrPattern;
use crate::tuning::TuneConfig;
use burn::backend::backend_extension;
#[cfg(feature = "fusion")]
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch};
use burn::tensor::{Shape, Tensor};
use sparsek::Diagonal;

/// Blocks of queries and keys that attention keeps, see [`Attention::mask`] and [`Attention::mask_lists`].
///
/// ```
/// use burn_sparse::{BlockMask, BsrPattern};
/// let pattern = BsrPattern::new([64, 64], [32, 32], &[0, 1, 3], &[0, 0, 1])?;
/// let mask = BlockMask { pattern, heads: 1, items: 1 };
/// # let _ = mask;
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMask {
    /// Of queries x keys; several lists of blocks stand one below the other.
    pub pattern: BsrPattern,
    /// Lists in an item: 1, or as many as there are heads of K and V, or of Q.
    pub heads: usize,
    /// Items that have lists of their own: 1, where all have the same, or the batch.
    pub items: usize,
}

/// What attention computes: all of it but the numbers.
///
/// ```
/// use burn_sparse::Attention;
/// use burn_sparse::sparsek::Diagonal;
/// // A query sees the 512 keys up to its own, and the first 4.
/// let problem = Attention::new().causal(Diagonal::TopLeft).window(512, 0, Diagonal::TopLeft).sinks(4);
/// assert!(problem.causal && problem.mask.is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Whether keys behind the one beside a query are hidden from it.
    pub causal: bool,
    /// Which key stands beside which query. Where there are as many keys as queries both are the same.
    pub diagonal: Option<Diagonal>,
    /// So many keys up to the one beside are seen; 0: no limit.
    pub window_left: usize,
    /// So many keys from the one beside on are seen; 0: no limit.
    pub window_right: usize,
    /// So many first keys are seen whatever `window_left` says.
    pub sinks: usize,
    /// The factor of the scores; none: 1 / sqrt(depth).
    pub scale: Option<f64>,
    /// The bound c of the scores: a score s becomes c tanh(s / c).
    pub softcap: Option<f64>,
    /// The blocks that are kept; none: all.
    pub mask: Option<BlockMask>,
    /// How the kernel is chosen.
    pub tuning: TuneConfig,
}

impl Default for Attention {
    fn default() -> Self {
        Attention::new()
    }
}

/// What follows from the shapes of Q, K and V.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub batch: usize,
    pub heads: usize,
    pub heads_kv: usize,
    pub queries: usize,
    pub keys: usize,
    pub depth: usize,
    pub depth_v: usize,
}

fn refused<T>(message: String) -> Result<T> {
    Err(Error::Argument(message))
}

impl Attention {
    /// Each query with all keys.
    ///
    /// ```
    /// let problem = burn_sparse::Attention::new();
    /// assert_eq!(problem.scale, None);
    /// ```
    pub fn new() -> Attention {
        Attention {
            causal: false,
            diagonal: None,
            window_left: 0,
            window_right: 0,
            sinks: 0,
            scale: None,
            softcap: None,
            mask: None,
            tuning: TuneConfig::new(),
        }
    }

    /// A query sees no key behind the one beside it. The diagonal says which that is: [`Diagonal::TopLeft`] has the first key beside
    /// the first query, [`Diagonal::BottomRight`] the last beside the last, as Burn's own `is_causal` has it.
    ///
    /// ```
    /// use burn_sparse::{Attention, sparsek::Diagonal};
    /// assert!(Attention::new().causal(Diagonal::BottomRight).causal);
    /// ```
    pub fn causal(mut self, diagonal: Diagonal) -> Attention {
        (self.causal, self.diagonal) = (true, Some(diagonal));
        self
    }

    /// A query sees so many keys to the left of the one beside it, and to the right; that key counts on both sides, and 0 is no limit.
    /// The diagonal is that of causality, too: of both the one that is given last holds.
    ///
    /// ```
    /// use burn_sparse::{Attention, sparsek::Diagonal};
    /// // The key beside, three before it and two after it.
    /// assert_eq!(Attention::new().window(4, 3, Diagonal::TopLeft).window_right, 3);
    /// ```
    pub fn window(mut self, left: usize, right: usize, diagonal: Diagonal) -> Attention {
        (self.window_left, self.window_right, self.diagonal) = (left, right, Some(diagonal));
        self
    }

    /// So many first keys are seen whatever the left window, which must be given, says.
    ///
    /// ```
    /// use burn_sparse::{Attention, sparsek::Diagonal};
    /// assert_eq!(Attention::new().window(512, 0, Diagonal::TopLeft).sinks(4).sinks, 4);
    /// ```
    pub fn sinks(mut self, sinks: usize) -> Attention {
        self.sinks = sinks;
        self
    }

    /// The factor of the scores, in place of 1 / sqrt(depth).
    ///
    /// ```
    /// assert_eq!(burn_sparse::Attention::new().scale(0.125).scale, Some(0.125));
    /// ```
    pub fn scale(mut self, scale: f64) -> Attention {
        self.scale = Some(scale);
        self
    }

    /// A score s becomes c tanh(s / c).
    ///
    /// ```
    /// assert_eq!(burn_sparse::Attention::new().softcap(30.0).softcap, Some(30.0));
    /// ```
    pub fn softcap(mut self, softcap: f64) -> Attention {
        self.softcap = Some(softcap);
        self
    }

    /// A mask of blocks, of queries x keys: a query sees only keys in the blocks that its block row stores, and of those what causality
    /// and windows leave.
    ///
    /// ```
    /// use burn_sparse::{Attention, BsrPattern};
    /// let blocks = BsrPattern::new([64, 64], [32, 32], &[0, 1, 3], &[0, 0, 1])?;
    /// assert!(Attention::new().mask(&blocks).mask.is_some());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn mask(self, pattern: &BsrPattern) -> Attention {
        self.mask_lists(pattern, 1, 1)
    }

    /// A mask with a list of blocks for each of `heads` (1, or the heads of K and V, or those of Q) of each of `items` (1, or the batch).
    /// Lists stand one below the other, each of as many rows as there are queries, rounded up to whole blocks. That of head h of item i
    /// is number i heads + h.
    ///
    /// ```
    /// use burn_sparse::{Attention, BsrPattern};
    /// // Two heads: the first sees the first 32 keys of 64, the second the others.
    /// let blocks = BsrPattern::new([64, 64], [32, 32], &[0, 1, 2], &[0, 1])?;
    /// assert_eq!(Attention::new().mask_lists(&blocks, 2, 1).mask.unwrap().heads, 2);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn mask_lists(mut self, pattern: &BsrPattern, heads: usize, items: usize) -> Attention {
        self.mask = Some(BlockMask { pattern: pattern.clone(), heads, items });
        self
    }

    /// With another way to choose the kernel.
    ///
    /// ```
    /// use burn_sparse::{Attention, Effort, TuneConfig};
    /// let problem = Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// assert_eq!(problem.tuning.effort, Effort::Estimate);
    /// ```
    pub fn tuning(mut self, tuning: TuneConfig) -> Attention {
        self.tuning = tuning;
        self
    }

    /// The shape of the result for Q, K and V of these shapes.
    ///
    /// # Panics
    /// Where they do not fit, one another or the rest.
    ///
    /// ```
    /// use burn_sparse::Attention;
    /// let (q, k, v) = ([2, 8, 100, 64].into(), [2, 2, 300, 64].into(), [2, 2, 300, 32].into());
    /// assert_eq!(Attention::new().output_shape(&q, &k, &v), [2, 8, 100, 32].into());
    /// ```
    pub fn output_shape(&self, q: &Shape, k: &Shape, v: &Shape) -> Shape {
        let sizes = self.sizes(q, k, v).unwrap_or_else(|why| panic!("attention: {why}"));
        Shape::from([sizes.batch, sizes.heads, sizes.queries, sizes.depth_v])
    }

    /// All that is said of the problem, checked.
    pub(crate) fn sizes(&self, q: &Shape, k: &Shape, v: &Shape) -> Result<Sizes> {
        let four = |name: &str, shape: &Shape| match <[usize; 4]>::try_from(shape.as_slice()) {
            Ok(dims) => Ok(dims),
            Err(_) => refused(format!("{name} is {:?}: [batch, heads, rows, depth] is needed", shape.as_slice())),
        };
        let (of_q, of_k, of_v) = (four("q", q)?, four("k", k)?, four("v", v)?);
        let [batch, heads, queries, depth] = of_q;
        let [_, heads_kv, keys, depth_v] = of_v;
        if of_k != [batch, heads_kv, keys, depth] || of_v[0] != batch {
            return refused(format!(
                "q is {of_q:?}, k {of_k:?} and v {of_v:?}: they must have one batch, q and k one depth, k and v as many heads and rows"
            ));
        }
        if depth == 0 || depth_v == 0 {
            return refused(format!("q is {of_q:?} and v {of_v:?}: a depth must be 1 or more"));
        }
        if heads == 0 || heads_kv == 0 || !heads.is_multiple_of(heads_kv) {
            return refused(format!("q has {heads} heads, k and v {heads_kv}: they must divide those of q"));
        }
        let sizes = Sizes { batch, heads, heads_kv, queries, keys, depth, depth_v };
        self.check(&sizes)?;
        Ok(sizes)
    }

    fn check(&self, sizes: &Sizes) -> Result<()> {
        let (queries, keys) = (sizes.queries, sizes.keys);
        let band = self.causal || self.window_left > 0 || self.window_right > 0;
        if band && self.diagonal.is_none() && queries != keys {
            return refused(format!("{queries} queries and {keys} keys: causality and windows want a diagonal"));
        }
        if self.causal && self.window_right > 0 {
            return refused(format!("a right window of {} keys: causality hides them", self.window_right));
        }
        if self.sinks > 0 && self.window_left == 0 {
            return refused(format!("{} sinks without a left window", self.sinks));
        }
        if let Some(scale) = self.scale.filter(|scale| !scale.is_finite()) {
            return refused(format!("scale = {scale}: it must be finite"));
        }
        if let Some(cap) = self.softcap.filter(|cap| !(cap.is_finite() && *cap > 0.0)) {
            return refused(format!("softcap = {cap}: it must be finite and more than 0"));
        }
        let Some(mask) = &self.mask else { return Ok(()) };
        if ![1, sizes.heads_kv, sizes.heads].contains(&mask.heads) {
            let limits = format!("1, {} or {}", sizes.heads_kv, sizes.heads);
            return refused(format!("a mask of {} lists in an item: there may be {limits}", mask.heads));
        }
        if ![1, sizes.batch].contains(&mask.items) {
            return refused(format!("a mask of {} items for a batch of {}", mask.items, sizes.batch));
        }
        let (lists, block) = (mask.heads * mask.items, mask.pattern.block()[0]);
        let rows = if lists == 1 { queries } else { lists * queries.div_ceil(block.max(1)) * block };
        match mask.pattern.shape() == [rows, keys] {
            true => Ok(()),
            false => refused(format!("a mask of {:?}: it must be {:?}", mask.pattern.shape(), [rows, keys])),
        }
    }

    pub(crate) fn scale_for(&self, depth: usize) -> f64 {
        self.scale.unwrap_or(1.0 / (depth as f64).sqrt())
    }
}

#[cfg(feature = "fusion")]
fn specs_lse(q: &TensorSpec, k: &TensorSpec, v: &TensorSpec, attention: &Attention) -> (TensorSpec, TensorSpec) {
    let o = attention.output_shape(&q.shape, &k.shape, &v.shape);
    let lse = Shape::from([o[0], o[1], o[2]]);
    (TensorSpec::new(o, q.dtype), TensorSpec::new(lse, fallback::sum_type(q.dtype)))
}

#[cfg(feature = "fusion")]
#[allow(clippy::too_many_arguments)]
fn specs_backward(
    q: &TensorSpec,
    k: &TensorSpec,
    v: &TensorSpec,
    _o: &TensorSpec,
    _lse: &TensorSpec,
    _grad_o: &TensorSpec,
    _grad_lse: &TensorSpec,
    _attention: &Attention,
) -> (TensorSpec, TensorSpec, TensorSpec) {
    (q.clone(), k.clone(), v.clone())
}

/// Attention by the library, as an extension of Burn's backends. The default bodies use Burn's own operations, with a matrix of queries
/// x keys for each head while they compute: right for finite inputs, and no faster than dense. What is not finite in a hidden row of V
/// spreads there; the library's kernels leave it alone.
///
/// ```
/// use burn::{backend::{Dispatch, Flex}, tensor::{Device, Tensor}};
/// use burn_sparse::{Attention, AttentionOps};
/// let ones = Tensor::<4>::ones([1, 2, 3, 4], &Device::flex()).into_dispatch();
/// # let problem = Attention::new().tuning(burn_sparse::TuneConfig::new().with_effort(burn_sparse::Effort::Estimate));
/// let o = <Dispatch as AttentionOps>::sparse_attention(ones.clone(), ones.clone(), ones, problem);
/// assert_eq!(Tensor::<4>::from_dispatch(o).dims(), [1, 2, 3, 4]);
/// # fn supplies<B: AttentionOps>() {}
/// # supplies::<Flex>();
/// ```
#[backend_extension(
    Flex,
    NdArray: cfg(feature = "ndarray"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff,
    Fusion: cfg(feature = "fusion")
)]
pub trait AttentionOps: Backend {
    /// softmax(scale Q K^T) V: [batch, heads, queries, depth of V].
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{Attention, AttentionOps, Effort, TuneConfig};
    /// # let problem = Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let q = Tensor::<4>::zeros([1, 1, 1, 1], &Device::flex()).into_dispatch();
    /// let k = Tensor::<4>::zeros([1, 1, 2, 1], &Device::flex()).into_dispatch();
    /// let v = Tensor::<4>::from_data([[[[1f32], [3.]]]], &Device::flex()).into_dispatch();
    /// let o = <Dispatch as AttentionOps>::sparse_attention(q, k, v, problem);
    /// assert_eq!(Tensor::<4>::from_dispatch(o).into_scalar::<f32>(), 2.0);
    /// ```
    #[fusion(dtype = q, shape = attention.output_shape(q, k, v))]
    fn sparse_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        fallback::forward::<Self>(q, k, v, &attention).0
    }

    /// The same, and LSE, the logarithm of the sum of the exponentials of each query's scores: [batch, heads, queries], f32 (f64 for f64).
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{Attention, AttentionOps, Effort, TuneConfig};
    /// # let problem = Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let zeros = Tensor::<4>::zeros([1, 1, 2, 1], &Device::flex()).into_dispatch();
    /// let (_, lse) = <Dispatch as AttentionOps>::sparse_attention_lse(zeros.clone(), zeros.clone(), zeros, problem);
    /// let lse = Tensor::<3>::from_dispatch(lse).into_data().try_into_vec::<f32>().unwrap();
    /// assert!((lse[0] - 2f32.ln()).abs() < 1e-6);
    /// ```
    #[fusion(meta = specs_lse)]
    fn sparse_attention_lse(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        fallback::forward::<Self>(q, k, v, &attention)
    }

    /// The gradients by Q, K and V, from O and LSE, which attention gave for them, and the gradients by those two.
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{Attention, AttentionOps, Effort, TuneConfig};
    /// # let problem = Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let one = Tensor::<4>::ones([1, 1, 1, 1], &Device::flex()).into_dispatch();
    /// let (o, lse) = <Dispatch as AttentionOps>::sparse_attention_lse(one.clone(), one.clone(), one.clone(), problem.clone());
    /// let (grad_o, grad_lse) = (Tensor::<4>::full([1; 4], 5.0, &Device::flex()), Tensor::<3>::zeros([1; 3], &Device::flex()));
    /// let (grad_o, grad_lse) = (grad_o.into_dispatch(), grad_lse.into_dispatch());
    /// let grads = <Dispatch as AttentionOps>::sparse_attention_backward(
    ///     one.clone(), one.clone(), one, o, lse, grad_o, grad_lse, problem);
    /// assert_eq!(Tensor::<4>::from_dispatch(grads.2).into_scalar::<f32>(), 5.0);
    /// ```
    #[allow(clippy::too_many_arguments)]
    #[fusion(meta = specs_backward)]
    fn sparse_attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        o: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        grad_o: FloatTensor<Self>,
        grad_lse: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        fallback::backward::<Self>([q, k, v], [o, lse], [grad_o, grad_lse], &attention)
    }
}

/// softmax(scale Q K^T) V over the keys that each query sees, for q of `[batch, heads, queries, depth]`, k of `[batch, heads of K and V,
/// keys, depth]` and v of `[batch, heads of K and V, keys, depth of V]`, by the kernel that measured fastest on this machine for this
/// class of problems. Head h of q goes with head h / (heads / heads of K and V) of k and v. A query that sees no key has a result of 0.
///
/// Gradients flow to q, k and v. They are computed from the result and a number for each query: no matrix of queries x keys is kept.
/// Pages of K and V are not taken, and gradients of gradients are refused.
///
/// # Panics
/// Where shapes or types of elements do not fit, and where the library cannot compute, with its message.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_sparse::{Attention, BsrPattern, Effort, TuneConfig, attention, sparsek::Diagonal};
/// let device = Device::flex().autodiff();
/// let random = |heads| Tensor::<4>::random([1, heads, 128, 16], Distribution::Default, &device).require_grad();
/// let (q, k, v) = (random(4), random(2), random(2));
///
/// // Of each block of 32 queries: the block of keys beside, and the one before.
/// let blocks = BsrPattern::new([128, 128], [32, 32], &[0, 1, 3, 5, 7], &[0, 0, 1, 1, 2, 2, 3])?;
/// let problem = Attention::new().causal(Diagonal::TopLeft).mask(&blocks);
/// # let problem = problem.tuning(TuneConfig::new().with_effort(Effort::Estimate));
/// let o = attention(q.clone(), k, v, &problem);
/// assert_eq!(o.dims(), [1, 4, 128, 16]);
/// assert!(q.grad(&o.sum().backward()).is_some());
/// # Ok::<(), burn_sparse::Error>(())
/// ```
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, attention: &Attention) -> Tensor<4> {
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    Tensor::from_dispatch(<Dispatch as AttentionOps>::sparse_attention(q, k, v, attention.clone()))
}

/// As [`attention`], and LSE with it, the natural logarithm of the sum of the exponentials of each query's scores: `[batch, heads,
/// queries]`, f32 (f64 for f64), minus infinity where a query sees no key. Results over different keys merge by it. Gradients flow
/// from both; where a loss depends on both, they cost twice.
///
/// # Panics
/// As [`attention`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_sparse::{Attention, Effort, TuneConfig, attention_lse};
/// let zeros = Tensor::<4>::zeros([1, 1, 4, 2], &Device::flex());
/// let problem = Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate));
/// let (o, lse) = attention_lse(zeros.clone(), zeros.clone(), zeros, &problem);
/// assert_eq!((o.dims(), lse.dims()), ([1, 1, 4, 2], [1, 1, 4]));
/// ```
pub fn attention_lse(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, attention: &Attention) -> (Tensor<4>, Tensor<3>) {
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    let (o, lse) = <Dispatch as AttentionOps>::sparse_attention_lse(q, k, v, attention.clone());
    (Tensor::from_dispatch(o), Tensor::from_dispatch(lse))
}

//! GEMM: dense times dense, with groups or without.
mod args;
mod calls;
mod plan;
mod pointers;

pub use args::GemmArgs;
pub use plan::GemmPlan;
pub use pointers::GemmPointers;

use crate::sys;
use crate::types::{Activation, Bias, Element, Layout, Product, size, sized};

/// The axis of a product that groups cut, see [`Gemm::groups`].
///
/// ```
/// let experts = sparsek::Gemm::new(512, 64, 128).groups(sparsek::GroupAxis::Rows, 8);
/// # let _ = experts;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupAxis {
    /// Rows of A and D; each group has a B of its own (and a line of a bias per column).
    Rows,
    /// Columns of B and D; each group has an A of its own (and a line of a bias per row).
    Cols,
    /// Columns of A and rows of B; each group has a D of its own, with C, residual and pre-activation.
    Depth,
}

/// A problem: D = act(alpha op(A) op(B) + beta C + bias) + residual (or times it), with A of `m` x `k`, B of `k` x `n` and D of
/// `m` x `n`, all dense. Sizes, leading dimensions and strides count elements.
///
/// ```
/// use sparsek::{Activation, Bias, Gemm};
/// // A layer on 32 lines: x W^T + bias.
/// let layer = Gemm::new(32, 256, 128).transpose_b().bias(Bias::PerCol).activation(Activation::GeluErf);
/// # let _ = layer;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Gemm {
    raw: sys::spk_gemm,
}

impl Gemm {
    /// A of `m` x `k` times B of `k` x `n`, nothing else.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(64, 32, 128);
    /// # let _ = problem;
    /// ```
    pub fn new(m: usize, n: usize, k: usize) -> Gemm {
        let mut raw = sized!(spk_gemm, SPK_GEMM);
        (raw.m, raw.n, raw.k) = (size(m), size(n), size(k));
        Gemm { raw }
    }

    setters! { Gemm("8, 8, 8"):
        /// The order of A's array, as it is before a transposition.
        layout_a(layout: Layout) layout_a = layout.raw();
        /// The order of B's array, as it is before a transposition.
        layout_b(layout: Layout) layout_b = layout.raw();
        /// The order of D, C, residual and pre-activation.
        layout_d(layout: Layout) layout_d = layout.raw();
        /// Leading dimension of A; 0: tight.
        lda(ld: usize) lda = size(ld);
        /// Leading dimension of B; 0: tight.
        ldb(ld: usize) ldb = size(ld);
        /// Leading dimension of C; 0: tight.
        ldc(ld: usize) ldc = size(ld);
        /// Leading dimension of D; 0: tight.
        ldd(ld: usize) ldd = size(ld);
        /// Leading dimension of the residual; 0: tight.
        ldr(ld: usize) ldr = size(ld);
        /// Leading dimension of the pre-activation; 0: tight.
        ldp(ld: usize) ldp = size(ld);
        /// What is applied to each element.
        activation(activation: Activation) activation = activation.raw();
        /// Products at once, each with arrays of its own.
        batch(items: usize) batch = size(items);
        /// From one item (or group) of A to the next; 0: tight.
        stride_a(stride: usize) stride_a = size(stride);
        /// From one item (or group) of B to the next; 0: tight.
        stride_b(stride: usize) stride_b = size(stride);
        /// From one item (or group) of C to the next; 0: tight.
        stride_c(stride: usize) stride_c = size(stride);
        /// From one item (or group) of D to the next; 0: tight.
        stride_d(stride: usize) stride_d = size(stride);
        /// From one item (or group) of the residual to the next; 0: tight.
        stride_r(stride: usize) stride_r = size(stride);
        /// From one item (or group) of the pre-activation to the next; 0: tight.
        stride_p(stride: usize) stride_p = size(stride);
        /// You promise that A, B and the bias hold no infinity and no NaN: candidates may win that are right without them.
        assume_finite(yes: bool) assume_finite = yes.into();
    }

    /// Cuts the product along an axis, where [`GemmArgs::offsets`] says: `m`, `n` and `k` are those of the whole. What a group
    /// has of its own is told by [`GroupAxis`]; the other strides stay 0. Not with a batch.
    ///
    /// ```
    /// use sparsek::{Context, Gemm, GemmArgs, GroupAxis, TuneOptions};
    /// let context = Context::builder().store_in_memory().build()?;
    /// // Row 0 is for expert 0, none for expert 1, rows 1 and 2 for expert 2; each expert is a matrix of 2 x 1.
    /// let experts = [1f32, 1., 5., 5., 0., 2.];
    /// let mut d = [0f32; 3];
    /// let args = GemmArgs::new(&[1f32, 2., 3., 4., 5., 6.], &experts, &mut d).offsets(&[1, 1, 3]);
    /// context.gemm(&Gemm::new(3, 1, 2).groups(GroupAxis::Rows, 3), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [3., 8., 12.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn groups(mut self, axis: GroupAxis, count: usize) -> Self {
        self.raw.group_axis = match axis {
            GroupAxis::Rows => sys::SPK_GROUP_ROWS,
            GroupAxis::Cols => sys::SPK_GROUP_COLS,
            GroupAxis::Depth => sys::SPK_GROUP_DEPTH,
        };
        self.raw.groups = size(count);
        self
    }

    /// Takes A transposed: its array is `k` x `m`.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).transpose_a();
    /// # let _ = problem;
    /// ```
    pub fn transpose_a(mut self) -> Self {
        self.raw.trans_a = sys::SPK_TRANS;
        self
    }

    /// Takes B transposed: its array is `n` x `k`.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).transpose_b();
    /// # let _ = problem;
    /// ```
    pub fn transpose_b(mut self) -> Self {
        self.raw.trans_b = sys::SPK_TRANS;
        self
    }

    /// Adds beta C: [`GemmArgs::c`] or [`GemmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// Adds a bias before the activation.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).bias(sparsek::Bias::PerCol);
    /// # let _ = problem;
    /// ```
    pub fn bias(mut self, bias: Bias) -> Self {
        self.raw.bias = match bias {
            Bias::PerRow => sys::SPK_BIAS_PER_ROW,
            Bias::PerCol => sys::SPK_BIAS_PER_COL,
        };
        self
    }

    /// Adds a residual after the activation.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).residual();
    /// # let _ = problem;
    /// ```
    pub fn residual(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_ADD;
        self
    }

    /// Multiplies with the residual after the activation, element by element.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).activation(sparsek::Activation::Silu).factor();
    /// # let _ = problem;
    /// ```
    pub fn factor(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_MULTIPLY;
        self
    }

    /// Writes the value before the activation, too.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).activation(sparsek::Activation::Silu).keep_preact();
    /// # let _ = problem;
    /// ```
    pub fn keep_preact(mut self) -> Self {
        self.raw.keep_preact = 1;
        self
    }

    /// One A for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).batch(4).share_a();
    /// # let _ = problem;
    /// ```
    pub fn share_a(mut self) -> Self {
        self.raw.stride_a = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One B for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).batch(4).share_b();
    /// # let _ = problem;
    /// ```
    pub fn share_b(mut self) -> Self {
        self.raw.stride_b = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One C for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).batch(4).use_c().share_c();
    /// # let _ = problem;
    /// ```
    pub fn share_c(mut self) -> Self {
        self.raw.stride_c = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One residual for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).batch(4).residual().share_residual();
    /// # let _ = problem;
    /// ```
    pub fn share_residual(mut self) -> Self {
        self.raw.stride_r = sys::SPK_STRIDE_SHARED;
        self
    }

    /// Lets A and B of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// let problem = sparsek::Gemm::new(8, 8, 8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    fn typed<A: Product<D>, D: Element>(&self) -> sys::spk_gemm {
        let mut raw = self.raw;
        (raw.dtype_a, raw.dtype_b, raw.dtype_d) = (A::DTYPE.raw(), A::DTYPE.raw(), D::DTYPE.raw());
        raw
    }
}

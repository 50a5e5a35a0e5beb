//! SpMM: block-sparse times dense.
mod args;
mod calls;
mod plan;
mod pointers;

pub use args::SpmmArgs;
pub use plan::SpmmPlan;
pub use pointers::SpmmPointers;

use crate::sys;
use crate::types::{Activation, Bias, Element, Layout, Product, size, sized};

/// A problem: D = act(alpha op(A) B + beta C + bias) + residual (or times it), with A a matrix of a [`Pattern`](crate::Pattern), B of `n` columns, and D the
/// same. Sizes, leading dimensions and strides count elements.
///
/// ```
/// use sparsek::{Activation, Bias, Layout, Spmm};
/// let layer = Spmm::new(256).layout_b(Layout::ColMajor).layout_d(Layout::ColMajor).bias(Bias::PerRow);
/// let problem = layer.activation(Activation::GeluErf).keep_preact();
/// # let _ = problem;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Spmm {
    raw: sys::spk_spmm,
}

impl Spmm {
    /// A times `n` columns, nothing else.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(512);
    /// # let _ = problem;
    /// ```
    pub fn new(n: usize) -> Spmm {
        let mut raw = sized!(spk_spmm, SPK_SPMM);
        raw.n = size(n);
        Spmm { raw }
    }

    setters! { Spmm("8"):
        /// The order of elements inside a block of values.
        block_layout(layout: Layout) block_layout = layout.raw();
        /// The order of B.
        layout_b(layout: Layout) layout_b = layout.raw();
        /// The order of D, C, residual and pre-activation.
        layout_d(layout: Layout) layout_d = layout.raw();
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
        /// Products of one pattern, each with arrays of its own.
        batch(items: usize) batch = size(items);
        /// From the values of one item to the next; 0: one A for all.
        stride_a(stride: usize) stride_a = size(stride);
        /// From one item of B to the next; 0: tight.
        stride_b(stride: usize) stride_b = size(stride);
        /// From one item of C to the next; 0: tight.
        stride_c(stride: usize) stride_c = size(stride);
        /// From one item of D to the next; 0: tight.
        stride_d(stride: usize) stride_d = size(stride);
        /// From one item of the residual to the next; 0: tight.
        stride_r(stride: usize) stride_r = size(stride);
        /// From one item of the pre-activation to the next; 0: tight.
        stride_p(stride: usize) stride_p = size(stride);
        /// You promise that B holds no infinity and no NaN: candidates that multiply filled-in zeros may win.
        assume_finite(yes: bool) assume_finite = yes.into();
        /// You promise that values change only through [`SpmmPlan::update_values`], so that packing them is free. Runs ignore
        /// those of their arguments then, and [`Pattern::matmul`](crate::Pattern::matmul), which makes no plan to keep, refuses the problem.
        static_values(yes: bool) static_values = yes.into();
    }

    /// Takes A transposed.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).transpose_a();
    /// # let _ = problem;
    /// ```
    pub fn transpose_a(mut self) -> Self {
        self.raw.trans_a = sys::SPK_TRANS;
        self
    }

    /// Adds beta C: [`SpmmArgs::c`] or [`SpmmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// Adds a bias before the activation.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).bias(sparsek::Bias::PerCol);
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
    /// let problem = sparsek::Spmm::new(8).residual();
    /// # let _ = problem;
    /// ```
    pub fn residual(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_ADD;
        self
    }

    /// Multiplies with the residual after the activation, element by element.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).activation(sparsek::Activation::Silu).factor();
    /// # let _ = problem;
    /// ```
    pub fn factor(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_MULTIPLY;
        self
    }

    /// Writes the value before the activation, too.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).activation(sparsek::Activation::Silu).keep_preact();
    /// # let _ = problem;
    /// ```
    pub fn keep_preact(mut self) -> Self {
        self.raw.keep_preact = 1;
        self
    }

    /// One residual for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).batch(4).residual().share_residual();
    /// # let _ = problem;
    /// ```
    pub fn share_residual(mut self) -> Self {
        self.raw.stride_r = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One B for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).batch(4).stride_a(64).share_b();
    /// # let _ = problem;
    /// ```
    pub fn share_b(mut self) -> Self {
        self.raw.stride_b = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One C for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).batch(4).use_c().share_c();
    /// # let _ = problem;
    /// ```
    pub fn share_c(mut self) -> Self {
        self.raw.stride_c = sys::SPK_STRIDE_SHARED;
        self
    }

    /// Lets A and B of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// let problem = sparsek::Spmm::new(8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    fn typed<A: Product<D>, D: Element>(&self) -> sys::spk_spmm {
        let mut raw = self.raw;
        (raw.dtype_a, raw.dtype_b, raw.dtype_d) = (A::DTYPE.raw(), A::DTYPE.raw(), D::DTYPE.raw());
        raw
    }
}

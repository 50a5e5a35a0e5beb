//! GEMM: dense times dense, with groups or without.
mod extents;
#[rustfmt::skip]
mod generated;

pub use generated::{GemmArgs, GemmPlan, GemmPointers};

use crate::call::Question;
use crate::context::Context;
use crate::error::Result;
use crate::sys;
use crate::types::{Element, Product, size, sized};

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

    fn question<'a, A: Product<D>, D: Element>(&self, context: &'a Context) -> Result<Question<'a, sys::spk_gemm>> {
        let mut problem = self.raw;
        (problem.dtype_a, problem.dtype_b, problem.dtype_d) = (A::DTYPE.raw(), A::DTYPE.raw(), D::DTYPE.raw());
        Ok(Question { context, pattern: None, problem })
    }
}

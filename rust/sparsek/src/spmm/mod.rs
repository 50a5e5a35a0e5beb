//! SpMM: block-sparse times dense.
mod extents;
mod fixed;
#[rustfmt::skip]
mod generated;

pub use generated::{SpmmArgs, SpmmPlan, SpmmPointers};

use crate::call::Question;
use crate::error::Result;
use crate::pattern::Pattern;
use crate::sys;
use crate::types::{Element, Product, size, sized};

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

    fn question<'a, A: Product<D>, D: Element>(&self, pattern: &'a Pattern) -> Result<Question<'a, sys::spk_spmm>> {
        let mut problem = self.raw;
        (problem.dtype_a, problem.dtype_b, problem.dtype_d) = (A::DTYPE.raw(), A::DTYPE.raw(), D::DTYPE.raw());
        Ok(Question { context: pattern.context(), pattern: Some(pattern), problem })
    }
}

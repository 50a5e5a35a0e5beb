//! SDDMM: the product of two dense matrices at the stored blocks of a pattern.
mod extents;
#[rustfmt::skip]
mod generated;

pub use generated::{SddmmArgs, SddmmPlan, SddmmPointers};

use crate::call::Question;
use crate::error::Result;
use crate::pattern::Pattern;
use crate::sys;
use crate::types::{Element, Product, size, sized};

/// A problem: D = alpha (X Y at the stored blocks) + beta C, with X of `k` columns; D and C are values of the pattern. It is
/// the gradient of [`Spmm`](crate::Spmm) by its values: X the gradient of the product, Y the transposed B.
///
/// ```
/// let problem = sparsek::Sddmm::new(64).layout_y(sparsek::Layout::ColMajor);
/// # let _ = problem;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Sddmm {
    raw: sys::spk_sddmm,
}

impl Sddmm {
    /// The product over `k`, nothing else.
    ///
    /// ```
    /// let problem = sparsek::Sddmm::new(64);
    /// # let _ = problem;
    /// ```
    pub fn new(k: usize) -> Sddmm {
        let mut raw = sized!(spk_sddmm, SPK_SDDMM);
        raw.k = size(k);
        Sddmm { raw }
    }

    fn question<'a, X: Product<D>, D: Element>(&self, pattern: &'a Pattern) -> Result<Question<'a, sys::spk_sddmm>> {
        let mut problem = self.raw;
        (problem.dtype_x, problem.dtype_y, problem.dtype_d) = (X::DTYPE.raw(), X::DTYPE.raw(), D::DTYPE.raw());
        Ok(Question { context: pattern.context(), pattern: Some(pattern), problem })
    }
}

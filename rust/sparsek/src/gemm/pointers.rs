//! Operands in memory that only the caller knows.
use crate::sys;
use crate::types::{Element, Product, sized};
use std::ffi::c_void;
use std::ptr;

/// The operands of a run in the memory of the context's device, for [`GemmPlan::run_pointers`](crate::GemmPlan::run_pointers). Null where the problem has none.
///
/// ```
/// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
/// let pointers = sparsek::GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
/// assert_eq!((pointers.alpha, pointers.offsets.is_null()), (1.0, true));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GemmPointers<A, D = A> {
    /// A
    pub a: *const A,
    /// B
    pub b: *const A,
    /// C; may be D.
    pub c: *const D,
    /// D
    pub d: *mut D,
    /// The bias.
    pub bias: *const D,
    /// The residual; may be D.
    pub residual: *const D,
    /// Where the value before the activation goes.
    pub preact: *mut D,
    /// Where each group ends; on a GPU nobody checks it.
    pub offsets: *const i32,
    /// The factor of the product.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`](crate::PlanInfo::workspace_bytes).
    pub workspace_bytes: usize,
}

impl<A: Product<D>, D: Element> GemmPointers<A, D> {
    /// A product with alpha 1 and nothing else.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let pointers = sparsek::GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(a: *const A, b: *const A, d: *mut D) -> Self {
        let (c, bias, residual, preact, offsets) =
            (ptr::null(), ptr::null(), ptr::null(), ptr::null_mut(), ptr::null());
        let (workspace, workspace_bytes) = (ptr::null_mut(), 0);
        GemmPointers { a, b, c, d, bias, residual, preact, offsets, alpha: 1.0, beta: 0.0, workspace, workspace_bytes }
    }

    pub(super) fn raw(&self) -> sys::spk_gemm_args {
        let mut raw = sized!(spk_gemm_args, SPK_GEMM);
        (raw.a, raw.b, raw.c, raw.d) = (self.a.cast(), self.b.cast(), self.c.cast(), self.d.cast());
        (raw.bias, raw.residual, raw.preact) = (self.bias.cast(), self.residual.cast(), self.preact.cast());
        raw.offsets = self.offsets.cast();
        (raw.alpha, raw.beta) = (self.alpha, self.beta);
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

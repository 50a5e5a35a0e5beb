//! Operands in memory that only the caller knows.
use super::args::scale_of;
use crate::sys;
use crate::types::{Element, sized};
use std::ffi::c_void;
use std::ptr;

/// The operands of a run in the memory of the context's device, for [`AttentionPlan::run_pointers`](crate::AttentionPlan::run_pointers).
///
/// ```
/// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
/// let pointers = sparsek::AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
/// assert!(pointers.scale.is_none() && pointers.lse.is_null());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttentionPointers<T: Element> {
    /// Q
    pub q: *const T,
    /// K
    pub k: *const T,
    /// V
    pub v: *const T,
    /// O
    pub o: *mut T,
    /// LSE; null where the problem has none.
    pub lse: *mut T::Sum,
    /// The factor of the scores; none: 1 / sqrt(depth).
    pub scale: Option<f64>,
    /// The bound of the scores; 0: none.
    pub softcap: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`](crate::PlanInfo::workspace_bytes).
    pub workspace_bytes: usize,
}

impl<T: Element> AttentionPointers<T> {
    /// Q, K, V and O, nothing else.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// let pointers = sparsek::AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(q: *const T, k: *const T, v: *const T, o: *mut T) -> Self {
        let (lse, workspace, workspace_bytes) = (ptr::null_mut(), ptr::null_mut(), 0);
        AttentionPointers { q, k, v, o, lse, scale: None, softcap: 0.0, workspace, workspace_bytes }
    }

    /// depth: of the problem.
    pub(super) fn raw(&self, depth: i64) -> sys::spk_attention_args {
        let mut raw = sized!(spk_attention_args, SPK_ATTENTION);
        (raw.q, raw.k, raw.v, raw.o) = (self.q.cast(), self.k.cast(), self.v.cast(), self.o.cast());
        raw.lse = self.lse.cast();
        (raw.scale, raw.softcap) = (scale_of(self.scale, depth), self.softcap);
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

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
    /// See [`AttentionArgs::query_ends`](crate::AttentionArgs::query_ends); null where the problem has no sequences.
    pub query_ends: *const i32,
    /// See [`AttentionArgs::key_ends`](crate::AttentionArgs::key_ends); null where the problem has neither sequences nor key lengths.
    pub key_ends: *const i32,
    /// See [`AttentionArgs::page_table`](crate::AttentionArgs::page_table); null where the problem has no pages.
    pub page_table: *const i32,
    /// See [`AttentionArgs::tiles`](crate::AttentionArgs::tiles); null where the problem has none.
    pub tile_numbers: *const i32,
    /// See [`AttentionArgs::tiles`](crate::AttentionArgs::tiles); null where the problem has none.
    pub tile_bits: *const u32,
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
        AttentionPointers {
            q,
            k,
            v,
            o,
            lse: ptr::null_mut(),
            scale: None,
            softcap: 0.0,
            query_ends: ptr::null(),
            key_ends: ptr::null(),
            page_table: ptr::null(),
            tile_numbers: ptr::null(),
            tile_bits: ptr::null(),
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    /// depth: of the problem.
    pub(super) fn raw(&self, depth: i64) -> sys::spk_attention_args {
        let mut raw = sized!(spk_attention_args, SPK_ATTENTION);
        (raw.q, raw.k, raw.v, raw.o) = (self.q.cast(), self.k.cast(), self.v.cast(), self.o.cast());
        raw.lse = self.lse.cast();
        (raw.scale, raw.softcap) = (scale_of(self.scale, depth), self.softcap);
        (raw.query_ends, raw.key_ends) = (self.query_ends.cast(), self.key_ends.cast());
        raw.page_table = self.page_table.cast();
        (raw.tile_numbers, raw.tile_bits) = (self.tile_numbers.cast(), self.tile_bits.cast());
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

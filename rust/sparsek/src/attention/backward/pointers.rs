//! Operands in memory that only the caller knows.
use crate::attention::args::scale_of;
use crate::sys;
use crate::types::{Element, sized};
use std::ffi::c_void;
use std::ptr;

/// The operands of a run in the memory of the context's device, for
/// [`AttentionBackwardPlan::run_pointers`](crate::AttentionBackwardPlan::run_pointers). Fields that are no operands are as in
/// [`AttentionPointers`](crate::AttentionPointers), which can be taken over: [`AttentionBackwardPointers::of`].
///
/// ```
/// # let (q, k, v, mut o, mut lse) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4], [0f32; 2]);
/// # let (grad_o, mut grad_q, mut grad_k, mut grad_v) = ([1f32; 4], [0f32; 4], [0f32; 6], [0f32; 6]);
/// let mut forward = sparsek::AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
/// forward.lse = lse.as_mut_ptr();
/// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
/// let pointers = sparsek::AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
/// assert!(pointers.grad_lse.is_null());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AttentionBackwardPointers<T: Element> {
    /// Q
    pub q: *const T,
    /// K
    pub k: *const T,
    /// V
    pub v: *const T,
    /// O, as the attention gave it.
    pub o: *const T,
    /// LSE, likewise.
    pub lse: *const T::Sum,
    /// The gradient by O.
    pub grad_o: *const T,
    /// The gradient by LSE; null where the problem has none.
    pub grad_lse: *const T::Sum,
    /// The gradient by Q, to be written.
    pub grad_q: *mut T,
    /// The gradient by K, to be written.
    pub grad_k: *mut T,
    /// The gradient by V, to be written.
    pub grad_v: *mut T,
    /// The factor of the scores, as the attention had it; none: 1 / sqrt(depth).
    pub scale: Option<f64>,
    /// The bound of the scores, likewise; 0: none.
    pub softcap: f64,
    /// See [`AttentionArgs::query_ends`](crate::AttentionArgs::query_ends); null where the problem has no sequences.
    pub query_ends: *const i32,
    /// See [`AttentionArgs::key_ends`](crate::AttentionArgs::key_ends); null where the problem has neither sequences nor key lengths.
    pub key_ends: *const i32,
    /// See [`AttentionArgs::tiles`](crate::AttentionArgs::tiles); null where the problem has none.
    pub tile_numbers: *const i32,
    /// See [`AttentionArgs::tiles`](crate::AttentionArgs::tiles); null where the problem has none.
    pub tile_bits: *const u32,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`](crate::PlanInfo::workspace_bytes).
    pub workspace_bytes: usize,
}

impl<T: Element> AttentionBackwardPointers<T> {
    /// Those of the attention, its workspace excepted; the gradient by O; those by Q, K and V to be written.
    ///
    /// ```
    /// # let (q, k, v, mut o) = ([1f32; 4], [1f32; 6], [1f32; 6], [0f32; 4]);
    /// # let (grad_o, mut grad_q, mut grad_k, mut grad_v) = ([1f32; 4], [0f32; 4], [0f32; 6], [0f32; 6]);
    /// # let forward = sparsek::AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
    /// let pointers = sparsek::AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
    /// # let _ = pointers;
    /// ```
    pub fn of(forward: &crate::AttentionPointers<T>, grad_o: *const T, [grad_q, grad_k, grad_v]: [*mut T; 3]) -> Self {
        AttentionBackwardPointers {
            q: forward.q,
            k: forward.k,
            v: forward.v,
            o: forward.o,
            lse: forward.lse,
            grad_o,
            grad_lse: ptr::null(),
            grad_q,
            grad_k,
            grad_v,
            scale: forward.scale,
            softcap: forward.softcap,
            query_ends: forward.query_ends,
            key_ends: forward.key_ends,
            tile_numbers: forward.tile_numbers,
            tile_bits: forward.tile_bits,
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    /// depth: of the problem.
    pub(super) fn raw(&self, depth: i64) -> sys::spk_attention_backward_args {
        let mut raw = sized!(spk_attention_backward_args, SPK_ATTENTION_BACKWARD);
        (raw.q, raw.k, raw.v) = (self.q.cast(), self.k.cast(), self.v.cast());
        (raw.o, raw.lse) = (self.o.cast(), self.lse.cast());
        (raw.grad_o, raw.grad_lse) = (self.grad_o.cast(), self.grad_lse.cast());
        (raw.grad_q, raw.grad_k, raw.grad_v) = (self.grad_q.cast(), self.grad_k.cast(), self.grad_v.cast());
        (raw.scale, raw.softcap) = (scale_of(self.scale, depth), self.softcap);
        (raw.query_ends, raw.key_ends) = (self.query_ends.cast(), self.key_ends.cast());
        (raw.tile_numbers, raw.tile_bits) = (self.tile_numbers.cast(), self.tile_bits.cast());
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

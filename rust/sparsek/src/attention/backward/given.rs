//! How the operands of gradients are given: beside those of the attention.
use super::{AttentionBackwardArgs, AttentionBackwardPointers};
use crate::operands::Target;
use crate::types::Element;
use std::mem::MaybeUninit;
use std::ptr;

impl<'a, T: Element> AttentionBackwardArgs<'a, T> {
    /// Q, K and V, O and LSE as the attention gave them, the gradient by O, and those by Q, K and V to be written. The scale is
    /// 1 / sqrt(depth).
    ///
    /// ```
    /// let (q, k, v, o, lse) = ([1f32; 4], [1f32; 6], [1f32; 6], [1f32; 4], [1f32; 2]);
    /// let (grad_o, mut grad_q, mut grad_k, mut grad_v) = ([1f32; 4], [0f32; 4], [0f32; 6], [0f32; 6]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = sparsek::AttentionBackwardArgs::new([&q, &k, &v], (&o, &lse), &grad_o, grads);
    /// # let _ = args;
    /// ```
    pub fn new(
        [q, k, v]: [&'a [T]; 3],
        (o, lse): (&'a [T], &'a [T::Sum]),
        grad_o: &'a [T],
        grads: [&'a mut [T]; 3],
    ) -> Self {
        AttentionBackwardArgs::to([q, k, v], (o, lse), grad_o, grads.map(Target::Slice))
    }

    /// As [`AttentionBackwardArgs::new`], with gradients that nobody wrote yet. After a run that succeeded they are there; what lies
    /// between their rows, heads or items stays unwritten, and so do rows behind the last of
    /// [packed sequences](crate::Attention::sequences).
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = (Vec::with_capacity(1), Vec::with_capacity(1), Vec::with_capacity(1));
    /// let grads = [&mut grad_q, &mut grad_k, &mut grad_v].map(|grad: &mut Vec<f32>| &mut grad.spare_capacity_mut()[..1]);
    /// let args = AttentionBackwardArgs::uninit([&[0.], &[1.], &[2.]], (&[2.], &[0.]), &[5.], grads);
    /// context.attention_backward(&Attention::new(1, 1, 1).backward(), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: the only element was written.
    /// unsafe { grad_v.set_len(1) };
    /// assert_eq!(grad_v, [5.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(
        [q, k, v]: [&'a [T]; 3],
        (o, lse): (&'a [T], &'a [T::Sum]),
        grad_o: &'a [T],
        grads: [&'a mut [MaybeUninit<T>]; 3],
    ) -> Self {
        AttentionBackwardArgs::to([q, k, v], (o, lse), grad_o, grads.map(Target::Uninit))
    }

    fn to(
        [q, k, v]: [&'a [T]; 3],
        (o, lse): (&'a [T], &'a [T::Sum]),
        grad_o: &'a [T],
        [grad_q, grad_k, grad_v]: [Target<'a, T>; 3],
    ) -> Self {
        AttentionBackwardArgs {
            q,
            k,
            v,
            o,
            lse,
            query_ends: None,
            key_ends: None,
            tile_numbers: None,
            tile_bits: None,
            grad_o,
            grad_lse: None,
            grad_q,
            grad_k,
            grad_v,
            scale: None,
            softcap: 0.0,
        }
    }

    /// As [`AttentionArgs::tiles`](crate::AttentionArgs::tiles).
    ///
    /// ```
    /// # let (one, mut q, mut k, mut v) = ([1f32], [0f32], [0f32], [0f32]);
    /// # let args = sparsek::AttentionBackwardArgs::new([&one; 3], (&one, &one), &one, [&mut q, &mut k, &mut v]);
    /// let args = args.tiles(&[0, -1, 0], &[0b01, 0b11]);
    /// # let _ = args;
    /// ```
    pub fn tiles(mut self, numbers: &'a [i32], bits: &'a [u32]) -> Self {
        (self.tile_numbers, self.tile_bits) = (Some(numbers), Some(bits));
        self
    }
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
}

//! Problems bound to kernels.
use super::args::{AttentionBackwardArgs, Extents};
use super::{AttentionBackward, AttentionBackwardPointers};
use crate::context::Context;
use crate::error::Result;
use crate::plan::{PlanInfo, RawPlan};
use crate::sys;
use crate::tune::TuneOptions;
use crate::types::Element;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A problem of gradients bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::{Attention, AttentionBackwardArgs, AttentionBackwardPlan, Context, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let problem = Attention::new(1, 1, 1).backward();
/// let plan: AttentionBackwardPlan<f64> = context.plan_attention_backward(&problem, &TuneOptions::new().estimate())?;
/// let (mut grad_q, mut grad_k, mut grad_v) = ([9.], [9.], [9.]);
/// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
/// plan.run(AttentionBackwardArgs::new([&[1.], &[2.], &[3.]], (&[3.], &[2.]), &[7.], grads))?;
/// assert_eq!((grad_q, grad_k, grad_v), ([0.], [0.], [7.])); // a query with one key
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct AttentionBackwardPlan<T: Element> {
    plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(T) -> T>,
}

impl<T: Element> AttentionBackwardPlan<T> {
    /// Computes, on the CPU.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(2, 1, 3).backward();
    /// let plan = context.plan_attention_backward::<f32>(&problem, &TuneOptions::new().estimate())?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([0.; 5], [0.; 3], [0.; 3]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = AttentionBackwardArgs::new([&[1.; 6], &[1.; 3], &[1.; 3]], (&[1.; 6], &[1.; 2]), &[1.; 6], grads);
    /// assert_eq!(plan.run(args).unwrap_err().to_string(), "grad_q has 5 elements: the problem needs 6");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: AttentionBackwardArgs<'_, T>) -> Result<()> {
        let context = self.plan.context();
        context.check_host()?;
        let raw = args.checked(&self.needed)?;
        // SAFETY: every pointer has the elements of the problem, what is written is borrowed for this alone, and the workspace is
        // the plan's own.
        context.check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), ptr::null_mut()) })
    }

    /// Computes on what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// As of [`AttentionPlan::run_pointers`](crate::AttentionPlan::run_pointers); what is written, and overlaps nothing, are `grad_q`,
    /// `grad_k` and `grad_v`.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardPointers, AttentionPointers, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(1, 1, 1).backward();
    /// let plan = context.plan_attention_backward::<f32>(&problem, &TuneOptions::new().estimate())?;
    /// let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// forward.lse = lse.as_mut_ptr();
    /// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
    /// let pointers = AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
    /// // SAFETY: one query and one key, of depth 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(grad_v, [7.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &AttentionBackwardPointers<T>, stream: *mut c_void) -> Result<()> {
        let raw = pointers.raw(self.needed.forward.depth);
        // SAFETY: as the caller promises.
        self.plan.context().check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), stream) })
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(2, 1, 2).backward();
    /// let plan = context.plan_attention_backward::<f32>(&problem, &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.kernel.starts_with("attention_backward_"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<T: Element> fmt::Debug for AttentionBackwardPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttentionBackwardPlan").field("choice", &self.plan.choice()).finish_non_exhaustive()
    }
}

impl Context {
    /// Binds gradients of attention to a kernel, for operands of `T`.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(4, 3, 2).backward();
    /// let plan = context.plan_attention_backward::<bf16>(&problem, &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
    ) -> Result<AttentionBackwardPlan<T>> {
        let (raw_problem, raw_options) = (problem.typed::<T>()?, options.to_raw()?);
        let pattern = problem.attention.pattern(self)?;
        let mut raw = ptr::null_mut();
        // SAFETY: context and pattern are alive and belong together, structs and texts live during the call.
        let status = unsafe {
            sys::spk_plan_create(self.raw(), pattern, (&raw const raw_problem).cast(), &raw_options.raw, &mut raw)
        };
        self.check(status)?;
        let plan = RawPlan::own(raw, self, problem.attention.mask.as_ref());
        Ok(AttentionBackwardPlan { plan, needed: Extents::of::<T>(problem, &raw_problem), types: PhantomData })
    }
}

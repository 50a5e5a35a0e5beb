//! Problems bound to kernels.
use super::args::{AttentionArgs, Extents};
use super::{Attention, AttentionPointers};
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

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::{Attention, AttentionArgs, AttentionPlan, Context, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let problem = Attention::new(1, 2, 1).want_lse();
/// let plan: AttentionPlan<f64> = context.plan_attention(&problem, &TuneOptions::new().estimate())?;
/// let (mut o, mut lse) = ([0.0; 1], [0.0; 1]);
/// plan.run(AttentionArgs::new(&[0.], &[5., 6.], &[1., 2.], &mut o).lse(&mut lse))?;
/// assert!((o[0] - 1.5f64).abs() < 1e-12 && (lse[0] - 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct AttentionPlan<T: Element> {
    plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(T) -> T>,
}

impl<T: Element> AttentionPlan<T> {
    /// Computes, on the CPU.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<f32>(&Attention::new(2, 1, 3), &TuneOptions::new().estimate())?;
    /// let mut o = [0f32; 5];
    /// let error = plan.run(AttentionArgs::new(&[1.; 6], &[1.; 3], &[1.; 3], &mut o)).unwrap_err();
    /// assert_eq!(error.to_string(), "o has 5 elements: the problem needs 6");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: AttentionArgs<'_, T>) -> Result<()> {
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
    /// Every pointer is to as many elements as the problem's sizes, leading dimensions and strides span, in memory of the
    /// context's device; `o` and `lse` overlap nothing. The stream is null on the CPU, else one of the device's primary context.
    /// All of it, and the plan, stays until the work is done; without a workspace, no two threads run the plan on one stream at
    /// once.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionPointers, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<f32>(&Attention::new(2, 2, 1), &TuneOptions::new().estimate())?;
    /// let (q, k, v, mut o) = ([1f32; 2], [1f32; 2], [1f32, 2.], [0f32; 2]);
    /// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// // SAFETY: two queries and two keys, of depth 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(o, [1.5, 1.5]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &AttentionPointers<T>, stream: *mut c_void) -> Result<()> {
        let raw = pointers.raw(self.needed.depth);
        // SAFETY: as the caller promises.
        self.plan.context().check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), stream) })
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<f32>(&Attention::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<T: Element> fmt::Debug for AttentionPlan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttentionPlan").field("choice", &self.plan.choice()).finish_non_exhaustive()
    }
}

impl Context {
    /// Binds an attention to a kernel, for operands of `T`.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_attention::<bf16>(&Attention::new(4, 3, 2), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<AttentionPlan<T>> {
        let (raw_problem, raw_options, pattern) = (problem.typed::<T>(), options.to_raw()?, problem.pattern(self)?);
        let mut raw = ptr::null_mut();
        // SAFETY: context and pattern are alive and belong together, structs and texts live during the call.
        let status = unsafe {
            sys::spk_plan_create(self.raw(), pattern, (&raw const raw_problem).cast(), &raw_options.raw, &mut raw)
        };
        self.check(status)?;
        let mask = problem.mask.as_ref();
        let (plan, needed) = (RawPlan::own(raw, self, mask), Extents::of(&raw_problem, mask));
        Ok(AttentionPlan { plan, needed, types: PhantomData })
    }
}

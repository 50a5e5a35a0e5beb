//! Problems bound to kernels.
use super::args::{Extents, SpmmArgs};
use super::{Spmm, SpmmPointers};
use crate::error::{Error, Result};
use crate::extent::check_length;
use crate::pattern::Pattern;
use crate::plan::{PlanInfo, RawPlan};
use crate::sys;
use crate::tune::TuneOptions;
use crate::types::{Element, Product};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::{Context, Pattern, Spmm, SpmmArgs, SpmmPlan, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
/// let plan: SpmmPlan<f64> = pattern.plan_spmm(&Spmm::new(1), &TuneOptions::new().estimate())?;
/// let mut d = [0.0; 2];
/// plan.run(SpmmArgs::new(&[1., 2., 3., 4.], &[1., 1.], &mut d))?;
/// assert_eq!(d, [3., 7.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct SpmmPlan<A: Product<D>, D: Element = A> {
    plan: RawPlan,
    needed: Extents,
    is_static: bool,
    has_values: bool,    // of those that are static
    kept: Vec<Arc<[A]>>, // what the library has pointers to: the last, and those of updates that failed since; dropped after the plan
    types: PhantomData<fn(A) -> D>,
}

impl<A: Product<D>, D: Element> SpmmPlan<A, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// let mut d = [0f32; 1];
    /// let error = plan.run(SpmmArgs::new(&[1.; 4], &[1.; 2], &mut d)).unwrap_err();
    /// assert_eq!(error.to_string(), "d has 1 elements: the problem needs 2");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: SpmmArgs<'_, A, D>) -> Result<()> {
        let context = self.plan.context();
        context.check_host()?;
        if self.is_static && !self.has_values {
            return Err(Error::argument("the plan has static values: update_values must come before the first run"));
        }
        let raw = args.checked(&self.needed, self.is_static)?;
        // SAFETY: every pointer has the elements of the problem, what is written is borrowed for this alone, and the workspace
        // is the plan's own.
        context.check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), ptr::null_mut()) })
    }

    /// Multiplies what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// Every pointer that the problem uses is to as many elements as its sizes, leading dimensions and strides span, in memory
    /// of the context's device; `d` and `preact` overlap nothing but what may be D. The stream is null on the CPU, else one of
    /// the device's primary context. All of it, and the plan, stays until the work is done; without a workspace, no two
    /// threads run the plan on one stream at once.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// let (values, b, mut d) = ([1f32; 4], [1f32; 2], [0f32; 2]);
    /// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is 2 x 2, B and D are 2 x 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [2., 2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &SpmmPointers<A, D>, stream: *mut c_void) -> Result<()> {
        let raw = pointers.raw();
        // SAFETY: as the caller promises.
        self.plan.context().check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), stream) })
    }

    /// Gives the values (again) to a plan of a problem with [`Spmm::static_values`], on the CPU. Those of later runs are ignored.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Spmm::new(1).static_values(true);
    /// let mut plan = pattern.plan_spmm::<f32, f32>(&problem, &TuneOptions::new().estimate())?;
    /// plan.update_values(vec![2f32; 4])?;
    /// let mut d = [0f32; 2];
    /// plan.run(SpmmArgs::new(&[], &[1.; 2], &mut d))?;
    /// assert_eq!(d, [4., 4.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn update_values(&mut self, values: impl Into<Arc<[A]>>) -> Result<()> {
        let values = values.into();
        let context = self.plan.context();
        context.check_host()?;
        check_length("values", values.len(), self.needed.values)?;
        let pointer = values.as_ptr().cast();
        if self.is_static {
            self.kept.push(values);
        }
        // SAFETY: the values are as many as the problem has, and stay; &mut keeps runs away.
        context.check(unsafe { sys::spk_plan_update_values(self.plan.raw(), pointer, ptr::null_mut()) })?;
        self.kept.drain(..self.kept.len() - 1);
        self.has_values = true;
        Ok(())
    }

    /// Likewise, with values in the memory of the context's device.
    ///
    /// # Safety
    /// The values are as many as the problem has, in memory of the context's device, and stay until the next update or the
    /// plan's end; the stream is as in [`SpmmPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Spmm::new(1).static_values(true);
    /// let values = [2f32; 4];
    /// let mut plan = pattern.plan_spmm::<f32, f32>(&problem, &TuneOptions::new().estimate())?;
    /// // SAFETY: A is 2 x 2, and the array outlives the plan.
    /// unsafe { plan.update_values_pointer(values.as_ptr(), std::ptr::null_mut()) }?;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn update_values_pointer(&mut self, values: *const A, stream: *mut c_void) -> Result<()> {
        let context = self.plan.context();
        // SAFETY: as the caller promises.
        context.check(unsafe { sys::spk_plan_update_values(self.plan.raw(), values.cast(), stream) })?;
        self.kept.clear(); // the library has another pointer
        self.has_values = true;
        Ok(())
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().only("reference"))?;
    /// assert_eq!(plan.info()?.kernel, "reference");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<A: Product<D>, D: Element> fmt::Debug for SpmmPlan<A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SpmmPlan");
        out.field("choice", &self.plan.choice()).field("pattern", self.plan.pattern());
        out.field("static_values", &self.is_static).finish_non_exhaustive()
    }
}

impl Pattern {
    /// Binds a problem to a kernel: A and B of `A`, D of `D` (`A`, or f32 for 16-bit types).
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, TuneOptions, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<bf16, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        options: &TuneOptions,
    ) -> Result<SpmmPlan<A, D>> {
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        let mut raw = ptr::null_mut();
        // SAFETY: context and pattern are alive and belong together, structs and texts live during the call.
        let status = unsafe {
            sys::spk_plan_create(
                self.context().raw(),
                self.raw(),
                (&raw const raw_problem).cast(),
                &raw_options.raw,
                &mut raw,
            )
        };
        self.context().check(status)?;
        let (plan, needed) = (RawPlan::own(raw, self.context(), Some(self)), Extents::of(self, &raw_problem));
        let is_static = raw_problem.static_values != 0;
        Ok(SpmmPlan { plan, needed, is_static, has_values: false, kept: Vec::new(), types: PhantomData })
    }
}

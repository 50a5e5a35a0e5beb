//! Problems bound to kernels.
use super::args::{Extents, GemmArgs};
use super::{Gemm, GemmPointers};
use crate::context::Context;
use crate::error::Result;
use crate::plan::{PlanInfo, RawPlan};
use crate::sys;
use crate::tune::TuneOptions;
use crate::types::{Element, Product};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::{Context, Gemm, GemmArgs, GemmPlan, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let plan: GemmPlan<f64> = context.plan_gemm(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
/// let mut d = [0.0; 2];
/// plan.run(GemmArgs::new(&[1., 2., 3., 4.], &[1., 1.], &mut d))?;
/// assert_eq!(d, [3., 7.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct GemmPlan<A: Product<D>, D: Element = A> {
    plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(A) -> D>,
}

impl<A: Product<D>, D: Element> GemmPlan<A, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<f32, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// let mut d = [0f32; 1];
    /// let error = plan.run(GemmArgs::new(&[1.; 4], &[1.; 2], &mut d)).unwrap_err();
    /// assert_eq!(error.to_string(), "d has 1 elements: the problem needs 2");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: GemmArgs<'_, A, D>) -> Result<()> {
        let context = self.plan.context();
        context.check_host()?;
        let raw = args.checked(&self.needed)?;
        // SAFETY: every pointer has the elements of the problem, what is written is borrowed for this alone, the library checks
        // the offsets, and the workspace is the plan's own.
        context.check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), ptr::null_mut()) })
    }

    /// Multiplies what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// As of [`SpmmPlan::run_pointers`](crate::SpmmPlan::run_pointers); offsets on a GPU ascend and end within the axis that they
    /// cut.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<f32, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// let (a, b, mut d) = ([1f32; 4], [1f32; 2], [0f32; 2]);
    /// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is 2 x 2, B and D are 2 x 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [2., 2.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &GemmPointers<A, D>, stream: *mut c_void) -> Result<()> {
        let raw = pointers.raw();
        // SAFETY: as the caller promises.
        self.plan.context().check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), stream) })
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<f32, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<A: Product<D>, D: Element> fmt::Debug for GemmPlan<A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GemmPlan").field("choice", &self.plan.choice()).finish_non_exhaustive()
    }
}

impl Context {
    /// Binds a dense product to a kernel: A and B of `A`, D of `D` (`A`, or f32 for 16-bit types).
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, TuneOptions, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<bf16, f32>(&Gemm::new(4, 3, 2), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        options: &TuneOptions,
    ) -> Result<GemmPlan<A, D>> {
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        let mut raw = ptr::null_mut();
        // SAFETY: the context is alive, structs and texts live during the call, and the operation takes no pattern.
        let status = unsafe {
            sys::spk_plan_create(
                self.raw(),
                ptr::null_mut(),
                (&raw const raw_problem).cast(),
                &raw_options.raw,
                &mut raw,
            )
        };
        self.check(status)?;
        let (plan, needed) = (RawPlan::own(raw, self, None), Extents::of(&raw_problem));
        Ok(GemmPlan { plan, needed, types: PhantomData })
    }
}

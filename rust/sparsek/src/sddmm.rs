//! SDDMM: the product of two dense matrices at the stored blocks of a pattern.
use crate::error::Result;
use crate::extent::{Strided, check_length, items};
use crate::pattern::Pattern;
use crate::plan::{PlanInfo, RawPlan};
use crate::report::Report;
use crate::sys;
use crate::tune::TuneOptions;
use crate::types::{Element, Layout, Product, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

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

    setters! { Sddmm("8"):
        /// The order of elements inside a block of D and C.
        block_layout(layout: Layout) block_layout = layout.raw();
        /// The order of X.
        layout_x(layout: Layout) layout_x = layout.raw();
        /// The order of Y.
        layout_y(layout: Layout) layout_y = layout.raw();
        /// Leading dimension of X; 0: tight.
        ldx(ld: usize) ldx = size(ld);
        /// Leading dimension of Y; 0: tight.
        ldy(ld: usize) ldy = size(ld);
        /// Products of one pattern, each with arrays of its own.
        batch(items: usize) batch = size(items);
        /// From one item of X to the next; 0: tight.
        stride_x(stride: usize) stride_x = size(stride);
        /// From one item of Y to the next; 0: tight.
        stride_y(stride: usize) stride_y = size(stride);
        /// From one item of C to the next; 0: tight.
        stride_c(stride: usize) stride_c = size(stride);
        /// From one item of D to the next; 0: tight.
        stride_d(stride: usize) stride_d = size(stride);
        /// You promise that X and Y hold no infinity and no NaN: candidates that multiply filled-in zeros may win.
        assume_finite(yes: bool) assume_finite = yes.into();
    }

    /// Adds beta C: [`SddmmArgs::c`] or [`SddmmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// let problem = sparsek::Sddmm::new(8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// One X for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Sddmm::new(8).batch(4).share_x();
    /// # let _ = problem;
    /// ```
    pub fn share_x(mut self) -> Self {
        self.raw.stride_x = sys::SPK_STRIDE_SHARED;
        self
    }

    /// One Y for all items of the batch.
    ///
    /// ```
    /// let problem = sparsek::Sddmm::new(8).batch(4).share_y();
    /// # let _ = problem;
    /// ```
    pub fn share_y(mut self) -> Self {
        self.raw.stride_y = sys::SPK_STRIDE_SHARED;
        self
    }

    /// Lets X and Y of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// let problem = sparsek::Sddmm::new(8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    fn typed<X: Product<D>, D: Element>(&self) -> sys::spk_sddmm {
        let mut raw = self.raw;
        (raw.dtype_x, raw.dtype_y, raw.dtype_d) = (X::DTYPE.raw(), X::DTYPE.raw(), D::DTYPE.raw());
        raw
    }
}

/// Elements that each operand needs; `None` where no memory holds them.
#[derive(Clone, Copy)]
struct Extents {
    x: Option<usize>,
    y: Option<usize>,
    c: Option<usize>,
    d: Option<usize>,
    use_c: bool,
}

impl Extents {
    fn of(pattern: &Pattern, problem: &sys::spk_sddmm) -> Extents {
        let (rows, cols) = pattern.sizes();
        let (k, batch) = (problem.k, problem.batch);
        let x = Strided { rows, cols: k, layout: problem.layout_x, ld: problem.ldx, stride: problem.stride_x };
        let y = Strided { rows: k, cols, layout: problem.layout_y, ld: problem.ldy, stride: problem.stride_y };
        let item = pattern.values_i64();
        let values = |stride: i64| match stride {
            sys::SPK_STRIDE_SHARED => items(item, 0, batch),
            0 => items(item, item, batch),
            given => items(item, given, batch),
        };
        let (c, d) = (values(problem.stride_c), values(problem.stride_d));
        Extents { x: x.elements(batch), y: y.elements(batch), c, d, use_c: problem.use_c != 0 }
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
/// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).alpha(0.5);
/// # let _ = args;
/// ```
#[must_use]
pub struct SddmmArgs<'a, X, D = X> {
    x: &'a [X],
    y: &'a [X],
    c: Option<&'a [D]>,
    in_place: bool,
    d: &'a mut [D],
    alpha: f64,
    beta: f64,
}

/// Lengths, not elements.
impl<X, D> fmt::Debug for SddmmArgs<'_, X, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SddmmArgs");
        out.field("x", &self.x.len()).field("y", &self.y.len()).field("d", &self.d.len());
        let c = self.c.map(<[D]>::len);
        out.field("c", if self.in_place { &"d" } else { &c });
        out.field("alpha", &self.alpha).field("beta", &self.beta).finish()
    }
}

impl<'a, X: Product<D>, D: Element> SddmmArgs<'a, X, D> {
    /// X, Y, and the values D to be written. Alpha is 1.
    ///
    /// ```
    /// let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d);
    /// # let _ = args;
    /// ```
    pub fn new(x: &'a [X], y: &'a [X], d: &'a mut [D]) -> Self {
        SddmmArgs { x, y, c: None, in_place: false, d, alpha: 1.0, beta: 0.0 }
    }

    /// The factor of the product, finite.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).alpha(3.0);
    /// # let _ = args;
    /// ```
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// C and its factor, for [`Sddmm::use_c`].
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let c = [1f32; 4];
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).c(&c, 1.0);
    /// # let _ = args;
    /// ```
    pub fn c(mut self, c: &'a [D], beta: f64) -> Self {
        (self.c, self.in_place, self.beta) = (Some(c), false, beta);
        self
    }

    /// C is what D holds: adds to it, for [`Sddmm::use_c`].
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).c_in_place(1.0);
    /// # let _ = args;
    /// ```
    pub fn c_in_place(mut self, beta: f64) -> Self {
        (self.c, self.in_place, self.beta) = (None, true, beta);
        self
    }

    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_sddmm_args> {
        let mut raw = sized!(spk_sddmm_args, SPK_SDDMM);
        check_length("x", self.x.len(), needed.x)?;
        check_length("y", self.y.len(), needed.y)?;
        check_length("d", self.d.len(), needed.d)?;
        (raw.x, raw.y, raw.d) = (self.x.as_ptr().cast(), self.y.as_ptr().cast(), self.d.as_mut_ptr().cast());
        (raw.alpha, raw.beta) = (self.alpha, self.beta);
        if needed.use_c && self.in_place {
            check_length("c", self.d.len(), needed.c)?;
            raw.c = raw.d.cast_const();
        } else if needed.use_c {
            let c = self.c.unwrap_or_default();
            check_length("c", c.len(), needed.c)?;
            raw.c = c.as_ptr().cast();
        }
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`SddmmPlan::run_pointers`].
///
/// ```
/// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
/// let pointers = sparsek::SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
/// assert!(pointers.c.is_null());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SddmmPointers<X, D = X> {
    /// X
    pub x: *const X,
    /// Y
    pub y: *const X,
    /// C; may be D.
    pub c: *const D,
    /// D
    pub d: *mut D,
    /// The factor of the product.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace.
    pub workspace_bytes: usize,
}

impl<X: Product<D>, D: Element> SddmmPointers<X, D> {
    /// A product with alpha 1 and nothing else.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let pointers = sparsek::SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(x: *const X, y: *const X, d: *mut D) -> Self {
        let (workspace, workspace_bytes) = (ptr::null_mut(), 0);
        SddmmPointers { x, y, c: ptr::null(), d, alpha: 1.0, beta: 0.0, workspace, workspace_bytes }
    }
}

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::{Context, Pattern, Sddmm, SddmmArgs, SddmmPlan, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let pattern = Pattern::new(&context, (2, 4), (2, 2), &[0, 1], &[1])?;
/// let plan: SddmmPlan<f32> = pattern.plan_sddmm(&Sddmm::new(1), &TuneOptions::new().estimate())?;
/// let mut d = [0f32; 4];
/// plan.run(SddmmArgs::new(&[1., 2.], &[1., 2., 3., 4.], &mut d))?;
/// assert_eq!(d, [3., 4., 6., 8.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct SddmmPlan<X: Product<D>, D: Element = X> {
    plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(X) -> D>,
}

impl<X: Product<D>, D: Element> SddmmPlan<X, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, SddmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(3), &TuneOptions::new().estimate())?;
    /// assert!(plan.run(SddmmArgs::new(&[1.; 6], &[1.; 5], &mut [0.; 4])).is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: SddmmArgs<'_, X, D>) -> Result<()> {
        let context = self.plan.context();
        context.check_host()?;
        let raw = args.checked(&self.needed)?;
        // SAFETY: every pointer has the elements of the problem, D is borrowed for this alone, the workspace is the plan's own.
        context.check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), ptr::null_mut()) })
    }

    /// Multiplies what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// As of [`SpmmPlan::run_pointers`](crate::SpmmPlan::run_pointers).
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, SddmmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(3), &TuneOptions::new().estimate())?;
    /// let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 4]);
    /// let pointers = SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: X is 2 x 3, Y is 3 x 2, D is one block of 2 x 2.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [3.; 4]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &SddmmPointers<X, D>, stream: *mut c_void) -> Result<()> {
        let mut raw = sized!(spk_sddmm_args, SPK_SDDMM);
        (raw.x, raw.y) = (pointers.x.cast(), pointers.y.cast());
        (raw.c, raw.d) = (pointers.c.cast(), pointers.d.cast());
        (raw.alpha, raw.beta) = (pointers.alpha, pointers.beta);
        (raw.workspace, raw.workspace_bytes) = (pointers.workspace, pointers.workspace_bytes);
        // SAFETY: as the caller promises.
        self.plan.context().check(unsafe { sys::spk_plan_run(self.plan.raw(), (&raw const raw).cast(), stream) })
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(3), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<X: Product<D>, D: Element> fmt::Debug for SddmmPlan<X, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SddmmPlan");
        out.field("choice", &self.plan.choice()).field("pattern", self.plan.pattern()).finish_non_exhaustive()
    }
}

impl Pattern {
    /// Binds a problem to a kernel: X and Y of `X`, D of `D` (`X`, or f32 for 16-bit types).
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f64, f64>(&Sddmm::new(3), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_sddmm<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        options: &TuneOptions,
    ) -> Result<SddmmPlan<X, D>> {
        let (raw_problem, raw_options) = (problem.typed::<X, D>(), options.to_raw()?);
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
        Ok(SddmmPlan { plan, needed, types: PhantomData })
    }

    /// Multiplies in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, SddmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [1f32; 4];
    /// let args = SddmmArgs::new(&[1., 2.], &[3., 4.], &mut d).c_in_place(1.0);
    /// pattern.matmul_sampled(&Sddmm::new(1).use_c(), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [4., 5., 7., 9.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn matmul_sampled<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        mut args: SddmmArgs<'_, X, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        let context = self.context();
        context.check_host()?;
        let (raw_problem, raw_options) = (problem.typed::<X, D>(), options.to_raw()?);
        let raw = args.checked(&Extents::of(self, &raw_problem))?;
        // SAFETY: as in SddmmPlan::run and Pattern::plan_sddmm.
        context.check(unsafe {
            sys::spk_compute(
                context.raw(),
                self.raw(),
                (&raw const raw_problem).cast(),
                (&raw const raw).cast(),
                &raw_options.raw,
            )
        })
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// assert!(pattern.tune_sddmm::<f32, f32>(&Sddmm::new(4), &options)?.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_sddmm<X: Product<D>, D: Element>(&self, problem: &Sddmm, options: &TuneOptions) -> Result<Report> {
        let (raw_problem, raw_options) = (problem.typed::<X, D>(), options.to_raw()?);
        Report::read(self.context(), |report| {
            // SAFETY: as in Pattern::plan_sddmm.
            unsafe {
                sys::spk_tune(
                    self.context().raw(),
                    self.raw(),
                    (&raw const raw_problem).cast(),
                    &raw_options.raw,
                    report,
                )
            }
        })
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where there is none.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Sddmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// assert!(pattern.explain_sddmm::<f32, f32>(&Sddmm::new(4), &TuneOptions::new()).is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_sddmm<X: Product<D>, D: Element>(&self, problem: &Sddmm, options: &TuneOptions) -> Result<Report> {
        let (raw_problem, raw_options) = (problem.typed::<X, D>(), options.to_raw()?);
        Report::read(self.context(), |report| {
            // SAFETY: as in Pattern::plan_sddmm.
            unsafe {
                sys::spk_explain(
                    self.context().raw(),
                    self.raw(),
                    (&raw const raw_problem).cast(),
                    &raw_options.raw,
                    report,
                )
            }
        })
    }
}

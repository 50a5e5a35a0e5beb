// Generated from the library's tables by rust/generate.py: do not edit.
use crate::call::Problem;
use crate::error::Result;
use crate::operands::{Addend, Needed, Target, input};
use crate::pattern::Pattern;
use crate::plan::{PlanInfo, RawPlan};
use crate::report::Report;
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, Layout, Product, Scale, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use super::Sddmm;

// SAFETY: the struct begins with its size and its operation.
unsafe impl Problem for sys::spk_sddmm {
    type Args = sys::spk_sddmm_args;
    const OPERATION: sys::spk_operation = sys::SPK_SDDMM;
}

impl Sddmm {
    /// You promise that X and Y hold no infinity and no NaN: candidates that multiply filled-in zeros may win.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).assume_finite(true);
    /// # let _ = problem;
    /// ```
    pub fn assume_finite(mut self, yes: bool) -> Self {
        self.raw.assume_finite = yes.into();
        self
    }

    /// Lets X and Y of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    /// The order of elements inside a block of D and C.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).block_layout(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn block_layout(mut self, layout: Layout) -> Self {
        self.raw.block_layout = layout.raw();
        self
    }

    /// The order of X.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).layout_x(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_x(mut self, layout: Layout) -> Self {
        self.raw.layout_x = layout.raw();
        self
    }

    /// The order of Y.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).layout_y(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_y(mut self, layout: Layout) -> Self {
        self.raw.layout_y = layout.raw();
        self
    }

    /// Adds beta C: [`SddmmArgs::c`] or [`SddmmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// Leading dimension of X; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).ldx(16);
    /// # let _ = problem;
    /// ```
    pub fn ldx(mut self, ld: usize) -> Self {
        self.raw.ldx = size(ld);
        self
    }

    /// Leading dimension of Y; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).ldy(16);
    /// # let _ = problem;
    /// ```
    pub fn ldy(mut self, ld: usize) -> Self {
        self.raw.ldy = size(ld);
        self
    }

    /// Products of one pattern, each with arrays of its own.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).batch(16);
    /// # let _ = problem;
    /// ```
    pub fn batch(mut self, items: usize) -> Self {
        self.raw.batch = size(items);
        self
    }

    /// From one item of X to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).stride_x(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_x(mut self, stride: usize) -> Self {
        self.raw.stride_x = size(stride);
        self
    }

    /// One X for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).batch(4).share_x();
    /// # let _ = problem;
    /// ```
    pub fn share_x(mut self) -> Self {
        self.raw.stride_x = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item of Y to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).stride_y(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_y(mut self, stride: usize) -> Self {
        self.raw.stride_y = size(stride);
        self
    }

    /// One Y for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).batch(4).share_y();
    /// # let _ = problem;
    /// ```
    pub fn share_y(mut self) -> Self {
        self.raw.stride_y = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item of C to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).stride_c(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_c(mut self, stride: usize) -> Self {
        self.raw.stride_c = size(stride);
        self
    }

    /// One C for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).batch(4).use_c().share_c();
    /// # let _ = problem;
    /// ```
    pub fn share_c(mut self) -> Self {
        self.raw.stride_c = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item of D to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).stride_d(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_d(mut self, stride: usize) -> Self {
        self.raw.stride_d = size(stride);
        self
    }

    /// What one scale factor of X covers, for types of eight bits: [`SddmmArgs::scale_x`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).scale_x(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_x(mut self, scale: Scale) -> Self {
        self.raw.scale_x = scale.raw();
        self
    }

    /// What one scale factor of Y covers, for types of eight bits: [`SddmmArgs::scale_y`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Sddmm::new(8).scale_y(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_y(mut self, scale: Scale) -> Self {
        self.raw.scale_y = scale.raw();
        self
    }
}

/// Elements that the problem asks each operand for.
#[derive(Clone, Copy)]
pub(in crate::sddmm) struct Extents {
    pub x: Needed,
    pub y: Needed,
    pub c: Needed,
    pub d: Needed,
    pub scale_x: Needed,
    pub scale_y: Needed,
}

#[cfg(test)]
impl Extents {
    pub fn named(&self) -> Vec<(&'static str, Needed)> {
        vec![
            ("x", self.x),
            ("y", self.y),
            ("c", self.c),
            ("d", self.d),
            ("scale_x", self.scale_x),
            ("scale_y", self.scale_y),
        ]
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
/// let args = sparsek::SddmmArgs::new(&x, &y, &mut d);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (x, mut both) = ([1f32; 4], [1f32; 4]);
/// let args = sparsek::SddmmArgs::new(&x, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct SddmmArgs<'a, X, D = X> {
    pub(super) x: &'a [X],
    pub(super) y: &'a [X],
    pub(super) c: Addend<'a, D>,
    pub(super) d: Target<'a, D>,
    pub(super) scale_x: Option<&'a [f32]>,
    pub(super) scale_y: Option<&'a [f32]>,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// Lengths, not elements.
impl<X, D> fmt::Debug for SddmmArgs<'_, X, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SddmmArgs");
        out.field("x", &self.x.len());
        out.field("y", &self.y.len());
        out.field("d", &self.d.len());
        out.field("c", &self.c);
        out.field("alpha", &self.alpha);
        out.field("beta", &self.beta);
        out.field("scale_x", &self.scale_x.as_ref().map(|scale_x| scale_x.len()));
        out.field("scale_y", &self.scale_y.as_ref().map(|scale_y| scale_y.len()));
        out.finish()
    }
}

impl<'a, X: Product<D>, D: Element> SddmmArgs<'a, X, D> {
    /// X, Y, and D to be written. Alpha is 1.
    ///
    /// ```
    /// let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d);
    /// # let _ = args;
    /// ```
    pub fn new(x: &'a [X], y: &'a [X], d: &'a mut [D]) -> Self {
        SddmmArgs::to(x, y, Target::Slice(d))
    }

    /// As [`SddmmArgs::new`], where nobody wrote D yet. After a run that succeeded the result is in it; what lies
    /// between its lines or items (a leading dimension, a stride) stays unwritten. It cannot be C.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = Vec::<f32>::with_capacity(4);
    /// let args = SddmmArgs::uninit(&[1., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..4]);
    /// pattern.matmul_sampled(&Sddmm::new(1), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: all of them were written.
    /// unsafe { d.set_len(4) };
    /// assert_eq!(d, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(x: &'a [X], y: &'a [X], d: &'a mut [MaybeUninit<D>]) -> Self {
        SddmmArgs::to(x, y, Target::Uninit(d))
    }

    fn to(x: &'a [X], y: &'a [X], d: Target<'a, D>) -> Self {
        SddmmArgs {
            x,
            y,
            d,
            c: Addend::None,
            scale_x: None,
            scale_y: None,
            alpha: 1.0,
            beta: 0.0,
        }
    }

    /// The factor of the product, finite.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).alpha(-2.0);
    /// # let _ = args;
    /// ```
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// C and its factor, for [`Sddmm::use_c`].
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let c = [1f32; 6];
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).c(&c, 0.5);
    /// # let _ = args;
    /// ```
    pub fn c(mut self, c: &'a [D], beta: f64) -> Self {
        (self.c, self.beta) = (Addend::Slice(c), beta);
        self
    }

    /// C is what D holds.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).c_in_place(1.0);
    /// # let _ = args;
    /// ```
    pub fn c_in_place(mut self, beta: f64) -> Self {
        (self.c, self.beta) = (Addend::InPlace, beta);
        self
    }

    /// Factors of X, for [`Sddmm::scale_x`]: those of tiles row by row; item after item where each has a matrix of its
    /// own.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).scale_x(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_x(mut self, scale_x: &'a [f32]) -> Self {
        self.scale_x = Some(scale_x);
        self
    }

    /// Factors of Y, for [`Sddmm::scale_y`]: those of tiles row by row; item after item where each has a matrix of its
    /// own.
    ///
    /// ```
    /// # let (x, y, mut d) = ([1f32; 6], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SddmmArgs::new(&x, &y, &mut d).scale_y(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_y(mut self, scale_y: &'a [f32]) -> Self {
        self.scale_y = Some(scale_y);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    #[inline]
    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_sddmm_args> {
        let mut raw = sized!(spk_sddmm_args, SPK_SDDMM);
        raw.x = input("x", Some(self.x), needed.x)?;
        raw.y = input("y", Some(self.y), needed.y)?;
        raw.d = self.d.pointer("d", needed.d)?;
        raw.c = self.c.pointer("c", &self.d, raw.d, needed.c)?;
        raw.scale_x = input("scale_x", self.scale_x, needed.scale_x)?;
        raw.scale_y = input("scale_y", self.scale_y, needed.scale_y)?;
        raw.alpha = self.alpha;
        raw.beta = self.beta;
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`SddmmPlan::run_pointers`]. Null where the problem
/// has none.
///
/// ```
/// # use sparsek::*;
/// # let (x, y, mut d) = ([1f32, 2.], [3f32, 4.], [0f32; 4]);
/// let pointers = SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
/// # let _ = pointers;
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
    /// Factors of X; null where the problem has none.
    pub scale_x: *const f32,
    /// Factors of Y; null where the problem has none.
    pub scale_y: *const f32,
    /// The factor of the product.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`].
    pub workspace_bytes: usize,
}

impl<X: Product<D>, D: Element> SddmmPointers<X, D> {
    /// A product with alpha 1 and nothing else.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let (x, y, mut d) = ([1f32, 2.], [3f32, 4.], [0f32; 4]);
    /// let pointers = SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(x: *const X, y: *const X, d: *mut D) -> Self {
        SddmmPointers {
            x,
            y,
            d,
            c: ptr::null(),
            scale_x: ptr::null(),
            scale_y: ptr::null(),
            alpha: 1.0,
            beta: 0.0,
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    fn raw(&self) -> sys::spk_sddmm_args {
        let mut raw = sized!(spk_sddmm_args, SPK_SDDMM);
        raw.x = self.x.cast();
        raw.y = self.y.cast();
        raw.c = self.c.cast();
        raw.d = self.d.cast();
        raw.scale_x = self.scale_x.cast();
        raw.scale_y = self.scale_y.cast();
        raw.alpha = self.alpha;
        raw.beta = self.beta;
        (raw.workspace, raw.workspace_bytes) = (self.workspace, self.workspace_bytes);
        raw
    }
}

/// A problem bound to a kernel. It may run in several threads at once.
///
/// ```
/// use sparsek::*;
/// # let context = Context::builder().store_in_memory().build()?;
/// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
/// let plan: SddmmPlan<f32> = pattern.plan_sddmm(&Sddmm::new(1), &TuneOptions::new().estimate())?;
/// let mut d = [0f32; 4];
/// plan.run(SddmmArgs::new(&[1., 2.], &[3., 4.], &mut d))?;
/// assert_eq!(d, [3., 4., 6., 8.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct SddmmPlan<X: Product<D>, D: Element = X> {
    pub(super) plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(X) -> D>,
}

impl<X: Product<D>, D: Element> SddmmPlan<X, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(1), &TuneOptions::new().estimate())?;
    /// let mut d = [0f32; 4];
    /// plan.run(SddmmArgs::new(&[1., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(d, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: SddmmArgs<'_, X, D>) -> Result<()> {
        self.plan.context().check_host()?;
        let raw = args.checked(&self.needed)?;
        // SAFETY: every pointer has the elements of the problem, what is written is borrowed for this alone, the library
        // checks indices, and the workspace is the plan's own.
        unsafe { self.plan.run(&raw, ptr::null_mut()) }
    }

    /// Multiplies on what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// Every pointer that the problem uses is to as many elements as its sizes, leading dimensions and strides span, in
    /// memory of the context's device; what is written overlaps nothing but what may be the same array. Indices on a GPU
    /// are right. The stream is null on the CPU, else one of the device's primary context. All of it, and the plan, stays
    /// until the work is done; without a workspace, no two threads run the plan on one stream at once.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(1), &TuneOptions::new().estimate())?;
    /// let (x, y, mut d) = ([1f32, 2.], [3f32, 4.], [0f32; 4]);
    /// let pointers = SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: X is 2 x 1, Y is 1 x 2, D is one block of 2 x 2.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &SddmmPointers<X, D>, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.plan.run(&pointers.raw(), stream) }
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(1), &TuneOptions::new().estimate())?;
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
        out.field("choice", &self.plan.choice());
        out.field("pattern", self.plan.pattern());
        out.finish_non_exhaustive()
    }
}

impl Pattern {
    /// Binds a problem to a kernel: X and Y of `X`, D of `D`, a type that [`Product`] allows.
    ///
    /// ```
    /// # use sparsek::{*, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_sddmm::<bf16, f32>(&Sddmm::new(1), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_sddmm<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        options: &TuneOptions,
    ) -> Result<SddmmPlan<X, D>> {
        let question = problem.question::<X, D>(self)?;
        let needed = Extents::of(&question);
        Ok(SddmmPlan { plan: question.plan(options)?, needed, types: PhantomData })
    }

    /// Multiplies in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [0f32; 4];
    /// let args = SddmmArgs::new(&[1., 2.], &[3., 4.], &mut d);
    /// pattern.matmul_sampled(&Sddmm::new(1), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn matmul_sampled<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        mut args: SddmmArgs<'_, X, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<X, D>(self)?;
        question.context.check_host()?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: as in SddmmPlan::run.
        unsafe { question.compute(&raw, options) }
    }

    /// As [`Pattern::matmul_sampled`], for what pointers point to. On a GPU the work is on the stream (null: the default one)
    /// when this returns.
    ///
    /// # Safety
    /// As of [`SddmmPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let (x, y, mut d) = ([1f32, 2.], [3f32, 4.], [0f32; 4]);
    /// let pointers = SddmmPointers::new(x.as_ptr(), y.as_ptr(), d.as_mut_ptr());
    /// let (problem, options) = (Sddmm::new(1), TuneOptions::new().estimate());
    /// // SAFETY: X is 2 x 1, Y is 1 x 2, D is one block of 2 x 2.
    /// unsafe { pattern.matmul_sampled_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(d, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn matmul_sampled_pointers<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        pointers: &SddmmPointers<X, D>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<X, D>(self)?;
        let mut raw = pointers.raw();
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { question.compute(&raw, options) }
    }

    /// The result by plain loops with sums in float64, in the order of the values, item after item. Reads the operands
    /// and writes none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [0f32; 4];
    /// let exact = pattern.oracle_sddmm(&Sddmm::new(1), SddmmArgs::new(&[1., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(exact, [3., 4., 6., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_sddmm<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        mut args: SddmmArgs<'_, X, D>,
    ) -> Result<Vec<f64>> {
        let question = problem.question::<X, D>(self)?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: every pointer has the elements of the problem.
        unsafe { question.oracle(&raw, "d") }
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = pattern.tune_sddmm::<f32, f32>(&Sddmm::new(4), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_sddmm<X: Product<D>, D: Element>(&self, problem: &Sddmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<X, D>(self)?.report(options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where
    /// there is none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let error = pattern.explain_sddmm::<f32, f32>(&Sddmm::new(4), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_sddmm<X: Product<D>, D: Element>(&self, problem: &Sddmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<X, D>(self)?.report(options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let report = pattern.list_sddmm::<f32, f32>(&Sddmm::new(4), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_sddmm<X: Product<D>, D: Element>(&self, problem: &Sddmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<X, D>(self)?.report(options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Sddmm::new(512);
    /// let report = pattern.race_sddmm::<f32, f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_sddmm<X: Product<D>, D: Element>(
        &self,
        problem: &Sddmm,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        problem.question::<X, D>(self)?.race(options, race)
    }
}

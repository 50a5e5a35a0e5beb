// Generated from the library's tables by rust/generate.py: do not edit.
use crate::call::Problem;
use crate::error::Result;
use crate::operands::{Addend, Needed, Target, input, output};
use crate::pattern::Pattern;
use crate::plan::{PlanInfo, RawPlan};
use crate::report::Report;
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Activation, Bias, Element, Layout, Product, Scale, size, sized};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use super::Spmm;
use super::fixed::Fixed;

// SAFETY: the struct begins with its size and its operation.
unsafe impl Problem for sys::spk_spmm {
    type Args = sys::spk_spmm_args;
    const OPERATION: sys::spk_operation = sys::SPK_SPMM;
}

impl Spmm {
    /// Takes A transposed.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).transpose_a();
    /// # let _ = problem;
    /// ```
    pub fn transpose_a(mut self) -> Self {
        self.raw.trans_a = sys::SPK_TRANS;
        self
    }

    /// Lets A and B of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    /// The order of elements inside a block of values.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).block_layout(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn block_layout(mut self, layout: Layout) -> Self {
        self.raw.block_layout = layout.raw();
        self
    }

    /// The order of B.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).layout_b(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_b(mut self, layout: Layout) -> Self {
        self.raw.layout_b = layout.raw();
        self
    }

    /// The order of D, C, residual and pre-activation.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).layout_d(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_d(mut self, layout: Layout) -> Self {
        self.raw.layout_d = layout.raw();
        self
    }

    /// Adds beta C: [`SpmmArgs::c`] or [`SpmmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// Leading dimension of B; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).ldb(16);
    /// # let _ = problem;
    /// ```
    pub fn ldb(mut self, ld: usize) -> Self {
        self.raw.ldb = size(ld);
        self
    }

    /// Leading dimension of C; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).ldc(16);
    /// # let _ = problem;
    /// ```
    pub fn ldc(mut self, ld: usize) -> Self {
        self.raw.ldc = size(ld);
        self
    }

    /// Leading dimension of D; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).ldd(16);
    /// # let _ = problem;
    /// ```
    pub fn ldd(mut self, ld: usize) -> Self {
        self.raw.ldd = size(ld);
        self
    }

    /// Leading dimension of the residual; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).ldr(16);
    /// # let _ = problem;
    /// ```
    pub fn ldr(mut self, ld: usize) -> Self {
        self.raw.ldr = size(ld);
        self
    }

    /// Leading dimension of the pre-activation; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).ldp(16);
    /// # let _ = problem;
    /// ```
    pub fn ldp(mut self, ld: usize) -> Self {
        self.raw.ldp = size(ld);
        self
    }

    /// Adds a bias before the activation.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).bias(Bias::PerCol);
    /// # let _ = problem;
    /// ```
    pub fn bias(mut self, bias: Bias) -> Self {
        self.raw.bias = bias.raw();
        self
    }

    /// What is applied to each element.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).activation(Activation::Relu);
    /// # let _ = problem;
    /// ```
    pub fn activation(mut self, activation: Activation) -> Self {
        self.raw.activation = activation.raw();
        self
    }

    /// Adds a residual after the activation.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).residual();
    /// # let _ = problem;
    /// ```
    pub fn residual(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_ADD;
        self
    }

    /// Multiplies with the residual after the activation, element by element.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).factor();
    /// # let _ = problem;
    /// ```
    pub fn factor(mut self) -> Self {
        self.raw.residual = sys::SPK_RESIDUAL_MULTIPLY;
        self
    }

    /// Writes the value before the activation, too.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).keep_preact();
    /// # let _ = problem;
    /// ```
    pub fn keep_preact(mut self) -> Self {
        self.raw.keep_preact = 1;
        self
    }

    /// Products of one pattern, each with arrays of its own.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).batch(16);
    /// # let _ = problem;
    /// ```
    pub fn batch(mut self, items: usize) -> Self {
        self.raw.batch = size(items);
        self
    }

    /// From the values of one item to the next; 0: one A for all.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).stride_a(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_a(mut self, stride: usize) -> Self {
        self.raw.stride_a = size(stride);
        self
    }

    /// From one item of B to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).stride_b(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_b(mut self, stride: usize) -> Self {
        self.raw.stride_b = size(stride);
        self
    }

    /// One B for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).batch(4).share_b();
    /// # let _ = problem;
    /// ```
    pub fn share_b(mut self) -> Self {
        self.raw.stride_b = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item of C to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).stride_c(16);
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
    /// let problem = Spmm::new(8).batch(4).use_c().share_c();
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
    /// let problem = Spmm::new(8).stride_d(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_d(mut self, stride: usize) -> Self {
        self.raw.stride_d = size(stride);
        self
    }

    /// From one item of the residual to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).stride_r(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_r(mut self, stride: usize) -> Self {
        self.raw.stride_r = size(stride);
        self
    }

    /// One residual for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).batch(4).residual().share_residual();
    /// # let _ = problem;
    /// ```
    pub fn share_residual(mut self) -> Self {
        self.raw.stride_r = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item of the pre-activation to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).stride_p(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_p(mut self, stride: usize) -> Self {
        self.raw.stride_p = size(stride);
        self
    }

    /// What one scale factor of the values covers, for types of eight bits: [`SpmmArgs::scale_a`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).scale_a(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_a(mut self, scale: Scale) -> Self {
        self.raw.scale_a = scale.raw();
        self
    }

    /// What one scale factor of B covers, for types of eight bits: [`SpmmArgs::scale_b`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).scale_b(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_b(mut self, scale: Scale) -> Self {
        self.raw.scale_b = scale.raw();
        self
    }

    /// You promise that B holds no infinity and no NaN: candidates that multiply filled-in zeros may win.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).assume_finite(true);
    /// # let _ = problem;
    /// ```
    pub fn assume_finite(mut self, yes: bool) -> Self {
        self.raw.assume_finite = yes.into();
        self
    }

    /// You promise that values change only through [`SpmmPlan::update_values`], so that packing them is free. Runs
    /// ignore those of their arguments then, and [`Pattern::matmul`], which makes no plan to keep, refuses the problem.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Spmm::new(8).static_values(true);
    /// # let _ = problem;
    /// ```
    pub fn static_values(mut self, yes: bool) -> Self {
        self.raw.static_values = yes.into();
        self
    }
}

/// Elements that the problem asks each operand for.
#[derive(Clone, Copy)]
pub(in crate::spmm) struct Extents {
    pub values: Needed,
    pub b: Needed,
    pub c: Needed,
    pub d: Needed,
    pub bias: Needed,
    pub residual: Needed,
    pub preact: Needed,
    pub scale_a: Needed,
    pub scale_b: Needed,
}

#[cfg(test)]
impl Extents {
    pub fn named(&self) -> Vec<(&'static str, Needed)> {
        vec![
            ("values", self.values),
            ("b", self.b),
            ("c", self.c),
            ("d", self.d),
            ("bias", self.bias),
            ("residual", self.residual),
            ("preact", self.preact),
            ("scale_a", self.scale_a),
            ("scale_b", self.scale_b),
        ]
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
/// let args = sparsek::SpmmArgs::new(&values, &b, &mut d);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (values, mut both) = ([1f32; 4], [1f32; 4]);
/// let args = sparsek::SpmmArgs::new(&values, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct SpmmArgs<'a, A, D = A> {
    pub(super) values: &'a [A],
    pub(super) b: &'a [A],
    pub(super) c: Addend<'a, D>,
    pub(super) d: Target<'a, D>,
    pub(super) bias: Option<&'a [D]>,
    pub(super) residual: Addend<'a, D>,
    pub(super) preact: Option<&'a mut [D]>,
    pub(super) scale_a: Option<&'a [f32]>,
    pub(super) scale_b: Option<&'a [f32]>,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// Lengths, not elements.
impl<A, D> fmt::Debug for SpmmArgs<'_, A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SpmmArgs");
        out.field("values", &self.values.len());
        out.field("b", &self.b.len());
        out.field("d", &self.d.len());
        out.field("c", &self.c);
        out.field("bias", &self.bias.as_ref().map(|bias| bias.len()));
        out.field("residual", &self.residual);
        out.field("preact", &self.preact.as_ref().map(|preact| preact.len()));
        out.field("alpha", &self.alpha);
        out.field("beta", &self.beta);
        out.field("scale_a", &self.scale_a.as_ref().map(|scale_a| scale_a.len()));
        out.field("scale_b", &self.scale_b.as_ref().map(|scale_b| scale_b.len()));
        out.finish()
    }
}

impl<'a, A: Product<D>, D: Element> SpmmArgs<'a, A, D> {
    /// The values of all stored blocks, B, and D to be written. Alpha is 1.
    ///
    /// ```
    /// let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d);
    /// # let _ = args;
    /// ```
    pub fn new(values: &'a [A], b: &'a [A], d: &'a mut [D]) -> Self {
        SpmmArgs::to(values, b, Target::Slice(d))
    }

    /// As [`SpmmArgs::new`], where nobody wrote D yet. After a run that succeeded the result is in it; what lies
    /// between its lines or items (a leading dimension, a stride) stays unwritten. It cannot be C or the residual.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = Vec::<f32>::with_capacity(2);
    /// let args = SpmmArgs::uninit(&[1., 0., 0., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..2]);
    /// pattern.matmul(&Spmm::new(1), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: all of them were written.
    /// unsafe { d.set_len(2) };
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(values: &'a [A], b: &'a [A], d: &'a mut [MaybeUninit<D>]) -> Self {
        SpmmArgs::to(values, b, Target::Uninit(d))
    }

    fn to(values: &'a [A], b: &'a [A], d: Target<'a, D>) -> Self {
        SpmmArgs {
            values,
            b,
            d,
            c: Addend::None,
            bias: None,
            residual: Addend::None,
            preact: None,
            scale_a: None,
            scale_b: None,
            alpha: 1.0,
            beta: 0.0,
        }
    }

    /// The factor of the product, finite.
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).alpha(-2.0);
    /// # let _ = args;
    /// ```
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// C and its factor, for [`Spmm::use_c`].
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let c = [1f32; 6];
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).c(&c, 0.5);
    /// # let _ = args;
    /// ```
    pub fn c(mut self, c: &'a [D], beta: f64) -> Self {
        (self.c, self.beta) = (Addend::Slice(c), beta);
        self
    }

    /// C is what D holds: their leading dimensions must be equal.
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).c_in_place(1.0);
    /// # let _ = args;
    /// ```
    pub fn c_in_place(mut self, beta: f64) -> Self {
        (self.c, self.beta) = (Addend::InPlace, beta);
        self
    }

    /// The bias, for [`Spmm::bias`].
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).bias(&[1.0, 2.0]);
    /// # let _ = args;
    /// ```
    pub fn bias(mut self, bias: &'a [D]) -> Self {
        self.bias = Some(bias);
        self
    }

    /// The residual, for [`Spmm::residual`] and [`Spmm::factor`].
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let residual = [1f32; 6];
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).residual(&residual);
    /// # let _ = args;
    /// ```
    pub fn residual(mut self, residual: &'a [D]) -> Self {
        self.residual = Addend::Slice(residual);
        self
    }

    /// The residual is what D holds: their leading dimensions must be equal.
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).residual_in_place();
    /// # let _ = args;
    /// ```
    pub fn residual_in_place(mut self) -> Self {
        self.residual = Addend::InPlace;
        self
    }

    /// Where the value before the activation goes, for [`Spmm::keep_preact`].
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let mut preact = [0f32; 6];
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).preact(&mut preact);
    /// # let _ = args;
    /// ```
    pub fn preact(mut self, preact: &'a mut [D]) -> Self {
        self.preact = Some(preact);
        self
    }

    /// Factors of the values, for [`Spmm::scale_a`]: those of tiles row by row, those of stored blocks in the blocks'
    /// order; item after item where each has a matrix of its own.
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).scale_a(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_a(mut self, scale_a: &'a [f32]) -> Self {
        self.scale_a = Some(scale_a);
        self
    }

    /// Factors of B, for [`Spmm::scale_b`]: those of tiles row by row; item after item where each has a matrix of its
    /// own.
    ///
    /// ```
    /// # let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).scale_b(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_b(mut self, scale_b: &'a [f32]) -> Self {
        self.scale_b = Some(scale_b);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    #[inline]
    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_spmm_args> {
        let mut raw = sized!(spk_spmm_args, SPK_SPMM);
        raw.values = input("values", Some(self.values), needed.values)?;
        raw.b = input("b", Some(self.b), needed.b)?;
        raw.d = self.d.pointer("d", needed.d)?;
        raw.c = self.c.pointer("c", &self.d, raw.d, needed.c)?;
        raw.bias = input("bias", self.bias, needed.bias)?;
        raw.residual = self.residual.pointer("residual", &self.d, raw.d, needed.residual)?;
        raw.preact = output("preact", self.preact.as_deref_mut(), needed.preact)?;
        raw.scale_a = input("scale_a", self.scale_a, needed.scale_a)?;
        raw.scale_b = input("scale_b", self.scale_b, needed.scale_b)?;
        raw.alpha = self.alpha;
        raw.beta = self.beta;
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`SpmmPlan::run_pointers`]. Null where the problem
/// has none.
///
/// ```
/// # use sparsek::*;
/// # let (values, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
/// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
/// # let _ = pointers;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SpmmPointers<A, D = A> {
    /// Values of all stored blocks.
    pub values: *const A,
    /// B
    pub b: *const A,
    /// C; may be D.
    pub c: *const D,
    /// D
    pub d: *mut D,
    /// The bias.
    pub bias: *const D,
    /// The residual; may be D.
    pub residual: *const D,
    /// Where the value before the activation goes.
    pub preact: *mut D,
    /// Factors of the values; null where the problem has none.
    pub scale_a: *const f32,
    /// Factors of B; null where the problem has none.
    pub scale_b: *const f32,
    /// The factor of the product.
    pub alpha: f64,
    /// The factor of C.
    pub beta: f64,
    /// Null: the plan's own, of which there is one for each stream.
    pub workspace: *mut c_void,
    /// Bytes of the workspace, at least [`PlanInfo::workspace_bytes`].
    pub workspace_bytes: usize,
}

impl<A: Product<D>, D: Element> SpmmPointers<A, D> {
    /// A product with alpha 1 and nothing else.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let (values, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(values: *const A, b: *const A, d: *mut D) -> Self {
        SpmmPointers {
            values,
            b,
            d,
            c: ptr::null(),
            bias: ptr::null(),
            residual: ptr::null(),
            preact: ptr::null_mut(),
            scale_a: ptr::null(),
            scale_b: ptr::null(),
            alpha: 1.0,
            beta: 0.0,
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    fn raw(&self) -> sys::spk_spmm_args {
        let mut raw = sized!(spk_spmm_args, SPK_SPMM);
        raw.values = self.values.cast();
        raw.b = self.b.cast();
        raw.c = self.c.cast();
        raw.d = self.d.cast();
        raw.bias = self.bias.cast();
        raw.residual = self.residual.cast();
        raw.preact = self.preact.cast();
        raw.scale_a = self.scale_a.cast();
        raw.scale_b = self.scale_b.cast();
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
/// let plan: SpmmPlan<f32> = pattern.plan_spmm(&Spmm::new(1), &TuneOptions::new().estimate())?;
/// let mut d = [0f32; 2];
/// plan.run(SpmmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
/// assert_eq!(d, [3., 8.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct SpmmPlan<A: Product<D>, D: Element = A> {
    pub(super) plan: RawPlan,
    needed: Extents,
    pub(super) fixed: Fixed<A>,
    types: PhantomData<fn(A) -> D>,
}

impl<A: Product<D>, D: Element> SpmmPlan<A, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// let mut d = [0f32; 2];
    /// plan.run(SpmmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: SpmmArgs<'_, A, D>) -> Result<()> {
        self.plan.context().check_host()?;
        self.fixed.check()?;
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
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// let (values, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is one block of 2 x 2, B and D are 2 x 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &SpmmPointers<A, D>, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.plan.run(&pointers.raw(), stream) }
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &TuneOptions::new().estimate())?;
    /// assert!(plan.info()?.why.starts_with("estimated"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PlanInfo> {
        self.plan.info()
    }
}

impl<A: Product<D>, D: Element> fmt::Debug for SpmmPlan<A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SpmmPlan");
        out.field("choice", &self.plan.choice());
        out.field("pattern", self.plan.pattern());
        out.field("static_values", &self.fixed.is_static);
        out.finish_non_exhaustive()
    }
}

impl Pattern {
    /// Binds a problem to a kernel: A and B of `A`, D of `D`, a type that [`Product`] allows.
    ///
    /// ```
    /// # use sparsek::{*, half::bf16};
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
        let question = problem.question::<A, D>(self)?;
        let mut needed = Extents::of(&question);
        let fixed = Fixed::of(&question.problem, &mut needed);
        Ok(SpmmPlan { plan: question.plan(options)?, needed, fixed, types: PhantomData })
    }

    /// Multiplies in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [0f32; 2];
    /// let args = SpmmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d);
    /// pattern.matmul(&Spmm::new(1), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn matmul<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        mut args: SpmmArgs<'_, A, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<A, D>(self)?;
        question.context.check_host()?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: as in SpmmPlan::run.
        unsafe { question.compute(&raw, options) }
    }

    /// As [`Pattern::matmul`], for what pointers point to. On a GPU the work is on the stream (null: the default one)
    /// when this returns.
    ///
    /// # Safety
    /// As of [`SpmmPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let (values, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// let (problem, options) = (Spmm::new(1), TuneOptions::new().estimate());
    /// // SAFETY: A is one block of 2 x 2, B and D are 2 x 1.
    /// unsafe { pattern.matmul_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn matmul_pointers<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        pointers: &SpmmPointers<A, D>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<A, D>(self)?;
        let mut raw = pointers.raw();
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { question.compute(&raw, options) }
    }

    /// The result by plain loops with sums in float64, row-major, item after item. Reads the operands and writes none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [0f32; 2];
    /// let exact = pattern.oracle_spmm(&Spmm::new(1), SpmmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(exact, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        mut args: SpmmArgs<'_, A, D>,
    ) -> Result<Vec<f64>> {
        let question = problem.question::<A, D>(self)?;
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
    /// let report = pattern.tune_spmm::<f32, f32>(&Spmm::new(4), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where
    /// there is none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let error = pattern.explain_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let report = pattern.list_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Spmm::new(512);
    /// let report = pattern.race_spmm::<f32, f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        problem.question::<A, D>(self)?.race(options, race)
    }
}

// Generated from the library's tables by rust/generate.py: do not edit.
use crate::call::Problem;
use crate::context::Context;
use crate::error::Result;
use crate::operands::{Addend, Needed, Target, input, output};
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
use super::Gemm;

// SAFETY: the struct begins with its size and its operation.
unsafe impl Problem for sys::spk_gemm {
    type Args = sys::spk_gemm_args;
    const OPERATION: sys::spk_operation = sys::SPK_GEMM;
}

impl Gemm {
    /// Lets A and B of float32 be rounded to ten bits behind the point (TF32).
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).tf32();
    /// # let _ = problem;
    /// ```
    pub fn tf32(mut self) -> Self {
        self.raw.compute = sys::SPK_TF32;
        self
    }

    /// Takes A transposed: its array is `k` x `m`.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).transpose_a();
    /// # let _ = problem;
    /// ```
    pub fn transpose_a(mut self) -> Self {
        self.raw.trans_a = sys::SPK_TRANS;
        self
    }

    /// Takes B transposed: its array is `n` x `k`.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).transpose_b();
    /// # let _ = problem;
    /// ```
    pub fn transpose_b(mut self) -> Self {
        self.raw.trans_b = sys::SPK_TRANS;
        self
    }

    /// The order of A's array, as it is before a transposition.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).layout_a(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_a(mut self, layout: Layout) -> Self {
        self.raw.layout_a = layout.raw();
        self
    }

    /// The order of B's array, as it is before a transposition.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).layout_b(Layout::ColMajor);
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
    /// let problem = Gemm::new(8, 8, 8).layout_d(Layout::ColMajor);
    /// # let _ = problem;
    /// ```
    pub fn layout_d(mut self, layout: Layout) -> Self {
        self.raw.layout_d = layout.raw();
        self
    }

    /// Adds beta C: [`GemmArgs::c`] or [`GemmArgs::c_in_place`] must be given.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).use_c();
    /// # let _ = problem;
    /// ```
    pub fn use_c(mut self) -> Self {
        self.raw.use_c = 1;
        self
    }

    /// Leading dimension of A; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).lda(16);
    /// # let _ = problem;
    /// ```
    pub fn lda(mut self, ld: usize) -> Self {
        self.raw.lda = size(ld);
        self
    }

    /// Leading dimension of B; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).ldb(16);
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
    /// let problem = Gemm::new(8, 8, 8).ldc(16);
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
    /// let problem = Gemm::new(8, 8, 8).ldd(16);
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
    /// let problem = Gemm::new(8, 8, 8).ldr(16);
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
    /// let problem = Gemm::new(8, 8, 8).ldp(16);
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
    /// let problem = Gemm::new(8, 8, 8).bias(Bias::PerCol);
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
    /// let problem = Gemm::new(8, 8, 8).activation(Activation::Relu);
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
    /// let problem = Gemm::new(8, 8, 8).residual();
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
    /// let problem = Gemm::new(8, 8, 8).factor();
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
    /// let problem = Gemm::new(8, 8, 8).keep_preact();
    /// # let _ = problem;
    /// ```
    pub fn keep_preact(mut self) -> Self {
        self.raw.keep_preact = 1;
        self
    }

    /// Products at once, each with arrays of its own.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).batch(16);
    /// # let _ = problem;
    /// ```
    pub fn batch(mut self, items: usize) -> Self {
        self.raw.batch = size(items);
        self
    }

    /// From one item (or group) of A to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_a(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_a(mut self, stride: usize) -> Self {
        self.raw.stride_a = size(stride);
        self
    }

    /// One A for all items of the batch.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).batch(4).share_a();
    /// # let _ = problem;
    /// ```
    pub fn share_a(mut self) -> Self {
        self.raw.stride_a = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item (or group) of B to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_b(16);
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
    /// let problem = Gemm::new(8, 8, 8).batch(4).share_b();
    /// # let _ = problem;
    /// ```
    pub fn share_b(mut self) -> Self {
        self.raw.stride_b = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item (or group) of C to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_c(16);
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
    /// let problem = Gemm::new(8, 8, 8).batch(4).use_c().share_c();
    /// # let _ = problem;
    /// ```
    pub fn share_c(mut self) -> Self {
        self.raw.stride_c = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item (or group) of D to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_d(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_d(mut self, stride: usize) -> Self {
        self.raw.stride_d = size(stride);
        self
    }

    /// From one item (or group) of the residual to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_r(16);
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
    /// let problem = Gemm::new(8, 8, 8).batch(4).residual().share_residual();
    /// # let _ = problem;
    /// ```
    pub fn share_residual(mut self) -> Self {
        self.raw.stride_r = sys::SPK_STRIDE_SHARED;
        self
    }

    /// From one item (or group) of the pre-activation to the next; 0: tight.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).stride_p(16);
    /// # let _ = problem;
    /// ```
    pub fn stride_p(mut self, stride: usize) -> Self {
        self.raw.stride_p = size(stride);
        self
    }

    /// What one scale factor of A covers, for types of eight bits: [`GemmArgs::scale_a`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).scale_a(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_a(mut self, scale: Scale) -> Self {
        self.raw.scale_a = scale.raw();
        self
    }

    /// What one scale factor of B covers, for types of eight bits: [`GemmArgs::scale_b`] has them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).scale_b(Scale::Whole);
    /// # let _ = problem;
    /// ```
    pub fn scale_b(mut self, scale: Scale) -> Self {
        self.raw.scale_b = scale.raw();
        self
    }

    /// You promise that A, B and the bias hold no infinity and no NaN: candidates may win that are right without them.
    ///
    /// ```
    /// # use sparsek::*;
    /// let problem = Gemm::new(8, 8, 8).assume_finite(true);
    /// # let _ = problem;
    /// ```
    pub fn assume_finite(mut self, yes: bool) -> Self {
        self.raw.assume_finite = yes.into();
        self
    }
}

/// Elements that the problem asks each operand for.
#[derive(Clone, Copy)]
pub(in crate::gemm) struct Extents {
    pub a: Needed,
    pub b: Needed,
    pub c: Needed,
    pub d: Needed,
    pub bias: Needed,
    pub residual: Needed,
    pub preact: Needed,
    pub offsets: Needed,
    pub scale_a: Needed,
    pub scale_b: Needed,
}

#[cfg(test)]
impl Extents {
    pub fn named(&self) -> Vec<(&'static str, Needed)> {
        vec![
            ("a", self.a),
            ("b", self.b),
            ("c", self.c),
            ("d", self.d),
            ("bias", self.bias),
            ("residual", self.residual),
            ("preact", self.preact),
            ("offsets", self.offsets),
            ("scale_a", self.scale_a),
            ("scale_b", self.scale_b),
        ]
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
/// let args = sparsek::GemmArgs::new(&a, &b, &mut d);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (a, mut both) = ([1f32; 4], [1f32; 4]);
/// let args = sparsek::GemmArgs::new(&a, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct GemmArgs<'a, A, D = A> {
    pub(super) a: &'a [A],
    pub(super) b: &'a [A],
    pub(super) c: Addend<'a, D>,
    pub(super) d: Target<'a, D>,
    pub(super) bias: Option<&'a [D]>,
    pub(super) residual: Addend<'a, D>,
    pub(super) preact: Option<&'a mut [D]>,
    pub(super) offsets: Option<&'a [i32]>,
    pub(super) scale_a: Option<&'a [f32]>,
    pub(super) scale_b: Option<&'a [f32]>,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// Lengths, not elements.
impl<A, D> fmt::Debug for GemmArgs<'_, A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("GemmArgs");
        out.field("a", &self.a.len());
        out.field("b", &self.b.len());
        out.field("d", &self.d.len());
        out.field("c", &self.c);
        out.field("bias", &self.bias.as_ref().map(|bias| bias.len()));
        out.field("residual", &self.residual);
        out.field("preact", &self.preact.as_ref().map(|preact| preact.len()));
        out.field("alpha", &self.alpha);
        out.field("beta", &self.beta);
        out.field("offsets", &self.offsets.as_ref().map(|offsets| offsets.len()));
        out.field("scale_a", &self.scale_a.as_ref().map(|scale_a| scale_a.len()));
        out.field("scale_b", &self.scale_b.as_ref().map(|scale_b| scale_b.len()));
        out.finish()
    }
}

impl<'a, A: Product<D>, D: Element> GemmArgs<'a, A, D> {
    /// A, B, and D to be written. Alpha is 1.
    ///
    /// ```
    /// let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d);
    /// # let _ = args;
    /// ```
    pub fn new(a: &'a [A], b: &'a [A], d: &'a mut [D]) -> Self {
        GemmArgs::to(a, b, Target::Slice(d))
    }

    /// As [`GemmArgs::new`], where nobody wrote D yet. After a run that succeeded the result is in it; what lies
    /// between its lines or items (a leading dimension, a stride), or behind the last group, stays unwritten. It cannot
    /// be C or the residual.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut d = Vec::<f32>::with_capacity(2);
    /// let args = GemmArgs::uninit(&[1., 0., 0., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..2]);
    /// context.gemm(&Gemm::new(2, 1, 2), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: all of them were written.
    /// unsafe { d.set_len(2) };
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(a: &'a [A], b: &'a [A], d: &'a mut [MaybeUninit<D>]) -> Self {
        GemmArgs::to(a, b, Target::Uninit(d))
    }

    fn to(a: &'a [A], b: &'a [A], d: Target<'a, D>) -> Self {
        GemmArgs {
            a,
            b,
            d,
            c: Addend::None,
            bias: None,
            residual: Addend::None,
            preact: None,
            offsets: None,
            scale_a: None,
            scale_b: None,
            alpha: 1.0,
            beta: 0.0,
        }
    }

    /// The factor of the product, finite.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).alpha(-2.0);
    /// # let _ = args;
    /// ```
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// C and its factor, for [`Gemm::use_c`].
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let c = [1f32; 6];
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).c(&c, 0.5);
    /// # let _ = args;
    /// ```
    pub fn c(mut self, c: &'a [D], beta: f64) -> Self {
        (self.c, self.beta) = (Addend::Slice(c), beta);
        self
    }

    /// C is what D holds: their leading dimensions must be equal.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).c_in_place(1.0);
    /// # let _ = args;
    /// ```
    pub fn c_in_place(mut self, beta: f64) -> Self {
        (self.c, self.beta) = (Addend::InPlace, beta);
        self
    }

    /// The bias, for [`Gemm::bias`].
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).bias(&[1.0, 2.0]);
    /// # let _ = args;
    /// ```
    pub fn bias(mut self, bias: &'a [D]) -> Self {
        self.bias = Some(bias);
        self
    }

    /// The residual, for [`Gemm::residual`] and [`Gemm::factor`].
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let residual = [1f32; 6];
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).residual(&residual);
    /// # let _ = args;
    /// ```
    pub fn residual(mut self, residual: &'a [D]) -> Self {
        self.residual = Addend::Slice(residual);
        self
    }

    /// The residual is what D holds: their leading dimensions must be equal.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).residual_in_place();
    /// # let _ = args;
    /// ```
    pub fn residual_in_place(mut self) -> Self {
        self.residual = Addend::InPlace;
        self
    }

    /// Where the value before the activation goes, for [`Gemm::keep_preact`].
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let mut preact = [0f32; 6];
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).preact(&mut preact);
    /// # let _ = args;
    /// ```
    pub fn preact(mut self, preact: &'a mut [D]) -> Self {
        self.preact = Some(preact);
        self
    }

    /// Where each group ends, ascending, for [`Gemm::groups`]; the first begins at 0. What lies behind the last end
    /// takes no part.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).offsets(&[2, 2, 4]);
    /// # let _ = args;
    /// ```
    pub fn offsets(mut self, offsets: &'a [i32]) -> Self {
        self.offsets = Some(offsets);
        self
    }

    /// Factors of A, for [`Gemm::scale_a`]: those of tiles row by row; item after item where each has a matrix of its
    /// own.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).scale_a(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_a(mut self, scale_a: &'a [f32]) -> Self {
        self.scale_a = Some(scale_a);
        self
    }

    /// Factors of B, for [`Gemm::scale_b`]: those of tiles row by row; item after item where each has a matrix of its
    /// own.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).scale_b(&[1.0; 6]);
    /// # let _ = args;
    /// ```
    pub fn scale_b(mut self, scale_b: &'a [f32]) -> Self {
        self.scale_b = Some(scale_b);
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says.
    #[inline]
    fn checked(&mut self, needed: &Extents) -> Result<sys::spk_gemm_args> {
        let mut raw = sized!(spk_gemm_args, SPK_GEMM);
        raw.a = input("a", Some(self.a), needed.a)?;
        raw.b = input("b", Some(self.b), needed.b)?;
        raw.d = self.d.pointer("d", needed.d)?;
        raw.c = self.c.pointer("c", &self.d, raw.d, needed.c)?;
        raw.bias = input("bias", self.bias, needed.bias)?;
        raw.residual = self.residual.pointer("residual", &self.d, raw.d, needed.residual)?;
        raw.preact = output("preact", self.preact.as_deref_mut(), needed.preact)?;
        raw.offsets = input("offsets", self.offsets, needed.offsets)?;
        raw.scale_a = input("scale_a", self.scale_a, needed.scale_a)?;
        raw.scale_b = input("scale_b", self.scale_b, needed.scale_b)?;
        raw.alpha = self.alpha;
        raw.beta = self.beta;
        Ok(raw)
    }
}

/// The operands of a run in the memory of the context's device, for [`GemmPlan::run_pointers`]. Null where the problem
/// has none.
///
/// ```
/// # use sparsek::*;
/// # let (a, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
/// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
/// # let _ = pointers;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GemmPointers<A, D = A> {
    /// A
    pub a: *const A,
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
    /// Where each group ends; on a GPU nobody checks it.
    pub offsets: *const i32,
    /// Factors of A; null where the problem has none.
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

impl<A: Product<D>, D: Element> GemmPointers<A, D> {
    /// A product with alpha 1 and nothing else.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let (a, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// # let _ = pointers;
    /// ```
    pub fn new(a: *const A, b: *const A, d: *mut D) -> Self {
        GemmPointers {
            a,
            b,
            d,
            c: ptr::null(),
            bias: ptr::null(),
            residual: ptr::null(),
            preact: ptr::null_mut(),
            offsets: ptr::null(),
            scale_a: ptr::null(),
            scale_b: ptr::null(),
            alpha: 1.0,
            beta: 0.0,
            workspace: ptr::null_mut(),
            workspace_bytes: 0,
        }
    }

    fn raw(&self) -> sys::spk_gemm_args {
        let mut raw = sized!(spk_gemm_args, SPK_GEMM);
        raw.a = self.a.cast();
        raw.b = self.b.cast();
        raw.c = self.c.cast();
        raw.d = self.d.cast();
        raw.bias = self.bias.cast();
        raw.residual = self.residual.cast();
        raw.preact = self.preact.cast();
        raw.offsets = self.offsets.cast();
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
/// let plan: GemmPlan<f32> = context.plan_gemm(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
/// let mut d = [0f32; 2];
/// plan.run(GemmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
/// assert_eq!(d, [3., 8.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct GemmPlan<A: Product<D>, D: Element = A> {
    pub(super) plan: RawPlan,
    needed: Extents,
    types: PhantomData<fn(A) -> D>,
}

impl<A: Product<D>, D: Element> GemmPlan<A, D> {
    /// Multiplies, on the CPU.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<f32, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// let mut d = [0f32; 2];
    /// plan.run(GemmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn run(&self, mut args: GemmArgs<'_, A, D>) -> Result<()> {
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
    /// let plan = context.plan_gemm::<f32, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// let (a, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is 2 x 2, B and D are 2 x 1.
    /// unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn run_pointers(&self, pointers: &GemmPointers<A, D>, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.plan.run(&pointers.raw(), stream) }
    }

    /// The kernel, and how it was chosen.
    ///
    /// ```
    /// # use sparsek::*;
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
        let mut out = f.debug_struct("GemmPlan");
        out.field("choice", &self.plan.choice());
        out.finish_non_exhaustive()
    }
}

impl Context {
    /// Binds a dense product to a kernel: A and B of `A`, D of `D`, a type that [`Product`] allows.
    ///
    /// ```
    /// # use sparsek::{*, half::bf16};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let plan = context.plan_gemm::<bf16, f32>(&Gemm::new(2, 1, 2), &TuneOptions::new().estimate())?;
    /// # let _ = plan;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn plan_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        options: &TuneOptions,
    ) -> Result<GemmPlan<A, D>> {
        let question = problem.question::<A, D>(self)?;
        let needed = Extents::of(&question);
        Ok(GemmPlan { plan: question.plan(options)?, needed, types: PhantomData })
    }

    /// Multiplies in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut d = [0f32; 2];
    /// let args = GemmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d);
    /// context.gemm(&Gemm::new(2, 1, 2), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        mut args: GemmArgs<'_, A, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<A, D>(self)?;
        question.context.check_host()?;
        let raw = args.checked(&Extents::of(&question))?;
        // SAFETY: as in GemmPlan::run.
        unsafe { question.compute(&raw, options) }
    }

    /// As [`Context::gemm`], for what pointers point to. On a GPU the work is on the stream (null: the default one)
    /// when this returns.
    ///
    /// # Safety
    /// As of [`GemmPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (a, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// let (problem, options) = (Gemm::new(2, 1, 2), TuneOptions::new().estimate());
    /// // SAFETY: A is 2 x 2, B and D are 2 x 1.
    /// unsafe { context.gemm_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn gemm_pointers<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        pointers: &GemmPointers<A, D>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let question = problem.question::<A, D>(self)?;
        let mut raw = pointers.raw();
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { question.compute(&raw, options) }
    }

    /// The result by plain loops with sums in float64, row-major, item after item; what lies behind the last group is
    /// 0. Reads the operands and writes none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut d = [0f32; 2];
    /// let exact = context.oracle_gemm(&Gemm::new(2, 1, 2), GemmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d))?;
    /// assert_eq!(exact, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        mut args: GemmArgs<'_, A, D>,
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
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where
    /// there is none.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let error = context.explain_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.list_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        problem.question::<A, D>(self)?.report(options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::*;
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Gemm::new(512, 512, 512);
    /// let report = context.race_gemm::<f32, f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        problem.question::<A, D>(self)?.race(options, race)
    }
}

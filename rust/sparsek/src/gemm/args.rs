//! Operands in host memory, checked against the problem.
use crate::error::Result;
use crate::extent::{Strided, check_length};
use crate::operands::{Addend, Target};
use crate::sys;
use crate::types::{Element, Product, sized};
use std::fmt;
use std::mem::MaybeUninit;

/// Elements that each operand needs; `None` where no memory holds them.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    a: Option<usize>,
    b: Option<usize>,
    c: Option<usize>,
    pub d: Option<usize>,
    bias: Option<usize>,
    residual: Option<usize>,
    preact: Option<usize>,
    offsets: Option<usize>,
    use_c: bool,
    use_bias: bool,
    use_residual: bool,
    keep_preact: bool,
}

/// Items of an operand: of the batch, or one for each group where `axis` is the cut one.
fn items_of(problem: &sys::spk_gemm, axis: sys::spk_group_axis) -> i64 {
    match problem.group_axis {
        sys::SPK_GROUP_NONE => problem.batch,
        cut if cut == axis => problem.groups,
        _ => 1,
    }
}

/// Of D, which has an item for each group along the depth.
pub(super) fn items_of_d(problem: &sys::spk_gemm) -> i64 {
    items_of(problem, sys::SPK_GROUP_DEPTH)
}

impl Extents {
    #[inline]
    pub fn of(problem: &sys::spk_gemm) -> Extents {
        let (m, n, k) = (problem.m, problem.n, problem.k);
        let array = |trans, rows, cols| if trans == sys::SPK_TRANS { (cols, rows) } else { (rows, cols) };
        let (rows, cols) = array(problem.trans_a, m, k);
        let a = Strided { rows, cols, layout: problem.layout_a, ld: problem.lda, stride: problem.stride_a };
        let (rows, cols) = array(problem.trans_b, k, n);
        let b = Strided { rows, cols, layout: problem.layout_b, ld: problem.ldb, stride: problem.stride_b };
        let product = |ld, stride| {
            let like_d = Strided { rows: m, cols: n, layout: problem.layout_d, ld, stride };
            like_d.elements(items_of_d(problem))
        };
        let (of_bias, own) = match problem.bias {
            sys::SPK_BIAS_PER_ROW => (m, problem.group_axis == sys::SPK_GROUP_COLS),
            _ => (n, problem.group_axis == sys::SPK_GROUP_ROWS),
        };
        let lines = if own { problem.groups } else { 1 };
        Extents {
            a: a.elements(items_of(problem, sys::SPK_GROUP_COLS)),
            b: b.elements(items_of(problem, sys::SPK_GROUP_ROWS)),
            c: product(problem.ldc, problem.stride_c),
            d: product(problem.ldd, problem.stride_d),
            bias: of_bias.checked_mul(lines).and_then(|bias| usize::try_from(bias).ok()),
            residual: product(problem.ldr, problem.stride_r),
            preact: product(problem.ldp, problem.stride_p),
            offsets: usize::try_from(problem.groups).ok(),
            use_c: problem.use_c != 0,
            use_bias: problem.bias != sys::SPK_BIAS_NONE,
            use_residual: problem.residual != sys::SPK_RESIDUAL_NONE,
            keep_preact: problem.keep_preact != 0,
        }
    }
}

/// The operands of a run in host memory.
///
/// ```
/// let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
/// let args = sparsek::GemmArgs::new(&a, &b, &mut d).alpha(0.5);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (a, mut both) = ([1f32; 4], [1f32; 6]);
/// let args = sparsek::GemmArgs::new(&a, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct GemmArgs<'a, A, D = A> {
    a: &'a [A],
    b: &'a [A],
    c: Addend<'a, D>,
    d: Target<'a, D>,
    bias: Option<&'a [D]>,
    residual: Addend<'a, D>,
    preact: Option<&'a mut [D]>,
    offsets: &'a [i32],
    alpha: f64,
    beta: f64,
}

/// Lengths, not elements.
impl<A, D> fmt::Debug for GemmArgs<'_, A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("GemmArgs");
        out.field("a", &self.a.len()).field("b", &self.b.len()).field("d", &self.d.len());
        out.field("c", &self.c).field("bias", &self.bias.map(<[D]>::len)).field("residual", &self.residual);
        out.field("preact", &self.preact.as_ref().map(|preact| preact.len())).field("offsets", &self.offsets.len());
        out.field("alpha", &self.alpha).field("beta", &self.beta).finish()
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

    /// As [`GemmArgs::new`], with a D that nobody wrote yet. After a run that succeeded the product is in it; what lies between
    /// its lines or items (a leading dimension, a stride), or behind the last group, stays unwritten. It cannot be C or the
    /// residual.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut d = Vec::with_capacity(2);
    /// let args = GemmArgs::uninit(&[1f32, 0., 0., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..2]);
    /// context.gemm(&Gemm::new(2, 1, 2), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: the product of 2 x 1 elements was written.
    /// unsafe { d.set_len(2) };
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(a: &'a [A], b: &'a [A], d: &'a mut [MaybeUninit<D>]) -> Self {
        GemmArgs::to(a, b, Target::Uninit(d))
    }

    fn to(a: &'a [A], b: &'a [A], d: Target<'a, D>) -> Self {
        let (c, residual) = (Addend::None, Addend::None);
        GemmArgs { a, b, c, d, bias: None, residual, preact: None, offsets: &[], alpha: 1.0, beta: 0.0 }
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

    /// C and its factor, for [`Gemm::use_c`](crate::Gemm::use_c).
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

    /// C is what D holds, for [`Gemm::use_c`](crate::Gemm::use_c): their leading dimensions must be equal.
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

    /// The bias, for [`Gemm::bias`](crate::Gemm::bias).
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).bias(&[1.0, 2.0, 3.0]);
    /// # let _ = args;
    /// ```
    pub fn bias(mut self, bias: &'a [D]) -> Self {
        self.bias = Some(bias);
        self
    }

    /// The residual, for [`Gemm::residual`](crate::Gemm::residual) and [`Gemm::factor`](crate::Gemm::factor).
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

    /// Where the value before the activation goes, for [`Gemm::keep_preact`](crate::Gemm::keep_preact).
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

    /// Where each group ends, ascending, for [`Gemm::groups`](crate::Gemm::groups); the first begins at 0. What lies behind the
    /// last end takes no part.
    ///
    /// ```
    /// # let (a, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
    /// let args = sparsek::GemmArgs::new(&a, &b, &mut d).offsets(&[2, 2, 4]);
    /// # let _ = args;
    /// ```
    pub fn offsets(mut self, offsets: &'a [i32]) -> Self {
        self.offsets = offsets;
        self
    }

    /// Pointers for the library, every one to as many elements as `needed` says. Operands that the problem does not use are
    /// left out, as their lengths mean nothing.
    #[inline]
    pub(super) fn checked(&mut self, needed: &Extents) -> Result<sys::spk_gemm_args> {
        let mut raw = sized!(spk_gemm_args, SPK_GEMM);
        (raw.alpha, raw.beta) = (self.alpha, self.beta);
        check_length("a", self.a.len(), needed.a)?;
        check_length("b", self.b.len(), needed.b)?;
        check_length("d", self.d.len(), needed.d)?;
        check_length("offsets", self.offsets.len(), needed.offsets)?;
        (raw.a, raw.b) = (self.a.as_ptr().cast(), self.b.as_ptr().cast());
        raw.d = self.d.pointer();
        if needed.offsets != Some(0) {
            raw.offsets = self.offsets.as_ptr().cast();
        }
        if needed.use_c {
            raw.c = self.c.pointer("c", &self.d, raw.d, needed.c)?;
        }
        if needed.use_bias {
            let bias = self.bias.unwrap_or_default();
            check_length("bias", bias.len(), needed.bias)?;
            raw.bias = bias.as_ptr().cast();
        }
        if needed.use_residual {
            raw.residual = self.residual.pointer("residual", &self.d, raw.d, needed.residual)?;
        }
        if needed.keep_preact {
            let preact = self.preact.as_deref_mut().unwrap_or_default();
            check_length("preact", preact.len(), needed.preact)?;
            raw.preact = preact.as_mut_ptr().cast();
        }
        Ok(raw)
    }
}

//! Operands in host memory, checked against the problem.
use crate::error::Result;
use crate::extent::{Strided, check_length, items};
use crate::operands::{Addend, Target};
use crate::pattern::Pattern;
use crate::sys;
use crate::types::{Element, Product, sized};
use std::fmt;
use std::mem::MaybeUninit;

/// Elements that each operand needs; `None` where no memory holds them.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub values: Option<usize>,
    b: Option<usize>,
    c: Option<usize>,
    pub d: Option<usize>,
    bias: Option<usize>,
    residual: Option<usize>,
    preact: Option<usize>,
    use_c: bool,
    use_bias: bool,
    use_residual: bool,
    keep_preact: bool,
}

impl Extents {
    #[inline]
    pub fn of(pattern: &Pattern, problem: &sys::spk_spmm) -> Extents {
        let (rows, cols) = pattern.sizes();
        let (m, k) = if problem.trans_a == sys::SPK_TRANS { (cols, rows) } else { (rows, cols) };
        let batch = problem.batch;
        let product =
            |ld, stride| Strided { rows: m, cols: problem.n, layout: problem.layout_d, ld, stride }.elements(batch);
        let b =
            Strided { rows: k, cols: problem.n, layout: problem.layout_b, ld: problem.ldb, stride: problem.stride_b };
        let bias = if problem.bias == sys::SPK_BIAS_PER_ROW { m } else { problem.n };
        Extents {
            values: items(pattern.values_i64(), problem.stride_a, batch),
            b: b.elements(batch),
            c: product(problem.ldc, problem.stride_c),
            d: product(problem.ldd, problem.stride_d),
            bias: usize::try_from(bias).ok(),
            residual: product(problem.ldr, problem.stride_r),
            preact: product(problem.ldp, problem.stride_p),
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
/// let (values, b, mut d) = ([1f32; 4], [1f32; 6], [0f32; 6]);
/// let args = sparsek::SpmmArgs::new(&values, &b, &mut d).alpha(0.5);
/// # let _ = args;
/// ```
///
/// What is written overlaps no operand:
///
/// ```compile_fail
/// let (values, mut both) = ([1f32; 4], [1f32; 6]);
/// let args = sparsek::SpmmArgs::new(&values, &both, &mut both);
/// # let _ = args;
/// ```
#[must_use]
pub struct SpmmArgs<'a, A, D = A> {
    values: &'a [A],
    b: &'a [A],
    c: Addend<'a, D>,
    d: Target<'a, D>,
    bias: Option<&'a [D]>,
    residual: Addend<'a, D>,
    preact: Option<&'a mut [D]>,
    alpha: f64,
    beta: f64,
}

/// Lengths, not elements.
impl<A, D> fmt::Debug for SpmmArgs<'_, A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SpmmArgs");
        out.field("values", &self.values.len()).field("b", &self.b.len()).field("d", &self.d.len());
        out.field("c", &self.c).field("bias", &self.bias.map(<[D]>::len)).field("residual", &self.residual);
        out.field("preact", &self.preact.as_ref().map(|preact| preact.len()));
        out.field("alpha", &self.alpha).field("beta", &self.beta).finish()
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

    /// As [`SpmmArgs::new`], with a D that nobody wrote yet. After a run that succeeded the product is in it; what lies between
    /// its lines or items (a leading dimension, a stride) stays unwritten. It cannot be C or the residual.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = Vec::with_capacity(2);
    /// let args = SpmmArgs::uninit(&[1f32, 0., 0., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..2]);
    /// pattern.matmul(&Spmm::new(1), args, &TuneOptions::new().estimate())?;
    /// // SAFETY: the product of 2 x 1 elements was written.
    /// unsafe { d.set_len(2) };
    /// assert_eq!(d, [3., 8.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn uninit(values: &'a [A], b: &'a [A], d: &'a mut [MaybeUninit<D>]) -> Self {
        SpmmArgs::to(values, b, Target::Uninit(d))
    }

    fn to(values: &'a [A], b: &'a [A], d: Target<'a, D>) -> Self {
        let (c, residual) = (Addend::None, Addend::None);
        SpmmArgs { values, b, c, d, bias: None, residual, preact: None, alpha: 1.0, beta: 0.0 }
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

    /// C and its factor, for [`Spmm::use_c`](crate::Spmm::use_c).
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

    /// C is what D holds, for [`Spmm::use_c`](crate::Spmm::use_c): their leading dimensions must be equal.
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

    /// The bias, for [`Spmm::bias`](crate::Spmm::bias).
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

    /// The residual, for [`Spmm::residual`](crate::Spmm::residual) and [`Spmm::factor`](crate::Spmm::factor).
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

    /// Where the value before the activation goes, for [`Spmm::keep_preact`](crate::Spmm::keep_preact).
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

    /// Pointers for the library, every one to as many elements as `needed` says. Operands that the problem does not use are
    /// left out, as their lengths mean nothing.
    #[inline]
    pub(super) fn checked(&mut self, needed: &Extents, values_kept: bool) -> Result<sys::spk_spmm_args> {
        let mut raw = sized!(spk_spmm_args, SPK_SPMM);
        (raw.alpha, raw.beta) = (self.alpha, self.beta);
        if !values_kept {
            check_length("values", self.values.len(), needed.values)?;
            raw.values = self.values.as_ptr().cast();
        }
        check_length("b", self.b.len(), needed.b)?;
        check_length("d", self.d.len(), needed.d)?;
        raw.b = self.b.as_ptr().cast();
        raw.d = self.d.pointer();
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

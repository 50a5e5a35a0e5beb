//! Calls without a plan: the product at once, the oracle, reports.
use super::args::{Extents, GemmArgs, items_of_d};
use super::{Gemm, GemmPointers};
use crate::context::Context;
use crate::error::Result;
use crate::report::{Report, ReportCall};
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, Product, count, size};
use std::ffi::c_void;
use std::ptr;

impl Context {
    /// Multiplies dense matrices in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut d = [1f32; 2];
    /// let args = GemmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d).c_in_place(10.0);
    /// context.gemm(&Gemm::new(2, 1, 2).use_c(), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [13., 18.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        mut args: GemmArgs<'_, A, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        self.check_host()?;
        let raw_problem = problem.typed::<A, D>();
        let raw = args.checked(&Extents::of(&raw_problem))?;
        // SAFETY: as in GemmPlan::run and Context::plan_gemm.
        unsafe { self.compute_gemm(&raw_problem, &raw, options) }
    }

    /// As [`Context::gemm`], for what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// As of [`GemmPlan::run_pointers`](crate::GemmPlan::run_pointers).
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (a, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = GemmPointers::new(a.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is 2 x 2, B and D are 2 x 1.
    /// unsafe { context.gemm_pointers(&Gemm::new(2, 1, 2), &pointers, std::ptr::null_mut(), &TuneOptions::new().estimate()) }?;
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
        let mut raw = pointers.raw();
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { self.compute_gemm(&problem.typed::<A, D>(), &raw, options) }
    }

    /// # Safety
    /// The arguments are those of the problem.
    unsafe fn compute_gemm(
        &self,
        problem: &sys::spk_gemm,
        args: &sys::spk_gemm_args,
        options: &TuneOptions,
    ) -> Result<()> {
        let (problem, args, options) = (ptr::from_ref(problem).cast(), ptr::from_ref(args).cast(), options.to_raw()?);
        // SAFETY: as the caller promises.
        self.check(unsafe { sys::spk_compute(self.raw(), ptr::null_mut(), problem, args, &options.raw) })
    }

    /// The product by plain loops with sums in float64, of all rows, row-major, item after item; what lies behind the last
    /// group is 0. Reads the operands of `args` and writes none.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, GemmArgs};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let exact = context.oracle_gemm(&Gemm::new(2, 1, 2), GemmArgs::new(&[1f32; 4], &[0.5; 2], &mut [0f32; 2]))?;
    /// assert_eq!(exact, [1.0, 1.0]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        mut args: GemmArgs<'_, A, D>,
    ) -> Result<Vec<f64>> {
        let raw_problem = problem.typed::<A, D>();
        let needed = Extents::of(&raw_problem);
        let raw = args.checked(&needed)?;
        let mut tolerance = 0.0;
        // SAFETY: as in Context::plan_gemm. It refuses what is no problem, before memory is taken for one.
        let status = unsafe {
            sys::spk_default_tolerance(
                self.raw(),
                ptr::null(),
                (&raw const raw_problem).cast(),
                sys::SPK_FIRST_OUTPUT,
                &mut tolerance,
            )
        };
        self.check(status)?;
        if needed.d == Some(0) {
            return Ok(Vec::new());
        }
        let rows: Vec<i64> = (0..raw_problem.m.saturating_mul(items_of_d(&raw_problem).max(1))).collect();
        let mut out = vec![0f64; rows.len() * count(raw_problem.n)];
        // SAFETY: the operands have the elements of the problem, `out` as many as there are rows of n.
        let status = unsafe {
            sys::spk_oracle(
                self.raw(),
                ptr::null(),
                (&raw const raw_problem).cast(),
                (&raw const raw).cast(),
                sys::SPK_FIRST_OUTPUT,
                rows.as_ptr(),
                size(rows.len()),
                out.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.check(status)?;
        Ok(out)
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        self.report_gemm::<A, D>(problem, options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where there is none.
    ///
    /// ```
    /// # use sparsek::{Context, ErrorKind, Gemm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let error = context.explain_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        self.report_gemm::<A, D>(problem, options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::{Context, Gemm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.list_gemm::<f32, f32>(&Gemm::new(16, 16, 16), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_gemm<A: Product<D>, D: Element>(&self, problem: &Gemm, options: &TuneOptions) -> Result<Report> {
        self.report_gemm::<A, D>(problem, options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::{Context, Gemm, Race, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.race_gemm::<f32, f32>(&Gemm::new(512, 512, 512), &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        let (raw_problem, raw_options, choices) = (problem.typed::<A, D>(), options.to_raw()?, race.text()?);
        let raw_race = crate::report::raw_race(race, choices.as_deref());
        let problem = (&raw const raw_problem).cast();
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_gemm.
            unsafe { sys::spk_race_kernels(self.raw(), ptr::null_mut(), problem, &raw_options.raw, &raw_race, report) }
        })
    }

    fn report_gemm<A: Product<D>, D: Element>(
        &self,
        problem: &Gemm,
        options: &TuneOptions,
        call: ReportCall,
    ) -> Result<Report> {
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        let problem = (&raw const raw_problem).cast();
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_gemm.
            unsafe { call(self.raw(), ptr::null_mut(), problem, &raw_options.raw, report) }
        })
    }
}

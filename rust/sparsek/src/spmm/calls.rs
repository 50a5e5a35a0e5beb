//! Calls without a plan: the product at once, the oracle, reports.
use super::args::{Extents, SpmmArgs};
use super::{Spmm, SpmmPointers};
use crate::error::Result;
use crate::pattern::Pattern;
use crate::report::{Report, ReportCall};
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, Product, count, size};
use std::ffi::c_void;
use std::ptr;

impl Pattern {
    /// Multiplies in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let mut d = [1f32; 2];
    /// let args = SpmmArgs::new(&[1., 0., 0., 2.], &[3., 4.], &mut d).c_in_place(10.0);
    /// pattern.matmul(&Spmm::new(1).use_c(), args, &TuneOptions::new().estimate())?;
    /// assert_eq!(d, [13., 18.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn matmul<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        mut args: SpmmArgs<'_, A, D>,
        options: &TuneOptions,
    ) -> Result<()> {
        let context = self.context();
        context.check_host()?;
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        let raw = args.checked(&Extents::of(self, &raw_problem), false)?;
        // SAFETY: as in SpmmPlan::run and Pattern::plan_spmm.
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

    /// As [`Pattern::matmul`], for what pointers point to. On a GPU the work is on the stream (null: the default one) when this returns.
    ///
    /// # Safety
    /// As of [`SpmmPlan::run_pointers`](crate::SpmmPlan::run_pointers).
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let (values, b, mut d) = ([1f32, 0., 0., 2.], [3f32, 4.], [0f32; 2]);
    /// let pointers = SpmmPointers::new(values.as_ptr(), b.as_ptr(), d.as_mut_ptr());
    /// // SAFETY: A is one block of 2 x 2, B and D are 2 x 1.
    /// unsafe { pattern.matmul_pointers(&Spmm::new(1), &pointers, std::ptr::null_mut(), &TuneOptions::new().estimate()) }?;
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
        let (context, mut raw) = (self.context(), pointers.raw());
        raw.stream = stream;
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        // SAFETY: as the caller promises.
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

    /// The product by plain loops with sums in float64, of all rows, row-major, item after item. Reads the operands of `args`
    /// and writes none.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let exact = pattern.oracle_spmm(&Spmm::new(1), SpmmArgs::new(&[1f32; 4], &[0.5; 2], &mut [0f32; 2]))?;
    /// assert_eq!(exact, [1.0, 1.0]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        mut args: SpmmArgs<'_, A, D>,
    ) -> Result<Vec<f64>> {
        let context = self.context();
        let raw_problem = problem.typed::<A, D>();
        let needed = Extents::of(self, &raw_problem);
        let raw = args.checked(&needed, false)?;
        let mut tolerance = 0.0;
        // SAFETY: as in Pattern::plan_spmm. It refuses what is no problem, before memory is taken for one.
        let status = unsafe {
            sys::spk_default_tolerance(
                context.raw(),
                self.raw(),
                (&raw const raw_problem).cast(),
                sys::SPK_FIRST_OUTPUT,
                &mut tolerance,
            )
        };
        context.check(status)?;
        if needed.d == Some(0) {
            return Ok(Vec::new());
        }
        let m = if raw_problem.trans_a == sys::SPK_TRANS { self.sizes().1 } else { self.sizes().0 };
        let rows: Vec<i64> = (0..m.saturating_mul(raw_problem.batch.max(1))).collect();
        let mut out = vec![0f64; rows.len() * count(raw_problem.n)];
        // SAFETY: the operands have the elements of the problem, `out` as many as there are rows of n.
        let status = unsafe {
            sys::spk_oracle(
                context.raw(),
                self.raw(),
                (&raw const raw_problem).cast(),
                (&raw const raw).cast(),
                sys::SPK_FIRST_OUTPUT,
                rows.as_ptr(),
                size(rows.len()),
                out.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        context.check(status)?;
        Ok(out)
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let options = TuneOptions::new().only("reference,spmm_portable");
    /// let report = pattern.tune_spmm::<f32, f32>(&Spmm::new(4), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        self.report_spmm::<A, D>(problem, options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where there is none.
    ///
    /// ```
    /// # use sparsek::{Context, ErrorKind, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let error = pattern.explain_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        self.report_spmm::<A, D>(problem, options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let report = pattern.list_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new())?;
    /// assert!(report.candidates.iter().any(|candidate| candidate.name == "reference"));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_spmm<A: Product<D>, D: Element>(&self, problem: &Spmm, options: &TuneOptions) -> Result<Report> {
        self.report_spmm::<A, D>(problem, options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::{Context, Pattern, Race, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let report = pattern.race_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        let (raw_problem, raw_options, choices) = (problem.typed::<A, D>(), options.to_raw()?, race.text()?);
        let raw_race = crate::report::raw_race(race, choices.as_deref());
        Report::read(self.context(), |report| {
            // SAFETY: as in Pattern::plan_spmm.
            unsafe {
                let (context, pattern) = (self.context().raw(), self.raw());
                sys::spk_race_kernels(
                    context,
                    pattern,
                    (&raw const raw_problem).cast(),
                    &raw_options.raw,
                    &raw_race,
                    report,
                )
            }
        })
    }

    fn report_spmm<A: Product<D>, D: Element>(
        &self,
        problem: &Spmm,
        options: &TuneOptions,
        call: ReportCall,
    ) -> Result<Report> {
        let (raw_problem, raw_options) = (problem.typed::<A, D>(), options.to_raw()?);
        Report::read(self.context(), |report| {
            // SAFETY: as in Pattern::plan_spmm.
            unsafe { call(self.context().raw(), self.raw(), (&raw const raw_problem).cast(), &raw_options.raw, report) }
        })
    }
}

//! Calls without a plan: attention at once, the oracle, reports.
use super::args::{AttentionArgs, Extents};
use super::{Attention, AttentionPointers};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::report::{Report, ReportCall, raw_race};
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, size};
use std::ffi::c_void;
use std::ptr;

impl Context {
    /// Attention in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// // Two queries of two heads, which share one K and V of three keys; the second key's score is the largest by far.
    /// let (q, k, v, mut o) = ([1f32; 4], [0., 99., 0f32], [1., 5., 2f32], [0f32; 4]);
    /// let problem = Attention::new(2, 3, 1).heads(2).heads_kv(1);
    /// context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o), &TuneOptions::new().estimate())?;
    /// assert_eq!(o, [5.; 4]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn attention<T: Element>(
        &self,
        problem: &Attention,
        mut args: AttentionArgs<'_, T>,
        options: &TuneOptions,
    ) -> Result<()> {
        self.check_host()?;
        let raw_problem = problem.typed::<T>();
        let raw = args.checked(&Extents::of(&raw_problem, problem.mask.as_ref()))?;
        // SAFETY: as in AttentionPlan::run and Context::plan_attention.
        unsafe { self.compute_attention(problem, &raw_problem, &raw, options) }
    }

    /// As [`Context::attention`], for what pointers point to. On a GPU the work is on the stream (null: the default one) when this
    /// returns.
    ///
    /// # Safety
    /// As of [`AttentionPlan::run_pointers`](crate::AttentionPlan::run_pointers).
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionPointers, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (q, k, v, mut o) = ([1f32; 2], [1f32; 2], [1f32, 2.], [0f32; 2]);
    /// let pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// let (problem, options) = (Attention::new(2, 2, 1), TuneOptions::new().estimate());
    /// // SAFETY: two queries and two keys, of depth 1.
    /// unsafe { context.attention_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(o, [1.5, 1.5]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn attention_pointers<T: Element>(
        &self,
        problem: &Attention,
        pointers: &AttentionPointers<T>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let raw_problem = problem.typed::<T>();
        let mut raw = pointers.raw(raw_problem.depth);
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { self.compute_attention(problem, &raw_problem, &raw, options) }
    }

    /// # Safety
    /// The arguments are those of the problem.
    unsafe fn compute_attention(
        &self,
        problem: &Attention,
        raw_problem: &sys::spk_attention,
        args: &sys::spk_attention_args,
        options: &TuneOptions,
    ) -> Result<()> {
        let (pattern, options) = (problem.pattern(self)?, options.to_raw()?);
        let (problem, args) = (ptr::from_ref(raw_problem).cast(), ptr::from_ref(args).cast());
        // SAFETY: as the caller promises.
        self.check(unsafe { sys::spk_compute(self.raw(), pattern, problem, args, &options.raw) })
    }

    /// O by plain loops with sums in float64 (wider for f64), of all rows, item after item, head after head. Reads the operands of
    /// `args` and writes none.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionArgs, Context};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let mut o = [0f32; 2];
    /// let args = AttentionArgs::new(&[0.; 2], &[1.; 4], &[1., 0., 2., 4.], &mut o);
    /// let exact = context.oracle_attention(&Attention::new(1, 2, 2), args)?;
    /// assert_eq!(exact, [1.5, 2.0]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_attention<T: Element>(
        &self,
        problem: &Attention,
        mut args: AttentionArgs<'_, T>,
    ) -> Result<Vec<f64>> {
        let (raw_problem, pattern) = (problem.typed::<T>(), problem.pattern(self)?);
        let needed = Extents::of(&raw_problem, problem.mask.as_ref());
        let raw = args.checked(&needed)?;
        let mut tolerance = 0.0;
        // SAFETY: as in Context::plan_attention. It refuses what is no problem, before memory is taken for one.
        let status = unsafe {
            sys::spk_default_tolerance(
                self.raw(),
                pattern,
                (&raw const raw_problem).cast(),
                sys::SPK_FIRST_OUTPUT,
                &mut tolerance,
            )
        };
        self.check(status)?;
        if needed.o == Some(0) {
            return Ok(Vec::new());
        }
        // Less than 2^62 by then, as rows of O do not overlap.
        let rows = raw_problem.queries * raw_problem.heads.max(1) * raw_problem.batch.max(1);
        let cols = if raw_problem.depth_v != 0 { raw_problem.depth_v } else { raw_problem.depth };
        let rows: Vec<i64> = (0..rows).collect();
        let cols = usize::try_from(cols).map_err(|_| Error::argument("depth_v is no size"))?;
        let mut out = vec![0f64; rows.len() * cols];
        // SAFETY: the operands have the elements of the problem, `out` as many as there are rows of depth_v.
        let status = unsafe {
            sys::spk_oracle(
                self.raw(),
                pattern,
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
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_attention::<f32>(&Attention::new(16, 16, 16), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        self.report_attention::<T>(problem, options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where there is none.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, ErrorKind, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let error = context.explain_attention::<f32>(&Attention::new(16, 16, 16), &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        self.report_attention::<T>(problem, options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let report = context.list_attention::<f32>(&Attention::new(16, 16, 16), &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_attention<T: Element>(&self, problem: &Attention, options: &TuneOptions) -> Result<Report> {
        self.report_attention::<T>(problem, options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::{Attention, Context, Race, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(512, 512, 64).heads(8);
    /// let report = context.race_attention::<f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_attention<T: Element>(
        &self,
        problem: &Attention,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        let (raw_problem, raw_options, choices) = (problem.typed::<T>(), options.to_raw()?, race.text()?);
        let (raw_race, pattern) = (raw_race(race, choices.as_deref()), problem.pattern(self)?);
        let problem = (&raw const raw_problem).cast();
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_attention.
            unsafe { sys::spk_race_kernels(self.raw(), pattern, problem, &raw_options.raw, &raw_race, report) }
        })
    }

    fn report_attention<T: Element>(
        &self,
        problem: &Attention,
        options: &TuneOptions,
        call: ReportCall,
    ) -> Result<Report> {
        let (raw_problem, raw_options, pattern) = (problem.typed::<T>(), options.to_raw()?, problem.pattern(self)?);
        let problem = (&raw const raw_problem).cast();
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_attention.
            unsafe { call(self.raw(), pattern, problem, &raw_options.raw, report) }
        })
    }
}

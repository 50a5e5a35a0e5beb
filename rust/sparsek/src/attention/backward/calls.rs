//! Calls without a plan: gradients at once, the oracle, reports.
use super::args::{AttentionBackwardArgs, Extents};
use super::{AttentionBackward, AttentionBackwardPointers};
use crate::context::Context;
use crate::error::{Error, Result, text};
use crate::report::{Report, ReportCall, raw_race};
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{Element, size, sized};
use std::ffi::{c_int, c_void};
use std::ptr;

impl Context {
    /// Gradients of attention in one call, on the CPU: finds the plan of this problem in the context's cache, or makes it.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardArgs, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// // Two heads share K and V of one key, which they see alone: the gradient by V is the sum of those by O.
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([9f32; 2], [9f32], [9f32]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = AttentionBackwardArgs::new([&[0.; 2], &[1.], &[5.]], (&[5.; 2], &[0.; 2]), &[3., 4.], grads);
    /// let problem = Attention::new(1, 1, 1).heads(2).heads_kv(1).backward();
    /// context.attention_backward(&problem, args, &TuneOptions::new().estimate())?;
    /// assert_eq!((grad_q, grad_k, grad_v), ([0.; 2], [0.], [7.]));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        mut args: AttentionBackwardArgs<'_, T>,
        options: &TuneOptions,
    ) -> Result<()> {
        self.check_host()?;
        let raw_problem = problem.typed::<T>()?;
        let raw = args.checked(&Extents::of::<T>(problem, &raw_problem))?;
        // SAFETY: as in AttentionBackwardPlan::run and Context::plan_attention_backward.
        unsafe { self.compute_attention_backward(problem, &raw_problem, &raw, options) }
    }

    /// As [`Context::attention_backward`], for what pointers point to. On a GPU the work is on the stream (null: the default one) when
    /// this returns.
    ///
    /// # Safety
    /// As of [`AttentionBackwardPlan::run_pointers`](crate::AttentionBackwardPlan::run_pointers).
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardPointers, AttentionPointers, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let (q, k, v, mut o, mut lse, grad_o) = ([1f32], [2f32], [3f32], [3f32], [2f32], [7f32]);
    /// # let (mut grad_q, mut grad_k, mut grad_v) = ([9f32], [9f32], [9f32]);
    /// let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
    /// forward.lse = lse.as_mut_ptr();
    /// let grads = [grad_q.as_mut_ptr(), grad_k.as_mut_ptr(), grad_v.as_mut_ptr()];
    /// let pointers = AttentionBackwardPointers::of(&forward, grad_o.as_ptr(), grads);
    /// let (problem, options) = (Attention::new(1, 1, 1).backward(), TuneOptions::new().estimate());
    /// // SAFETY: one query and one key, of depth 1.
    /// unsafe { context.attention_backward_pointers(&problem, &pointers, std::ptr::null_mut(), &options) }?;
    /// assert_eq!(grad_v, [7.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn attention_backward_pointers<T: Element>(
        &self,
        problem: &AttentionBackward,
        pointers: &AttentionBackwardPointers<T>,
        stream: *mut c_void,
        options: &TuneOptions,
    ) -> Result<()> {
        let raw_problem = problem.typed::<T>()?;
        let mut raw = pointers.raw(raw_problem.depth);
        raw.stream = stream;
        // SAFETY: as the caller promises.
        unsafe { self.compute_attention_backward(problem, &raw_problem, &raw, options) }
    }

    /// # Safety
    /// The arguments are those of the problem.
    unsafe fn compute_attention_backward(
        &self,
        problem: &AttentionBackward,
        raw_problem: &sys::spk_attention_backward,
        args: &sys::spk_attention_backward_args,
        options: &TuneOptions,
    ) -> Result<()> {
        let (pattern, options) = (problem.attention.pattern(self)?, options.to_raw()?);
        let (problem, args) = (ptr::from_ref(raw_problem).cast(), ptr::from_ref(args).cast());
        // SAFETY: as the caller promises.
        self.check(unsafe { sys::spk_compute(self.raw(), pattern, problem, args, &options.raw) })
    }

    /// The gradients by Q, K and V by plain loops with sums in float64 (wider for f64), of all rows, item after item, head after head.
    /// Reads the operands of `args` and writes none.
    ///
    /// ```
    /// # use sparsek::{Attention, AttentionBackwardArgs, Context};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let (mut grad_q, mut grad_k, mut grad_v) = ([0f32], [0f32], [0f32]);
    /// let grads = [&mut grad_q[..], &mut grad_k, &mut grad_v];
    /// let args = AttentionBackwardArgs::new([&[0.], &[1.], &[2.]], (&[2.], &[0.]), &[5.], grads);
    /// let exact = context.oracle_attention_backward(&Attention::new(1, 1, 1).backward(), args)?;
    /// assert_eq!(exact, [vec![0.], vec![0.], vec![5.]]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn oracle_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        mut args: AttentionBackwardArgs<'_, T>,
    ) -> Result<[Vec<f64>; 3]> {
        let (raw_problem, pattern) = (problem.typed::<T>()?, problem.attention.pattern(self)?);
        let raw = args.checked(&Extents::of::<T>(problem, &raw_problem))?;
        let mut tolerance = 0.0;
        // SAFETY: as in Context::plan_attention_backward. It refuses what is no problem, before memory is taken for one.
        let status = unsafe {
            let problem = (&raw const raw_problem).cast();
            sys::spk_default_tolerance(self.raw(), pattern, problem, sys::SPK_FIRST_OUTPUT, &mut tolerance)
        };
        self.check(status)?;
        let p = &raw_problem;
        let heads = p.heads.max(1);
        let heads_kv = if p.heads_kv != 0 { p.heads_kv } else { heads };
        let depth_v = if p.depth_v != 0 { p.depth_v } else { p.depth };
        let of = |name: &str, rows: i64, heads: i64, cols: i64| {
            // Less than 2^62 by then, as rows of a gradient do not overlap.
            let rows: Vec<i64> = (0..rows * heads * p.batch.max(1)).collect();
            let cols = usize::try_from(cols).map_err(|_| Error::argument("a depth is no size"))?;
            let mut out = vec![0f64; rows.len() * cols];
            if out.is_empty() {
                return Ok(out);
            }
            // SAFETY: the operands have the elements of the problem, `out` as many as there are rows of so many columns.
            let status = unsafe {
                sys::spk_oracle(
                    self.raw(),
                    pattern,
                    (&raw const raw_problem).cast(),
                    (&raw const raw).cast(),
                    operand(name)?,
                    rows.as_ptr(),
                    size(rows.len()),
                    out.as_mut_ptr(),
                    ptr::null_mut(),
                )
            };
            self.check(status)?;
            Ok(out)
        };
        Ok([
            of("grad_q", p.queries, heads, p.depth)?,
            of("grad_k", p.keys, heads_kv, p.depth)?,
            of("grad_v", p.keys, heads_kv, depth_v)?,
        ])
    }

    /// Tunes the problem's class, or takes the stored evidence, and tells.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    /// let report = context.tune_attention_backward::<f32>(&Attention::new(16, 16, 16).backward(), &options)?;
    /// println!("{}", report.summary);
    /// assert!(report.chosen().is_some());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn tune_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
    ) -> Result<Report> {
        self.report_attention_backward::<T>(problem, options, sys::spk_tune)
    }

    /// The stored evidence of the problem's class; [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass) where there is none.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, ErrorKind, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(16, 16, 16).backward();
    /// let error = context.explain_attention_backward::<f32>(&problem, &TuneOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::UnknownClass);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn explain_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
    ) -> Result<Report> {
        self.report_attention_backward::<T>(problem, options, sys::spk_explain)
    }

    /// Every candidate of every kernel with the model's time; nothing is run.
    ///
    /// ```
    /// # use sparsek::{Attention, Context, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(16, 16, 16).backward();
    /// let report = context.list_attention_backward::<f32>(&problem, &TuneOptions::new())?;
    /// assert!(!report.candidates.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn list_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
    ) -> Result<Report> {
        self.report_attention_backward::<T>(problem, options, sys::spk_list_candidates)
    }

    /// The whole race: the best parameters of every kernel meet in interleaved rounds.
    ///
    /// ```no_run
    /// # use sparsek::{Attention, Context, Race, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// let problem = Attention::new(512, 512, 64).heads(8).backward();
    /// let report = context.race_attention_backward::<f32>(&problem, &TuneOptions::new(), &Race::default())?;
    /// # let _ = report;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn race_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
        race: &Race,
    ) -> Result<Report> {
        let (raw_problem, raw_options, choices) = (problem.typed::<T>()?, options.to_raw()?, race.text()?);
        let (raw_race, pattern) = (raw_race(race, choices.as_deref()), problem.attention.pattern(self)?);
        let problem = (&raw const raw_problem).cast();
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_attention_backward.
            unsafe { sys::spk_race_kernels(self.raw(), pattern, problem, &raw_options.raw, &raw_race, report) }
        })
    }

    fn report_attention_backward<T: Element>(
        &self,
        problem: &AttentionBackward,
        options: &TuneOptions,
        call: ReportCall,
    ) -> Result<Report> {
        let (raw_problem, raw_options) = (problem.typed::<T>()?, options.to_raw()?);
        let (pattern, problem) = (problem.attention.pattern(self)?, (&raw const raw_problem).cast());
        Report::read(self, |report| {
            // SAFETY: as in Context::plan_attention_backward.
            unsafe { call(self.raw(), pattern, problem, &raw_options.raw, report) }
        })
    }
}

/// The index of an operand by its name in the arguments.
fn operand(name: &str) -> Result<c_int> {
    for index in 0.. {
        let mut info = sized!(spk_operand_info);
        // SAFETY: the struct says its size; names are static.
        let found = unsafe {
            match sys::spk_operation_get_operand(sys::SPK_ATTENTION_BACKWARD, index, &mut info) {
                sys::SPK_OK => text(info.name) == name,
                _ => break,
            }
        };
        if found {
            return Ok(index);
        }
    }
    Err(Error::argument(format!("the library knows no operand {name}")))
}

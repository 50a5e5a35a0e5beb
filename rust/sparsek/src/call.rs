//! What every operation asks of the library.
use crate::context::Context;
use crate::error::{Error, Result, text};
#[cfg(test)]
use crate::operands::Needed;
use crate::pattern::Pattern;
use crate::plan::RawPlan;
use crate::report::{Report, ReportCall, raw_race};
use crate::sys;
use crate::tune::{Race, TuneOptions};
use crate::types::{count, size, sized};
use std::ffi::{c_int, c_void};
use std::ptr;

/// A problem of an operation, as the library takes it.
///
/// # Safety
/// The struct begins with its size and its operation, and `Args` is the struct of that operation's arguments.
pub(crate) unsafe trait Problem: Copy {
    /// Its arrays and scalars.
    type Args: Copy;
    const OPERATION: sys::spk_operation;
}

/// A problem with what it is about. The pattern, where there is one, is of the context.
pub(crate) struct Question<'a, P: Problem> {
    pub context: &'a Context,
    pub pattern: Option<&'a Pattern>,
    pub problem: P,
}

impl<P: Problem> Question<'_, P> {
    fn pattern(&self) -> *mut sys::spk_pattern {
        self.pattern.map_or(ptr::null_mut(), Pattern::raw)
    }

    fn problem(&self) -> *const c_void {
        (&raw const self.problem).cast()
    }

    pub fn plan(&self, options: &TuneOptions) -> Result<RawPlan> {
        let options = options.to_raw()?;
        let (context, mut raw) = (self.context.raw(), ptr::null_mut());
        // SAFETY: context and pattern are alive and belong together, structs and texts live during the call.
        let status = unsafe { sys::spk_plan_create(context, self.pattern(), self.problem(), &options.raw, &mut raw) };
        self.context.check(status)?;
        Ok(RawPlan::own(raw, self.context, self.pattern))
    }

    /// # Safety
    /// The pointers are to as many elements as the problem has, on the context's device; nobody else uses what is written.
    #[inline]
    pub unsafe fn compute(&self, args: &P::Args, options: &TuneOptions) -> Result<()> {
        let options = options.to_raw()?;
        let (context, args) = (self.context.raw(), ptr::from_ref(args).cast());
        // SAFETY: as in `plan`; the arguments are as the caller promises.
        let status = unsafe { sys::spk_compute(context, self.pattern(), self.problem(), args, &options.raw) };
        self.context.check(status)
    }

    /// An output by plain loops, all of its rows, item after item, head after head.
    ///
    /// # Safety
    /// The pointers to what is read are to as many elements as the problem has, in host memory.
    pub unsafe fn oracle(&self, args: &P::Args, output: &str) -> Result<Vec<f64>> {
        let (operand, context) = (Self::operand(output)?, self.context.raw());
        let (mut array, mut info) = (sized!(spk_array_info), sized!(spk_problem_info));
        // SAFETY: as in `plan`. These refuse what is no problem, before memory is taken for one.
        unsafe {
            let (pattern, problem) = (self.pattern(), self.problem());
            self.context.check(sys::spk_problem_get_array(context, pattern, problem, operand, &mut array))?;
            self.context.check(sys::spk_problem_get_info(context, pattern, problem, &mut info))?;
        }
        if array.elements == 0 {
            return Ok(Vec::new());
        }
        // Less than 2^62, as rows of an output do not overlap.
        let items = if array.stride != 0 { info.items } else { 1 };
        let rows: Vec<i64> = (0..array.rows * array.heads.max(1) * items).collect();
        let mut out = vec![0f64; rows.len() * count(array.cols)];
        // SAFETY: the operands are as the caller promises, `out` has as many elements as there are rows of so many columns.
        let status = unsafe {
            sys::spk_oracle(
                context,
                self.pattern(),
                self.problem(),
                ptr::from_ref(args).cast(),
                operand,
                rows.as_ptr(),
                size(rows.len()),
                out.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.context.check(status)?;
        Ok(out)
    }

    pub fn report(&self, options: &TuneOptions, call: ReportCall) -> Result<Report> {
        let options = options.to_raw()?;
        Report::read(self.context, |report| {
            // SAFETY: as in `plan`.
            unsafe { call(self.context.raw(), self.pattern(), self.problem(), &options.raw, report) }
        })
    }

    pub fn race(&self, options: &TuneOptions, race: &Race) -> Result<Report> {
        let (options, choices) = (options.to_raw()?, race.text()?);
        let (context, race) = (self.context.raw(), raw_race(race, choices.as_deref()));
        Report::read(self.context, |report| {
            // SAFETY: as in `plan`.
            unsafe { sys::spk_race_kernels(context, self.pattern(), self.problem(), &options.raw, &race, report) }
        })
    }

    /// The index of an operand by its name in the arguments.
    fn operand(name: &str) -> Result<c_int> {
        for index in 0.. {
            let mut info = sized!(spk_operand_info);
            // SAFETY: the struct says its size; names are static.
            let found = unsafe {
                match sys::spk_operation_get_operand(P::OPERATION, index, &mut info) {
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
}

#[cfg(test)]
impl<P: Problem> Question<'_, P> {
    /// The lengths that slices must have are those that the library tells of the problem.
    #[track_caller]
    pub fn assert_extents(&self, named: Vec<(&'static str, Needed)>) {
        for (name, needed) in named {
            let (operand, mut array) = (Self::operand(name).unwrap(), sized!(spk_array_info));
            // SAFETY: as in `plan`.
            let status = unsafe {
                let (context, pattern) = (self.context.raw(), self.pattern());
                sys::spk_problem_get_array(context, pattern, self.problem(), operand, &mut array)
            };
            self.context.check(status).unwrap();
            let told = Needed::when(array.dtype != sys::SPK_DTYPE_DEFAULT, Some(count(array.elements)));
            assert_eq!(needed, told, "{name} of operation {}", P::OPERATION.0);
        }
    }
}

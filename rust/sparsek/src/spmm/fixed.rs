//! Values that change only through a plan.
use super::SpmmPlan;
use super::generated::Extents;
use crate::error::{Error, Result};
use crate::operands::Needed;
use crate::sys;
use crate::types::{Element, Product};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// The values of a plan, which are its own where the problem has [`Spmm::static_values`](crate::Spmm::static_values).
pub(super) struct Fixed<A> {
    pub is_static: bool,
    has_values: bool, // of those that are static
    needed: Needed,
    kept: Vec<Arc<[A]>>, // what the library has pointers to: the last, and those of updates that failed since; dropped after the plan
}

impl<A> Fixed<A> {
    /// Runs need no values that are static.
    pub fn of(problem: &sys::spk_spmm, extents: &mut Extents) -> Fixed<A> {
        let (is_static, needed) = (problem.static_values != 0, extents.values);
        if is_static {
            extents.values = Needed::Absent;
        }
        Fixed { is_static, has_values: false, needed, kept: Vec::new() }
    }

    pub fn check(&self) -> Result<()> {
        if self.is_static && !self.has_values {
            return Err(Error::argument("the plan has static values: update_values must come before the first run"));
        }
        Ok(())
    }
}

impl<A: Product<D>, D: Element> SpmmPlan<A, D> {
    /// Gives the values (again) to a plan of a problem with [`Spmm::static_values`](crate::Spmm::static_values), on the CPU. Those of later runs are ignored.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmArgs, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Spmm::new(1).static_values(true);
    /// let mut plan = pattern.plan_spmm::<f32, f32>(&problem, &TuneOptions::new().estimate())?;
    /// plan.update_values(vec![2f32; 4])?;
    /// let mut d = [0f32; 2];
    /// plan.run(SpmmArgs::new(&[], &[1.; 2], &mut d))?;
    /// assert_eq!(d, [4., 4.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn update_values(&mut self, values: impl Into<Arc<[A]>>) -> Result<()> {
        let values = values.into();
        let context = self.plan.context();
        context.check_host()?;
        self.fixed.needed.check("values", values.len())?;
        let pointer = values.as_ptr().cast();
        if self.fixed.is_static {
            self.fixed.kept.push(values);
        }
        // SAFETY: the values are as many as the problem has, and stay; &mut keeps runs away.
        context.check(unsafe { sys::spk_plan_update_values(self.plan.raw(), pointer, ptr::null_mut()) })?;
        self.fixed.kept.drain(..self.fixed.kept.len() - 1);
        self.fixed.has_values = true;
        Ok(())
    }

    /// Likewise, with values in the memory of the context's device.
    ///
    /// # Safety
    /// The values are as many as the problem has, in memory of the context's device, and stay until the next update or the
    /// plan's end; the stream is as in [`SpmmPlan::run_pointers`].
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, SpmmPointers, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let problem = Spmm::new(1).static_values(true);
    /// let values = [2f32; 4];
    /// let mut plan = pattern.plan_spmm::<f32, f32>(&problem, &TuneOptions::new().estimate())?;
    /// // SAFETY: A is 2 x 2, and the array outlives the plan.
    /// unsafe { plan.update_values_pointer(values.as_ptr(), std::ptr::null_mut()) }?;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn update_values_pointer(&mut self, values: *const A, stream: *mut c_void) -> Result<()> {
        let context = self.plan.context();
        // SAFETY: as the caller promises.
        context.check(unsafe { sys::spk_plan_update_values(self.plan.raw(), values.cast(), stream) })?;
        self.fixed.kept.clear(); // the library has another pointer
        self.fixed.has_values = true;
        Ok(())
    }
}

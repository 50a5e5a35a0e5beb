//! What the plans of all operations share.
use crate::context::Context;
use crate::error::{Result, text};
use crate::pattern::Pattern;
use crate::sys;
use crate::types::sized;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// The kernel of a plan.
///
/// ```
/// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// let pattern = Pattern::new(&context, (4, 4), (2, 2), &[0, 1, 2], &[1, 0])?;
/// let info = pattern.plan_spmm::<f32, f32>(&Spmm::new(3), &TuneOptions::new().estimate())?.info()?;
/// assert!(info.why.starts_with("estimated"));
/// assert!(info.choice.starts_with(&info.kernel));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanInfo {
    /// `"spmm_f32_avx2"`
    pub kernel: String,
    /// `"NV=3 PACK=1 GROUP=4"`
    pub params: String,
    /// Both, as [`TuneOptions::choice`](crate::TuneOptions::choice) takes them.
    pub choice: String,
    /// `"measured"`, `"from the store"`, `"estimated: cost model"`, `"pinned"`.
    pub why: String,
    /// From the store, that is.
    pub from_store: bool,
    /// What a run needs, aligned to 64 bytes (on a GPU to 256).
    pub workspace_bytes: usize,
    /// One-off work done for this plan.
    pub prepare_us: f64,
}

/// The owner of a plan.
pub(crate) struct RawPlan {
    raw: NonNull<sys::spk_plan>,
    // Both are dropped after `raw` is destroyed.
    pattern: Option<Pattern>,
    context: Context,
}

// SAFETY: a plan may run in several threads at once, each with a workspace of its own: the safe functions give none, and the
// library then lends the plan's to one thread at a time. What is not for two threads takes &mut.
unsafe impl Send for RawPlan {}
// SAFETY: likewise.
unsafe impl Sync for RawPlan {}

impl Drop for RawPlan {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: this is the owner; pattern and context live until after this.
        unsafe { sys::spk_plan_destroy(&mut raw) };
    }
}

impl RawPlan {
    pub fn own(raw: *mut sys::spk_plan, context: &Context, pattern: Option<&Pattern>) -> RawPlan {
        let raw = NonNull::new(raw).expect("a plan after success");
        RawPlan { raw, pattern: pattern.cloned(), context: context.clone() }
    }

    #[inline]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Of a plan that was made with one.
    pub fn pattern(&self) -> &Pattern {
        self.pattern.as_ref().expect("a plan with a pattern")
    }

    pub fn raw(&self) -> *mut sys::spk_plan {
        self.raw.as_ptr()
    }

    /// # Safety
    /// `Args` is the struct of the operation's arguments. Its pointers are to as many elements as the problem has, on the context's
    /// device; nobody else uses what is written; the stream is one of that device.
    #[inline]
    pub unsafe fn run<Args>(&self, args: &Args, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        self.context.check(unsafe { sys::spk_plan_run(self.raw(), ptr::from_ref(args).cast(), stream) })
    }

    pub fn choice(&self) -> String {
        // SAFETY: the plan is alive, as long as its string is copied.
        unsafe { text(sys::spk_plan_choice(self.raw())) }
    }

    pub fn info(&self) -> Result<PlanInfo> {
        let mut info = sized!(spk_plan_info);
        // SAFETY: the plan is alive, as long as its strings are copied.
        unsafe {
            self.context.check(sys::spk_plan_get_info(self.raw(), &mut info))?;
            Ok(PlanInfo {
                kernel: text(info.kernel),
                params: text(info.params),
                choice: self.choice(),
                why: text(info.why),
                from_store: info.from_store != 0,
                workspace_bytes: info.workspace_bytes,
                prepare_us: info.prepare_us,
            })
        }
    }
}

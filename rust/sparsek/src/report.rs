//! The evidence of a decision.
use crate::context::Context;
use crate::error::{Result, text};
use crate::sys;
use crate::tune::Race;
use crate::types::sized;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, c_void};
use std::ptr;

/// What was found about a candidate.
///
/// ```
/// let status: sparsek::CandidateStatus = serde_json::from_str("\"timed_out\"").unwrap();
/// assert_eq!(status, sparsek::CandidateStatus::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CandidateStatus {
    /// It is right, and may win.
    Ok,
    /// Its result missed the tolerance.
    Wrong,
    /// It returned an error.
    Failed,
    /// It took too long.
    TimedOut,
    /// Not measured: the model or early samples ruled it out, or the budget ended.
    Pruned,
    /// It may not win here; measured all the same where times are given.
    NotEligible,
    /// It cannot compute this problem on this device.
    NotApplicable,
}

/// Where a kernel comes from.
///
/// ```
/// assert_eq!(serde_json::to_string(&sparsek::KernelKind::Vendor).unwrap(), "\"vendor\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KernelKind {
    /// sparsek's own.
    Own,
    /// A library's.
    Vendor,
    /// A dense product.
    Dense,
    /// Plain loops.
    Reference,
    /// Another project's.
    Peer,
}

/// What makes evidence good enough to go on with, and no more.
///
/// ```
/// assert_eq!(serde_json::to_string(&sparsek::Provisional::Budget).unwrap(), "\"budget\"");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Provisional {
    /// The measuring was interrupted: candidates are undecided. The next tuning goes on with it.
    Interrupted,
    /// The budget ended before interleaved rounds had decided; a tuning with half as much again measures anew.
    Budget,
    /// Other programs used the processors; a tuning minutes later, on a machine that is not as busy, measures anew.
    Load,
    /// The program's own runs tried a few candidates; a tuning measures more of them.
    InPlace,
}

/// A kernel with parameters, and what was measured of it.
///
/// ```
/// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
/// let report = pattern.list_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new())?;
/// assert!(report.candidates.iter().all(|candidate| candidate.samples_us.is_empty()));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The kernel.
    pub name: String,
    /// Its parameters.
    pub params: String,
    /// Of the kernel's source and parameters.
    pub hash: String,
    /// Where it comes from.
    pub kind: KernelKind,
    /// What was found.
    pub status: CandidateStatus,
    /// The reason of a status other than ok.
    pub why: Option<String>,
    /// The cost model's time; 0: none.
    pub predicted_us: f64,
    /// 0: not measured.
    pub median_us: f64,
    /// Half the distance between the quartiles.
    pub spread_us: f64,
    /// The shortest run of the last phase, by which the choice goes where other programs used the processors; 0: not known, as of what
    /// the store has kept.
    pub least_us: f64,
    /// One-off work of a plan.
    pub prepare_us: f64,
    /// The largest error over the magnitude on the sampled rows; negative: not checked.
    pub error: f64,
    /// The largest allowed.
    pub tolerance: f64,
    /// Interleaved samples of the last phase: sample i of two candidates was taken in the same round.
    pub samples_us: Vec<f64>,
}

/// The evidence of a decision.
///
/// ```
/// # use sparsek::{Context, Pattern, Report, Spmm, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
/// let options = TuneOptions::new().only("reference_spmm,spmm_portable");
/// let report = pattern.tune_spmm::<f32, f32>(&Spmm::new(4), &options)?;
/// let json = serde_json::to_string(&report).unwrap();
/// let back: Report = serde_json::from_str(&json).unwrap();
/// assert_eq!(back.chosen().map(|best| &best.name), report.chosen().map(|best| &best.name));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// All candidates.
    pub candidates: Vec<Candidate>,
    /// The index of the chosen one.
    pub chosen: Option<usize>,
    /// The stored evidence: nothing was measured.
    pub from_store: bool,
    /// Seconds spent tuning (then, when from the store).
    pub tuning_s: f64,
    /// Seconds since 1970-01-01 UTC; 0: never.
    pub measured_at: i64,
    /// The class of problems this evidence is for.
    pub class_key: String,
    /// One paragraph: why the chosen one won.
    pub summary: String,
    /// Why a later tuning of the class measures again, if it does.
    #[serde(default)]
    pub provisional: Option<Provisional>,
    /// Whose evidence it is, where nothing was measured of the class: "nearest class, of n=64".
    #[serde(default)]
    pub origin: Option<String>,
    /// The evidence is another class's: its times are not this problem's, and give no rates of it.
    #[serde(default)]
    pub foreign: bool,
}

impl Report {
    /// The chosen candidate.
    ///
    /// ```
    /// # use sparsek::{Context, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// let report = pattern.tune_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new().only("reference_spmm"))?;
    /// assert_eq!(report.chosen().unwrap().name, "reference_spmm");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen?)
    }

    /// Copies the report that `make` writes, and gives it back to the library. An interrupted tuning may have written one, too:
    /// the error has it.
    pub(crate) fn read(
        context: &Context,
        make: impl FnOnce(*mut *mut sys::spk_report) -> sys::spk_status,
    ) -> Result<Report> {
        let mut owner = Owner(ptr::null_mut());
        let status = make(&mut owner.0);
        match context.check(status) {
            Ok(()) => owner.copy(context),
            // It is the library's message that counts, whatever becomes of the report.
            Err(why) if !owner.0.is_null() => Err(match owner.copy(context) {
                Ok(partial) => why.with_report(partial),
                Err(_) => why,
            }),
            Err(why) => Err(why),
        }
    }
}

/// Tuning, explaining, listing: of every operation.
pub(crate) type ReportCall = unsafe extern "C" fn(
    *mut sys::spk_context,
    *mut sys::spk_pattern,
    *const c_void,
    *const sys::spk_tune_options,
    *mut *mut sys::spk_report,
) -> sys::spk_status;

struct Owner(*mut sys::spk_report);

impl Owner {
    /// The report, which is there.
    fn copy(&self, context: &Context) -> Result<Report> {
        let mut info = sized!(spk_report_info);
        // SAFETY: the report is alive, and its strings are copied.
        unsafe {
            context.check(sys::spk_report_get_info(self.0, &mut info))?;
            let candidates = (0..info.candidate_count).map(|index| candidate(context, self.0, index));
            Ok(Report {
                candidates: candidates.collect::<Result<_>>()?,
                chosen: usize::try_from(info.chosen).ok(),
                from_store: info.from_store != 0,
                tuning_s: info.tuning_s,
                measured_at: info.measured_at,
                class_key: text(info.class_key),
                summary: text(info.summary),
                provisional: provisional(info.provisional),
                origin: (!info.origin.is_null()).then(|| text(info.origin)),
                foreign: info.foreign != 0,
            })
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the owner; NULL is accepted.
        unsafe { sys::spk_report_destroy(&mut self.0) };
    }
}

/// # Safety
/// The report is alive.
unsafe fn candidate(context: &Context, report: *const sys::spk_report, index: i32) -> Result<Candidate> {
    let mut info = sized!(spk_candidate_info);
    // SAFETY: as the caller promises; strings and samples are copied.
    unsafe {
        context.check(sys::spk_report_get_candidate(report, index, &mut info))?;
        let samples = usize::try_from(info.sample_count).unwrap_or(0);
        let samples_us = if samples == 0 || info.samples_us.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(info.samples_us, samples).to_vec()
        };
        Ok(Candidate {
            name: text(info.name),
            params: text(info.params),
            hash: text(info.hash),
            kind: kind(info.kind),
            status: status(info.status),
            why: (!info.why.is_null()).then(|| text(info.why)),
            predicted_us: info.predicted_us,
            median_us: info.median_us,
            spread_us: info.spread_us,
            least_us: info.least_us,
            prepare_us: info.prepare_us,
            error: info.error,
            tolerance: info.tolerance,
            samples_us,
        })
    }
}

fn provisional(raw: sys::spk_provisional) -> Option<Provisional> {
    match raw {
        sys::SPK_PROVISIONAL_INTERRUPTED => Some(Provisional::Interrupted),
        sys::SPK_PROVISIONAL_BUDGET => Some(Provisional::Budget),
        sys::SPK_PROVISIONAL_LOAD => Some(Provisional::Load),
        sys::SPK_PROVISIONAL_IN_PLACE => Some(Provisional::InPlace),
        _ => None,
    }
}

fn kind(raw: sys::spk_kind) -> KernelKind {
    match raw {
        sys::SPK_KIND_VENDOR => KernelKind::Vendor,
        sys::SPK_KIND_DENSE => KernelKind::Dense,
        sys::SPK_KIND_REFERENCE => KernelKind::Reference,
        sys::SPK_KIND_PEER => KernelKind::Peer,
        _ => KernelKind::Own,
    }
}

fn status(raw: sys::spk_candidate_status) -> CandidateStatus {
    match raw {
        sys::SPK_CANDIDATE_OK => CandidateStatus::Ok,
        sys::SPK_CANDIDATE_WRONG => CandidateStatus::Wrong,
        sys::SPK_CANDIDATE_TIMED_OUT => CandidateStatus::TimedOut,
        sys::SPK_CANDIDATE_PRUNED => CandidateStatus::Pruned,
        sys::SPK_CANDIDATE_NOT_ELIGIBLE => CandidateStatus::NotEligible,
        sys::SPK_CANDIDATE_NOT_APPLICABLE => CandidateStatus::NotApplicable,
        _ => CandidateStatus::Failed,
    }
}

/// The library's options of a race; `choices` is [`Race::text`], which lives as long as what is returned is used.
pub(crate) fn raw_race(race: &Race, choices: Option<&CStr>) -> sys::spk_race_options {
    let mut raw = sized!(spk_race_options);
    raw.rounds = race.rounds.into();
    raw.choices = choices.map_or(ptr::null(), CStr::as_ptr);
    raw.keep = race.keep.into();
    raw
}

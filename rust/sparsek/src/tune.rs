//! How a kernel is chosen.
use crate::error::{Result, c_text};
use crate::sys;
use crate::types::sized;
use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// When a class of problems that the store does not know is tuned. Another number of tokens of a layer that the store knows
/// runs on the nearest one's choice, but with [`Tuning::NowEach`] and [`Tuning::AheadEach`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tuning {
    /// Nobody waits: the next runs of its plan are made by a few candidates in turn, until the fastest is known. The last bits
    /// may differ from run to run meanwhile. On a GPU candidates are compiled and proved by another thread first.
    #[default]
    InPlace,
    /// In the call, which waits.
    Now,
    /// In the call, and each number of tokens by itself: for warming up, before users wait for a call.
    NowEach,
    /// Never: the nearest class or the estimate decides.
    Never,
    /// Ahead of the call. Where neither the class nor another number of tokens of its layer was tuned, the call is an error,
    /// [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass).
    Ahead,
    /// Ahead of the call, each number of tokens by itself. Where the class was not tuned, the call is an error,
    /// [`ErrorKind::UnknownClass`](crate::ErrorKind::UnknownClass).
    AheadEach,
}

impl Tuning {
    fn to_raw(self) -> sys::spk_tuning {
        match self {
            Self::InPlace => sys::SPK_TUNING_IN_PLACE,
            Self::Now => sys::SPK_TUNING_NOW,
            Self::NowEach => sys::SPK_TUNING_NOW_EACH,
            Self::Never => sys::SPK_TUNING_NEVER,
            Self::Ahead => sys::SPK_TUNING_AHEAD,
            Self::AheadEach => sys::SPK_TUNING_AHEAD_EACH,
        }
    }
}

/// How a kernel is chosen. The default: from the store, else tried in place ([`Tuning`]).
///
/// ```
/// use std::time::Duration;
/// let options = sparsek::TuneOptions::new().budget(Duration::from_millis(300)).exclude("reference_spmm").seed(1);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TuneOptions {
    effort: Option<sys::spk_effort>,
    tuning: Tuning,
    warm: bool,
    budget: Option<Duration>,
    tolerance: f64,
    fresh: bool,
    only: Option<String>,
    exclude: Option<String>,
    choice: Option<String>,
    seed: u64,
    cancel: Option<Cancel>,
}

/// The library's options with what they point to.
pub(crate) struct RawTune {
    pub raw: sys::spk_tune_options,
    _texts: [Option<CString>; 3],
    _cancel: Option<Cancel>,
}

/// Ends the tuning of the calls whose options have it ([`TuneOptions::cancel`]), and of no others; from any thread. Clones are the same one.
///
/// ```
/// let cancel = sparsek::Cancel::new();
/// let options = sparsek::TuneOptions::new().cancel(&cancel);
/// std::thread::spawn(move || cancel.cancel()).join().unwrap();
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicI32>);

impl Cancel {
    /// One that was not asked to cancel anything yet.
    ///
    /// ```
    /// assert!(!sparsek::Cancel::new().is_cancelled());
    /// ```
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Tuning ends at the next sample, where it keeps what was measured; its call fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), and so does each later one that would tune.
    ///
    /// ```
    /// let cancel = sparsek::Cancel::new();
    /// cancel.cancel();
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// Whether [`Cancel::cancel`] was called.
    ///
    /// ```
    /// assert!(!sparsek::Cancel::new().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl TuneOptions {
    /// The defaults.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new();
    /// # let _ = options;
    /// ```
    pub fn new() -> TuneOptions {
        TuneOptions::default()
    }

    /// Runs nothing: the nearest class that the store knows, else the cost model.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().estimate();
    /// # let _ = options;
    /// ```
    pub fn estimate(mut self) -> Self {
        self.effort = Some(sys::SPK_TUNE_ESTIMATE);
        self
    }

    /// Measures every applicable candidate, without a budget unless one is set.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().exhaustive();
    /// # let _ = options;
    /// ```
    pub fn exhaustive(mut self) -> Self {
        self.effort = Some(sys::SPK_TUNE_EXHAUSTIVE);
        self
    }

    /// When a class that the store does not know is tuned; without this [`Tuning::InPlace`].
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().tuning(sparsek::Tuning::Now);
    /// # let _ = options;
    /// ```
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Measures with the same operands again and again, that the caches hold. The default is cold: operands rotate.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().warm();
    /// # let _ = options;
    /// ```
    pub fn warm(mut self) -> Self {
        self.warm = true;
        self
    }

    /// The time to measure for, up to a day; what takes no nanosecond is the default.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().budget(std::time::Duration::from_secs(1));
    /// # let _ = options;
    /// ```
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The largest norm-wise relative error of a candidate; 0: from the element type and the inner size.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().tolerance(1e-5);
    /// # let _ = options;
    /// ```
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Measures again though the class is known.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().fresh(true);
    /// # let _ = options;
    /// ```
    pub fn fresh(mut self, yes: bool) -> Self {
        self.fresh = yes;
        self
    }

    /// Only these kernels: names with commas between them.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().only("spmm_portable,reference_spmm");
    /// # let _ = options;
    /// ```
    pub fn only(mut self, kernels: impl Into<String>) -> Self {
        self.only = Some(kernels.into());
        self
    }

    /// All but these kernels.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().exclude("reference_spmm");
    /// # let _ = options;
    /// ```
    pub fn exclude(mut self, kernels: impl Into<String>) -> Self {
        self.exclude = Some(kernels.into());
        self
    }

    /// This candidate, as [`PlanInfo::choice`](crate::PlanInfo::choice) names it, without measuring.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().choice("spmm_portable NV=1 PACK=0 GROUP=1");
    /// # let _ = options;
    /// ```
    pub fn choice(mut self, choice: impl Into<String>) -> Self {
        self.choice = Some(choice.into());
        self
    }

    /// The seed of the random operands; 0: from the clock.
    ///
    /// ```
    /// let options = sparsek::TuneOptions::new().seed(7);
    /// # let _ = options;
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What may cancel the calls that take these options.
    ///
    /// ```
    /// let cancel = sparsek::Cancel::new();
    /// let options = sparsek::TuneOptions::new().cancel(&cancel);
    /// # let _ = options;
    /// ```
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    pub(crate) fn to_raw(&self) -> Result<RawTune> {
        let text = |name: &str, value: &Option<String>| value.as_ref().map(|v| c_text(name, v.as_str())).transpose();
        let texts = [text("only", &self.only)?, text("exclude", &self.exclude)?, text("choice", &self.choice)?];
        let [only, exclude, choice] = texts.each_ref().map(|text| text.as_ref().map_or(ptr::null(), |t| t.as_ptr()));
        let mut raw = sized!(spk_tune_options);
        raw.effort = self.effort.unwrap_or(sys::SPK_TUNE_MEASURE);
        raw.tuning = self.tuning.to_raw();
        raw.cache = if self.warm { sys::SPK_WARM } else { sys::SPK_COLD };
        raw.budget_s = self.budget.map_or(0.0, |budget| budget.as_secs_f64());
        raw.tolerance = self.tolerance;
        raw.fresh = self.fresh.into();
        (raw.only, raw.exclude, raw.choice) = (only, exclude, choice);
        raw.seed = self.seed;
        raw.cancel = self.cancel.as_ref().map_or(ptr::null(), |cancel| cancel.0.as_ptr().cast_const());
        Ok(RawTune { raw, _texts: texts, _cancel: self.cancel.clone() })
    }
}

/// Options of a race, see [`Pattern::race_spmm`](crate::Pattern::race_spmm).
///
/// ```
/// let race = sparsek::Race::new().rounds(5).choice("reference_spmm").choice("spmm_portable NV=1 PACK=0 GROUP=1");
/// # let _ = race;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Race {
    /// Interleaved rounds of the last phase; 0: 20.
    pub rounds: u16,
    /// Choices to race against each other; empty: the best parameters of every kernel.
    pub choices: Vec<String>,
    /// The result goes to the store.
    pub keep: bool,
}

impl Race {
    /// Twenty rounds of the best parameters of every kernel, whose result is not kept.
    ///
    /// ```
    /// assert_eq!(sparsek::Race::new(), sparsek::Race::default());
    /// ```
    pub fn new() -> Race {
        Race::default()
    }

    /// With this many interleaved rounds in the last phase; 0: 20.
    ///
    /// ```
    /// assert_eq!(sparsek::Race::new().rounds(5).rounds, 5);
    /// ```
    pub fn rounds(mut self, rounds: u16) -> Race {
        self.rounds = rounds;
        self
    }

    /// With one more choice to race, as [`PlanInfo::choice`](crate::PlanInfo::choice) names it.
    ///
    /// ```
    /// assert_eq!(sparsek::Race::new().choice("reference_spmm").choices, ["reference_spmm"]);
    /// ```
    pub fn choice(mut self, choice: impl Into<String>) -> Race {
        self.choices.push(choice.into());
        self
    }

    /// Whether the result goes to the store.
    ///
    /// ```
    /// assert!(sparsek::Race::new().keep(true).keep);
    /// ```
    pub fn keep(mut self, yes: bool) -> Race {
        self.keep = yes;
        self
    }

    pub(crate) fn text(&self) -> Result<Option<CString>> {
        if self.choices.is_empty() { Ok(None) } else { c_text("choices", self.choices.join(";")).map(Some) }
    }
}
